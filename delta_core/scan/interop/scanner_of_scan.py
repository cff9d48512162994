"""A scan in the shape of a `pyarrow.dataset.Scanner`, where pyarrow has nothing left to filter or compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from delta_core.scan.interop.coded_rows import coded_reader, coded_schema
from delta_core.scan.interop.rows import gathered, shared_out
from delta_core.scan.rows import PlannedRows

__all__ = ["ScanScanner", "reader_of"]


def reader_of(scan: PlannedRows) -> pa.RecordBatchReader:
    """Return a scan's rows in batches of sizes that other libraries take best."""
    # without a predicate batches are large, and the first one may be all that is taken
    batches = scan.batches() if scan.predicate is None else gathered(scan.batches())
    return pa.RecordBatchReader.from_batches(scan.schema, shared_out(batches))


class ScanScanner:
    """A scan with the methods of a `pyarrow.dataset.Scanner`, for other libraries and callers of `ScanDataset.scanner`.

    pyarrow's own scanner passes each batch through a plan of its executor, on other threads, which adds about a
    millisecond to a small read. Each call reads again; of a scanner of pyarrow that is made of batches only the first
    call has rows.

    It does not inherit from pyarrow's class: pyarrow's C++ code takes the scanner inside and crashes if there is none.
    Functions that take an Arrow stream take it, `pyarrow.dataset.write_dataset` too.

    Parameters
    ----------
    plan : callable
        Returns the scan for a limit, None for all rows.
    dataset_schema : pyarrow.Schema
        All columns of the dataset.
    encoded : bool
        Whether strings are dictionary codes.
    """

    def __init__(
        self, plan: Callable[[int | None], PlannedRows], dataset_schema: pa.Schema, *, encoded: bool = False
    ) -> None:
        self._plan = plan
        self.dataset_schema = dataset_schema
        self._is_encoded = encoded

    @cached_property
    def _scan(self) -> PlannedRows:
        return self._plan(None)

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return coded_schema(self._scan.schema) if self._is_encoded else self._scan.schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader."""
        return self._reader(self._scan)

    def _reader(self, scan: PlannedRows) -> pa.RecordBatchReader:
        return coded_reader(scan.schema, scan.encoded_batches()) if self._is_encoded else reader_of(scan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as batches."""
        return iter(self.to_reader())

    def scan_batches(self) -> Iterator[ds.TaggedRecordBatch]:
        """Return the rows as batches, of no fragment: the scan divides its work itself."""
        return (ds.TaggedRecordBatch(batch, None) for batch in self.to_reader())

    def to_table(self) -> pa.Table:
        """Return the rows in memory."""
        return self._table(self._scan)

    def _table(self, scan: PlannedRows) -> pa.Table:
        return self._reader(scan).read_all() if self._is_encoded else scan.to_table()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        return self._table(self._plan(num_rows))

    def take(self, indices: Any) -> pa.Table:
        """Return rows by number."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return the number of rows."""
        return self._scan.count()
