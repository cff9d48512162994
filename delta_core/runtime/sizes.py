"""How much memory rows take."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["num_bytes"]


def num_bytes(rows: pa.Array[Any] | pa.ChunkedArray[Any] | pa.RecordBatch | pa.Table) -> int:
    """Return about how many bytes rows take; PyArrow 18 can't count a part of a view, which newer versions can.

    Parameters
    ----------
    rows : pyarrow.Array, ChunkedArray, RecordBatch or Table, **n rows**
        Of any type; the null bits count too.

    Returns
    -------
    int
        In bytes. If there are views that PyArrow can't count, the bytes of all buffers, which are no fewer.
    """
    try:
        return int(rows.nbytes)
    except pa.ArrowTypeError:
        return int(rows.get_total_buffer_size())
