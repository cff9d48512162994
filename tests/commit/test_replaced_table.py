"""A table that is deleted, or made again at its place, under an open one: nothing of the old goes into the new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from benchmarks import latency
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import MetadataChangedError, TableNotFoundError
from delta_core.kernel.snapshot import Snapshot, open_snapshot, snapshot as snapshots


def rows(start: int, count: int = 2) -> pa.Table:
    return pa.table({"id": list(range(start, start + count))})


def deleted(uri: str, below: str = "") -> None:
    fs, root = fsspec.core.url_to_fs(uri.removeprefix("latency://"))
    if fs.exists(root + below):
        fs.rm(root + below, recursive=True)


def made(uri: str, version: int, start: int) -> None:
    """Make a table, at a place where there may be one."""
    deleted(uri)
    for i in range(version + 1):
        write_deltalake(uri, rows(start + 2 * i), mode="append")


@pytest.fixture(params=["disk", "memory", "remote", "remote, a while ago"])
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "memory":
        yield f"memory://{tmp_path}/t"
        fsspec.filesystem("memory").rm(str(tmp_path), recursive=True)
    elif request.param == "disk":
        yield str(tmp_path / "t")
    else:
        latency.register()
        if "while" in request.param:
            monkeypatch.setattr(snapshots, "_FRESH", -1.0)
        yield f"latency://{tmp_path}/t"


def ids(uri: str) -> list[int]:
    return sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())


OLD, NEW = 0, 1000
WRITES: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, rows(500), mode="append"),
    "overwrite": lambda table: write_deltalake(table, rows(500), mode="overwrite"),
    "replace": lambda table: write_deltalake(table, rows(0, 1), mode="overwrite", predicate="id < 1"),
}


@pytest.mark.parametrize(
    ("held", "version", "write"),
    [
        *(("opened", version, write) for version in (0, 2, 5) for write in WRITES),
        ("opened", 1, "append"),
        # what the object has of its log differs
        ("written", 2, "append"),
        ("written", 3, "overwrite"),
        ("checkpointed", 2, "append"),
        ("checkpointed", 3, "overwrite"),
    ],
)
def test_write_to_a_table_that_is_another_one_by_now_is_rejected(uri: str, held: str, version: int, write: str) -> None:
    made(uri, 1, OLD)
    table = DeltaTable(uri)
    write_deltalake(table, rows(4), mode="append")
    if held == "opened":
        table = DeltaTable(uri)
    elif held == "checkpointed":
        table.create_checkpoint()
        table = DeltaTable(uri)
    assert table.version() == 2
    made(uri, version, NEW)
    before = ids(uri)
    with pytest.raises(MetadataChangedError, match="another one by now"):
        WRITES[write](table)
    assert ids(uri) == before
    assert DeltaTable(uri).version() == version


@pytest.mark.parametrize("write", WRITES)
def test_write_to_a_table_that_is_gone_makes_no_new_one(uri: str, write: str) -> None:
    made(uri, 2, OLD)
    table = DeltaTable(uri)
    deleted(uri, "/_delta_log")
    with pytest.raises(TableNotFoundError):
        WRITES[write](table)
    assert not DeltaTable.is_deltatable(uri)


def commit(snapshot: Snapshot) -> None:
    transaction = snapshot.begin("WRITE")
    transaction.set_transaction("app", 1)
    transaction.commit()


@pytest.mark.parametrize("version", [0, 2, 4])
def test_transaction_of_a_table_that_is_another_one_by_now_is_rejected(
    uri: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions below, at and above what was opened: its put succeeds, or meets the other table's commits."""
    monkeypatch.setattr(snapshots, "_FRESH", -1.0)
    made(uri, 2, OLD)
    opened = open_snapshot(uri)
    made(uri, version, NEW)
    with pytest.raises(MetadataChangedError, match="Nothing was committed"):
        commit(opened)
    assert DeltaTable(uri).version() == version


def test_refresh_joins_no_commits_of_another_table_with_what_was_read(uri: str) -> None:
    made(uri, 2, OLD)
    opened = open_snapshot(uri)
    assert opened.files.columns(["path"]).num_rows == 3
    for version in (2, 5):
        made(uri, version, NEW)
        found = opened.update()
        assert sorted(found.scan().to_table()["id"].to_pylist()) == ids(uri)


def test_appends_to_a_table_that_stays_are_no_more_calls(tmp_path: Path) -> None:
    """What distinguishes the table from another one comes with the listing that an append makes anyway."""
    latency.register()
    uri = f"latency://{tmp_path}/t"
    write_deltalake(uri, rows(0), mode="append")
    table = DeltaTable(uri)
    counts: list[Any] = []
    for i in range(4):
        with latency.recorded() as calls:
            write_deltalake(table, rows(i), mode="append")
        counts.append([c.kind for c in calls.of(log=True)])
    assert [c.count("list") for c in counts] == [1] * 4
    assert len({tuple(c) for c in counts[1:]}) == 1


def test_check_of_a_table_on_a_disk_is_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(str(tmp_path / "t"), 2, OLD)
    opened = open_snapshot(tmp_path / "t")
    calls: list[str] = []
    for name in ("list_from", "read", "stat", "identify", "open"):
        real = getattr(opened.engine.storage, name)
        monkeypatch.setattr(
            opened.engine.storage,
            name,
            lambda *a, name=name, real=real: (calls.append(name), real(*a))[1],
            raising=True,
        )
    opened.check_same_table()
    assert calls == ["identify"]
    started = time.process_time()
    for _ in range(1_000):
        opened.check_same_table()
    assert time.process_time() - started < 0.5
