"""Texts of UUIDs as 16 bytes and back, compiled by Numba."""

from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.api import DataFileError, InvalidArgumentError
from delta_core.kernels.arrow_buffers import is_valid, string_buffers
from delta_core.kernels.jit import array_function

__all__ = ["pack", "unpack"]

_SIZE, _LENGTH = 16, 36


def pack(texts: pa.Array) -> pa.Array:
    """Return the bytes of UUIDs.

    Parameters
    ----------
    texts : pyarrow.Array, **shape (n,)**
        Of type string: UUIDs in lower case, or null.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of type binary: 16 bytes, null for null.

    Raises
    ------
    InvalidArgumentError
        For a text that is no UUID in lower case.
    """
    data, valid, wrong = _converted(texts, _SIZE, _pack)
    if wrong >= 0:
        raise InvalidArgumentError(f"Found {texts[wrong].as_py()!r}, expected a UUID in lower case.")
    return _array(pa.binary(), data, valid, _SIZE)


def unpack(values: pa.Array) -> pa.Array:
    """Return the texts of UUIDs.

    Parameters
    ----------
    values : pyarrow.Array, **shape (n,)**
        Of type binary: 16 bytes, or null.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of type string: UUIDs in lower case, null for null.

    Raises
    ------
    DataFileError
        For a value of another length.
    """
    data, valid, wrong = _converted(values, _LENGTH, _unpack)
    if wrong >= 0:
        raise DataFileError(f"Found a packed UUID of {len(values[wrong].as_py())} bytes, expected {_SIZE}.")
    return _array(pa.string(), data, valid, _LENGTH)


def _converted(values: pa.Array, size: int, convert: Any) -> tuple[Any, Any, int]:
    """Return the converted bytes, which values are not null, and the first value that can't be converted, or -1."""
    valid = is_valid(values)
    out = np.zeros(int(np.count_nonzero(valid)) * size, np.uint8)
    buffers = string_buffers(values)
    if buffers is None or not len(values):
        return out, valid, -1
    _, offsets, data, first, length, wide = buffers
    kind = np.dtype(np.int64 if wide else np.int32)
    ends = np.frombuffer(offsets, kind, length + 1, first * kind.itemsize)
    return out, valid, int(convert(out, ends, np.zeros(0, np.uint8) if data is None else data, valid))


def _array(kind: pa.DataType, data: Any, valid: Any, size: int) -> pa.Array:
    """Return an array of values of one size; nulls take no bytes."""
    offsets = np.zeros(len(valid) + 1, np.int64)
    np.cumsum(valid * size, out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise InvalidArgumentError(f"Found {offsets[-1]} bytes of UUIDs in a batch, expected less than 2 GB.")
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [mask, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])


# --- compiled ---


@array_function("int64(uint8)")
def _digit(character: Any) -> Any:
    """Return the value of a hexadecimal digit in lower case, -1 for another character."""
    if 48 <= character <= 57:
        return np.int64(character) - 48
    if 97 <= character <= 102:
        return np.int64(character) - 87
    return np.int64(-1)


@array_function("boolean(int64)")
def _is_hyphen(place: Any) -> Any:
    return place == 8 or place == 13 or place == 18 or place == 23


@array_function(
    "int64(uint8[::1], int32[::1], uint8[::1], boolean[::1])",
    "int64(uint8[::1], int64[::1], uint8[::1], boolean[::1])",
    out=["packed"],
)
def _pack(packed: Any, ends: Any, data: Any, valid: Any) -> Any:
    """Fill the bytes of all texts that are not null; return the first text that is no UUID, or -1."""
    to = 0
    for i in range(len(valid)):
        if not valid[i]:
            continue
        start = np.int64(ends[i])
        if np.int64(ends[i + 1]) - start != 36:
            return np.int64(i)
        high = np.int64(-1)
        for j in range(36):
            character = data[start + j]
            if _is_hyphen(j):
                if character != 45:
                    return np.int64(i)
                continue
            digit = _digit(character)
            if digit < 0:
                return np.int64(i)
            if high < 0:
                high = digit
            else:
                packed[to] = np.uint8(high * 16 + digit)
                high = np.int64(-1)
                to += 1
    return np.int64(-1)


@array_function(
    "int64(uint8[::1], int32[::1], uint8[::1], boolean[::1])",
    "int64(uint8[::1], int64[::1], uint8[::1], boolean[::1])",
    out=["texts"],
)
def _unpack(texts: Any, ends: Any, data: Any, valid: Any) -> Any:
    """Fill the texts of all values that are not null; return the first value that has another length, or -1."""
    to = 0
    for i in range(len(valid)):
        if not valid[i]:
            continue
        start = np.int64(ends[i])
        if np.int64(ends[i + 1]) - start != 16:
            return np.int64(i)
        for j in range(16):
            if j == 4 or j == 6 or j == 8 or j == 10:
                texts[to] = 45
                to += 1
            value = np.int64(data[start + j])
            for digit in (value >> 4, value & 15):
                texts[to] = digit + 48 if digit < 10 else digit + 87
                to += 1
    return np.int64(-1)
