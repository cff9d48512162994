"""Alters, backfills and drops that are killed before or after any of their writes: rows stay, and a rerun finishes."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.operations.feature import steps as feature_steps
from tests.example_counts import IS_LONG
from tests.operations.definition_operations import ALTERS, REJECTED, SWITCHES
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import Row, rows_of, table_of

FIRST: list[Row] = [(i, "ab"[i % 2] if i % 5 else None, i / 8 if i % 3 else None) for i in range(6)]
SECOND: list[Row] = [(i, "a", 0.75) for i in range(6, 12)]
AT_ONCE = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}
#: So many kills of each operation; in the long form, one at each write.
KILLS = 3
Run = Callable[[DeltaTable], object]


def drop(name: str, truncates: bool = False) -> Run:
    return lambda table: table.alter.drop_feature(name, truncate_history=truncates)


def widen(table: DeltaTable) -> None:
    table.alter.add_column("number", "int")
    write_deltalake(
        table, table_of(FIRST[:1]).append_column("number", [[7]]).cast(table.schema().to_arrow()), mode="append"
    )
    table.alter.widen_type("number", "long")


#: Features, what is done before, and the operation.
CASES: dict[str, tuple[tuple[str, ...], Run | None, Run]] = {
    "drop deletionVectors": (("deletionVectors",), lambda t: t.delete("id = 1"), drop("deletionVectors")),
    "drop columnMapping": (("columnMapping",), None, drop("columnMapping")),
    "drop typeWidening": (("typeWidening",), widen, drop("typeWidening")),
    "drop rowTracking": (("rowTracking",), None, drop("rowTracking")),
    "drop v2Checkpoint": (("v2Checkpoint",), lambda t: t.create_checkpoint(), drop("v2Checkpoint")),
    "drop clustering": ((), lambda t: t.alter.cluster_by(["id"]), drop("clustering")),
    "truncate deletionVectors": (("deletionVectors",), lambda t: t.delete("id = 1"), drop("deletionVectors", True)),
    "truncate columnMapping": (("columnMapping",), None, drop("columnMapping", True)),
    "enable rowTracking": ((), None, lambda t: t.alter.set_table_properties(SWITCHES["rowTracking"])),
}
#: What an alter needs to be there.
BEFORE = {
    "add into nested": ["add nested"], "rename nested": ["add nested"],
    "drop nested": ["add nested", "add into nested"],
    "drop": ["add nested"], "move nested": ["add nested"], "move": ["add nested"], "widen": ["add number"],
    "widen nested": ["add nested"], "rename": ["add number"], "nullable": ["not null"],
    "drop constraint": ["add constraint"], "end clustering": ["cluster"], "no property": ["property"],
}  # fmt: skip
PROPERTIES: Mapping[str, str] = {**SWITCHES["columnMapping"], **SWITCHES["typeWidening"]}


def build(folder: Path, properties: Mapping[str, str]) -> DeltaTable:
    write_deltalake(str(folder), table_of(FIRST), configuration=dict(properties))
    write_deltalake(str(folder), table_of(SECOND), mode="append")
    return DeltaTable(str(folder))


def definition(folder: Path) -> tuple[Any, ...]:
    """Return what a table is, apart from random names."""
    state = DeltaTable(str(folder)).snapshot().state
    texts = [n for n in state.configuration if "materialized" not in n and "requireCheckpoint" not in n]
    names = [
        (f.name, str(f.type.to_arrow(state.types)), f.nullable, f.metadata.get("comment")) for f in state.schema.fields
    ]
    metadata = state.metadata
    domains = {d: text for d, text in state.domains.items() if d != "delta.rowTracking"}
    return (
        state.features,
        names,
        {n: state.configuration[n] for n in texts},
        metadata.name,
        metadata.description,
        domains,
    )


def content(folder: Path) -> list[Row]:
    table = DeltaTable(str(folder))
    for uri in table.file_uris():
        assert Path(uri).exists(), "a live file is missing"
    return rows_of(table.to_pyarrow_table())


def check_kills(original: Path, tmp_path: Path, run: Run, is_rejected_afterwards: bool) -> None:
    """Kill an operation at its writes, and run it again each time."""
    rows, before = content(original), definition(original)
    whole = tmp_path / "whole"
    shutil.copytree(original, whole)
    killer = Killer(None, False)
    with killing(killer):
        run(DeltaTable(str(whole)))
    after = definition(whole)
    assert before != after
    assert content(whole) == rows
    points = [(at, late) for at in range(killer.count) for late in (False, True)]
    for at, late in points if IS_LONG else points[:: max(1, len(points) // KILLS)]:
        folder = tmp_path / f"{at}-{late}"
        shutil.copytree(original, folder)
        with killing(Killer(at, late)), contextlib.suppress(KilledError):
            run(DeltaTable(str(folder)))
        assert content(folder) == rows, (at, late)
        with contextlib.suppress(*(REJECTED if definition(folder) == after and is_rejected_afterwards else ())):
            run(DeltaTable(str(folder)))
        assert definition(folder) == after, (at, late)
        assert content(folder) == rows, (at, late)
        write_deltalake(str(folder), table_of([(50, "c", None)]), mode="append", schema_mode="merge")
        assert (50, "c", None) in content(folder)
        report = DeltaTable(str(folder)).verify(deep=True)
        assert report.ok, report.to_text()
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", CASES)
def test_feature_that_is_killed_at_a_write_is_finished_by_a_rerun(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_steps, "BATCH_FILES", 1)
    features, prepare, run = CASES[name]
    properties = {k: v for f in features for k, v in SWITCHES[f].items()}
    table = build(tmp_path / "original", {**properties, **AT_ONCE})
    if prepare is not None:
        prepare(table)
    check_kills(tmp_path / "original", tmp_path, run, name.partition(" ")[0] != "enable")


@pytest.mark.parametrize("name", ALTERS if IS_LONG else ["add into nested", "not null", "widen nested", "cluster"])
def test_alter_that_is_killed_at_a_write_is_finished_by_a_rerun(tmp_path: Path, name: str) -> None:
    table = build(tmp_path / "original", PROPERTIES)
    for other in BEFORE.get(name, []):
        ALTERS[other](table)
    check_kills(tmp_path / "original", tmp_path, ALTERS[name], True)
