"""Opens Parquet files without ``import pyarrow.parquet``.

That import loads every file system that PyArrow has (with OpenSSL), which takes longer than a small read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import ARROW_VERSION
from delta_core.parquet.pages import Source, page_values
from delta_core.parquet.plain_schema import PLAIN_TYPES
from delta_core.storage.open_files import check_regular
from delta_core.storage.prefetch import RangedSource

__all__ = ["ParquetFile"]

#: The most bytes of a batch of a stream, about, but at least `_LEAST_ROWS` rows.
_BATCH_BYTES = 8 << 20
_LEAST_ROWS = 1024
#: A column of a stream is read in pieces of this many bytes.
_BUFFER_BYTES = 64 << 10
#: Whether checksums of pages that have one are compared, by our own decoder and by PyArrow: a damaged page may decode
#: into other values without an error.
_CHECKS_PAGES = os.environ.get("DELTA_CORE_PAGE_CHECKSUMS") != "ignore"
#: Types of extensions are read as such; versions before 21 always read their storage.
_EXTENSIONS = {"arrow_extensions_enabled": True} if ARROW_VERSION >= 21 else {}
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


class ParquetFile:
    """A Parquet file that is open for reading: the part of ``pyarrow.parquet.ParquetFile`` that is used here.

    Parameters
    ----------
    source : str or pyarrow.NativeFile
        A path on the local disk, or an open file.
    metadata : pyarrow.parquet.FileMetaData, optional
        The footer, if it has been read before.
    dictionary : sequence of str, optional
        Paths of the leaves that are returned as dictionary codes.
    pre_buffer : bool
        Whether ranges are read ahead and joined, which is worth it on slow stores.
    pages : Source, optional
        The file's bytes, from which the headers of pages are read that PyArrow decodes: it returns other rows without
        an error if they have more values than the footer specifies.
    """

    def __init__(
        self,
        source: str | pa.NativeFile,
        metadata: Any = None,
        *,
        dictionary: Sequence[str] | None = None,
        pre_buffer: bool = False,
        pages: Source | None = None,
    ) -> None:
        self._source = source
        self._pages = pages
        self._dictionary = list(dictionary) if dictionary else None
        self.reader: Any = self._open(metadata, pre_buffer=pre_buffer and not isinstance(source, RangedSource))

    def _open(self, metadata: Any, *, pre_buffer: bool = False, buffer_size: int = 0) -> Any:
        from pyarrow._parquet import ParquetReader

        if isinstance(self._source, str):
            check_regular(self._source)
        reader = ParquetReader()
        reader.open(
            self._source,
            metadata=metadata,
            read_dictionary=self._dictionary,
            pre_buffer=pre_buffer,
            buffer_size=buffer_size,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=_CHECKS_PAGES,
            **_EXTENSIONS,
        )
        return reader

    @property
    def metadata(self) -> Any:
        """The footer, a ``pyarrow.parquet.FileMetaData``."""
        return self.reader.metadata

    @property
    def schema(self) -> Any:
        """The columns in Parquet's types, a ``pyarrow.parquet.ParquetSchema``."""
        return self.reader.metadata.schema

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        """The columns in Arrow's types.

        Columns that their writer had as views or large strings (Polars has all of them so) are strings and binaries:
        Parquet stores them alike, and nothing else here reads the others as fast.
        """
        found = self.reader.schema_arrow
        return pa.schema([f.with_type(PLAIN_TYPES.get(f.type, f.type)) for f in found], found.metadata)

    def read_row_group(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return columns of a row group; a dotted prefix selects all leaves below it."""
        return self.read_leaves(group, self._leaves(columns))

    def iter_batches(self, rows: int, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream columns of a row group in batches of at most ``rows`` rows."""
        yield from self.stream_leaves(rows, [group], self._leaves(columns))

    def read_leaves(self, group: int, leaves: Sequence[int], *, use_threads: bool = False) -> pa.Table:
        """Return leaves of a row group, by number, in the types of `schema_arrow`; columns on PyArrow's threads."""
        self.fetch((group, leaf) for leaf in leaves)
        self._check_pages([group], leaves)
        found = self.reader.read_row_group(group, column_indices=list(leaves), use_threads=use_threads)
        if leaves:
            _check_rows(found.num_rows, self.metadata.row_group(group).num_rows)
        return _plain(found)

    def stream_leaves(
        self, rows: int, groups: Sequence[int], leaves: Sequence[int], *, use_threads: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Stream leaves of row groups, by number, in batches of at most ``rows`` rows, fewer if they are long."""
        self.fetch((group, leaf) for group in groups for leaf in leaves)
        self._check_pages(groups, leaves)
        size, total = self._plain_size(groups, leaves)
        most = _BATCH_BYTES * total // max(size, 1) // 64 * 64
        reader = self.reader
        if size > _BATCH_BYTES and isinstance(self._source, str):
            # else PyArrow keeps all stored bytes of a row group in memory
            reader = self._open(self.metadata, buffer_size=_BUFFER_BYTES)
        count = 0
        try:
            for batch in reader.iter_batches(
                min(rows, max(most, _LEAST_ROWS)),
                row_groups=list(groups),
                column_indices=list(leaves),
                use_threads=use_threads,
            ):
                count += batch.num_rows
                yield _plain(batch)
            if leaves:
                _check_rows(count, total)
        finally:
            if reader is not self.reader:
                reader.close()

    def _check_pages(self, groups: Sequence[int], leaves: Sequence[int]) -> None:
        """Raise for column chunks whose pages have more values than the footer specifies."""
        if self._pages is None:
            return
        for group in groups:
            chunks = self.metadata.row_group(group)
            for leaf in leaves:
                column = chunks.column(leaf)
                expected = column.num_values
                found = page_values(self._pages, *_place(column), expected)
                if found > expected:
                    name = column.path_in_schema
                    raise pa.ArrowInvalid(f"the pages of column {name} have {found} values, by the footer {expected}")

    def _plain_size(self, groups: Sequence[int], leaves: Sequence[int]) -> tuple[int, int]:
        """Return the bytes of leaves of row groups, not compressed, and the rows of these groups."""
        found = [self.metadata.row_group(group) for group in groups]
        size = sum(group.column(leaf).total_uncompressed_size for group in found for leaf in leaves)
        return size, sum(group.num_rows for group in found)

    def fetch(self, chunks: Iterable[tuple[int, int]]) -> None:
        """Fetch column chunks that will be read, each by its row group and leaf, if the source is read by ranges."""
        if isinstance(self._source, str) or not isinstance(self._source, RangedSource):
            return
        ranges = []
        for number, leaf in chunks:
            ranges.append(_place(self.metadata.row_group(number).column(leaf)))
        self._source.fetch(ranges)

    def _leaves(self, columns: Sequence[str]) -> list[int]:
        paths = [".".join(path) + "." for path in self.reader.column_paths]
        return [i for name in columns for i, path in enumerate(paths) if path.startswith(name + ".")]

    def close(self) -> None:
        """Close the source too."""
        self.reader.close()


def _place(column: Any) -> tuple[int, int]:
    """Return where a column chunk begins, and its bytes."""
    first = min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
    return first, column.total_compressed_size


def _check_rows(found: int, expected: int) -> None:
    """Raise for rows that PyArrow does not find: it loses a list's last row if an empty page follows it."""
    if found != expected:
        raise pa.ArrowInvalid(f"PyArrow decodes {found} rows of row groups that have {expected} by the footer")


def _plain(rows: _Rows) -> _Rows:
    """Return rows with views and large strings as strings and binaries."""
    for place, field in enumerate(rows.schema):
        wanted = PLAIN_TYPES.get(field.type)
        if wanted is not None:
            rows = rows.set_column(place, field.with_type(wanted), pc.cast(rows.column(place), wanted))
    return rows
