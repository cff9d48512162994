"""Arrow columns as users pass them to a table's types, without losing a value.

A type that can't fit is rejected from the types alone, before data moves; a value that does not fit is rejected by
column when it comes. A double is rounded to a float, as every engine does; nothing else is rounded, cut or wrapped.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import SchemaMismatchError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, is_valid, number_array, values_of
from delta_core.kernels.decimals import checked_cast
from delta_core.kernels.nested import null_rows, rebuild_list, rebuild_map, rebuild_struct
from delta_core.schema.fields import Path, format_path

__all__ = ["Convert", "conversion", "own_values"]

Convert = Callable[[pa.Array], pa.Array]
_T = pa.types

_ROUNDING = (
    "Delta has microseconds. Round before writing: in pandas df[c] = df[c].dt.floor('us'), in PyArrow "
    "pyarrow.compute.floor_temporal(column, unit='microsecond')."
)


def conversion(found: pa.DataType, target: pa.DataType, path: Path) -> Convert | None:
    """Return the function that turns one type into another; None if arrays can stay as they are.

    Parameters
    ----------
    found : pyarrow.DataType
        The type of the rows.
    target : pyarrow.DataType
        The type of the files. Fields of structs are found by name, ignoring case; those that ``found`` lacks become
        null.
    path : Path
        The column, for messages.

    Raises
    ------
    SchemaMismatchError
        The types don't fit. The function itself raises it for a value that does not fit.
    """
    if isinstance(found, pa.BaseExtensionType):
        return _then(lambda x: x.storage, conversion(found.storage_type, target, path))
    if _T.is_dictionary(target) or _T.is_dictionary(found):
        return _dictionary(found, target, path)
    if _T.is_run_end_encoded(found):
        return _then(pc.run_end_decode, conversion(found.value_type, target, path))
    if _T.is_null(found):
        return None if _T.is_null(target) else lambda x: null_rows(len(x), target)
    if _T.is_struct(target) and _T.is_struct(found):
        return _struct(found, target, path)
    if _T.is_map(target):
        return _map(found, target, path)
    if _T.is_list(target):
        return _list(found, target, path)
    if found.equals(target):
        return None
    kernel = _primitive(found, target)
    if kernel is None:
        raise _mismatch(path, found, target)
    return _guarded(kernel, path, target)


def _mismatch(path: Path, found: pa.DataType, wanted: pa.DataType, why: str = "") -> SchemaMismatchError:
    column = format_path(path)
    return SchemaMismatchError(
        f"Column {column} comes as {found}, which is not turned into the table's type {wanted}{why}. "
        "Cast it before writing.",
        column=column,
        found=str(found),
        expected=str(wanted),
    )


def _then(first: Convert, second: Convert | None) -> Convert:
    return first if second is None else lambda x: second(first(x))


def _dictionary(found: pa.DataType, target: pa.DataType, path: Path) -> Convert | None:
    if found.equals(target):
        return None
    return _encoding(found, target, path) if _T.is_dictionary(target) else _decoding(found.value_type, target, path)


def _encoding(found: pa.DataType, target: pa.DictionaryType, path: Path) -> Convert:
    """Return what makes a dictionary of each array; tables of other formats have such columns."""
    plain = conversion(found, target.value_type, path)

    def encode(x: pa.Array) -> pa.Array:
        made = (x if plain is None else plain(x)).dictionary_encode()
        try:
            keys = made.indices.cast(target.index_type)
        except pa.ArrowInvalid as e:
            raise _mismatch(path, found, target, f": {e}") from e
        return pa.DictionaryArray.from_arrays(keys, made.dictionary, ordered=target.ordered)

    return encode


def _decoding(values: pa.DataType, wanted: pa.DataType, path: Path) -> Convert | None:
    """Return what decodes; values that are views, which pyarrow can't gather, are made plain before."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(values)
    if plain is None:
        return _then(lambda x: x.dictionary_decode(), conversion(values, wanted, path))

    def decode(x: pa.DictionaryArray) -> pa.Array:
        return pa.DictionaryArray.from_arrays(x.indices, pc.cast(x.dictionary, plain)).dictionary_decode()

    return _then(decode, conversion(plain, wanted, path))


def _is_nanoseconds(t: pa.DataType) -> bool:
    return bool(_T.is_timestamp(t) and t.unit == "ns")


def _guarded(kernel: Convert, path: Path, wanted: pa.DataType) -> Convert:
    def convert(x: pa.Array) -> pa.Array:
        try:
            return kernel(x)
        except pa.ArrowInvalid as e:
            column = format_path(path)
            advice = _ROUNDING if _is_nanoseconds(x.type) else "Correct the value, or cast the column before writing."
            raise SchemaMismatchError(
                f"Column {column} holds a value that the table's type {wanted} can't hold exactly: {e}. {advice}",
                column=column,
                found=str(x.type),
                expected=str(wanted),
            ) from e

    return convert


# --- primitives ----------------------------------------------------------------------------


def _primitive(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    """Return the kernel between two types, None if there is none that loses nothing."""
    if _is_text(wanted) and _is_text(found):
        return lambda x: pc.cast(x, wanted)
    if _is_bytes(wanted) and (_is_bytes(found) or _T.is_fixed_size_binary(found)):
        return lambda x: pc.cast(x, wanted)
    if _T.is_integer(wanted) and (_T.is_integer(found) or _T.is_floating(found)):
        return lambda x: pc.cast(x, wanted)
    if _is_computed(found, wanted):
        return lambda x: pc.cast(x, wanted)
    if _T.is_floating(wanted):
        return _to_float(found, wanted)
    if _T.is_decimal(wanted):
        return _to_decimal(found, wanted)
    if _T.is_date(wanted):
        return _to_date(found, wanted)
    if _T.is_timestamp(wanted) and _T.is_timestamp(found):
        return _to_timestamp(found, wanted)
    if _T.is_null(wanted):
        return _to_void
    return None


def _is_computed(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a column of a plugin's type is assigned values of the type that its own have in expressions."""
    if _T.is_fixed_size_binary(wanted):
        return bool(_T.is_binary(found))
    return bool(_T.is_unsigned_integer(wanted) and _T.is_decimal(found))


def _is_text(t: pa.DataType) -> bool:
    return bool(_T.is_string(t) or _T.is_large_string(t) or _T.is_string_view(t))


def _is_bytes(t: pa.DataType) -> bool:
    return bool(_T.is_binary(t) or _T.is_large_binary(t) or _T.is_binary_view(t))


def _to_float(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    if _T.is_integer(found):
        return lambda x: pc.cast(x, wanted)
    if not _T.is_floating(found):
        return None
    if found.bit_width <= wanted.bit_width:
        return lambda x: pc.cast(x, wanted)

    def narrow(x: pa.Array) -> pa.Array:
        out = pc.cast(x, wanted, safe=False)
        lost = pc.and_(pc.is_inf(out), pc.is_finite(x))
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid(f"{x.filter(lost)[0].as_py()!r} is out of range")
        return out

    return narrow


def _to_decimal(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    return (lambda x: checked_cast(x, wanted)) if _T.is_decimal(found) or _T.is_integer(found) else None


def _to_date(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    if _T.is_date(found):
        return lambda x: pc.cast(x, wanted)
    if not _T.is_timestamp(found) or found.tz is not None:
        return None

    def midnights(x: pa.Array) -> pa.Array:
        out = pc.cast(x, wanted, safe=False)
        odd = pc.not_equal(pc.cast(out, x.type), x)
        if pc.any(odd).as_py():
            raise pa.ArrowInvalid(f"{x.filter(odd)[0]} is no midnight")
        return out

    return midnights


def _to_timestamp(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    if wanted.tz is None and found.tz not in (None, "UTC", "Etc/UTC", "+00:00", "Z"):
        return None  # which wall clock is meant: the zone's or UTC's?

    def convert(x: pa.Array) -> pa.Array:
        # by way of the wall clock in UTC, which is what a value without a zone is taken for
        return pc.cast(pc.cast(x, pa.timestamp(found.unit, wanted.tz), safe=False), wanted)

    return convert


def _to_void(x: pa.Array) -> pa.Array:
    if x.null_count < len(x):
        raise pa.ArrowInvalid(f"{x.drop_null()[0]} is not null")
    return pa.nulls(len(x))


# --- nested --------------------------------------------------------------------------------


def _struct(found: pa.DataType, wanted: pa.DataType, path: Path) -> Convert | None:
    places: dict[str, int] = {}
    for i in range(found.num_fields):
        name = found.field(i).name
        if places.setdefault(name.lower(), i) != i:
            raise _mismatch(path, found, wanted, f": it has two fields {name!r}")
    plans: list[tuple[int | None, Convert | None]] = []
    for i in range(wanted.num_fields):
        f = wanted.field(i)
        place = places.pop(f.name.lower(), None)
        inner = None if place is None else conversion(found.field(place).type, f.type, (*path, f.name))
        plans.append((place, inner))
    if places:
        extra = ", ".join(found.field(i).name for i in places.values())
        raise _mismatch(path, found, wanted, f": the table's struct has no field {extra}")
    names = [wanted.field(i).name for i in range(wanted.num_fields)]
    required = [i for i in range(wanted.num_fields) if not wanted.field(i).nullable]
    stays = names == [found.field(i).name for i in range(found.num_fields)]
    if stays and not required and plans == [(i, None) for i in range(found.num_fields)]:
        return None

    def convert(x: pa.Array) -> pa.Array:
        parts = x.flatten() if x.null_count else [x.field(i) for i in range(found.num_fields)]
        children = [
            null_rows(len(x), wanted.field(i).type) if place is None else _applied(inner, parts[place])
            for i, (place, inner) in enumerate(plans)
        ]
        for i in required:
            if children[i].null_count > x.null_count:
                raise _mismatch((*path, names[i]), x.type, wanted, ": it is null where its struct is not")
            if children[i].null_count:
                # a part that is required holds something below a null, which is not visible
                children[i] = _without_nulls(children[i])
        return rebuild_struct(x, names, children)

    return convert


def _applied(convert: Convert | None, array: pa.Array) -> pa.Array:
    return array if convert is None else convert(array)


def _list(found: pa.DataType, wanted: pa.DataType, path: Path) -> Convert | None:
    if _T.is_list(found):
        first: Convert | None = None
    elif _T.is_list_view(found) or _T.is_large_list_view(found):
        first = _from_view
    elif _T.is_large_list(found) or _T.is_fixed_size_list(found):
        first = _guarded(lambda x: pc.cast(x, pa.list_(x.type.value_field)), path, wanted)
    else:
        raise _mismatch(path, found, wanted)
    inner = conversion(found.value_type, wanted.value_type, (*path, "element"))
    required = not wanted.value_field.nullable
    if inner is None and not required:
        return first

    def convert(x: pa.Array) -> pa.Array:
        tight = own_values(_applied(first, x))
        values = _applied(inner, tight.values)
        if required and values.null_count:
            raise _mismatch((*path, "element"), x.type, wanted, ": it is null")
        return rebuild_list(tight, values)

    return convert


def _without_nulls(x: pa.Array) -> pa.Array:
    """Return an array with some value in place of each null; Arrow's `coalesce` lacks some types."""
    both = pa.concat_arrays([x, pa.array([_value_of(x.type)], x.type)])
    return both.take(pc.if_else(x.is_valid(), number_array(np.arange(len(x))), len(x)))


def _value_of(t: Any) -> Any:
    """Return some value of a type that is not null, nor are its parts."""
    if _T.is_struct(t):
        return {f.name: _value_of(f.type) for f in t}
    if _T.is_null(t):
        return None
    if _T.is_list(t) or _T.is_large_list(t) or _T.is_map(t):
        return []
    if _T.is_fixed_size_list(t):
        return [_value_of(t.value_type)] * t.list_size
    if _T.is_dictionary(t):
        return _value_of(t.value_type)
    if _T.is_fixed_size_binary(t):
        return bytes(t.byte_width)
    if _T.is_decimal(t):
        return decimal.Decimal(0)
    if _T.is_float16(t):
        return np.float16(0)
    is_text = _T.is_string(t) or _T.is_large_string(t) or _T.is_binary(t) or _T.is_large_binary(t)
    return b"" if is_text else False if _T.is_boolean(t) else 0


def _from_view(x: pa.Array) -> pa.Array:
    """Return a list array of a list view's lists; Arrow's own cast gets slices wrong."""
    sizes = pc.if_else(x.is_valid(), x.sizes.cast(pa.int64()), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, x.flatten(), mask=x.is_null() if x.null_count else None)


def _map(found: pa.DataType, wanted: pa.DataType, path: Path) -> Convert | None:
    first: Convert | None = None
    if _T.is_map(found):
        types = found.key_type, found.item_type
    else:  # entries, as engines without maps hand them out
        value: Any = found.value_type if _T.is_list(found) or _T.is_large_list(found) else None
        if value is None or not _T.is_struct(value) or value.num_fields != 2:
            raise _mismatch(path, found, wanted)
        types = value.field(0).type, value.field(1).type
        first = None if _T.is_list(found) else lambda x: pc.cast(x, pa.list_(x.type.value_field))
    keys = conversion(types[0], wanted.key_type, (*path, "key"))
    items = conversion(types[1], wanted.item_type, (*path, "value"))
    if _T.is_map(found) and keys is None and items is None:
        return None

    def convert(x: pa.Array) -> pa.Array:
        tight = own_values(_applied(first, x))
        parts: tuple[Any, Any] = (
            (tight.keys, tight.items) if _T.is_map(found) else (tight.values.field(0), tight.values.field(1))
        )
        if parts[0].null_count:
            raise _mismatch((*path, "key"), x.type, wanted, ": a key is null")
        return rebuild_map(tight, _applied(keys, parts[0]), _applied(items, parts[1]))

    return convert


def own_values(x: pa.Array) -> pa.Array:
    """Return a list or map whose values are its own only: a slice shares those of the whole."""
    used = x.offsets[-1].as_py() - x.offsets[0].as_py() if len(x) else 0
    if x.offset == 0 and used == len(x.values):
        return x
    # pyarrow flattens lists, but no maps, and takes no lists of views
    whole = pa.list_(x.values.type)
    lists = pa.Array.from_buffers(whole, len(x), x.buffers()[:2], x.null_count, x.offset, [x.values])
    valid = is_valid(x)
    ends = np.zeros(len(x) + 1, np.int32)
    np.cumsum(np.where(valid, np.diff(values_of(x.offsets)), 0), out=ends[1:])
    validity = bool_array(valid).buffers()[1] if x.null_count else None
    values = lists.flatten()
    if _T.is_map(x.type):  # a map passes over the offset of its entries
        values = pa.StructArray.from_arrays([values.field(0), values.field(1)], fields=list(values.type))
    return pa.Array.from_buffers(x.type, len(x), [validity, pa.py_buffer(ends)], x.null_count, 0, [values])
