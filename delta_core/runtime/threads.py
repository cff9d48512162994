"""Pools of threads, whose module is imported when the first is made (a small read needs none), and their size."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["num_cores", "thread_pool"]


def num_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool of at most so many threads, whose names begin with ``name``."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    if "_idle_semaphore" in vars(pool):
        vars(pool)["_idle_semaphore"] = _IdleThreads()
    return pool


class _IdleThreads:
    """Counts idle threads as a semaphore does, without Python code that holds a lock.

    An interrupt in such code leaves the lock taken, and whoever submits a task to the pool later waits for ever.
    """

    def __init__(self) -> None:
        self._idle = deque[None]()

    def acquire(self, timeout: float | None = None) -> bool:
        try:
            self._idle.pop()
        except IndexError:
            return False
        return True

    def release(self) -> None:
        self._idle.append(None)
