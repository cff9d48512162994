"""The folder in which processes share file tables: right files whatever happened to log and folder."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, SnapshotCache, write_deltalake
from delta_core.errors import InvalidArgumentError
from delta_core.kernel.log import cache_folder
from delta_core.kernel.log.cached_files import CachedChunk
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

COLUMNS = [
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector", "dvId", "version",
    "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
]  # fmt: skip
KINDS = ["v1", "v1-multipart", "v2-classic", "v2-parquet", "v2-json"]


@pytest.fixture
def cache(tmp_path: Path) -> SnapshotCache:
    return SnapshotCache(tmp_path / "cache", least_files=0)


def listed(uri: Any, cache: Any, version: int | None = None, columns: list[str] = COLUMNS) -> list[dict[str, Any]]:
    """The files of a version with all that the log reports of them, in order of paths."""
    found = DeltaTable(uri, version, cache=cache).scan().files(columns).to_pylist()
    return sorted(found, key=lambda row: str(row["path"]))


def is_cached(uri: Any, cache: Any) -> bool:
    return any(isinstance(p.chunk, CachedChunk) for p in open_snapshot(uri, cache=cache).files.parts)


def entry_of(cache: SnapshotCache, ending: str = ".files") -> Path:
    (found,) = Path(cache.folder).rglob("*" + ending)
    return found


def rows(start: int, count: int = 3) -> pa.Table:
    return pa.table({"id": range(start, start + count), "kind": [f"k{i % 3}" for i in range(start, start + count)]})


def built(uri: Any, kind: str) -> TableBuilder:
    """A table of 12 files in 3 partitions, one removed and one with a vector, under a checkpoint."""
    features = ["deletionVectors", *(["v2Checkpoint"] if kind.startswith("v2") else [])]
    table = TableBuilder(uri).create({"id": "long", "kind": "string"}, partition_by=["kind"], features=features)
    for start in range(4):
        table.append([{"id": start * 10 + i, "kind": "abc"[i % 3]} for i in range(6)])
    table.remove(table.paths()[0]).delete_rows(lambda row: row["id"] == 13)
    return table.checkpoint(kind, statistics="both")  # type: ignore[arg-type]


# --- right files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_an_entry_equal_those_of_the_log(tmp_path: Path, cache: SnapshotCache, kind: str) -> None:
    table = built(tmp_path / "t", kind)
    columns = [*COLUMNS, "tags", "partition:kind"]
    plain = listed(tmp_path / "t", False, columns=columns)
    assert listed(tmp_path / "t", cache, columns=columns) == plain
    assert cache.count() == 1
    assert listed(tmp_path / "t", cache, columns=columns) == plain
    assert is_cached(tmp_path / "t", cache)
    schema = open_snapshot(tmp_path / "t").files.columns(columns).schema
    assert open_snapshot(tmp_path / "t", cache=cache).files.columns(columns).schema == schema
    found = DeltaTable(tmp_path / "t", cache=cache).to_pyarrow_table().sort_by("id")
    assert found.equals(table.expected().sort_by("id"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("predicate", ["kind = 'b'", "id > 30", "id > 100", "kind = 'a' AND id < 12"])
def test_files_are_planned_as_without_a_cache(tmp_path: Path, cache: SnapshotCache, kind: str, predicate: str) -> None:
    table = built(tmp_path / "t", kind)
    listed(tmp_path / "t", cache)
    table.append([{"id": 31, "kind": "b"}]).remove(table.paths()[2])
    for _ in range(2):
        assert is_cached(tmp_path / "t", cache)
        found = DeltaTable(tmp_path / "t", cache=cache).scan(predicate=predicate)
        plain = DeltaTable(tmp_path / "t").scan(predicate=predicate)
        assert sorted(found.files(["path"]).column(0).to_pylist()) == sorted(
            plain.files(["path"]).column(0).to_pylist()
        )
        assert found.to_table().sort_by("id").equals(plain.to_table().sort_by("id"))


def test_listing_an_entry_reads_nothing_of_the_checkpoint(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    plain = listed(tmp_path / "t", False, columns=["path", "size", "dvId"])
    listed(tmp_path / "t", cache)
    snapshot = open_snapshot(tmp_path / "t", cache=cache)
    shutil.rmtree(tmp_path / "t")
    found = snapshot.files.columns(["path", "size", "dvId"]).to_pylist()
    assert sorted(found, key=lambda row: row["path"]) == plain


def test_later_commits_are_put_on_top_of_an_older_entry(tmp_path: Path, cache: SnapshotCache) -> None:
    table = built(tmp_path / "t", "v1")
    for turn in range(12):
        table.append([{"id": 100 + turn, "kind": "b"}])
    listed(tmp_path / "t", cache)
    before = {p.name for p in Path(cache.folder).rglob("*.files")}
    large = SnapshotCache(cache.folder, least_files=100)  # what is touched is few of them
    table.append([{"id": 50, "kind": "a"}]).remove(table.paths()[3]).delete_rows(lambda row: row["id"] == 105)
    assert listed(tmp_path / "t", large) == listed(tmp_path / "t", False)
    assert is_cached(tmp_path / "t", large)
    assert {p.name for p in Path(cache.folder).rglob("*.files")} == before


def test_an_entry_is_made_again_after_many_changes(tmp_path: Path, cache: SnapshotCache) -> None:
    table = built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    table.append([{"id": i, "kind": "a"} for i in range(40, 60)], files=20)
    assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)
    assert cache.count() == 2


def test_an_open_table_moves_on_from_an_entry(tmp_path: Path, cache: SnapshotCache) -> None:
    table = built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    opened = DeltaTable(tmp_path / "t", cache=cache)
    assert opened.scan().files(["path"]).num_rows == len(table.paths())
    for turn in range(3):
        table.append([{"id": 50 + turn, "kind": "a"}]).remove(table.paths()[turn])
        opened.update_incremental()
        found = opened.scan().files(COLUMNS).to_pylist()
        assert sorted(found, key=lambda row: str(row["path"])) == listed(tmp_path / "t", False)
    opened.delete("id = 31")
    opened.optimize.compact()
    write_checkpoint(opened.snapshot())
    assert opened.to_pyarrow_table().sort_by("id").equals(table_of(tmp_path / "t"))


def table_of(uri: Any) -> pa.Table:
    return DeltaTable(uri, cache=False).to_pyarrow_table().sort_by("id")


@pytest.mark.parametrize("kind", ["v1", "v2-parquet"])
def test_a_checkpoint_written_from_an_entry_has_all_files(tmp_path: Path, cache: SnapshotCache, kind: str) -> None:
    table = built(tmp_path / "t", kind)
    listed(tmp_path / "t", cache)
    table.append([{"id": 50, "kind": "a"}])
    plain = listed(tmp_path / "t", False, columns=["path", "size", "stats", "dvId"])
    write_checkpoint(open_snapshot(tmp_path / "t", cache=cache))
    for using in (False, cache, cache):
        assert listed(tmp_path / "t", using, columns=["path", "size", "stats", "dvId"]) == plain


def test_a_table_made_again_has_its_own_files(tmp_path: Path, cache: SnapshotCache) -> None:
    for turn in range(4):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        built(tmp_path / "t", "v1") if turn % 2 else write_deltalake(tmp_path / "t", rows(turn))
        for _ in range(2):
            assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)


def test_a_rewritten_checkpoint_is_read_again(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    (checkpoint,) = (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet")
    os.utime(checkpoint, ns=(1, 1))
    listed(tmp_path / "t", cache)
    assert cache.count() == 2
    assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)


def test_a_checkpoint_replaced_under_an_entry_is_read_again(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    snapshot = open_snapshot(tmp_path / "t", cache=cache)
    assert snapshot.files.count
    (checkpoint,) = (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes())
    found = snapshot.files.columns(COLUMNS).to_pylist()
    assert sorted(found, key=lambda row: str(row["path"])) == listed(tmp_path / "t", False)


def test_older_versions_have_entries_of_their_own(tmp_path: Path, cache: SnapshotCache) -> None:
    table = built(tmp_path / "t", "v1")
    for _ in range(2):
        for version in range(table.version + 1):
            assert listed(tmp_path / "t", cache, version) == listed(tmp_path / "t", False, version)


def test_verify_reads_the_log_itself(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    (checkpoint,) = (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet")
    found = checkpoint.stat()
    damaged = bytearray(checkpoint.read_bytes())
    damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
    checkpoint.write_bytes(damaged)
    os.utime(checkpoint, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not DeltaTable(tmp_path / "t", cache=cache).verify(data=False).ok


class Steps:
    """Random operations on a table; after each one the cached files are compared."""

    def __init__(self, uri: Path, cache: SnapshotCache, has_vectors: bool) -> None:
        self.uri, self.cache, self.has_vectors, self.next = uri, cache, has_vectors, 0
        self.create()

    def create(self) -> None:
        shutil.rmtree(self.uri, ignore_errors=True)
        configuration = {
            "delta.enableDeletionVectors": str(self.has_vectors).lower(),
            "delta.checkpointInterval": "5",
            "delta.logRetentionDuration": "interval 0 days",
        }
        write_deltalake(self.uri, self.rows(), partition_by=["kind"], configuration=configuration)

    def rows(self) -> pa.Table:
        self.next += 4
        return rows(self.next, 4)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.uri, cache=self.cache)

    def run(self, step: str, number: int) -> None:
        if step == "create":
            self.create()
        elif step == "append":
            write_deltalake(self.uri, self.rows(), mode="append")
        elif step == "overwrite":
            write_deltalake(self.uri, self.rows(), mode="overwrite")
        elif step == "delete":
            self.table.delete(f"id % 5 = {number % 5}")
        elif step == "optimize":
            self.table.optimize.compact()
        elif step == "checkpoint":
            self.table.create_checkpoint()
        elif step == "restore":
            first = min(c["version"] for c in self.table.history())
            self.table.restore(max(first, self.table.version() - number % 4))
        elif step == "cleanup":
            self.table.cleanup_metadata()
        elif step == "clear":
            self.cache.clear()

    def check(self) -> None:
        assert listed(self.uri, self.cache) == listed(self.uri, False)
        found = self.table.scan(predicate="id > 6 AND kind <> 'k1'").to_table().sort_by("id")
        assert found.equals(DeltaTable(self.uri).scan(predicate="id > 6 AND kind <> 'k1'").to_table().sort_by("id"))


STEPS = ["append", "append", "delete", "delete", "overwrite", "optimize", "checkpoint", "restore", "cleanup", "create"]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.sampled_from([*STEPS, "clear"]), st.integers(0, 20)), min_size=4, max_size=12),
    has_vectors=st.booleans(),
    least=st.sampled_from([0, 40]),
)
def test_any_sequence_of_changes_lists_the_files_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], has_vectors: bool, least: int
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    # with a larger least number an entry serves more later commits; the first ones are stored without it
    state = Steps(folder / "t", SnapshotCache(folder / "cache", least_files=0), has_vectors)
    for step, number in steps:
        state.run(step, number)
        state.check()
        if least and state.cache.count():
            state.cache = SnapshotCache(folder / "cache", least_files=least)


# --- other stores ------------------------------------------------------------------------------------------------


def test_tables_on_an_object_store_are_cached(cache: SnapshotCache) -> None:
    uri = f"memory://cached-{random.getrandbits(60)}"
    table = built(uri, "v1")
    for _ in range(3):
        assert listed(uri, cache) == listed(uri, False)
    table.append([{"id": 50, "kind": "a"}])
    assert listed(uri, cache) == listed(uri, False)
    fsspec.filesystem("memory").rm(uri.removeprefix("memory:/"), recursive=True)
    built(uri, "v1-multipart")
    assert listed(uri, cache) == listed(uri, False)


def _forged(uri: str, monkeypatch: pytest.MonkeyPatch, change: Any) -> str:
    """Make what the memory store reports of its files pass through a function; return its newest commit."""
    fs = fsspec.filesystem("memory")
    real_ls, real_info = MemoryFileSystem.ls, MemoryFileSystem.info

    def ls(self: Any, path: str, detail: bool = True, **kwargs: Any) -> Any:
        found = real_ls(self, path, detail=True, **kwargs)
        return [change(dict(e), "list") for e in found] if detail else [e["name"] for e in found]

    monkeypatch.setattr(MemoryFileSystem, "ls", ls)
    monkeypatch.setattr(
        MemoryFileSystem, "info", lambda self, path, **kwargs: change(dict(real_info(self, path, **kwargs)), "look")
    )
    names = fs.ls(uri.removeprefix("memory:/") + "/_delta_log", detail=False)
    return str(max(n for n in names if n.endswith(".json")))


def _renamed_in_place(commit: str) -> None:
    """Write a commit again, with another path of the same length."""
    fs = fsspec.filesystem("memory")
    old = fs.cat(commit).decode()
    path = old.split('"path":"')[1].split('"')[0]
    fs.pipe(commit, old.replace(path, "Z" * len(path)).encode())


def test_a_file_written_again_in_the_same_second_is_read_again(
    cache: SnapshotCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"memory://second-{random.getrandbits(60)}"
    built(uri, "v1").append([{"id": 50, "kind": "a"}])
    second = datetime(2026, 1, 1, tzinfo=UTC)

    def change(entry: dict[str, Any], how: str) -> dict[str, Any]:
        return entry | {"created": second} if how == "list" and "created" in entry else entry

    commit = _forged(uri, monkeypatch, change)
    before = listed(uri, cache)
    assert is_cached(uri, cache)
    _renamed_in_place(commit)
    assert listed(uri, cache) == listed(uri, False) != before


def test_a_file_that_is_replaced_after_a_listing_with_tags_is_noticed(
    cache: SnapshotCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"memory://replaced-{random.getrandbits(60)}"
    built(uri, "v1").append([{"id": 50, "kind": "a"}])
    fs = fsspec.filesystem("memory")

    def tagged(entry: dict[str, Any], how: str) -> dict[str, Any]:
        is_file = entry["type"] == "file"
        return entry | {"ETag": hashlib.sha256(fs.cat(entry["name"])).hexdigest()} if is_file else entry

    commit = _forged(uri, monkeypatch, tagged)
    snapshot = open_snapshot(uri, cache=cache)
    log, contents = snapshot.context.log, snapshot._contents
    assert contents.identities is not None
    assert log.is_unchanged(contents.segment, contents.identities)
    _renamed_in_place(commit)
    assert not log.is_unchanged(contents.segment, contents.identities)
    fs.rm(commit)
    assert not log.is_unchanged(contents.segment, contents.identities)


@pytest.mark.parametrize("folder", ["s3://bucket/x", "file:///x"])
def test_a_cache_is_a_local_folder(folder: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a folder on a local disk"):
        SnapshotCache(folder)


def test_a_cache_in_the_home_folder_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert SnapshotCache("~/cache").prepare()
    assert os.listdir(tmp_path / "cache")


def test_files_of_a_store_without_tags_and_times_are_not_cached(
    cache: SnapshotCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"memory://timeless-{random.getrandbits(60)}"
    built(uri, "v1").append([{"id": 50, "kind": "a"}])
    commit = _forged(uri, monkeypatch, lambda entry, how: {k: v for k, v in entry.items() if k != "created"})
    before = listed(uri, cache)
    assert not is_cached(uri, cache)
    assert cache.count() == 0
    _renamed_in_place(commit)
    assert listed(uri, cache) == listed(uri, False) != before


def test_nothing_of_the_place_or_its_options_is_written(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "place-with-hunter2", "v1")
    options = {"secret_key": "hunter2"}
    DeltaTable(tmp_path / "place-with-hunter2", cache=cache, storage_options=options).scan().files()
    written = list(Path(cache.folder).rglob("*"))
    assert cache.count() == 1
    for path in written:
        assert "hunter2" not in path.name
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


# --- switching it on ---------------------------------------------------------------------------------------------


def test_no_cache_is_used_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path / "t", "v1")
    monkeypatch.delenv("DELTA_CORE_CACHE", raising=False)
    assert DeltaTable(tmp_path / "t").snapshot().context.log.cache is None
    monkeypatch.setenv("DELTA_CORE_CACHE", str(tmp_path / "named"))
    found = DeltaTable(tmp_path / "t").snapshot().context.log.cache
    assert found == SnapshotCache(str(tmp_path / "named"))
    assert DeltaTable(tmp_path / "t", cache=False).snapshot().context.log.cache is None
    assert DeltaTable(tmp_path / "t", cache=tmp_path / "c").snapshot().context.log.cache is not None


def test_small_tables_are_not_stored(tmp_path: Path) -> None:
    built(tmp_path / "t", "v1")
    assert listed(tmp_path / "t", tmp_path / "cache") == listed(tmp_path / "t", False)
    assert SnapshotCache(tmp_path / "cache").count() == 0


@pytest.mark.parametrize("name", ["max_bytes", "least_files"])
def test_numbers_below_zero_are_rejected(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name}=-1"):
        SnapshotCache("cache", **{name: -1})


def test_a_pickled_table_keeps_its_cache(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    again = pickle.loads(pickle.dumps(DeltaTable(tmp_path / "t", cache=cache)))
    assert again.snapshot().context.log.cache == cache
    assert again.scan().files(["path"]).num_rows == len(listed(tmp_path / "t", False))


def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    built(tmp_path / "t", "v1")
    (tmp_path / "file").write_text("no folder")
    cache = SnapshotCache(tmp_path / "file", least_files=0)
    with pytest.warns(RuntimeWarning, match="is not used"):
        assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)


def test_an_entry_that_cannot_be_written_is_no_error(
    tmp_path: Path, cache: SnapshotCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    built(tmp_path / "t", "v1")
    monkeypatch.setattr(os, "fsync", full)
    snapshot = open_snapshot(tmp_path / "t", cache=cache)
    assert snapshot.files.count
    assert not list(Path(cache.folder).rglob("*.*"))


# --- damage ------------------------------------------------------------------------------------------------------


def serial(function: Callable[[Any], Any], items: Any) -> list[Any]:
    return [function(x) for x in items]


def content(found: cache_folder.StoredFiles) -> list[Any]:
    return [(p.number, p.num_rows, p.alive.tolist(), p.table.to_pylist(), sorted(p.nulls)) for p in found.parts]


def test_each_damaged_byte_is_found(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    entry = entry_of(cache)
    whole = entry.read_bytes()
    right = cache.open(entry.stem, serial)
    assert right is not None
    expected = content(right)
    rejected = 0
    for at in range(len(whole)):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        found = cache.open(entry.stem, serial)
        if found is None:
            rejected += 1
            assert not entry.exists()
        else:  # a byte between the pieces
            assert content(found) == expected, at
    assert rejected > len(whole) * 0.8


def test_a_cut_entry_is_deleted(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    entry = entry_of(cache)
    whole = entry.read_bytes()
    for length in [*range(80), *range(80, len(whole), 37), len(whole) - 1]:
        entry.write_bytes(whole[:length])
        assert cache.open(entry.stem, serial) is None
        assert not entry.exists()
    entry.write_bytes(whole + b"\0")
    assert cache.open(entry.stem, serial) is None


def test_a_damaged_entry_is_made_again(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    plain = listed(tmp_path / "t", False)
    listed(tmp_path / "t", cache)
    entry = entry_of(cache)
    whole = entry.read_bytes()
    for at in random.Random(7).sample(range(len(whole)), 30):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        assert listed(tmp_path / "t", cache) == plain
        assert cache.open(entry.stem, serial) is not None


def test_a_trusted_entry_that_was_written_to_is_checked_again(
    tmp_path: Path, cache: SnapshotCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_folder, "_YOUNG_SECONDS", -1.0)
    checks: list[int] = []
    whole_check = cache_folder.StoredPart.check
    monkeypatch.setattr(cache_folder.StoredPart, "check", lambda part: checks.append(1) or whole_check(part))
    built(tmp_path / "t", "v1")
    plain = listed(tmp_path / "t", False)
    listed(tmp_path / "t", cache)
    listed(tmp_path / "t", cache)
    assert checks
    checks.clear()
    listed(tmp_path / "t", cache)
    assert not checks
    with entry_of(cache).open("r+b") as file:
        file.seek(200)
        byte = file.read(1)
        file.seek(200)
        file.write(bytes([byte[0] ^ 1]))
    assert listed(tmp_path / "t", cache) == plain
    assert checks


def test_an_entry_that_was_just_written_is_not_trusted(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    listed(tmp_path / "t", cache)
    assert not list(Path(cache.folder).rglob("*.checked"))


def test_an_entry_under_another_name_is_deleted(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    entry = entry_of(cache)
    other = "0" * len(entry.stem)
    shutil.copy(entry, entry.with_name(other + ".files"))
    assert cache.open(other, serial) is None
    assert cache.keys() == {entry.stem}


def test_an_entry_stays_usable_after_it_was_deleted(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    snapshot = open_snapshot(tmp_path / "t", cache=cache)
    assert snapshot.files.count
    cache.clear()
    found = snapshot.files.columns(COLUMNS).to_pylist()
    assert sorted(found, key=lambda row: str(row["path"])) == listed(tmp_path / "t", False)


# --- bound -------------------------------------------------------------------------------------------------------


def test_what_was_used_least_recently_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "_YOUNG_SECONDS", -1.0)
    folder = tmp_path / "cache"
    for name in "abc":
        write_deltalake(tmp_path / name, rows(0))
    listed(tmp_path / "a", SnapshotCache(folder, least_files=0))
    size = sum(p.stat().st_size for p in folder.rglob("*.files"))
    cache = SnapshotCache(folder, max_bytes=size * 5 // 2, least_files=0)
    (first,) = cache.keys()
    listed(tmp_path / "b", cache)
    (second,) = cache.keys() - {first}
    for path in folder.rglob("*.files"):
        os.utime(path, (time.time() - 100, time.time() - 100))
    listed(tmp_path / "a", cache)
    listed(tmp_path / "c", cache)
    assert cache.count() == 2
    found = cache.keys()
    assert first in found
    assert second not in found
    assert sum(p.stat().st_size for p in folder.rglob("*.files")) <= cache.max_bytes
    for name in "abc":
        assert listed(tmp_path / name, cache) == listed(tmp_path / name, False)
        assert sum(p.stat().st_size for p in folder.rglob("*.files")) <= cache.max_bytes


def test_an_entry_above_the_bound_is_not_stored(tmp_path: Path) -> None:
    built(tmp_path / "t", "v1")
    cache = SnapshotCache(tmp_path / "cache", max_bytes=100, least_files=0)
    assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)
    assert not list((tmp_path / "cache").rglob("*.*"))


# --- processes ---------------------------------------------------------------------------------------------------

READER = """
import sys, time
from delta_core import DeltaTable, SnapshotCache
cache = SnapshotCache(sys.argv[2], least_files=0)
end = time.monotonic() + float(sys.argv[3])
print("ready", flush=True)
while time.monotonic() < end:
    for using in (cache, False):
        table = DeltaTable(sys.argv[1], cache=using)
        paths = table.scan().files(["path", "size", "stats"])
        if using is cache:
            version, found = table.version(), sorted(map(str, paths.to_pylist()))
    plain = DeltaTable(sys.argv[1], version, cache=False).scan().files(["path", "size", "stats"])
    assert found == sorted(map(str, plain.to_pylist())), version
print("done")
"""


def reader(table: Path, cache: SnapshotCache, seconds: float) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", READER, str(table), str(cache.folder), str(seconds)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_race_find_the_files_of_their_versions(tmp_path: Path, cache: SnapshotCache) -> None:
    write_deltalake(tmp_path / "t", rows(0), configuration={"delta.checkpointInterval": "4"})
    readers = [reader(tmp_path / "t", cache, 4.0) for _ in range(3)]
    small = SnapshotCache(cache.folder, max_bytes=20_000, least_files=0)
    for turn in range(30):
        write_deltalake(tmp_path / "t", rows(turn), mode="append" if turn % 7 else "overwrite")
        listed(tmp_path / "t", small)
        time.sleep(0.05)
    for process in readers:
        out, error = process.communicate(timeout=120)
        assert out.endswith("done\n"), error[-2000:]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by a signal")
def test_killed_processes_leave_nothing_wrong(tmp_path: Path, cache: SnapshotCache) -> None:
    table = built(tmp_path / "t", "v1")
    table.append([{"id": 100 + i, "kind": "abc"[i % 3]} for i in range(300)], files=300)
    plain = listed(tmp_path / "t", False)
    at_random = random.Random(3)
    for _ in range(6):
        process = reader(tmp_path / "t", cache, 60.0)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(at_random.random() * 0.1)
        process.kill()
        process.communicate()
        assert listed(tmp_path / "t", cache) == plain
        cache.clear()


def test_temporary_files_of_killed_writers_are_deleted_later(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    folder = entry_of(cache).parent
    old, young = folder / ("0" * 40 + ".1.tmp"), folder / ("0" * 40 + ".2.tmp")
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    write_deltalake(tmp_path / "other", rows(0))
    listed(tmp_path / "other", cache)
    assert young.exists()
    assert not old.exists()


def test_one_process_writes_an_entry_at_a_time(tmp_path: Path, cache: SnapshotCache) -> None:
    built(tmp_path / "t", "v1")
    listed(tmp_path / "t", cache)
    entry = entry_of(cache)
    entry.unlink()
    entry.with_name(entry.stem + ".0123.tmp").write_bytes(b"another process's")
    assert listed(tmp_path / "t", cache) == listed(tmp_path / "t", False)
    assert cache.count() == 0
