"""Tables of many columns: the work grows as their number does, counted in lines of Python that run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.operations.create import create_table
from delta_core.schema.fields import Schema
from delta_core.table.writer import write_deltalake

FEW, MANY = 100, 800
NAMED = "delta.dataSkippingStatsColumns"
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "all statistics": {"delta.dataSkippingNumIndexedCols": "-1"},
    "named statistics": {NAMED: ""},
    "column mapping": {"delta.columnMapping.mode": "name"},
    "row ids": {"delta.enableRowTracking": "true"},
}


def lines_of(work: Callable[[], Any]) -> int:
    """Return how many lines of Python a call runs in this thread, loops of comprehensions included."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def rows(columns: int, nested: bool) -> pa.Table:
    if nested:
        return pa.table({"s": [{f"c{i}": i + row for i in range(columns)} for row in range(2)]})
    return pa.table({f"c{i}": [i, i + 1] for i in range(columns)})


def work_of(path: Path, columns: int, form: str, nested: bool) -> dict[str, int]:
    """Make a table and return the lines that each step takes."""
    data = rows(columns, nested)
    properties = dict(FORMS[form])
    if NAMED in properties:
        properties[NAMED] = ",".join(f"s.c{i}" if nested else f"c{i}" for i in range(columns))
    create_table(open_context(str(path)), Schema.from_arrow(data.schema), properties=properties)
    name = "s.c7" if nested else "c7"
    steps: dict[str, Callable[[], Any]] = {
        "open": lambda: open_snapshot(path),
        "append": lambda: write_deltalake(path, data, mode="append"),
        "read": lambda: open_snapshot(path).scan().to_table(),
        "filter": lambda: open_snapshot(path).scan(predicate=f"{name} = 7", columns=[name]).to_table(),
        "checkpoint": lambda: write_checkpoint(open_snapshot(path)),
        "merge": lambda: write_deltalake(path, data, mode="append", schema_mode="merge"),
        "overwrite": lambda: write_deltalake(path, data, mode="overwrite", schema_mode="overwrite"),
    }
    return {step: lines_of(work) for step, work in steps.items()}


@pytest.mark.parametrize("nested", [False, True], ids=["columns", "fields"])
@pytest.mark.parametrize("form", FORMS)
def test_work_grows_no_faster_than_the_number_of_columns(tmp_path: Path, form: str, nested: bool) -> None:
    work_of(tmp_path / "warm", 8, form, nested)
    few, many = (work_of(tmp_path / str(n), n, form, nested) for n in (FEW, MANY))
    grown = {step: many[step] / few[step] for step in few}
    assert max(grown.values()) < 1.25 * MANY / FEW, grown
