"""allowColumnDefaults: default values for columns that a write leaves out. Protocol: Default Columns.

Defaults never apply on reading: a column that a file lacks is null.
"""

from delta_core.api import TableFeature, TableState, walk

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return any("CURRENT_DEFAULT" in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "allowColumnDefaults",
    "writer",
    "Columns have default values for writes that leave them out.",
    active=_is_active,
)
