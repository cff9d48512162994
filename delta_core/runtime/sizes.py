"""How much memory rows take, and bytes as people read them."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

__all__ = ["num_bytes", "size_text"]


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


def size_text(size: float) -> str:
    """Return bytes in a unit that suits them, such as ``1.5 MiB``.

    Parameters
    ----------
    size : float
        The bytes.
    """
    if size < 1024:
        return f"{size:.0f} B"
    power = min(int(math.log2(size) // 10), 6)
    return f"{size / 1024**power:.1f} {'KMGTPE'[power - 1]}iB"
