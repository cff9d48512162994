"""Appends to an open table, the same for every side: 10 rows a commit, 200 commits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pyarrow as pa

__all__ = ["COMMITS", "appending", "copied", "delete_kept_copies", "five_columns", "three_columns"]

COMMITS = 200
WARM_UP = 3
_KEPT = "-copy-kept-"


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
    _append(write, open_table(str(_kept_copy(small))), rows, WARM_UP)
    opened = open_table(str(_kept_copy(table)))
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
        _link_all(table, folder)
        yield Path(folder)


def _kept_copy(table: Path) -> Path:
    """Return a copy that is there until the case has run: ext4 does not use the number of a file again for minutes
    after it was deleted, and looks at each such number when it creates a file, which then takes ten times as long."""
    folder = mkdtemp(dir=table.parent, prefix=f"{table.name}{_KEPT}")
    _link_all(table, folder)
    return Path(folder)


def delete_kept_copies(tables: Path) -> None:
    """Delete the copies that a case left."""
    for folder in tables.glob(f"*{_KEPT}*"):
        shutil.rmtree(folder)


def _link_all(table: Path, folder: str) -> None:
    shutil.copytree(table, folder, copy_function=os.link, dirs_exist_ok=True)
