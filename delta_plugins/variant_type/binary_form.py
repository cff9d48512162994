"""Variants as Arrow arrays: to JSON text, and from the shredded layouts that files may store to the binary form.

Protocol: Variant Data Type, Variant Shredding; the bytes are those of Parquet's variant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, string_array
from delta_plugins.variant_type import _variant

__all__ = ["to_json", "unshred"]

#: Header byte of each primitive that is stored as it lies in Arrow, and its width.
_FIXED = {
    pa.int8(): (3, 1),
    pa.int16(): (4, 2),
    pa.int32(): (5, 4),
    pa.int64(): (6, 8),
    pa.float64(): (7, 8),
    pa.date32(): (11, 4),
    pa.timestamp("us", "UTC"): (12, 8),
    pa.timestamp("us"): (13, 8),
    pa.float32(): (14, 4),
    pa.time64("us"): (17, 8),
    pa.timestamp("ns", "UTC"): (18, 8),
    pa.timestamp("ns"): (19, 8),
    pa.binary(16): (20, 16),
}
_BINARY, _STRING = 15, 16
#: A decimal's header byte and width by its highest precision.
_DECIMALS = ((9, 8, 4), (18, 9, 8), (38, 10, 16))

_Bytes = NDArray[np.uint8]


def to_json(array: pa.StructArray) -> pa.Array[Any]:
    """Return each variant's JSON text.

    Parameters
    ----------
    array : struct of ``metadata`` and ``value``, shape (n,)
        Unshredded; null rows stay null.

    Returns
    -------
    string, shape (n,)
        As Spark's ``to_json`` in time zone UTC: no spaces, fields in stored order, decimals without an exponent or
        zeros at the end, timestamps as ``"2024-01-31 10:00:00+00:00"``, binary as base64; NaN and infinities as
        strings.

    Raises
    ------
    DataFileError
        Bytes that are not a variant.
    """
    valid = is_valid(array)
    value = _binary(array.field("value"))
    try:
        text, ends = _variant.to_json(_binary(array.field("metadata")), (*value[:2], valid.view(np.uint8)), len(array))
        out = string_array(ends, text, valid)
        out.validate(full=True)  # text of strings is copied as it is: it must be UTF-8
    except (ValueError, pa.ArrowInvalid) as e:
        raise DataFileError(f"A variant column holds bytes that are not a variant: {e}.") from e
    return out


def unshred(array: pa.Array[Any]) -> pa.StructArray:
    """Return variants as struct of ``metadata`` and ``value``, from any layout that a file may store.

    Parameters
    ----------
    array : struct, shape (n,)
        ``metadata`` (binary), and ``value`` (binary) or ``typed_value`` or both, in any order. ``typed_value`` is of
        any type that shredding supports: a primitive, a list, or a struct with a group a field.

    Raises
    ------
    DataFileError
        The layout is none of a variant's, or its bytes are not.
    """
    if not pa.types.is_struct(array.type) or array.type.get_field_index("metadata") < 0:
        raise DataFileError(f"A variant column is stored as {array.type}, expected a struct with metadata and value.")
    valid = is_valid(array)
    metadata = array.field("metadata")
    if array.type.get_field_index("typed_value") < 0:
        if array.type.get_field_index("value") < 0:
            raise DataFileError(f"A variant column is stored as {array.type}, expected a field value or typed_value.")
        value = array.field("value")
        if not is_valid(value)[valid].all():
            raise DataFileError("A variant column has a row without a value.")
        return _struct(metadata, value, valid)
    try:
        data, ends = _variant.unshred(_binary(metadata), _slot(array))
    except ValueError as e:
        raise DataFileError(f"A shredded variant column can't be put together: {e}.") from e
    return _struct(metadata, pc.cast(string_array(ends, data, np.ones(len(array), np.bool_)), pa.binary()), valid)


def _struct(metadata: pa.Array[Any], value: pa.Array[Any], valid: NDArray[np.bool_]) -> pa.StructArray:
    if not is_valid(metadata)[valid].all():
        raise DataFileError("A variant column has a row without metadata.")
    children = [_filled(metadata), _filled(value)]
    fields = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    mask = None if valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _filled(array: pa.Array[Any]) -> pa.Array[Any]:
    array = pc.cast(array, pa.binary())
    return pc.fill_null(array, b"") if array.null_count else array


def _binary(array: pa.Array[Any]) -> tuple[NDArray[np.int64], _Bytes, _Bytes]:
    """Return offsets (int64[n + 1]), bytes and validity (a byte a row)."""
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) or pa.types.is_string(array.type)):
        array = pc.cast(array, pa.large_binary())
    wide = pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    width = np.int64 if wide else np.int32
    found = np.zeros(1, width) if offsets is None or not len(array) else np.frombuffer(offsets, width)
    found = found[array.offset : array.offset + len(array) + 1] if len(array) else found[:1]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return found.astype(np.int64), content, is_valid(array).view(np.uint8)


def _slot(group: pa.Array[Any]) -> tuple[Any, ...]:
    """Describe a group of ``value`` and ``typed_value`` to the kernel."""
    if not pa.types.is_struct(group.type):
        raise DataFileError(f"A shredded variant has a part of type {group.type}, expected a struct.")
    names = {f.name for f in group.type}
    value = _binary(group.field("value")) if "value" in names else None
    typed = _typed(group.field("typed_value")) if "typed_value" in names else None
    if value is None and typed is None:
        raise DataFileError(
            f"A shredded variant has a part of type {group.type}, expected a value or typed_value in it."
        )
    return is_valid(group).view(np.uint8), value, typed


def _typed(array: pa.Array[Any]) -> tuple[str, _Bytes, Any]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    t, valid = array.type, is_valid(array).view(np.uint8)
    if pa.types.is_struct(t):
        return "fields", valid, {f.name.encode(): _slot(array.field(i)) for i, f in enumerate(t)}
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return "elements", valid, (array.offsets.to_numpy().astype(np.int64), _slot(array.values))
    if pa.types.is_boolean(t):
        return "boolean", valid, pc.cast(pc.fill_null(array, False), pa.uint8()).to_numpy()
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "text", valid, (_STRING, _binary(pc.cast(pc.cast(array, pa.large_string()), pa.large_binary())))
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t):
        return "text", valid, (_BINARY, _binary(array))
    if pa.types.is_decimal128(t):
        header, width = next((h, w) for most, h, w in _DECIMALS if t.precision <= most)
        return "fixed", valid, (header, width, 16, t.scale, _values(array, 16))
    if t not in _FIXED:
        raise DataFileError(f"A shredded variant has a typed_value of type {t}, which variants do not have.")
    header, width = _FIXED[t]
    return "fixed", valid, (header, width, width, -1, _values(array, width))


def _values(array: pa.Array[Any], width: int) -> _Bytes:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array) * width, np.uint8)
    return np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]
