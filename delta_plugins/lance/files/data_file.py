"""Data files: rows of requested fields as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import CorruptTableError
from delta_plugins.lance import _pages
from delta_plugins.lance.files.array_file import ArrayFile
from delta_plugins.lance.files.assembly import AssemblyError, assemble, file_error
from delta_plugins.lance.files.container import MAGIC, ByteSource, Container, damaged, open_container
from delta_plugins.lance.files.leaves import Leaf, LeafTest, leaves_of
from delta_plugins.lance.files.plain_file import open_plain_file
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
from delta_plugins.lance.files.structural import LeafRows, StructuralColumn
from delta_plugins.lance.schema import LanceField
from delta_plugins.lance.wire import Message

__all__ = ["DataFile", "column_map", "open_data_file", "open_described_file"]

#: Versions of files in the format 0.1, in their footers and in manifests.
PLAIN = ((0, 0), (0, 1), (0, 2))
#: Bytes of a local file that are read at once, of all columns, before their first page is decoded.
_MOST_AT_ONCE = 16 << 20
#: The id of a field whose column of a file is not valid any more.
TOMBSTONE = -2


class DataFile(Protocol):
    """A data file of any version.

    Reading decodes only pages that have requested rows, and of these only what the rows need. Objects are not safe for
    concurrent use: a thread opens its own, which costs no I/O if the caller keeps the footer.
    """

    @property
    def num_rows(self) -> int:
        """The rows that the file has, deleted ones too."""

    @property
    def num_columns(self) -> int:
        """The columns that the file has."""

    def read(
        self, fields: Sequence[LanceField], column_of: Mapping[int, int], rows: Rows = None
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        """Return requested rows of fields.

        Parameters
        ----------
        fields : sequence of LanceField
            Top-level fields.
        column_of : Mapping of int to int
            The column of each field, by the field's id; a field without one is null.
        rows : None, (first, last), or int64, **shape (n,)**
            All rows, those from the first to before the last, or positions that rise, without duplicates.

        Returns
        -------
        list of pyarrow.Array
            One for each field; chunked if 32-bit offsets do not describe all of its values.

        Raises
        ------
        DataFileError
            If the file is damaged, with the column and the page.
        InvalidArgumentError
            For rows that the file does not have, or positions that do not rise.
        """

    def batches(
        self,
        fields: Sequence[LanceField],
        column_of: Mapping[int, int],
        rows: Rows = None,
        batch_rows: int | None = None,
    ) -> Iterator[list[pa.Array[Any] | pa.ChunkedArray[Any]]]:
        """Yield what `read` returns, at most ``batch_rows`` rows at a time, in bounded memory.

        None: as many rows as take about 64 MiB, but at least 1,024.
        """

    def rows_within(self, fields: Sequence[LanceField], column_of: Mapping[int, int], most_bytes: int) -> int:
        """Return how many rows of fields, whichever they are, take about ``most_bytes`` in memory; at least one."""

    def passing(self, test: LeafTest, column_of: Mapping[int, int], rows: Rows = None) -> NDArray[np.int64]:
        """Return the positions of requested rows that pass a test of a field, which rise.

        Values are tested as they are encoded if that is exact: entries of a dictionary, constants and runs once.

        Raises
        ------
        DataFileError
            If the file is damaged, with the column and the page.
        InvalidArgumentError
            For rows that the file does not have, or positions that do not rise.
        """


def column_map(fields: Sequence[int], column_indices: Sequence[int]) -> dict[int, int]:
    """Return the column of each field of a data file, as `DataFile.read` takes it.

    Parameters
    ----------
    fields, column_indices : sequence of int
        Those of the DataFile in the manifest. Fields that are not valid any more have negative ids; -3 to -5 are hidden
        columns of row lineage. Files of version 0.1 have no column indices.

    Raises
    ------
    CorruptTableError
        If there are more of one than of the other.
    """
    if not column_indices:
        return {i: i for i in fields if i >= 0}
    if len(fields) != len(column_indices):
        raise CorruptTableError(
            f"A data file of the manifest has {len(fields)} fields and {len(column_indices)} columns. Restore the "
            "manifest from a copy."
        )
    return {i: c for i, c in zip(fields, column_indices, strict=True) if i != TOMBSTONE and c >= 0}


def open_data_file(source: ByteSource, size: int, *, path: str, major: int, minor: int) -> DataFile:
    """Open a data file: its footer is read, and the metadata of columns that lie near it.

    Parameters
    ----------
    source : ByteSource
        Its bytes.
    size : int
        How many bytes it has.
    path : str
        Its name in errors.
    major, minor : int
        The version that the manifest specifies: (0, 3) is 2.0, and (0, 0) is 0.1 or not specified.

    Raises
    ------
    DataFileError
        If the file is damaged, or of another version.
    UnsupportedFeatureError
        For a version that is not 0.1, 2.0, 2.1 or 2.2.
    """
    if _footer_version(path, source, size) in PLAIN:
        if (major, minor) not in PLAIN:
            raise damaged(path, f"its version is 0.1, but the manifest specifies {major}.{minor}")
        return open_plain_file(path, source, size)
    container = open_container(path, source, size)
    expected = (2, 0) if (major, minor) == (0, 3) else (major, minor)
    if expected not in ((0, 0), container.version):
        found = ".".join(map(str, container.version))
        raise damaged(path, f"its version is {found}, but the manifest specifies {major}.{minor}")
    return _of_container(container)


def open_described_file(source: ByteSource, size: int, *, path: str) -> tuple[DataFile, Message]:
    """Open a file that no manifest describes, such as one of an index, with its FileDescriptor.

    Raises
    ------
    DataFileError
        If the file is damaged.
    UnsupportedFeatureError
        For a version that is not 2.0, 2.1 or 2.2.
    """
    container = open_container(path, source, size)
    return _of_container(container), container.descriptor()


def _of_container(container: Container) -> DataFile:
    return ArrayFile(container) if container.version == (2, 0) else StructuralFile(container)


def _footer_version(path: str, source: ByteSource, size: int) -> tuple[int, int]:
    """Return the version at the end of a file, which the footers of all versions have."""
    if size < 8:
        raise damaged(path, f"it has {size} bytes, expected at least the 16 of a footer")
    end = bytes(source.read_at(size - 8, 8))
    if end[4:] != MAGIC:
        raise damaged(path, f"it ends with {end[4:]!r}, expected {MAGIC!r}")
    return int.from_bytes(end[:2], "little"), int.from_bytes(end[2:4], "little")


class StructuralFile:
    """A file of version 2.1 or 2.2 (`DataFile`)."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._columns: dict[tuple[int, int], StructuralColumn] = {}
        #: Pages of remote files that are read as a whole before their first rows are.
        self._ahead: dict[StructuralColumn, set[int]] = {}

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
        columns = self._opened(fields, column_of)
        ranges = ranges_of(rows, self._rows(columns))
        self._choose_ahead(columns, ranges)
        return self._read(fields, columns, ranges)

    def batches(
        self,
        fields: Sequence[LanceField],
        column_of: Mapping[int, int],
        rows: Rows = None,
        batch_rows: int | None = None,
    ) -> Iterator[list[pa.Array[Any] | pa.ChunkedArray[Any]]]:
        """Yield requested rows of fields, part after part (`DataFile.batches`)."""
        columns = self._opened(fields, column_of)
        step = rows_of_batches(batch_rows, sum(c.row_bytes for c in columns))
        ranges = ranges_of(rows, self._rows(columns))
        self._choose_ahead(columns, ranges)
        for part in batches_of(ranges, step):
            yield self._read(fields, columns, part)

    def rows_within(self, fields: Sequence[LanceField], column_of: Mapping[int, int], most_bytes: int) -> int:
        """Return how many rows take at most some bytes (`DataFile.rows_within`)."""
        found = sum(c.widest_row(self.num_columns) for c in self._opened(fields, column_of))
        return max(int(most_bytes / max(found, 1e-3)), 1)

    def passing(self, test: LeafTest, column_of: Mapping[int, int], rows: Rows = None) -> NDArray[np.int64]:
        """Return the positions of requested rows that pass a test of a field (`DataFile.passing`)."""
        columns = self._opened([test.field], column_of)
        ranges = ranges_of(rows, self._rows(columns))
        found = [np.zeros(0, np.int64)]
        if not columns:
            return positions_of(ranges) if test.passes_null else found[0]
        [column] = columns
        self._choose_ahead(columns, ranges)
        for part in batches_of(ranges, rows_of_tests(column.row_bytes)):
            [(wanted, parts)] = self._fetched(columns, part)
            found.append(positions_where(part, column.flags(wanted, parts, test)))
        return np.concatenate(found)

    def _rows(self, columns: Sequence[StructuralColumn]) -> int:
        for column in columns:
            found, rest = divmod(int(column.pages.starts[-1]), column.leaf.multiple)
            if rest or found != self.num_rows:
                raise damaged(
                    self._container.path,
                    f"column {column.leaf.field.name!r} has {found} rows, but the file {self.num_rows}",
                )
        return self.num_rows

    def _opened(self, fields: Sequence[LanceField], column_of: Mapping[int, int]) -> list[StructuralColumn]:
        leaves = [
            (leaf, column_of[leaf.field.id]) for f in fields for leaf in leaves_of(f) if leaf.field.id in column_of
        ]
        pages = self._container.pages([i for _, i in leaves])
        return [self._column(leaf, i, p) for (leaf, i), p in zip(leaves, pages, strict=True)]

    def _column(self, leaf: Leaf, index: int, pages: Any) -> StructuralColumn:
        key = (leaf.field.id, index)
        found = self._columns.get(key)
        if found is None or found.leaf.field != leaf.field:
            found = self._columns[key] = StructuralColumn(self._container, index, pages, leaf)
        return found

    def _read(
        self, fields: Sequence[LanceField], columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        try:
            leaves = self._decoded(columns, ranges)
        except _pages.TooLongError:
            return self._read_halves(fields, columns, ranges)
        num_rows = row_count(ranges)
        try:
            return [assemble(f, leaves, num_rows) for f in fields]
        except AssemblyError as e:
            raise file_error(e, self._container.path) from None

    def _read_halves(
        self, fields: Sequence[LanceField], columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]
    ) -> list[pa.Array[Any] | pa.ChunkedArray[Any]]:
        num_rows = row_count(ranges)
        if num_rows < 2:
            raise damaged(self._container.path, "one row has more than 2 GiB of values")
        halves = [self._read(fields, columns, part) for part in batches_of(ranges, (num_rows + 1) // 2)]
        return [
            pa.chunked_array([c for a in parts for c in (a.chunks if isinstance(a, pa.ChunkedArray) else [a])])
            for parts in zip(*halves, strict=True)
        ]

    def _decoded(self, columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]) -> dict[int, LeafRows]:
        fetched = self._fetched(columns, ranges)
        return {c.leaf.field.id: c.decode(*found) for c, found in zip(columns, fetched, strict=True)}

    def _fetched(
        self, columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]
    ) -> list[tuple[list[PageRows], Iterable[list[tuple[int, Any]]]]]:
        """Return for each column the rows of its pages, and their bytes.

        All are read together, or if they are many, such as those of scattered rows, page by page when they are decoded.
        """
        wanted = self._wanted(columns, ranges)
        if self._ahead:
            pairs = [*zip(columns, wanted, strict=True)]
            chosen = [self._ahead.get(c, set()) & {w.page for w in some} for c, some in pairs]
            needed = sum(c.row_bytes * row_count(w.ranges) for c, some in pairs for w in some)
            self._container.read_ahead([c.pages for c in columns], chosen, int(needed))
        heads = [c.heads(w) for c, w in zip(columns, wanted, strict=True)]
        self._hand_out(heads, columns)
        plans = [c.plan(w) for c, w in zip(columns, wanted, strict=True)]
        ranges_to_read = [r for plan in plans for page in plan for r in page]
        if not self._container.source.is_remote and sum(n for _, n in ranges_to_read) > _MOST_AT_ONCE:
            return [(w, self._page_by_page(plan)) for w, plan in zip(wanted, plans, strict=True)]
        data = iter(self._container.read(ranges_to_read))
        return [
            (w, [[(at, next(data)) for at, _ in page] for page in plan]) for w, plan in zip(wanted, plans, strict=True)
        ]

    def _page_by_page(self, plan: Sequence[list[tuple[int, int]]]) -> Iterator[list[tuple[int, Any]]]:
        for page in plan:
            yield [(at, data) for (at, _), data in zip(page, self._container.read(page), strict=True)]

    def _choose_ahead(self, columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]) -> None:
        """Decide which pages are read as a whole for rows that are requested, part after part."""
        self._ahead = {}
        if all(c.leaf.multiple == 1 for c in columns):
            chosen = self._container.pages_ahead([c.pages for c in columns], ranges)
            self._ahead = {c: pages for c, pages in zip(columns, chosen, strict=True) if pages}

    def _wanted(self, columns: Sequence[StructuralColumn], ranges: NDArray[np.int64]) -> list[list[PageRows]]:
        """Return the rows of pages that each column needs; columns with the same pages need the same."""
        found: dict[tuple[int, bytes], list[PageRows]] = {}
        keys = [(c.leaf.multiple, c.starts_key) for c in columns]
        for key, column in zip(keys, columns, strict=True):
            if key not in found:
                found[key] = page_rows(ranges * column.leaf.multiple, column.pages.starts)
        return [found[key] for key in keys]

    def _hand_out(self, heads: Sequence[list[tuple[int, int]]], columns: Sequence[StructuralColumn]) -> None:
        data = iter(self._container.read([r for h in heads for r in h]))
        for column, ranges in zip(columns, heads, strict=True):
            column.open([next(data) for _ in ranges])
