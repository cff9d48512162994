"""Files of version 2.0: columns of arrays, lists and structs as columns of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError
from delta_plugins.lance._pages import DamagedPageError, TooLongError
from delta_plugins.lance.files.array_pages import ArrayPage, Steps, read_array, read_ends
from delta_plugins.lance.files.array_tests import ArrayTest, mark_page
from delta_plugins.lance.files.container import ColumnPages, Container, damaged
from delta_plugins.lance.files.leaves import LeafTest, is_leaf
from delta_plugins.lance.files.rows import (
    PageRows,
    Rows,
    batches_of,
    page_rows,
    positions_of,
    positions_where,
    ranges_of,
    row_count,
    rows_of_batches,
    rows_of_tests,
)
from delta_plugins.lance.files.steps import advanced, concatenated, in_turn, joined_lists, joined_spans
from delta_plugins.lance.schema import LanceField, arrow_field
from delta_plugins.lance.wire import Message, chosen, decode

__all__ = ["ArrayFile"]

_PAGE = "/lance.encodings.ArrayEncoding"
Ranges = NDArray[np.int64]


class ArrayFile:
    """A file of version 2.0 (`delta_plugins.lance.files.DataFile`).

    Parameters
    ----------
    container : Container
        The opened file.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._encodings: dict[bytes, Message] = {}
        self._item_starts: dict[int, NDArray[np.int64]] = {}
        self._pages: dict[tuple[int, int], ArrayPage] = {}
        self._touched: dict[tuple[int, int], ArrayPage] = {}
        self._cuts: dict[tuple[int, bytes], tuple[Ranges, list[PageRows]]] = {}

    @property
    def num_rows(self) -> int:
        """The rows that the file has, deleted ones too."""
        return self._container.num_rows()

    @property
    def num_columns(self) -> int:
        """The columns that the file has."""
        return self._container.num_columns

    def read(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], rows: Rows = None
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        """Return requested rows of fields (`DataFile.read`)."""
        pages = self._open(fields, column_of)
        ranges = ranges_of(rows, self.num_rows)
        self._read_ahead(pages, ranges, self._pages_ahead(pages, ranges))
        return self._read(fields, column_of, ranges)

    def passing(self, test: LeafTest, column_of: Mapping[int, int], rows: Rows = None) -> NDArray[np.int64]:
        """Return the positions of requested rows that pass a test of a field (`DataFile.passing`)."""
        ranges = ranges_of(rows, self.num_rows)
        index = column_of.get(test.leaf.id)
        if index is None:
            return positions_of(ranges) if test.passes_null else np.zeros(0, np.int64)
        columns = self._container.pages([index])
        stored = columns[0].stored_bytes()
        ahead = self._pages_ahead(columns, ranges)
        tested = ArrayTest(test)
        found = [np.zeros(0, np.int64)]
        for part in batches_of(ranges, rows_of_tests(stored / max(self.num_rows, 1))):
            self._read_ahead(columns, part, ahead)
            self._touched = {}
            self._cuts = {}
            [flags] = advanced([self._flags(tested, index, part)], self._container.read)
            # pages of other columns are read on in turn with this one
            self._pages = {k: p for k, p in self._pages.items() if k[0] != index} | self._touched
            found.append(positions_where(part, flags))
        return np.concatenate(found)

    def batches(
        self,
        fields: Sequence[LanceField],
        column_of: Mapping[int, int],
        rows: Rows = None,
        batch_rows: int | None = None,
    ) -> Iterator[list[pa.Array[Any] | pa.ChunkedArray[Any]]]:
        """Yield requested rows of fields, part after part (`DataFile.batches`)."""
        pages = self._open(fields, column_of)
        stored = sum(p.stored_bytes() for p in pages)
        step = rows_of_batches(batch_rows, stored / max(self.num_rows, 1))
        ranges = ranges_of(rows, self.num_rows)
        ahead = self._pages_ahead(pages, ranges)
        for part in batches_of(ranges, step):
            self._read_ahead(pages, part, ahead)
            yield self._read(fields, column_of, part)

    def rows_within(self, fields: Sequence[LanceField], column_of: Mapping[int, int], most_bytes: int) -> int:
        """Return how many rows take at most some bytes (`DataFile.rows_within`)."""
        rows = max(self.num_rows, 1)
        # columns of items have several rows for each one, on average
        scaled = [(p, max(int(p.starts[-1]) / rows, 1)) for p in self._open(fields, column_of)]
        found = sum(p.widest_row(self.num_columns) * scale for p, scale in scaled)
        return max(int(most_bytes / max(found, 1e-3)), 1)

    def _open(self, fields: Sequence[LanceField], column_of: Mapping[int, int]) -> list[ColumnPages]:
        """Read the metadata of all columns that fields have."""
        return self._container.pages([column_of[i] for f in fields for i in _ids(f) if i in column_of])

    def _pages_ahead(self, columns: Sequence[ColumnPages], ranges: Ranges) -> list[set[int]]:
        """Return the pages of columns that are read as a whole; not of columns of items, whose rows are others."""
        found = self._container.pages_ahead(columns, ranges)
        return [n if c.starts[-1] == self.num_rows else set() for c, n in zip(columns, found, strict=True)]

    def _read_ahead(self, columns: Sequence[ColumnPages], ranges: Ranges, ahead: Sequence[set[int]]) -> None:
        """Read pages as a whole that have some of the rows."""
        if not any(ahead) or not len(ranges):
            return
        ends = [np.searchsorted(c.starts, [ranges[0, 0], ranges[-1, 1] - 1], "right") for c in columns]
        self._container.read_ahead(columns, [n & set(range(e[0] - 1, e[1])) for n, e in zip(ahead, ends, strict=True)])

    def _read(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], ranges: Ranges
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        columns = [self._field(f, column_of, ranges) for f in fields]
        self._touched = {}
        self._cuts = {}
        try:
            found = advanced(columns, self._container.read)
        except TooLongError:
            return self._read_halves(fields, column_of, ranges)
        # pages of earlier rows, and what was decompressed of them, are not needed any more
        self._pages = self._touched
        return found

    def _read_halves(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], ranges: Ranges
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        num_rows = row_count(ranges)
        if num_rows < 2:
            raise damaged(self._container.path, "one row has more than 2 GiB of values")
        halves = [self._read(fields, column_of, part) for part in batches_of(ranges, (num_rows + 1) // 2)]
        return [
            pa.chunked_array([c for a in parts for c in (a.chunks if isinstance(a, pa.ChunkedArray) else [a])])
            for parts in zip(*halves, strict=True)
        ]

    # --- fields ---

    def _field(self, field: LanceField, column_of: Mapping[int, int], ranges: Ranges) -> Steps:
        """Return rows of a field, with all that is below it."""
        of = arrow_field(field).type
        if not any(i in column_of for i in _ids(field)):
            return pa.nulls(row_count(ranges), of)
        if pa.types.is_struct(of) and not is_leaf(field):
            children = yield from in_turn(self._field(child, column_of, ranges) for child in field.children)
            return pa.Array.from_buffers(of, row_count(ranges), [None], 0, children=children)
        if field.id not in column_of:
            raise damaged(self._container.path, f"field {field.name!r} has no column, but fields below it have")
        if is_leaf(field):
            return (yield from self._leaf(field, of, column_of[field.id], ranges))
        return (yield from self._list(field, of, column_of, ranges))

    def _leaf(self, field: LanceField, type: pa.DataType, index: int, ranges: Ranges) -> Steps:
        pages = self._checked_pages(field, index, ranges)
        arrays = []
        for wanted in self._cut(ranges, pages):
            page, encoding = self._page(field, index, pages, wanted.page)
            try:
                arrays.append((yield from read_array(page, encoding, type, wanted.ranges)))
            except DamagedPageError as e:
                raise self._damaged(field, index, wanted.page, str(e)) from None
        if len(arrays) == 1:
            return arrays[0]
        return concatenated(arrays, type)

    def _flags(self, tested: ArrayTest, index: int, ranges: Ranges) -> Steps:
        """Return which rows pass a test."""
        field = tested.test.leaf
        pages = self._checked_pages(field, index, ranges)
        flags = np.zeros(row_count(ranges), np.uint8)
        at = 0
        for wanted in self._cut(ranges, pages):
            page, encoding = self._page(field, index, pages, wanted.page)
            rows = row_count(wanted.ranges)
            try:
                yield from mark_page(page, encoding, tested, wanted.ranges, flags[at : at + rows])
            except DamagedPageError as e:
                raise self._damaged(field, index, wanted.page, str(e)) from None
            at += rows
        return flags.view(np.bool_)

    def _list(self, field: LanceField, type: pa.DataType, column_of: Mapping[int, int], ranges: Ranges) -> Steps:
        index = column_of[field.id]
        pages = self._checked_pages(field, index, ranges)
        starts = self._starts_of_items(field, index, pages)
        is_wide = pa.types.is_large_list(type)
        if not (pa.types.is_list(type) or is_wide):
            raise damaged(self._container.path, f"field {field.name!r} is {type}, which version 2.0 does not store")
        parts, spans = [], [np.empty((0, 2), np.int64)]
        for wanted in self._cut(ranges, pages):
            page, encoding = self._page(field, index, pages, wanted.page)
            try:
                part = encoding["list"]
                offsets, bits, nulls, items = yield from read_ends(
                    page, part["offsets"], wanted.ranges, part["null_offset_adjustment"], part["num_items"], is_wide, 0
                )
            except DamagedPageError as e:
                raise self._damaged(field, index, wanted.page, str(e)) from None
            parts.append((row_count(wanted.ranges), offsets, bits, nulls))
            spans.append(items + starts[wanted.page])
        child = yield from self._field(field.children[0], column_of, joined_spans(np.concatenate(spans)))
        return joined_lists(type, parts, child, is_wide)

    def _starts_of_items(self, field: LanceField, index: int, pages: ColumnPages) -> NDArray[np.int64]:
        """Return where the items of each page of a list column begin."""
        found = self._item_starts.get(index)
        if found is None:
            counts = [0]
            for i in range(len(pages.lengths)):
                encoding = self._encoding(field, index, pages, i)
                if encoding["list"] is None:
                    raise self._damaged(field, index, i, "it has an encoding that is not that of a list")
                counts.append(counts[-1] + encoding["list"]["num_items"])
            if counts[-1] > 1 << 48:
                raise damaged(self._container.path, f"field {field.name!r} has more than 2^48 items")
            found = self._item_starts[index] = np.array(counts, np.int64)
        return found

    # --- pages ---

    def _cut(self, ranges: Ranges, pages: ColumnPages) -> list[PageRows]:
        """Return the rows of each page; columns with the same pages need the same."""
        key = (id(ranges), pages.starts.tobytes())
        found = self._cuts.get(key)
        if found is None:
            # the ranges are kept: another array could get their address otherwise
            found = self._cuts[key] = (ranges, page_rows(ranges, pages.starts))
        return found[1]

    def _checked_pages(self, field: LanceField, index: int, ranges: Ranges) -> ColumnPages:
        [pages] = self._container.pages([index])
        last = int(ranges[-1, 1]) if len(ranges) else 0
        if int(pages.starts[-1]) < last:
            raise damaged(
                self._container.path,
                f"column {index} ({field.name!r}) has {int(pages.starts[-1])} rows, but row {last - 1} is needed",
                column=field.name,
            )
        return pages

    def _page(self, field: LanceField, index: int, pages: ColumnPages, number: int) -> tuple[ArrayPage, Message]:
        encoding = self._encoding(field, index, pages, number)
        found = self._touched.get((index, number)) or self._pages.get((index, number))
        if found is None:
            found = ArrayPage(int(pages.lengths[number]), pages.buffers_of(number), pages.own_buffers, {})
        self._touched[index, number] = found
        return found, encoding

    def _encoding(self, field: LanceField, index: int, pages: ColumnPages, number: int) -> Message:
        kind, data = pages.encoding_of(number)
        if kind != _PAGE:
            raise self._damaged(field, index, number, f"its encoding is of type {kind!r}, expected {_PAGE!r}")
        found = self._encodings.get(data)
        if found is None:
            where = f"data file {self._container.path!r}, a page of column {index}"
            found = self._encodings[data] = decode("ArrayEncoding", data, where, DataFileError)
            if chosen(found) is None:
                raise self._damaged(field, index, number, "it has an encoding that is not supported")
        return found

    def _damaged(self, field: LanceField, index: int, page: int, why: str) -> DataFileError:
        where = f"column {index} ({field.name!r}), page {page}"
        return damaged(self._container.path, f"{where}: {why}", column=field.name, page=page)


def _ids(field: LanceField) -> Iterator[int]:
    yield field.id
    if not is_leaf(field):
        for child in field.children:
            yield from _ids(child)
