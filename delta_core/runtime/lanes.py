"""Parts of one task on several threads, where there are fewer tasks than cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import Task, ThreadPool, num_cores

__all__ = ["run_at_once"]

T = TypeVar("T")

#: Begins its threads when they are first needed; to begin one takes as long as to decode a small column.
_pool = PerProcess(lambda: ThreadPool(max(num_cores() - 1, 1), "delta-columns"))


def run_at_once(parts: Sequence[Callable[[], T]]) -> list[T]:
    """Run parts at once, one of them on the caller's thread, and return what each returns.

    Notes
    -----
    Returns, or raises an error of a part, once all that began have ended. A part may not call this itself.
    """
    if len(parts) < 2:
        return [part() for part in parts]
    others: list[tuple[Task[T], Callable[[], T]]] = []
    try:
        for part in parts[1:]:
            others.append((_pool.get().submit(part), part))  # noqa: PERF401  # those before an error count
        # what no thread has begun meanwhile is run here
        return [parts[0](), *(part() if other.cancel() else other.result() for other, part in others)]
    finally:
        for other, _ in others:
            if not other.cancel():
                other.wait()
