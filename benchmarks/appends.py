"""Appends to an open table, the same for every side: 10 rows a commit, 200 commits."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

__all__ = ["COMMITS", "appending", "copied", "five_columns", "three_columns"]

COMMITS = 200
WARM_UP = 3


# not at import: PyArrow imports pandas for the first array that it makes of Python values, which takes 60 MB
@cache
def three_columns() -> pa.Table:
    """Return rows of the table without files."""
    numbers, texts = [i / 2 for i in range(10)], [f"text {i}" for i in range(10)]
    return pa.table({"id": pa.array(range(10), pa.int64()), "v": pa.array(numbers), "s": pa.array(texts)})


@cache
def five_columns() -> pa.Table:
    """Return rows of the tables of a million files."""
    ids, amounts, names = three_columns().columns
    instants = pa.array([datetime(2024, 5, 6, tzinfo=UTC)] * 10, pa.timestamp("us", tz="UTC"))
    days = pa.array([date(2022, 3, 17)] * 10)
    return pa.table({"id": ids, "ts": instants, "amount": amounts, "name": names, "event_date": days})


def appending(
    open_table: Callable[[str], Any],
    write: Callable[..., Any],
    rows: pa.Table,
    table: Path,
    small: Path,
    commits: int = COMMITS,
) -> Callable[[], float]:
    """Return work that appends to a copy of a table, which is open already; it answers with the version reached."""
    with copied(small) as folder:
        _append(write, open_table(str(folder)), rows, WARM_UP)
    stack = ExitStack()
    atexit.register(stack.close)
    opened = open_table(str(stack.enter_context(copied(table))))
    _append(write, opened, rows, WARM_UP)
    return lambda: _append(write, opened, rows, commits)


def _append(write: Callable[..., Any], table: Any, rows: pa.Table, commits: int) -> float:
    for _ in range(commits):
        write(table, rows, mode="append")
    version: int = table.version()
    return version


@contextmanager
def copied(table: Path) -> Iterator[Path]:
    """Return a copy of a table on the same disk, for a while; files are linked, since none is ever changed in place."""
    with TemporaryDirectory(dir=table.parent, prefix=f"{table.name}-copy-") as folder:
        shutil.copytree(table, folder, copy_function=os.link, dirs_exist_ok=True)
        yield Path(folder)
