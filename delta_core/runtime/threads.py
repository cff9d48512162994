"""Threads, thread pools, and the flags and tasks that they wait for; each thread ends with the process.

An interrupt (`KeyboardInterrupt`) may come after any call from Python code of the main thread. The standard library's
conditions, events and pools are Python code that holds locks: an interrupt there leaves a lock taken, or a thread
running, and the process waits for ever. Here each step that must not be interrupted is one call of C code, and a
thread that waits holds no lock.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import compress
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from delta_core.errors import EngineError
from delta_core.runtime.processes import PerProcess, num_forks

if TYPE_CHECKING:
    from queue import SimpleQueue

__all__ = ["Changes", "Flag", "Task", "ThreadPool", "Threads", "first_done", "num_cores", "running_threads"]

T = TypeVar("T")

#: The longest time that the interpreter waits for threads when it exits, if a store does not answer a call.
EXIT_SECONDS = 30.0
#: How long threads take to stop, as a rule.
_STOP_SECONDS = 0.1

#: Locks that running threads hold until they end, and to whom the threads belong.
_running = PerProcess[dict[_thread.LockType, "Threads"]](dict)
_exiting = False


def num_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@atexit.register
def _end_threads() -> None:
    """End all threads before the interpreter, which stops those that run at any step, is gone."""
    global _exiting
    _exiting = True
    running = list(_running.get().items())
    for _, threads in running:
        threads.stop()
    end = monotonic() + EXIT_SECONDS
    for ended, _ in running:
        if ended.acquire(timeout=max(end - monotonic(), 0)):
            ended.release()


def running_threads() -> list[str]:
    """Return what each thread is for that runs in this process."""
    return [threads.name for threads in list(_running.get().values())]


def _taken_lock() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


class Threads:
    """Threads that run one function each.

    Parameters
    ----------
    work : function()
        The function that each thread runs.
    stop : function()
        Makes ``work`` return soon, on all threads; called when the interpreter exits.
    name : str
        Their purpose, which `running_threads` lists.

    Notes
    -----
    To start one of `threading`'s threads is Python code that waits, and takes longer. These have no object there, and
    no name; a function for tracing or profiling is called for them as for others.
    """

    __slots__ = ("_process", "_started", "_work", "name", "stop")

    def __init__(self, work: Callable[[], None], stop: Callable[[], None], name: str) -> None:
        self._work = work
        self.stop: Callable[[], None] = stop
        self.name: str = name
        self._process = num_forks()
        self._started: deque[_thread.LockType] = deque()

    def __len__(self) -> int:
        """Return how many were started."""
        return len(self._started)

    @property
    def is_ours(self) -> bool:
        """Whether the threads are this process's: a forked child has none of its parent's."""
        return self._process == num_forks()

    def start(self) -> bool:
        """Start one more thread; False if the system has none, or the interpreter exits."""
        if _exiting:
            return False
        ended = _taken_lock()
        try:
            # one call: an interrupt comes before there is a thread, or when its lock is noted
            self._started.extend(compress((ended,), map(_thread.start_new_thread, (self._run,), ((ended,),))))
        except RuntimeError:
            return False
        return True

    def join(self, is_stopped: bool = False) -> None:
        """Wait until all threads have ended; those that are to stop are stopped again, if an interrupt prevented it."""
        for ended in list(self._started):
            if _exiting or not self.is_ours:
                return
            while is_stopped and not ended.acquire(timeout=_STOP_SECONDS):
                self.stop()
            if is_stopped:
                ended.release()
            else:
                with ended:
                    pass

    def _run(self, ended: _thread.LockType) -> None:
        try:
            running = _running.get()
            running[ended] = self
            try:
                # a new thread has none; setting none fails while another thread sets one
                trace, profile = threading.gettrace(), threading.getprofile()
                if trace is not None:
                    sys.settrace(trace)
                if profile is not None:
                    sys.setprofile(profile)
                if not _exiting:
                    self._work()
            finally:
                del running[ended]
        finally:
            # whatever was raised, such as by an audit hook: `join` waits for it
            ended.release()


class Changes:
    """Changes of a state that threads wait for, as a condition's are, without Python code that holds its lock."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[_thread.LockType] = []

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def next(self) -> _thread.LockType:
        """Return a lock that is released at the next change; call with the state's lock, and acquire it without."""
        lock = _taken_lock()
        self._waiting.append(lock)
        return lock

    def notify(self) -> None:
        """Wake all waiting threads. Precondition: the caller holds the state's lock."""
        # one call: an interrupt does not come between the removal of a lock and its release
        with suppress(IndexError):
            any(map(_thread.LockType.release, iter(self._waiting.pop, None)))


class Flag:
    """A flag that a thread waits for, as for an event; a handler of a signal may set it wherever the thread is."""

    __slots__ = ("_unset", "is_set")

    def __init__(self) -> None:
        self.is_set: bool = False
        self._unset = _taken_lock()

    def set(self) -> None:
        """Set the flag for good."""
        self.is_set = True
        with suppress(RuntimeError):  # set before
            self._unset.release()

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set, so long at most; return whether it is."""
        if not self.is_set and self._unset.acquire(timeout=seconds):
            self._unset.release()
        return self.is_set


class Task(Generic[T]):
    """A call of a function that a pool's thread runs; a future whose owner may be interrupted anywhere."""

    __slots__ = ("_arguments", "_begun", "_callbacks", "_function", "_is_cancelled", "_raised", "_value", "is_done")

    def __init__(self, function: Callable[..., T], *arguments: Any) -> None:
        self._function: Callable[..., T] | None = function
        self._arguments = arguments
        self._begun = _thread.allocate_lock()
        self._callbacks: list[Callable[[Task[T]], object]] = []
        self.is_done: bool = False
        self._is_cancelled = False
        self._value: T | None = None
        self._raised: BaseException | None = None

    def run(self) -> None:
        """Run the task, unless it was begun or cancelled."""
        if not self._begun.acquire(blocking=False):
            return
        assert self._function is not None
        try:
            value = self._function(*self._arguments)
        except BaseException as e:  # noqa: BLE001  (`result` raises it)
            self._end(None, e)
            # the error's traceback would keep the task, and the task its error
            del self
        else:
            self._end(value, None)

    def cancel(self) -> bool:
        """Cancel the task unless it was begun; return whether it is cancelled."""
        if self._begun.acquire(blocking=False):
            self._is_cancelled = True
            self._end(None, EngineError("A task was cancelled, since what it belongs to was closed."))
        return self._is_cancelled

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._is_cancelled

    def wait(self) -> None:
        """Wait until the task has ended."""
        if not self.is_done:
            ended = _taken_lock()
            self._callbacks.append(lambda _: ended.release())
            if not self.is_done:
                ended.acquire()

    def result(self) -> T:
        """Return what the function returned, or raise what it raised, once it has ended."""
        self.wait()
        if self._raised is not None:
            try:
                raise self._raised
            finally:
                del self
        return cast("T", self._value)

    def exception(self) -> BaseException | None:
        """Return what the function raised, once it has ended."""
        self.wait()
        return self._raised

    def when_done(self, callback: Callable[[Task[T]], object]) -> None:
        """Call a function with the task once it has ended, on its thread or on this one; it must not raise."""
        self._callbacks.append(callback)
        if self.is_done:
            self._notify()

    def _end(self, value: T | None, error: BaseException | None) -> None:
        self._function, self._arguments = None, ()
        self._value, self._raised = value, error
        self.is_done = True
        self._notify()

    def _notify(self) -> None:
        # the owner may add one meanwhile: each is called once, by the thread that removes it
        while self._callbacks:
            with suppress(IndexError):
                self._callbacks.pop()(self)


def first_done(tasks: Iterable[Task[T]]) -> list[Task[T]]:
    """Return which tasks have ended, once one has; there is at least one."""
    tasks = list(tasks)
    changed = _taken_lock()

    def note(task: Task[T]) -> None:
        # of several ends one wakes the caller
        with suppress(RuntimeError):
            changed.release()

    for task in tasks:
        task.when_done(note)
    changed.acquire()
    return [task for task in tasks if task.is_done]


class ThreadPool:
    """Threads that run tasks, each started when none is idle.

    If the system has no threads left, the tasks run on those there are, or else on the caller's thread as they are
    submitted.

    Parameters
    ----------
    threads : int
        The most threads that are started.
    name : str
        Their purpose.
    stop_tasks : function(), optional
        Makes tasks that were begun return soon, called when the pool ends after an error; perhaps several times.

    Notes
    -----
    As a context it waits for all tasks at its end; after an error only for those that were begun. A pool that is
    dropped ends its threads.
    """

    __slots__ = ("__weakref__", "_most", "_queue", "_threads")

    def __init__(self, threads: int, name: str, stop_tasks: Callable[[], None] | None = None) -> None:
        self._most = threads
        self._queue = _Queue(self, stop_tasks)
        self._threads = Threads(self._queue.work, self._queue.stop, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._queue.stop()
            self._threads.join()
            return
        self._queue.is_cancelled = True
        try:
            self._queue.stop()
        finally:
            # after another interrupt, too
            self._threads.join(is_stopped=True)

    def has_thread(self) -> bool:
        """Whether tasks run on another thread than the caller's; starts one if there is none."""
        if self._queue.is_stopped or not self._threads.is_ours:
            return False
        return len(self._threads) > 0 or self._threads.start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """Return the task of a call, which a thread begins as soon as one is idle."""
        task = Task(function, *arguments)
        if self._threads.is_ours and not self._queue.is_stopped:
            try:
                self._queue.idle.pop()
            except IndexError:
                if len(self._threads) < self._most:
                    self._threads.start()
            if len(self._threads):
                self._queue.tasks.put(task)
                if not self._queue.is_stopped:
                    return task
                # perhaps no thread takes it any more
        task.run()
        error = task._raised
        if error is not None and not isinstance(error, Exception):
            raise error
        return task

    def map(self, function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
        """Return the results of calls, in order; after an error those that were not begun are cancelled."""
        tasks: list[Task[T]] = []
        try:
            for values in zip(*arguments, strict=True):
                tasks.append(self.submit(function, *values))  # noqa: PERF401  # those before an error count
            return [task.result() for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    def stop(self) -> None:
        """Begin no more tasks, and return at once; threads end with the tasks that they run."""
        self._queue.is_cancelled = True
        self._queue.stop()


class _Queue:
    """The tasks of a pool; its threads refer to them and not to the pool, which may be dropped."""

    __slots__ = ("_pool", "_stop_tasks", "idle", "is_cancelled", "is_stopped", "tasks")

    def __init__(self, pool: ThreadPool, stop_tasks: Callable[[], None] | None) -> None:
        from queue import SimpleQueue

        self._stop_tasks = stop_tasks
        #: An item that is not a task ends the threads.
        self.tasks: SimpleQueue[Task[Any] | weakref.ref[ThreadPool] | None] = SimpleQueue()
        # C code: an interrupt while Python code finalizes an object would be ignored
        self._pool = weakref.ref(pool, self.tasks.put)
        #: An entry for each idle thread. One too few, after an interrupt, starts a thread more.
        self.idle: deque[None] = deque()
        self.is_stopped = self.is_cancelled = False

    def work(self) -> None:
        while isinstance(task := self.tasks.get(), Task):
            if self.is_cancelled:
                task.cancel()
            else:
                task.run()
            del task
            self.idle.append(None)
        # for the next thread
        self.tasks.put(None)

    def stop(self) -> None:
        self.is_stopped = True
        self.tasks.put(None)
        # tasks whose results are not needed any more
        if self._stop_tasks is not None and (self.is_cancelled or self._pool() is None):
            self._stop_tasks()
