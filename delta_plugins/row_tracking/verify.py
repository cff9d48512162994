"""Row ids of all files: present once they are relied upon, below the high water mark, and of one row each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from delta_core.api import FileCheck, Finding, TableCheck, TableState, UniqueCheck
from delta_core.kernels.arrow_buffers import is_valid, values_of
from delta_plugins.row_tracking.write import NAME, SWITCH, high_water_mark

__all__ = ["checks"]

_ADVICE = "Rows can no longer be told apart by their ids: write the rows of the file again."


def checks(table: TableState) -> list[TableCheck]:
    """Return the checks of a table's row ids: those of files and, if they are relied upon, those of rows.

    Protocol
    --------
    Row Tracking
    """
    is_active = table.is_active(NAME)
    find = partial(_check_files, is_active=is_active, mark=high_water_mark(table))
    of_files = FileCheck(NAME, ("baseRowId", "defaultRowCommitVersion", "numRecords"), find)
    return [of_files, UniqueCheck(NAME, "_row_id", "row-ids-repeated", _ADVICE)] if is_active else [of_files]


def _check_files(files: pa.Table, is_active: bool, mark: int) -> Iterator[Finding]:
    first, counts = (files.column(n).combine_chunks() for n in ("baseRowId", "numRecords"))
    paths = files.column("path")
    if is_active:
        for name in ("baseRowId", "defaultRowCommitVersion"):
            for row in np.flatnonzero(~is_valid(files.column(name).combine_chunks())).tolist():
                yield Finding(
                    "row-ids-missing",
                    f"no {name}",
                    f"{name}, since {SWITCH} is true",
                    "Write the rows of the file again.",
                    "error",
                    paths[row].as_py(),
                )
    known = np.flatnonzero(is_valid(first) & is_valid(counts))
    known = known[values_of(counts)[known] > 0]
    known = known[np.argsort(values_of(first)[known], kind="stable")]
    start = values_of(first)[known].astype(np.int64)
    last = start + values_of(counts)[known] - 1
    for i in np.flatnonzero(last > mark).tolist():
        yield Finding(
            "row-ids-above-mark",
            f"row ids up to {last[i]}",
            f"ids up to the high water mark, {mark}",
            "Later rows may get the same ids: write the rows of the file again.",
            "error",
            paths[int(known[i])].as_py(),
        )
    # the highest id of all files that begin earlier
    before = np.maximum.accumulate(last)
    for i in (np.flatnonzero(start[1:] <= before[:-1]) + 1).tolist():
        yield Finding(
            "row-ids-overlap",
            f"row ids {start[i]} to {last[i]}, which rows of another file have too",
            "ids of its own for each row",
            _ADVICE,
            "error",
            paths[int(known[i])].as_py(),
        )
