"""A store that answers in steps: all calls that wait, as soon as every thread of the process waits.

How many steps a read takes is how many of its calls depend on each other, whatever else the machine does meanwhile:
by the clock, a thread that got no processor for a while looks as if it had waited for a call.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec

from benchmarks.latency import LatencyFileSystem

__all__ = ["IS_SUPPORTED", "SteppedFileSystem", "Steps", "counted"]

#: How often in a row every thread has to be found waiting, and the seconds between.
_LOOKS, _PAUSE = 3, 0.002
_TASKS = Path("/proc/self/task")
IS_SUPPORTED = _TASKS.is_dir()


class Steps:
    """The calls of each step, as the kind and the path; calls in the log's folder are answered at once."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None], tuple[str, str]]] = []
        self._lock = threading.Lock()
        self._is_over = False

    def __len__(self) -> int:
        return len(self.calls)

    def of(self, path: str) -> int:
        """Return in how many steps calls for a path, or for one that ends so, were answered."""
        return sum(any(p.endswith(path) for _, p in step) for step in self.calls)

    async def wait(self, kind: str, path: str) -> None:
        """Wait for the next step."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._lock:
            self._waiting.append((loop, done, (kind, path)))
        await done

    def run(self) -> None:
        """Answer step by step until the end."""
        looks = 0
        while not self._is_over:
            time.sleep(_PAUSE)
            looks = looks + 1 if self._waiting and _all_wait() else 0
            if looks < _LOOKS:
                continue
            looks = 0
            with self._lock:
                answered, self._waiting = self._waiting, []
            self.calls.append([call for _, _, call in answered])
            for loop, done, _ in answered:
                loop.call_soon_threadsafe(done.set_result, None)

    def end(self) -> None:
        """Answer no more; nothing may wait any longer."""
        self._is_over = True


def _all_wait() -> bool:
    """Whether each thread but this one sleeps: one that waits for a processor does not."""
    own = str(threading.get_native_id())
    for task in os.listdir(_TASKS):
        try:
            state = (_TASKS / task / "stat").read_bytes().rpartition(b") ")[2][:1]
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            return False
        if task != own and state not in (b"S", b"t"):
            return False
    return True


_counters: list[Steps] = []


@contextmanager
def counted() -> Iterator[Steps]:
    """Count the steps of every `SteppedFileSystem` within the block."""
    steps = Steps()
    thread = threading.Thread(target=steps.run, name="steps", daemon=True)
    _counters.append(steps)
    thread.start()
    try:
        yield steps
    finally:
        _counters.remove(steps)
        steps.end()
        thread.join()


class SteppedFileSystem(LatencyFileSystem):
    """Local files behind steps while they are counted; without delay otherwise."""

    protocol = "stepped"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        return str(path).removeprefix("stepped://").rstrip("/") or "/"

    async def _called(self, kind: str, path: str, times: int = 1) -> None:
        if _counters and "_delta_log" not in path:
            await _counters[-1].wait(kind, path)


fsspec.register_implementation("stepped", SteppedFileSystem, clobber=True)
