"""Local disks: the contract, and what happens if the disk is full, old or odd."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import CommitError, EngineError
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.plugins.committer import Conflict, Proposal
from delta_core.kernels.memory import LEAST_KEPT, allocated_bytes
from delta_core.storage import local_files
from delta_core.storage.stores import open_storage
from delta_core.testing.storage_contract import StorageContract

Files = Callable[[], list[str]]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "t"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Every file below the root, temporary ones too."""
    return lambda: sorted(str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*") if p.is_file())


@pytest.fixture
def failing_storage(tmp_path: Path) -> Storage:
    """The table's folder is a link to itself: no call gets through."""
    (tmp_path / "loop").symlink_to("loop")
    return open_storage(str(tmp_path / "loop"))


class TestLocalDisk(StorageContract):
    pass


class TestLocalDiskByRename(StorageContract):
    """A disk without hard links: names are claimed by a rename that replaces nothing."""

    @pytest.fixture(autouse=True)
    def _no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _forbid_links(monkeypatch)


@pytest.mark.parametrize("size", [LEAST_KEPT - 1, LEAST_KEPT, LEAST_KEPT + 1, 5 * LEAST_KEPT + 3])
def test_large_ranges_have_the_bytes_of_the_file(storage: Storage, tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (6 * LEAST_KEPT // 256)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(data)
    places = [0, 7, LEAST_KEPT // 2]
    # all of them are used at the same time
    found = storage.read([RangeRequest("f", at, size) for at in places])
    assert [bytes(d) for d in found] == [data[at : at + size] for at in places]
    assert all(memoryview(d).readonly for d in found)


@pytest.mark.parametrize("at", [0, 3, 100, 1000])
def test_range_beyond_the_end_takes_the_memory_of_what_is_there(storage: Storage, tmp_path: Path, at: int) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(b"x" * 100)
    before = allocated_bytes()
    [found] = storage.read([RangeRequest("f", at, 1 << 40)])
    assert bytes(found) == b"x" * max(100 - at, 0)
    assert allocated_bytes() - before < 1 << 20


def _forbid_links(monkeypatch: pytest.MonkeyPatch, error: int = errno.EPERM) -> None:
    def refuse(*names: str) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", refuse)


def test_disk_without_links_or_exclusive_renames_is_rejected_by_name(
    storage: Storage, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forbid_links(monkeypatch)
    monkeypatch.setattr(local_files, "_exclusive_rename", lambda: None)
    with pytest.raises(EngineError, match="neither hard links nor renames"):
        storage.put_if_absent("_delta_log/0.json", b"1")
    assert files() == []


def test_disk_whose_exclusive_rename_is_not_implemented_is_rejected(
    storage: Storage, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forbid_links(monkeypatch, errno.ENOTSUP)
    monkeypatch.setattr(local_files, "_exclusive_rename", lambda: lambda source, target: errno.EINVAL)
    with pytest.raises(EngineError, match="neither hard links nor renames"):
        storage.put_if_absent("_delta_log/0.json", b"1")
    assert files() == []


# --- failures leave nothing ----------------------------------------------------------------


@contextmanager
def small_disk() -> Iterator[None]:
    """Let files above 4 KB not fit: the limit of file sizes replaces a full disk.

    Around the writes alone: it holds for the whole process, the test runner's own output included.
    """
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_full_disk_leaves_nothing_of_any_kind_of_write(storage: Storage, files: Files) -> None:
    storage.put("_delta_log/old", b"old")
    data = b"x" * 100_000
    with small_disk():
        with pytest.raises(EngineError, match="File too large"):
            storage.put_if_absent("_delta_log/0.json", data)
        with pytest.raises(EngineError, match="File too large"):
            storage.put("_delta_log/old", data)
        with pytest.raises(EngineError, match="File too large"), storage.put_stream("_delta_log/old") as file:
            file.write(data)
    assert files() == ["_delta_log/old"]
    assert bytes(storage.read([RangeRequest("_delta_log/old")])[0]) == b"old"


def test_full_disk_is_a_commit_error_and_no_unknown_state(storage: Storage, files: Files) -> None:
    with small_disk(), pytest.raises(CommitError, match="Nothing was committed") as caught:
        StoreCommitter(storage).commit(Proposal(0, b"x" * 100_000, "t", 0))
    assert type(caught.value) is CommitError
    assert files() == []


def test_interrupt_leaves_nothing(storage: Storage, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.put_if_absent("0.json", b"1")
    with pytest.raises(KeyboardInterrupt):
        storage.put("a", b"1")
    assert files() == []


def test_failing_sync_reports_no_success(storage: Storage, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    (Path(storage.root) / "_delta_log").mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(EngineError, match="the disk is broken"):
        storage.put_if_absent("_delta_log/0.json", b"1")
    assert files() == []


# --- what lasts ----------------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of what is synced, in order: ``file`` or ``directory``."""
    found: list[str] = []
    real = os.fsync

    def note(handle: int) -> None:
        found.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real(handle)

    monkeypatch.setattr(os, "fsync", note)
    return found


def test_commit_is_synced_before_it_has_its_name_and_its_directory_after(storage: Storage, synced: list[str]) -> None:
    storage.put("_delta_log/x", b"")
    synced.clear()
    storage.put_if_absent("_delta_log/0.json", b"1")
    assert synced == ["file", "directory"]


def test_new_directories_are_synced_into_theirs(storage: Storage, synced: list[str]) -> None:
    storage.put_if_absent("_delta_log/0.json", b"1")
    # the folder that holds the table's, the table's, then the file and the log's
    assert synced == ["directory", "directory", "file", "directory"]


def test_lost_race_syncs_no_directory(storage: Storage, synced: list[str]) -> None:
    storage.put_if_absent(f"_delta_log/{0:020d}.json", b"1")
    synced.clear()
    assert StoreCommitter(storage).commit(Proposal(0, b"{}\n", "t", 0)) == Conflict(0)
    assert synced == ["file"]


def test_what_can_be_computed_again_is_not_synced(storage: Storage, synced: list[str]) -> None:
    storage.put("_delta_log/x", b"")
    synced.clear()
    assert storage.put_if_absent("_delta_log/0.crc", b"{}", durable=False) == "created"
    assert synced == []


ASCII_ENVIRONMENT = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
USE = """
import sys
import pyarrow as pa
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import EngineError

def fails(work):
    try:
        work()
    except EngineError as e:
        assert "PYTHONUTF8=1" in str(e) and not e.path.isascii(), e
    else:
        raise AssertionError("no error")

rows = pa.table({"id": [1], "p": [chr(233)]})
assert sys.getfilesystemencoding() == "ascii"
write_deltalake(sys.argv[1] + "/plain", rows)
assert DeltaTable(sys.argv[1] + "/plain").to_pyarrow_table() == rows
fails(lambda: DeltaTable(sys.argv[1] + "/parted").to_pyarrow_table())
fails(lambda: write_deltalake(sys.argv[1] + "/parted", rows, mode="append"))
fails(lambda: write_deltalake(sys.argv[1] + "/" + chr(233), rows))
assert DeltaTable(sys.argv[1] + "/parted").version() == 0
"""


@pytest.mark.skipif(os.name == "nt", reason="names have one encoding there")
def test_names_that_an_ascii_locale_can_not_encode_are_rejected_with_what_to_do(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "parted", pa.table({"id": [1], "p": ["é"]}), partition_by="p")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path)],
        env={**os.environ, **ASCII_ENVIRONMENT},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert DeltaTable(tmp_path / "parted").to_pyarrow_table()["p"].to_pylist() == ["é"]
