"""An engine whose data files are read with PyArrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.api import DataFileError, DataFileNotFoundError, Engine, Storage, make_engine

__all__ = ["engine"]


def engine(uri: str, storage_options: Mapping[str, Any] | None = None) -> Engine:
    """Return the engine of a table; nothing is read yet."""
    embedded = make_engine("arrow", uri, storage_options)
    files = ParquetFiles(embedded.storage)
    return Engine("acme_engine", embedded.storage, embedded.logs, files, embedded.evaluator, map=embedded.map)


class ParquetFiles:
    """The data files of a table: flat columns, found by their names."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def row_counts(self, paths: Sequence[str], sizes: Sequence[int | None]) -> list[int]:
        """Return the rows of each file."""
        return [self._open(path).metadata.num_rows for path in paths]

    def read(self, read: Any, apply: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files in their order, each batch as ``apply`` returns it."""
        if read.match != "name":
            raise DataFileError("acme_engine finds columns by name only. Read the table with engine='arrow'.")
        for number, path in enumerate(read.paths):
            file = self._open(path)
            if read.opened is not None:
                read.opened(number, file.metadata.num_rows)
            names = [n for n in read.schema.names if n in file.schema_arrow.names]
            first = 0
            for batch in file.iter_batches(read.batch_rows, columns=names):
                found = apply(number, first, _as_requested(batch, read.schema))
                first += batch.num_rows
                if found is not None and found.num_rows:
                    yield found

    def _open(self, path: str) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._storage.open(path))
        except FileNotFoundError as e:
            raise DataFileNotFoundError(f"Data file {path!r}, which the log names, is not there.", path=path) from e


def _as_requested(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the requested columns and types; columns that the file lacks are null."""
    columns = [
        batch.column(f.name).cast(f.type) if f.name in batch.schema.names else pa.nulls(batch.num_rows, f.type)
        for f in schema
    ]
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None]))
