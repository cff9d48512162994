"""The container of data files of versions 2.0 to 2.2: footer, offset tables, global buffers, metadata of columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from delta_core.api import DataFileError, UnsupportedFeatureError
from delta_plugins.lance._columns import DamagedColumnError, descriptor_rows, parse_column
from delta_plugins.lance.wire import Message, decode

__all__ = ["ByteSource", "ColumnPages", "Container", "damaged", "open_container"]

_FOOTER = struct.Struct("<QQQIIHH4s")
MAGIC = b"LANC"
#: The first read of a file: most footers, with the metadata of columns before them, are shorter.
TAIL_BYTES = 64 << 10
#: Metadata of columns up to this size are read at once; of larger ones those of the requested columns.
MOST_METADATA = 4 << 20
#: Of remote files: pages of all requested columns of up to this size (`_MOST_AHEAD` for all rows) are read at once,
_SMALL_COLUMNS = 4 << 20
#: and else pages of up to this size, or half of whose rows are requested,
_SMALL_PAGE = 1 << 20
#: unless they are larger together.
_MOST_AHEAD = 16 << 20
#: Rows of a column, at most.
MOST_ROWS = 1 << 48


class ByteSource(Protocol):
    """The bytes of a file.

    The methods that return bytes return those of exactly the ranges that are requested, as objects with the buffer
    protocol, and raise an error of `delta_core.errors` otherwise.
    """

    def read_at(self, offset: int, length: int) -> Any:
        """Return ``length`` bytes from ``offset`` on."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """Return the bytes of each (offset, length); a store may read them at once, and near ones together."""

    @property
    def is_remote(self) -> bool:
        """Whether a read takes long, however few bytes it returns."""

    def read_ahead(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read ranges that are requested soon at once, and keep them until the next call; of remote sources only."""


def damaged(path: str, why: str, **facts: Any) -> DataFileError:
    """Return the error of a data file that can't be read."""
    return DataFileError(
        f"Data file {path!r} is damaged: {why}. Restore the file from a copy, or remove it from the table.",
        path=path,
        **facts,
    )


#: Bytes in memory that writers collect for a page; those of many columns, for all of them together, but not less.
_FULL_PAGE, _FULL_COLUMNS, _LEAST_FULL = 8 << 20, 256 << 20, 64 << 10


class ColumnPages(NamedTuple):
    """The pages of a column; those of a file of an index are thousands.

    Parameters
    ----------
    lengths : int64, **shape (n,)**
        Their rows.
    starts : int64, **shape (n + 1,)**
        The first row of each page, and the number of rows.
    buffer_starts : int64, **shape (n + 1,)**
        The first of the buffers of each page in
    buffer_places : int64, **shape (m, 2)**
        the (offset, size) of the buffers of all pages.
    own_buffers : list of tuple of int
        (offset, size) of the buffers of the column itself.
    metadata : bytes or memoryview
        The bytes that they were parsed of.
    encoding_places : int64, **shape (n + 1, 4)**
        Where the type and the bytes of each page's encoding are in them, as start and length; the last is the column's.
    """

    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    buffer_starts: NDArray[np.int64]
    buffer_places: NDArray[np.int64]
    own_buffers: list[tuple[int, int]]
    metadata: Any
    encoding_places: NDArray[np.int64]

    def buffers_of(self, page: int) -> list[tuple[int, int]]:
        """Return the (offset, size) of the buffers of a page."""
        return _pairs(self.buffer_places[self.buffer_starts[page] : self.buffer_starts[page + 1]])

    def encoding_of(self, page: int) -> tuple[str, bytes]:
        """Return the type and the bytes of the encoding of a page; of the column itself for page -1."""
        at, n, value_at, value_n = self.encoding_places[page].tolist()
        kind = bytes(self.metadata[at : at + n]).decode("utf-8", "replace")
        return kind, bytes(self.metadata[value_at : value_at + value_n])

    def stored_bytes(self) -> int:
        """Return the bytes that all pages take in the file."""
        return int(self.buffer_places[:, 1].sum())

    def page_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that each page takes in the file, int64 of shape (n,)."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.buffer_places[:, 1])])
        return np.diff(before[self.buffer_starts])

    def widest_row(self, num_columns: int) -> float:
        """Return about how many bytes a row takes in memory at most; ``num_columns`` are those of the file.

        A page that another one follows was full when it was written, whatever its values were encoded to.
        """
        sizes = 2.0 * self.page_bytes()
        full = min(_FULL_PAGE, max(_FULL_COLUMNS // max(num_columns, 1), _LEAST_FULL))
        sizes[:-1] = np.maximum(sizes[:-1], full)
        return float((sizes / np.maximum(self.lengths, 1)).max(initial=0))


def _pairs(places: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(*places.T.tolist(), strict=True))


class Container:
    """An opened file: where its columns and global buffers are.

    Parameters
    ----------
    path : str
        Its name in errors.
    source : ByteSource
        Its bytes.
    size : int
        Its length.
    version : tuple of int
        The major and minor version in its footer.
    columns, global_buffers : uint64, **shape (n, 2)**
        (position, size) of the metadata of each column, and of each global buffer.
    tail : tuple of int and bytes
        The last bytes that were read, and where they begin.
    descriptor : bytes, optional
        The first global buffer, if it was read.
    """

    def __init__(
        self,
        path: str,
        source: ByteSource,
        size: int,
        version: tuple[int, int],
        columns: NDArray[np.uint64],
        global_buffers: NDArray[np.uint64],
        tail: tuple[int, Any],
        descriptor: Any = None,
    ) -> None:
        self.path = path
        self.source = source
        self.size = size
        self.version = version
        self.num_columns = len(columns)
        self._columns = columns
        self._globals = global_buffers
        self._tail = tail
        self._descriptor = descriptor
        #: The layouts that pages have, by their bytes; many pages and columns have the same.
        self.layouts: dict[bytes, Any] = {}
        self._pages: dict[int, ColumnPages] = {}
        self._num_rows: int | None = None

    def num_rows(self) -> int:
        """Return the number of rows that the file's descriptor specifies.

        Raises
        ------
        DataFileError
            If the file has none, or a damaged one.
        """
        if self._num_rows is None:
            try:
                self._num_rows = descriptor_rows(self.global_buffer(0))
            except DamagedColumnError as e:
                raise damaged(self.path, str(e)) from None
            if self._num_rows > MOST_ROWS:
                raise damaged(self.path, f"it has {self._num_rows} rows, more than {MOST_ROWS}")
        return self._num_rows

    def descriptor(self) -> Message:
        """Return the FileDescriptor: the schema, and the number of rows.

        Raises
        ------
        DataFileError
            If the file has none, or a damaged one.
        """
        return decode("FileDescriptor", self.global_buffer(0), f"data file {self.path!r}", DataFileError)

    def global_buffer(self, number: int) -> Any:
        """Return the bytes of a global buffer.

        Raises
        ------
        DataFileError
            If the file has no such buffer.
        """
        if not 0 <= number < len(self._globals):
            raise damaged(self.path, f"it has {len(self._globals)} global buffers, and number {number} is requested")
        if number == 0 and self._descriptor is not None:
            return self._descriptor
        [data] = self.read([self._range(self._globals[number], f"global buffer {number}")])
        return data

    def pages(self, indices: Sequence[int]) -> list[ColumnPages]:
        """Return the pages of columns; metadata that are not read yet are read at once.

        Raises
        ------
        DataFileError
            If the file has no such column, or its metadata are damaged.
        """
        for i in indices:
            if not 0 <= i < self.num_columns:
                raise damaged(self.path, f"it has {self.num_columns} columns, and the table reads column {i}", column=i)
        new = [i for i in dict.fromkeys(indices) if i not in self._pages]
        ranges = [self._range(self._columns[i], f"the metadata of column {i}") for i in new]
        for i, data in zip(new, self.read(ranges), strict=True):
            self._pages[i] = self._parsed_pages(i, data)
        return [self._pages[i] for i in indices]

    def pages_ahead(self, columns: Sequence[ColumnPages], ranges: NDArray[np.int64]) -> list[set[int]]:
        """Return the pages of each column that are to be read as a whole, before their first rows are.

        Small columns are read at once.

        Parameters
        ----------
        columns : sequence of ColumnPages
            The requested columns.
        ranges : int64[n, 2]
            The requested rows, in the unit of the pages: the first, and the one after the last.
        """
        if not self.source.is_remote:
            return [set() for _ in columns]
        sizes = [c.page_bytes() for c in columns]
        are_all = int((ranges[:, 1] - ranges[:, 0]).sum()) == self.num_rows()
        if sum(int(s.sum()) for s in sizes) <= (_MOST_AHEAD if are_all else _SMALL_COLUMNS):
            self.read_ahead(columns, [set(range(len(s))) for s in sizes])
            return [set() for _ in columns]
        firsts, lasts = ranges[:, 0], ranges[:, 1]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(lasts - firsts)])
        found: list[set[int]] = []
        for c, size in zip(columns, sizes, strict=True):
            # the requested rows before each page
            at = np.searchsorted(lasts, c.starts, "right")
            within = np.append(firsts, MOST_ROWS)[at]
            requested = np.diff(before[at] + np.maximum(c.starts - within, 0))
            is_chosen = (requested > 0) & ((size <= _SMALL_PAGE) | (2 * requested >= c.lengths))
            found.append(set(np.flatnonzero(is_chosen).tolist()))
        return found

    def read_ahead(self, columns: Sequence[ColumnPages], chosen: Sequence[set[int]], needed: int = 0) -> None:
        """Read pages of columns as a whole, which are kept until the next call.

        Nothing is read if they take too much memory, compared with the ``needed`` bytes that are requested next.
        """
        pages = [c.buffers_of(i) for c, numbers in zip(columns, chosen, strict=True) for i in numbers]
        spans = sorted(
            (min(at for at, n in page if n), max(at + n for at, n in page if n))
            for page in pages
            if any(n for _, n in page)
        )
        if sum(last - first for first, last in spans) <= max(_MOST_AHEAD, 2 * needed):
            self.source.read_ahead([(first, last - first) for first, last in spans])

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """Return the bytes of ranges, from those that were read with the footer if they have them."""
        start, tail = self._tail
        missing = [r for r in ranges if r[0] < start and r[1]]
        found = iter(self.source.read_ranges(missing) if missing else ())
        return [
            b"" if not n else next(found) if at < start else memoryview(tail)[at - start : at - start + n]
            for at, n in ranges
        ]

    def _range(self, pair: NDArray[np.uint64], what: str) -> tuple[int, int]:
        return self.checked(int(pair[0]), int(pair[1]), what)

    def checked(self, offset: int, size: int, what: str) -> tuple[int, int]:
        """Return a range of the file, which it must have.

        Raises
        ------
        DataFileError
            If the file ends before the range does.
        """
        if size > self.size or offset > self.size - size:
            raise damaged(self.path, f"{what} is expected at {offset} with {size} bytes, but the file has {self.size}")
        return offset, size

    def _parsed_pages(self, index: int, data: Any) -> ColumnPages:
        try:
            lengths, starts, ends, buffers, own, encodings = parse_column(data, self.size, MOST_ROWS)
        except DamagedColumnError as e:
            raise damaged(self.path, f"column {index}: {e}", column=index) from None
        return ColumnPages(lengths, starts, ends, buffers, _pairs(own), data, encodings)


def open_container(path: str, source: ByteSource, size: int) -> Container:
    """Read the footer of a data file, and the offset tables before it.

    Raises
    ------
    DataFileError
        For a file that has no such footer, or whose tables lie outside of it.
    UnsupportedFeatureError
        For a version that is not 2.0, 2.1 or 2.2.
    """
    if size < _FOOTER.size:
        raise damaged(path, f"it has {size} bytes, expected at least the {_FOOTER.size} of a footer")
    start = max(size - TAIL_BYTES, 0)
    tail = source.read_at(start, size - start)
    metadata, table, globals_at, num_globals, num_columns, major, minor, magic = _FOOTER.unpack(
        memoryview(tail)[-_FOOTER.size :]
    )
    if magic != MAGIC:
        raise damaged(path, f"it ends with {bytes(magic)!r}, expected {MAGIC!r}")
    version = (2, 0) if (major, minor) == (0, 3) else (major, minor)
    if version not in ((2, 0), (2, 1), (2, 2)):
        raise UnsupportedFeatureError(
            f"Data file {path!r} has version {major}.{minor} of the file format; 0.1, 2.0, 2.1 and 2.2 are supported. "
            "Write its data again with one of these.",
            path=path,
            feature=f"file format {major}.{minor}",
        )
    places = ((metadata, 0, "metadata of columns"), (table, 16 * num_columns, "column offset table"))
    for at, n, what in (*places, (globals_at, 16 * num_globals, "global buffer table")):
        if at > size - _FOOTER.size or n > size - _FOOTER.size - at:
            raise damaged(path, f"its {what} is expected at {at} with {n} bytes, but the file has {size}")
    first = min(table, globals_at)
    if start - metadata <= MOST_METADATA:
        first = min(first, metadata)
    descriptor = None
    if first < start:
        # the descriptor is read by the same call, if the place of it is known
        place = struct.unpack_from("<QQ", tail, globals_at - start) if globals_at >= start and num_globals else (0, 0)
        is_apart = 0 < place[1] <= MOST_METADATA and place[0] <= first - place[1]
        more = source.read_ranges([(first, start - first), *([place] if is_apart else [])])
        descriptor = more[1] if is_apart else None
        start, tail = first, b"".join([bytes(more[0]), bytes(tail)])
    numbers = [
        np.frombuffer(tail, "<u8", 2 * n, at - start).reshape(n, 2)
        for at, n in ((table, num_columns), (globals_at, num_globals))
    ]
    return Container(path, source, size, version, numbers[0], numbers[1], (start, tail), descriptor)
