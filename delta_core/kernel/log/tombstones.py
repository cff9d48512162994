"""Tombstones to row groups of a checkpoint. Protocol: Action Reconciliation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, one_array, values_of

__all__ = ["remove_groups", "retained"]


def retained(removes: pa.Table, oldest_ms: int) -> pa.Table:
    """Return the tombstones that have not expired: those deleted after a time. One without a time is taken for old.

    Parameters
    ----------
    removes : pyarrow.Table, **n rows**
        The tombstones, with ``deletionTimestamp`` (ms since the epoch).
    oldest_ms : int
        The time, in milliseconds since the epoch.
    """
    deleted = pc.fill_null(one_array(removes.column("deletionTimestamp")), np.iinfo(np.int64).min)
    keep = values_of(deleted) > oldest_ms
    return removes if keep.all() else pc.filter(removes, bool_array(keep))


def remove_groups(tables: Iterable[pa.Table], kind: pa.DataType, rows: int) -> Iterator[pa.ChunkedArray]:
    """Yield tombstones as the ``remove`` column of a checkpoint, a row group at a time.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Tombstones, a row each.
    kind : pyarrow.DataType
        The struct type of the column.
    rows : int
        The most rows of a row group.
    """
    chunks: list[pa.Array] = []
    for table in tables:
        column = pa.chunked_array([c for batch in table.to_batches() if len(c := _removes(batch, kind))], kind)
        for start in range(0, len(column), rows):
            piece = column.slice(start, rows)
            if sum(map(len, chunks)) + len(piece) > rows:
                yield pa.chunked_array(chunks, kind)
                chunks = []
            chunks += piece.chunks
    if chunks:
        yield pa.chunked_array(chunks, kind)


def _removes(batch: pa.RecordBatch, kind: pa.DataType) -> pa.StructArray:
    arrays = []
    for f in kind:
        if f.name == "dataChange":  # what is in a checkpoint changes no data
            arrays.append(bool_array(np.zeros(batch.num_rows, bool)))
        else:
            column = batch.column(f.name)
            arrays.append(column if column.type == f.type else pc.cast(column, f.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))
