"""Which column chunks of a Parquet file our own decoder reads, from the footer; PyArrow reads the others.

On a local disk only: elsewhere the network takes the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.parquet.opened_file import ArrowFooter, ChunkFacts, DataFile, ParquetLeaf, leaf_of
from delta_core.engines.arrow.parquet.types import is_encoded_string
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.kernels.parquet_nested import NestedChunk, NestedColumn, read_nested_column
from delta_core.kernels.parquet_pages import CODECS, ColumnChunk, ColumnTest, read_chunks, read_passing

__all__ = ["GROUP_BYTES", "USES_OWN_DECODER", "GroupReader", "find_chunk", "find_nested", "has_codes", "is_stored_as"]

#: Whether our own decoder is used at all: the environment variable turns it off, to find out what a fault is due to.
USES_OWN_DECODER = os.environ.get("DELTA_CORE_PARQUET_DECODER", "own") != "pyarrow"
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
#: A footer that claims more may be damaged, and room is made by what it specifies.
MOST_ROWS = 1 << 24
MOST_BYTES = 256 << 20
#: A row group that takes more when it is decoded as a whole is streamed by PyArrow.
GROUP_BYTES = 64 << 20
#: The same for the columns that PyArrow decodes: whole ones take it several times as much memory.
OTHERS_BYTES = 24 << 20
#: Row groups that take less are decoded into one batch, together with the next one.
JOINED_BYTES = 1 << 20
#: Bytes of a value in memory.
_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
#: The most bytes of a decimal that Arrow keeps in 128 bits.
_DECIMAL_BYTES = 16
#: Rows that are decoded at once where few of them are kept.
_BATCH_ROWS = 131_072


class _Own(Struct, frozen=True):
    """What our own decoder reads of a row group: chunks of flat columns by leaf, nested columns by name."""

    flat: dict[int, ColumnChunk]
    nested: dict[str, tuple[NestedColumn, dict[int, NestedChunk]]]

    @property
    def leaves(self) -> set[int]:
        return {*self.flat, *(leaf for _, chunks in self.nested.values() for leaf in chunks)}


class GroupReader:
    """Reads row groups of one data file: batches of all rows, or columns of some rows; columns in the file's order.

    Parameters
    ----------
    file : DataFile
    leaves : sequence of int
        The Parquet columns to decode, ascending.
    """

    def __init__(self, file: DataFile, leaves: Sequence[int]) -> None:
        self._file = file
        self._leaves = list(leaves)
        self._schema: pa.Schema = file.schema
        is_own = file.descriptor is not None and USES_OWN_DECODER
        self._flat = file.layout.flat if is_own else {}
        self._nested = file.layout.nested if is_own else {}
        self._found_chunks: dict[tuple[int, int], ColumnChunk | None] = {}

    @property
    def group_rows(self) -> Sequence[int]:
        """The rows of each row group."""
        return self._file.footer.group_rows

    def batches(self, groups: Sequence[int], first: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows of neighbouring row groups from a position on, each batch with its own."""
        streamed: list[int] = []
        decoded: list[pa.Table] = []
        start, size = first, 0
        for group in groups:
            own = self._own(group, self._leaves)
            if own.leaves and self._fits(group, own):
                yield from self.stream(streamed, start, batch_rows)
                # what a batch costs beside its bytes is more than decoding few rows: small row groups share one
                if streamed or size > JOINED_BYTES or first - start + self.group_rows[group] > batch_rows:
                    yield from _cut(decoded, start, batch_rows)
                    streamed, decoded, start, size = [], [], first, 0
                found = self._found(group, self._leaves, own)
                decoded.append(pa.table({name: found[name] for name in self._schema.names if name in found}))
                size += decoded[-1].nbytes
            else:
                yield from _cut(decoded, start, batch_rows)
                decoded, start, size = [], start if streamed else first, 0
                streamed.append(group)
            first += self.group_rows[group]
        yield from _cut(decoded, start, batch_rows)
        yield from self.stream(streamed, start, batch_rows)

    def stream(
        self, groups: Sequence[int], first: int, batch_rows: int, leaves: Sequence[int] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows of neighbouring row groups through PyArrow, in the memory of a batch."""
        if groups:
            wanted = self._leaves if leaves is None else list(leaves)
            for batch in self._file.arrow.stream_leaves(batch_rows, groups, wanted):
                yield first, batch
                first += batch.num_rows

    def columns(self, group: int, leaves: Sequence[int], picks: SelectionVector | None) -> dict[str, pa.Array]:
        """Return the top-level columns of some leaves, by name: the picked rows of a row group."""
        found = self._found(group, leaves, self._own(group, leaves), picks)
        return {name: one_array(c) for name, c in found.items()}

    def decodes(self, group: int, leaves: Sequence[int]) -> bool:
        """Whether our own decoder reads these flat columns of a row group, which skips pages without a picked row."""
        return len(self._chunks(group, leaves)) == len(leaves)

    def passing(
        self, group: int, leaf: int, values: ColumnTest, has_values: bool, picks: SelectionVector | None
    ) -> tuple[SelectionVector, pa.Array | None] | None:
        """Return the rows of a row group, of those that are picked, whose values pass, and if it can these values.

        None for a column that our own decoder does not read.
        """
        file, chunk = self._file.descriptor, self._chunks(group, [leaf]).get(leaf)
        if file is None or chunk is None or (picks is not None and picks.mask is None):
            return None
        coded = is_encoded_string(self._schema.field(self._flat[leaf]).type)
        found = read_passing(file, chunk, values, has_values, None if picks is None else picks.mask, coded)
        if found is None:
            return None
        mask, count, array = found
        return SelectionVector(chunk.num_rows, count, mask, None), array

    def plain_bytes(self, group: int, leaves: Sequence[int]) -> int:
        """Return what columns of a row group take in memory, about."""
        rows, size = self.group_rows[group], 0
        for leaf in leaves:
            width = _WIDTHS.get(self._file.layout.leaves[leaf].physical) if leaf in self._flat else None
            if width is not None:
                size += width * rows
            elif (facts := self._file.footer.chunk(group, leaf)) is not None:
                # codes may take no more than a few bits as they are stored
                size += facts.uncompressed + 8 * rows * (leaf in self._flat)
        return size

    def _fits(self, group: int, own: _Own) -> bool:
        """Whether a row group is decoded as a whole: its columns, and among them those that PyArrow decodes."""
        mine = own.leaves
        others = [leaf for leaf in self._leaves if leaf not in mine]
        is_small = self.plain_bytes(group, self._leaves) <= GROUP_BYTES
        return is_small and self.plain_bytes(group, others) <= OTHERS_BYTES

    def _own(self, group: int, leaves: Sequence[int]) -> _Own:
        """Return what our own decoder reads of a row group."""
        nested: dict[str, tuple[NestedColumn, dict[int, NestedChunk]]] = {}
        others: set[str] = set()
        for leaf in leaves:
            if (place := self._nested.get(leaf)) is not None:
                name, column = place
                chunk = self._nested_chunk(group, leaf, column.leaves[leaf][0])
                if chunk is None:
                    others.add(name)
                else:
                    nested.setdefault(name, (column, {}))[1][leaf] = chunk
        for name in others.intersection(nested):
            del nested[name]
        return _Own(self._chunks(group, leaves), nested)

    def _nested_chunk(self, group: int, leaf: int, t: pa.DataType) -> NestedChunk | None:
        facts, rows = self._file.footer.chunk(group, leaf), self.group_rows[group]
        return _nested_chunk(facts, rows, self._file.layout.leaves[leaf], t)

    def _chunks(self, group: int, leaves: Sequence[int]) -> dict[int, ColumnChunk]:
        """Return the chunks of flat columns of a row group that our own decoder reads, by leaf."""
        found = {}
        for leaf in leaves:
            place = self._flat.get(leaf)
            if place is not None:
                if (group, leaf) not in self._found_chunks:
                    self._found_chunks[group, leaf] = self._chunk_of(group, leaf, self._schema.field(place).type)
                chunk = self._found_chunks[group, leaf]
                if chunk is not None:
                    found[leaf] = chunk
        return found

    def _chunk_of(self, group: int, leaf: int, t: pa.DataType) -> ColumnChunk | None:
        t = t.value_type if is_encoded_string(t) else t
        return _chunk(self._file.footer.chunk(group, leaf), self.group_rows[group], self._file.layout.leaves[leaf], t)

    def _found(
        self, group: int, leaves: Sequence[int], own: _Own, picks: SelectionVector | None = None
    ) -> dict[str, Any]:
        """Read columns of a row group, or their picked rows, by our decoder where it can, else by PyArrow."""
        fields = {leaf: self._schema.field(self._flat[leaf]) for leaf in own.flat}
        coded = [leaf for leaf, f in fields.items() if is_encoded_string(f.type)]
        mask = None if picks is None else picks.mask
        file = self._file.descriptor
        found = {} if file is None or not own.flat else read_chunks(file, own.flat, coded, mask)
        columns: dict[str, Any] = {fields[leaf].name: array for leaf, array in found.items()}
        done = set(found)
        for name, (column, chunks) in own.nested.items():
            array = self._read_nested(group, column, chunks, picks)
            if array is not None:
                columns[name] = array
                done.update(chunks)
        others = [leaf for leaf in leaves if leaf not in done]
        if others:
            columns.update(self._others(group, others, picks))
        return columns

    def _read_nested(
        self, group: int, column: NestedColumn, chunks: dict[int, NestedChunk], picks: SelectionVector | None
    ) -> pa.Array | None:
        file, rows = self._file.descriptor, self.group_rows[group]
        if file is None or (picks is not None and picks.mask is None):
            return None
        mask, count = (None, rows) if picks is None else (picks.mask, picks.count)
        return read_nested_column(file, column, chunks, rows, mask, count)

    def _others(self, group: int, leaves: list[int], picks: SelectionVector | None) -> dict[str, Any]:
        """Read columns through PyArrow; few rows of a big row group, or its first ones, in the memory of a batch."""
        if picks is None or not self._is_streamed(group, leaves, picks):
            table = self._file.arrow.read_leaves(group, leaves)
            columns = dict(zip(table.column_names, table.columns, strict=True))
            return (
                columns
                if picks is None
                else {n: gather_column(one_array(c), picks, decode=False) for n, c in columns.items()}
            )
        flags = picks.flags()
        stop = picks.stop
        parts: dict[str, list[pa.Array]] = {}
        for at, batch in self.stream([group], 0, min(_BATCH_ROWS, stop), leaves):
            part = SelectionVector.of_flags(flags[at : at + batch.num_rows])
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                parts.setdefault(name, []).append(gather_column(column, part, decode=False))
            if at + batch.num_rows >= stop:
                break
        return {name: one_array(pa.chunked_array(arrays)) for name, arrays in parts.items()}

    def _is_streamed(self, group: int, leaves: Sequence[int], picks: SelectionVector) -> bool:
        return 0 < picks.stop <= picks.num_rows // 2 or self.plain_bytes(group, leaves) > GROUP_BYTES


def _cut(tables: list[pa.Table], first: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of tables, one behind the other, in batches, each with its position."""
    if not tables:
        return
    joined = tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks(POOL_OF_BATCHES)
    for batch in joined.to_batches(batch_rows):
        yield first, batch
        first += batch.num_rows


def find_chunk(footer: ArrowFooter, group: int, leaf: int, type: pa.DataType) -> ColumnChunk | None:
    """Return where a column chunk lies; None if it is PyArrow's to read.

    Parameters
    ----------
    footer : ArrowFooter
        The file's.
    group : int
        The row group's number.
    leaf : int
        The Parquet column's number.
    type : pyarrow.DataType
        What PyArrow would read it as.
    """
    found = leaf_of(footer.metadata.schema.column(leaf))
    return _chunk(footer.chunk(group, leaf), footer.group_rows[group], found, type)


def find_nested(footer: ArrowFooter, group: int, column: NestedColumn) -> dict[int, NestedChunk]:
    """Return where column chunks of a nested column lie, by leaf; none if one of them is PyArrow's to read.

    Parameters
    ----------
    footer : ArrowFooter
        The file's.
    group : int
        The row group's number.
    column : NestedColumn
        How the column is stored.
    """
    found: dict[int, NestedChunk] = {}
    for number, (t, _, _) in column.leaves.items():
        leaf = leaf_of(footer.metadata.schema.column(number))
        chunk = _nested_chunk(footer.chunk(group, number), footer.group_rows[group], leaf, t)
        if chunk is None:
            return {}
        found[number] = chunk
    return found


def _nested_chunk(facts: ChunkFacts | None, rows: int, leaf: ParquetLeaf, type: pa.DataType) -> NestedChunk | None:
    # all of its entries are in memory at once; codes may take no more than a few bits as they are stored
    if facts is None or facts.num_values < rows or max(facts.uncompressed, 8 * facts.num_values) > GROUP_BYTES:
        return None
    stored = _nested_value_type(leaf, type)
    chunk = None if stored is None else _place(facts, rows, leaf, stored)
    return None if chunk is None else NestedChunk(chunk, facts.num_values, leaf.length)


def _chunk(facts: ChunkFacts | None, rows: int, leaf: ParquetLeaf, type: pa.DataType) -> ColumnChunk | None:
    if facts is None or leaf.most_repetition or facts.num_values != rows or not is_stored_as(leaf.physical, type):
        return None
    return _place(facts, rows, leaf, type)


def _place(facts: ChunkFacts, rows: int, leaf: ParquetLeaf, type: pa.DataType) -> ColumnChunk | None:
    if (
        facts.physical != leaf.physical
        or facts.codec not in CODECS
        or not facts.is_plain
        or not 0 < rows <= MOST_ROWS
        or not 0 < facts.compressed <= MOST_BYTES
        or not 0 < facts.uncompressed <= MOST_BYTES
    ):
        return None
    return ColumnChunk(
        type,
        facts.first,
        facts.compressed,
        facts.codec,
        leaf.most_level,
        rows,
        facts.uncompressed,
        facts.bloom_filter,
        facts.page_index,
    )


def has_codes(metadata: Any, leaf: int, groups: Iterable[int]) -> bool:
    """Whether PyArrow can return a column's strings as dictionary codes; of further encodings it has none."""
    return all(_ENCODINGS.issuperset(metadata.row_group(group).column(leaf).encodings) for group in groups)


def is_stored_as(physical: str, t: pa.DataType) -> bool:
    """Whether the bytes that Parquet stores are those of the Arrow type."""
    types = pa.types
    if physical == "INT32":
        return bool(types.is_int32(t) or types.is_date32(t))
    if physical == "INT64":
        return bool(types.is_int64(t) or types.is_timestamp(t))
    if physical == "BYTE_ARRAY":
        return bool(types.is_string(t) or types.is_binary(t))
    return physical == "DOUBLE" and bool(types.is_float64(t)) or physical == "FLOAT" and bool(types.is_float32(t))


def _nested_value_type(leaf: ParquetLeaf, t: pa.DataType) -> pa.DataType | None:
    """Return the type that values inside of a nested column are decoded as; None if PyArrow reads them."""
    types = pa.types
    if is_stored_as(leaf.physical, t):
        return t
    if leaf.physical == "BOOLEAN":
        return t if types.is_boolean(t) else None
    if types.is_decimal128(t):
        if leaf.physical == "FIXED_LEN_BYTE_ARRAY":
            return t if 1 <= leaf.length <= _DECIMAL_BYTES else None
        return {"INT32": pa.int32(), "INT64": pa.int64()}.get(leaf.physical)
    if leaf.physical == "BYTE_ARRAY":
        return pa.string() if types.is_large_string(t) else pa.binary() if types.is_large_binary(t) else None
    return pa.int32() if leaf.physical == "INT32" and (types.is_int8(t) or types.is_int16(t)) else None
