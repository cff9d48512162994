"""columnMappingUsageTracking: the table remembers whether a mapped column was ever dropped or renamed.

Until then new columns are named in files as users name them, so that mapping can be switched off without a rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from delta_core.api import (
    DataType,
    FeatureStep,
    Metadata,
    Path,
    RemoveProperties,
    Schema,
    TableFeature,
    TableState,
    hookimpl,
    walk,
)

__all__ = ["FEATURE"]

PROPERTY = "delta.columnMapping.hasDroppedOrRenamed"
_ID = "delta.columnMapping.id"
FEATURE = TableFeature(
    "columnMappingUsageTracking",
    "writer",
    "The table remembers whether a column was ever dropped or renamed.",
    requires=("columnMapping",),
    properties={PROPERTY: "true once a column was dropped or renamed"},
    reserved=(PROPERTY,),
    is_layout=True,
)


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    if previous is None:
        used = False
    elif not previous.is_supported(FEATURE.name) or previous.property(PROPERTY, "true") != "false":
        # what happened before is not known, or it happened
        used = True
    else:
        used = _has_dropped_or_renamed(metadata.schema, previous.schema)
    return replace(metadata, configuration={**metadata.configuration, PROPERTY: str(used).lower()})


def _has_dropped_or_renamed(schema: Schema, old: Schema) -> bool:
    """Whether a column of the old schema is gone, or has another name; by ids, else by names."""
    left = {number: path for path, number in _ids(schema) if number is not None}
    names = {path for path, _ in _ids(schema)}
    return any(left.get(number, path) != path or path not in names for path, number in _ids(old))


def _ids(t: DataType) -> Iterator[tuple[Path, object]]:
    return ((path, f.metadata.get(_ID)) for path, f in walk(t))


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (PROPERTY,))] if change == "drop" else []
