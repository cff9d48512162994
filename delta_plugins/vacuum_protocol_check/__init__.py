"""vacuumProtocolCheck: vacuum checks the writer protocol before it deletes. Protocol: VACUUM Protocol Check.

Readers acknowledge it and do nothing else.
"""

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "vacuumProtocolCheck", "reader+writer", "VACUUM checks the table's whole protocol before it deletes files."
)
