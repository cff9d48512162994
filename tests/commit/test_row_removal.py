"""Files that lose rows: the contents of their next add, and many of them at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CorruptTableError, DataFileNotFoundError, InvalidArgumentError
from delta_core.kernel.commit.row_removal import _loosened
from delta_core.kernel.scan import vectors
from delta_core.kernels.row_set import RowSets


@pytest.mark.parametrize(
    "text",
    [
        '{"numRecords":1}',
        '{"numRecords":1,"minValues":{"a":1}}',
        '{"numRecords":1,"tightBounds":true}',
        '{"numRecords":1,"tightBounds":false}',
        '{"numRecords":1,"tightBounds":true,"nullCount":{}}',
        '{"tightBounds":true,"numRecords":1}',
        '{"numRecords":1,"nullCount":{"tightBounds":0}}',
        '{"numRecords":1,"minValues":{"a":"\\"tightBounds\\":true}"}}',
        '{"numRecords":1,"minValues":{"a":",\\"tightBounds\\":true}"}}',
        '{"numRecords":1,"minValues":{"tightBounds":true}}',
        '{"numRecords":1,"minValues":{"a":1,"tightBounds":true}}',
        '{"numRecords": 1 } ',
        " {}",
        "{}",
    ],
)
def test_statistics_of_a_file_with_dropped_rows_are_no_longer_tight(text: str) -> None:
    [found] = _loosened(pa.array([text])).to_pylist()
    assert json.loads(found) == {**json.loads(text), "tightBounds": False}


def test_rows_of_many_files_are_dropped_in_one_commit_and_again(tmp_path: Path) -> None:
    count = 300
    rows = pa.table({"p": np.arange(count * 4) // 4, "id": np.arange(count * 4)})
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(tmp_path)
    for position in range(4):
        snapshot = table.snapshot().update()
        transaction = snapshot.begin("DELETE")
        files = snapshot.files.columns(["path"])
        every = np.arange(count)
        transaction.remove_rows(files, RowSets.from_positions(count, every, np.full(count, position)))
        left = transaction.commit().snapshot.scan().to_table().column("id").to_numpy()
        assert sorted(left) == [i for i in range(count * 4) if i % 4 > position]


class Exported:
    """An array as another Arrow library hands it out."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int32())])
def test_positions_may_be_arrow_arrays(tmp_path: Path, kind: pa.DataType) -> None:
    snapshot = _table_of_files(tmp_path, 3).snapshot()
    files = snapshot.files.columns(["path"])
    transaction = snapshot.begin("DELETE")
    transaction.remove_rows(files.slice(0, 2), Exported(pa.array([[9], [7, 2], []], kind).slice(1)))
    transaction.remove_rows(files["path"][2].as_py(), Exported(pa.array([5, 0, 1])))
    found = transaction.commit().snapshot.scan().plan_files()
    by_path = dict(zip(found.files["path"].to_pylist(), found.deleted_rows().to_pylist(), strict=True))
    assert [by_path[path] for path in files["path"].to_pylist()] == [[2, 7], [], [0, 1, 5]]


@pytest.mark.parametrize("rows", [[None], [1.5], ["a"], [[1, None]], [None, [1]]])
def test_arrays_that_are_no_positions_are_rejected(tmp_path: Path, rows: list[Any]) -> None:
    snapshot = _table_of_files(tmp_path, len(rows)).snapshot()
    with pytest.raises(InvalidArgumentError, match="expected positions"):
        snapshot.begin("DELETE").remove_rows(snapshot.files.columns(["path"]), pa.array(rows))


def _drop(table: DeltaTable, count: int, position: int) -> Any:
    """Begin to drop a row of each of some files."""
    snapshot = table.snapshot().update()
    transaction = snapshot.begin("DELETE")
    every = np.arange(count)
    rows = RowSets.from_positions(count, every, np.full(count, position))
    transaction.remove_rows(snapshot.files.columns(["path"]).slice(0, count), rows)
    return transaction


def _table_of_files(path: Path, count: int, **properties: str) -> DeltaTable:
    rows = pa.table({"p": np.arange(count * 8) // 8, "id": np.arange(count * 8)})
    configuration = {"delta.enableDeletionVectors": "true", **properties}
    write_deltalake(path, rows, partition_by=["p"], configuration=configuration)
    return DeltaTable(path)


def _num_calls(work: Callable[[], object]) -> int:
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("is_late", [False, True], ids=["alone", "after another writer"])
def test_files_with_vectors_lose_rows_without_a_python_call_a_file(tmp_path: Path, is_late: bool) -> None:
    calls = {}
    for count in (4, 4, 150):  # the first loads modules
        table = _table_of_files(tmp_path / f"{len(list(tmp_path.iterdir()))}", count)
        _drop(table, count, 0).commit()
        late = _drop(table, count, 2)
        if is_late:
            _drop(table, count, 1).commit()
        calls[count] = _num_calls(late.commit)
        left = DeltaTable(table.table_uri).to_pyarrow_table().column("id").to_numpy()
        assert sorted(left) == [i for i in range(count * 8) if i % 8 not in ((0, 1, 2) if is_late else (0, 2))]
    assert calls[150] < 1.1 * calls[4]


def _dropped(table: DeltaTable) -> list[list[int]]:
    snapshot = table.snapshot().update()
    files = snapshot.files.columns(["path", "deletionVector"])
    found = [s.positions().tolist() for s in snapshot.dropped_rows(files)]
    one_by_one = {i: s.positions().tolist() for i, s in snapshot.row_sets(files).items()}
    assert found == [one_by_one.get(i, []) for i in range(files.num_rows)]
    return found


@pytest.mark.parametrize("inline", ["0", "40"], ids=["in files", "inline"])
def test_vectors_of_many_files_are_those_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: str) -> None:
    table = _table_of_files(tmp_path, 12, **({} if inline == "0" else {"delta_core.inlineVectorsBelow": inline}))
    assert _dropped(table) == [[]] * 12
    for position, count in enumerate((12, 7, 3)):
        _drop(table, count, position).commit()
    assert sum(map(len, _dropped(table))) == 22
    for name in ("_PART_BYTES", "_SPARSE", "_SPARSE_BYTES"):
        # in more pieces, and each vector by itself
        monkeypatch.setattr(vectors, name, 0)
        assert sum(map(len, _dropped(table))) == 22


@pytest.mark.parametrize("damage", ["cut off", "changed", "gone"])
def test_vectors_that_are_damaged_keep_rows_from_being_dropped(tmp_path: Path, damage: str) -> None:
    table = _table_of_files(tmp_path, 5)
    _drop(table, 5, 0).commit()
    [file] = tmp_path.rglob("deletion_vector*.bin")
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content if damage == "changed" else content[:-3])
    version = table.version()
    with pytest.raises(DataFileNotFoundError if damage == "gone" else CorruptTableError, match="deletion_vector"):
        _drop(table, 5, 1).commit()
    assert DeltaTable(tmp_path).version() == version + 1
