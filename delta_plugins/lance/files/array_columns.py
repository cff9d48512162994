"""Columns of files of version 2.0 from Arrow arrays: rows that are collected, and the pages that they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import UnsupportedFeatureError
from delta_core.kernels import compute as pc
from delta_plugins.lance.files.array_parts import check_nulls, packed_rows
from delta_plugins.lance.files.leaves import ValueLayout, is_leaf, value_layout
from delta_plugins.lance.files.write_requests import Requests, check_array_requests, requests_of
from delta_plugins.lance.files.written_pages import WrittenPages
from delta_plugins.lance.schema import LanceField, is_packed
from delta_plugins.lance.wire import Message, encode

__all__ = ["ArrayColumn", "ArrayPart", "array_columns", "array_parts"]

_SCHEMES = ("", "lz4", "zstd")
#: Texts of fewer distinct values have a dictionary, in pages of enough rows.
_FEW_TEXTS, _LEAST_ROWS, _SAMPLE = 100, 100, 2048
Chunks = Sequence["pa.Array[Any]"]


class ArrayPart(NamedTuple):
    """Rows of one column: an array of the type of the column, lists without what lies beneath nulls."""

    array: pa.Array[Any]
    rows: int


def array_columns(field: LanceField) -> list[ArrayColumn]:
    """Return the columns of a field and of those below it, depth first.

    Raises
    ------
    InvalidArgumentError
        For requests that files of version 2.0 do not fulfil.
    """
    return list(_columns(field, requests_of(field), False))


def _columns(field: LanceField, requests: Iterator[Requests], is_item: bool) -> Iterator[ArrayColumn]:
    if not is_leaf(field):
        is_struct = field.logical_type == "struct"
        yield (_StructColumn if is_struct else _ListColumn)(field, None, is_item)
        for child in field.children:
            yield from _columns(child, requests, is_item or not is_struct)
        return
    own = next(requests)
    of = field.arrow.type
    layout = value_layout(of)
    check_array_requests(field, own, layout)
    if pa.types.is_struct(of):
        yield _PackedColumn(field, own, is_item)
    elif pa.types.is_dictionary(of):
        yield _DictionaryColumn(field, own, is_item)
    elif pa.types.is_null(of):
        yield _NullColumn(field, own, is_item)
    else:
        yield (_FixedColumn if layout.bits else _TextColumn)(field, own, is_item)


def array_parts(field: LanceField, array: pa.Array[Any]) -> Iterator[ArrayPart]:
    """Yield the rows of the columns of a field, in the order of `array_columns`.

    Raises
    ------
    SchemaMismatchError
        For nulls in a field that has none.
    UnsupportedFeatureError
        For structs that are null, which version 2.0 does not store.
    """
    check_nulls(field, array)
    if is_leaf(field):
        if is_packed(field):
            rows = packed_rows(field, array)
            yield ArrayPart(pa.array(rows), len(array))
        else:
            yield ArrayPart(array, len(array))
    elif pa.types.is_struct(array.type):
        if array.null_count:
            raise UnsupportedFeatureError(
                f"Field {field.name!r} (id {field.id}) has {array.null_count} structs that are null, which files of "
                "version 2.0 do not store. Write files of version 2.2, or structs whose fields are null.",
                feature="null structs",
            )
        yield ArrayPart(array, len(array))
        for i, child in enumerate(field.children):
            yield from array_parts(child, array.field(i))
    else:
        yield ArrayPart(array, len(array))
        yield from array_parts(field.children[0], array.flatten())


class _Buffers:
    """The buffers of a page, each in pieces."""

    def __init__(self, requests: Requests | None) -> None:
        self.pieces: list[list[Any]] = []
        self._requests = requests

    def flat(self, bits: int, pieces: list[Any], *, is_compressed: bool = False) -> Message:
        """Add a buffer of values of a width, and return its encoding."""
        compression = None
        r = self._requests
        if is_compressed and r is not None and r.scheme:
            data = b"".join(pieces)
            packed = r.codec.compress(data, asbytes=True)
            pieces = [len(data).to_bytes(4, "little") + packed if _SCHEMES[r.scheme] == "lz4" else packed]
            compression = {"scheme": _SCHEMES[r.scheme]}
        self.pieces.append(pieces)
        buffer = {"buffer_index": len(self.pieces) - 1}
        return {"flat": {"bits_per_value": bits, "buffer": buffer, "compression": compression}}


class ArrayColumn:
    """One column: rows that are collected without a copy, and the pages that were written.

    Parameters
    ----------
    field : LanceField
        The field of the column.
    requests : Requests, optional
        Those of a leaf.
    is_item : bool
        Whether it lies below a list, so that it may have no rows.
    """

    def __init__(self, field: LanceField, requests: Requests | None, is_item: bool) -> None:
        self.field = field
        self.is_item = is_item
        self.pages = WrittenPages("/lance.encodings.ArrayEncoding", has_priority=False)
        self.num_bytes = 0
        self.num_rows = 0
        self._requests = requests
        self._chunks: list[pa.Array[Any]] = []

    def append(self, part: ArrayPart, n: int) -> None:
        """Collect rows; ``n`` is that of the rows of the table."""
        if part.rows:
            self._chunks.append(part.array)
            self.num_bytes += part.array.nbytes
            self.num_rows += part.rows

    def release(self) -> None:
        """Copy what is collected, so that arrays of the caller are not kept."""
        if self._chunks:
            self._chunks = [pa.concat_arrays([*self._chunks, self._chunks[0].slice(0, 0)])]

    def take_pages(self) -> list[tuple[bytes, list[list[Any]], int]]:
        """Return the encoding of the page of the collected rows, its buffers in pieces, and its rows."""
        buffers = _Buffers(self._requests)
        encoding = self._encoded(self._chunks, buffers) if self.num_rows else self._empty(buffers)
        rows = self.num_rows
        self._chunks, self.num_bytes, self.num_rows = [], 0, 0
        return [(encode("ArrayEncoding", encoding), buffers.pieces, rows)]

    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        raise NotImplementedError

    def _empty(self, buffers: _Buffers) -> Message:
        """Return the encoding of a page without rows."""
        return _ALL_NULL


class _StructColumn(ArrayColumn):
    """Only the number of structs is stored."""

    def append(self, part: ArrayPart, n: int) -> None:
        self.num_rows += part.rows

    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        return {"struct": {}}

    def _empty(self, buffers: _Buffers) -> Message:
        return {"struct": {}}


class _NullColumn(_StructColumn):
    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        return _ALL_NULL

    def _empty(self, buffers: _Buffers) -> Message:
        return _ALL_NULL


class _ListColumn(ArrayColumn):
    def append(self, part: ArrayPart, n: int) -> None:
        """Collect the lengths of lists; their items are rows of another column."""
        lengths = pc.list_value_length(part.array)
        super().append(ArrayPart(lengths, part.rows), n)

    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        valid = _valid(chunks)
        ends = np.cumsum(pa.chunked_array(chunks).fill_null(0).to_numpy().astype(np.uint64), dtype=np.uint64)
        total = int(ends[-1])
        if valid is not None:
            ends[~valid] += np.uint64(total + 1)
        return self._message(ends, total, buffers)

    def _empty(self, buffers: _Buffers) -> Message:
        return self._message(np.empty(0, np.uint64), 0, buffers)

    def _message(self, ends: NDArray[np.uint64], total: int, buffers: _Buffers) -> Message:
        offsets = _all_valid(buffers.flat(64, [ends]))
        return {"list": {"offsets": offsets, "null_offset_adjustment": total + 1, "num_items": total}}


class _FixedColumn(ArrayColumn):
    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        return _fixed(chunks, value_layout(chunks[0].type), buffers)


class _TextColumn(ArrayColumn):
    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        if pa.types.is_string(chunks[0].type) and self._requests is not None and not self._requests.scheme:
            found = _few_texts(chunks, buffers)
            if found is not None:
                return found
        return _texts(chunks, buffers)


class _DictionaryColumn(ArrayColumn):
    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        """Return codes of the width of keys; null is an item."""
        keys: Any = self.field.arrow.type
        whole = pa.concat_arrays([*chunks, chunks[0].slice(0, 0)])
        found = whole.dictionary_encode(null_encoding="encode")
        bits = keys.index_type.bit_width
        count = len(found.dictionary)
        if count > 1 << (bits - pa.types.is_signed_integer(keys.index_type)):
            raise UnsupportedFeatureError(
                f"Rows of field {self.field.name!r} (id {self.field.id}) can't be stored: a page has {count} distinct "
                f"values with null, more than keys of {keys.index_type}. Use a wider key type, or files of version "
                "2.2, in which null has no key.",
                feature="a page has more distinct values than keys of its dictionary type",
            )
        codes = _all_valid(buffers.flat(bits, [found.indices.to_numpy().astype(f"u{bits // 8}")]))
        items = [found.dictionary]
        layout = value_layout(found.dictionary.type)
        values = _fixed(items, layout, buffers) if layout.bits else _texts(items, buffers)
        return {"dictionary": {"indices": codes, "items": values, "num_dictionary_items": count}}


class _PackedColumn(ArrayColumn):
    def append(self, part: ArrayPart, n: int) -> None:
        super().append(part, n)

    def _encoded(self, chunks: Chunks, buffers: _Buffers) -> Message:
        layout = value_layout(self.field.arrow.type)
        buffers.flat(8, [c.buffers()[1] for c in chunks])
        return {"packed_struct": {"inner": [_packed_field(c) for c in layout.children], "buffer": {"buffer_index": 0}}}

    def release(self) -> None:
        """Packed rows are copies."""


# --- encodings ---

_ALL_NULL: Message = {"nullable": {"all_nulls": {}}}


def _all_valid(values: Message) -> Message:
    return {"nullable": {"no_nulls": {"values": values}}}


def _packed_field(layout: ValueLayout) -> Message:
    found = _all_valid({"flat": {"bits_per_value": layout.bits, "buffer": {"buffer_index": 0}}})
    for size in reversed(layout.list_sizes):
        found = _all_valid({"fixed_size_list": {"dimension": size, "items": found}})
    return found


def _valid(chunks: Chunks) -> NDArray[np.bool_] | None:
    """Return which rows are valid; None if all are."""
    if not any(c.null_count for c in chunks):
        return None
    return np.concatenate([np.asarray(c.is_valid()) for c in chunks])


def _fixed(chunks: Chunks, layout: ValueLayout, buffers: _Buffers) -> Message:
    """Encode values of a fixed size, or lists of a fixed size of them."""
    nulls = sum(c.null_count for c in chunks)
    rows = sum(map(len, chunks))
    if nulls == rows:
        return _ALL_NULL
    validity = None
    if nulls:
        valid = _valid(chunks)
        assert valid is not None
        validity = buffers.flat(1, [np.packbits(valid, bitorder="little")])
        # what lies beneath nulls is not stored; PyArrow 18 computes nothing of 16-bit floats
        chunks = [c.view(pa.uint16()) if c.type == pa.float16() else c for c in chunks]
        chunks = [pc.coalesce(c, _zero(c.type)) if c.null_count else c for c in chunks]
    if layout.list_sizes:
        size, *inner = layout.list_sizes
        items = [c.values.slice(c.offset * size, len(c) * size) for c in chunks]
        values: Message = {
            "fixed_size_list": {"dimension": size, "items": _fixed(items, layout._replace(list_sizes=inner), buffers)}
        }
    elif layout.bits == 1:
        bits = np.concatenate([np.asarray(c) for c in chunks])
        values = buffers.flat(1, [np.packbits(bits, bitorder="little")], is_compressed=True)
    else:
        width = layout.bits // 8
        pieces = [c.buffers()[1].slice(c.offset * width, len(c) * width) for c in chunks]
        values = buffers.flat(layout.bits, pieces, is_compressed=True)
    if validity is None:
        return _all_valid(values)
    return {"nullable": {"some_nulls": {"validity": validity, "values": values}}}


def _zero(of: Any) -> Any:
    """Return the value of a type whose bytes are zero."""
    if pa.types.is_fixed_size_list(of):
        items = pa.array([_zero(of.value_type)] * of.list_size, of.value_type)
        return pa.FixedSizeListArray.from_arrays(items, type=of)[0]
    return pa.Array.from_buffers(of, 1, [None, pa.py_buffer(bytes(max(of.bit_width // 8, 1)))])[0]


def _texts(chunks: Chunks, buffers: _Buffers) -> Message:
    """Encode values of any length: their ends, greater by an adjustment if they are null, and their bytes."""
    is_wide = pa.types.is_large_string(chunks[0].type) or pa.types.is_large_binary(chunks[0].type)
    kind = np.dtype(np.int64 if is_wide else np.int32)
    ends = np.empty(sum(map(len, chunks)), np.uint64)
    pieces: list[Any] = []
    row, total = 0, 0
    for chunk in chunks:
        array = _without_hidden(chunk, kind)
        n = len(array)
        _, offsets, data = array.buffers()
        at = np.frombuffer(offsets, kind, n + 1, array.offset * kind.itemsize)
        first, last = int(at[0]), int(at[-1])
        ends[row : row + n] = at[1:]
        if total != first:
            # offsets that begin after 0 wrap around, and back
            ends[row : row + n] += np.uint64((total - first) % (1 << 64))
        if last > first:
            pieces.append(data.slice(first, last - first))
        row, total = row + n, total + last - first
    valid = _valid(chunks)
    if valid is not None:
        ends[~valid] += np.uint64(total + 1)
    indices = _all_valid(buffers.flat(64, [ends]))
    return {
        "binary": {
            "indices": indices,
            "bytes": buffers.flat(8, pieces, is_compressed=True),
            "null_adjustment": total + 1,
        }
    }


def _without_hidden(array: pa.Array[Any], kind: np.dtype[Any]) -> pa.Array[Any]:
    """Return an array whose nulls have no bytes."""
    if not array.null_count:
        return array
    offsets = np.frombuffer(array.buffers()[1], kind, len(array) + 1, array.offset * kind.itemsize)
    if not np.diff(offsets)[~np.asarray(array.is_valid())].any():
        return array
    return pc.coalesce(array, pa.scalar(b"" if "binary" in str(array.type) else "", array.type))


def _few_texts(chunks: Chunks, buffers: _Buffers) -> Message | None:
    """Encode texts with few distinct values: codes count from 1, 0 is null; None if there are more."""
    rows = sum(map(len, chunks))
    if rows < _LEAST_ROWS or len(chunks[0].slice(0, _SAMPLE).unique()) > _FEW_TEXTS:
        return None
    whole = pa.chunked_array(chunks).dictionary_encode().unify_dictionaries().combine_chunks()
    found = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    count = len(found.dictionary)
    if not 0 < count < _FEW_TEXTS:
        return None
    codes = pc.add(found.indices, 1).fill_null(0).to_numpy().astype(np.uint8)
    indices = _all_valid(buffers.flat(8, [codes]))
    items = _texts([found.dictionary], buffers)
    return {"dictionary": {"indices": indices, "items": items, "num_dictionary_items": count}}
