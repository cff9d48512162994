"""checkConstraints: named conditions on rows. Protocol: CHECK Constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.api import (
    FeatureStep,
    FeatureUse,
    Metadata,
    Path,
    RemainingFilesCheck,
    RowCheck,
    SchemaError,
    TableFeature,
    TableState,
    TypeChangeError,
    hookimpl,
)
from delta_plugins.check_constraints import logic

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return bool(logic.constraints(table.configuration))


FEATURE = TableFeature(
    "checkConstraints",
    "writer",
    "The table states conditions that every written row fulfils.",
    properties={"delta.constraints.<name>": "a condition in Spark SQL"},
    expressions=("delta.constraints.<name>",),
    active=_is_active,
    operations={
        "add_constraint": "delta_plugins.check_constraints.operations:add_constraint",
        "drop_constraint": "delta_plugins.check_constraints.operations:drop_constraint",
    },
    enabling=("add_constraint",),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.constraints(metadata.configuration) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.row_checks(table)


@hookimpl
def check_type_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_unused(table, paths, TypeChangeError, "change its type")


@hookimpl
def check_column_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_unused(table, paths, SchemaError, "be dropped or renamed")


@hookimpl
def write_rules(table: TableState) -> Iterable[RowCheck]:
    return logic.row_checks(table)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[RemainingFilesCheck]:
    return logic.validation(attempt)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = tuple(f"constraint {name}" for name in logic.constraints(table.configuration)) if change == "drop" else ()
    return [FeatureUse(FEATURE.name, users, "Drop the constraints first.")] if users else []
