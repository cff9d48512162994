"""A user's function of one row, compiled by Numba and as it is: edit distances of a category to ``c7``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.api import row_function

__all__ = ["edit_distance", "from_how_many_rows", "pairs"]

#: Pairs of texts: as many as Python compares in about a second.
ROWS = 20_000
PROCESSES = 5
_FIRST_CALL = """
import time
import pyarrow as pa
from benchmarks.row_functions import edit_distance
start = time.perf_counter()
edit_distance.arrays(pa.array(["a"]), pa.array(["b"]))
print(time.perf_counter() - start)
"""


@row_function(pa.string(), pa.string(), result=pa.int64())
def edit_distance(a: Any, b: Any) -> Any:
    """Return how many bytes of a text are inserted, deleted or replaced to make another."""
    before = np.arange(len(b) + 1)
    row = np.empty(len(b) + 1, np.int64)
    for i in range(len(a)):
        row[0] = i + 1
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(before[j] + cost, before[j + 1] + 1, row[j] + 1)
        before[:] = row
    return before[len(b)]


def pairs(table: Path) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the categories of a table's first rows, and those in the opposite order."""
    texts = pq.read_table(min(table.glob("*.parquet")), columns=["category"]).column("category")
    texts = texts.combine_chunks().cast(pa.string()).slice(0, ROWS)
    return texts, texts.take(pa.array(np.arange(len(texts))[::-1]))


def by_python(left: pa.Array[Any], right: pa.Array[Any]) -> int:
    """Return the sum of distances by a loop of Python over the same bytes."""
    texts = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return sum(int(edit_distance(a.encode(), b.encode())) for a, b in texts)


def by_numba(left: pa.Array[Any], right: pa.Array[Any]) -> int:
    """Return the sum of distances by the compiled function."""
    return int(edit_distance.arrays(left, right).to_numpy().sum())


def from_how_many_rows(table: Path) -> float:
    """Return from how many rows a new process is faster with the compiled function, which the cache on disk has."""
    left, right = pairs(table)
    first = statistics.median(
        float(subprocess.run([sys.executable, "-c", _FIRST_CALL], check=True, capture_output=True, text=True).stdout)
        for _ in range(PROCESSES)
    )
    saved = (_seconds(by_python, left, right) - _seconds(by_numba, left, right)) / len(left)
    return first / saved


def _seconds(work: Callable[..., int], *arrays: pa.Array[Any]) -> float:
    work(*(a.slice(0, 10) for a in arrays))
    start = time.perf_counter()
    work(*arrays)
    return time.perf_counter() - start
