"""Conversions between Arrow arrays, the buffers that the compiled kernels take and return, and NumPy arrays.

PyArrow's own ways between Python, NumPy and Arrow (``pa.array``, ``pa.scalar``, ``to_numpy``) import pandas on first
use if it is installed: a fifth of a second and 40 MB. Code that opens, lists, plans and scans tables uses the
functions of this module instead.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.memory import POOL_OF_BATCHES, zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ARROW_VERSION",
    "one_array",
    "StringBuffers",
    "array_of",
    "bool_array",
    "distinct_numbers",
    "empty_table",
    "holds_bytes",
    "int64_values",
    "is_text",
    "is_valid",
    "joined_batches",
    "mask_of",
    "null_array",
    "nulls_of",
    "number_array",
    "plain_strings",
    "scalar_of",
    "shown_value",
    "string_array",
    "string_buffers",
    "string_bytes",
    "string_ends",
    "strings_of",
    "utf8_of",
    "values_of",
    "without_views",
]

#: The major version of PyArrow, for the few arguments that older versions lack.
ARROW_VERSION = int(pa.__version__.split(".")[0])
StringBuffers = tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None, int, int, bool]
"""Validity, offsets, data, array offset, length, and whether the offsets have 64 bits."""
_EPOCH = date(1970, 1, 1).toordinal()
#: The numbers of the types `string` and `binary`.
_TEXT = frozenset((pa.string().id, pa.binary().id))


def null_array(t: pa.DataType, n: int) -> pa.Array[Any]:
    """Return ``n`` nulls, which take no memory if values of the type have a fixed width or are strings.

    Parameters
    ----------
    t : pyarrow.DataType
        The type of the array.
    n : int
        Its length, from 0 on.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of type ``t``, all null.
    """
    if not n or isinstance(t, pa.BaseExtensionType) or pa.types.is_null(t):
        return pa.nulls(n, t)
    valid = zeros((n + 7) // 8)
    if pa.types.is_boolean(t):
        return pa.Array.from_buffers(t, n, [valid, valid], n)
    if pa.types.is_primitive(t) or pa.types.is_decimal128(t):
        return pa.Array.from_buffers(t, n, [valid, zeros(n * t.bit_width // 8)], n)
    if pa.types.is_string(t) or pa.types.is_binary(t):
        return pa.Array.from_buffers(t, n, [valid, zeros(4 * n + 4), zeros(0)], n)
    if pa.types.is_dictionary(t):
        return pa.DictionaryArray.from_arrays(null_array(t.index_type, n), pa.nulls(0, t.value_type), ordered=t.ordered)
    return pa.nulls(n, t)


def one_array(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return a column as one array, without a copy if it is one (`ChunkedArray.combine_chunks` always copies).

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray, **shape (n,)**
        Of any type; nulls stay. A single chunk is returned itself and shares its memory.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the column's type.
    """
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.nulls(0, column.type)
    found = column.combine_chunks()
    if not isinstance(found, pa.ChunkedArray):
        return found
    return pa.concat_arrays(found.chunks)


def joined_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches as one batch, as ``pyarrow.concat_batches`` does, which PyArrow 18 lacks.

    Parameters
    ----------
    batches : sequence of pyarrow.RecordBatch, **n rows** together
        At least one, all of one schema; nulls stay. A single batch is returned itself and shares its memory.

    Returns
    -------
    pyarrow.RecordBatch, **n rows**
        The rows in order, with the schema of the first batch.
    """
    first = batches[0]
    if len(batches) == 1:
        return first
    rows = pa.concat_arrays([b.to_struct_array() for b in batches], memory_pool=POOL_OF_BATCHES)
    joined = pa.RecordBatch.from_struct_array(rows)
    return joined if first.schema.metadata is None else joined.replace_schema_metadata(first.schema.metadata)


def nulls_of(count: int, of: pa.DataType) -> pa.Array[Any]:
    """Return nulls, as ``pyarrow.nulls`` does, which take no memory: all share one block of zeros.

    For columns that a log does not have: fresh memory takes longer than what else is done for such a column.

    Parameters
    ----------
    count : int
        The length of the array, from 0 on.
    of : pyarrow.DataType
        The type of the array.

    Returns
    -------
    pyarrow.Array, **shape (count,)**
        Of the type, all null.
    """
    if not 0 < count <= _MOST_SHARED or not _is_of_zeros(of):
        return pa.nulls(count, of)
    return _shared_nulls(count, of)


#: Rows of 8 bytes, and one offset more.
_MOST_SHARED = (1 << 20) - 1
_ZEROS = pa.py_buffer(bytes(8 << 20))


@cache
def _is_of_zeros(of: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(of):
        return all(_is_of_zeros(f.type) for f in of)
    if types.is_map(of):
        return _is_of_zeros(of.key_type) and _is_of_zeros(of.item_type)
    return bool(types.is_integer(of) or types.is_floating(of) or types.is_boolean(of) or types.is_string(of))


def _shared_nulls(count: int, of: pa.DataType) -> pa.Array[Any]:
    types = pa.types
    if types.is_struct(of):
        fields = [_shared_nulls(count, f.type) for f in of]
        return pa.Array.from_buffers(of, count, [_ZEROS], count, children=fields)
    if types.is_map(of):
        entries = pa.nulls(0, pa.struct([of.key_field, of.item_field]))
        return pa.Array.from_buffers(of, count, [_ZEROS, _ZEROS], count, children=[entries])
    values = [_ZEROS, pa.py_buffer(b"")] if types.is_string(of) else [_ZEROS]
    return pa.Array.from_buffers(of, count, [_ZEROS, *values], count)


def plain_strings(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return the strings of a dictionary or view array as an array with offsets; others as they are.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        Of any type; nulls stay. Views and dictionaries are copied, and the values become ``large_binary`` or the
        dictionary's type.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Parallel to ``array``.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    return array


def without_views(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return an array whose strings have offsets instead of views, at any depth: Arrow can't pick rows of views.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        Of any type, nested ones included; nulls stay. An array without views is returned itself.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Parallel to ``array``.
    """
    plain = _without_views(array.type)
    return array if plain is None else array.cast(plain)


@cache
def _without_views(of: pa.DataType) -> pa.DataType | None:
    """Return a type with offsets for one that holds views of strings; None if it holds none."""
    if pa.types.is_string_view(of):
        return pa.large_string()
    if pa.types.is_binary_view(of):
        return pa.large_binary()
    if pa.types.is_struct(of):
        fields = [f.with_type(_without_views(f.type) or f.type) for f in of]
        plain = pa.struct(fields)
    elif pa.types.is_map(of):
        key, item = (f.with_type(_without_views(f.type) or f.type) for f in (of.key_field, of.item_field))
        plain = pa.map_(key, item)
    elif pa.types.is_list(of) or pa.types.is_large_list(of):
        make = pa.list_ if pa.types.is_list(of) else pa.large_list
        plain = make(of.value_field.with_type(_without_views(of.value_type) or of.value_type))
    else:
        return None
    return None if plain.equals(of) else plain


def string_buffers(array: pa.Array[Any]) -> StringBuffers | None:
    """Return the buffers of a string or binary array of any layout; None = all null.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        string, large_string, string_view, binary, large_binary, binary_view, a dictionary of one of them, or null. The
        buffers keep the array's memory alive.

    Raises
    ------
    InvalidArgumentError
        For an array of another type.

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


def holds_bytes(array: pa.Array[Any], *parts: bytes) -> bool:
    """Whether the concatenated strings of an array contain any of some bytes: one test of all strings.

    A part of several bytes may span two strings, so that only False is certain.

    Parameters
    ----------
    array : string or binary array, **shape (n,)**
        As `string_buffers` takes it. Bytes under nulls are searched too.
    *parts : bytes
        The bytes to find, at least one in each part.
    """
    ends, text = _ends_and_text(array)
    inside = memoryview(text)[int(ends[0]) : int(ends[-1])] if len(ends) else b""
    return any(re.search(re.escape(part), inside) is not None for part in parts)


def string_ends(array: pa.Array[Any]) -> NDArray[np.int64]:
    """Return where each string begins in `string_bytes`, and the last one ends; empty for no strings.

    Parameters
    ----------
    array : string or binary array, **shape (n,)**
        As `string_buffers` takes it. A null has the bytes that its offsets name, most often none.

    Returns
    -------
    int64, **shape (n + 1,)**, or (0,)
        Ascending, from 0 on.
    """
    ends, _ = _ends_and_text(array)
    return ends - ends[0] if len(ends) else ends


def string_bytes(array: pa.Array[Any]) -> bytes:
    """Return the concatenated strings of an array as bytes.

    Parameters
    ----------
    array : string or binary array, **shape (n,)**
        As `string_buffers` takes it. A null has the bytes that its offsets name, most often none.
    """
    ends, text = _ends_and_text(array)
    return bytes(memoryview(text)[int(ends[0]) : int(ends[-1])]) if len(ends) else b""


def _ends_and_text(array: pa.Array[Any]) -> tuple[NDArray[np.int64], pa.Buffer | bytes]:
    """Return where each string starts and the last one ends, and the bytes that these places are of."""
    found = string_buffers(array)
    if found is None:
        return np.zeros(0, np.int64), b""
    _, offsets, data, first, length, is_wide = found
    if offsets is None or data is None or not length:
        return np.zeros(0, np.int64), b""
    ends: NDArray[Any] = np.frombuffer(offsets, np.int64 if is_wide else np.int32)[first : first + length + 1]
    return ends, data


def is_text(t: pa.DataType) -> bool:
    """Whether values of a type are strings or bytes with 32-bit offsets.

    Parameters
    ----------
    t : pyarrow.DataType
        Any type.
    """
    return t.id in _TEXT


def is_valid(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> NDArray[np.bool_]:
    """Return which values are not null, without pyarrow.compute, which takes 30 ms to import.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray, **shape (n,)**
        Of any type with a validity bitmap, or null; slices are allowed.

    Returns
    -------
    bool, **shape (n,)**
        False = null.
    """
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([np.empty(0, np.bool_), *(is_valid(c) for c in array.chunks)])
    valid = array.buffers()[0]
    if valid is None or not array.null_count:
        return np.full(len(array), not pa.types.is_null(array.type))
    return _unpacked(valid, array.offset, len(array))


def _unpacked(bits: pa.Buffer, offset: int, length: int) -> NDArray[np.bool_]:
    first, skipped = divmod(offset, 8)
    packed = np.frombuffer(bits, np.uint8)[first : first + (skipped + length + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[skipped : skipped + length].view(np.bool_)


def mask_of(array: pa.Array[Any], null: bool = False) -> NDArray[np.bool_]:
    """Return the values of a boolean array, or one of type null, with nulls as ``null``.

    Parameters
    ----------
    array : bool or null array, **shape (n,)**
        Slices are allowed.
    null : bool
        The value of nulls.

    Returns
    -------
    bool, **shape (n,)**
        The values.
    """
    if not len(array):
        return np.zeros(0, np.bool_)
    if pa.types.is_null(array.type):  # it has no buffer of values
        return np.full(len(array), null)
    mask = _unpacked(array.buffers()[1], array.offset, len(array))
    if array.null_count:
        mask = mask | ~is_valid(array) if null else mask & is_valid(array)
    return mask


def distinct_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of numbers without NaN, ascending.

    ``numpy.unique`` makes a table of hashes of integers, which takes more memory, and ten times as long for a million.

    Parameters
    ----------
    values : integer or floating-point array, **shape (n,)**
        Without NaN, in any order; not modified.

    Returns
    -------
    **shape (k,)**, of the type of ``values``
        Ascending.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[is_first])


def values_of(array: pa.Array[Any]) -> NDArray[Any]:
    """Return a view of numbers as they lie in memory, whatever is where it is null.

    Dates and timestamps are the integers that they are stored as; a dictionary returns its codes.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        Integers, floats, dates, times, durations, or a dictionary. The result shares its memory and must not be written
        to.

    Returns
    -------
    **shape (n,)**, as many bytes a value as in ``array``
        Undefined if ``array`` is null.

    Raises
    ------
    InvalidArgumentError
        For an array of another type.
    """
    t = array.type
    if pa.types.is_dictionary(t):
        return values_of(array.indices)
    if not pa.types.is_primitive(t) or pa.types.is_boolean(t):
        raise InvalidArgumentError(f"expected an array of numbers, found {t}")
    width = t.bit_width // 8
    kind = "u" if pa.types.is_unsigned_integer(t) else "f" if pa.types.is_floating(t) else "i"
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), f"{kind}{width}")
    return np.frombuffer(data, f"{kind}{width}", len(array), array.offset * width)


def number_array(
    values: NDArray[Any], type: pa.DataType | None = None, valid: NDArray[np.bool_] | None = None
) -> pa.Array[Any]:
    """Build an array over numbers, which are not copied.

    Parameters
    ----------
    values : NumPy numbers, **shape (n,)**
        The array shares their memory if they are contiguous.
    type : pyarrow.DataType, optional
        One that is stored in as many bytes; by default the numbers' own.
    valid : bool, **shape (n,)**, optional
        False = null.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the type.
    """
    kind = type if type is not None else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_bits(valid), pa.py_buffer(np.ascontiguousarray(values))])


def bool_array(values: NDArray[np.bool_], valid: NDArray[np.bool_] | None = None) -> pa.BooleanArray:
    """Build a boolean array, null if ``valid`` is false.

    Parameters
    ----------
    values : bool, **shape (n,)**
        The values; copied into bits.
    valid : bool, **shape (n,)**, optional
        False = null; without it no value is null.

    Returns
    -------
    bool array, **shape (n,)**
        Without a validity bitmap if no value is null.
    """
    packed = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [_bits(valid), packed])


def _bits(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def utf8_of(text: str, what: str) -> bytes:
    """Return the UTF-8 bytes of a text.

    Parameters
    ----------
    text : str
        Any text.
    what : str
        The name of the text, with which the error begins.

    Raises
    ------
    InvalidArgumentError
        For half of a surrogate pair, which represents no character; the message contains ``what``.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        near = ascii(text[max(e.start - 20, 0) : e.end + 20])
        raise InvalidArgumentError(
            f"{what} holds half of a surrogate pair, which UTF-8 has no bytes for: found {near}, expected whole "
            "characters."
        ) from None


def is_utf8(column: pa.Array[Any]) -> bool:
    """Whether texts are what Arrow's strings have to be: a Parquet file may hold others. No column is nested.

    Parameters
    ----------
    column : pyarrow.Array, **shape (n,)**
        Strings, or a dictionary of strings, are checked; all other types pass.
    """
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not pa.types.is_string(values.type) or not len(values):
        return True
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
    data = values.buffers()[2]
    if data is None or ends[-1] == ends[0]:
        return True
    # ASCII, most often: bytes that are not negative
    if np.frombuffer(data, np.int8, ends[-1] - ends[0], ends[0]).min() >= 0:
        return True
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def strings_of(texts: Sequence[str | bytes | None], type: pa.DataType | None = None) -> pa.Array[Any]:
    """Build an array of a few strings (or, by ``type``, of binary values); None = null.

    Parameters
    ----------
    texts : sequence of str, bytes or None, n items
        The values; text is encoded as UTF-8.
    type : pyarrow.DataType, optional
        ``string`` or ``binary``; ``string`` unless given.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the type.
    """
    if type is None:
        builder: Any = pa.lib.StringBuilder()
        with suppress(UnicodeEncodeError):
            builder.append_values(texts)
            return builder.finish()
    parts = [b"" if t is None else utf8_of(t, "A text") if isinstance(t, str) else t for t in texts]
    ends = np.zeros(len(parts) + 1, np.int32)
    np.cumsum([len(p) for p in parts], out=ends[1:])
    bits = _bits(np.fromiter((t is not None for t in texts), np.bool_, len(parts)))
    buffers = [bits, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(type if type is not None else pa.string(), len(parts), buffers)


def array_of(values: Sequence[Any], type: pa.DataType) -> pa.Array[Any]:
    """Build an array of a few values, as ``pyarrow.array`` does; times may be the integers that they are stored as.

    ``pyarrow.array`` imports pandas where it is installed, whatever it is called with: this does so only for values
    that need its conversions.

    Parameters
    ----------
    values : sequence, n items
        Python values; None = null.
    type : pyarrow.DataType
        The type of the array.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the type.
    """
    if pa.types.is_string(type) and all(v is None or isinstance(v, str) for v in values):
        return strings_of(values, type)
    if pa.types.is_binary(type) and all(v is None or isinstance(v, bytes) for v in values):
        return strings_of(values, type)
    if pa.types.is_nested(type):
        return _nested_of(values, type)
    valid = np.fromiter((v is not None for v in values), np.bool_, len(values))
    if pa.types.is_boolean(type) and all(v is None or isinstance(v, bool) for v in values):
        return bool_array(np.fromiter((v is True for v in values), np.bool_, len(values)), valid)
    stored = [_stored(0 if v is None else v, type) for v in values]
    if any(s is None for s in stored):
        return pa.array(values, type)
    # no value is None, by the lines above
    return pa.Array.from_buffers(type, len(values), [_bits(valid), pa.py_buffer(b"".join(stored))])  # type: ignore[arg-type]


def _nested_of(values: Sequence[Any], type: pa.DataType) -> pa.Array[Any]:
    """Build an array of dictionaries (struct), lists (list) or pairs or dictionaries (map); None = null."""
    given = [v for v in values if v is not None]
    valid = _bits(np.fromiter((v is not None for v in values), np.bool_, len(values)))
    # below a null struct, a field that is not nullable would need values
    if pa.types.is_struct(type) and all(isinstance(v, dict) for v in given) and all(f.nullable for f in type):
        fields = [array_of([None if v is None else v.get(f.name) for v in values], f.type) for f in type]
        return pa.Array.from_buffers(type, len(values), [valid], children=fields)
    is_map = pa.types.is_map(type)
    if not (is_map or pa.types.is_list(type)) or not all(isinstance(v, (dict, list, tuple)) for v in given):
        return pa.array(values, type)
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([0 if v is None else len(v) for v in values], out=ends[1:])
    if is_map:
        pairs = [pair for v in given for pair in (v.items() if isinstance(v, dict) else v)]
        columns = [array_of([k for k, _ in pairs], type.key_type), array_of([i for _, i in pairs], type.item_type)]
        entries = pa.struct([type.key_field, type.item_field])
        items = pa.Array.from_buffers(entries, len(pairs), [None], children=columns)
    else:
        items = array_of([item for v in given for item in v], type.value_type)
    return pa.Array.from_buffers(type, len(values), [valid, pa.py_buffer(ends)], children=[items])


def scalar_of(value: Any, type: pa.DataType) -> pa.Scalar[Any]:
    """Return a scalar, as ``pyarrow.scalar`` does; a time may be the integer that it is stored as.

    Parameters
    ----------
    value : object
        A Python value; None = null.
    type : pyarrow.DataType
        The type of the scalar.
    """
    return pa.nulls(1, type)[0] if value is None else array_of([value], type)[0]


def shown_value(scalar: pa.Scalar[Any]) -> Any:
    """Return a scalar's Python value for a message; text for a time that Python can't hold.

    Parameters
    ----------
    scalar : pyarrow.Scalar
        Of any type.
    """
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        # the text of a scalar is that of its Python value
        return pa.repeat(scalar, 1).to_string(skip_new_lines=True)[1:-1]


def _stored(value: Any, type: pa.DataType) -> bytes | None:
    """Return a value's bytes; None for what Arrow had better convert, and reject, itself."""
    if pa.types.is_decimal128(type):
        return _unscaled(Decimal(value), type) if isinstance(value, (Decimal, int)) else None
    if not pa.types.is_primitive(type) or isinstance(value, (bool, datetime)):
        return None
    try:
        if pa.types.is_float64(type) or pa.types.is_float32(type):
            is_float = isinstance(value, float) or value == 0
            return struct.pack("<d" if pa.types.is_float64(type) else "<f", value) if is_float else None
        if isinstance(value, date) and pa.types.is_date32(type):
            value = value.toordinal() - _EPOCH
        if not isinstance(value, int) or pa.types.is_floating(type):
            return None
        return value.to_bytes(type.bit_width // 8, "little", signed=not pa.types.is_unsigned_integer(type))
    except OverflowError:
        return None


def _unscaled(value: Decimal, type: pa.DataType) -> bytes | None:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent + type.scale < 0:
        return None
    number = int("".join(map(str, digits))) * 10 ** (exponent + type.scale)
    return None if number >= 10**type.precision else (-number if sign else number).to_bytes(16, "little", signed=True)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Build a table of no rows, as ``schema.empty_table`` does, which imports pandas.

    Parameters
    ----------
    schema : pyarrow.Schema
        The schema of the table.

    Returns
    -------
    pyarrow.Table, **0 rows**
        Of the schema.
    """
    return pa.Table.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def int64_values(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> NDArray[np.int64]:
    """Return the values of an int32 or int64 array (or an all-null one), whatever is where it is null.

    Parameters
    ----------
    array : int32, int64, or null array or chunked array, **shape (n,)**
        Values under nulls are undefined: look at `is_valid`.

    Returns
    -------
    int64, **shape (n,)**
        Undefined if ``array`` is null.

    Raises
    ------
    InvalidArgumentError
        For an array of another type.
    """
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([np.empty(0, np.int64), *(int64_values(c) for c in array.chunks)])
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if array.type not in (pa.int32(), pa.int64()):
        raise InvalidArgumentError(f"expected an array of int32 or int64, found {array.type}")
    return np.ascontiguousarray(values_of(array), np.int64)


def string_array(
    offsets: NDArray[np.int64], data: bytes | NDArray[np.uint8], valid: NDArray[np.bool_]
) -> pa.Array[Any]:
    """Build a string array (large only if it must be) from its offsets, bytes and validity.

    Parameters
    ----------
    offsets : int64, **shape (n + 1,)**
        Ascending, from 0 on: value ``i`` is the bytes from ``offsets[i]`` to ``offsets[i + 1]``.
    data : bytes, or uint8 of **shape (num_bytes,)**
        UTF-8; shared, not copied.
    valid : bool, **shape (n,)**
        False = null.

    Returns
    -------
    string or large_string array, **shape (n,)**
        Large if the bytes don't fit offsets of 32 bits.
    """
    wide = len(data) >= 2**31
    ends = offsets if wide else offsets.astype(np.int32)
    return pa.Array.from_buffers(
        pa.large_string() if wide else pa.string(),
        len(offsets) - 1,
        [_bits(valid), pa.py_buffer(ends), pa.py_buffer(data)],
    )
