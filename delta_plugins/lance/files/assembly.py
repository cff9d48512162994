"""Arrow arrays of fields, from the rows of their leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.api import DataFileError
from delta_plugins.lance.files.leaves import ValueLayout, is_leaf
from delta_plugins.lance.files.structural import LeafRows
from delta_plugins.lance.schema import LanceField, arrow_field

__all__ = ["AssemblyError", "assemble"]

_Layer = tuple[int, int, Any, Any]


class AssemblyError(Exception):
    """Columns of a file that do not fit together; the text states why."""


def assemble(field: LanceField, leaves: Mapping[int, LeafRows], num_rows: int) -> pa.Array[Any]:
    """Return the array of a top-level field.

    Parameters
    ----------
    field : LanceField
        The field.
    leaves : Mapping of int to LeafRows
        Rows of those leaves that the file has, by the id of their field.
    num_rows : int
        How many rows were requested.

    Raises
    ------
    AssemblyError
        If columns of the field disagree about its nesting.
    """
    if not any(True for _ in _below(field, leaves)):
        return pa.nulls(num_rows, arrow_field(field).type)
    array = _array(field, arrow_field(field).type, leaves, 0)
    if len(array) != num_rows:
        raise AssemblyError(f"field {field.name!r} has {len(array)} rows, expected {num_rows}")
    return array


def _below(field: LanceField, leaves: Mapping[int, LeafRows]) -> Iterator[LeafRows]:
    """Yield the rows of the leaves of a field that are there."""
    if is_leaf(field):
        if field.id in leaves:
            yield leaves[field.id]
        return
    for child in field.children:
        yield from _below(child, leaves)


def _array(field: LanceField, type: pa.DataType, leaves: Mapping[int, LeafRows], depth: int) -> pa.Array[Any]:
    if is_leaf(field):
        return _leaf_array(type, leaves[field.id])
    length, nulls, bits, offsets = _agreed(field, leaves, depth)
    validity = [bits if nulls else None]
    if offsets is not None:
        child = field.children[0]
        items = _array(child, _item_type(type), leaves, depth + 1)
        return _list_array(type, length, validity, offsets, items)
    if pa.types.is_fixed_size_list(type):
        return _fixed_list(field, type, leaves, depth, (length, nulls, bits, None))
    children = _children(field, type, leaves, depth, length)
    return pa.Array.from_buffers(type, length, validity, nulls, children=children)


def _item_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_map(type):
        return pa.struct([type.key_field, type.item_field])
    return type.value_type


def _list_array(
    type: pa.DataType, length: int, validity: list[Any], offsets: Any, items: pa.Array[Any]
) -> pa.Array[Any]:
    if pa.types.is_map(type) and (items.null_count or items.field(0).null_count):
        raise AssemblyError("a map has entries or keys that are null")
    step = _list_step(items, offsets, length, type)
    if step != 1:
        width = 8 if pa.types.is_large_list(type) else 4
        offsets = pa.py_buffer(np.frombuffer(offsets, f"i{width}", length + 1) // step)
    return pa.Array.from_buffers(type, length, [*validity, offsets], children=[items])


def _list_step(items: pa.Array[Any], offsets: Any, length: int, type: pa.DataType) -> int:
    """Return how many entries the offsets of a list count for each item: more than 1 above lists of structs."""
    width = 8 if pa.types.is_large_list(type) else 4
    end = int(np.frombuffer(offsets, f"i{width}", 1, length * width)[0])
    if end == len(items):
        return 1
    if not len(items) or end % len(items):
        raise AssemblyError(f"lists have {end} items, but {len(items)} are stored")
    return end // len(items)


def _fixed_list(
    field: LanceField, type: pa.DataType, leaves: Mapping[int, LeafRows], depth: int, layer: _Layer
) -> pa.Array[Any]:
    size = type.list_size
    items = _array(field.children[0], type.value_type, leaves, depth + 1)
    length, nulls, bits, _ = layer
    if len(items) != length:
        raise AssemblyError(f"lists of {size} have {len(items)} items, expected {length}")
    count, validity, nulls = _thinned(length, nulls, bits, size)
    return pa.Array.from_buffers(type, count, [validity], nulls, children=[items])


def _thinned(length: int, nulls: int, bits: Any, step: int) -> tuple[int, Any, int]:
    """Return the length, validity and nulls of every ``step``-th entry."""
    if length % step:
        raise AssemblyError(f"{length} items are no lists of {step}")
    if not nulls:
        return length // step, None, 0
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=length, bitorder="little").reshape(-1, step)
    if (valid != valid[:, :1]).any():
        raise AssemblyError(f"a list of {step} is null in parts")
    kept = np.ascontiguousarray(valid[:, 0])
    return len(kept), pa.py_buffer(np.packbits(kept, bitorder="little")), len(kept) - int(kept.sum())


def _children(
    field: LanceField, type: pa.DataType, leaves: Mapping[int, LeafRows], depth: int, length: int
) -> list[pa.Array[Any]]:
    found: list[pa.Array[Any]] = []
    for child, of in zip(field.children, type, strict=True):
        if any(True for _ in _below(child, leaves)):
            array = _array(child, of.type, leaves, depth + 1)
        else:
            array = pa.nulls(length, of.type)
        if len(array) != length:
            raise AssemblyError(f"field {child.name!r} has {len(array)} values, its struct {length}")
        found.append(array)
    return found


def _agreed(field: LanceField, leaves: Mapping[int, LeafRows], depth: int) -> _Layer:
    """Return the layer of a field, which is the same in all columns below it."""
    layers = [rows.layers[-1 - depth] for rows in _below(field, leaves)]
    first = layers[0]
    for other in layers[1:]:
        if first[:2] != other[:2] or not _same(first[2], other[2]) or not _same(first[3], other[3]):
            raise AssemblyError(f"columns below {field.name!r} have different nulls or lists")
    steps = _steps(field)
    if steps == 1 or first[3] is not None:
        return first
    length, bits, nulls = _thinned(first[0], first[1], first[2], steps)
    return length, nulls, bits, None


def _steps(field: LanceField) -> int:
    """Return how often a column counts a struct because of lists of structs below it."""
    found = 1
    while field.children and field.logical_type == "struct" and len(field.children) == 1:
        field = field.children[0]
        if field.logical_type.startswith("fixed_size_list:struct:"):
            found *= int(field.logical_type.rpartition(":")[2])
    return found


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and a.equals(b))


# --- leaves --------------------------------------------------------------------------------


def _leaf_array(type: pa.DataType, rows: LeafRows) -> pa.Array[Any]:
    length, nulls, bits, _ = rows.layers[0]
    if rows.children:
        return _packed_of_any_length(type, rows)
    count, buffers, lists = rows.values
    return _values(type, length, nulls, bits, count, buffers, lists, rows.layout)


def _values(
    type: pa.DataType,
    length: int,
    nulls: int,
    bits: Any,
    count: int,
    buffers: Sequence[Any],
    lists: Sequence[tuple[int, int, Any]],
    layout: ValueLayout,
) -> pa.Array[Any]:
    validity = bits if nulls else None
    if pa.types.is_fixed_size_list(type):
        n, inner_nulls, inner_bits = lists[0]
        if n != length * type.list_size:
            raise AssemblyError(f"{n} items are no {length} lists of {type.list_size}")
        items = _values(type.value_type, n, inner_nulls, inner_bits, count, buffers, lists[1:], layout)
        return pa.Array.from_buffers(type, length, [validity], nulls, children=[items])
    if count != length:
        raise AssemblyError(f"{count} values are stored for {length} entries")
    if pa.types.is_null(type):
        return pa.nulls(length)
    if pa.types.is_struct(type):
        return _packed(type, length, nulls, validity, buffers[0], layout)
    if pa.types.is_dictionary(type):
        plain = pa.Array.from_buffers(type.value_type, length, [validity, *buffers], nulls)
        return plain.dictionary_encode().cast(type)
    return pa.Array.from_buffers(type, length, [validity, *buffers], nulls)


def _packed(type: pa.DataType, length: int, nulls: int, validity: Any, data: Any, layout: ValueLayout) -> pa.Array[Any]:
    """Return a struct whose rows lie one after the other, fields without padding."""
    width = layout.bits // 8
    rows = np.frombuffer(data, np.uint8, length * width).reshape(length, width)
    children = []
    at = 0
    for field, child in zip(type, layout.children, strict=True):
        items = int(np.prod(child.list_sizes, dtype=np.int64))
        n = child.bits * items // 8
        part = pa.py_buffer(np.ascontiguousarray(rows[:, at : at + n]).reshape(-1))
        at += n
        lists = []
        inner = length
        for size in child.list_sizes:
            inner *= size
            lists.append((inner, 0, None))
        children.append(_values(field.type, length, 0, None, length * items, [part], lists, child))
    return pa.Array.from_buffers(type, length, [validity], nulls, children=children)


def _packed_of_any_length(type: pa.DataType, rows: LeafRows) -> pa.Array[Any]:
    length, nulls, bits, _ = rows.layers[0]
    children = [
        _values(f.type, length, 0, None, count, buffers, lists, layout)
        for f, (count, buffers, lists), layout in zip(type, rows.children, rows.layout.children, strict=True)
    ]
    return pa.Array.from_buffers(type, length, [bits if nulls else None], nulls, children=children)


def file_error(error: AssemblyError, path: str) -> DataFileError:
    """Return the error of a file whose columns do not fit together."""
    return DataFileError(
        f"Data file {path!r} is damaged: {error}. Restore the file from a copy, or remove it from the table.", path=path
    )
