"""Nested Arrow arrays under other names, without copying: relabel, reach into, narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from delta_core.kernels import compute as pc

__all__ = [
    "batch_of",
    "empty_rows",
    "narrow",
    "null_rows",
    "rebuild_list",
    "rebuild_map",
    "struct_of",
    "rebuild_struct",
    "relabel",
    "reach",
    "replace_field",
]


class _Relabelled:
    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def relabel(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same columns under another schema of the same layout: names and nullability at any depth.

    Nothing is copied, and slices keep their offsets.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, **num_rows rows**
        Its memory is shared.
    schema : pyarrow.Schema
        The same types in the same order; names, nullability and metadata may differ at any depth.

    Returns
    -------
    pyarrow.RecordBatch, **num_rows rows**
        Of the schema.
    """
    return pa.record_batch(_Relabelled(batch, schema))


def batch_of(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as a batch of a schema of the same layout; see `relabel`.

    Parameters
    ----------
    columns : sequence of pyarrow.Array, **shape (num_rows,)** each
        Their memory is shared.
    schema : pyarrow.Schema
        A field for each column, of the same layout.

    Returns
    -------
    pyarrow.RecordBatch, **num_rows rows**
        Of the schema.
    """
    if all(c.type.equals(t, check_metadata=True) for c, t in zip(columns, schema.types, strict=True)):
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return relabel(pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))]), schema)


def empty_rows(num_rows: int) -> pa.RecordBatch:
    """Return a batch without columns that still counts its rows.

    Parameters
    ----------
    num_rows : int
        The rows that the batch counts.

    Returns
    -------
    pyarrow.RecordBatch, **num_rows rows**
        Of no columns.
    """
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))


def null_rows(num_rows: int, type: pa.DataType) -> pa.Array:
    """Return nulls of a type. Parts that are not nullable have values below them, as Parquet's writer expects.

    Parameters
    ----------
    num_rows : int
        The length of the array.
    type : pyarrow.DataType
        Its type.

    Returns
    -------
    pyarrow.Array, **shape (num_rows,)**
        Of the type, all null.
    """
    return (
        pc.take(pa.array([None], type), pa.repeat(0, num_rows))
        if pa.types.is_struct(type)
        else pa.nulls(num_rows, type)
    )


def rebuild_struct(array: pa.Array, names: Sequence[str], children: Sequence[pa.Array]) -> pa.Array:
    """Return a struct array of other children with the nulls of ``array``; children are as long as it is.

    Parameters
    ----------
    array : struct array, **shape (n,)**
        The array with the nulls of the result.
    names : sequence of str
        A name for each child.
    children : sequence of pyarrow.Array, **shape (n,)** each
        Their memory is shared.

    Returns
    -------
    struct array, **shape (n,)**
        Null if ``array`` is.
    """
    fields = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
    return struct_of(fields, children, array)


def struct_of(fields: Sequence[pa.Field], children: Sequence[pa.Array], validity: pa.Array) -> pa.Array:
    """Return a struct array that is null if another array of that length is.

    Parameters
    ----------
    fields : sequence of pyarrow.Field
        A field for each child.
    children : sequence of pyarrow.Array, **shape (n,)** each
        Their memory is shared.
    validity : pyarrow.Array, **shape (n,)**
        The array with the nulls of the result; slices are allowed.

    Returns
    -------
    struct array, **shape (n,)**
        Null if ``validity`` is.
    """
    nulls = validity.null_count
    valid = None
    if nulls:
        valid = pc.is_valid(validity).buffers()[1] if validity.offset else validity.buffers()[0]
    return pa.Array.from_buffers(pa.struct(fields), len(validity), [valid], nulls, children=list(children))


def rebuild_list(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return a list array over other values; ``values`` are parallel to ``array.values``.

    Parameters
    ----------
    array : list array, **shape (n,)**
        The array with the offsets and nulls of the result.
    values : pyarrow.Array, **shape (num_values,)**
        Parallel to ``array.values``; shared.

    Returns
    -------
    list array, **shape (n,)**
        Null if ``array`` is.
    """
    return pa.Array.from_buffers(
        pa.list_(values.type), len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def rebuild_map(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    """Return a map array over other keys and items, from a map or a list of entries.

    Parameters
    ----------
    array : map or list array, **shape (n,)**
        The array with the offsets and nulls of the result.
    keys : pyarrow.Array, **shape (num_entries,)**
        Without nulls; shared.
    items : pyarrow.Array, **shape (num_entries,)**
        Parallel to the keys; shared.

    Returns
    -------
    map array, **shape (n,)**
        Null if ``array`` is.
    """
    fields = [pa.field("key", keys.type, False), pa.field("value", items.type)]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return pa.Array.from_buffers(
        pa.map_(keys.type, items.type), len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def reach(array: pa.Array, path: Sequence[int]) -> pa.Array:
    """Return a field of a struct by child numbers; null if a struct on the way is.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        A struct array, unless the path is empty.
    path : sequence of int
        The number of the child at each depth.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the field's type.
    """
    if not path:
        return array

    return pc.struct_field(array, list(path))


def replace_field(array: pa.Array, path: Sequence[str], values: pa.Array) -> pa.Array:
    """Return a struct with other values in a field, at any depth. A null struct becomes one of nulls and the value.

    Parameters
    ----------
    array : struct array, **shape (n,)**
        Not modified.
    path : sequence of str
        The name of the field at each depth; empty: ``values`` are the result.
    values : pyarrow.Array, **shape (n,)**
        The new values of the field.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Of the same fields; no struct is null.
    """
    if not path:
        return values
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    children = [pc.struct_field(array, [i]) for i in range(len(names))]
    place = names.index(path[0])
    children[place] = replace_field(children[place], path[1:], values)
    fields = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields)


def narrow(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the part of a nested array that a type requires: fields of structs are picked by name, at any depth.

    Parameters
    ----------
    array : pyarrow.Array, **shape (n,)**
        Nulls stay; memory is shared.
    target : pyarrow.DataType
        The type; its fields are a part of the array's.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        Null if ``array`` is.
    """
    found = array.type
    if not pa.types.is_nested(target) or found.equals(target):
        return array
    if pa.types.is_struct(target):
        names = [target.field(i).name for i in range(target.num_fields)]
        children = [narrow(array.field(name), target.field(name).type) for name in names]
        return rebuild_struct(array, names, children)
    if pa.types.is_map(target):
        return rebuild_map(array, narrow(array.keys, target.key_type), narrow(array.items, target.item_type))
    return rebuild_list(array, narrow(array.values, target.value_type))
