"""Bounds of decimals that some writers round: deltalake, and what is built on it, records them as doubles.

Only 15 digits survive a double, so the least value of a file may be smaller than its recorded minimum. Decimals without
digits after the point are cut to 64 bits instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import is_valid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = tuple[NDArray[np.int64], NDArray[np.uint64]]

__all__ = ["is_rounded", "widen_bounds"]

#: Digits that survive a double, and the part of a value that rounding it several times may change.
_DIGITS = 15
_ERROR = 2.0**-50
_WORD = 2.0**64
_LEAST, _MOST = -(2**63), 2**63 - 1


def is_rounded(type: pa.DataType) -> bool:
    """Whether recorded bounds of a type may be rounded.

    Parameters
    ----------
    type : pyarrow.DataType
        The Arrow type of a column.
    """
    return bool(pa.types.is_decimal128(type)) and type.precision > _DIGITS


def widen_bounds(column: pa.Array[Any], is_high: bool) -> pa.Array[Any]:
    """Return bounds that hold whether or not their writer rounded them; null (unknown) if it may have cut them.

    Parameters
    ----------
    column : pyarrow.Array
        Least or greatest values of files; returned as it is unless `is_rounded` of its type.
    is_high : bool
        Whether they are the greatest values.
    """
    t = column.type
    if not is_rounded(t) or column.null_count == len(column):
        return column
    words = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1].view(np.int64)
    size = np.abs(high.astype(np.float64) * _WORD + low)
    margin = np.where(size < 10.0**_DIGITS, 0.0, np.ceil(size * _ERROR))
    more_high = np.floor(margin / _WORD)
    more_low = (margin - more_high * _WORD).astype(np.uint64)
    more_high = more_high.astype(np.int64)
    limit = 10**t.precision - 1
    if is_high:
        new_low = low + more_low
        new_high = high + more_high + (new_low < low)
        beyond = _is_above((new_high, new_low), limit)
    else:
        new_low = low - more_low
        new_high = high - more_high - (low < more_low)
        limit = -limit
        beyond = ~_is_above((new_high, new_low), limit - 1)
    new_high[beyond], new_low[beyond] = _words_of(limit)
    cut = np.zeros(len(column), np.bool_)
    if t.scale == 0:
        cut_high, cut_low = _words_of(_MOST if is_high else _LEAST)
        cut = (high == cut_high) & (low == cut_low)
    wide = np.stack([new_low, new_high.view(np.uint64)], axis=1)
    return _decimals(wide, t, is_valid(column) & ~cut)


def _is_above(words: Words, value: int) -> NDArray[np.bool_]:
    high, low = _words_of(value)
    found: NDArray[np.bool_] = (words[0] > high) | ((words[0] == high) & (words[1] > low))
    return found


def _words_of(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (2**64 - 1))


def _decimals(words: NDArray[np.uint64], t: pa.DataType, valid: NDArray[np.bool_]) -> pa.Array[Any]:
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(t, len(words), [bits, pa.py_buffer(np.ascontiguousarray(words))])
