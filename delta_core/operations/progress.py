"""The progress of an operation, for the user that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values
from delta_core.runtime.sizes import num_bytes, size_text

__all__ = ["OperationProgress", "ProgressReport", "VacuumProgress", "report_rows"]

#: In how many parts, at most, files are read so that progress can be reported; no part is smaller than the bytes.
_PARTS = 100
_PART_BYTES = 64 << 20


class OperationProgress(Struct, frozen=True):
    """How far an operation is.

    Parameters
    ----------
    files, total_files : int
        Files that this step is done with, and all that it has.
    rows : int
        Rows that the step has found or written.
    bytes, total_bytes : int
        Sizes of these files; 0 if they are not known.
    step : str
        ``find`` for the search for rows, ``write`` for the writing of rows.
    """

    files: int
    total_files: int
    rows: int
    bytes: int
    total_bytes: int
    step: str = "write"

    def shown(self) -> tuple[str, int, int]:
        """Return the text beside a bar, how much is done, and of how much (0: unknown)."""
        files = f"{self.files:,} of {self.total_files:,} files, " if self.total_files else ""
        text = f"{self.step}: {files}{self.rows:,} rows" + (f", {size_text(self.bytes)}" if self.bytes else "")
        return (text, self.bytes, self.total_bytes) if self.bytes else (text, self.files, self.total_files)


class VacuumProgress(Struct, frozen=True):
    """How far a vacuum is.

    Parameters
    ----------
    files, total_files : int
        Files that were deleted, and those of the plan.
    """

    files: int
    total_files: int

    def shown(self) -> tuple[str, int, int]:
        """Return the text beside a bar, how much is done, and of how much (0: unknown)."""
        return f"delete: {self.files:,} of {self.total_files:,} files", self.files, self.total_files


class ProgressReport:
    """Calls a function as steps go on; without a function it does nothing.

    Parameters
    ----------
    call : function(OperationProgress), optional
        The function that is called, by the thread that runs the operation or one of those that write.
    """

    def __init__(self, call: Callable[[OperationProgress], None] | None) -> None:
        self._call = call
        self._now = OperationProgress(0, 0, 0, 0, 0)

    def begin(self, step: str, sizes: pa.ChunkedArray | None = None) -> None:
        """Begin a step.

        Parameters
        ----------
        step : str
            Its name.
        sizes : pyarrow.ChunkedArray, optional
            The bytes of the files that it is over.
        """
        total = 0 if sizes is None else int(pc.sum(sizes).as_py() or 0)
        self._now = OperationProgress(0, 0 if sizes is None else len(sizes), 0, 0, total, step)

    def add(self, files: int = 0, rows: int = 0, num_bytes: int = 0) -> None:
        """Report further work that is done.

        Parameters
        ----------
        files, rows, num_bytes : int
            Since the last call.
        """
        if self._call is not None:
            now = self._now
            self._now = replace(now, files=now.files + files, rows=now.rows + rows, bytes=now.bytes + num_bytes)
            self._call(self._now)

    def parts(self, files: pa.Table) -> Iterator[pa.Table]:
        """Yield files in consecutive parts, and report each as done when the next one is requested.

        Parameters
        ----------
        files : pyarrow.Table
            With ``size`` in bytes.
        """
        sizes = int64_values(pc.fill_null(files.column("size"), 0))
        for start, stop in _bounds(sizes) if self._call is not None else [(0, files.num_rows)]:
            yield files.slice(start, stop - start)
            self.add(files=stop - start, num_bytes=int(sizes[start:stop].sum()))

    def counted(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return rows that are counted as they are read.

        Parameters
        ----------
        rows : pyarrow.RecordBatchReader
            The rows.
        """
        if self._call is None:
            return rows

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                yield batch
                self.add(rows=batch.num_rows)

        return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _bounds(sizes: np.ndarray) -> Sequence[tuple[int, int]]:
    until = np.cumsum(sizes)
    least = max(_PART_BYTES, int(until[-1]) // _PARTS) if len(until) else 1
    ends = np.unique(np.append(np.flatnonzero(np.diff(until // least)) + 1, len(sizes)))
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def report_rows(
    source: pa.Table | pa.RecordBatchReader, call: Callable[[OperationProgress], None]
) -> pa.RecordBatchReader:
    """Return the rows of a write, which report how many of them were read; of a table, the share of its bytes too.

    Parameters
    ----------
    source : pyarrow.Table or RecordBatchReader
        The rows.
    call : function(OperationProgress)
        Called after each batch.
    """
    is_table = isinstance(source, pa.Table)
    total, num_rows = (num_bytes(source), source.num_rows) if is_table else (0, 0)
    reader = source.to_reader(max_chunksize=1 << 16) if is_table else source

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in reader:
            yield batch
            rows += batch.num_rows
            call(OperationProgress(0, 0, rows, total * rows // max(num_rows, 1), total))

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
