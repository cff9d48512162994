"""allowColumnDefaults: default values for columns that a write leaves out. Protocol: Default Columns.

Defaults never apply on reading: a column that a file lacks is null. To request a column's default, a write leaves the
column out; null is a value like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import (
    FeatureStep,
    FeatureUse,
    FillColumn,
    Metadata,
    Schema,
    TableFeature,
    TableState,
    format_path,
    hookimpl,
    walk,
)
from delta_plugins.allow_column_defaults import logic

__all__ = ["FEATURE", "Schema"]


def _is_active(table: TableState) -> bool:
    return logic.is_needed(table.schema)


FEATURE = TableFeature(
    "allowColumnDefaults",
    "writer",
    "Columns have default values for writes that leave them out.",
    expressions=(logic.KEY,),
    active=_is_active,
    operations={
        "set_default": "delta_plugins.allow_column_defaults.operations:set_default",
        "drop_default": "delta_plugins.allow_column_defaults.operations:drop_default",
    },
    enabling=("set_default",),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.is_needed(metadata.schema) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.check(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[FillColumn]:
    return logic.fills(table)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = (
        tuple(f"column {format_path(p)}" for p, f in walk(table.schema) if logic.KEY in f.metadata)
        if change == "drop"
        else ()
    )
    return [FeatureUse(FEATURE.name, users, "Drop the defaults first.")] if users else []
