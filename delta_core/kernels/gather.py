"""Rows of a batch picked by index, dictionary encoded strings decoded on the way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["gather"]


def gather(batch: pa.RecordBatch, rows: NDArray[np.int32] | None) -> pa.RecordBatch:
    """placeholder"""
    if rows is not None:
        batch = batch.take(pa.array(rows))
    if not any(pa.types.is_dictionary(c.type) for c in batch.columns):
        return batch
    arrays = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)
