"""columnMappingUsageTracking: the table remembers whether a mapped column was ever dropped or renamed."""

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "columnMappingUsageTracking",
    "writer",
    "The table remembers whether a column was ever dropped or renamed.",
    requires=("columnMapping",),
    properties={"delta.columnMapping.hasDroppedOrRenamed": "true once a column was dropped or renamed"},
)
