"""identityColumns: columns that number rows. Protocol: Identity Columns.

The mark is in the schema: of two concurrent commits that number rows, one conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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
from delta_plugins.identity_columns import logic

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE", "Schema"]


def _is_active(table: TableState) -> bool:
    return logic.is_needed(table.schema)


FEATURE = TableFeature(
    "identityColumns",
    "writer",
    "Columns number rows as they are written.",
    active=_is_active,
    operations={"sync_identity": "delta_plugins.identity_columns.operations:sync_identity"},
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.is_needed(metadata.schema) else []


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    typed = logic.with_typed_values(metadata)
    return typed if previous is None else logic.with_marks(typed, logic.marks(previous.schema))


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.check(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[FillColumn]:
    return [logic.fill(i) for i in logic.identities(table.schema)]


@hookimpl
def finish_metadata(attempt: AttemptView, metadata: Metadata) -> Metadata:
    kept = logic.kept_marks(attempt.previous, attempt.table)
    reported = {path[0]: bounds for path, bounds in attempt.reported.items()}
    return logic.with_marks(logic.with_marks(metadata, kept), reported)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = (
        tuple(
            f"column {format_path(p)}"
            for p, f in walk(table.schema)
            if any(k.startswith(logic.PREFIX) for k in f.metadata)
        )
        if change == "drop"
        else ()
    )
    return (
        [FeatureUse(FEATURE.name, users, "Drop these columns first, or copy the rows to a table without them.")]
        if users
        else []
    )
