"""Row ids: base ids for new files, and those that a concurrent commit has given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import _row_ids
from delta_core.kernels.arrow_buffers import array_of, is_valid, one_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LAST_ROW_ID", "assign_base_row_ids", "take_values"]

#: The greatest row id there can be.
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


def take_values(files: pa.Table, newer: pa.Table, fields: Sequence[str]) -> list[pa.Array]:
    """Return fields of files, with the values of other files of the same path if these have a value in the first field.

    Parameters
    ----------
    files, newer : pyarrow.Table, **n_files rows** and another number
        With a column ``path``, and the fields as int64.
    fields : sequence of str
        The fields, in the order of the result.

    Returns
    -------
    list of int64 array, shape (n_files,)
        One a field; empty if no value is taken.
    """
    first = is_valid(one_array(newer.column(fields[0])))
    known = {p: i for i, p in enumerate(newer.column("path").to_pylist()) if first[i]}
    rows = [known.get(p) for p in files.column("path").to_pylist()]
    taken = np.array([r is not None for r in rows], np.bool_)
    if not taken.any():
        return []
    index = array_of(rows, pa.int64())
    out = []
    for name in fields:
        mine, theirs = (one_array(t.column(name)) for t in (files, newer))
        found = theirs.take(index).to_pylist()
        values = [f if t else m for f, m, t in zip(found, mine.to_pylist(), taken.tolist(), strict=True)]
        out.append(array_of(values, pa.int64()))
    return out
