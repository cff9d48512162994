"""The exceptions under the names that scripts written for `deltalake` catch; the classes are `errors`'."""

from delta_core.errors import CommitError as CommitFailedError
from delta_core.errors import DeltaError, SchemaMismatchError, TableNotFoundError
from delta_core.errors import ProtocolError as DeltaProtocolError

__all__ = ["CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"]
