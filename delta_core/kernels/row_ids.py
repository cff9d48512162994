"""Row ids: base ids for new files, and the ids of a file's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels import _row_ids
from delta_core.kernels.arrow_buffers import int64_values, is_valid

__all__ = ["assign_base_row_ids", "materialise_row_ids"]

LAST_ROW_ID = 2**63 - 1


def assign_base_row_ids(
    num_records: ArrayLike, high_water_mark: int, valid: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], int]:
    """Give each file a base row id, one after the other.

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


def materialise_row_ids(
    base_row_id: int | None, first_position: int, num_rows: int, materialised: pa.Array[Any] | None = None
) -> pa.Array[Any]:
    """Return the row ids of a batch of consecutive rows: the stored one, else base row id + position in the file.

    Parameters
    ----------
    base_row_id : int or None
        None = the file has none: rows without a stored id get null.
    first_position : int
        Position in the file of the batch's first row.
    materialised : int64 array, **shape (num_rows,)**, optional
        The materialised column; None = the file lacks it.

    Returns
    -------
    int64 array, **shape (num_rows,)**

    Raises
    ------
    CorruptTableError
        An id passes 2**63 - 1.

    Protocol
    --------
    Row IDs
    """
    if materialised is not None and (len(materialised) != num_rows or materialised.type != pa.int64()):
        raise InvalidArgumentError(
            f"materialised row ids are {num_rows} int64 values, not {len(materialised)} of {materialised.type}"
        )
    if base_row_id is None:
        return pa.nulls(num_rows, pa.int64()) if materialised is None else materialised
    first = base_row_id + first_position
    if first < 0 or first + num_rows - 1 > LAST_ROW_ID:
        raise CorruptTableError(
            f"row ids {first} to {first + num_rows - 1} (base row id {base_row_id}) aren't within 0 and 2**63 - 1"
        )
    if materialised is None:
        out = np.arange(first, first + num_rows, dtype=np.int64)
    else:
        out = np.empty(num_rows, np.int64)
        _row_ids.materialise(first, int64_values(materialised), is_valid(materialised).view(np.uint8), out)
    return pa.Array.from_buffers(pa.int64(), num_rows, [None, pa.py_buffer(out)])
