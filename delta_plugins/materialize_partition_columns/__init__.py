"""materializePartitionColumns: data files hold the partition columns too. Readers still take ``partitionValues``."""

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "materializePartitionColumns",
    "writer",
    "New data files hold the partition columns too.",
    properties={"delta.writePartitionColumnsToParquet": "true asks for it without the feature's guarantee"},
)
