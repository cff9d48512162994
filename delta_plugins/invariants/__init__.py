"""invariants: conditions on columns, NOT NULL among them. Protocol: Column Invariants.

The core itself rejects null if a field is not nullable, at every depth.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core import api
from delta_core.api import RowCheck, Schema, TableFeature, format_path, hookimpl, walk
from delta_plugins.invariants import logic

if TYPE_CHECKING:
    from delta_core.api import FeatureStep, Metadata, Path, TableState

__all__ = ["FEATURE", "Schema"]


def _is_active(table: TableState) -> bool:
    return logic.is_needed(table.schema)


def _has_no_condition(table: TableState) -> bool:
    return not any(logic.KEY in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "invariants",
    "writer",
    "Columns state conditions that every written row fulfils.",
    expressions=(logic.KEY,),
    active=_is_active,
    # NOT NULL is part of any schema
    is_layout=_has_no_condition,
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.is_needed(metadata.schema) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.row_checks(table)


@hookimpl
def check_column_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_unused(table, paths)


@hookimpl
def write_rules(table: TableState) -> Iterable[RowCheck]:
    return logic.row_checks(table)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = tuple(f"column {format_path(p)}" for p in logic.users(table.schema)) if change == "drop" else ()
    return [api.FeatureUse(FEATURE.name, users, "Let these columns be null first.")] if users else []
