"""Files of version 0.1: one page of each field for each batch of rows, found in a table by the field's id."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError
from delta_plugins.lance import _pages
from delta_plugins.lance._pages import DamagedPageError, TooLongError
from delta_plugins.lance.files.array_pages import (
    Steps,
    as_buffer,
    bit_width,
    check_strings,
    count_of,
    fixed_rows,
    numbers_of,
    read_spans,
)
from delta_plugins.lance.files.array_tests import ArrayTest
from delta_plugins.lance.files.container import ByteSource, damaged
from delta_plugins.lance.files.leaves import LeafTest
from delta_plugins.lance.files.rows import (
    PageRows,
    Rows,
    batches_of,
    page_rows,
    positions_where,
    ranges_of,
    row_count,
    rows_of_batches,
    rows_of_tests,
)
from delta_plugins.lance.files.steps import advanced, concatenated, in_turn, joined_lists, joined_spans
from delta_plugins.lance.schema import LanceField, arrow_field, field_tree
from delta_plugins.lance.wire import Message, decode

__all__ = ["PlainFile", "open_plain_file"]

_FOOTER = struct.Struct("<qHH4s")
Ranges = NDArray[np.int64]


class _Table(NamedTuple):
    """Where the pages of fields are.

    Parameters
    ----------
    first_id : int
        The id of the first row of the table.
    pages : int64, **shape (ids, batches, 2)**
        Position and rows of each page.
    starts : int64, **shape (batches + 1,)**
        The first row of each batch, and the number of rows.
    """

    first_id: int
    pages: NDArray[np.int64]
    starts: NDArray[np.int64]


class PlainFile:
    """A file of version 0.1 (`delta_plugins.lance.files.DataFile`).

    Its columns have no numbers of their own: ``column_of`` contains each field of the file with any number.

    Parameters
    ----------
    path : str
        Its name in errors.
    source : ByteSource
        Its bytes.
    size : int
        Their number.
    metadata : dict
        Its metadata.
    fields : sequence of dict
        The fields that it stores, as its own schema lists them.
    table : _Table
        Where its pages are.
    """

    def __init__(
        self, path: str, source: ByteSource, size: int, metadata: Message, fields: Sequence[Message], table: _Table
    ) -> None:
        self._path = path
        self._source = source
        self._size = size
        self._metadata = metadata
        self._dictionaries = {f["id"]: f["dictionary"] for f in fields if f["dictionary"] is not None}
        self._table = table
        self._ids = {f["id"] for f in fields}

    @property
    def num_rows(self) -> int:
        """The rows that the file has, deleted ones too."""
        return int(self._table.starts[-1])

    @property
    def num_columns(self) -> int:
        """The fields that the file has, structs included."""
        return len(self._ids)

    @property
    def batch_starts(self) -> NDArray[np.int64]:
        """The first row of each batch of the file, and the number of rows; statistics describe batches."""
        return self._table.starts

    def read(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], rows: Rows = None
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        """Return requested rows of fields (`DataFile.read`)."""
        return self._read(fields, column_of, ranges_of(rows, self.num_rows), self._table)

    def passing(self, test: LeafTest, column_of: Mapping[int, int], rows: Rows = None) -> NDArray[np.int64]:
        """Return the positions of requested rows that pass a test of a field (`DataFile.passing`)."""
        tested = ArrayTest(test)
        found = [np.zeros(0, np.int64)]
        for part in batches_of(ranges_of(rows, self.num_rows), rows_of_tests(self._size / max(self.num_rows, 1))):
            reads = [
                self._batch(tested.field, column_of, wanted, self._table)
                for wanted in page_rows(part, self._table.starts)
            ]
            arrays = advanced(reads, self._source.read_ranges)
            flags = np.zeros(sum(map(len, arrays)), np.uint8)
            at = 0
            for array in arrays:
                tested.mark(array, flags[at : at + len(array)])
                at += len(array)
            found.append(positions_where(part, flags.view(np.bool_)))
        return np.concatenate(found)

    def batches(
        self,
        fields: Sequence[LanceField],
        column_of: Mapping[int, int],
        rows: Rows = None,
        batch_rows: int | None = None,
    ) -> Iterator[list[pa.Array[Any] | pa.ChunkedArray[Any]]]:
        """Yield requested rows of fields, part after part (`DataFile.batches`)."""
        # other fields may take most of the file: this is an upper bound
        step = rows_of_batches(batch_rows, self._size / max(self.num_rows, 1) if batch_rows is None else 0)
        for part in batches_of(ranges_of(rows, self.num_rows), step):
            yield self._read(fields, column_of, part, self._table)

    def rows_within(self, fields: Sequence[LanceField], column_of: Mapping[int, int], most_bytes: int) -> int:
        """Return how many rows take at most some bytes (`DataFile.rows_within`), on average."""
        return max(int(most_bytes * max(self.num_rows, 1) / max(self._size, 1)), 1)

    def statistics(self, ids: Sequence[int]) -> dict[int, pa.Array[Any]]:
        """Return the statistics of fields, one row for each batch (`batch_starts`).

        Parameters
        ----------
        ids : sequence of int
            The ids of fields; those without statistics are left out.

        Returns
        -------
        dict of int to pyarrow.Array
            Structs of ``null_count``, ``min_value`` and ``max_value``. The bounds of texts may be cut, so that the
            maximum is greater than any value; NaN is not counted, and a null bound excludes nothing.

        Raises
        ------
        DataFileError
            If the statistics are damaged.
        """
        found = self._metadata["statistics"]
        if found is None or not found["fields"]:
            return {}
        tree = {f.name: f for f in field_tree(_fields(found["schema"]))}
        first, last = min(found["fields"]), max(found["fields"])
        num_batches = len(self._table.starts) - 1
        pages = _page_table(self._path, self._source, self._size, found["page_table_position"], last - first + 1, 1)
        table = _Table(first, pages, np.array([0, num_batches], np.int64))
        wanted = [(i, tree[str(i)]) for i in ids if str(i) in tree]
        column_of = {i: i for i in range(first, last + 1)}
        arrays = self._read([f for _, f in wanted], column_of, np.array([[0, num_batches]], np.int64), table)
        return {i: a for (i, _), a in zip(wanted, arrays, strict=True)}

    def _read(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], ranges: Ranges, table: _Table
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        try:
            return advanced([self._field(f, column_of, ranges, table) for f in fields], self._source.read_ranges)
        except TooLongError:
            num_rows = row_count(ranges)
            if num_rows < 2:
                raise damaged(self._path, "one row has more than 2 GiB of values") from None
        halves = [self._read(fields, column_of, part, table) for part in batches_of(ranges, (num_rows + 1) // 2)]
        return [
            pa.chunked_array([c for a in parts for c in (a.chunks if isinstance(a, pa.ChunkedArray) else [a])])
            for parts in zip(*halves, strict=True)
        ]

    # --- fields ---

    def _field(self, field: LanceField, column_of: Mapping[int, int], ranges: Ranges, table: _Table) -> Steps:
        arrays = []
        for wanted in page_rows(ranges, table.starts):
            arrays.append((yield from self._batch(field, column_of, wanted, table)))  # noqa: PERF401 - as in `in_turn`
        of = arrow_field(field).type
        return arrays[0] if len(arrays) == 1 else concatenated(arrays, of)

    def _batch(self, field: LanceField, column_of: Mapping[int, int], wanted: PageRows, table: _Table) -> Steps:
        """Return rows of one batch of a field."""
        try:
            return (yield from self._page(field, column_of, wanted.page, wanted.ranges, table))
        except DamagedPageError as e:
            raise damaged(
                self._path, f"field {field.name!r} (id {field.id}), batch {wanted.page}: {e}", column=field.name
            ) from None

    def _page(
        self, field: LanceField, column_of: Mapping[int, int], batch: int, ranges: Ranges, table: _Table
    ) -> Steps:
        """Return rows of one batch of a field, with all that is below it."""
        of = arrow_field(field).type
        n = count_of(ranges)
        if pa.types.is_struct(of):
            children = yield from in_turn(self._page(c, column_of, batch, ranges, table) for c in field.children)
            return pa.Array.from_buffers(of, n, [None], 0, children=children)
        if field.id not in column_of or pa.types.is_null(of):
            return pa.nulls(n, of)
        position, length = self._place(field, batch, table)
        if len(ranges) and int(ranges[-1, 1]) > length:
            raise DamagedPageError(f"it has {length} values, but {int(ranges[-1, 1])} are needed")
        if pa.types.is_list(of) or pa.types.is_large_list(of):
            return (yield from self._list(field, of, column_of, batch, ranges, table))
        if pa.types.is_dictionary(of):
            return (yield from self._dictionary(field, of, position, length, ranges))
        if bit_width(of) < 0 and not pa.types.is_fixed_size_list(of):
            return (yield from self._texts(field, of, position, length, ranges))
        return (yield from self._plain(of, position, length, ranges))

    def _place(self, field: LanceField, batch: int, table: _Table) -> tuple[int, int]:
        row = field.id - table.first_id
        if not 0 <= row < len(table.pages):
            raise DamagedPageError("it has no row in the page table")
        position, length = (int(v) for v in table.pages[row, batch])
        if not 0 <= position <= self._size or not 0 <= length <= 1 << 48:
            raise DamagedPageError(
                f"a page of {length} values is expected at {position}, but the file has {self._size}"
            )
        return position, length

    def _rows(self, position: int, length: int, bits: int, ranges: Ranges) -> Steps:
        size = (length * bits + 7) // 8
        if size > self._size - position:
            raise DamagedPageError(f"{size} bytes are expected at {position}, but the file has {self._size}")
        return (yield from fixed_rows((position, size), None, bits, ranges))

    def _plain(self, type: pa.DataType, position: int, length: int, ranges: Ranges) -> Steps:
        n = count_of(ranges)
        if pa.types.is_fixed_size_list(type):
            size = type.list_size
            items = yield from self._plain(type.value_type, position, length * size, ranges * size)
            return pa.Array.from_buffers(type, n, [None], 0, children=[items])
        bits = bit_width(type)
        if bits < 0:
            raise DamagedPageError(f"values of {type} are not stored in such files")
        data = yield from self._rows(position, length, bits, ranges)
        return pa.Array.from_buffers(type, n, [None, as_buffer(data)], 0)

    def _texts(self, field: LanceField, type: pa.DataType, position: int, length: int, ranges: Ranges) -> Steps:
        """Return values of any length: n + 1 positions in the file; an empty one of a nullable field is null."""
        is_wide = pa.types.is_large_string(type) or pa.types.is_large_binary(type)
        if not is_wide and not pa.types.is_string(type) and type != pa.binary():
            raise DamagedPageError(f"values of {type} are not stored in such files")
        offsets, spans = yield from self._ends(position, length, 64, ranges, self._size, is_wide)
        data = yield from read_spans(0, spans)
        n = count_of(ranges)
        check_strings(type, offsets, data, n)
        valid = np.diff(np.frombuffer(offsets, np.int64 if is_wide else np.int32, n + 1)) > 0
        nulls = n - int(valid.sum()) if field.nullable else 0
        bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(type, n, [bits, offsets, as_buffer(data)], nulls)

    def _ends(self, position: int, length: int, bits: int, ranges: Ranges, limit: int, is_wide: bool) -> Steps:
        """Return offsets from 0 on, and spans, of rows that are stored as n + 1 positions."""
        more = np.stack([ranges[:, 0], ranges[:, 1] + 1], 1)
        if len(more) > 1 and (more[1:, 0] < more[:-1, 1]).any():
            raise DamagedPageError("requested rows overlap")
        data = yield from self._rows(position, length + 1, bits, more)
        ends = data if bits == 64 else np.frombuffer(data, np.int32).astype(np.int64)
        # one more: each range has a position before its first row, the first one too
        shifted = np.ascontiguousarray(ranges + 1)
        offsets, _, _, spans = _pages.read_ends(ends, shifted, (1 << 64) - 1, limit, is_wide)
        return offsets, np.array(spans, np.int64).reshape(-1, 2)

    def _list(
        self,
        field: LanceField,
        type: pa.DataType,
        column_of: Mapping[int, int],
        batch: int,
        ranges: Ranges,
        table: _Table,
    ) -> Steps:
        position, length = self._place(field, batch, table)
        is_wide = pa.types.is_large_list(type)
        bits = 64 if is_wide else 32
        offsets, spans = yield from self._ends(position, length, bits, ranges, 1 << 48, is_wide)
        items = yield from self._page(field.children[0], column_of, batch, joined_spans(spans), table)
        return joined_lists(type, [(count_of(ranges), offsets, None, 0)], items, is_wide)

    def _dictionary(self, field: LanceField, type: pa.DataType, position: int, length: int, ranges: Ranges) -> Steps:
        place = self._dictionaries.get(field.id)
        if place is None:
            raise DamagedPageError("it has no dictionary in the file's own schema")
        count, at = place["length"], place["offset"]
        if not 0 <= at <= self._size or not 0 <= count <= self._size:
            raise DamagedPageError(f"a dictionary of {count} values is expected at {at}, but the file has {self._size}")
        whole = np.array([[0, count]], np.int64)
        values_field = LanceField(id=0, parent_id=-1, name=field.name, logical_type="", nullable=False)
        if bit_width(type.value_type) < 0:
            values = yield from self._texts(values_field, type.value_type, at, count, whole)
        else:
            values = yield from self._plain(type.value_type, at, count, whole)
        codes = yield from self._plain(type.index_type, position, length, ranges)
        numbers = numbers_of(codes)
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
            raise DamagedPageError("a code of its dictionary is too large")
        return pa.DictionaryArray.from_arrays(codes, values, ordered=type.ordered)


def _fields(messages: Sequence[Message]) -> Iterator[LanceField]:
    for m in messages:
        yield LanceField(
            id=m["id"],
            parent_id=m["parent_id"],
            name=m["name"],
            logical_type=m["logical_type"],
            nullable=m["nullable"],
            metadata=m["metadata"],
        )


def _message(path: str, source: ByteSource, size: int, position: int, name: str) -> Message:
    """Read a message with its length before it."""
    if not 0 <= position <= size - 4:
        raise damaged(path, f"its {name} is expected at {position}, but the file has {size}")
    length = int.from_bytes(bytes(source.read_at(position, 4)), "little")
    if length > size - position - 4:
        raise damaged(path, f"its {name} of {length} bytes is expected at {position}, but the file has {size}")
    return decode(name, source.read_at(position + 4, length) if length else b"", f"data file {path!r}", DataFileError)


def _page_table(path: str, source: ByteSource, size: int, position: int, ids: int, batches: int) -> NDArray[np.int64]:
    length = ids * batches * 16
    if position > size or length > size - position:
        raise damaged(path, f"its page table of {length} bytes is expected at {position}, but the file has {size}")
    data = source.read_at(position, length) if length else b""
    return np.frombuffer(data, np.int64).reshape(ids, batches, 2)


def open_plain_file(path: str, source: ByteSource, size: int) -> PlainFile:
    """Open a file of version 0.1: its metadata, its own schema and its page table are read.

    Raises
    ------
    DataFileError
        If these are damaged.
    """
    if size < _FOOTER.size:
        raise damaged(path, f"it has {size} bytes, expected at least the {_FOOTER.size} of a footer")
    position = _FOOTER.unpack(bytes(source.read_at(size - _FOOTER.size, _FOOTER.size)))[0]
    metadata = _message(path, source, size, position, "Metadata")
    starts = np.array(metadata["batch_offsets"] or [0], np.int64)
    if starts[0] or (np.diff(starts) < 0).any():
        raise damaged(path, "the rows of its batches do not rise")
    fields = _message(path, source, size, metadata["manifest_position"], "Manifest")["fields"]
    ids = [f["id"] for f in fields] or [0]
    first, last = min(ids), max(ids)
    pages = _page_table(path, source, size, metadata["page_table_position"], last - first + 1, len(starts) - 1)
    return PlainFile(path, source, size, metadata, fields, _Table(first, pages, starts))
