"""Tables that stay open: what a commit costs does not grow, and nobody else's commit is missed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.records import Listing
from delta_core.errors import ConcurrentAppendError, MetadataChangedError
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.storage.local import LocalStorage
from tests.commit.conftest import paths


def rows(first: int, count: int = 3) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(str(tmp_path / "t"), rows(0), configuration={"delta.checkpointInterval": "1000"})
    return DeltaTable(str(tmp_path / "t"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that a storage gets, by method."""
    found: list[str] = []

    def noting(name: str) -> Any:
        real = getattr(LocalStorage, name)

        def call(self: LocalStorage, *arguments: Any, **options: Any) -> Any:
            if arguments[0]:  # a read of no ranges is no call
                found.append(name)
            return real(self, *arguments, **options)

        return call

    for name in ("list_from", "read", "open", "stat", "put_if_absent", "put", "create"):
        monkeypatch.setattr(LocalStorage, name, noting(name))
    return found


def test_append_to_an_open_table_lists_and_reads_nothing(table: DeltaTable, calls: list[str]) -> None:
    write_deltalake(table, rows(10), mode="append")  # reads the checksum of the version before, once
    calls.clear()
    write_deltalake(table, rows(20), mode="append")
    assert sorted(calls) == ["create", "put_if_absent", "put_if_absent", "stat", "stat"]
    assert table.version() == 2


def test_calls_of_an_append_do_not_grow(table: DeltaTable, calls: list[str]) -> None:
    counts = []
    for i in range(30):
        calls.clear()
        write_deltalake(table, rows(10 * i), mode="append")
        counts.append(len(calls))
    assert set(counts[1:]) == {counts[1]}


def test_open_table_misses_no_commit_of_others(table: DeltaTable) -> None:
    other = DeltaTable(table.table_uri)
    for i in range(1, 6):
        write_deltalake(other if i % 2 else table, rows(10 * i), mode="append")
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [10 * i + k for i in range(5) for k in range(3)]
    with pytest.raises(ConcurrentAppendError, match="Version 5"):
        write_deltalake(table, rows(90), mode="overwrite")
    table.update_incremental()
    write_deltalake(table, rows(90), mode="overwrite")
    assert table.version() == 6
    assert open_snapshot(table.table_uri).files.count == 1


def test_change_of_the_schema_by_others_is_seen_before_rows_are_written(table: DeltaTable) -> None:
    wider = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]})
    write_deltalake(table.table_uri, wider, mode="append", schema_mode="merge")
    write_deltalake(table, wider, mode="append")
    assert table.to_pyarrow_table()["name"].to_pylist().count("a") == 2


def test_table_that_was_made_again_is_noticed(table: DeltaTable) -> None:
    for i in range(3):
        write_deltalake(table, rows(i), mode="append")
    shutil.rmtree(table.snapshot().uri)
    write_deltalake(table.table_uri, rows(100))
    with pytest.raises(MetadataChangedError):
        write_deltalake(table, rows(200), mode="append")
    table.update_incremental()
    write_deltalake(table, rows(200), mode="append")
    assert table.version() == 1
    found = open_snapshot(table.table_uri).scan().to_table()["id"].to_pylist()
    assert sorted(found) == [100, 101, 102, 200, 201, 202]


# --- what stays in memory ------------------------------------------------------------------


def same(found: Snapshot, uri: str) -> bool:
    """Whether a snapshot specifies what one that is opened again specifies."""
    opened = open_snapshot(uri)
    assert paths(found) == paths(opened)
    assert found.transactions() == opened.transactions()
    assert found.domains() == opened.domains()
    assert found.timestamp_ms == opened.timestamp_ms
    assert [h["version"] for h in found.history()] == [h["version"] for h in opened.history()]
    assert found.tombstones().num_rows == opened.tombstones().num_rows
    assert (found.protocol, found.metadata) == (opened.protocol, opened.metadata)
    return found.version == opened.version


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_table_is_anchored_at_its_own_checkpoints(tmp_path: Path, policy: str) -> None:
    uri = str(tmp_path / "t")
    properties = {"delta.checkpointInterval": "4", "delta.checkpointPolicy": policy}
    write_deltalake(uri, rows(0), configuration=properties)
    table = DeltaTable(uri)
    for i in range(1, 14):
        write_deltalake(table, rows(10 * i), mode="overwrite" if i == 6 else "append")
        assert same(table.snapshot(), uri), i
        assert len(table.snapshot().segment.deltas) == (i % 4 if i >= 4 else i + 1)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == sorted(
        10 * i + k for i in range(6, 14) for k in range(3)
    )


def test_loaded_files_follow_many_commits_at_once(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    first = table.snapshot()
    assert first.files.count == 1
    snapshot = first
    for i in range(20):
        write_deltalake(table, rows(10 * i), mode="overwrite" if i == 10 else "append")
        snapshot = table.snapshot()
        assert snapshot._files is None or i == 10, "an append does not look through the files"

    def forbidden(*_: object) -> Listing:
        raise AssertionError("the files are built on those that are loaded")

    monkeypatch.setattr(LocalStorage, "list_from", forbidden)
    assert snapshot.files.count == 10
    assert first.files.count == 1
    monkeypatch.undo()
    assert same(snapshot, table.table_uri)


def test_file_that_is_removed_and_added_again_between_is_seen_once(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), rows(0), configuration={"delta.checkpointInterval": "1000"})
    table = DeltaTable(str(tmp_path / "t"))
    assert table.snapshot().files.count == 1
    for i in range(5):
        write_deltalake(table, rows(i), mode="overwrite")
    assert same(table.snapshot(), table.table_uri)
    assert table.snapshot().files.count == 1


def test_rows_of_other_schemas_are_prepared_again(table: DeltaTable) -> None:
    write_deltalake(table, rows(10), mode="append")
    narrow = pa.table({"ID": pa.array([20], pa.int8())})
    write_deltalake(table, narrow, mode="append")
    write_deltalake(table, rows(30), mode="append")
    write_deltalake(table, pa.table({"id": [40], "more": ["x"]}), mode="append", schema_mode="merge")
    write_deltalake(table, rows(50, 1), mode="append")
    found = open_snapshot(table.table_uri).scan().to_table().to_pylist()
    assert {r["id"] for r in found} == {0, 1, 2, 10, 11, 12, 20, 30, 31, 32, 40, 50}
    assert {r["id"]: r["more"] for r in found if r["id"] in (30, 40, 50)} == {30: None, 40: "x", 50: None}


def test_default_that_requires_the_time_gets_that_of_each_write(tmp_path: Path) -> None:
    field = pa.field("at", pa.timestamp("us", tz="UTC"), metadata={"CURRENT_DEFAULT": "current_timestamp()"})
    uri = str(tmp_path / "d")
    schema = pa.schema([pa.field("id", pa.int64()), field])
    write_deltalake(uri, schema.empty_table(), configuration={"delta.feature.allowColumnDefaults": "supported"})
    table = DeltaTable(uri)
    for i in range(3):
        write_deltalake(table, rows(i, 1), mode="append")
    times = table.to_pyarrow_table().column("at").to_pylist()
    assert None not in times
    assert len(set(times)) == 3
