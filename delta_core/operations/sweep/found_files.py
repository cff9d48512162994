"""Files that a sweep would delete, in the order in which they were found: in memory, or on this machine's disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from delta_core.engines.records import WALKED_FILE
from delta_core.kernels import compute as pc

__all__ = ["FoundFiles"]

#: More bytes are kept in a temporary file.
_IN_MEMORY = 4 << 20


class FoundFiles:
    """Collects files; many are written to a temporary file."""

    def __init__(self) -> None:
        self.num_files: int = 0
        self.num_bytes: int = 0
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._file: Any = None
        self._stream: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add files.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Columns of `WALKED_FILE`.
        """
        if not batch.num_rows:
            return
        self.num_files += batch.num_rows
        self.num_bytes += int(pc.sum(batch.column("size")).as_py() or 0)
        if self._stream is None and self._size + batch.nbytes > _IN_MEMORY:
            self._file = tempfile.NamedTemporaryFile(prefix="delta-vacuum-", suffix=".arrows")  # noqa: SIM115 (it outlives this)
            self._stream = pa.ipc.new_stream(self._file, WALKED_FILE)
            for earlier in self._batches:
                self._stream.write_batch(earlier)
            self._batches = []
        if self._stream is None:
            self._batches.append(batch)
            self._size += batch.nbytes
        else:
            self._stream.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files; nothing can be added afterwards."""
        if self._stream is None:
            yield from self._batches
            return
        self._stream.close()
        self._file.flush()
        with pa.OSFile(self._file.name, "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from reader
