"""Parts of one task on several threads, where there are fewer tasks than cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import num_cores, thread_pool

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["run_at_once"]

T = TypeVar("T")

#: Begins its threads when they are first needed; to begin one takes as long as to decode a small column.
_pool = PerProcess(lambda: thread_pool(max(num_cores() - 1, 1), "delta-columns"))


def run_at_once(parts: Sequence[Callable[[], T]]) -> list[T]:
    """Run parts at once, one of them on the caller's thread, and return what each returns.

    Notes
    -----
    Returns, or raises an error of a part, once all that began have ended. A part may not call this itself.
    """
    if len(parts) < 2:
        return [part() for part in parts]
    others: list[tuple[Future[T], Callable[[], T]]] = []
    try:
        # once the interpreter exits, a pool can't be made any more, and takes nothing
        with suppress(RuntimeError):
            pool = _pool.get()
            for part in parts[1:]:
                others.append((pool.submit(part), part))  # noqa: PERF401  # those before an error count
        # what no thread has begun meanwhile is run here
        found = [parts[0](), *(part() if other.cancel() else other.result() for other, part in others)]
        return found + [part() for part in parts[len(found) :]]
    finally:
        for other, _ in others:
            if not other.cancel():
                other.exception()
