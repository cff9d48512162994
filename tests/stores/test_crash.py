"""Writers that die: at every step on a local disk, and killed while they write one commit after the other."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from delta_core import CommitProperties, DeltaTable, Transaction, write_deltalake
from delta_core.errors import CommitError, EngineError, TableNotFoundError
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.plugins.committer import Outcome, Proposal
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernel.write.files import write_files
from delta_core.parquet import parts, written_files
from delta_core.storage.local import LocalStorage

#: What a handle is for is read from /proc.
names_handles = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc/self/fd")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
#: Steps of a process on a disk that Python describes.
STEPS = ("os.link", "os.remove", "os.rename", "os.mkdir")
DIED = 77


def rows(first: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + 5), pa.int64())})


def write(uri: str, first: int, **options: Any) -> None:
    """Write rows once, whatever happens: by an application's version."""
    properties = CommitProperties(app_transactions=[Transaction("job", first)])
    write_deltalake(uri, rows(first), commit_properties=properties, **options)


def ids(uri: str) -> list[int] | None:
    try:
        return sorted(open_snapshot(uri).scan().to_table().column("id").to_pylist())
    except TableNotFoundError:
        return None


Write = Callable[[str], None]
OPERATIONS: dict[str, tuple[int, Write]] = {
    "create": (0, lambda uri: write(uri, 10, mode="append")),
    "append": (3, lambda uri: write(uri, 10, mode="append")),
    "overwrite": (3, lambda uri: write(uri, 10, mode="overwrite")),
    "append with a checkpoint": (4, lambda uri: write(uri, 10, mode="append")),
}


def prepared(uri: str, commits: int) -> None:
    """Make a table of so many commits, with a checkpoint every four."""
    for i in range(commits):
        properties = {"delta.checkpointInterval": "4"} if i == 0 else None
        write_deltalake(uri, rows(1000 * i), mode="append", configuration=properties)


def run_and_die(work: Callable[[], None], step: int) -> bool:
    """Run work in a process that dies before its n-th step on the disk; return whether it died."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _die_at(step)
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, DIED)
    return code == DIED


def _die_at(step: int) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os._exit(DIED)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and (arguments[2] & os.O_CREAT)
        if event in STEPS or writes:
            count()

    sys.addaudithook(hook)
    sync, create = os.fsync, LocalStorage.create

    def counted_sync(handle: int) -> None:
        count()
        sync(handle)

    def counted_create(self: LocalStorage, path: str) -> Any:
        count()
        return create(self, path)

    os.fsync = counted_sync
    LocalStorage.create = counted_create  # type: ignore[method-assign]


@pytest.mark.parametrize("name", OPERATIONS)
def test_writer_that_dies_at_any_step_leaves_the_table_as_before_or_after(name: str, tmp_path: Path) -> None:
    commits, operation = OPERATIONS[name]
    plain = str(tmp_path / "plain")
    prepared(plain, commits)
    before = ids(plain)
    operation(plain)
    after = ids(plain)
    landed = 0
    for step in range(1, 200):
        uri = str(tmp_path / f"t{step}")
        prepared(uri, commits)
        died = run_and_die(lambda uri=uri: operation(uri), step)  # type: ignore[misc]
        found = ids(uri)
        assert found in (before, after), f"step {step}"
        landed += found == after
        # the application that comes back, and those that go on
        operation(uri)
        assert ids(uri) == after, f"step {step}"
        write_deltalake(uri, rows(5000), mode="append")
        assert ids(uri) == sorted([*(after or []), *range(5000, 5005)])
        if not died:
            break
    else:
        pytest.fail("the operation has no end")
    assert 0 < landed < step, "some steps lie before the commit and some after"


WRITER = """
import sys
import pyarrow as pa
from delta_core import DeltaTable, write_deltalake
table = DeltaTable(sys.argv[1])
for i in range(int(sys.argv[2]), 10_000):
    write_deltalake(table, pa.table({"id": pa.array([i] * 10, pa.int64())}), mode="append")
    print(table.version(), i, flush=True)
"""


@pytest.mark.slow
def test_killed_writer_loses_no_commit_that_it_reported_and_leaves_no_half(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": pa.array([-1] * 10, pa.int64())}))
    dice = random.Random(7)
    reported: dict[int, int] = {}
    for round_ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, uri, str(1000 * round_)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(dice.random() * 0.3)
        writer.send_signal(signal.SIGKILL)
        lines = [first, *writer.stdout.read().splitlines()]
        writer.stdout.close()
        writer.wait()
        # the last line may be torn
        reported |= {int(v): int(i) for v, i in (line.split() for line in lines[:-1] or lines)}
        snapshot = open_snapshot(uri)
        found = snapshot.scan().to_table().column("id").to_pylist()
        assert all(found.count(i) == 10 for i in set(found)), "every commit is there whole, once"
        assert set(reported.values()) <= set(found)
        assert snapshot.version + 1 == len(set(found)), "versions follow one another, a commit each"
    assert len(reported) > 6
    table = DeltaTable(uri)
    write_deltalake(table, pa.table({"id": pa.array([-2] * 10, pa.int64())}), mode="append")
    log = [p.name for p in (Path(uri) / "_delta_log").iterdir() if p.suffix == ".json"]
    assert len(log) == table.version() + 1


# --- what a machine that dies keeps --------------------------------------------------------


def merge(table: DeltaTable) -> None:
    found = table.merge(rows(3), "t.id = s.id", source_alias="s", target_alias="t")
    found.when_matched_update_all().when_not_matched_insert_all().execute()


def replace(table: DeltaTable) -> None:
    write_deltalake(table, pa.table({"id": pa.array([4], pa.int64())}), mode="overwrite", predicate="id > 3")


#: What writes rows of the table again, from two commits of five rows, and how many files, data and change files.
REWRITES: dict[str, tuple[Callable[[DeltaTable], object], int, int]] = {
    "append": (lambda table: write_deltalake(table, rows(10), mode="append"), 1, 0),
    "delete": (lambda table: table.delete("id = 1"), 1, 1),
    "update": (lambda table: table.update({"id": "id + 100"}, predicate="id = 1"), 2, 1),
    "merge": (merge, 3, 1),
    "overwrite": (replace, 2, 1),
    "compaction": (lambda table: table.optimize.compact(), 1, 0),
    "z-order": (lambda table: table.optimize.z_order(["id"]), 1, 0),
}


def two_files(uri: str, with_changes: bool) -> DeltaTable:
    configuration = {"delta.enableChangeDataFeed": "true"} if with_changes else None
    write_deltalake(uri, rows(0), configuration=configuration)
    write_deltalake(uri, rows(1000), mode="append")
    return DeltaTable(uri)


@names_handles
@pytest.mark.parametrize("name", REWRITES)
@pytest.mark.parametrize("with_changes", [False, True])
def test_rows_that_are_written_again_are_on_the_disk_before_the_commit(
    name: str, with_changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, num_files, num_change_files = REWRITES[name]
    uri = str(tmp_path / "t")
    table = two_files(uri, with_changes)
    before = set(Path(uri).rglob("*.parquet"))
    synced: set[str] = set()
    at_commit: list[set[str]] = []
    waits: list[int] = []
    sync, link, commit = os.fsync, os.link, StoreCommitter.commit

    committing = Event()

    def slow_sync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        committing.wait(0.5)
        sync(handle)
        synced.add(path)

    def noted_commit(self: StoreCommitter, proposal: Proposal) -> Outcome:
        committing.set()
        waits.append(len({p for p in synced if p.endswith(".parquet")}))
        return commit(self, proposal)

    def noted_link(source: str, target: str) -> None:
        if target.endswith(f"{2:020d}.json"):
            at_commit.append(set(synced))
        link(source, target)

    monkeypatch.setattr(os, "fsync", slow_sync)
    monkeypatch.setattr(os, "link", noted_link)
    monkeypatch.setattr(StoreCommitter, "commit", noted_commit)
    change(table)
    new = {str(p) for p in set(Path(uri).rglob("*.parquet")) - before}
    expected = num_files + num_change_files * with_changes
    assert len(new) == expected
    [at] = at_commit
    assert new <= at, "each file"
    assert {os.path.dirname(p) for p in new} <= at, "and the folder that has its name"
    assert waits[0] < expected, "the syncs overlap the commit's own"


@names_handles
@pytest.mark.parametrize("name", REWRITES)
@pytest.mark.parametrize("with_changes", [False, True])
def test_rows_that_can_not_be_synced_are_not_written_again(
    name: str, with_changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = REWRITES[name][0]
    uri = str(tmp_path / "t")
    table = two_files(uri, with_changes)
    before = {p for p in Path(uri).rglob("*") if p.is_file()}
    sync = os.fsync

    def broken_sync(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith(".parquet"):
            raise OSError(errno.EIO, "the disk is broken")
        sync(handle)

    monkeypatch.setattr(os, "fsync", broken_sync)
    with pytest.raises(EngineError, match=r"data file .*the disk is broken"):
        change(table)
    monkeypatch.setattr(os, "fsync", sync)
    assert open_snapshot(uri).version == 1
    assert {p for p in Path(uri).rglob("*") if p.is_file()} == before
    assert ids(uri) == [*range(5), *range(1000, 1005)]
    change(DeltaTable(uri))
    assert open_snapshot(uri).version == 2


@names_handles
def test_new_folders_of_partitions_are_on_the_disk_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "new" / "t")
    synced: list[str] = []
    at_link: list[set[str]] = []
    sync, sync_many, link = os.fsync, parts.sync_files, os.link

    def noted_sync(handle: int) -> None:
        sync(handle)
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))

    def noted_syncs(paths: list[str]) -> None:
        sync_many(paths)
        synced.extend(os.path.normpath(path) for path in paths)

    def noted_link(source: str, target: str) -> None:
        at_link.append(set(synced))
        link(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(parts, "sync_files", noted_syncs)
    monkeypatch.setattr(os, "link", noted_link)
    for first in (0, 100):
        synced.clear()
        at_link.clear()
        numbers = pa.array(range(first, first + 30), pa.int64())
        rows = pa.table({"p": numbers, "q": [str(i % 2) for i in range(30)], "id": numbers})
        write_deltalake(uri, rows, mode="append", partition_by=["p", "q"])
        folders = {str(Path(uri, f"p={i}")) for i in range(first, first + 30)}
        inner = {str(Path(uri, f"p={i}", f"q={i % 2}")) for i in range(first, first + 30)}
        above = {uri, str(tmp_path / "new"), str(tmp_path)} if first == 0 else {uri}
        files = {str(path) for path in Path(uri).rglob("*.parquet") if str(path.parent) in inner}
        assert len(files) == 30
        assert files | folders | inner | above <= at_link[0]
        assert synced.count(uri) <= 3, "not once for each folder"


@names_handles
@pytest.mark.parametrize("slow", [".parquet", "t", ".tmp"])
def test_everything_that_a_commit_names_is_on_the_disk_before_it(
    slow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    synced: set[str] = set()
    at_link: list[set[str]] = []
    sync, link = os.fsync, os.link

    def noted_sync(handle: int) -> None:
        sync(handle)
        path = os.readlink(f"/proc/self/fd/{handle}")
        if path.endswith(slow):
            time.sleep(0.1)
        synced.add(path)

    def noted_link(source: str, target: str) -> None:
        if target.endswith(f"{1:020d}.json"):
            at_link.append({*synced, source} if source in synced else set(synced))
        link(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "link", noted_link)
    write_deltalake(uri, pa.table({"id": pa.array([1], pa.int64())}), mode="append")
    [before] = at_link
    data = {str(Path(uri) / p) for p in open_snapshot(uri).files.columns(["path"]).column("path").to_pylist()}
    assert len(data & before) == 1, "the new data file"
    assert len(data) == 2
    assert uri in before, "the folder that has its name"
    assert any(p.endswith(".tmp") for p in before), "the commit's own bytes"
    assert str(Path(uri) / "_delta_log") in synced, "and then the commit's name"


@names_handles
@pytest.mark.parametrize("broken", [".parquet", "t"])
@pytest.mark.parametrize("big", [False, True])
def test_data_that_can_not_be_synced_is_not_committed(
    broken: str, big: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    table = DeltaTable.create(uri, rows(0).schema)
    sync = os.fsync
    tried: list[str] = []

    def broken_sync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        tried.append(path)
        if path.endswith(broken):
            raise OSError(errno.EIO, "the disk is broken")
        sync(handle)

    monkeypatch.setattr(os, "fsync", broken_sync)
    if big:
        monkeypatch.setattr(written_files, "SYNC_BYTES", 1)
    with pytest.raises(EngineError, match=r"data file .*the disk is broken") as caught:
        write_deltalake(table, rows(10), mode="append")
    assert not isinstance(caught.value, CommitError), "another try may succeed"
    assert any(p.endswith(broken) for p in tried)
    monkeypatch.setattr(os, "fsync", sync)
    assert open_snapshot(uri).version == 0
    assert sorted(p.name for p in Path(uri).rglob("*") if p.is_file()) == [f"{0:020d}.crc", f"{0:020d}.json"]
    write_deltalake(table, rows(10), mode="append")
    assert ids(uri) == list(range(10, 15))


class Noting:
    """A committer of a caller's own, which notes what is synced when it is called."""

    def __init__(self, committer: StoreCommitter, synced: set[str]) -> None:
        self._committer = committer
        self._synced = synced
        self.before: set[str] = set()

    def commit(self, proposal: Proposal) -> Outcome:
        self.before = set(self._synced)
        return self._committer.commit(proposal)


@names_handles
def test_files_are_synced_before_a_committer_of_the_caller_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    base = DeltaTable.create(uri, rows(0).schema).snapshot()
    synced: set[str] = set()
    sync = os.fsync

    def slow_sync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        time.sleep(0.05)
        sync(handle)
        synced.add(path)

    monkeypatch.setattr(os, "fsync", slow_sync)
    committer = Noting(StoreCommitter(base.context.log.engine.storage), synced)
    transaction = base.begin("WRITE", committer=committer)
    written = write_files(base.engine, transaction.plan, rows(10), syncs=transaction.syncs)
    transaction.add_files(written.adds)
    transaction.commit()
    assert committer.before >= {uri, *(str(Path(uri) / p) for p in written.paths)}
    assert ids(uri) == list(range(10, 15))


@names_handles
def test_sync_that_failed_once_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reports lost bytes once: a second sync succeeds without them."""
    base = DeltaTable.create(str(tmp_path / "t"), rows(0).schema).snapshot()
    sync = os.fsync

    def broken_sync(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith(".parquet"):
            raise OSError(errno.EIO, "the disk is broken")
        sync(handle)

    transaction = base.begin("WRITE")
    monkeypatch.setattr(os, "fsync", broken_sync)
    written = write_files(base.engine, transaction.plan, rows(10), syncs=transaction.syncs)
    transaction.add_files(written.adds)
    for _ in range(2):
        with pytest.raises(EngineError, match="the disk is broken"):
            transaction.commit()
        assert not transaction.in_doubt
        monkeypatch.setattr(os, "fsync", sync)
    assert open_snapshot(str(tmp_path / "t")).version == 0


@names_handles
def test_interrupt_before_the_commit_has_its_name_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    before = sorted(Path(uri).rglob("*"))
    sync, link = os.fsync, os.link

    def interrupted_sync(handle: int) -> None:
        sync(handle)
        if ".json." in os.readlink(f"/proc/self/fd/{handle}"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted_sync)
    for change in (
        lambda: write_deltalake(uri, rows(10), mode="append"),
        lambda: DeltaTable(uri).update({"id": "id + 1"}, predicate="id = 1"),
    ):
        with pytest.raises(KeyboardInterrupt):
            change()
        assert sorted(Path(uri).rglob("*")) == before
    monkeypatch.setattr(os, "fsync", sync)

    def interrupted_link(*names: Any, **options: Any) -> None:
        link(*names, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupted_link)
    with pytest.raises(KeyboardInterrupt):
        write_deltalake(uri, rows(10), mode="append")
    assert ids(uri) == [*range(5), *range(10, 15)]
