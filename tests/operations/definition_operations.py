"""Operations that change what a table is and none of its rows: alters, features enabled and features dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random

from delta_core import DeltaTable
from delta_core.errors import (
    ColumnNotFoundError,
    FeatureRequirementError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedOperationError,
)
from tests.operations.row_operations import Step

SWITCHES = {
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
}
DROPPED = (*SWITCHES, "checkpointProtection", "checkConstraints", "clustering", "domainMetadata", "invariants")
#: Those with a history.
TRUNCATED = ("checkpointProtection", "columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint")
#: What a table may lack, or not allow in the state that a history left it in.
REJECTED = (
    ColumnNotFoundError, FeatureRequirementError, InvalidArgumentError, SchemaError, UnsupportedOperationError
)  # fmt: skip
ALTERS: dict[str, Callable[[DeltaTable], object]] = {
    "add nested": lambda t: t.alter.add_column("extra", "struct<a: int, b: array<struct<c: int>>>"),
    "add into nested": lambda t: t.alter.add_column("extra.b.element.d", "string", comment="deep"),
    "rename nested": lambda t: t.alter.rename_column("extra.a", "a2"),
    "drop nested": lambda t: t.alter.drop_column("extra.b.element.c"),
    "drop": lambda t: t.alter.drop_column("extra"),
    "move nested": lambda t: t.alter.move_column("extra.b", first=True),
    "move": lambda t: t.alter.move_column("extra", after="id"),
    "add number": lambda t: t.alter.add_column("number", "int"),
    "widen": lambda t: t.alter.widen_type("number", "long"),
    "widen nested": lambda t: t.alter.widen_type("extra.a", "long"),
    "rename": lambda t: t.alter.rename_column("number", "n 2"),
    "comment": lambda t: t.alter.set_column_comment("x", "a value"),
    "not null": lambda t: t.alter.set_column_not_null("id"),
    "nullable": lambda t: t.alter.drop_column_not_null("id"),
    "add constraint": lambda t: t.alter.add_constraint({"positive": "id >= 0"}),
    "drop constraint": lambda t: t.alter.drop_constraint("positive"),
    "cluster": lambda t: t.alter.cluster_by(["id"]),
    "end clustering": lambda t: t.alter.cluster_by([]),
    "name": lambda t: t.alter.set_table_name("other"),
    "description": lambda t: t.alter.set_table_description("text"),
    "property": lambda t: t.alter.set_table_properties({"a.b": "c"}),
    "no property": lambda t: t.alter.unset_table_properties(["a.b"], raise_if_not_exists=False),
}


def _step(name: str, run: Callable[[DeltaTable], object]) -> Step:
    def attempt(table: DeltaTable) -> None:
        with contextlib.suppress(*REJECTED):
            run(table)

    return Step(name, attempt, lambda rows: rows)


def alter(random: Random) -> Step:
    name = random.choice(list(ALTERS))
    return _step(name, ALTERS[name])


def _features(table: DeltaTable) -> frozenset[str]:
    return table.snapshot().state.features


def enable(random: Random) -> Step:
    order = random.sample(list(SWITCHES), len(SWITCHES))

    def run(table: DeltaTable) -> None:
        name = next((n for n in order if n not in _features(table)), order[0])
        table.alter.set_table_properties(SWITCHES[name])

    return _step(f"enable {', '.join(order)}", run)


def drop(random: Random) -> Step:
    """Return the drop of one of the features that the table has."""
    order = random.sample(DROPPED, len(DROPPED))
    truncates = random.random() < 0.3

    def run(table: DeltaTable) -> None:
        name = next((n for n in order if n in _features(table)), order[0])
        # only what readers need has a history
        table.alter.drop_feature(name, truncate_history=name in TRUNCATED and (truncates or name not in SWITCHES))

    return _step(f"drop {', '.join(order)}{' with history' * truncates}", run)
