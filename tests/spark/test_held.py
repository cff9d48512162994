"""Snapshots that serve later reads: the same object while the log is the same, never one of another table."""

from __future__ import annotations

import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark import snapshots as held
from delta_core.engines.spark.snapshots import SETTING, Stamps, open_latest
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot

SESSION = SimpleNamespace(conf={})
COLUMNS = ["path", "size", "stats"]


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_cached", {})


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "part": [n % 2 for n in numbers]})


def opened(uri: str, session: Any = SESSION) -> Snapshot:
    return open_latest(session, uri)


def same_as_fresh(snapshot: Snapshot) -> bool:
    fresh = open_snapshot(snapshot.uri)
    found, expected = (s.files.columns(COLUMNS).sort_by("path") for s in (snapshot, fresh))
    return (
        snapshot.version == fresh.version
        and snapshot.metadata == fresh.metadata
        and snapshot.protocol == fresh.protocol
        and found.equals(expected)
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(1, 2), partition_by=["part"], configuration={"delta.checkpointInterval": "3"})
    return uri


def test_same_version_is_opened_once(uri: str) -> None:
    first = opened(uri)
    assert first.files.columns(COLUMNS).num_rows == 2
    assert opened(uri) is first


def test_later_versions_are_right_over_checkpoints_removes_and_new_metadata(uri: str) -> None:
    works = [
        lambda: write_deltalake(uri, rows(3), mode="append"),
        lambda: write_deltalake(uri, rows(4), mode="append"),
        lambda: write_deltalake(uri, rows(5), mode="append"),  # a checkpoint
        lambda: write_deltalake(uri, rows(7, 9), mode="overwrite", predicate="part = 1"),
        lambda: write_deltalake(uri, rows(11), mode="append"),
        lambda: DeltaTable(uri).alter.set_table_name("named"),
        lambda: write_deltalake(uri, rows(2), mode="overwrite", schema_mode="overwrite", name="other"),
        lambda: DeltaTable(uri).create_checkpoint(),
        lambda: write_deltalake(uri, rows(6), mode="append"),
    ]
    for work in works:
        assert same_as_fresh(opened(uri))
        work()
        assert same_as_fresh(opened(uri))


def test_new_commits_keep_what_was_loaded_of_the_checkpoint(uri: str) -> None:
    DeltaTable(uri).create_checkpoint()
    first = opened(uri)
    chunk = first.files.parts[-1].chunk
    write_deltalake(uri, rows(3), mode="append")
    second = opened(uri)
    assert second.version == first.version + 1
    assert second.files.parts[-1].chunk is chunk


def test_table_that_was_made_again_is_read_again(uri: str, tmp_path: Path) -> None:
    write_deltalake(uri, rows(3), mode="append")
    first = opened(uri)
    names = set(first.files.columns(["path"]).column("path").to_pylist())
    shutil.rmtree(tmp_path / "t")
    write_deltalake(uri, rows(1, 2), partition_by=["part"], configuration={"delta.checkpointInterval": "3"})
    write_deltalake(uri, rows(3), mode="append")
    again = opened(uri)
    assert again.version == first.version
    assert names.isdisjoint(again.files.columns(["path"]).column("path").to_pylist())


def test_table_made_again_in_files_of_the_same_sizes_and_times_is_read_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")

    def made(*numbers: int) -> list[int]:
        shutil.rmtree(uri, ignore_errors=True)
        write_deltalake(uri, rows(*numbers))
        log = sorted((tmp_path / "t" / "_delta_log").iterdir())
        for file in log:
            os.utime(file, (1, 1))
        return [file.stat().st_size for file in log]

    sizes = made(1, 2)
    first = opened(uri)
    assert made(3, 4) == sizes
    again = opened(uri)
    assert again.metadata.id != first.metadata.id
    assert same_as_fresh(again)


def test_coarse_clock_is_not_trusted(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = Path.stat

    def coarse(path: Path) -> Any:
        found = stat(path)
        names = ["st_size", "st_mtime_ns", "st_ino"]
        return SimpleNamespace(**{n: getattr(found, n) for n in names}, st_ctime_ns=10**18)

    context = open_context(uri)
    segment = context.log.segment()
    monkeypatch.setattr(held, "Path", lambda path: SimpleNamespace(stat=lambda: coarse(Path(path))))
    found = held._stamps(context, segment)
    monkeypatch.undo()
    assert found is not None
    assert not found.is_exact


def test_relative_place_is_another_table_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("a", 1), ("b", 2)):
        write_deltalake(str(tmp_path / name / "t"), rows(number))
    found = []
    for name in ("a", "b"):
        monkeypatch.chdir(tmp_path / name)
        found.append(opened("t").scan(["id"]).to_table().column("id").to_pylist())
    assert found == [[1], [2]]


def test_remote_table_that_was_made_again_within_its_stores_clock_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = f"memory://held-{uuid.uuid4().hex}/t"
    monkeypatch.setattr(held, "_stamps", lambda *_: Stamps({f"{0:020}.json": (1, 1)}, False))
    write_deltalake(uri, rows(1, 2))
    first = opened(uri)
    assert opened(uri) is first
    fsspec.filesystem("memory").rm(uri, recursive=True)
    write_deltalake(uri, rows(1, 2))
    assert opened(uri).metadata.id != first.metadata.id
    assert same_as_fresh(opened(uri))


def test_commit_that_was_replaced_in_place_is_read_again(uri: str, tmp_path: Path) -> None:
    write_deltalake(uri, rows(3), mode="append")
    opened(uri).files.columns(COLUMNS)
    commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    text = commit.read_text().splitlines()
    commit.write_text("\n".join(line for line in text if not line.startswith('{"add"')) + "\n")
    assert same_as_fresh(opened(uri))
    assert opened(uri).files.count == 2


def test_other_options_and_zones_have_snapshots_of_their_own(uri: str) -> None:
    first = opened(uri)
    assert open_latest(SESSION, uri, timezone="Asia/Tokyo") is not first
    assert open_latest(SESSION, uri, {"auto_mkdir": True}) is not first
    assert opened(uri) is first


def test_what_is_kept_is_bounded(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(conf={SETTING: "0"})
    assert opened(uri, nothing) is not opened(uri, nothing)
    assert not held._cached
    first = opened(uri)
    assert first.nbytes
    first.files.columns(COLUMNS)
    assert opened(uri, SimpleNamespace(conf={SETTING: str(first.nbytes)})) is first
    opened(uri, SimpleNamespace(conf={SETTING: str(first.nbytes - 1)}))
    assert not held._cached
    monkeypatch.setattr(held, "MOST_TABLES", 2)
    others = [str(tmp_path / name) for name in "abc"]
    for other in others:
        write_deltalake(other, rows(1))
        opened(other)
    assert [key.uri for key in held._cached] == others[1:]


def test_threads_share_a_snapshot(uri: str) -> None:
    DeltaTable(uri).create_checkpoint()

    def work(number: int) -> bool:
        if number % 10 == 9:
            write_deltalake(uri, rows(number), mode="append")
        return opened(uri).files.columns(COLUMNS).num_rows >= 2

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(80)))
    assert same_as_fresh(opened(uri))


@pytest.mark.spark
def test_reads_see_each_commit(spark: Any, uri: str) -> None:
    from delta_core.spark import read

    expected = [1, 2]
    for number in (3, 4, 5, 6):
        assert sorted(r["id"] for r in read(spark, uri).collect()) == expected
        write_deltalake(uri, rows(number), mode="append")
        expected.append(number)
    assert sorted(r["id"] for r in read(spark, uri).where("part = 1").collect()) == [1, 3, 5]
