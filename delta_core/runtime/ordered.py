"""Tasks on threads, their results in order, in bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from time import perf_counter, thread_time

import pyarrow as pa

from delta_core.errors import EngineError
from delta_core.runtime.sizes import num_bytes
from delta_core.runtime.threads import Changes, Threads

__all__ = ["Task", "run_ordered", "run_quick"]

Task = Callable[[], Iterator[pa.RecordBatch]]
#: A task that takes less, of the processor or by the clock, is not worth a thread: to hand over the interpreter's lock
#: takes as long. After `_SLOW_TASKS` longer ones threads run the others.
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
        The most bytes of finished batches of later tasks.
    ahead : int
        Batches that the task whose turn it is may run ahead of the consumer beyond that.

    Raises
    ------
    EngineError
        In a forked child, for what the parent began.

    Notes
    -----
    A task's error is raised when its turn comes. Closing the iterator ends the threads before it returns. If the system
    has no threads left, tasks run on those there are, or on the caller's.
    """
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    tasks = chain((first,), tasks)
    stream = _Stream(tasks, budget_bytes, ahead)
    threads = Threads(stream.work, stream.close, "delta-read")
    try:
        # the system may allow fewer
        while len(threads) < workers and threads.start():
            pass
        if not len(threads):
            for task in tasks:
                yield from task()
            return
        for batch in stream.results():
            yield batch
            if not threads.is_ours:
                raise EngineError(
                    "This read was begun by the process that forked this one, whose threads did not come along. Begin "
                    "a read of its own in each process."
                )
    finally:
        if threads.is_ours:
            stream.close()
            threads.join()


class _Stream:
    def __init__(self, tasks: Iterator[Task], budget_bytes: int, ahead: int) -> None:
        self._tasks = tasks
        self._taking = threading.Lock()
        self._lock = threading.Lock()
        #: For the consumer, and for threads that wait for room.
        self._results, self._room = Changes(), Changes()
        self._budget = budget_bytes
        self._ahead = ahead
        #: Batches with their bytes.
        self._queues: dict[int, deque[tuple[pa.RecordBatch, int] | BaseException]] = {}
        self._finished: set[int] = set()
        self._started = 0
        self._head = 0
        self._num_bytes = 0
        self._closed = False
        self._exhausted = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._results.notify()
            self._room.notify()

    def work(self) -> None:
        while (taken := self._take()) is not None:
            number, task = taken
            try:
                for batch in task():
                    if not self._put(number, batch):
                        return
            except BaseException as e:  # noqa: BLE001  (the consumer raises it)
                self._append(number, e)
            with self._lock:
                self._finished.add(number)
                self._notify(number)

    def _notify(self, number: int) -> None:
        """Wake the consumer for what it waits for only: to wake a thread takes as long as to read a small file."""
        if number == self._head:
            self._results.notify()

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
                    self._results.notify()
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
        """Queue a batch as soon as there is room; False once the consumer has stopped."""
        size = _bytes_of(batch)
        while True:
            with self._lock:
                if self._closed:
                    return False
                queue = self._queues[number]
                is_full = self._num_bytes > 0 and self._num_bytes + size > self._budget
                if not is_full or (number == self._head and len(queue) < self._ahead):
                    queue.append((batch, size))
                    self._num_bytes += size
                    self._notify(number)
                    return True
                room = self._room.next()
            room.acquire()

    def results(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._lock:
                item = self._next()
                changed = None if item is not None or self._is_over() else self._results.next()
            if isinstance(item, BaseException):
                raise item
            if item is not None:
                yield item
            elif changed is not None:
                changed.acquire()
            else:
                return

    def _is_over(self) -> bool:
        if self._closed:
            raise EngineError("This read was ended before its last row, since the interpreter exits.")
        return self._exhausted and self._head >= self._started

    def _next(self) -> pa.RecordBatch | BaseException | None:
        """Return what the consumer may have now."""
        while True:
            queue = self._queues.get(self._head)
            if queue:
                item = queue.popleft()
                if not isinstance(item, BaseException):
                    item, size = item
                    self._num_bytes -= size
                self._room.notify()
                return item
            if self._head not in self._finished:
                return None
            self._finished.discard(self._head)
            self._queues.pop(self._head, None)
            self._head += 1
            self._room.notify()  # the task at the head may run ahead


def _bytes_of(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch; of many columns about, since to look at each takes longer than to decode it."""
    if batch.num_columns > _MANY_COLUMNS:
        first = batch.column(0)
        # a part of a larger batch holds all of its buffers
        if 2 * num_bytes(first) >= first.get_total_buffer_size():
            return int(batch.get_total_buffer_size())
    return num_bytes(batch)


def _raising(error: BaseException) -> Task:
    def task() -> Iterator[pa.RecordBatch]:
        raise error
        yield

    return task
