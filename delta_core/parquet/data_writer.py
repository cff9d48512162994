"""Rows to Parquet files, on threads, in bounded memory.

Small writes run on the caller's thread. Else each worker takes batches, makes them physical and gathers them by
partition until a row group is full, which it then encodes. Without partitions each worker has files of its own, and a
table in memory is cut into one consecutive run of rows a worker; of a stream each takes runs in turn.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileWrite, Split, WrittenFile
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import DeltaError, EngineError, InternalError
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.kernels.string_codes import dictionary_of, own_dictionaries
from delta_core.parquet import parts
from delta_core.parquet.added_statistics import ChunkStatistics, text_statistics, with_statistics
from delta_core.parquet.footer import footer_bytes, parse_footer
from delta_core.parquet.options import ROW_GROUP_ROWS, columns_to_code, parquet_options, without_statistics
from delta_core.parquet.statistics import Leaf, Measured, footer_statistics, leaves_of
from delta_core.parquet.types import num_leaves
from delta_core.runtime.processes import PerProcess, cached_property
from delta_core.runtime.threads import Changes, Task, ThreadPool, num_cores
from delta_core.schema.fields import Path
from delta_core.storage.boundary import are_plain
from delta_core.storage.local_files import WriteBack, make_directory

if TYPE_CHECKING:
    from delta_core.parquet.file_runs import EncodedFiles

__all__ = ["write_parquet_files"]

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
#: A write below this many bytes in memory is done by the caller's thread.
PARALLEL_BYTES = 32 << 20
#: Batches are joined up to this many rows or bytes before they are processed; more if each is cut by partition.
STEP_ROWS = 1 << 16
STEP_BYTES = 8 << 20
PARTITIONED_STEPS = 8
#: Consecutive rows of a stream that one worker takes at once: some runs wait while others are written.
RUN_BYTES = 8 << 20
#: Larger batches are cut into pieces of this many bytes.
PIECE_BYTES = 32 << 20
#: Row groups that come in shorter pieces on average are joined first.
PIECE_ROWS = 1 << 12
#: A file above this is synced when it is closed; smaller ones all together at the end, `SYNCS` at once.
SYNC_BYTES = 8 << 20
SYNCS = 16
#: Strings are encoded here in files whose first row group has this many rows: elsewhere the time does not matter.
CODED_ROWS = 1 << 14
#: The most bytes of distinct strings, plus 4 for each: PyArrow stops using a dictionary of a megabyte.
DICTIONARY_BYTES = (1 << 20) - 1
#: The most bytes of all partitions together before the biggest is written.
BUFFER_BYTES = 512 << 20
OPEN_FILES = 64
WORKERS = 8
#: Partitions with fewer bytes, all of them in memory when the rows end, are encoded in runs of these bytes or files.
SMALL_BYTES = 1 << 20
RUN_OF_FILES_BYTES = 4 << 20
RUN_OF_FILES = 64
#: A run has fewer files of many columns, but an eighth of `RUN_OF_FILES`: each run has a writer.
RUN_OF_CHUNKS = 2048
#: From this number of columns on, most of the time of a small file is spent in PyArrow, where threads do not wait.
SHARED_LEAVES = 8
#: The runs that are created while the next one is encoded.
RUNS_AHEAD = 2

_syncs = PerProcess(partial(ThreadPool, SYNCS, "delta-sync"))
Steps = Iterator[tuple[int, pa.RecordBatch]]


def write_parquet_files(
    storage: Storage, write: FileWrite, source: pa.Table | pa.RecordBatchReader, apply: Split
) -> list[WrittenFile]:
    """Write rows as data files. See `delta_core.engines.interface.DataFiles.write`."""
    job = _Job(storage, write, apply)
    try:
        job.run(source)
        job.sync()
        return job.written
    except BaseException:
        job.discard()
        raise


class _Failing:
    """Turns the backend's errors into one that names the file."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (pa.ArrowException, OSError)) and not isinstance(error, DeltaError):
            cause = f"{type(error).__name__}: {error}"
            raise EngineError(f"Could not write data file {self._path!r}: {cause}.", path=self._path) from error


# --- one file ------------------------------------------------------------------------------


class _File:
    """A data file that is being written."""

    def __init__(self, job: _Job, partition: int, worker: int) -> None:
        self.partition = partition
        self.worker = worker
        self._job = job
        self.path = job.write.name(partition)
        self._local = job.storage.local_path(self.path)
        self._leaves = job.leaves
        self._measured = Measured(job.leaves)
        self._write_back = WriteBack()
        self._num_groups = self._num_rows = 0
        #: Columns that are passed to PyArrow as dictionaries, in each row group of the file.
        self._coded: tuple[str, ...] = ()
        self._statistics: dict[tuple[int, int], ChunkStatistics] = {}
        self._schema = job.write.schema
        self._writer: Any = None
        self.order = job.begin(self)
        with _Failing(self.path):
            self._sink = job.storage.create(self.path)

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def append(self, table: pa.Table) -> None:
        """Write a row group."""
        with _Failing(self.path):
            coded = self._encode(table)
            self._measured.add(self._num_groups, table, {name: values for name, (_, values) in coded.items()})
            if self._writer is None:
                self._begin(tuple(coded))
            if coded:
                columns = [coded[n][0] if n in coded else table.column(n) for n in self._schema.names]
                table = pa.Table.from_arrays(columns, schema=self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
            if self._local is not None:
                self._write_back.reached(self._sink.fileno(), self.size)
        self._num_groups += 1
        self._num_rows += table.num_rows

    def _begin(self, coded: tuple[str, ...]) -> None:
        # not `pyarrow.parquet`, which loads every file system that PyArrow has
        from pyarrow._parquet import ParquetWriter

        options = self._job.options
        if coded:
            fields = [f.with_type(pa.dictionary(pa.int32(), f.type)) if f.name in coded else f for f in self._schema]
            options = without_statistics(self._schema, coded, options)
            self._schema = pa.schema(fields)
        self._coded = coded
        self._writer = ParquetWriter(
            self._sink, self._schema, writer_engine_version="V2", memory_pool=POOL_OF_BATCHES, **options
        )

    def _encode(self, table: pa.Table) -> dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """Return columns as dictionaries, each beside its values; the first row group decides which columns.

        PyArrow takes three times as long to find the distinct values, and as long again to find their bounds.
        """
        found = {}
        is_first = self._writer is None
        names = self._job.to_code if is_first and table.num_rows >= CODED_ROWS else self._coded
        for name in names:
            column = table.column(name)
            codes = dictionary_of(column, DICTIONARY_BYTES)
            if codes is not None:
                values = pa.chunked_array([codes.chunk(0).dictionary])
            elif is_first:
                continue
            else:
                codes, values = own_dictionaries(column), column
            found[name] = codes, values
            number = self._job.to_code[name]
            self._statistics[self._num_groups, number] = text_statistics(column.null_count, values)
        return found

    def close(self) -> WrittenFile:
        with _Failing(self.path):
            self._writer.close()
            metadata = self._writer.metadata
            size = self.size
            self._sink.close()
            if self._statistics and self._local is not None:
                metadata, size = _add_statistics(self._local, self._statistics)
            modified_ms = time.time_ns() // 1_000_000
            if self._local is not None:
                modified_ms = os.stat(self._local).st_mtime_ns // 1_000_000
                if size >= SYNC_BYTES:
                    self._job.begin_sync(self.path)
        found = footer_statistics(metadata, self._leaves, self._measured)
        return WrittenFile(self.path, self.partition, size, modified_ms, self._num_rows, found)

    def abandon(self) -> None:
        """Let go of the file; its end is not written."""
        with suppress(AttributeError, OSError, pa.ArrowException, DeltaError):
            self._sink.close()


def _add_statistics(path: str, added: Mapping[tuple[int, int], ChunkStatistics]) -> tuple[Any, int]:
    """Replace the footer of a file by one with further statistics; return it, parsed, and the size of the file."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        old = footer_bytes(handle)
        if old is None:
            raise InternalError(f"{path} has no footer.")
        footer = with_statistics(old, added)
        end = footer + len(footer).to_bytes(4, "little") + b"PAR1"
        start = os.fstat(handle).st_size - len(old) - 8
        written = 0
        while written < len(end):
            written += os.pwrite(handle, end[written:], start + written)
        if len(footer) < len(old):  # PyArrow wrote statistics too, which were longer
            os.ftruncate(handle, start + len(end))
        return parse_footer(footer), start + len(end)
    finally:
        os.close(handle)


class _Created(NamedTuple):
    """A data file that is created whole."""

    path: str
    partition: int
    num_rows: int

    def abandon(self) -> None:
        """Do nothing: the file is complete."""


def _sync(path: str) -> None:
    """Sync a file or a directory's names to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Group(NamedTuple):
    """The rows of a row group to be written, and their bytes in memory."""

    batches: list[pa.RecordBatch]
    nbytes: int


class _Slot:
    """Rows of one partition that wait for their row group, and its open files that no worker is writing to."""

    __slots__ = ("batches", "idle", "nbytes", "partition", "rows", "worker")

    def __init__(self, partition: int, worker: int) -> None:
        self.partition = partition
        self.worker = worker
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.nbytes = 0
        self.idle: list[_File] = []

    def take(self) -> _Group:
        group = _Group(self.batches, self.nbytes)
        self.batches, self.rows, self.nbytes = [], 0, 0
        return group


class _Runs:
    """A hand-over of consecutive steps to whichever worker is free; one run waits at most."""

    def __init__(self) -> None:
        self._run: list[tuple[int, pa.RecordBatch]] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._changed = Changes()

    def put(self, run: list[tuple[int, pa.RecordBatch]]) -> None:
        while True:
            with self._lock:
                if self._run is None or self._closed:
                    self._run = None if self._closed else run
                    self._changed.notify()
                    return
                changed = self._changed.next()
            changed.acquire()

    def close(self, discard: bool = False) -> None:
        with self._lock:
            self._closed = True
            if discard:
                self._run = None
            self._changed.notify()

    def __iter__(self) -> Steps:
        while True:
            with self._lock:
                run, self._run = self._run, None
                if run is None and self._closed:
                    return
                changed = self._changed.next() if run is None else None
                if run is not None:
                    self._changed.notify()
            if changed is not None:
                changed.acquire()
            else:
                yield from run or ()


# --- all files of one write ----------------------------------------------------------------


class _Job:
    def __init__(self, storage: Storage, write: FileWrite, apply: Split) -> None:
        self.storage = storage
        self.write = write
        self.options, self.leaves = _layout_of(write)
        self._done: list[tuple[tuple[int, int], WrittenFile]] = []
        self._apply = apply
        most = ROW_GROUP_ROWS_BESIDE_READS if write.beside_reads else ROW_GROUP_ROWS
        self._max_rows = min(write.properties.max_row_group_size or most, 64 << 20)
        self._max_bytes = ROW_GROUP_BYTES_BESIDE_READS if write.beside_reads else ROW_GROUP_BYTES
        self._num_leaves = sum(num_leaves(f.type) for f in write.schema)
        self._least_bytes = self._num_leaves * CHUNK_BYTES
        self._lock = threading.Lock()
        self._slots: dict[tuple[int, int], _Slot] = {}
        self._idle: OrderedDict[_File, _Slot] = OrderedDict()
        self._begun: list[_File | _Created] = []
        self._num_open = 0
        self._buffered = 0
        self._plain_bytes = self._encoded_bytes = self._unreleased = 0
        self._stopped = False
        self._runs = _Runs()
        self._syncs = _Syncs(storage)

    def begin(self, file: _File) -> tuple[int, int]:
        """Note a file that is begun; return its place among the files, which is that of its rows if it can be."""
        with self._lock:
            self._begun.append(file)
            return 0 if self.write.partitioned else file.worker, len(self._begun)

    def begin_whole(self, files: Sequence[_Created]) -> int:
        """Note files that are created whole; return the place of the first one."""
        with self._lock:
            self._begun += files
            return len(self._begun) - len(files) + 1

    @cached_property
    def to_code(self) -> dict[str, int]:
        """The columns whose strings may be encoded here, and their numbers; footers are changed on disks only."""
        if self.storage.local_path("") is None:
            return {}
        return columns_to_code(self.write.schema, self.write.properties, self.options)

    @property
    def written(self) -> list[WrittenFile]:
        """The files, in the order of their rows if each has consecutive ones."""
        return [found for _, found in sorted(self._done, key=lambda done: done[0])]

    # --- assignment of work to workers ---

    def run(self, source: pa.Table | pa.RecordBatchReader) -> None:
        workers = 1 if self.write.in_order else min(num_cores(), WORKERS)
        if self.write.beside_reads:
            # the read's threads take the other cores
            workers = max(1, workers // 2)
        if workers == 1:
            self._run_alone(iter(source.to_batches() if isinstance(source, pa.Table) else source))
            return
        if isinstance(source, pa.Table):
            self._run_table(source, workers)
            return
        head: list[pa.RecordBatch] = []
        size = 0
        for batch in source:
            head.append(batch)
            size += batch.nbytes
            if size >= PARALLEL_BYTES:
                break
        else:
            self._run_table(pa.Table.from_batches(head, source.schema), workers)
            return
        self._run_stream(head, source, workers)

    def _steps(self, batches: Iterator[pa.RecordBatch], first_row: int) -> Steps:
        return _steps(batches, first_row, PARTITIONED_STEPS if self.write.partitioned else 1)

    def _run_alone(self, batches: Iterator[pa.RecordBatch], workers: int = 1) -> None:
        """Write rows on the caller's thread; if there are workers, small files of many columns on theirs."""
        self._work(0, self._steps(batches, 0))
        runs, others = self._last()
        for slot in others:
            self._finish(slot)
        if workers == 1 or len(runs) == 1 or self._num_leaves < SHARED_LEAVES:
            self._write_runs(runs)
            return
        with self._threads(workers) as pool:
            _raise_first([pool.submit(self._guarded, self._write_run, run) for run in runs])

    def _run_table(self, table: pa.Table, workers: int) -> None:
        # what the buffers hold is quicker to count, and no less
        small = table.get_total_buffer_size() < PARALLEL_BYTES or table.nbytes < PARALLEL_BYTES
        if small:
            self._run_alone(iter(table.to_batches()), workers)
            return
        bounds = [table.num_rows * i // workers for i in range(workers + 1)]
        shards = [
            self._steps(iter(table.slice(start, end - start).to_batches()), start) for start, end in pairwise(bounds)
        ]
        with self._threads(workers) as pool:
            self._run_threads(pool, shards)

    def _run_stream(self, head: list[pa.RecordBatch], rest: pa.RecordBatchReader, workers: int) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            while head:
                yield head.pop(0)
            yield from rest

        def feed() -> None:
            """Read the source on the caller's thread, which may be the only one that it allows."""
            run: list[tuple[int, pa.RecordBatch]] = []
            size = 0
            for step in self._steps(batches(), 0):
                run.append(step)
                size += step[1].nbytes
                if size >= RUN_BYTES:
                    self._runs.put(run)
                    run, size = [], 0
                if self._stopped:
                    return
            self._runs.put(run)

        with self._threads(workers) as pool:
            if not pool.has_thread():
                self._run_alone(batches())
                return
            self._run_threads(pool, [iter(self._runs) for _ in range(workers)], feed)

    def _run_threads(self, pool: ThreadPool, shards: list[Steps], feed: Callable[[], None] = lambda: None) -> None:
        tasks = [pool.submit(self._guarded, self._work, i, shard) for i, shard in enumerate(shards)]
        feed()
        self._runs.close()
        _raise_first(tasks)
        runs, others = self._last()
        others.sort(key=lambda slot: -slot.nbytes)
        last = [pool.submit(self._guarded, self._finish, slot) for slot in others]
        last += [pool.submit(self._guarded, self._write_run, run) for run in runs]
        _raise_first(last)

    def _threads(self, count: int) -> ThreadPool:
        # the threads must end before the pool does
        return ThreadPool(count, "delta-write", self._stop)

    def _stop(self) -> None:
        self._stopped = True
        self._runs.close(discard=True)

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        try:
            if not self._stopped:
                function(*args)
        except BaseException:
            self._stop()
            raise

    # --- rows to row groups ---

    def _work(self, worker: int, steps: Steps) -> None:
        for first_row, batch in steps:
            if self._stopped:
                return
            pieces = self._apply(first_row, batch)
            for (partition, rows), size in zip(pieces, _bytes_of([rows for _, rows in pieces]), strict=True):
                slot = self._slot(partition, 0 if self.write.partitioned else worker)
                for full in self._gather(slot, rows, size):
                    self._write_group(slot, worker, full)
                    # its rows are not needed while the next one is gathered
                    del full
            while (biggest := self._overfull()) is not None:
                self._write_group(biggest[0], worker, biggest[1])

    def _slot(self, partition: int, worker: int) -> _Slot:
        with self._lock:
            slot = self._slots.get((partition, worker))
            if slot is None:
                slot = self._slots[partition, worker] = _Slot(partition, worker)
            return slot

    def _gather(self, slot: _Slot, rows: pa.RecordBatch, nbytes: int) -> Iterator[_Group]:
        """Add rows to a slot; yield what fills a row group."""
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
        whole_file = self.write.target_file_size / max(ratio, 0.01)
        return min(self._max_bytes, whole_file, max(self._least_bytes, whole_file / 4))

    def _overfull(self) -> tuple[_Slot, _Group] | None:
        if self._buffered <= BUFFER_BYTES:
            return None
        with self._lock:
            biggest = max(self._slots.values(), key=lambda s: s.nbytes)
            if not biggest.nbytes:
                return None
            self._buffered -= biggest.nbytes
            return biggest, biggest.take()

    # --- row groups to files ---

    def _table_of(self, group: _Group) -> pa.Table:
        table = pa.Table.from_batches(group.batches, self.write.schema)
        is_cut = len(group.batches) > 1 and table.num_rows < PIECE_ROWS * len(group.batches)
        return table.combine_chunks() if is_cut else table

    def _encoded(self, plain_bytes: int, encoded_bytes: int) -> None:
        """Count what was encoded."""
        with self._lock:
            self._plain_bytes += plain_bytes
            self._encoded_bytes += encoded_bytes
            self._unreleased += plain_bytes
            is_release = self.write.beside_reads and self._unreleased >= RELEASED_BYTES
            if is_release:
                self._unreleased = 0
        if is_release:
            pa.default_memory_pool().release_unused()

    def _write_group(self, slot: _Slot, worker: int, group: _Group) -> None:
        table = self._table_of(group)
        file = self._open(slot, worker)
        before = file.size
        file.append(table)
        added = file.size - before
        self._encoded(group.nbytes, added)
        if file.size + added / 2 >= self.write.target_file_size:
            self._close(file)
            return
        with self._lock:
            slot.idle.append(file)
            self._idle[file] = slot

    def _open(self, slot: _Slot, worker: int) -> _File:
        """Return an open file of the slot that no worker writes to, the worker's own if possible; else a new one."""
        with self._lock:
            file = next((f for f in slot.idle if f.worker == worker), slot.idle[-1] if slot.idle else None)
            oldest = None
            if file is not None:
                slot.idle.remove(file)
                del self._idle[file]
                return file
            if self._num_open >= OPEN_FILES and self._idle:
                oldest, its_slot = self._idle.popitem(last=False)
                its_slot.idle.remove(oldest)
            self._num_open += 1
        if oldest is not None:
            self._close(oldest)
        return _File(self, slot.partition, worker)

    def _close(self, file: _File) -> None:
        found = file.close()
        with self._lock:
            self._num_open -= 1
            self._done.append((file.order, found))

    def _finish(self, slot: _Slot) -> None:
        """Write what a slot still holds, and close its files."""
        rest = slot.take()
        if rest.batches:
            self._write_group(slot, slot.worker, rest)
        with self._lock:
            files, slot.idle = slot.idle, []
            for file in files:
                del self._idle[file]
        for file in files:
            self._close(file)

    # --- many small files ---

    def _last(self) -> tuple[list[list[_Slot]], list[_Slot]]:
        """Return runs of slots whose rows are a small file each, and the other slots."""
        slots = list(self._slots.values())
        small = [slot for slot in slots if self._is_small(slot)] if self.write.partitioned else []
        if len(small) < 2 or not parts.can_be_cut(self.options):
            return [], slots
        most = max(RUN_OF_FILES // 8, min(RUN_OF_FILES, RUN_OF_CHUNKS // self._num_leaves))
        runs: list[list[_Slot]] = []
        size = 0
        for slot in small:
            if not runs or len(runs[-1]) == most or size + slot.nbytes > RUN_OF_FILES_BYTES:
                runs.append([])
                size = 0
            runs[-1].append(slot)
            size += slot.nbytes
        chosen = set(small)
        return runs, [slot for slot in slots if slot not in chosen]

    def _is_small(self, slot: _Slot) -> bool:
        if not slot.batches or slot.idle:
            return False
        return slot.nbytes < min(SMALL_BYTES, self.write.target_file_size) and slot.rows < CODED_ROWS

    def _write_runs(self, runs: list[list[_Slot]]) -> None:
        """Write runs on the caller's thread; on a disk another one creates the files of a run beside the next one."""
        if len(runs) < 2 or self.storage.local_path("") is None:
            for run in runs:
                self._write_run(run)
            return
        with self._threads(RUNS_AHEAD) as pool:
            created: list[Task[None]] = []
            for run in runs:
                encoded = self._encode_run(run)
                if len(created) >= RUNS_AHEAD:
                    created[-RUNS_AHEAD].result()
                created.append(pool.submit(self._guarded, self._create_run, *encoded))
                # one run less is in memory while the next one is encoded
                del encoded
            _raise_first(created)

    def _write_run(self, slots: list[_Slot]) -> None:
        self._create_run(*self._encode_run(slots))

    def _encode_run(self, slots: list[_Slot]) -> tuple[list[_Created], int, EncodedFiles]:
        """Encode what slots hold, a file each; return the files, and the place of the first one among all."""
        run = parts.FileRun(self.write.schema, self.options, self.leaves)
        files = []
        plain_bytes = 0
        for slot in slots:
            group = slot.take()
            table = self._table_of(group)
            files.append(_Created(self.write.name(slot.partition), slot.partition, table.num_rows))
            with _Failing(files[-1].path):
                run.append(table)
            plain_bytes += group.nbytes
        with _Failing(files[-1].path):
            encoded = run.close()
        self._encoded(plain_bytes, len(encoded.data))
        return files, self.begin_whole(files), encoded

    def _create_run(self, files: list[_Created], first: int, encoded: EncodedFiles) -> None:
        times = self._create(files, encoded)
        sizes = np.diff(encoded.ends, prepend=0)
        rows = zip(files, sizes.tolist(), times, encoded.statistics, strict=True)
        found = [WrittenFile(f.path, f.partition, size, ms, f.num_rows, s) for f, size, ms, s in rows]
        with self._lock:
            self._done += [((0, first + i), file) for i, file in enumerate(found)]

    def _create(self, files: Sequence[_Created], encoded: EncodedFiles) -> list[int]:
        """Create files; return their modification times, ms since the epoch."""
        root = self.storage.local_path("")
        if root is not None and are_plain([file.path for file in files]):
            paths = [path for path in self.storage.local_paths([file.path for file in files]) if path is not None]
            try:
                make_directory(root.rstrip("/"))
                times: list[int] = parts.create_files(paths, encoded.data, encoded.ends).tolist()
                return times
            except OSError as e:
                failed = paths.index(e.filename) if e.filename in paths else 0
                with _Failing(files[failed].path):
                    raise
        starts = [0, *encoded.ends.tolist()]
        wholes = [encoded.data[start:end] for start, end in pairwise(starts)]
        with self._threads(SYNCS) as pool:
            return pool.map(self._upload, files, wholes)

    def _upload(self, file: _Created, data: memoryview) -> int:
        with _Failing(file.path):
            sink = self.storage.create(file.path)
            sink.write(data)
            sink.close()
        return time.time_ns() // 1_000_000

    # --- afterwards ---

    def begin_sync(self, path: str) -> None:
        """Sync a file or a directory on another thread."""
        self._syncs.begin([path])

    def sync(self) -> None:
        """Sync small files to the disk, and the directories of all, so that the names last too.

        Syncs that may last longer go on meanwhile; the others have ended when this returns.
        """
        if self.storage.local_path("") is None:
            return
        written = self.written
        directories = {os.path.dirname(f.path) for f in written}
        # each directory may be new, and so may those above it
        above = {"/".join(path.split("/")[:i]) for path in directories for i in range(path.count("/") + 2)}
        paths = [f.path for f in written if f.size < SYNC_BYTES] + sorted(above)
        # a file and its directory at once: the disk writes its journal once for both, in half the time
        # a small write needs one other thread: the caller syncs the last path itself
        last = [] if self._syncs.is_begun else paths[-1:]
        self._syncs.begin(paths[: len(paths) - len(last)])
        if self.write.syncs is None:
            self._syncs.finish(last)
        else:
            # the files of the job are not needed for it
            self.write.syncs.append(partial(self._syncs.finish, last))

    def discard(self) -> None:
        """Delete every file that was begun."""
        for file in self._begun:
            file.abandon()
        paths = [f.path for f in self._begun]
        try:
            self.storage.delete(paths)
        except EngineError:
            # one that can't be deleted does not keep the others
            for path in paths:
                with suppress(EngineError):
                    self.storage.delete([path])


class _Syncs:
    """Syncs of the files and directories of a write."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._begun: list[Task[None]] = []

    @property
    def is_begun(self) -> bool:
        """Whether another thread syncs anything."""
        return bool(self._begun)

    def begin(self, paths: Sequence[str]) -> None:
        """Sync paths on other threads."""
        pool = _syncs.get()
        if len(paths) <= SYNCS:
            self._begun += [pool.submit(self._sync, path) for path in paths]
        else:
            self._begun += [pool.submit(self._sync_run, paths[i::SYNCS]) for i in range(SYNCS)]

    def finish(self, paths: Sequence[str]) -> None:
        """Sync paths on the caller's thread, and wait for all others."""
        failed: EngineError | None = None
        try:
            for path in paths:
                self._sync(path)
        except EngineError as e:
            failed = e
        finally:
            _wait(self._begun)
        # of several errors that of a file, which names it
        _raise_first(self._begun)
        if failed is not None:
            raise failed

    def _sync(self, path: str) -> None:
        with _Failing(path):
            _sync(self._storage.local_path(path) or path)

    def _sync_run(self, paths: Sequence[str]) -> None:
        local = [self._storage.local_path(path) or path for path in paths]
        try:
            parts.sync_files(local)
        except OSError as e:
            with _Failing(paths[local.index(e.filename)]):
                raise


def _raise_first(tasks: Sequence[Task[None]]) -> None:
    _wait(tasks)
    for task in tasks:
        task.result()


def _wait(tasks: Iterable[Task[None]]) -> None:
    for task in tasks:
        task.wait()


class _Layout(NamedTuple):
    """Schema and options that result from the columns, the properties and the statistics of a write."""

    schema: pa.Schema
    properties: WriterProperties
    statistics: tuple[Path, ...]
    options: dict[str, Any]
    leaves: tuple[Leaf, ...]


#: That of the last write: one small write often follows another.
_last_layout: _Layout | None = None


def _layout_of(write: FileWrite) -> tuple[dict[str, Any], tuple[Leaf, ...]]:
    """Return PyArrow's options and the leaves to measure."""
    global _last_layout
    schema, properties, statistics = write.schema, write.properties, write.statistics
    found = _last_layout
    # a schema is not compared: that would take as long
    if found is None or found.schema is not schema or (found.properties, found.statistics) != (properties, statistics):
        options, leaves = parquet_options(schema, properties, statistics), leaves_of(schema, statistics)
        _last_layout = found = _Layout(schema, properties, statistics, options, leaves)
    return found.options, found.leaves


def _steps(batches: Iterator[pa.RecordBatch], first_row: int, factor: int) -> Steps:
    """Yield batches of a size that is worth a step, each with the number of its first row."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece, nbytes in _cut(batch):
            if held and (rows + piece.num_rows > ROW_GROUP_ROWS or size + nbytes > PIECE_BYTES):
                yield first_row, _joined(held)
                first_row += rows
                held, rows, size = [], 0, 0
            held.append(piece)
            rows += piece.num_rows
            size += nbytes
            if rows >= STEP_ROWS * factor or size >= min(STEP_BYTES * factor, PIECE_BYTES):
                yield first_row, _joined(held)
                first_row += rows
                held, rows, size = [], 0, 0
    if rows:
        yield first_row, _joined(held)


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield pieces of a batch, each with its bytes: counted once: for few rows that costs more than the rows."""
    if not batch.num_rows:
        return
    nbytes = batch.nbytes
    wide = nbytes / batch.num_rows
    rows = max(1, min(ROW_GROUP_ROWS, int(PIECE_BYTES / wide) if wide else ROW_GROUP_ROWS))
    if batch.num_rows <= rows:
        yield batch, nbytes
        return
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        yield piece, piece.nbytes


def _bytes_of(pieces: Sequence[pa.RecordBatch]) -> list[int]:
    """Return the bytes of batches, such as the rows of each partition: slices of one batch are counted together."""
    if len(pieces) > 1:
        ends = np.cumsum([0, *(piece.num_rows for piece in pieces)])
        first, last = pieces[0], pieces[-1]
        found = [_bytes_of_slices(a, b, ends) for a, b in zip(first.columns, last.columns, strict=True)]
        if found and all(counts is not None for counts in found):
            return [int(n) for n in sum(found)]
    return [piece.nbytes for piece in pieces]


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


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
