"""The checksum: Spark's ``xxhash64`` of a row's columns (XXH64, seed 42), compiled by Numba.

A row's sum after one column is the seed of the next column; a null leaves it as it is.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError, UnsupportedExpressionError
from delta_core.kernels.arrow_buffers import is_valid, mask_of, number_array, string_buffers, values_of
from delta_core.kernels.jit import array_function

__all__ = ["result_type", "row_checksum"]

Sums = NDArray[np.uint64]
Valid = NDArray[np.bool_]
_SEED = np.uint64(42)
_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_FOUR, _EIGHT, _BITS = np.uint64(4), np.uint64(8), np.uint64(64)


def row_checksum(*columns: pa.Array) -> pa.Array:
    """Return the checksum of each row.

    Parameters
    ----------
    columns : pyarrow.Array, **shape (num_rows,)**
        At least one.

    Returns
    -------
    int64, **shape (num_rows,)**, never null.
    """
    sums = np.full(len(columns[0]), _SEED)
    for column in columns:
        _add(sums, column)
    return number_array(sums.view(np.int64))


def result_type(types: list[pa.DataType]) -> pa.DataType:
    """Return the type of the checksum of columns of these types.

    Raises
    ------
    UnsupportedExpressionError
        If a column is a map, or has one in it.
    """
    for t in types:
        if pa.types.is_map(t):
            raise UnsupportedExpressionError("A map has no checksum: its entries have no order. Cover other columns.")
        result_type([t.field(i).type for i in range(t.num_fields)])
    return pa.int64()


def _add(sums: Sums, array: pa.Array) -> None:
    """Continue the sums with one more column."""
    t = array.type
    if pa.types.is_null(t):
        return
    if pa.types.is_struct(t):
        for field in array.flatten():
            _add(sums, field)
    elif pa.types.is_list(t) or pa.types.is_large_list(t):
        _add_list(sums, array)
    elif pa.types.is_decimal128(t):
        data = values_of(pa.Array.from_buffers(pa.uint64(), 2 * len(array), array.buffers(), 0, 2 * array.offset))
        add = _add_longs if t.precision <= 18 else _add_decimals
        add(sums, np.ascontiguousarray(data[::2]).view(np.int64) if t.precision <= 18 else data, is_valid(array))
    elif pa.types.is_primitive(t):
        _add_numbers(sums, array)
    else:
        _add_texts_of(sums, array)


def _add_numbers(sums: Sums, array: pa.Array) -> None:
    values = mask_of(array) if pa.types.is_boolean(array.type) else values_of(array)
    if values.dtype.kind == "f":
        # one zero and one NaN
        bits = np.int32 if values.dtype.itemsize == 4 else np.int64
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0)).view(bits)
    if values.dtype.itemsize == 8:
        _add_longs(sums, values, is_valid(array))
    else:
        _add_ints(sums, np.ascontiguousarray(values, np.int32), is_valid(array))


def _add_texts_of(sums: Sums, array: pa.Array) -> None:
    buffers = string_buffers(array)
    if buffers is None or not len(array):
        return
    _, offsets, data, first, length, wide = buffers
    kind = np.dtype(np.int64 if wide else np.int32)
    ends = np.frombuffer(offsets, kind, length + 1, first * kind.itemsize)
    if not _add_texts(sums, ends, data, is_valid(array)):
        raise DataFileError("A string column's offsets do not fit its bytes.")


def _add_list(sums: Sums, array: pa.Array) -> None:
    starts = values_of(array.offsets)
    lengths = np.where(is_valid(array), np.diff(starts), 0)
    for i in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > i)
        longer = sums[rows]
        _add(longer, array.values.take(number_array(starts[rows] + i)))
        sums[rows] = longer


# --- compiled ---


@array_function("uint64(uint64, uint64)")
def _rotate(x: Any, bits: Any) -> Any:
    return (x << bits) | (x >> (_BITS - bits))


@array_function("uint64(uint64)")
def _finish(h: Any) -> Any:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@array_function("uint64(uint64, uint64)")
def _mix_long(h: Any, k: Any) -> Any:
    return _rotate(h ^ (_rotate(k * _P2, 31) * _P1), 27) * _P1 + _P4


@array_function("uint64(uint64, uint64)")
def _mix_int(h: Any, k: Any) -> Any:
    return _rotate(h ^ (k * _P1), 23) * _P2 + _P3


@array_function("void(uint64[::1], int32[::1], boolean[::1])", out=["sums"])
def _add_ints(sums: Any, values: Any, valid: Any) -> None:
    for i in range(len(sums)):
        if valid[i]:
            sums[i] = _finish(_mix_int(sums[i] + _P5 + _FOUR, np.uint64(np.uint32(values[i]))))


@array_function("void(uint64[::1], int64[::1], boolean[::1])", out=["sums"])
def _add_longs(sums: Any, values: Any, valid: Any) -> None:
    for i in range(len(sums)):
        if valid[i]:
            sums[i] = _finish(_mix_long(sums[i] + _P5 + _EIGHT, np.uint64(values[i])))


# its callers check that all indices are within the data
@array_function("uint64(uint8[::1], int64, int64)", check_bounds=False)
def _number(data: Any, at: Any, size: Any) -> Any:
    """Read a little-endian number of so many bytes."""
    number = np.uint64(0)
    for i in range(size):
        number |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return number


@array_function("uint64(uint8[::1], int64, int64, uint64)", check_bounds=False)
def _text(data: Any, at: Any, end: Any, seed: Any) -> Any:
    """Sum the bytes from ``at`` to ``end``."""
    length = np.uint64(end - at)
    if end - at >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while end - at >= 32:
            a = _rotate(a + _number(data, at, 8) * _P2, 31) * _P1
            b = _rotate(b + _number(data, at + 8, 8) * _P2, 31) * _P1
            c = _rotate(c + _number(data, at + 16, 8) * _P2, 31) * _P1
            d = _rotate(d + _number(data, at + 24, 8) * _P2, 31) * _P1
            at += 32
        h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
    else:
        h = seed + _P5
    h += length
    while end - at >= 8:
        h = _mix_long(h, _number(data, at, 8))
        at += 8
    if end - at >= 4:
        h = _mix_int(h, _number(data, at, 4))
        at += 4
    while at < end:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _finish(h)


@array_function(
    "boolean(uint64[::1], int32[::1], uint8[::1], boolean[::1])",
    "boolean(uint64[::1], int64[::1], uint8[::1], boolean[::1])",
    out=["sums"],
)
def _add_texts(sums: Any, ends: Any, data: Any, valid: Any) -> Any:
    """Return False if an offset leads outside the data."""
    for i in range(len(sums)):
        start, end = np.int64(ends[i]), np.int64(ends[i + 1])
        if not 0 <= start <= end <= len(data):
            return False
        if valid[i]:
            sums[i] = _text(data, start, end, sums[i])
    return True


@array_function("void(uint64[::1], uint64[::1], boolean[::1])", out=["sums"])
def _add_decimals(sums: Any, words: Any, valid: Any) -> None:
    """Continue with the fewest bytes of each number, the highest first, as Java's BigInteger.toByteArray does."""
    text = np.zeros(16, np.uint8)
    for i in range(len(sums)):
        if valid[i]:
            for j in range(16):
                text[15 - j] = (words[2 * i + j // 8] >> np.uint64(8 * (j % 8))) & np.uint64(255)
            first, fill = 0, 255 if text[0] >= 128 else 0
            while first < 15 and text[first] == fill and (text[first + 1] >= 128) == (fill == 255):
                first += 1
            sums[i] = _text(text, first, 16, sums[i])
