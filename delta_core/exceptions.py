"""The exceptions under the names that scripts written for `deltalake` catch; the classes are `errors`'."""

from delta_core.errors import (
    CommitError as CommitFailedError,
    DeltaError,
    ProtocolError as DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

__all__ = ["CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"]
