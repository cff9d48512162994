"""A system that runs short of something: the error names it, and no file is reported as damaged."""

from __future__ import annotations

import _thread
import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.errors import CheckpointError, CommitError, CorruptTableError, DataFileError, EngineError
from delta_core.kernel.commit import publishing
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.storage.stores import LocalStorage

OF_SYSTEM = [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE]


class FailingStorage(LocalStorage):
    """A store that fails when a file is opened."""

    error: BaseException = OSError()

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, size: int | None = None) -> Any:
        raise self.error


def count_rows(root: Path, error: BaseException) -> None:
    storage = FailingStorage(str(root))
    storage.error = error
    ArrowDataFiles(storage, ArrowEvaluator()).row_counts(["f.parquet"], [None])


@pytest.mark.parametrize("number", OF_SYSTEM)
def test_data_file_that_the_system_can_not_open_is_not_damaged(tmp_path: Path, number: int) -> None:
    with pytest.raises(EngineError, match=r"f\.parquet.*why") as caught:
        count_rows(tmp_path, OSError(number, "why"))
    assert not isinstance(caught.value, CorruptTableError)


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc failed")])
def test_file_that_does_not_fit_in_memory_is_not_damaged(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(MemoryError):
        count_rows(tmp_path, error)


@pytest.mark.parametrize("error", [OSError("no Thrift"), OSError(errno.EINVAL, "negative offset")])
def test_error_that_comes_of_the_bytes_is_one_of_the_file(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(DataFileError, match="no sound Parquet file"):
        count_rows(tmp_path, error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EMFILE, "why"), EngineError),
        (pa.ArrowMemoryError("why"), MemoryError),
        (pa.ArrowInvalid("why"), CheckpointError),
    ],
)
def test_checkpoint_is_damaged_by_its_bytes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: type[Exception]
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}))
    DeltaTable(tmp_path / "t").create_checkpoint()
    for file in (tmp_path / "t" / "_delta_log").glob("*0.json"):
        file.unlink()

    def fail(path: str, *_: Any) -> Any:
        raise error

    monkeypatch.setattr(pa, "OSFile", fail)
    with pytest.raises(expected, match="why") as caught:
        DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert isinstance(caught.value, CorruptTableError) == (expected is CheckpointError)


def test_vector_that_the_system_can_not_open_is_not_reported_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", pa.table({"x": range(100)}), configuration=properties)
    table = DeltaTable(tmp_path / "t")
    table.delete("x % 3 = 0")

    read = LocalStorage.read

    def fail(self: Any, requests: Any) -> Any:
        if any(r.path.endswith(".bin") for r in requests):
            raise EngineError("Could not read the vector: too many open files.")
        return read(self, requests)

    monkeypatch.setattr(LocalStorage, "read", fail)
    with pytest.raises(EngineError, match="too many open files"):
        table.verify()


def test_store_that_can_not_delete_does_not_hide_why_a_write_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}))

    def fail(*_: Any, **__: Any) -> Any:
        raise EngineError("It can't be deleted.")

    def fail_commit(*_: Any, **__: Any) -> Any:
        raise EngineError("It can't be created.") from PermissionError()

    monkeypatch.setattr(LocalStorage, "delete", fail)
    monkeypatch.setattr(LocalStorage, "put_if_absent", fail_commit)
    table = DeltaTable(tmp_path / "t")
    for change in (
        lambda: write_deltalake(table, pa.table({"x": [2]}), mode="append"),
        lambda: table.update({"x": "2"}),
        lambda: table.delete("x = 1 and x < 2"),
    ):
        with pytest.raises(CommitError, match="can't be created"):
            change()
    assert "can't be deleted" in caplog.text


WITH_FEW_THREADS = """
import _thread, sys
from itertools import count
import pyarrow as pa
from delta_core import DeltaTable, write_deltalake
from delta_core.parquet import data_writer

start, begun, there_are = _thread.start_new_thread, count(), int(sys.argv[2])

def start_some(*arguments):
    if next(begun) >= there_are:
        raise RuntimeError("can't start new thread")
    return start(*arguments)

_thread.start_new_thread = start_some
data_writer.PARALLEL_BYTES = data_writer.RUN_BYTES = 1 << 10
data_writer.num_cores = lambda: 4
root = sys.argv[1]
rows = pa.table({"id": range(20_000), "p": [i % 3 for i in range(20_000)]})
write_deltalake(root, rows)
write_deltalake(root, rows.to_reader(1000), mode="append")
for _ in range(40):
    write_deltalake(root, rows.slice(0, 5000), mode="append")
table = DeltaTable(root)
assert table.to_pyarrow_table().num_rows == 240_000
table.delete("id % 2 = 1")
table.optimize.z_order(["id"])
table.create_checkpoint()
table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
assert DeltaTable(root).to_pyarrow_table().num_rows == 120_000
assert next(begun) > there_are
"""


@pytest.mark.parametrize("there_are", [0, 1, 3])
def test_tables_are_read_and_written_with_the_threads_there_are(tmp_path: Path, there_are: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_FEW_THREADS, str(tmp_path / "t"), str(there_are)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_store_is_not_taken_for_exclusive_if_no_threads_can_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", fail)
    monkeypatch.setattr(publishing, "RACE_SECONDS", 0.01)
    with pytest.raises(EngineError, match="8 threads"):
        publishing._find_problem(LocalStorage(str(tmp_path)), "probe")
    assert not list(tmp_path.iterdir())
