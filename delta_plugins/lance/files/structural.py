"""Columns of files of versions 2.1 and 2.2: rows of pages as layers and values."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError
from delta_plugins.lance import _pages
from delta_plugins.lance.files import layouts
from delta_plugins.lance.files.container import ColumnPages, Container, damaged
from delta_plugins.lance.files.layouts import Layout, LayoutError
from delta_plugins.lance.files.leaves import Leaf, LeafTest, ValueLayout, value_layout
from delta_plugins.lance.files.rows import PageRows, row_count

__all__ = ["LeafRows", "StructuralColumn", "check_texts", "common_layout", "page_of"]

_PAGE = "/lance.encodings21.PageLayout"
_COLUMN = "/lance.encodings.ColumnEncoding"
#: Ranges of bytes that are nearer to each other are read together.
GAP_BYTES = 16 << 10
#: Layouts that pages of all files have, by their bytes: a bounded number of short ones.
_MOST_COMMON, _MOST_COMMON_BYTES = 1024, 256
_COMMON: dict[bytes, Layout] = {}


class LeafRows(NamedTuple):
    """Rows of a leaf, as Arrow buffers.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    layers : list of tuple
        (length, nulls, validity, offsets) of each layer, the innermost first; buffers, None = all valid, or no list.
    values : tuple
        The number of values, their buffers, and (length, nulls, validity) of lists of a fixed size within them.
    children : list of tuple
        The same of the fields of a packed struct of values of any length.
    layout : ValueLayout
        How the values are stored.
    """

    leaf: Leaf
    layers: list[tuple[int, int, Any, Any]]
    values: tuple[int, list[Any], list[tuple[int, int, Any]]]
    children: list[tuple[int, list[Any], list[tuple[int, int, Any]]]]
    layout: ValueLayout


class _OpenPage:
    """A page whose head was read, with the layout that it has."""

    __slots__ = ("data_at", "dictionary", "handle", "heads", "layout")

    def __init__(self, handle: Any, layout: Layout, data_at: int, heads: list[tuple[int, int]]) -> None:
        self.handle = handle
        self.layout = layout
        self.data_at = data_at
        self.heads = heads
        self.dictionary: Any = None


class StructuralColumn:
    """Reads rows of one leaf; pages are opened when they are first needed, and dropped after the next request.

    Parameters
    ----------
    container : Container
        The file.
    index : int
        The column.
    pages : ColumnPages
        Its pages.
    leaf : Leaf
        The type that it is read as.
    """

    def __init__(self, container: Container, index: int, pages: ColumnPages, leaf: Leaf) -> None:
        self.leaf = leaf
        self.pages = pages
        self.starts_key = pages.starts.tobytes()
        self._container = container
        self._index = index
        self._layout = value_layout(leaf.type)
        self._open: dict[int, _OpenPage] = {}
        kind, _ = pages.encoding_of(-1)
        if kind != _COLUMN:
            raise self._damaged(f"its encoding is of type {kind!r}, expected {_COLUMN!r}")

    @property
    def row_bytes(self) -> float:
        """About how many bytes a row takes in memory."""
        stored = self.pages.stored_bytes() / max(int(self.pages.starts[-1]), 1)
        fixed = self._layout.bits * math.prod(self._layout.list_sizes) / 8
        return max(fixed, 2 * stored if self._layout.bits == 0 else stored) * self.leaf.multiple

    def widest_row(self, num_columns: int) -> float:
        """Return about how many bytes a row takes in memory at most; ``num_columns`` are those of the file."""
        if self._layout.bits and not any(is_list for is_list, _ in self.leaf.layers):
            return self._layout.bits * math.prod(self._layout.list_sizes) / 8 * self.leaf.multiple
        return self.pages.widest_row(num_columns) * self.leaf.multiple

    def _damaged(self, why: str, page: int | None = None) -> DataFileError:
        where = f"column {self._index} ({self.leaf.field.name!r})" + ("" if page is None else f", page {page}")
        return damaged(self._container.path, f"{where}: {why}", column=self.leaf.field.name, page=page)

    # --- the steps of a read: heads of pages, ranges of values, decoding ---

    def heads(self, wanted: Sequence[PageRows]) -> list[tuple[int, int]]:
        """Return the ranges to read before `open`, and drop pages that are not needed any more."""
        needed = {w.page for w in wanted}
        self._open = {k: v for k, v in self._open.items() if k in needed}
        ranges = []
        for page in sorted(needed - self._open.keys()):
            opened = self._opened(page)
            self._open[page] = opened
            ranges += opened.heads
        return ranges

    def open(self, data: Sequence[Any]) -> None:
        """Set the bytes of the ranges that `heads` returned."""
        given = iter(data)
        for number in sorted(self._open):
            page = self._open[number]
            if page.heads:
                parts = [next(given) for _ in page.heads]
                page.heads = []
                self._set_heads(number, page, parts)

    def plan(self, wanted: Sequence[PageRows]) -> list[list[tuple[int, int]]]:
        """Return the ranges of bytes that rows of pages need, in the file, for each page.

        Raises
        ------
        DataFileError
            If a page does not have them.
        """
        found = []
        for w in wanted:
            page = self._open[w.page]
            try:
                parts = page.handle.plan(w.ranges, GAP_BYTES)
            except _pages.DamagedPageError as e:
                raise self._damaged(str(e), w.page) from None
            size = self.pages.buffers_of(w.page)[self._data_buffer(page.layout)][1] if parts else 0
            for at, n in parts:
                if at + n > size:
                    raise self._damaged(f"{n} bytes at {at} are needed, but its buffer has {size}", w.page)
            found.append([(page.data_at + at, n) for at, n in parts])
        return found

    def decode(self, wanted: Sequence[PageRows], parts: Iterable[Sequence[tuple[int, Any]]]) -> LeafRows:
        """Decode rows of pages, from the bytes that `plan` requested: (position in the file, bytes) for each page.

        Raises
        ------
        DataFileError
            If a page is damaged.
        """
        layout = self._layout
        # the fields of a packed struct are stored one by one if one of them has no fixed size, and may be otherwise
        is_split = layout.bits == 0 or any(self._open[w.page].layout.fields for w in wanted)
        fields = [(c.bits, c.is_wide, c.list_sizes) for c in layout.children] if is_split else []
        column = _pages.Column(self.leaf.layers, layout.bits, layout.is_wide, layout.list_sizes, fields)
        for w in wanted:
            column.expect(self._open[w.page].handle, row_count(w.ranges))
        for w, found in zip(wanted, parts, strict=True):
            page = self._open[w.page]
            try:
                if page.dictionary is not None:
                    column.read_dictionary(page.handle, page.dictionary)
                    page.dictionary = None
                column.append(page.handle, w.ranges, [(at - page.data_at, data) for at, data in found])
            except _pages.DamagedPageError as e:
                raise self._damaged(str(e), w.page) from None
        layers, values, children = column.finish()
        try:
            check_texts(self.leaf.type, values, children)
        except _pages.DamagedPageError as e:
            raise self._damaged(str(e), wanted[0].page) from None
        return LeafRows(self.leaf, layers, values, children, layout)

    def flags(
        self, wanted: Sequence[PageRows], parts: Iterable[Sequence[tuple[int, Any]]], test: LeafTest
    ) -> NDArray[np.bool_]:
        """Return which rows of pages pass a test, from the bytes that `plan` requested; the column is not in a list.

        Raises
        ------
        DataFileError
            If a page is damaged.
        """
        tested = _pages.TestedColumn(len(self.leaf.layers), test.bits, test.is_wide, test.test)
        flags = np.zeros(sum(row_count(w.ranges) for w in wanted), np.uint8)
        at = 0
        for w, found in zip(wanted, parts, strict=True):
            page, rows = self._open[w.page], row_count(w.ranges)
            try:
                if page.dictionary is not None:
                    tested.read_dictionary(page.handle, page.dictionary)
                    page.dictionary = None
                placed = [(start - page.data_at, data) for start, data in found]
                tested.append(page.handle, w.ranges, placed, flags[at : at + rows])
            except _pages.DamagedPageError as e:
                raise self._damaged(str(e), w.page) from None
            at += rows
        return flags.view(np.bool_)

    # --- pages ---

    def _parsed_layout(self, page: int) -> Layout:
        kind, data = self.pages.encoding_of(page)
        if kind != _PAGE:
            raise self._damaged(f"its layout is of type {kind!r}, expected {_PAGE!r}", page)
        found: Layout | None = self._container.layouts.get(data)
        if found is None:
            try:
                found = common_layout(data, f"data file {self._container.path!r}, page {page} of a column")
            except LayoutError as e:
                raise self._damaged(str(e), page) from None
            self._container.layouts[data] = found
        self._check_packed(found, page)
        return found

    def _check_packed(self, layout: Layout, page: int) -> None:
        """Check that a packed struct of a fixed size has the fields of its type."""
        if layout.packed_bits is None:
            return
        expected = [c.bits * math.prod(c.list_sizes) for c in self._layout.children]
        if layout.packed_bits != expected:
            raise self._damaged(f"a packed struct has fields of {layout.packed_bits} bits, expected {expected}", page)

    def _data_buffer(self, layout: Layout) -> int:
        return 1 if layout.kind == layouts.MINI_BLOCK else 0

    def _opened(self, number: int) -> _OpenPage:
        layout = self._parsed_layout(number)
        buffers = self.pages.buffers_of(number)
        data = self._data_buffer(layout)
        heads, data_size = _heads(layout, buffers)
        if heads is None:
            raise self._damaged(f"it has {len(buffers)} buffers, which its layout does not have", number)
        try:
            handle = page_of(layout, int(self.pages.lengths[number]), data_size)
        except _pages.DamagedPageError as e:
            raise self._damaged(str(e), number) from None
        page = _OpenPage(handle, layout, buffers[data][0] if data < len(buffers) else 0, heads)
        if not heads:
            self._set_heads(number, page, [])
        return page

    def _set_heads(self, number: int, page: _OpenPage, parts: list[Any]) -> None:
        try:
            if page.layout.kind == layouts.MINI_BLOCK:
                _open_mini_block(page, parts)
            elif page.layout.kind == layouts.FULL_ZIP:
                if parts:
                    page.handle.open_rows(parts[0])
            else:
                self._open_constant(page, parts, int(self.pages.lengths[number]))
        except (_pages.DamagedPageError, LayoutError) as e:
            raise self._damaged(str(e), number) from None

    def _open_constant(self, page: _OpenPage, parts: list[Any], num_rows: int) -> None:
        message = page.layout.message
        value = message["inline_value"]
        if value is None and len(parts) in (1, 3):
            value = _value_of(parts.pop(0), self._layout.bits)
        levels = [p if len(p) else None for p in parts] if parts else [None, None]
        page.handle.open_constant(value, *levels, message["num_rep_values"], message["num_def_values"])
        if value is None and not parts and page.layout.layers[0] == 3:
            page.handle.fill_levels(1)


def common_layout(data: bytes, where: str) -> Layout:
    """Return the layout of a page from its bytes; short ones, which many files have, are parsed once.

    Raises
    ------
    DataFileError
        If the bytes are no such message; ``where`` is in its text.
    LayoutError
        If the message can't be interpreted.
    """
    found = _COMMON.get(data)
    if found is None:
        found = layouts.parse_layout(data, where)
        if len(data) <= _MOST_COMMON_BYTES and len(_COMMON) < _MOST_COMMON:
            _COMMON[data] = found
    return found


def page_of(layout: Layout, num_rows: int, data_size: int) -> _pages.Page:
    """Return the page of a layout, whose buffers are to be set.

    Raises
    ------
    DamagedPageError
        If it can't be read.
    """
    return _pages.Page(
        layout.kind,
        num_rows,
        data_size,
        layout.layers,
        layout.codings,
        layout.nodes,
        layout.numbers,
        layout.outer,
        layout.fields,
    )


def check_texts(of: pa.DataType, values: Any, fields: Sequence[Any]) -> None:
    """Check that strings are UTF-8, those of a packed struct too."""
    if pa.types.is_struct(of):
        for i, found in enumerate(fields):
            check_texts(of.field(i).type, found, ())
        return
    if pa.types.is_dictionary(of):
        of = of.value_type
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        count, (offsets, data), _ = values
        _pages.check_texts(offsets, data, count, pa.types.is_large_string(of))


def _heads(layout: Layout, buffers: list[tuple[int, int]]) -> tuple[list[tuple[int, int]] | None, int]:
    """Return the buffers to read before the values, None if there are too few or too many; and the bytes of values."""
    n = len(buffers)
    if layout.kind == layouts.CONSTANT:
        expected = (0, 2) if layout.message["inline_value"] is not None else (0, 1, 2, 3)
        return (list(buffers) if n in expected else None), 0
    if layout.kind == layouts.FULL_ZIP:
        return (buffers[1:2] if n in (1, 2) else None), buffers[0][1] if n else 0
    has_dictionary = layout.nodes[3] >= 0
    has_index = bool(layout.message["repetition_index_depth"])
    if n != 2 + has_dictionary + has_index:
        return None, 0
    return [buffers[0], *buffers[2:]], buffers[1][1]


def _open_mini_block(page: _OpenPage, parts: list[Any]) -> None:
    depth = page.layout.message["repetition_index_depth"]
    words = parts.pop(0)
    if page.layout.nodes[3] >= 0:
        page.dictionary = parts.pop(0)
    page.handle.open_chunks(words, parts[0] if parts else b"", depth)


def _value_of(data: Any, bits: int) -> bytes:
    """Return the value of a constant page from its buffer: the lengths of Arrow buffers, and the buffers."""
    view = memoryview(data)
    if len(view) < 4:
        raise LayoutError("its value has fewer than 4 bytes")
    count = struct.unpack_from("<I", view)[0]
    if count > 8 or len(view) < 4 + 4 * count:
        raise LayoutError("its value has more buffers than bytes")
    sizes = struct.unpack_from(f"<{count}I", view, 4)
    if sum(sizes) + 4 + 4 * count != len(view):
        raise LayoutError("the buffers of its value have another length than its bytes")
    if count == 1 and bits:
        return bytes(view[8:])
    if count != 2 or bits:
        raise LayoutError(f"its value has {count} buffers, which its type does not have")
    width = sizes[0] // 2
    ends = np.frombuffer(view, f"<u{width}", 2, 12) if width in (4, 8) else None
    if ends is None or ends[0] or ends[1] != sizes[1]:
        raise LayoutError("the offsets of its value do not describe its bytes")
    return bytes(view[12 + sizes[0] :])
