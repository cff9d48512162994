"""materializePartitionColumns: data files hold the partition columns too. Readers still take ``partitionValues``."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import FeatureStep, FileRequirement, TableFeature, hookimpl

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "materializePartitionColumns",
    "writer",
    "New data files hold the partition columns too.",
    properties={"delta.writePartitionColumnsToParquet": "true requires it without the feature's guarantee"},
    is_layout=True,
)


@hookimpl
def write_rules() -> Iterable[FileRequirement]:
    return [FileRequirement(FEATURE.name, materialize_partition_columns=True)]


@hookimpl
def feature_steps() -> Iterable[FeatureStep]:
    return []
