"""Writes that fail: the error is that of what failed, and no file of them is left."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import EngineError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.chosen_rows import ChosenScan
from delta_plugins.lance.files import DataFileWriter

SCHEMA = pa.schema([pa.field("id", pa.int64())])


def failing(error: BaseException) -> pa.RecordBatchReader:
    """Return a stream that fails after five batches."""

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(5):
            yield pa.record_batch([pa.array(range(1000 * i, 1000 * i + 1000))], schema=SCHEMA)
        raise error

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def files_in(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def write(call: str, where: str, rows: Any) -> None:
    if call == "merge":
        merge = open_dataset(where).merge(rows, "target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    elif call == "add columns":
        open_dataset(where).add_columns(rows)
    else:
        write_lance(where, rows, call, max_rows_per_file=700)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [OSError("the source failed"), ValueError("the source failed"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["create", "append", "overwrite", "merge"])
def test_errors_of_sources_pass_and_leave_no_files(tmp_path: Path, call: str, error: BaseException) -> None:
    if call != "create":
        write_lance(str(tmp_path), pa.table({"id": [*range(2000)]}))
    before = files_in(tmp_path)
    with pytest.raises(type(error)) as caught:
        write(call, str(tmp_path), failing(error))
    assert str(error) in str(caught.value)
    assert files_in(tmp_path) == before


def test_errors_of_sources_of_new_columns_pass_and_leave_no_files(tmp_path: Path) -> None:
    write_lance(str(tmp_path), pa.table({"k": [*range(6000)]}), max_rows_per_file=700)
    before = files_in(tmp_path)
    with pytest.raises(OSError, match="the source failed"):
        write("add columns", str(tmp_path), failing(OSError("the source failed")))
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("call", ["create", "append", "merge"])
def test_failures_of_disks_are_errors_of_the_store_and_leave_no_files(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if call != "create":
        write_lance(str(tmp_path), pa.table({"id": [1]}))
    before = files_in(tmp_path)
    calls, own = [0], DataFileWriter.write

    def fails(self: DataFileWriter, batch: pa.RecordBatch) -> None:
        calls[0] += 1
        if calls[0] == (1 if call == "merge" else 3):
            raise OSError(errno.ENOSPC, "No space left on device")
        own(self, batch)

    monkeypatch.setattr(DataFileWriter, "write", fails)
    with pytest.raises(EngineError, match=r"Could not write 'data/.*No space left"):
        write(call, str(tmp_path), pa.table({"id": [*range(5000)]}))
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("kind", ["btree", "bitmap", "zonemap"])
@pytest.mark.parametrize("part", ["disk", "source"])
def test_indices_that_fail_leave_no_files(
    tmp_path: Path, kind: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lance(str(tmp_path), pa.table({"id": [1, 2, 2]}))
    before = files_in(tmp_path)

    def fails(*_: Any) -> None:
        error = OSError(errno.ENOSPC, "No space left on device")
        raise error if part == "disk" else OSError("the source failed")

    if part == "disk":
        monkeypatch.setattr(DataFileWriter, "write", fails)
    else:
        monkeypatch.setattr(ChosenScan, "read_batches", fails)
    expected, text = (EngineError, "space") if part == "disk" else (OSError, "the source failed")
    with pytest.raises(expected, match=text):
        open_dataset(str(tmp_path)).create_index("id", kind)
    assert files_in(tmp_path) == before
