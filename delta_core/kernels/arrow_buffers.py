"""Arrow arrays as what the compiled kernels take and give: buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.errors import InvalidArgumentError

__all__ = ["StringBuffers", "int64_values", "is_valid", "plain_strings", "string_array", "string_buffers"]

StringBuffers = tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None, int, int, bool]
"""Validity, offsets, data, array offset, length, and whether the offsets have 64 bits."""


def plain_strings(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return the strings of a dictionary or view array as an array with offsets; others as they are."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    return array


def string_buffers(array: pa.Array[Any]) -> StringBuffers | None:
    """Return the buffers of a string or binary array of any layout; None = all null.

    Notes
    -----
    Nothing is copied, but for dictionaries and views, which are decoded first.
    """
    array = plain_strings(array)
    kind = array.type
    if pa.types.is_null(kind):
        return None
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise InvalidArgumentError(f"expected an array of strings, found {kind}")
    valid, offsets, data = array.buffers()
    return valid if array.null_count else None, offsets, data, array.offset, len(array), wide


def is_valid(array: pa.Array[Any]) -> NDArray[np.bool_]:
    """Return which values are not null, without pyarrow.compute, which takes 30 ms to import."""
    valid = array.buffers()[0]
    if valid is None or not array.null_count:
        return np.full(len(array), not pa.types.is_null(array.type))
    first, skipped = divmod(array.offset, 8)
    bits = np.frombuffer(valid, np.uint8)[first : first + (skipped + len(array) + 7) // 8]
    return np.unpackbits(bits, bitorder="little")[skipped : skipped + len(array)].view(np.bool_)


def int64_values(array: pa.Array[Any]) -> NDArray[np.int64]:
    """Return the values of an int32 or int64 array (or an all-null one), whatever stands where it is null."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if array.type not in (pa.int32(), pa.int64()):
        raise InvalidArgumentError(f"expected an array of int32 or int64, found {array.type}")
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), np.int64)
    values = np.frombuffer(data, np.int32 if array.type == pa.int32() else np.int64)
    return np.ascontiguousarray(values[array.offset : array.offset + len(array)], np.int64)


def string_array(
    offsets: NDArray[np.int64], data: bytes | NDArray[np.uint8], valid: NDArray[np.bool_]
) -> pa.Array[Any]:
    """Build a string array (large only where it must be) from its offsets, bytes and validity."""
    wide = len(data) >= 2**31
    ends = offsets if wide else offsets.astype(np.int32)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.large_string() if wide else pa.string(),
        len(offsets) - 1,
        [bits, pa.py_buffer(ends), pa.py_buffer(data)],
    )
