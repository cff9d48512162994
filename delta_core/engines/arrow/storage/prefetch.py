"""Small files of a remote store, fetched whole and many at once, ahead of their decoding."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.engines.interface import RangeRequest, Storage
from delta_core.runtime.threads import thread_pool

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Prefetch"]

#: Files up to this size are fetched by one call.
SMALL_BYTES = 4 << 20
#: What one window of files holds; two windows are in memory at a time.
WINDOW_BYTES = 64 << 20
WINDOW_FILES = 1024


class Prefetch:
    """Windows of neighbouring small files, each one `Storage.read`.

    Parameters
    ----------
    paths, sizes
        Of every file of the read.
    local : sequence of str or None
        Where a file lies on this machine's disk; such files are not fetched.
    """

    def __init__(
        self, storage: Storage, paths: Sequence[str], sizes: Sequence[int | None], local: Sequence[str | None]
    ) -> None:
        self._storage = storage
        self._paths = paths
        self._windows: list[list[int]] = []
        self._window_of: dict[int, int] = {}
        self._results: dict[int, Future[dict[int, bytes | memoryview]]] = {}
        self._lock = threading.Lock()
        self._pool = thread_pool(2, "delta-prefetch")
        weight = WINDOW_BYTES
        for index, size in enumerate(sizes):
            if size is None or size > SMALL_BYTES or local[index] is not None:
                continue
            if weight + size > WINDOW_BYTES or len(self._windows[-1]) >= WINDOW_FILES:
                self._windows.append([])
                weight = 0
            weight += size
            self._windows[-1].append(index)
            self._window_of[index] = len(self._windows) - 1

    def take(self, index: int) -> pa.BufferReader | None:
        """Return a file's content, once; None for a file that is to be opened in the store."""
        number = self._window_of.get(index)
        if number is None:
            return None
        with self._lock:
            for window in (number, number + 1):
                if window < len(self._windows) and window not in self._results:
                    self._results[window] = self._pool.submit(self._fetch, self._windows[window])
            pending = self._results[number]
        data = pending.result().pop(index, None)
        return None if data is None else pa.BufferReader(pa.py_buffer(data))

    def _fetch(self, window: list[int]) -> dict[int, bytes | memoryview]:
        try:
            found = self._storage.read([RangeRequest(self._paths[i]) for i in window])
        except FileNotFoundError:
            # which file is missing shows when each is opened by itself
            return {}
        return dict(zip(window, found, strict=True))

    def close(self) -> None:
        """Start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
