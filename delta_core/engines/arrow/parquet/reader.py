"""Opens Parquet files without ``import pyarrow.parquet``.

That import loads every file system that PyArrow has (with OpenSSL), which takes longer than a small read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

__all__ = ["ParquetFile"]


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

        self.reader = ParquetReader()
        self.reader.open(
            source,
            metadata=metadata,
            read_dictionary=list(dictionary) if dictionary else None,
            pre_buffer=pre_buffer,
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
        """The columns in Arrow's types."""
        return self.reader.schema_arrow

    def read_row_group(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return columns of a row group; a dotted prefix selects all leaves below it."""
        return self.reader.read_row_group(group, column_indices=self._leaves(columns), use_threads=False)

    def iter_batches(self, rows: int, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream columns of a row group in batches of at most so many rows."""
        leaves = self._leaves(columns)
        yield from self.reader.iter_batches(rows, row_groups=[group], column_indices=leaves, use_threads=False)

    def _leaves(self, columns: Sequence[str]) -> list[int]:
        paths = [".".join(path) + "." for path in self.reader.column_paths]
        return [i for name in columns for i, path in enumerate(paths) if path.startswith(name + ".")]

    def close(self) -> None:
        """Close the source too."""
        self.reader.close()
