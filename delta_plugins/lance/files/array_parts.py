"""Arrow arrays of a field as what the columns of a file are written from: layers and values, by their addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.api import SchemaMismatchError
from delta_plugins.lance.files.leaves import is_leaf, value_layout
from delta_plugins.lance.schema import LanceField

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LeafPart", "check_nulls", "leaf_parts", "packed_rows", "packed_texts", "storage_of"]

_ITEM, _LIST, _LARGE_LIST, _FIXED_LIST, _ALL_NULL = range(5)
#: Bytes of rows that are collected together.
_MOST_TEXT = 2**31 - 1
Layer = tuple[int, int, int, int, int]


class LeafPart(NamedTuple):
    """Rows of one leaf, as ``_page_writer.PageCollector.append`` takes them.

    Parameters
    ----------
    layers : list of tuple
        (kind, address of the validity, offset, address of offsets, size), the outermost first.
    values : tuple
        (address of the values, offset, address of offsets, has 64-bit offsets, lists of a fixed size).
    kept : list
        The arrays that the addresses point into.
    """

    layers: list[Layer]
    values: tuple[int, int, int, bool, list[tuple[int, int, int]]]
    kept: list[Any]


def leaf_parts(field: LanceField, array: pa.Array[Any]) -> Iterator[LeafPart]:
    """Yield the parts of the leaves of a field, in the order of `leaves.leaves_of`.

    Parameters
    ----------
    field : LanceField
        A top-level field.
    array : pyarrow.Array
        Rows of it, of its storage type (`storage_of`).

    Raises
    ------
    SchemaMismatchError
        For nulls in a field that has none.
    """
    yield from _parts(field, array, [], True)


def storage_of(array: pa.Array[Any], type: pa.DataType) -> pa.Array[Any]:
    """Return an array without extension types, at any depth, and with values in place of dictionaries.

    Raises
    ------
    SchemaMismatchError
        If the array is of another type.
    """
    plain = _plain_type(type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.equals(type) and plain.equals(type):
        return array
    try:
        return array.cast(plain) if not array.type.equals(plain) else array
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise SchemaMismatchError(f"Values of type {array.type} can't be stored as {type}: {e}.") from e


def _plain_type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType):
        return _plain_type(type.storage_type)
    if pa.types.is_dictionary(type):
        return type.value_type
    if pa.types.is_struct(type):
        return pa.struct([f.with_type(_plain_type(f.type)) for f in type])
    if pa.types.is_map(type):
        key, item = type.key_field, type.item_field
        return pa.map_(key.with_type(_plain_type(key.type)), item.with_type(_plain_type(item.type)))
    if pa.types.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(_plain_type(type.value_type)), type.list_size)
    if pa.types.is_large_list(type):
        return pa.large_list(type.value_field.with_type(_plain_type(type.value_type)))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_plain_type(type.value_type)))
    return type


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address


def check_nulls(field: LanceField, array: pa.Array[Any]) -> None:
    """Check that values of a field that has no nulls are not null.

    Raises
    ------
    SchemaMismatchError
        If one is.
    """
    if not field.nullable and array.null_count:
        raise SchemaMismatchError(
            f"Field {field.name!r} (id {field.id}) is not nullable, but {array.null_count} of its values are null. "
            "Fill them, or make the field nullable."
        )


def _parts(field: LanceField, array: pa.Array[Any], above: list[Layer], is_checked: bool) -> Iterator[LeafPart]:
    if is_checked:
        check_nulls(field, array)
    if is_leaf(field):
        yield _leaf_part(field, array, above)
        return
    kind = field.logical_type
    validity = _address(array.buffers()[0])
    if pa.types.is_struct(array.type):
        layers = [*above, (_ITEM, validity, array.offset, 0, 0)]
        is_checked = is_checked and not array.null_count
        for i, child in enumerate(field.children):
            yield from _parts(child, array.field(i), layers, is_checked)
    elif pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        yield from _parts(field.children[0], items, [*above, (_FIXED_LIST, validity, array.offset, 0, size)], False)
    else:
        offsets = _address(array.buffers()[1])
        layer = (_LARGE_LIST if kind.startswith("large_") else _LIST, validity, array.offset, offsets, 0)
        items = array.values
        if not len(array):
            items = items.slice(0, 0)
        yield from _parts(field.children[0], items, [*above, layer], False)


def _leaf_part(field: LanceField, array: pa.Array[Any], above: list[Layer]) -> LeafPart:
    of = array.type
    if pa.types.is_null(of):
        return LeafPart([*above, (_ALL_NULL, 0, 0, 0, 0)], (0, 0, 0, False, []), [array])
    buffers = array.buffers()
    layers = [*above, (_ITEM, _address(buffers[0]), array.offset, 0, 0)]
    if pa.types.is_struct(of) and not value_layout(of).bits:
        ends, rows = packed_texts(field, array)
        kept = [array, ends, rows]
        return LeafPart(layers, (rows.ctypes.data if rows.size else 0, 0, ends.ctypes.data, False, []), kept)
    if pa.types.is_struct(of):
        rows = packed_rows(field, array)
        return LeafPart(layers, (rows.ctypes.data if rows.size else 0, 0, 0, False, []), [array, rows])
    if pa.types.is_fixed_size_list(of):
        lists, items, start = _fixed_lists(array)
        return LeafPart(layers, (_address(items.buffers()[1]), start, 0, False, lists), [array])
    if len(buffers) == 3:
        is_wide = pa.types.is_large_string(of) or pa.types.is_large_binary(of)
        return LeafPart(layers, (_address(buffers[2]), array.offset, _address(buffers[1]), is_wide, []), [array])
    return LeafPart(layers, (_address(buffers[1]), array.offset, 0, False, []), [array])


def _fixed_lists(array: pa.Array[Any]) -> tuple[list[tuple[int, int, int]], pa.Array[Any], int]:
    """Return the lists within values, the array of the innermost items, and where they start in its buffers."""
    lists = []
    start = array.offset
    while pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        array = array.values
        start = start * size + array.offset
        lists.append((size, _address(array.buffers()[0]), start))
    return lists, array, start


def packed_rows(field: LanceField, array: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the rows of a packed struct of values of a fixed size, fields without padding.

    Raises
    ------
    SchemaMismatchError
        For nulls, which packed structs do not have.
    """
    if array.null_count:
        raise _null(field)
    n = len(array)
    columns = [_fixed_bytes(field, array.field(i), n) for i in range(array.type.num_fields)]
    return np.ascontiguousarray(np.concatenate(columns, 1)).reshape(-1) if columns else np.zeros(0, np.uint8)


def packed_texts(field: LanceField, array: pa.Array[Any]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the rows of a packed struct with values of any length, each of which comes after its length.

    Returns
    -------
    ends : int32[n_rows + 1]
        Where each row starts and ends; null descriptors of blobs have no bytes.
    rows : uint8[n]
        The rows, fields without padding.

    Raises
    ------
    SchemaMismatchError
        For nulls, which packed structs do not have, and rows of more than 2 GB.
    """
    if array.null_count and field.children[0].id >= 0:
        # only descriptors of blobs, whose fields have no ids, may be null
        raise _null(field)
    n = len(array)
    is_valid = np.asarray(array.is_valid()) if array.null_count else np.ones(n, np.bool_)
    dense = array.drop_null() if array.null_count else array
    parts = list(_pieces(field, dense))
    lengths: NDArray[np.int64] = np.zeros(n, np.int64)
    lengths[is_valid] = sum(sizes for sizes, _ in parts)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if ends[-1] > _MOST_TEXT:
        raise SchemaMismatchError(
            f"Packed struct {field.name!r} (id {field.id}) has a row of more than {_MOST_TEXT} bytes. Remove the "
            "request 'lance-encoding:packed' from the field's metadata."
        )
    rows = np.empty(int(ends[-1]), np.uint8)
    at = ends[:-1][is_valid]
    for sizes, data in parts:
        starts = np.cumsum(sizes) - sizes
        rows[np.repeat(at - starts, sizes) + np.arange(len(data))] = data
        at = at + sizes
    return ends.astype(np.int32), rows


def _pieces(field: LanceField, array: pa.Array[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield the sizes of the pieces that rows consist of, and their bytes, one row after the other."""
    n = len(array)
    for i, layout in enumerate(value_layout(array.type).children):
        child = array.field(i)
        if layout.bits:
            data = _fixed_bytes(field, child, n)
            yield np.full(n, data.shape[1], np.int64), data.reshape(-1)
            continue
        if child.null_count:
            raise _null(field)
        kind = np.int64 if layout.is_wide else np.int32
        _, offsets, texts = child.buffers()
        bounds = np.frombuffer(offsets, kind, n + 1, child.offset * kind().itemsize) if n else np.zeros(1, kind)
        sizes = np.diff(bounds)
        yield np.full(n, kind().itemsize, np.int64), sizes.view(np.uint8)
        found = np.frombuffer(texts, np.uint8) if texts is not None else np.zeros(0, np.uint8)
        yield sizes.astype(np.int64), found[bounds[0] : bounds[-1]]


def _null(field: LanceField) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Packed struct {field.name!r} (id {field.id}) has nulls, which packed structs do not store. "
        "Fill them, or remove the request 'lance-encoding:packed' from the field's metadata."
    )


def _fixed_bytes(field: LanceField, child: pa.Array[Any], n: int) -> NDArray[np.uint8]:
    """Return the values of a field of a packed struct, uint8[n_rows, bytes of a value]."""
    nulls = child.null_count
    width = 1
    start = child.offset
    while pa.types.is_fixed_size_list(child.type):
        size = child.type.list_size
        width *= size
        child = child.values
        start = start * size + child.offset
        nulls = nulls or child.slice(start - child.offset, n * width).null_count
    if nulls:
        raise _null(field)
    if child.type.bit_width % 8:
        raise SchemaMismatchError(
            f"Packed struct {field.name!r} (id {field.id}) has a field of type {child.type}, which takes a part "
            "of a byte. Remove the request 'lance-encoding:packed' from the field's metadata."
        )
    item = child.type.bit_width // 8
    width *= item
    data = np.frombuffer(child.buffers()[1], np.uint8) if n else np.zeros(0, np.uint8)
    return data[start * item : start * item + n * width].reshape(n, width)
