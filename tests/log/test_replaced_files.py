"""Log files that are replaced or deleted under an open table: old and new content is never joined."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import latency
from delta_core.engines.arrow import pinned
from delta_core.errors import LogChangedError, LogError, VersionNotFoundError
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.table.interop.file_tables import file_uris
from delta_core.testing.table_builder import TableBuilder

KINDS = ["v1", "v1-multipart", "v2-classic", "v2-parquet", "v2-json"]
LOWEST = FileStatistic("min", ("id",), PrimitiveType("long"))


def built(uri: Any, kind: str) -> TableBuilder:
    """A table of 24 files in 3 partitions under a checkpoint, and a commit above it."""
    features = ["domainMetadata", *(["v2Checkpoint"] if kind.startswith("v2") else [])]
    table = TableBuilder(uri).create({"id": "long", "kind": "string"}, partition_by=["kind"], features=features)
    for start in (0, 12):
        table.append([{"id": start + i, "kind": "abcdefghijkl"[i] * (start + 1)} for i in range(12)])
    table.remove(
        table.paths()[0],
        more=[
            {"txn": {"appId": "app", "version": 7}},
            {"domainMetadata": {"domain": "d", "configuration": "c", "removed": False}},
        ],
    )
    table.checkpoint(kind, statistics="both")  # type: ignore[arg-type]
    return table.append([{"id": 100, "kind": "z"}])


def rewritten(data: bytes, seed: int) -> bytes:
    """Return a checkpoint's actions in another order and another encoding."""
    table = pq.read_table(pa.BufferReader(data))
    sink = pa.BufferOutputStream()
    order = list(range(table.num_rows))[:: -1 if seed % 2 else 1]
    options: dict[str, Any] = {"row_group_size": 7} if seed % 3 else {"use_dictionary": False, "compression": "none"}
    pq.write_table(table.take(pa.array(order)), sink, **options)
    return bytes(sink.getvalue())


class Replacer:
    """Replaces the checkpoint files of a table by others of the same content, whole as writers do."""

    def __init__(self, uri: str) -> None:
        self.fs, root = fsspec.core.url_to_fs(uri)
        names = sorted(self.fs.glob(f"{root}/_delta_log/*.checkpoint*parquet"))
        names += sorted(self.fs.glob(f"{root}/_delta_log/_sidecars/*.parquet"))
        self.forms = [[(n, d), *((n, rewritten(d, s)) for s in range(3))] for n in names for d in [self.fs.cat_file(n)]]
        self.times = 0

    def replace(self) -> None:
        self.times += 1
        for form in self.forms:
            name, data = form[self.times % len(form)]
            if self.fs.protocol == "memory":
                self.fs.pipe_file(name, data)
            else:
                Path(f"{name}.new").write_bytes(data)
                Path(f"{name}.new").replace(name)


def facts(snapshot: Snapshot) -> dict[str, Any]:
    """Return what the log describes a table, each column by a look of its own."""
    files = snapshot.files
    uris = file_uris(snapshot)  # before any column is loaded
    paths = files.columns(["path"]).column(0).to_pylist()
    kinds = files.columns(["partition:kind"]).column(0).to_pylist()
    lowest = files.statistics([LOWEST]).column(0).to_pylist()
    sizes = files.columns(["size"]).column(0).to_pylist()
    few = snapshot.scan(["id", "kind"], predicate="id = 20")
    return {
        "uris": sorted(uri.rpartition("/")[2] for uri in uris),
        "files": {p: (k, low, s) for p, k, low, s in zip(paths, kinds, lowest, sizes, strict=True)},
        "few": (few.files(["path"]).num_rows, few.to_table().to_pylist()),
        "domains": snapshot.domains(),
        "apps": {a: t.version for a, t in snapshot.transactions().items()},
        "gone": sorted(snapshot.tombstones().column("path").to_pylist()),
    }


@pytest.fixture(params=["disk", "disk without descriptors", "memory", "remote", "remote, small files whole"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty table; how its storage keeps track of files is set."""
    if request.param == "disk without descriptors":
        monkeypatch.setattr(pinned, "_take", lambda: False)
    if "whole" not in request.param:
        monkeypatch.setattr(pinned, "WHOLE_BYTES", -1)
    if request.param == "memory":
        yield f"memory://{tmp_path}"
        fsspec.filesystem("memory").rm(str(tmp_path), recursive=True)
    elif request.param.startswith("remote"):
        latency.register()
        yield f"latency://{tmp_path}"
    else:
        yield str(tmp_path)


def options_of(uri: str) -> dict[str, Any]:
    return {"delay_ms": 0} if uri.startswith("latency") else {}


@pytest.mark.parametrize("kind", KINDS[:3])
def test_columns_are_of_one_checkpoint_whenever_it_is_replaced(
    place: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(place.removeprefix("latency://"), kind)
    expected = facts(open_snapshot(place, storage_options=options_of(place)))
    assert len(expected["files"]) == 24
    change = Replacer(place).replace
    real = pinned.PinnedFile.opened
    at = ""
    looks = 0

    @contextmanager
    def opened(self: Any, **options: bool) -> Iterator[Any]:
        nonlocal looks
        looks += 1
        look = looks
        if at == f"before {look}":
            change()
        with real(self, **options) as file:
            if at == f"at the start of {look}":
                change()
            yield file

    monkeypatch.setattr(pinned.PinnedFile, "opened", opened)
    for number in itertools.count(1):
        for moment in ("before", "at the start of"):
            looks, at = 0, f"{moment} {number}"
            assert facts(open_snapshot(place, storage_options=options_of(place))) == expected
        if looks < number:
            break
    assert number > 5


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_checkpoint_is_read_from_what_replaces_it(place: str, kind: str) -> None:
    table = built(place.removeprefix("latency://"), kind)
    expected = facts(open_snapshot(place, storage_options=options_of(place)))
    opened = open_snapshot(place, storage_options=options_of(place))
    assert opened.segment.checkpoint is not None
    opened.files.columns(["path"])
    for file in opened.segment.checkpoint.files:
        table.drop(f"_delta_log/{file.name}")
    table.drop("_delta_log/_last_checkpoint")
    assert facts(opened) == expected


def test_version_without_any_of_its_files_is_rejected_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned, "_take", lambda: False)
    table = built(tmp_path, "v1")
    opened = open_snapshot(tmp_path)
    checkpoint = opened.segment.checkpoint
    assert checkpoint is not None
    table.append([{"id": 101, "kind": "z"}]).checkpoint("v1").cleanup_before(table.version)
    assert not (tmp_path / "_delta_log" / checkpoint.files[0].name).exists()
    with pytest.raises((VersionNotFoundError, LogError)):
        opened.files.columns(["path"])


def test_rows_without_paths_are_not_joined_with_those_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "_take", lambda: False)
    built(tmp_path, "v1")
    files = open_snapshot(tmp_path).files
    files.columns(["size"])
    Replacer(str(tmp_path)).replace()
    with pytest.raises(LogChangedError, match="Open the table again") as caught:
        files.columns(["partition:kind"])
    assert "delet" not in str(caught.value)


def test_commits_of_another_table_are_not_joined_with_those_that_were_read(tmp_path: Path) -> None:
    def made(count: int) -> None:
        table = TableBuilder(tmp_path, seed=count).create({"id": "long", "kind": "string"}, partition_by=["kind"])
        for i in range(count):
            table.append([{"id": i, "kind": f"{count}{i}"}])
        table.remove(table.paths()[0])

    made(3)
    opened = open_snapshot(tmp_path)
    opened.files.columns(["path"])
    for file in (tmp_path / "_delta_log").iterdir():
        file.unlink()
    made(4)
    with pytest.raises(LogError, match="another"):
        opened.files.columns(["partition:kind"])
    with pytest.raises(LogError, match="another"):
        opened.tombstones()


#: In a process of its own: elsewhere, tables of other tests that are dropped meanwhile hand back descriptors of theirs.
FEW_DESCRIPTORS = """
import gc, os, sys, time
from pathlib import Path
from delta_core.engines.arrow import pinned
from delta_core.kernel.snapshot import open_snapshot

def open_files():
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(Path(os.readlink(link)).is_relative_to(sys.argv[1]) for link in links if link.is_symlink())

def settled(most):
    # threads of the pool may still be about to drop the file that they read last
    deadline = time.monotonic() + 10
    while open_files() > most and time.monotonic() < deadline:
        time.sleep(0.05)
    return open_files()

pinned._free = type(pinned._free)([None] * 3)
opened = [open_snapshot(sys.argv[1]) for _ in range(20)]
counts = {snapshot.files.count for snapshot in opened}
print(counts, settled(3), end=" ")
del opened
gc.collect()
print(settled(0), len(pinned._free))
"""


def test_open_tables_keep_few_descriptors(tmp_path: Path) -> None:
    built(tmp_path, "v1")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FEW_DESCRIPTORS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["{24}", "3", "0", "3"]


# --- writing -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["v1", "v2-classic"])
def test_sound_checkpoint_of_the_same_version_is_kept(place: str, kind: str) -> None:
    table = built(place.removeprefix("latency://"), kind).checkpoint(kind, statistics="both")  # type: ignore[arg-type]
    storage = open_snapshot(place, storage_options=options_of(place)).engine.storage
    name = f"_delta_log/{table.version:020d}.checkpoint.parquet"
    before = storage.identify([name])
    hint = storage.identify(["_delta_log/_last_checkpoint"])
    for _ in range(2):
        result = write_checkpoint(open_snapshot(place, storage_options=options_of(place)))
        if result.path == name:
            assert result.existed
            assert result.num_adds == 24
    assert storage.identify([name]) == before
    if result.path == name:
        assert storage.identify(["_delta_log/_last_checkpoint"]) == hint


@pytest.mark.parametrize("damage", ["", "PAR1 torn", "page"])
def test_damaged_checkpoint_of_the_same_version_is_written_again(tmp_path: Path, damage: str) -> None:
    table = built(tmp_path, "v1")
    expected = facts(open_snapshot(tmp_path))
    table.checkpoint("v1", statistics="both")
    file = tmp_path / "_delta_log" / f"{table.version:020d}.checkpoint.parquet"
    data = file.read_bytes()
    if damage == "page":
        file.write_bytes(data[:60] + bytes(len(data) // 2) + data[60 + len(data) // 2 :])
    else:
        file.write_text(damage)
    assert not write_checkpoint(open_snapshot(tmp_path, table.version), now_ms=table.timestamp_ms(7)).existed
    assert facts(open_snapshot(tmp_path)) == expected


def test_writers_of_one_checkpoint_at_once_leave_the_first_one(place: str) -> None:
    table = built(place.removeprefix("latency://"), "v1")
    opened = [open_snapshot(place, storage_options=options_of(place)) for _ in range(6)]
    barrier = threading.Barrier(len(opened))
    seen: list[Any] = []

    def write(snapshot: Snapshot) -> None:
        barrier.wait()
        result = write_checkpoint(snapshot)
        seen.append((snapshot.engine.storage.identify([result.path]), result.existed))

    threads = [threading.Thread(target=write, args=(s,)) for s in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == len(opened)
    assert len({str(identity) for identity, _ in seen}) == 1
    assert [kept for _, kept in seen].count(False) == 1
    assert table.version == open_snapshot(place, storage_options=options_of(place)).version
