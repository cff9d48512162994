"""What the compiled kernels take of an Arrow string array: its buffers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.errors import InvalidArgumentError

__all__ = ["StringBuffers", "string_buffers"]

StringBuffers = tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None, int, int, bool]
"""Validity, offsets, data, array offset, length, and whether the offsets have 64 bits."""


def string_buffers(array: pa.Array[Any]) -> StringBuffers | None:
    """Return the buffers of a string or binary array, plain, large, dictionary-encoded or a view; None = all null.

    Notes
    -----
    Nothing is copied, but for dictionaries and views, which are decoded first.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
        kind = array.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise InvalidArgumentError(f"expected an array of strings, found {kind}")
    valid, offsets, data = array.buffers()
    return valid if array.null_count else None, offsets, data, array.offset, len(array), wide
