"""Batches of a write to row groups: steps of a size that is worth a call, and rows gathered by partition."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.engines.records import FileWrite
from delta_core.kernels.arrow_buffers import joined_batches
from delta_core.parquet.options import ROW_GROUP_ROWS
from delta_core.parquet.types import num_leaves
from delta_core.runtime.sizes import num_bytes

__all__ = ["GatheredRows", "GatheredGroup", "Slot", "Steps", "bytes_of", "steps_of"]

#: A row group is full at `ROW_GROUP_ROWS`, or at this many bytes in memory.
ROW_GROUP_BYTES = 128 << 20
#: The least average bytes of a column in a full row group: shorter chunks are not worth a read each.
CHUNK_BYTES = 1 << 16
#: As above for rows that are read meanwhile: each group that is gathered or encoded is in memory beside the read's.
ROW_GROUP_ROWS_BESIDE_READS = 1 << 18
ROW_GROUP_BYTES_BESIDE_READS = 32 << 20
#: Beside reads, PyArrow's unused memory is released after rows of this many bytes: its allocator takes 12 MB, in huge
#: pages, for the megabyte of buffers in which a row group is encoded.
RELEASED_BYTES = 8 << 20
#: Batches are joined up to this many rows or bytes before they are processed; more if each is cut by partition.
STEP_ROWS = 1 << 16
STEP_BYTES = 8 << 20
PARTITIONED_STEPS = 8
#: Larger batches are cut into pieces of this many bytes.
PIECE_BYTES = 32 << 20
#: Row groups that come in shorter pieces on average are joined first.
PIECE_ROWS = 1 << 12
#: The most bytes of all partitions together before the biggest is written.
BUFFER_BYTES = 512 << 20

#: Batches, each with the number of its first row.
Steps = Iterator[tuple[int, pa.RecordBatch]]


class GatheredGroup(NamedTuple):
    """The rows of a row group to be written, and their bytes in memory."""

    batches: list[pa.RecordBatch]
    nbytes: int


class Slot:
    """Rows of one partition that wait for their row group; a key by identity."""

    __slots__ = ("batches", "nbytes", "partition", "rows", "worker")

    def __init__(self, partition: int, worker: int) -> None:
        self.partition: int = partition
        self.worker: int = worker
        self.batches: list[pa.RecordBatch] = []
        self.rows: int = 0
        self.nbytes: int = 0

    def take(self) -> GatheredGroup:
        """Return the rows as a group, and empty the slot."""
        group = GatheredGroup(self.batches, self.nbytes)
        self.batches, self.rows, self.nbytes = [], 0, 0
        return group


class GatheredRows:
    """Rows of one write, gathered by partition until they fill a row group, in bounded memory.

    Parameters
    ----------
    write : FileWrite
        The schema, the target size of files, and whether rows are read meanwhile.
    """

    def __init__(self, write: FileWrite) -> None:
        self._write = write
        most = ROW_GROUP_ROWS_BESIDE_READS if write.beside_reads else ROW_GROUP_ROWS
        self._max_rows = min(write.properties.max_row_group_size or most, 64 << 20)
        self._max_bytes = ROW_GROUP_BYTES_BESIDE_READS if write.beside_reads else ROW_GROUP_BYTES
        self.num_leaves: int = sum(num_leaves(f.type) for f in write.schema)
        self._least_bytes = self.num_leaves * CHUNK_BYTES
        self._lock = threading.Lock()
        self._slots: dict[tuple[int, int], Slot] = {}
        self._buffered = 0
        self._plain_bytes = self._encoded_bytes = self._unreleased = 0

    @property
    def slots(self) -> list[Slot]:
        """All slots, in the order in which they were used first."""
        return list(self._slots.values())

    def slot(self, partition: int, worker: int) -> Slot:
        """Return the slot of a partition and a worker."""
        with self._lock:
            slot = self._slots.get((partition, worker))
            if slot is None:
                slot = self._slots[partition, worker] = Slot(partition, worker)
            return slot

    def add(self, slot: Slot, rows: pa.RecordBatch, nbytes: int) -> Iterator[GatheredGroup]:
        """Add rows to a slot, and yield each full row group."""
        num_rows, start = rows.num_rows, 0
        width = max(nbytes / num_rows, 0.1) if num_rows else 0.1
        while start < num_rows:
            with self._lock:
                most = self._group_bytes()
                room = max(min(self._max_rows - slot.rows, int((most - slot.nbytes) / width)), 1)
                piece = rows if not start and room >= num_rows else rows.slice(start, room)
                size = int(piece.num_rows * width)
                start += piece.num_rows
                slot.batches.append(piece)
                slot.rows += piece.num_rows
                slot.nbytes += size
                self._buffered += size
                full = None
                if slot.rows >= self._max_rows or slot.nbytes + width > most:
                    self._buffered -= slot.nbytes
                    full = slot.take()
            if full is not None:
                yield full

    def _group_bytes(self) -> float:
        """Return the bytes in memory of a full row group: a file of the target size has a few, unless it is wide."""
        ratio = self._encoded_bytes / self._plain_bytes if self._plain_bytes else 1.0
        whole_file = self._write.target_file_size / max(ratio, 0.01)
        return min(self._max_bytes, whole_file, max(self._least_bytes, whole_file / 4))

    def take_overfull(self) -> tuple[Slot, GatheredGroup] | None:
        """Return the biggest slot and its rows if all slots exceed `BUFFER_BYTES`."""
        if self._buffered <= BUFFER_BYTES:
            return None
        with self._lock:
            biggest = max(self._slots.values(), key=lambda s: s.nbytes)
            if not biggest.nbytes:
                return None
            self._buffered -= biggest.nbytes
            return biggest, biggest.take()

    def table_of(self, group: GatheredGroup) -> pa.Table:
        """Return the rows of a group as a table; many short batches are joined."""
        table = pa.Table.from_batches(group.batches, self._write.schema)
        is_cut = len(group.batches) > 1 and table.num_rows < PIECE_ROWS * len(group.batches)
        return table.combine_chunks() if is_cut else table

    def count_encoded(self, plain_bytes: int, encoded_bytes: int) -> None:
        """Count encoded rows, whose ratio determines the bytes of further row groups."""
        with self._lock:
            self._plain_bytes += plain_bytes
            self._encoded_bytes += encoded_bytes
            self._unreleased += plain_bytes
            is_release = self._write.beside_reads and self._unreleased >= RELEASED_BYTES
            if is_release:
                self._unreleased = 0
        if is_release:
            pa.default_memory_pool().release_unused()


def steps_of(batches: Iterator[pa.RecordBatch], first_row: int, write: FileWrite) -> Steps:
    """Yield batches of a size that is worth a step, each with the number of its first row."""
    factor = PARTITIONED_STEPS if write.partitioned else 1
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece, nbytes in _cut(batch):
            if held and (rows + piece.num_rows > ROW_GROUP_ROWS or size + nbytes > PIECE_BYTES):
                yield first_row, joined_batches(held)
                first_row += rows
                held, rows, size = [], 0, 0
            held.append(piece)
            rows += piece.num_rows
            size += nbytes
            if rows >= STEP_ROWS * factor or size >= min(STEP_BYTES * factor, PIECE_BYTES):
                yield first_row, joined_batches(held)
                first_row += rows
                held, rows, size = [], 0, 0
    if rows:
        yield first_row, joined_batches(held)


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield pieces of a batch, each with its bytes: counted once: for few rows that costs more than the rows."""
    if not batch.num_rows:
        return
    nbytes = num_bytes(batch)
    wide = nbytes / batch.num_rows
    rows = max(1, min(ROW_GROUP_ROWS, int(PIECE_BYTES / wide) if wide else ROW_GROUP_ROWS))
    if batch.num_rows <= rows:
        yield batch, nbytes
        return
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        yield piece, num_bytes(piece)


def bytes_of(pieces: Sequence[pa.RecordBatch]) -> list[int]:
    """Return the bytes of batches, such as the rows of each partition: slices of one batch are counted together."""
    if len(pieces) > 1:
        ends = np.cumsum([0, *(piece.num_rows for piece in pieces)])
        first, last = pieces[0], pieces[-1]
        found = [_bytes_of_slices(a, b, ends) for a, b in zip(first.columns, last.columns, strict=True)]
        if found and all(counts is not None for counts in found):
            return [int(n) for n in sum(found)]
    return [num_bytes(piece) for piece in pieces]


def _bytes_of_slices(first: pa.Array, last: pa.Array, ends: Any) -> Any:
    """Return the bytes of consecutive slices of a flat column, from the first and the last; None for other columns."""
    t = first.type
    if t != last.type or last.offset - first.offset != ends[-2]:
        return None
    rows = np.diff(ends)
    if pa.types.is_string(t) or pa.types.is_binary(t):
        texts, same = first.buffers()[1], last.buffers()[1]
        if texts is None or same is None or texts.address != same.address:
            return None
        places = np.frombuffer(texts, np.int32, int(ends[-1]) + 1, 4 * first.offset)[ends]
        return np.diff(places) + 4 * rows
    if not (pa.types.is_primitive(t) or pa.types.is_decimal(t)):
        return None
    return (rows * t.bit_width + 7) // 8
