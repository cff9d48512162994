"""Row ids: base ids for new files."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import _row_ids

__all__ = ["assign_base_row_ids"]

LAST_ROW_ID = 2**63 - 1


def assign_base_row_ids(
    num_records: ArrayLike, high_water_mark: int, valid: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], int]:
    """Assign each file a base row id, one after the other.

    Parameters
    ----------
    num_records : int64[n_files]
        Physical rows of each file, deleted ones included.
    high_water_mark : int
        The highest id given so far, -1 when none was.
    valid : bool[n_files], optional
        False = the file has no `numRecords`.

    Returns
    -------
    base_row_ids : int64[n_files]
    high_water_mark : int
        The new one.

    Raises
    ------
    InvalidArgumentError
        A file without `numRecords` or with a negative one, or the ids run out; ``row`` is the file's index.

    Protocol
    --------
    Row IDs
    """
    counts = np.ascontiguousarray(num_records, np.int64)
    known = np.ones(len(counts), np.uint8) if valid is None else np.ascontiguousarray(valid).view(np.uint8)
    if counts.ndim != 1 or known.shape != counts.shape or not -1 <= high_water_mark <= LAST_ROW_ID:
        raise InvalidArgumentError(
            f"row ids are given from one count per file and a mark of -1 to 2**63 - 1, not from {counts.shape} counts, "
            f"{known.shape} validities and the mark {high_water_mark}"
        )
    base = np.empty(len(counts), np.int64)
    mark, bad = _row_ids.assign(counts, known, high_water_mark, base)
    if bad >= 0:
        found = counts[bad] if known[bad] else "missing"
        raise InvalidArgumentError(
            f"file {bad} can't have row ids after {mark}: its numRecords is {found}, "
            f"expected 0 to {LAST_ROW_ID - max(mark, 0)}. Add the file with statistics",
            row=bad,
        )
    return base, mark
