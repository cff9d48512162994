"""A held snapshot moves on by its new commits alone, and is what a fresh open returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import DeltaError, UnsupportedFeatureError
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.log_state import Action
from delta_core.testing.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long", "kind": "string"},
        partition_by=["kind"],
        features=["deletionVectors", "domainMetadata", "v2Checkpoint"],
    )
    return table.append([{"id": i, "kind": "ab"[i % 2]} for i in range(20)])


def assert_fresh(snapshot: Snapshot, table: TableBuilder) -> None:
    fresh = open_snapshot(table.uri)
    assert snapshot.version == fresh.version == table.version
    assert snapshot.state.protocol == fresh.state.protocol
    assert snapshot.metadata == fresh.metadata
    assert snapshot.transactions() == fresh.transactions()
    assert snapshot.domains() == fresh.domains()
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    keys = [("path", "ascending"), ("deletionTimestamp", "ascending")]
    held = snapshot.tombstones(["path", "deletionTimestamp"]).sort_by(keys)
    assert held.equals(fresh.tombstones(["path", "deletionTimestamp"]).sort_by(keys))


def domain(removed: bool) -> Action:
    return {"domainMetadata": {"domain": "d", "configuration": "1", "removed": removed}}


STEPS = {
    "append": lambda t: t.append([{"id": 100, "kind": "c"}]),
    "remove": lambda t: t.remove(t.paths()[0]),
    "vector": lambda t: t.delete_rows(lambda row: row["id"] % 3 == 0),
    "vector again": lambda t: t.delete_rows(lambda row: row["id"] == 1).delete_rows(lambda row: row["id"] == 3),
    "add and remove": lambda t: t.append([{"id": 7, "kind": "d"}]).remove(t.paths()[-1]),
    "remove and add": lambda t: t.commit(*t.remove_actions()).commit(
        *({"add": a} for a in t.state_at(1).files.values())
    ),
    "schema": lambda t: t.alter({"id": "long", "kind": "string", "new": "double"}).append([{"kind": "a", "new": 0.5}]),
    "properties": lambda t: t.alter(properties={"custom": "1"}),
    "txn": lambda t: t.commit({"txn": {"appId": "x", "version": 3}}),
    "domain": lambda t: t.commit(domain(False)),
    "domain removed": lambda t: t.commit(domain(False)).commit(domain(True)),
    "empty": lambda t: t.commit(),
    "checkpoint": lambda t: (
        t.append([{"id": 9, "kind": "a"}]).checkpoint("v2-parquet", sidecars=1).remove(t.paths()[0])
    ),
    "protocol": lambda t: t.alter(features=["deletionVectors", "domainMetadata", "v2Checkpoint", "timestampNtz"]),
}


@pytest.mark.parametrize("loaded", [True, False], ids=["files loaded", "files not loaded"])
@pytest.mark.parametrize("checkpointed", [True, False], ids=["checkpoint", "commits"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_update_returns_what_a_fresh_open_returns(
    table: TableBuilder, step: object, checkpointed: bool, loaded: bool
) -> None:
    if checkpointed:
        table.checkpoint("v2-json", sidecars=1)
    before = open_snapshot(table.uri)
    held = before.scan().to_table() if loaded else None
    version, rows = table.version, table.expected()
    step(table)  # type: ignore[operator]
    assert_fresh(before.update(), table)
    assert before.version == version
    if held is not None:
        assert_same_rows(before.scan().to_table(), rows)


def test_many_updates_in_a_row_stay_right(table: TableBuilder) -> None:
    snapshot = open_snapshot(table.uri)
    for name in ("append", "vector", "remove", "schema", "domain", "checkpoint", "properties", "txn", "vector again"):
        STEPS[name](table)
        snapshot = snapshot.update()
    assert_fresh(snapshot, table)


def test_update_without_new_commits_returns_the_same_version(table: TableBuilder) -> None:
    snapshot = open_snapshot(table.uri)
    again = snapshot.update()
    assert again.version == snapshot.version
    assert_same_rows(again.scan().to_table(), table.expected())


def test_update_reads_no_commit_that_it_has_seen(table: TableBuilder) -> None:
    """Commits below the held version are spoilt on disk: whoever reads them again fails."""
    snapshot = open_snapshot(table.uri)
    table.append([{"id": 60, "kind": "y"}]).remove(table.paths()[0])
    for version in range(snapshot.version):
        table.write_log(f"{version:020d}.json", "spoilt")
    moved = snapshot.update()
    assert moved.version == 3
    assert sorted(moved.files.columns(["path"]).column(0).to_pylist()) == sorted(table.paths())
    assert moved.domains() == moved.transactions() == {}


def test_snapshot_whose_log_was_cleaned_up_states_so_and_its_update_reads(table: TableBuilder) -> None:
    snapshot = open_snapshot(table.uri)
    table.append([{"id": 60, "kind": "y"}]).checkpoint().cleanup_before(2)
    with pytest.raises(DeltaError, match="cleaned up"):
        snapshot.scan(["id"], predicate="id = 1").to_table()
    assert_fresh(snapshot.update(), table)


def test_update_to_a_feature_nobody_provides_is_rejected_and_the_old_snapshot_stays(table: TableBuilder) -> None:
    snapshot = open_snapshot(table.uri)
    protocol = {**table.state.protocol, "readerFeatures": ["fromTheFuture"], "writerFeatures": ["fromTheFuture"]}
    rows = table.expected()
    table.commit({"protocol": protocol})
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        snapshot.update()
    assert_same_rows(snapshot.scan().to_table(), rows)
