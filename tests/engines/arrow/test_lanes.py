"""Parts of a task that run at once: results in order, errors once all have ended, and forked children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable, WriterProperties, write_deltalake
from delta_core.parquet import columns, data_files, parts, stretches
from delta_core.runtime import lanes
from delta_core.runtime.ordered import run_ordered


def test_parts_meet_on_several_threads_and_return_in_order() -> None:
    both = threading.Barrier(2)

    def part(number: int) -> tuple[int, int]:
        both.wait(20)
        return number, threading.get_ident()

    found = lanes.run_at_once([partial(part, 0), partial(part, 1)])
    assert [number for number, _ in found] == [0, 1]
    assert found[0][1] == threading.get_ident() != found[1][1]


def test_more_parts_than_threads_run_all_the_same() -> None:
    assert lanes.run_at_once([partial(pow, 2, n) for n in range(50)]) == [2**n for n in range(50)]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_is_raised_once_parts_that_began_have_ended(failing: int) -> None:
    both, ended = threading.Barrier(2), threading.Event()

    def part(number: int) -> None:
        both.wait(20)
        if number == failing:
            raise ValueError(number)
        time.sleep(0.05)
        ended.set()

    with pytest.raises(ValueError, match=str(failing)):
        lanes.run_at_once([partial(part, 0), partial(part, 1)])
    assert ended.is_set()


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    rows = 30_000
    write_deltalake(tmp_path / "t", pa.table({f"c{i}": pc.random(rows) for i in range(6)}))
    return DeltaTable(tmp_path / "t")


def _shares(monkeypatch: pytest.MonkeyPatch, cores: int) -> list[int]:
    """Return the numbers of parts that reads run at once from now on, on a machine of so many cores."""
    found: list[int] = []

    def run(parts: Any) -> Any:
        found.append(len(parts))
        return lanes.run_at_once(parts)

    monkeypatch.setattr(columns, "run_at_once", run)
    monkeypatch.setattr(data_files, "num_cores", lambda: cores)
    monkeypatch.setattr(stretches, "_LANE_NANOSECONDS", 0)
    return found


def test_columns_of_a_single_file_are_decoded_on_all_cores(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = table.to_pyarrow_table()
    found = _shares(monkeypatch, 3)
    assert table.to_pyarrow_table().equals(expected)
    assert found == [3]
    half = table.scan(predicate="c0 < 0.5").to_table()
    assert half.equals(expected.filter(pc.field("c0") < 0.5))
    assert found == [3, 3]


@pytest.mark.parametrize("predicate", [None, "id < 1000", "id < -5", "c0 < 2"])
@pytest.mark.parametrize("group_rows", [30_000, 10_000])
def test_single_big_file_is_read_with_threads_for_its_parts_only(
    tmp_path: Path, group_rows: int, predicate: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 30_000
    expected = pa.table({"id": range(rows)} | {f"c{i}": pc.random(rows) for i in range(6)})
    write_deltalake(tmp_path, expected, writer_properties=WriterProperties(max_row_group_size=group_rows))
    monkeypatch.setattr(data_files, "INLINE_BYTES", 1_000)
    monkeypatch.setattr(data_files, "num_cores", lambda: 4)
    threads: list[int] = []

    def run(tasks: Any, workers: int, *args: Any) -> Any:
        found = list(tasks)
        threads.extend([workers] * bool(found))
        return run_ordered(found, workers, *args)

    monkeypatch.setattr(parts, "run_ordered", run)
    found = DeltaTable(tmp_path).scan(predicate=predicate).to_table()
    kept = {None: rows, "id < 1000": 1000, "id < -5": 0, "c0 < 2": rows}[predicate]
    assert found.equals(expected.slice(0, kept))
    if group_rows == rows:
        assert threads == []
    elif predicate is None:
        assert threads == [3]


def test_files_have_the_cores_that_no_other_file_has(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(table, table.to_pyarrow_table(), mode="append")
    table.update_incremental()
    found = _shares(monkeypatch, 4)
    table.to_pyarrow_table()
    assert found == [2, 2]
    found.clear()
    monkeypatch.setattr(data_files, "num_cores", lambda: 2)
    table.to_pyarrow_table()
    table.scan(limit=10).to_table()
    assert set(found) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_decodes_on_threads_of_its_own(table: DeltaTable) -> None:
    program = f"""
import os
from delta_core import DeltaTable
from delta_core.parquet import data_files, stretches
stretches._LANE_NANOSECONDS = 0
data_files.num_cores = lambda: 3
table = DeltaTable({table.table_uri!r})
rows = table.to_pyarrow_table()
child = os.fork()
if child == 0:
    os._exit(0 if table.to_pyarrow_table().equals(rows) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), table.to_pyarrow_table().equals(rows))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 True\n"


def test_read_while_the_interpreter_exits(table: DeltaTable) -> None:
    program = f"""
import atexit
from delta_core import DeltaTable
from delta_core.parquet import data_files, stretches
stretches._LANE_NANOSECONDS = 0
data_files.num_cores = lambda: 3
table = DeltaTable({table.table_uri!r})
atexit.register(lambda: print(table.to_pyarrow_table().num_rows))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "30000\n"
