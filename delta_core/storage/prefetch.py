"""Files of a remote store: small ones fetched whole and many at once, ahead of their decoding, big ones by ranges."""

from __future__ import annotations

import io
import threading
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from delta_core.engines.records import RangeRequest
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import Task, ThreadPool

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = ["Prefetch", "RangedSource", "ReadAhead"]

#: Files up to this size are fetched by one call.
SMALL_BYTES = 4 << 20
#: The bytes and files of one window; two windows are in memory at a time.
WINDOW_BYTES = 64 << 20
WINDOW_FILES = 1024
#: The bytes of a file that are read ahead, and the least and most bytes of a part.
AHEAD_BYTES = 48 << 20
LEAST_PART_BYTES, MOST_PART_BYTES = 64 << 10, 4 << 20
#: Threads that read ahead.
AHEAD_THREADS = 32

_readers = PerProcess(partial(ThreadPool, AHEAD_THREADS, "delta-ahead"))


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
        self._results: dict[int, Task[dict[int, bytes | memoryview]]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPool(2, "delta-prefetch")
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

    def fetches(self, index: int) -> bool:
        """Whether a file is fetched whole."""
        return index in self._window_of

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
        self._pool.stop()


class RangedSource(pa.PythonFile):  # type: ignore[misc]  # PyArrow has no types for it
    """A file of a store, read by ranges, for PyArrow. Ranges that will be read are fetched together before.

    PyArrow reads ranges ahead too, but at most eight at once in a process.
    """

    def __new__(cls, storage: Storage, path: str, size: int) -> Self:
        """Open a file of known size; does no I/O."""
        ranges = _Ranges(storage, path, size)
        source: Self = super().__new__(cls, ranges, "r")
        source._ranges = ranges
        return source

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._ranges: _Ranges

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges, each by its first byte and its length, that were not fetched before; they stay in memory."""
        self._ranges.fetch(ranges)

    def read_ahead(self, ranges: Sequence[tuple[int, int]]) -> ReadAhead:
        """Return a function that reads parts of ranges, each by its first byte and its length, ahead of their use."""
        return self._ranges.read_ahead(ranges)


class ReadAhead:
    """Reads ranges of a file of a store, each from its beginning on, one part ahead of what is used.

    Parameters
    ----------
    ranges : sequence of (int, int)
        First byte and length of each; they do not overlap.
    """

    def __init__(self, storage: Storage, path: str, ranges: Sequence[tuple[int, int]]) -> None:
        most = AHEAD_BYTES // (3 * max(len(ranges), 1))
        size = min(max(most, LEAST_PART_BYTES), MOST_PART_BYTES)
        self._ranges = [_Ahead(storage, path, first, first + length, size) for first, length in sorted(ranges)]
        self._firsts = [r.first for r in self._ranges]

    def __call__(self, offset: int, size: int) -> memoryview:
        """Return bytes of one of the ranges; fewer at its end."""
        return self._ranges[bisect_right(self._firsts, offset) - 1].read(offset, size)


class _Ahead:
    """One range: the part that is in use, the one before, and the next one, which is fetched meanwhile."""

    def __init__(self, storage: Storage, path: str, first: int, end: int, part_bytes: int) -> None:
        self._storage, self._path, self._part_bytes = storage, path, part_bytes
        self.first, self._end = first, end
        self._at, self._data = first, memoryview(b"")
        self._next: Task[list[bytes | memoryview]] | None = None
        self._fetch()

    def read(self, offset: int, size: int) -> memoryview:
        if not self._at <= offset <= self._at + len(self._data):  # some bytes are not needed
            self._at, self._data, self._next = offset, memoryview(b""), None
        while self._at + len(self._data) < min(offset + size, self._end):
            self._fetch()
            assert self._next is not None
            (more,) = self._next.result()
            if not len(more):
                break
            # a page that has rows of two stretches is read again
            kept = max(self._at, offset - self._part_bytes)
            rest = self._data[kept - self._at :]
            self._data = memoryview(b"".join((rest, more)) if len(rest) else more)
            self._at, self._next = kept, None
            self._fetch()
        return self._data[offset - self._at : offset - self._at + size]

    def _fetch(self) -> None:
        """Begin to fetch the part after the one in use."""
        first = self._at + len(self._data)
        if self._next is None and first < self._end:
            part = RangeRequest(self._path, first, min(self._part_bytes, self._end - first))
            self._next = _readers.get().submit(self._storage.read, [part])


class _Ranges(io.RawIOBase):
    """A Python file over the ranges of one that were fetched; others are fetched when they are read."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage = storage
        self._path = path
        self._size = size
        self._at = 0
        #: The fetched parts, by their first bytes, and these in order.
        self._parts: dict[int, memoryview] = {}
        self._starts: list[int] = []

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        missing = [(first, n) for first, n in ranges if self._part(first, first + n) is None]
        if missing:
            found = self._storage.read([RangeRequest(self._path, first, length) for first, length in missing])
            self._parts.update((first, memoryview(data)) for (first, _), data in zip(missing, found, strict=True))
            self._starts = sorted(self._parts)

    def read_ahead(self, ranges: Sequence[tuple[int, int]]) -> ReadAhead:
        return ReadAhead(self._storage, self._path, ranges)

    def read(self, length: int = -1) -> bytes | memoryview:
        first = self._at
        end = self._size if length < 0 else min(first + length, self._size)
        if end <= first:
            return b""
        self._at = end
        part = self._part(first, end)
        if part is not None:
            return part
        (found,) = self._storage.read([RangeRequest(self._path, first, end - first)])
        return found

    def _part(self, first: int, end: int) -> memoryview | None:
        """Return bytes that were fetched, None if they were not."""
        place = bisect_right(self._starts, first) - 1
        if place < 0:
            return None
        start = self._starts[place]
        part = self._parts[start]
        return part[first - start : end - start] if end <= start + len(part) else None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def close(self) -> None:
        super().close()
        self._parts, self._starts = {}, []
