"""RESTORE: the rows and the definition are those of the older version; what never returns; missing files; conflicts."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, Field, write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    DataFileNotFoundError,
    InvalidArgumentError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.operations import restore
from tests.operations.row_tables import MAPPED, ROW_IDS, TABLES, VECTORS, rows_of, table_of

ROWS = [(i, "ab"[i % 2], i / 2) for i in range(10)]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., DeltaTable]:
    def build(configuration: dict[str, str] | None = None, **options: Any) -> DeltaTable:
        uri = str(tmp_path / "t")
        write_deltalake(uri, table_of(ROWS), configuration=configuration, **options)
        return DeltaTable(uri)

    return build


def reopened(table: DeltaTable) -> DeltaTable:
    return DeltaTable(table.table_uri)


def rows(table: DeltaTable, version: int | None = None) -> list[Any]:
    return rows_of(DeltaTable(table.table_uri, version=version).to_pyarrow_table())


_STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 30)),
    st.tuples(st.just("delete"), st.integers(2, 5)),
    st.tuples(st.just("update"), st.integers(2, 5)),
    st.tuples(st.just("restore"), st.integers(0, 9)),
    st.tuples(st.just("compact"), st.just(0)),
    st.tuples(st.just("checkpoint"), st.just(0)),
)


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=5, deadline=None)
@given(steps=st.lists(_STEPS, min_size=2, max_size=7))
def test_any_version_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int]]
) -> None:
    uri = str(tmp_path_factory.mktemp("model") / "t")
    write_deltalake(uri, table_of(ROWS), configuration=TABLES[kind], partition_by=["p"])
    table = DeltaTable(uri)
    versions = [rows_of(table.to_pyarrow_table())]
    for step, number in [*steps, ("restore", 0)]:
        if step == "append":
            write_deltalake(table, table_of([(number, "c", None)]), mode="append")
        elif step == "delete":
            table.delete(f"id % {number} = 1")
        elif step == "update":
            table.update({"x": "x + 1"}, predicate=f"id % {number} = 0")
        elif step == "compact":
            table.optimize.compact()
        elif step == "checkpoint":
            table.create_checkpoint()
        else:
            target = number % len(versions)
            table.restore(target)
            if len(versions) <= table.version():
                versions += [versions[target]] * (table.version() + 1 - len(versions))
            assert rows_of(table.to_pyarrow_table()) == versions[target]
        found = rows_of(DeltaTable(uri).to_pyarrow_table())
        versions += [found] * (table.version() + 1 - len(versions))
    for version, expected in enumerate(versions):
        assert rows(table, version) == expected
    if "row ids" in kind:
        ids = [r["_row_id"] for r in DeltaTable(uri).scan(metadata=["_row_id"]).to_table().to_pylist()]
        assert len(set(ids)) == len(ids)


def test_restore_returns_the_peers_metrics_and_writes_delta_sparks(make: Any) -> None:
    table = make()
    write_deltalake(table, table_of(ROWS), mode="append")
    table.delete("id < 100")
    assert table.restore(1) == {"numRemovedFile": 0, "numRestoredFile": 2}
    said = table.history(1)[0]
    assert (said["operation"], said["operationParameters"]) == ("RESTORE", {"version": "1"})
    assert said["operationMetrics"]["numOfFilesAfterRestore"] in (2, "2")
    assert table.version() == 3
    assert rows(table) == sorted([*ROWS, *ROWS], key=repr)


def test_restore_by_time_uses_the_commit_times(make: Any) -> None:
    table = make()
    for version, hour in enumerate((1, 2, 3)):
        if version:
            write_deltalake(table, table_of([(100 + version, "a", None)]), mode="append")
        path = Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{version:020}.json"
        at = dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC).timestamp()
        os.utime(path, (at, at))
    table = reopened(table)
    table.restore("2024-01-01T02:30:00Z")
    assert len(rows(table)) == 11
    assert table.history(1)[0]["operationParameters"] == {"version": "1", "timestamp": "2024-01-01T02:30:00Z"}
    table.restore(dt.datetime(2024, 1, 1, 1, 30, tzinfo=dt.UTC))
    assert len(rows(table)) == 10
    with pytest.raises(VersionNotFoundError):
        table.restore("2020-01-01")


@pytest.mark.parametrize(("target", "error"), [(9, VersionNotFoundError), (-1, InvalidArgumentError)])
def test_version_that_is_not_there_is_rejected(make: Any, target: int, error: type) -> None:
    table = make()
    with pytest.raises((error, VersionNotFoundError)):
        table.restore(target)
    assert reopened(table).version() == 0


def test_restore_of_the_latest_version_and_a_dry_run_commit_nothing(make: Any) -> None:
    table = make()
    write_deltalake(table, table_of(ROWS), mode="append")
    assert table.restore(1) == {"numRemovedFile": 0, "numRestoredFile": 0}
    assert table.restore(0, dry_run=True) == {"numRemovedFile": 1, "numRestoredFile": 0}
    assert reopened(table).version() == 1


# --- the definition ------------------------------------------------------------------------


def test_version_before_column_mapping_is_rejected_and_its_rows_can_be_written_again(make: Any) -> None:
    table = make()
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    write_deltalake(table, table_of(ROWS[:3]), mode="append")
    with pytest.raises(InvalidArgumentError, match=r"Version 0 can't be restored.*columnMapping.*overwrite") as raised:
        table.restore(0)
    assert "Drop the feature" not in str(raised.value)
    assert raised.value.__cause__ is not None
    assert reopened(table).version() == 2
    older = DeltaTable(table.table_uri, version=0).to_pyarrow_table()
    write_deltalake(reopened(table), older, mode="overwrite")
    assert rows(table) == ROWS


def test_schema_and_properties_come_back_and_marks_do_not_go_back(make: Any) -> None:
    table = make({**MAPPED, **ROW_IDS, "owner": "me"})
    mark = table.metadata().configuration["delta.columnMapping.maxColumnId"]
    table.alter.rename_column("x", "y")
    table.alter.add_columns(Field("z", "long"))
    table.alter.set_table_properties({"owner": "you", "more": "1"})
    write_deltalake(table, table_of(ROWS).rename_columns(["id", "p", "y"]), mode="append")
    ids = table.snapshot().domains()
    table.restore(0)
    found = reopened(table)
    assert found.schema().names == ["id", "p", "x"]
    assert (found.metadata().configuration["owner"], "more" in found.metadata().configuration) == ("me", False)
    assert int(found.metadata().configuration["delta.columnMapping.maxColumnId"]) > int(mark)
    assert found.snapshot().domains() == ids
    assert rows(table) == ROWS
    write_deltalake(table, table_of(ROWS), mode="append")
    numbers = DeltaTable(table.table_uri).scan(metadata=["_row_id"]).to_table().column("_row_id").to_pylist()
    assert min(sorted(numbers)[10:]) >= 20


def test_identity_column_numbers_on_after_a_restore(tmp_path: Path) -> None:
    numbered = pa.field("n", pa.int64(), metadata={"delta.identity.start": "1", "delta.identity.step": "1"})
    table = DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64()), numbered]))
    for i in range(3):
        write_deltalake(table, pa.table({"id": [i]}), mode="append")
    table.restore(1)
    write_deltalake(table, pa.table({"id": [9]}), mode="append")
    assert sorted(reopened(table).to_pyarrow_table().column("n").to_pylist()) == [1, 4]


def test_identity_column_numbers_on_after_a_restore_of_its_former_name(tmp_path: Path) -> None:
    numbered = pa.field("n", pa.int64(), metadata={"delta.identity.start": "1", "delta.identity.step": "1"})
    schema = pa.schema([("id", pa.int64()), numbered])
    table = DeltaTable.create(tmp_path / "t", schema, configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(table, pa.table({"id": [0]}), mode="append")
    table.alter.rename_column("n", "m")
    write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    table.restore(1)
    write_deltalake(table, pa.table({"id": [9]}), mode="append")
    assert sorted(reopened(table).to_pyarrow_table().column("n").to_pylist()) == [1, 4]


def test_widened_column_is_narrow_again_with_the_files_of_its_version(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": pa.array([1], pa.int32())})
    write_deltalake(uri, rows, configuration={"delta.enableTypeWidening": "true"})
    table = DeltaTable(uri)
    table.alter.widen_type("id", "bigint")
    write_deltalake(table, pa.table({"id": [2**40]}), mode="append")
    table.restore(0)
    assert reopened(table).to_pyarrow_table().schema.field("id").type == pa.int32()
    assert reopened(table).to_pyarrow_table().column("id").to_pylist() == [1]


def test_constraint_comes_back_with_the_rows_that_fulfil_it(make: Any) -> None:
    table = make({"delta.constraints.c": "id < 50"})
    table.alter.drop_constraint("c")
    write_deltalake(table, table_of([(99, "a", None)]), mode="append")
    table.restore(0)
    assert reopened(table).metadata().configuration == {"delta.constraints.c": "id < 50"}
    assert rows(table) == ROWS


def test_clustering_and_domains_come_back(make: Any) -> None:
    table = make(cluster_by=["id"])
    transaction = table.snapshot().begin("SET")
    transaction.set_domain("mine", "1")
    transaction.commit()
    table.update_incremental()
    table.alter.cluster_by(["x"])
    table.restore(0)
    found = reopened(table).snapshot().domains()
    assert "mine" not in found
    assert '"id"' in found["delta.clustering"]
    table.restore(1)
    assert reopened(table).snapshot().domains()["mine"] == "1"


@pytest.mark.parametrize("downgrade", [False, True])
def test_protocol_goes_back_only_if_that_is_allowed(make: Any, downgrade: bool) -> None:
    table = make()
    before = table.protocol()
    table.alter.set_table_properties(VECTORS)
    table.delete("id = 3")
    after = reopened(table).protocol()
    table.restore(0, protocol_downgrade_allowed=downgrade)
    assert reopened(table).protocol() == (before if downgrade else after)
    assert rows(table) == ROWS


def test_append_only_table_is_not_restored(make: Any) -> None:
    table = make({"delta.appendOnly": "true"})
    write_deltalake(table, table_of(ROWS), mode="append")
    with pytest.raises(UnsupportedOperationError, match="append-only"):
        table.restore(0)
    assert reopened(table).version() == 1


# --- missing files -------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["data", "vector"])
def test_missing_file_is_named_and_left_out_if_that_is_requested(make: Any, what: str) -> None:
    table = make(VECTORS, partition_by=["p"])
    table.delete("id = 3")
    folder = Path(table.table_uri.removeprefix("file://"))
    table.delete()
    gone = next(folder.glob("*.bin" if what == "vector" else "p=b/*.parquet"))
    gone.unlink()
    with pytest.raises(DataFileNotFoundError, match=gone.name) as caught:
        table.restore(1)
    assert (caught.value.facts["count"], reopened(table).version()) == (1, 2)
    table.restore(1, ignore_missing_files=True)
    assert rows(table) == [r for r in ROWS if r[1] == "a"]
    assert table.history(1)[0]["operationMetrics"]["numMissingFiles"] in (1, "1")


def test_first_missing_files_of_many_are_named(make: Any) -> None:
    table = make()
    for i in range(8):
        write_deltalake(table, table_of([(i, "a", None)]), mode="append")
    table.delete()
    for path in Path(table.table_uri.removeprefix("file://")).glob("*.parquet"):
        path.unlink()
    with pytest.raises(DataFileNotFoundError, match="9 of the files that it needs are gone"):
        table.restore(8)


# --- other writers -------------------------------------------------------------------------


def test_append_that_lands_meanwhile_is_a_conflict(make: Any, monkeypatch: Any) -> None:
    table = make()
    write_deltalake(table, table_of(ROWS), mode="append")
    looked = restore._present

    def slow(*arguments: Any) -> Any:
        write_deltalake(table.table_uri, table_of([(1, "z", None)]), mode="append")
        return looked(*arguments)

    monkeypatch.setattr(restore, "_present", slow)
    with pytest.raises(ConcurrentAppendError):
        table.restore(0)
    assert reopened(table).version() == 2


def test_commit_has_what_the_caller_passes(make: Any) -> None:
    table = make()
    table.delete()
    table.restore(0, commit_properties=CommitProperties({"who": "me"}))
    assert table.history(1)[0]["who"] == "me"


def test_change_feed_of_a_restore_is_the_difference(make: Any) -> None:
    table = make({"delta.enableChangeDataFeed": "true", **VECTORS})
    table.delete("id = 3")
    table.restore(0)
    found = table.load_cdf(2, 2).read_all().to_pylist()
    assert [(r["id"], r["_change_type"]) for r in found] == [(3, "insert")]


def test_peer_reads_what_was_restored_and_we_what_it_restores(make: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = make(partition_by=["p"])
    write_deltalake(table, table_of([(50, "a", 1.0)]), mode="append")
    table.delete("p = 'a'")
    table.restore(1)
    theirs = deltalake.DeltaTable(table.table_uri)
    assert rows_of(pa.table(theirs.to_pyarrow_table().select(["id", "p", "x"]))) == rows(table, 1)
    theirs.restore(0)
    assert rows(table) == ROWS
    table.update_incremental()
    table.restore(2)
    assert rows(table) == rows(table, 2)


def test_restore_reports_the_files_that_it_looks_for(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.operations.restore._WINDOW", 2)
    table = make()
    for i in range(5):
        write_deltalake(table, table_of([(i, "a", 1.0)]), mode="append")
    version = table.version()
    table.delete()
    seen: list[tuple[str, int, int]] = []
    table.restore(version, progress=lambda p: seen.append((p.step, p.files, p.total_files)))
    total = seen[-1][2]
    assert total >= 5
    assert seen == [("find", min(n, total), total) for n in range(2, total + 2, 2)]
