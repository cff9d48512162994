"""Rows to Parquet files, on threads, in bounded memory.

Small writes run on the caller's thread. Else each worker takes batches, makes them physical and gathers them by
partition until a row group is full, which it then encodes. Without partitions each worker has files of its own, and a
table in memory is cut into one consecutive run of rows a worker; of a stream each takes runs in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileWrite, Split, WrittenFile
from delta_core.parquet.file_writer import FileOptions, OpenFiles
from delta_core.parquet.gathered_rows import GatheredGroup, GatheredRows, Slot, Steps, bytes_of, steps_of
from delta_core.parquet.small_files import SmallFiles
from delta_core.parquet.written_files import WrittenFiles, raise_first
from delta_core.runtime.sizes import num_bytes
from delta_core.runtime.threads import Changes, Task, ThreadPool, num_cores

__all__ = ["write_parquet_files"]

#: A write below this many bytes in memory is done by the caller's thread.
PARALLEL_BYTES = 32 << 20
#: Consecutive rows of a stream that one worker takes at once: some runs wait while others are written.
RUN_BYTES = 8 << 20
WORKERS = 8
#: From this number of columns on, most of the time of a small file is spent in PyArrow, where threads do not wait.
SHARED_LEAVES = 8
#: The runs that are created while the next one is encoded.
RUNS_AHEAD = 2


def write_parquet_files(
    storage: Storage, write: FileWrite, source: pa.Table | pa.RecordBatchReader, apply: Split
) -> list[WrittenFile]:
    """Write rows as data files. See `delta_core.engines.interface.DataFiles.write`."""
    job = _Job(storage, write, apply)
    try:
        job.run(source)
        job.files.sync()
        return job.files.files
    except BaseException:
        job.files.discard()
        raise


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


class _Job:
    """The threads of one write, and the work of each."""

    def __init__(self, storage: Storage, write: FileWrite, apply: Split) -> None:
        self._storage = storage
        self._write = write
        self._apply = apply
        options = FileOptions(storage, write)
        self.files = WrittenFiles(storage, write)
        self._gathered = GatheredRows(write)
        self._open_files = OpenFiles(storage, write, options, self.files)
        self._small = SmallFiles(storage, write, options, self.files, self._gathered, self._open_files, self._threads)
        self._stopped = False
        self._runs = _Runs()

    def run(self, source: pa.Table | pa.RecordBatchReader) -> None:
        workers = 1 if self._write.in_order else min(num_cores(), WORKERS)
        if self._write.beside_reads:
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
            size += num_bytes(batch)
            if size >= PARALLEL_BYTES:
                break
        else:
            self._run_table(pa.Table.from_batches(head, source.schema), workers)
            return
        self._run_stream(head, source, workers)

    def _run_alone(self, batches: Iterator[pa.RecordBatch], workers: int = 1) -> None:
        """Write rows on the caller's thread; if there are workers, small files of many columns on theirs."""
        self._work(0, steps_of(batches, 0, self._write))
        runs, others = self._small.split()
        for slot in others:
            self._finish(slot)
        if workers == 1 or len(runs) == 1 or self._gathered.num_leaves < SHARED_LEAVES:
            self._write_runs(runs)
            return
        with self._threads(workers) as pool:
            raise_first([pool.submit(self._guarded, self._small.write, run) for run in runs])

    def _run_table(self, table: pa.Table, workers: int) -> None:
        # what the buffers hold is quicker to count, and no less
        small = table.get_total_buffer_size() < PARALLEL_BYTES or num_bytes(table) < PARALLEL_BYTES
        if small:
            self._run_alone(iter(table.to_batches()), workers)
            return
        bounds = [table.num_rows * i // workers for i in range(workers + 1)]
        shards = [
            steps_of(iter(table.slice(start, end - start).to_batches()), start, self._write)
            for start, end in pairwise(bounds)
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
            for step in steps_of(batches(), 0, self._write):
                run.append(step)
                size += num_bytes(step[1])
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
        raise_first(tasks)
        runs, others = self._small.split()
        others.sort(key=lambda slot: -slot.nbytes)
        last = [pool.submit(self._guarded, self._finish, slot) for slot in others]
        last += [pool.submit(self._guarded, self._small.write, run) for run in runs]
        raise_first(last)

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

    def _work(self, worker: int, steps: Steps) -> None:
        for first_row, batch in steps:
            if self._stopped:
                return
            pieces = self._apply(first_row, batch)
            for (partition, rows), size in zip(pieces, bytes_of([rows for _, rows in pieces]), strict=True):
                slot = self._gathered.slot(partition, 0 if self._write.partitioned else worker)
                for full in self._gathered.add(slot, rows, size):
                    self._write_group(slot, worker, full)
                    # its rows are not needed while the next one is gathered
                    del full
            while (biggest := self._gathered.take_overfull()) is not None:
                self._write_group(biggest[0], worker, biggest[1])

    def _write_group(self, slot: Slot, worker: int, group: GatheredGroup) -> None:
        added = self._open_files.append(slot, worker, self._gathered.table_of(group))
        self._gathered.count_encoded(group.nbytes, added)

    def _finish(self, slot: Slot) -> None:
        """Write the remaining rows of a slot, and close its files."""
        rest = slot.take()
        if rest.batches:
            self._write_group(slot, slot.worker, rest)
        self._open_files.close(slot)

    def _write_runs(self, runs: list[list[Slot]]) -> None:
        """Write runs on the caller's thread; on a disk another one creates the files of a run beside the next one."""
        if len(runs) < 2 or self._storage.local_path("") is None:
            for run in runs:
                self._small.write(run)
            return
        with self._threads(RUNS_AHEAD) as pool:
            created: list[Task[None]] = []
            for run in runs:
                encoded = self._small.encode(run)
                if len(created) >= RUNS_AHEAD:
                    created[-RUNS_AHEAD].result()
                created.append(pool.submit(self._guarded, self._small.create, *encoded))
                # one run less is in memory while the next one is encoded
                del encoded
            raise_first(created)
