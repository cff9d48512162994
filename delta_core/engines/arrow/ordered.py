"""Tasks on threads, their results in order, in bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from time import perf_counter, thread_time

import pyarrow as pa

from delta_core.errors import EngineError
from delta_core.runtime.processes import num_forks

__all__ = ["Task", "run_ordered", "run_quick"]

Task = Callable[[], Iterator[pa.RecordBatch]]
#: A task that takes less, of the processor or by the clock, is not worth a thread: to hand over the interpreter's lock
#: takes as long. After so many longer ones threads run the others.
_QUICK_CPU, _QUICK_SECONDS = 0.001, 0.005
_SLOW_TASKS = 2
_MANY_COLUMNS = 64


def run_quick(tasks: Iterator[Task]) -> Generator[pa.RecordBatch, None, None]:
    """Run tasks on the caller's thread while they are quick, and yield their batches; others are left in the iterator.

    Parameters
    ----------
    tasks : iterator
        Advanced by the tasks that were run.
    """
    slow = 0
    for task in tasks:
        stream, cpu, seconds = task(), 0.0, 0.0
        while True:
            start, cpu_start = perf_counter(), thread_time()
            batch = next(stream, None)
            cpu += thread_time() - cpu_start
            seconds += perf_counter() - start
            if batch is None:
                break
            yield batch
        slow += cpu > _QUICK_CPU or seconds > _QUICK_SECONDS
        if slow == _SLOW_TASKS:
            return


def run_ordered(tasks: Iterable[Task], workers: int, budget_bytes: int, ahead: int) -> Iterator[pa.RecordBatch]:
    """Run tasks, each a stream of batches, and yield all batches in the order of the tasks.

    Parameters
    ----------
    tasks : iterable
        Requested the next task only when a thread is free. If there is none, no thread begins.
    workers : int
        Threads; one task at a time on each.
    budget_bytes : int
        What finished batches of later tasks may hold.
    ahead : int
        Batches that the task whose turn it is may run ahead of the consumer beyond that.

    Notes
    -----
    A task's error is raised when its turn comes. Closing the iterator ends the threads before it returns.
    """
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    stream = _Stream(chain((first,), tasks), budget_bytes, ahead)
    threads = [threading.Thread(target=stream.work, name=f"delta-read-{i}", daemon=True) for i in range(workers)]
    try:
        _start(threads)
        yield from stream.results()
    finally:
        if stream.is_ours:
            stream.close()
            for thread in threads:
                # not begun, or interrupted as it began: then it ends by itself
                with suppress(RuntimeError):
                    thread.join()


def _start(threads: Sequence[threading.Thread]) -> None:
    """Start threads, or as many as the system has: one is sufficient."""
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:
            if not number:
                raise
            return


class _Stream:
    def __init__(self, tasks: Iterator[Task], budget_bytes: int, ahead: int) -> None:
        self._tasks = tasks
        self._taking = threading.Lock()
        # taken itself: `with` on a condition runs Python code, where an interrupt may come while the lock is held
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._process = num_forks()
        self._budget = budget_bytes
        self._ahead = ahead
        #: Batches with their bytes.
        self._queues: dict[int, deque[tuple[pa.RecordBatch, int] | BaseException]] = {}
        self._finished: set[int] = set()
        self._started = 0
        self._head = 0
        self._num_bytes = 0
        #: Threads that wait for room.
        self._waiting = 0
        self._closed = False
        self._exhausted = False

    @property
    def is_ours(self) -> bool:
        """Whether this process began the stream: a forked child lacks its threads, and may have their locks."""
        return self._process == num_forks()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def work(self) -> None:
        while (taken := self._take()) is not None:
            number, task = taken
            try:
                for batch in task():
                    if not self._put(number, batch):
                        return
            except BaseException as e:  # noqa: BLE001  (handed to the consumer, who raises it)
                self._append(number, e)
            with self._lock:
                self._finished.add(number)
                self._notify(number)

    def _notify(self, number: int) -> None:
        """Wake the consumer for what it waits for only: to wake a thread takes as long as to read a small file."""
        if number == self._head:
            self._changed.notify_all()

    def _take(self) -> tuple[int, Task] | None:
        with self._taking:
            if self._closed or self._exhausted:
                return None
            try:
                task = next(self._tasks, None)
            except BaseException as e:  # noqa: BLE001  (as above)
                task = _raising(e)
            with self._lock:
                if task is None:
                    self._exhausted = True
                    self._changed.notify_all()
                    return None
                number = self._started
                self._queues[number] = deque()
                self._started += 1
                return number, task

    def _append(self, number: int, error: BaseException) -> None:
        with self._lock:
            self._queues[number].append(error)
            self._notify(number)

    def _put(self, number: int, batch: pa.RecordBatch) -> bool:
        """Queue a batch as soon as there is room; False once nobody wants it."""
        size = _bytes_of(batch)
        with self._lock:
            queue = self._queues[number]
            while not self._closed and self._num_bytes > 0 and self._num_bytes + size > self._budget:
                if number == self._head and len(queue) < self._ahead:
                    break
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            if self._closed:
                return False
            queue.append((batch, size))
            self._num_bytes += size
            self._notify(number)
        return True

    def results(self) -> Iterator[pa.RecordBatch]:
        while True:
            if not self.is_ours:
                raise EngineError(
                    "This read was begun by the process that forked this one, whose threads did not come along. Begin "
                    "a read of its own in each process."
                )
            with self._lock:
                item = self._next()
                if item is None:
                    return
            if isinstance(item, BaseException):
                raise item
            yield item

    def _next(self) -> pa.RecordBatch | BaseException | None:
        while True:
            queue = self._queues.get(self._head)
            if queue:
                item = queue.popleft()
                if not isinstance(item, BaseException):
                    item, size = item
                    self._num_bytes -= size
                if self._waiting:
                    self._changed.notify_all()
                return item
            if self._head in self._finished:
                self._finished.discard(self._head)
                self._queues.pop(self._head, None)
                self._head += 1
                if self._waiting:  # the task at the head may run ahead
                    self._changed.notify_all()
            elif self._exhausted and self._head >= self._started:
                return None
            else:
                self._changed.wait()


def _bytes_of(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch; of many columns about, since to look at each takes longer than to decode it."""
    if batch.num_columns > _MANY_COLUMNS:
        first = batch.column(0)
        # a part of a larger batch holds all of its buffers
        if 2 * first.nbytes >= first.get_total_buffer_size():
            return int(batch.get_total_buffer_size())
    return int(batch.nbytes)


def _raising(error: BaseException) -> Task:
    def task() -> Iterator[pa.RecordBatch]:
        raise error
        yield

    return task
