"""Deletion files: which rows of a fragment are deleted. Protocol: DeletionFile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from delta_core.api import CorruptTableError, DataFileError, DataFileNotFoundError, RangeRequest, Storage
from delta_core.kernels.arrow_buffers import values_of
from delta_core.kernels.row_set import RowSet

__all__ = ["parse_deletions", "read_deletions"]

ARROW, BITMAP = 0, 1
_COLUMN = pa.schema([pa.field("row_id", pa.uint32(), False)])


def parse_deletions(data: bytes | memoryview, kind: int, path: str) -> RowSet:
    """Return the positions of deleted rows that a deletion file lists.

    Parameters
    ----------
    data : bytes-like
        The whole file.
    kind : 0 or 1
        0: an Arrow file with one batch of one column ``row_id``; 1: a portable roaring bitmap of 32 bits.
    path : str
        The file, for errors.

    Raises
    ------
    DataFileError
        If the file is damaged.
    """
    try:
        return RowSet.from_roaring(data, 32) if kind == BITMAP else _of_arrow(data)
    except (CorruptTableError, pa.ArrowException, ValueError, OSError) as e:
        raise DataFileError(
            f"Deletion file {path!r} is damaged: {e}. Restore the file from a copy.", path=path
        ) from None


def _of_arrow(data: bytes | memoryview) -> RowSet:
    reader = pa.ipc.open_file(pa.py_buffer(data))
    if not reader.schema.equals(_COLUMN):
        found = ", ".join(f"{f.name}: {f.type}{'' if f.nullable else ' not null'}" for f in reader.schema)
        raise ValueError(f"its columns are ({found}), expected (row_id: uint32 not null)")
    if reader.num_record_batches != 1:
        raise ValueError(f"it has {reader.num_record_batches} batches, expected one")
    batch = reader.get_batch(0)
    batch.validate(full=True)
    return RowSet.from_positions(values_of(batch.column(0)).astype(np.int64))


def read_deletions(
    storage: Storage, paths: Sequence[str], kinds: Sequence[int], num_deleted: Sequence[int], num_rows: Sequence[int]
) -> list[RowSet]:
    """Read deletion files, all together.

    Parameters
    ----------
    storage : Storage
        Where they are.
    paths : sequence of str, **shape (n,)**
        One file each.
    kinds : sequence of int, **shape (n,)**
        As of `parse_deletions`.
    num_deleted : sequence of int, **shape (n,)**
        The rows that each one lists, -1 = not known.
    num_rows : sequence of int, **shape (n,)**
        The rows of the fragments, deleted ones too.

    Raises
    ------
    DataFileNotFoundError
        If a file is missing.
    DataFileError
        If a file is damaged, or lists another number of rows, or rows that the fragment does not have.
    """
    try:
        found = storage.read([RangeRequest(p) for p in paths])
    except FileNotFoundError as e:
        missing = next((p for p in paths if str(e).find(p) >= 0), paths[0])
        raise DataFileNotFoundError(
            f"Deletion file {missing!r}, which the manifest names, is not there. If the dataset was cleaned up since "
            "it was opened, open its latest version; otherwise restore the file.",
            path=missing,
        ) from e
    rows = [parse_deletions(data, kind, path) for data, kind, path in zip(found, kinds, paths, strict=True)]
    for path, listed, expected, total in zip(paths, rows, num_deleted, num_rows, strict=True):
        last = listed.max
        why = None
        if expected not in (-1, listed.cardinality):
            why = f"it lists {listed.cardinality} rows, but the manifest {expected}"
        elif last is not None and last >= total:
            why = f"it lists row {last}, but the fragment has {total} rows"
        if why is not None:
            raise DataFileError(f"Deletion file {path!r} is damaged: {why}. Restore the file from a copy.", path=path)
    return rows
