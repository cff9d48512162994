"""Requested rows, and which of them lie in which pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from delta_core.api import InvalidArgumentError

__all__ = [
    "PageRows",
    "Rows",
    "batches_of",
    "page_rows",
    "positions_of",
    "positions_where",
    "ranges_of",
    "row_count",
    "rows_of_batches",
    "rows_of_tests",
]

#: All rows, those from a first to before a last one, or positions that rise.
Rows = tuple[int, int] | NDArray[np.int64] | None


#: Rows of a batch, if none are requested: the most, the bytes that they take, and the least.
BATCH_ROWS = 1 << 17
BATCH_BYTES = 64 << 20
LEAST_ROWS = 1024
#: Rows whose values are tested at once: the most, and the bytes that they take.
TESTED_ROWS = 1 << 20
TESTED_BYTES = 16 << 20


class PageRows(NamedTuple):
    """Requested rows of a page.

    Parameters
    ----------
    page : int
        Its number.
    ranges : int64, **shape (n, 2)**
        First row and the row after the last one of each range, counted from the page's first row; they rise.
    """

    page: int
    ranges: NDArray[np.int64]


def ranges_of(rows: Rows, num_rows: int) -> NDArray[np.int64]:
    """Return requested rows as ranges, **shape (n, 2)**.

    Raises
    ------
    InvalidArgumentError
        For rows that are not there, or positions that do not rise.
    """
    if rows is None:
        return np.array([[0, num_rows]], np.int64)
    if isinstance(rows, tuple):
        first, last = rows
        if not 0 <= first <= last <= num_rows:
            raise InvalidArgumentError(f"Rows {first} to {last} are requested of {num_rows}.", rows=rows)
        return np.array([[first, last]], np.int64)
    positions = np.ascontiguousarray(rows, np.int64)
    if not len(positions):
        return np.empty((0, 2), np.int64)
    gaps = np.diff(positions)
    if (gaps <= 0).any():
        raise InvalidArgumentError("Positions of rows have to rise, without duplicates.")
    if positions[0] < 0 or positions[-1] >= num_rows:
        wrong = int(positions[0] if positions[0] < 0 else positions[-1])
        raise InvalidArgumentError(f"Row {wrong} is requested of {num_rows}.", row=wrong)
    ends = np.flatnonzero(gaps > 1)
    found = np.empty((len(ends) + 1, 2), np.int64)
    found[0, 0] = positions[0]
    found[1:, 0] = positions[ends + 1]
    found[:-1, 1] = positions[ends] + 1
    found[-1, 1] = positions[-1] + 1
    return found


def row_count(ranges: NDArray[np.int64]) -> int:
    """Return how many rows ranges have."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def rows_of_batches(requested: int | None, row_bytes: float) -> int:
    """Return the rows of a batch: the requested number, or those that take `BATCH_BYTES`, at most `BATCH_ROWS`.

    Raises
    ------
    InvalidArgumentError
        If it is not positive.
    """
    if requested is None:
        return max(min(BATCH_ROWS, int(BATCH_BYTES / max(row_bytes, 1e-3))), LEAST_ROWS)
    if requested < 1:
        raise InvalidArgumentError(f"batch_rows is {requested}, expected 1 or more.")
    return requested


def rows_of_tests(row_bytes: float) -> int:
    """Return how many rows are tested at once."""
    return max(min(TESTED_ROWS, int(TESTED_BYTES / max(row_bytes, 1e-3))), LEAST_ROWS)


def positions_of(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the rows of ranges, in their order."""
    counts = ranges[:, 1] - ranges[:, 0]
    ends = np.cumsum(counts)
    found: NDArray[np.int64] = np.arange(row_count(ranges)) + np.repeat(ranges[:, 0] - (ends - counts), counts)
    return found


def positions_where(ranges: NDArray[np.int64], flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the positions of the rows of ranges that have a flag."""
    indices = np.flatnonzero(flags)
    if not len(indices) or len(ranges) > 1:
        return positions_of(ranges)[indices] if len(indices) else indices
    found: NDArray[np.int64] = indices + ranges[0, 0]
    return found


def batches_of(ranges: NDArray[np.int64], batch_rows: int) -> Iterator[NDArray[np.int64]]:
    """Cut ranges into parts of at most ``batch_rows`` rows."""
    counts = np.cumsum(ranges[:, 1] - ranges[:, 0])
    total = int(counts[-1]) if len(counts) else 0
    if 0 < total <= batch_rows:
        yield ranges
        return
    for start in range(0, total, batch_rows):
        yield _cut(ranges, counts, start, min(start + batch_rows, total))


def _cut(ranges: NDArray[np.int64], counts: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
    """Return the ranges of rows start to stop, counted over all ranges; ``counts`` is where each range ends."""
    first = int(np.searchsorted(counts, start, "right"))
    last = int(np.searchsorted(counts, stop, "left"))
    found = ranges[first : last + 1].copy()
    found[0, 0] += start - (int(counts[first - 1]) if first else 0)
    found[-1, 1] -= int(counts[last]) - stop
    return found


def page_rows(ranges: NDArray[np.int64], starts: NDArray[np.int64]) -> list[PageRows]:
    """Return the rows of each page that has some.

    Parameters
    ----------
    ranges : int64, **shape (n, 2)**
        Rows of the column; they rise.
    starts : int64, **shape (pages + 1,)**
        The first row of each page, and the number of rows.
    """
    ranges = ranges[ranges[:, 0] < ranges[:, 1]]
    if not len(ranges):
        return []
    if len(starts) == 2 and len(ranges) == 1:
        # most small files have one page a column
        part = np.clip(ranges, starts[0], starts[1]) - starts[0]
        return [PageRows(0, part)] if part[0, 0] < part[0, 1] else []
    found = []
    first_page = int(np.searchsorted(starts, ranges[0, 0], "right")) - 1
    last_page = int(np.searchsorted(starts, ranges[-1, 1], "left"))
    # the first range that ends after a page's first row, and the first one that begins after its last
    first = np.searchsorted(ranges[:, 1], starts[:-1], "right")
    last = np.searchsorted(ranges[:, 0], starts[1:], "left")
    for page in range(first_page, last_page):
        a, b = int(first[page]), int(last[page])
        if a < b and starts[page] < starts[page + 1]:
            part = np.clip(ranges[a:b], starts[page], starts[page + 1]) - starts[page]
            found.append(PageRows(page, np.ascontiguousarray(part)))
    return found
