"""Places that no table can be at: a working directory that is gone, names that are no UTF-8."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedOperationError

ROWS = pa.table({"id": [1, 2, 3]})
CALLS: dict[str, Callable[[str, Path], Any]] = {
    "open": lambda place, table: DeltaTable(place),
    "is a table": lambda place, table: DeltaTable.is_deltatable(place),
    "write": lambda place, table: write_deltalake(place, ROWS),
    "clone": lambda place, table: DeltaTable(table).clone(place),
    "convert": lambda place, table: convert_to_deltalake(place),
    "allow external": lambda place, table: DeltaTable(table, allow_external=[place]),
}


@pytest.mark.parametrize("call", CALLS)
def test_relative_path_in_a_directory_that_is_gone_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(EngineError, match="working directory is not there"):
        CALLS[call]("x", tmp_path / "t")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 3


def test_table_that_was_opened_by_a_relative_path_is_not_pickled_without_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    write_deltalake("t", ROWS)
    table = DeltaTable("t")
    (tmp_path / "gone").rename(tmp_path / "other")
    pickle.dumps(table)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    (tmp_path / "empty").rmdir()
    with pytest.raises(UnsupportedOperationError, match="working directory"):
        pickle.dumps(table)


@pytest.mark.parametrize("call", CALLS)
def test_path_that_is_no_utf_8_is_rejected(tmp_path: Path, call: str) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    place = os.fsdecode(bytes(tmp_path) + b"/f\xff")
    os.mkdir(place)
    with pytest.raises(InvalidArgumentError, match="no UTF-8"):
        CALLS[call](place, tmp_path / "t")
    assert os.listdir(place) == []
