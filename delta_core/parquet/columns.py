"""Row groups of a Parquet file to columns: by our own decoder if the footer shows that it can, else by PyArrow.

Of remote files our own decoder reads the columns of big row groups alone: of others the network takes the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.engines.conditions import ColumnTest
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.parquet import page_parts
from delta_core.parquet.opened_file import (
    DECIMAL_BYTES,
    PLAIN_ENCODINGS,
    ArrowFooter,
    ChunkFacts,
    DataFile,
    FileFooter,
    ParquetLeaf,
    chunk_of,
    flat_chunk,
    flat_form,
    is_stored_as,
    leaf_of,
)
from delta_core.parquet.pages import ColumnChunk, PageCounts, WideBatch, read_chunks, read_joined, read_passing
from delta_core.parquet.stretches import Own, Stretches
from delta_core.runtime.lanes import run_at_once

if TYPE_CHECKING:
    from delta_core.parquet.nested_pages import NestedChunk, NestedColumn

__all__ = [
    "GROUP_BYTES",
    "USES_OWN_DECODER",
    "WIDE_LEAVES",
    "WORD_ROWS",
    "GroupReader",
    "find_chunk",
    "find_nested",
    "has_codes",
    "nested_value_type",
]

#: Whether our own decoder is used at all: the environment variable turns it off, to find out what a fault is due to.
USES_OWN_DECODER = os.environ.get("DELTA_CORE_PARQUET_DECODER", "own") != "pyarrow"
#: A footer that claims more may be damaged, and room for whole chunks is made by what it specifies.
MOST_ROWS = 1 << 24
MOST_BYTES = 256 << 20
#: A row group that takes more when it is decoded as a whole is decoded in stretches of its rows.
GROUP_BYTES = 64 << 20
#: The same if all rows are in memory together in the end.
COLLECTED_BYTES = 256 << 20
#: The same for the columns that PyArrow decodes: whole ones take it several times as much memory.
OTHERS_BYTES = 24 << 20
#: The bytes of the rows of a stretch; more if pages that have rows of two stretches are decoded twice: of nested
#: columns, and of many columns, whose pages are not kept.
STRETCH_BYTES, NESTED_STRETCH_BYTES = 4 << 20, 16 << 20
WIDE_LEAVES, WIDE_STRETCH_BYTES = 64, 32 << 20
#: Columns of a remote row group that take less in the store are fetched at once, and decoded by PyArrow.
FETCHED_BYTES = 32 << 20
#: Rows that take less are decoded at once.
WHOLE_BYTES = 20 << 20
#: Rows of a mask's word, with which stretches begin.
WORD_ROWS = 64
#: Row groups that take less are decoded into one batch, together with the next one.
JOINED_BYTES = 1 << 20
#: Row groups that take less are decoded together, and their conditions tested together: what is done a row group takes
#: longer than to decode few rows.
SMALL_GROUP_BYTES = 512 << 10
#: The same if all of their rows are requested, and what those that are decoded together take.
WHOLE_GROUP_BYTES, JOINED_GROUPS_BYTES = 1 << 20, 4 << 20
#: The same if the chunks of many columns take less on average.
SMALL_CHUNK_BYTES = 32 << 10
#: The least plain bytes of many columns that are decoded by several threads, and the bytes that take as long as a
#: chunk.
_SHARED_BYTES, _CHUNK_BYTES = 20 << 20, 16 << 10
#: Rows that are decoded at once where few of them are kept.
_BATCH_ROWS = 131_072


class GroupReader:
    """Reads row groups of one data file: batches of all rows, or columns of some rows; columns in the file's order.

    Parameters
    ----------
    file : DataFile
    leaves : sequence of int
        The Parquet columns to decode, ascending.
    is_limited : bool
        Whether first rows are read for a limit. Pages of nested columns after them are not even counted.
    lanes : int
        The threads that decode columns of a row group.
    is_collected : bool
        See `FileRead`.
    """

    def __init__(
        self,
        file: DataFile,
        leaves: Sequence[int],
        is_limited: bool = False,
        lanes: int = 1,
        is_collected: bool = False,
    ) -> None:
        self._is_limited = is_limited
        self._is_collected = is_collected
        self._most_whole = COLLECTED_BYTES if is_collected else GROUP_BYTES
        self._lanes = lanes
        self._file = file
        self._leaves = list(leaves)
        self._schema: pa.Schema = file.schema
        self._is_local = file.descriptor is not None
        self._flat = file.layout.flat if USES_OWN_DECODER else {}
        #: Of the flat columns that our own decoder may read.
        self._forms = file.layout.forms if USES_OWN_DECODER else {}
        self._nested = file.layout.nested if USES_OWN_DECODER else {}
        #: The pages that our own decoder read; the reader is one thread's.
        self.pages: PageCounts = PageCounts()
        self._found_chunks: dict[int, dict[int, ColumnChunk | None]] = {}
        encoded = frozenset(file.encoded)
        #: Those of them whose strings are returned as codes.
        self._coded = frozenset(
            leaf
            for leaf, form in self._forms.items()
            if form.is_coded or (form.name in encoded and form.type == pa.string())
        )

    @property
    def footer(self) -> FileFooter:
        """The file's."""
        return self._file.footer

    @property
    def group_rows(self) -> Sequence[int]:
        """The rows of each row group."""
        return self._file.footer.group_rows

    def batches(self, groups: Sequence[int], first: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows of neighbouring row groups from a position on, each batch with its own."""
        streamed: list[int] = []
        decoded: list[pa.Table] = []
        start, size = first, 0
        joined = 0
        for number, group in enumerate(groups):
            if number < joined:
                continue
            count = self._num_joined_whole(groups, number, batch_rows)
            found = self._joined_batch(groups[number : number + count]) if count > 1 else None
            if found is not None:
                yield from _cut(decoded, start, batch_rows)
                yield from self.stream(streamed, start, batch_rows)
                streamed, decoded, size, joined = [], [], 0, number + count
                yield first, found
                first += sum(self.group_rows[group] for group in groups[number:joined])
                continue
            own = self._own(group, self._leaves)
            rows = self.group_rows[group]
            is_whole = bool(own.leaves) and self._fits(group, own)
            # what a batch costs beside its bytes is more than decoding few rows: small row groups share one
            is_joined = is_whole and size <= JOINED_BYTES and first - start + rows <= batch_rows
            is_stretched = not is_whole and self.has_stretches(group, self._leaves)
            if (streamed and (is_whole or is_stretched)) or (decoded and not is_joined):
                yield from _cut(decoded, start, batch_rows)
                yield from self.stream(streamed, start, batch_rows)
                streamed, decoded, size = [], [], 0
            if not streamed and not decoded:
                start = first
            if is_whole:
                decoded.append(self._whole(group, own))
                size += self.plain_bytes(group, self._leaves)
            elif is_stretched:
                yield from self._stretched(group, first, batch_rows)
            else:
                streamed.append(group)
            first += rows
        yield from _cut(decoded, start, batch_rows)
        yield from self.stream(streamed, start, batch_rows)

    def num_joined(self, groups: Sequence[int], start: int, leaves: Sequence[int], batch_rows: int) -> int:
        """Return how many row groups from one on are so small that some columns of them are decoded together."""
        most = min(SMALL_GROUP_BYTES, self._most_whole)
        size_of = partial(self._most_bytes, leaves)
        return self._num_below(groups, start, leaves, batch_rows, size_of, most, JOINED_GROUPS_BYTES)

    def _num_joined_whole(self, groups: Sequence[int], start: int, batch_rows: int) -> int:
        """Return how many row groups from one on are decoded together if all of their rows are requested.

        Small ones, and larger ones if they have many columns whose chunks are small.
        """
        leaves = self._leaves
        if len(leaves) < WIDE_LEAVES:
            most, size_of = min(WHOLE_GROUP_BYTES, self._most_whole), partial(self._most_bytes, leaves)
            return self._num_below(groups, start, leaves, batch_rows, size_of, most, JOINED_GROUPS_BYTES)
        most = min(SMALL_CHUNK_BYTES * len(leaves), WIDE_STRETCH_BYTES)
        size_of = partial(self.plain_bytes, leaves=leaves)
        return self._num_below(groups, start, leaves, batch_rows, size_of, most, 2 * WIDE_STRETCH_BYTES)

    def _most_bytes(self, leaves: Sequence[int], group: int) -> int:
        """Return what columns of a row group take at most, about: dictionary codes take less than their values."""
        return self._file.footer.plain_bytes(group, leaves) + 8 * self.group_rows[group] * len(leaves)

    def _num_below(
        self,
        groups: Sequence[int],
        start: int,
        leaves: Sequence[int],
        batch_rows: int,
        size_of: Callable[[int], int],
        most: int,
        most_joined: int,
    ) -> int:
        """Return how many row groups from one on have at most ``most`` bytes each, and ``most_joined`` bytes in all.

        0 if one of the columns is not decoded as it is returned.
        """
        if not leaves or not self._is_local or any(leaf not in self._forms or leaf in self._coded for leaf in leaves):
            return 0
        size = rows = 0
        for number in range(start, len(groups)):
            own = size_of(groups[number])
            size, rows = size + own, rows + self.group_rows[groups[number]]
            if own > most or size > most_joined or rows > batch_rows:
                return number - start
        return len(groups) - start

    def wide_batch(
        self, groups: Sequence[int], leaves: Sequence[int], schema: pa.Schema, picks: SelectionVector | None = None
    ) -> pa.RecordBatch | None:
        """Return flat columns of neighbouring row groups as one batch.

        Parameters
        ----------
        groups : sequence of int
            A single one if rows are picked.
        leaves : sequence of int
            The Parquet columns.
        schema : pyarrow.Schema
            A field for each of them, of the type that it is read as.
        picks : SelectionVector, optional
            The rows that are returned.

        Returns
        -------
        RecordBatch or None
            None if the columns are few, or if one of them is left to PyArrow.
        """
        file = self._file.descriptor
        if len(leaves) < WIDE_LEAVES or file is None or (picks is not None and picks.mask is None):
            return None
        found = [self._chunks(group, leaves) for group in groups]
        if any(len(chunks) < len(leaves) for chunks in found):
            return None
        rows = [self.group_rows[group] for group in groups]
        ordered = [[chunks[leaf] for leaf in leaves] for chunks in found]
        batch = WideBatch(file, ordered, rows, schema, None if picks is None else picks.mask)
        share = 1.0 if picks is None else picks.stop / max(picks.num_rows, 1)
        size = batch.plain_bytes * share + _CHUNK_BYTES * len(leaves) * len(groups)
        for pages in run_at_once([batch.decode] * (self._lanes if size > _SHARED_BYTES else 1)):
            self.pages.add(pages)
        return batch.finish()

    def _stored_schema(self) -> pa.Schema | None:
        """Return the fields of the columns that are decoded; None if one of them is nested."""
        if self._leaves == list(range(len(self._schema))) and len(self._flat) == len(self._schema):
            return self._schema
        if not all(leaf in self._flat for leaf in self._leaves):
            return None
        return pa.schema([self._schema.field(self._flat[leaf]) for leaf in self._leaves])

    def _joined_batch(self, groups: Sequence[int]) -> pa.RecordBatch | None:
        schema = self._stored_schema() if len(self._leaves) >= WIDE_LEAVES else None
        batch = None if schema is None else self.wide_batch(groups, self._leaves, schema)
        if batch is not None:
            return batch
        found = self.joined(groups, self._leaves)
        if found is None:
            return None
        names = [name for name in self._schema.names if name in found]
        return pa.RecordBatch.from_arrays([found[name] for name in names], names)

    def _whole(self, group: int, own: Own) -> pa.Table:
        schema = self._stored_schema() if len(self._leaves) >= WIDE_LEAVES else None
        batch = None if schema is None else self.wide_batch([group], self._leaves, schema)
        if batch is not None:
            return pa.Table.from_batches([batch])
        whole = self._found(group, self._leaves, own)
        return pa.table({name: whole[name] for name in self._schema.names if name in whole})

    def joined(self, groups: Sequence[int], leaves: Sequence[int]) -> dict[str, pa.Array] | None:
        """Return columns of neighbouring row groups together, by name; None if one of them is left to PyArrow."""
        file, columns = self._file.descriptor, {leaf: list[ColumnChunk]() for leaf in leaves}
        for group in groups:
            chunks = self._chunks(group, leaves)
            if len(chunks) < len(leaves):
                return None
            for leaf, chunk in chunks.items():
                columns[leaf].append(chunk)
        if file is None:
            return None
        rows = [self.group_rows[group] for group in groups]
        found = read_joined(file, columns, rows, self.pages)
        return {self._forms[leaf].name: found[leaf] for leaf in leaves} if len(found) == len(leaves) else None

    def has_stretches(self, group: int, leaves: Sequence[int]) -> bool:
        """Whether our own decoder reads columns of a row group in stretches: of a remote file only big ones."""
        if not self._is_local and self._file.footer.stored_bytes(group, leaves) <= FETCHED_BYTES:
            return False
        return bool(self._own(group, leaves, is_whole=False).leaves)

    def _stretched(self, group: int, first: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows of a big row group; one stretch of them is in memory at a time."""
        rows, step = self.group_rows[group], self.stretch_rows(group, self._leaves, batch_rows)
        stretches = self.stretches(group, self._leaves)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            found = stretches.read(start, stop)
            names = [name for name in self._schema.names if name in found]
            batch = pa.RecordBatch.from_arrays([found[name] for name in names], names)
            for at in range(0, stop - start, batch_rows):
                yield first + start + at, batch.slice(at, batch_rows)

    def stretches(self, group: int, leaves: Sequence[int]) -> Stretches:
        """Return top-level columns of a row group, to be read one stretch of rows after the other."""
        own = self._own(group, leaves, is_whole=False) if self.has_stretches(group, leaves) else Own({}, {})
        names = {leaf: self._forms[leaf].name for leaf in own.flat}
        coded = self._coded.intersection(own.flat)
        return Stretches(self._file, group, leaves, own, names, coded, self.pages, self._lanes)

    def stretch_rows(self, group: int, leaves: Sequence[int], batch_rows: int, share: float = 1.0) -> int:
        """Return how many rows of a row group are read at a time; all, if those that are requested are few."""
        rows, size = self.group_rows[group], self.plain_bytes(group, leaves)
        is_flat = all(leaf in self._flat for leaf in leaves)
        window = STRETCH_BYTES * self._lanes if is_flat else NESTED_STRETCH_BYTES
        if len(leaves) >= WIDE_LEAVES:
            window = WIDE_STRETCH_BYTES
        # of few rows only these are in memory, but for what whole row groups are not decoded of
        is_whole = size <= GROUP_BYTES or self._own(group, leaves).leaves == self._own(group, leaves, False).leaves
        most = self._most_whole if self._is_collected else max(1.25 * window, WHOLE_BYTES)
        if size * share <= most and is_whole:
            return max(rows, 1)
        part = window / max(size * share, 1)
        part = part if is_whole else min(part, GROUP_BYTES / max(size, 1))
        step = max(int(rows * part) // WORD_ROWS * WORD_ROWS, WORD_ROWS)
        # whole batches: those of the rest would be so short that a write joins them
        return step if step < batch_rows else step // batch_rows * batch_rows // WORD_ROWS * WORD_ROWS or step

    def stream(
        self, groups: Sequence[int], first: int, batch_rows: int, leaves: Sequence[int] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows of neighbouring row groups through PyArrow, in the memory of a batch."""
        if groups:
            wanted = self._leaves if leaves is None else list(leaves)
            for batch in self._file.arrow.stream_leaves(batch_rows, groups, wanted, use_threads=self._lanes > 1):
                yield first, batch
                first += batch.num_rows

    def columns(self, group: int, leaves: Sequence[int], picks: SelectionVector | None) -> dict[str, pa.Array]:
        """Return the top-level columns of some leaves, by name: the picked rows of a row group."""
        found = self._found(group, leaves, self._own(group, leaves), picks)
        return {name: one_array(c) for name, c in found.items()}

    def passing(
        self, group: int, leaf: int, values: ColumnTest, has_values: bool, picks: SelectionVector | None
    ) -> tuple[SelectionVector, pa.Array | None] | None:
        """Return the rows of a row group, of those that are picked, whose values pass, and if it can these values.

        None for a column that our own decoder does not read.
        """
        file, chunk = self._file.descriptor, self._chunks(group, [leaf]).get(leaf)
        if file is None or chunk is None or (picks is not None and picks.mask is None):
            return None
        coded = leaf in self._coded
        mask = None if picks is None else picks.mask
        found = read_passing(file, chunk, values, has_values, mask, coded, self.pages)
        if found is None:
            return None
        mask, count, array = found
        return SelectionVector(chunk.num_rows, count, mask, None), array

    def plain_bytes(self, group: int, leaves: Sequence[int]) -> int:
        """Return what columns of a row group take in memory, about."""
        rows, size, others = self.group_rows[group], 0, []
        # our own decoder writes nowhere what has nulls alone
        nulls = frozenset(self._file.footer.null_leaves(group, [leaf for leaf in leaves if leaf in self._flat]))
        for leaf in leaves:
            if leaf in nulls:
                continue
            form = self._forms.get(leaf)
            if form is None or form.width is None:
                # codes may take no more than a few bits as they are stored
                size += 8 * rows * (leaf in self._flat)
                others.append(leaf)
            else:
                size += int(form.width * rows)
        return size + self._file.footer.plain_bytes(group, others)

    def _fits(self, group: int, own: Own) -> bool:
        """Whether a row group is decoded as a whole: its columns, and among them those that PyArrow decodes."""
        mine = own.leaves
        others = [leaf for leaf in self._leaves if leaf not in mine]
        is_small = self.plain_bytes(group, self._leaves) <= self._most_whole
        return is_small and self.plain_bytes(group, others) <= OTHERS_BYTES

    def _own(self, group: int, leaves: Sequence[int], is_whole: bool = True) -> Own:
        """Return what our own decoder reads of a row group: as a whole, or in stretches."""
        if is_whole and not self._is_local:
            return Own({}, {})
        nested: dict[str, tuple[NestedColumn, dict[int, NestedChunk]]] = {}
        others: set[str] = set()
        for leaf in leaves:
            if (place := self._nested.get(leaf)) is not None:
                name, column = place
                chunk = self._nested_chunk(group, leaf, column.leaves[leaf][0], is_whole)
                if chunk is None:
                    others.add(name)
                else:
                    nested.setdefault(name, (column, {}))[1][leaf] = chunk
        for name in others.intersection(nested):
            del nested[name]
        return Own(self._chunks(group, leaves, is_whole), nested)

    def _nested_chunk(self, group: int, leaf: int, t: pa.DataType, is_whole: bool) -> NestedChunk | None:
        facts, rows = self._file.footer.chunk(group, leaf), self.group_rows[group]
        return _nested_chunk(facts, rows, self._file.layout.leaves[leaf], t, is_whole)

    def _chunks(self, group: int, leaves: Sequence[int], is_whole: bool = True) -> dict[int, ColumnChunk]:
        """Return the chunks of flat columns of a row group that our own decoder reads, by leaf."""
        known = self._found_chunks.setdefault(group, {})
        flat = [leaf for leaf in leaves if leaf in self._forms]
        missing = [leaf for leaf in flat if leaf not in known]
        if missing:
            found = self._file.footer.chunks(group, [self._forms[leaf] for leaf in missing])
            known.update(zip(missing, found, strict=True))
        return {
            leaf: chunk for leaf in flat if (chunk := known[leaf]) is not None and (not is_whole or _is_small(chunk))
        }

    def _found(
        self, group: int, leaves: Sequence[int], own: Own, picks: SelectionVector | None = None
    ) -> dict[str, Any]:
        """Read columns of a row group, or their picked rows, by our decoder where it can, else by PyArrow."""
        coded = self._coded.intersection(own.flat)
        mask = None if picks is None else picks.mask
        file = self._file.descriptor

        def decoded(part: Own) -> tuple[dict[int, pa.Array], dict[str, pa.Array], PageCounts]:
            pages = PageCounts()
            flat = {} if file is None else read_chunks(file, part.flat, coded, mask, pages)
            nested = {n: self._read_nested(group, *found, picks, pages) for n, found in part.nested.items()}
            return flat, {n: array for n, array in nested.items() if array is not None}, pages

        columns: dict[str, Any] = {}
        done = set[int]()
        # pages after the last row are not decoded
        share = 1.0 if picks is None else picks.stop / max(picks.num_rows, 1)
        for flat, nested, pages in run_at_once([partial(decoded, p) for p in own.shares(coded, self._lanes, share)]):
            columns |= {self._forms[leaf].name: array for leaf, array in flat.items()} | nested
            done.update(flat, *(own.nested[name][1] for name in nested))
            self.pages.add(pages)
        others = [leaf for leaf in leaves if leaf not in done]
        if others:
            columns.update(self._others(group, others, picks))
        return columns

    def _read_nested(
        self,
        group: int,
        column: NestedColumn,
        chunks: dict[int, NestedChunk],
        picks: SelectionVector | None,
        pages: PageCounts,
    ) -> pa.Array | None:
        file, rows = self._file.descriptor, self.group_rows[group]
        if file is None or (picks is not None and picks.mask is None):
            return None
        mask, count = (None, rows) if picks is None else (picks.mask, picks.count)
        if self._is_limited and picks is not None and 0 < picks.stop <= rows // 2:
            # only the levels of a page of lists specify its rows; pages after the last requested row are not examined
            first_ones = page_parts.NestedColumnStretches(file, column, chunks, rows)
            return first_ones.read(0, picks.stop, mask, count, pages)
        return page_parts.read_nested_column(file, column, chunks, rows, mask, count, pages)

    def _others(self, group: int, leaves: list[int], picks: SelectionVector | None) -> dict[str, Any]:
        """Read columns through PyArrow; few rows of a big row group, or its first ones, in the memory of a batch."""
        if picks is None or not self._is_streamed(group, leaves, picks):
            table = self._file.arrow.read_leaves(group, leaves, use_threads=self._lanes > 1)
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
    """Yield the rows of consecutive tables in batches, each with its position."""
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
        The type that PyArrow reads it as.
    """
    form = flat_form(leaf, leaf_of(footer.metadata.schema.column(leaf)), "", type)
    if form is None or form.is_coded:
        return None
    chunk = flat_chunk(footer.chunk(group, leaf), footer.group_rows[group], form)
    return chunk if chunk is not None and _is_small(chunk) else None


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


def _nested_chunk(
    facts: ChunkFacts | None, rows: int, leaf: ParquetLeaf, type: pa.DataType, is_whole: bool = True
) -> NestedChunk | None:
    if facts is None or facts.num_values < rows:
        return None
    # all of its entries are in memory at once; codes may take no more than a few bits as they are stored
    if is_whole and max(facts.uncompressed, 8 * facts.num_values) > GROUP_BYTES:
        return None
    stored = nested_value_type(leaf, type)
    chunk = None if stored is None else chunk_of(facts, rows, leaf, stored, facts.is_plain)
    return None if chunk is None else page_parts.NestedChunk(chunk, facts.num_values, leaf.length)


def _is_small(chunk: ColumnChunk) -> bool:
    return chunk.num_rows <= MOST_ROWS and max(chunk.num_bytes, chunk.plain_bytes) <= MOST_BYTES


def has_codes(metadata: Any, leaf: int, groups: Iterable[int]) -> bool:
    """Whether PyArrow can return a column's strings as dictionary codes; of further encodings it has none."""
    return all(PLAIN_ENCODINGS.issuperset(metadata.row_group(group).column(leaf).encodings) for group in groups)


def nested_value_type(leaf: ParquetLeaf, t: pa.DataType) -> pa.DataType | None:
    """Return the type that values inside of a nested column are decoded as; None if PyArrow reads them."""
    types = pa.types
    if is_stored_as(leaf.physical, t):
        return t
    if leaf.physical == "BOOLEAN":
        return t if types.is_boolean(t) else None
    if types.is_decimal128(t):
        if leaf.physical == "FIXED_LEN_BYTE_ARRAY":
            return t if 1 <= leaf.length <= DECIMAL_BYTES else None
        return {"INT32": pa.int32(), "INT64": pa.int64()}.get(leaf.physical)
    if leaf.physical == "BYTE_ARRAY":
        return pa.string() if types.is_large_string(t) else pa.binary() if types.is_large_binary(t) else None
    return pa.int32() if leaf.physical == "INT32" and (types.is_int8(t) or types.is_int16(t)) else None
