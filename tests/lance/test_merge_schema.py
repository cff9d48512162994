"""Appended rows whose columns the dataset does not have yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CommitConflictError, InvalidArgumentError, SchemaMismatchError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit.conflicts import is_retryable
from delta_plugins.lance.write.write_lance import DatasetWrite

ROWS = pa.table({"x": [1, 2]})


def append(root: Path, rows: pa.Table, **options: Any) -> list[dict[str, Any]]:
    write_lance(str(root), rows, "append", merge_schema=True, **options)
    found: list[dict[str, Any]] = open_dataset(str(root)).to_pyarrow_table().to_pylist()
    return found


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_new_columns_are_added_in_one_version(tmp_path: Path, version: str, is_stable: bool) -> None:
    dataset = write_lance(str(tmp_path / "d"), ROWS, stable_row_ids=is_stable, file_version=version)
    dataset.create_index("x", "btree")
    new = pa.field("y", pa.list_(pa.string()), nullable=False)
    rows = pa.table({"x": [3], "y": [["a"]]}, pa.schema([pa.field("x", pa.int64()), new]))
    expected = [{"x": 1, "y": None}, {"x": 2, "y": None}, {"x": 3, "y": ["a"]}]
    assert append(tmp_path / "d", rows) == expected
    after = open_dataset(str(tmp_path / "d"))
    assert (after.version, after.schema().field("y").nullable) == (dataset.version + 1, True)
    assert after.scan([], "x = 3", metadata=["_rowid"]).to_table().num_rows == 1
    assert len({*after.scan([], metadata=["_rowid"]).to_table()["_rowid"].to_pylist()}) == 3
    assert not after.verify().findings


def test_columns_of_the_dataset_may_be_missing_from_the_rows(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), ROWS)
    assert append(tmp_path / "d", pa.table({"y": [True]}))[-1] == {"x": None, "y": True}


def test_id_of_a_dropped_column_is_not_used_for_a_new_one(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), pa.table({"x": [1], "old": [7]})).drop_columns(["old"])
    assert append(tmp_path / "d", pa.table({"new": [8]})) == [{"x": 1, "new": None}, {"x": None, "new": 8}]


def test_rows_without_new_columns_are_appended(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), ROWS)
    append(tmp_path / "d", ROWS)
    assert open_dataset(str(tmp_path / "d")).history(1)[0]["operation"] == "append"


@pytest.mark.peer
def test_pylance_reads_and_changes_what_was_added(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    write_lance(str(tmp_path / "d"), ROWS)
    expected = append(tmp_path / "d", pa.table({"x": [3], "y": ["a"], "z": [{"t": 1}]}))
    peer = lance.dataset(tmp_path / "d")
    # for pylance, fields of a struct that is not there are null, too
    assert [{**r, "z": None if r["z"] == {"t": None} else r["z"]} for r in peer.to_table().to_pylist()] == expected
    peer.delete("x = 1")
    assert open_dataset(str(tmp_path / "d")).to_pyarrow_table().to_pylist() == expected[1:]


def test_new_column_is_an_error_unless_it_is_to_be_added(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), ROWS)
    with pytest.raises(SchemaMismatchError, match="y"):
        write_lance(str(tmp_path / "d"), pa.table({"y": [1]}), "append")
    for mode in ("create", "overwrite"):
        with pytest.raises(InvalidArgumentError, match="merge_schema"):
            write_lance(str(tmp_path / mode), ROWS, mode, merge_schema=True)
    assert open_dataset(str(tmp_path / "d")).version == 1


def test_name_that_differs_by_case_is_that_of_the_column(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), ROWS)
    assert append(tmp_path / "d", pa.table({"X": [3]})) == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_columns_are_not_added_to_a_version_that_was_changed_meanwhile(tmp_path: Path) -> None:
    before = write_lance(str(tmp_path / "d"), ROWS)
    write_lance(str(tmp_path / "d"), ROWS, "append")
    files = {p for p in tmp_path.rglob("*") if p.is_file()}
    write = DatasetWrite(before.engine, before, pa.table({"y": [1]}), None, (2, 2), merge_schema=True)
    with pytest.raises(CommitConflictError, match="append") as caught:
        write.commit("append", {"max_rows": 9, "max_bytes": 9}, {}, {}, False)
    assert is_retryable(caught.value)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == files
