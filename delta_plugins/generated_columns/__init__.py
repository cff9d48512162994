"""generatedColumns: columns computed from others. Protocol: Generated Columns."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import (
    FeatureStep,
    FeatureUse,
    Metadata,
    Path,
    Schema,
    SchemaError,
    TableFeature,
    TableState,
    TypeChangeError,
    WriteRule,
    format_path,
    hookimpl,
    walk,
)
from delta_plugins.generated_columns import logic

__all__ = ["FEATURE", "Schema"]


def _is_active(table: TableState) -> bool:
    return logic.is_needed(table.schema)


FEATURE = TableFeature(
    "generatedColumns",
    "writer",
    "Columns are computed from other columns when rows are written.",
    expressions=(logic.KEY,),
    active=_is_active,
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.is_needed(metadata.schema) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.check(table)


@hookimpl
def check_type_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_unused(table, paths, TypeChangeError, "change its type")


@hookimpl
def check_column_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_unused(table, paths, SchemaError, "be dropped or renamed")


@hookimpl
def write_rules(table: TableState) -> Iterable[WriteRule]:
    return logic.rules(table)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = (
        tuple(f"column {format_path(p)}" for p, f in walk(table.schema) if logic.KEY in f.metadata)
        if change == "drop"
        else ()
    )
    return [FeatureUse(FEATURE.name, users, "Drop these columns first.")] if users else []
