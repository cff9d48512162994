"""Planning calls the same functions for 20 files as for 1,000."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.testing.table_builder import TableBuilder

ROWS = 2_000
#: Statistics of fewer than 65 files are compared in another way.
FEW, MANY = 100, 1_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Tables of the same rows and schema, by their number of files."""
    return {files: _table(tmp_path_factory.mktemp("calls") / "t", files) for files in (FEW, MANY)}


def _table(path: Path, files: int) -> str:
    builder = TableBuilder(path).create({"id": "long", "p": "string"}, partition_by=["p"])
    # each append writes its files in both partitions
    builder.append([{"id": i, "p": f"p{i % 2}"} for i in range(ROWS)], files=files // 2)
    assert DeltaTable(str(path)).snapshot().files.count == files
    return str(path)


def calls_of(work: Callable[[], Any]) -> int:
    """Return the calls of functions in Python and in C of this thread, after a first run that imports modules."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    work()
    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


PLANNING: dict[str, Callable[[str], Any]] = {
    "open": DeltaTable,
    "count_of_files": lambda uri: DeltaTable(uri).snapshot().files.count,
    "columns_of_files": lambda uri: DeltaTable(uri).snapshot().files.columns(["path", "size"]),
    "file_uris": lambda uri: DeltaTable(uri).file_uris(),
    "partitions": lambda uri: DeltaTable(uri).partitions(),
    "add_actions": lambda uri: DeltaTable(uri).get_add_actions(),
    "prune_by_partition": lambda uri: DeltaTable(uri).scan(predicate="p = 'p1'").explain(),
    "prune_by_statistics": lambda uri: DeltaTable(uri).scan(predicate="id < 5").explain(),
    "count_by_partition": lambda uri: DeltaTable(uri).scan(predicate="p = 'p1'").count(),
}


@pytest.mark.parametrize("work", PLANNING.values(), ids=PLANNING)
def test_planning_calls_as_many_functions_for_few_files_as_for_many(
    tables: dict[int, str], work: Callable[[str], Any]
) -> None:
    few, many = (calls_of(lambda uri=tables[files]: work(uri)) for files in (FEW, MANY))
    assert few > 0
    # caches that other tests filled, and finalizers, cost a few calls; 900 files more would cost as many at least
    assert abs(many - few) < 100


@pytest.mark.parametrize("predicate", [None, "id % 100 = 7"])
def test_reading_small_files_calls_no_function_for_each_file(tables: dict[int, str], predicate: str | None) -> None:
    def read(files: int) -> Callable[[], Any]:
        return lambda: DeltaTable(tables[files]).scan(predicate=predicate).to_table()

    assert read(FEW)().num_rows == read(MANY)().num_rows == (ROWS if predicate is None else ROWS // 100)
    # some batches more come out of many files
    assert calls_of(read(MANY)) - calls_of(read(FEW)) <= 200
