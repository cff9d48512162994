"""Rows of a batch picked by index, with dictionary encoded strings turned into plain ones on the way.

Columns of fixed width, booleans and strings go through compiled code in one pass each; nested and other columns
through Arrow's ``take``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.kernels import _gather
from delta_core.kernels.arrow_buffers import number_array
from delta_core.kernels.memory import allocate
from delta_core.kernels.nested import empty_rows

__all__ = ["check_rows", "gather", "gather_column"]

_WIDTHS = (1, 2, 4, 8, 16)
Rows = NDArray[np.int32]


def gather(batch: pa.RecordBatch, rows: Rows | None) -> pa.RecordBatch:
    """Return rows of a batch, in the order of their indices.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, **num_rows rows**
        Columns of type ``dictionary<int32, string>`` come back as strings.
    rows : int32, **shape (n,)**, or None
        Indices below ``num_rows``; None: all rows, and columns that need no decoding are passed through.

    Raises
    ------
    InvalidArgumentError
        An index that is no row.
    DataFileError
        Offsets or dictionary codes that lead outside their column.
    """
    if rows is not None:
        check_rows(rows, batch.num_rows)
        if not batch.num_columns:
            return empty_rows(len(rows))
    elif not any(pa.types.is_dictionary(t) for t in batch.schema.types):
        return batch
    arrays = [gather_column(c, rows) for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def check_rows(rows: Rows, num_rows: int) -> None:
    """Refuse indices that are not rows of a batch of so many, with InvalidArgumentError."""
    _gather.check_rows(rows, num_rows)


def gather_column(array: pa.Array[Any], rows: Rows | None, decode: bool = True) -> pa.Array[Any]:
    """Return rows of one column; ``rows`` were checked (`check_rows`). See `gather`.

    ``decode`` false leaves dictionary encoded strings as they are.
    """
    t = array.type
    if pa.types.is_dictionary(t):
        if not decode:
            return array if rows is None else _codes(array, rows)
        if t.index_type != pa.int32() or t.value_type != pa.string() or array.dictionary.null_count:
            plain = array.dictionary_decode()
            return plain if rows is None else gather_column(plain, rows)
        return _text(array, rows, array.dictionary)
    if rows is None:
        return array
    if pa.types.is_string(t) or pa.types.is_binary(t):
        return _text(array, rows, None)
    if pa.types.is_boolean(t):
        data = allocate((len(rows) + 7) // 8)
        _gather.bits(array.buffers()[1], array.offset, len(array), rows, data)
        return _built(t, array, rows, [data])
    if pa.types.is_primitive(t) or pa.types.is_decimal128(t):
        width = t.bit_width // 8
        data = allocate(len(rows) * width)
        _gather.fixed(array.buffers()[1], array.offset, len(array), width, rows, data)
        return _built(t, array, rows, [data])
    return array.take(number_array(rows))


def _codes(array: pa.Array[Any], rows: Rows) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(gather_column(array.indices, rows), array.dictionary, safe=False)


def _text(array: pa.Array[Any], rows: Rows | None, dictionary: pa.Array[Any] | None) -> pa.Array[Any]:
    strings = array if dictionary is None else dictionary
    _, offsets, data = strings.buffers()
    valid, first = array.buffers()[:2]
    valid = valid if array.null_count else None
    codes, start = (None, 0) if dictionary is None else (first, array.offset)
    out = _gather.text(
        offsets, data, strings.offset, len(strings), codes, start, valid, array.offset, len(array), rows
    )
    return _built(strings.type, array, rows, list(out))


def _built(t: pa.DataType, array: pa.Array[Any], rows: Rows | None, buffers: list[pa.Buffer]) -> pa.Array[Any]:
    n = len(array) if rows is None else len(rows)
    if not array.null_count:
        return pa.Array.from_buffers(t, n, [None, *buffers], 0)
    valid = allocate((n + 7) // 8)
    set_bits = _gather.bits(array.buffers()[0], array.offset, len(array), rows, valid)
    return pa.Array.from_buffers(t, n, [valid, *buffers], n - set_bits)
