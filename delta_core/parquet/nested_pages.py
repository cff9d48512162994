"""Structs, lists and maps of Parquet files as Arrow arrays, decoded page by page as flat columns are.

PyArrow's reader stays the complete one; what this one does not support, or finds damaged, it returns undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels import compute as pc
from delta_core.parquet._pages import NestedStretches, UnsupportedPagesError, copied_levels, read_nested
from delta_core.parquet.pages import CODECS, ColumnChunk, PageCounts, Source, lent_workspace, shared_bytes, width_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.parquet._pages import Levels, NestedChunkTuple

__all__ = [
    "LeafForm",
    "NestedChunk",
    "NestedColumn",
    "NestedColumnStretches",
    "assemble_files",
    "leaf_forms",
    "nested_column",
    "read_nested_column",
]

#: Levels are kept in a byte each.
_MOST_LEVEL = 255


class _Part(Struct, frozen=True, eq=False):
    """A struct, list or map, or a column of values.

    Parameters
    ----------
    type : pyarrow.DataType
    parts : sequence
        Fields of a struct; the element of a list; key and value of a map.
    number : int
        Of a column of values.
    is_nullable : bool
        Whether it may be null itself, not what it is in.
    repetition : int
        How many lists are around it.
    slot : int
        The definition level from which on an entry has one of it, or a null.
    there : int
        The definition level from which on it is not null.
    """

    type: pa.DataType
    parts: Sequence[_Part]
    number: int
    is_nullable: bool
    repetition: int
    slot: int
    there: int


class NestedColumn(Struct, frozen=True, eq=False):
    """A struct, list or map at the top of a file's schema, or a column of values that is decoded like a field of one.

    Parameters
    ----------
    leaves : Mapping
        The Parquet columns of it, by number: their Arrow type, the definition and the repetition level of a value.
    """

    leaves: Mapping[int, tuple[pa.DataType, int, int]]
    _top: _Part
    _parts: Mapping[int, _Part]


class NestedChunk(Struct, frozen=True):
    """A column chunk inside of a nested column.

    Parameters
    ----------
    chunk : ColumnChunk
        Also of booleans, and of decimals that are stored in bytes, the highest one first. If its type differs from that
        of the column in the schema, the values are cast.
    num_entries : int
        Its values, and the entries of nulls and empty lists.
    length : int
        The bytes of a value of FIXED_LEN_BYTE_ARRAY.
    """

    chunk: ColumnChunk
    num_entries: int
    length: int = 0


class _UnsupportedTypeError(Exception):
    """A type that is left to a complete reader."""


class _Builder:
    """One walk over a column; collects the columns of values."""

    def __init__(self, first: int) -> None:
        self._next = first
        self.leaves: dict[int, _Part] = {}

    def part(self, field: pa.Field, repetition: int, slot: int, outer: int) -> _Part:
        """Return a field; ``outer`` is the definition level from which on what is around it is there."""
        t, there = field.type, outer + field.nullable
        number, parts = -1, list[_Part]()
        if there > _MOST_LEVEL:
            raise _UnsupportedTypeError
        if pa.types.is_struct(t) and t.num_fields:
            parts = [self.part(f, repetition, slot, there) for f in t]
        elif pa.types.is_map(t) and not t.key_field.nullable:
            parts = [self.part(f, repetition + 1, there + 1, there + 1) for f in (t.key_field, t.item_field)]
        elif _is_list(t):
            parts = [self.part(t.value_field, repetition + 1, there + 1, there + 1)]
        elif t.num_fields or isinstance(t, pa.BaseExtensionType) or pa.types.is_nested(t):
            raise _UnsupportedTypeError
        else:
            number = self._next
            self._next += 1
        found = _Part(t, parts, number, field.nullable, repetition, slot, there)
        if number >= 0:
            self.leaves[number] = found
        return found


def _is_list(t: pa.DataType) -> bool:
    return bool(pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t))


def nested_column(field: pa.Field, first: int) -> NestedColumn | None:
    """Return how a nested column is stored; None for one that is left to a complete reader.

    Parameters
    ----------
    field : pyarrow.Field
        As PyArrow reads it from the file.
    first : int
        The number of its first Parquet column.
    """
    builder = _Builder(first)
    try:
        top = builder.part(field, 0, 0, 0)
    except _UnsupportedTypeError:
        return None
    return NestedColumn({n: (p.type, p.there, p.repetition) for n, p in builder.leaves.items()}, top, builder.leaves)


def read_nested_column(
    source: Source,
    column: NestedColumn,
    chunks: Mapping[int, NestedChunk],
    num_rows: int,
    keep: NDArray[np.uint64] | None = None,
    num_kept: int | None = None,
    pages: PageCounts | None = None,
) -> pa.Array | None:
    """Decode a nested column of a row group, without the interpreter's lock.

    Parameters
    ----------
    source : int or bytes-like
        A descriptor of the file, or its bytes.
    column : NestedColumn
        How it is stored.
    chunks : Mapping
        Those that are requested, by number. A struct returns only the fields with a chunk; a map needs all of its key.
    num_rows : int
        Of the row group.
    keep : uint64, **shape (n,)**, optional
        A mask of the rows that are requested, see `read_chunks`.
    num_kept : int, optional
        How many rows it keeps.
    pages : PageCounts, optional
        Is counted up.

    Returns
    -------
    pyarrow.Array of **num_rows values**, or **num_kept**
        None if a page is encoded in a way that only a complete reader decodes, or is damaged.

    Raises
    ------
    pyarrow.ArrowInvalid
        The pages have more rows or values than the footer specifies: PyArrow would return a part of them.
    """
    described = [_described(column, number, chunk) for number, chunk in chunks.items()]
    with lent_workspace(pages) as space:
        found = read_nested(space, source, described, num_rows, keep)
    return _assembled(column, chunks, found, num_rows if keep is None else num_kept)


class NestedColumnStretches:
    """A nested column of a row group that is decoded one stretch of rows after the other.

    Parameters
    ----------
    source, column, chunks, num_rows
        See `read_nested_column`.
    among : int, optional
        See `delta_core.parquet.pages.ChunkStretches`.
    """

    def __init__(
        self,
        source: Source,
        column: NestedColumn,
        chunks: Mapping[int, NestedChunk],
        num_rows: int,
        among: int | None = None,
    ) -> None:
        described = [_described(column, number, chunk) for number, chunk in chunks.items()]
        sizes = shared_bytes(among or len(chunks))
        self._column, self._chunks = column, chunks
        self._stretches = NestedStretches(source, described, num_rows, *sizes)

    def read(
        self,
        first: int,
        stop: int,
        keep: NDArray[np.uint64] | None = None,
        num_kept: int | None = None,
        pages: PageCounts | None = None,
    ) -> pa.Array | None:
        """Decode the rows from ``first`` to ``stop``, which follow those read before; see `read_nested_column`.

        After a None nothing more can be read.
        """
        with lent_workspace(pages) as space:
            found = self._stretches.read(space, first, stop, keep)
        return _assembled(self._column, self._chunks, found, stop - first if keep is None else num_kept)


class LeafForm(Struct, frozen=True):
    """A Parquet column inside of a nested one, as `parquet_files` decodes it: what `_parquet_files.Runs` needs of it.

    Parameters
    ----------
    width, decimal_bytes : int
        Bytes of a value in memory, 0 for strings; and in the file, of a decimal.
    levels : tuple of int
        The definition and the repetition level of a value, and the definition level of an element of its list.
    shared : tuple of tuple of int
        The lists around it, whose elements other columns have too: a key, the repetition and the definition level of an
        element.
    """

    width: int
    decimal_bytes: int
    levels: tuple[int, int, int]
    shared: tuple[tuple[int, int, int], ...]


def leaf_forms(column: NestedColumn, chunks: Mapping[int, NestedChunk]) -> dict[int, LeafForm]:
    """Return the forms of the columns of a nested one that are requested; `read_nested_column` has the parameters."""
    shared: dict[int, tuple[tuple[int, int, int], ...]] = {}

    def first(part: _Part) -> int:
        return first(part.parts[0]) if part.parts else part.number

    def walk(part: _Part, around: tuple[tuple[int, int, int], ...]) -> None:
        if not part.parts:
            shared[part.number] = around
        elif not pa.types.is_struct(part.type):
            # all columns below have its elements; no other list of the file has this number
            key = first(part) * (_MOST_LEVEL + 1) + part.repetition
            around = (*around, (key, part.repetition + 1, part.there + 1))
        for inner in part.parts:
            walk(inner, around)

    walk(column._top, ())
    out = {}
    for number, chunk in chunks.items():
        part, t = column._parts[number], chunk.chunk.type
        decimal = chunk.length if pa.types.is_decimal(t) else 0
        out[number] = LeafForm(width_of(t), decimal, (part.there, part.repetition, part.slot), shared[number])
    return out


def assemble_files(
    column: NestedColumn, chunks: Mapping[int, NestedChunk], found: Sequence[Any], rows: int
) -> pa.Array | None:
    """Return a nested column of files, of what `_parquet_files.Runs.leaf` returned; None if it is not sound."""
    parts = []
    for definitions, repetitions, most, n, nulls, valid, buffers in found:
        levels = copied_levels(np.frombuffer(definitions, np.uint8), np.frombuffer(repetitions, np.uint8), most)
        parts.append((levels, n, nulls, valid, *buffers))
    return _assembled(column, chunks, parts, rows)


def _assembled(
    column: NestedColumn, chunks: Mapping[int, NestedChunk], found: Sequence[Any], rows: int | None
) -> pa.Array | None:
    """Return the column of the levels and values of its chunks."""
    arrays = dict(zip(chunks, found, strict=True))
    if None in arrays.values():
        return None
    try:
        built = _build(column._top, _decoded(column, chunks, arrays))
    except UnsupportedPagesError:
        return None
    return built[0] if built is not None and len(built[0]) == rows else None


def _described(column: NestedColumn, number: int, nested: NestedChunk) -> NestedChunkTuple:
    chunk, part = nested.chunk, column._parts[number]
    codec, decompress = CODECS[chunk.codec]
    levels = part.there, part.repetition, part.slot
    place = chunk.offset, chunk.num_bytes
    width = width_of(chunk.type)
    decimal = nested.length if pa.types.is_decimal(chunk.type) else 0
    return *place, codec, width, decimal, *levels, nested.num_entries, chunk.plain_bytes, decompress


def _decoded(
    column: NestedColumn, chunks: Mapping[int, NestedChunk], found: Mapping[int, Any]
) -> dict[int, tuple[Levels, pa.Array]]:
    """Return the levels and the values of each column, of the types in the schema."""
    out = {}
    for number, (levels, n, nulls, valid, *data) in found.items():
        part, stored = column._parts[number], chunks[number].chunk.type
        plain = pa.uint8() if pa.types.is_boolean(stored) else stored
        # below a null struct it has values if it is not nullable, as PyArrow's reader returns them
        validity = (nulls, [valid, *data]) if part.is_nullable else (0, [None, *data])
        out[number] = levels, _cast(pa.Array.from_buffers(plain, n, validity[1], validity[0]), part.type)
    return out


def _cast(array: pa.Array, t: pa.DataType) -> pa.Array:
    if array.type.equals(t):
        return array
    if pa.types.is_decimal128(t):  # an unscaled value, to which Arrow's cast would add the scale
        wide = np.empty((len(array), 2), np.int64)
        wide[:, 0] = np.frombuffer(array.buffers()[1], f"i{array.type.bit_width // 8}", len(array))
        wide[:, 1] = wide[:, 0] >> 63
        return pa.Array.from_buffers(t, len(array), [array.buffers()[0], pa.py_buffer(wide)], array.null_count)
    try:
        return pc.cast(array, t)
    except pa.ArrowInvalid as e:  # a small integer that is out of range, or a list of another length
        raise UnsupportedPagesError(f"values that are no {t}: {e}") from e


def _build(part: _Part, found: Mapping[int, tuple[Levels, pa.Array]]) -> tuple[pa.Array, Levels] | None:
    """Return the array of a part, and the levels of one of its columns; None if none of them is requested."""
    if not part.parts:
        if part.number not in found:
            return None
        levels, array = found[part.number]
        return array, levels
    built = [_build(inner, found) for inner in part.parts]
    inner = [b for b in built if b is not None]
    if not inner:
        return None
    arrays, levels = [array for array, _ in inner], inner[0][1]
    if pa.types.is_struct(part.type):
        fields = [f.with_type(b[0].type) for f, b in zip(part.type, built, strict=True) if b is not None]
        return _struct(part, fields, arrays, levels), levels
    if len(inner) < len(built):
        raise UnsupportedPagesError("a map without the column of its key or value")
    return _list(part, arrays, levels), levels


def _struct(part: _Part, fields: Sequence[pa.Field], arrays: Sequence[pa.Array], levels: Levels) -> pa.Array:
    n, nulls, valid = len(arrays[0]), 0, None
    if part.is_nullable:
        n, nulls, valid = levels.structs(part.repetition, part.slot, part.there)
    _check_lengths(n, arrays)
    return pa.Array.from_buffers(pa.struct(fields), n, [valid], nulls, children=arrays)


def _list(part: _Part, arrays: Sequence[pa.Array], levels: Levels) -> pa.Array:
    lists = levels.lists(part.repetition + 1, part.slot, part.there, part.there + 1)
    if lists is None:
        raise UnsupportedPagesError("repetition levels that do not make up lists")
    n, elements, nulls, valid, ends = lists
    _check_lengths(elements, arrays)
    if not part.is_nullable:
        nulls, valid = 0, None
    if not pa.types.is_map(part.type):
        element = part.type.value_field.with_type(arrays[0].type)
        found = pa.Array.from_buffers(pa.list_(element), n, [valid, ends], nulls, children=arrays)
        return found if pa.types.is_list(part.type) else _cast(found, _list_type(part.type, element))
    fields = part.type.key_field.with_type(arrays[0].type), part.type.item_field.with_type(arrays[1].type)
    entries = pa.Array.from_buffers(pa.struct(fields), elements, [None], 0, children=arrays)
    return pa.Array.from_buffers(pa.map_(*fields), n, [valid, ends], nulls, children=[entries])


def _list_type(t: pa.DataType, element: pa.Field) -> pa.DataType:
    return pa.large_list(element) if pa.types.is_large_list(t) else pa.list_(element, t.list_size)


def _check_lengths(n: int, arrays: Sequence[pa.Array]) -> None:
    if any(len(array) != n for array in arrays):
        raise UnsupportedPagesError(f"columns of {[len(a) for a in arrays]} values in {n} structs or elements")
