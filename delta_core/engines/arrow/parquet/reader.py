"""Opens Parquet files without ``import pyarrow.parquet``.

That import loads every file system that PyArrow has (with OpenSSL), which takes longer than a small read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from delta_core.engines.arrow.storage.prefetch import RangedSource
from delta_core.kernels import compute as pc

__all__ = ["ParquetFile"]

_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
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
    """

    def __init__(
        self,
        source: str | pa.NativeFile,
        metadata: Any = None,
        *,
        dictionary: Sequence[str] | None = None,
        pre_buffer: bool = False,
    ) -> None:
        from pyarrow._parquet import ParquetReader

        self._source = source
        self.reader = ParquetReader()
        self.reader.open(
            source,
            metadata=metadata,
            read_dictionary=list(dictionary) if dictionary else None,
            pre_buffer=pre_buffer and not isinstance(source, RangedSource),
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=True,
        )

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

        Columns that their writer had as views are strings and binaries: Parquet stores both alike, and nothing else
        here reads views as fast.
        """
        found = self.reader.schema_arrow
        return pa.schema([f.with_type(_PLAIN.get(f.type, f.type)) for f in found], found.metadata)

    def read_row_group(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return columns of a row group; a dotted prefix selects all leaves below it."""
        return self.read_leaves(group, self._leaves(columns))

    def iter_batches(self, rows: int, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream columns of a row group in batches of at most so many rows."""
        yield from self.stream_leaves(rows, [group], self._leaves(columns))

    def read_leaves(self, group: int, leaves: Sequence[int]) -> pa.Table:
        """Return leaves of a row group, by number, in the types of `schema_arrow`."""
        self.fetch([group], leaves)
        return _plain(self.reader.read_row_group(group, column_indices=list(leaves), use_threads=False))

    def stream_leaves(self, rows: int, groups: Sequence[int], leaves: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Stream leaves of row groups, by number, in batches of at most so many rows."""
        self.fetch(groups, leaves)
        for batch in self.reader.iter_batches(
            rows, row_groups=list(groups), column_indices=list(leaves), use_threads=False
        ):
            yield _plain(batch)

    def fetch(self, groups: Sequence[int], leaves: Sequence[int]) -> None:
        """Fetch leaves of row groups that will be read together, if the source is read by ranges."""
        if not isinstance(self._source, RangedSource):
            return
        ranges = []
        for group in map(self.metadata.row_group, groups):
            for column in map(group.column, leaves):
                first = min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
                ranges.append((first, column.total_compressed_size))
        self._source.fetch(ranges)

    def _leaves(self, columns: Sequence[str]) -> list[int]:
        paths = [".".join(path) + "." for path in self.reader.column_paths]
        return [i for name in columns for i, path in enumerate(paths) if path.startswith(name + ".")]

    def close(self) -> None:
        """Close the source too."""
        self.reader.close()


def _plain(rows: _Rows) -> _Rows:
    """Return rows with views as strings and binaries."""
    for place, field in enumerate(rows.schema):
        wanted = _PLAIN.get(field.type)
        if wanted is not None:
            rows = rows.set_column(place, field.with_type(wanted), pc.cast(rows.column(place), wanted))
    return rows
