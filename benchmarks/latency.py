"""A file system that answers each call after a while, to count calls and see which wait for which.

``latency:///absolute/path`` serves local files through fsspec's asynchronous interface, as object stores do.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractBufferedFile

__all__ = ["Call", "Calls", "LatencyFileSystem", "recorded", "register"]

PAGE_NAMES = 1_000


@dataclass(frozen=True)
class Call:
    """One call, in seconds of `time.monotonic`."""

    kind: str
    path: str
    start: float
    end: float


@dataclass
class Calls:
    """What was called while recording."""

    calls: list[Call] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock, repr=False)

    def of(self, *, log: bool | None = None) -> list[Call]:
        """Return calls inside the log's folder, outside it, or all."""
        return [c for c in self.calls if log is None or ("_delta_log" in c.path) is log]

    @property
    def in_flight(self) -> int:
        """The most calls open at one moment."""
        edges = sorted([(c.start, 1) for c in self.calls] + [(c.end, -1) for c in self.calls])
        most = now = 0
        for _, step in edges:
            now += step
            most = max(most, now)
        return most

    @property
    def chain(self) -> int:
        """The longest chain of calls that each began after the end of the one before.

        No chain of dependent calls can be longer; the pages of one listing count as one call here.
        """
        length, free = 0, float("-inf")
        for c in sorted(self.calls, key=lambda c: c.end):
            if c.start >= free:
                length, free = length + 1, c.end
        return length


_recorders: list[Calls] = []


@contextmanager
def recorded() -> Iterator[Calls]:
    """Record the calls of every `LatencyFileSystem` within the block."""
    calls = Calls()
    _recorders.append(calls)
    try:
        yield calls
    finally:
        _recorders.remove(calls)


class _File(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    """A file whose every range is one call."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.cat_file(self.path, start=start, end=end)
        return found

    def _upload_chunk(self, final: bool = False) -> bool:
        if final:
            self.buffer.seek(0)
            self.fs.pipe_file(self.path, self.buffer.read())
        return final


class LatencyFileSystem(AsyncFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Local files behind a delay.

    Parameters
    ----------
    delay_ms : float
        How long each call takes at least; a listing takes it once per 1,000 names.
    """

    protocol = "latency"
    root_marker = "/"

    def __init__(self, delay_ms: float = 20.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.delay_ms = float(delay_ms)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        bare = str(path).removeprefix("latency://")
        return bare.rstrip("/") or "/"

    async def _called(self, kind: str, path: str, times: int = 1) -> None:
        start = time.monotonic()
        await asyncio.sleep(self.delay_ms / 1_000 * times)
        call = Call(kind, path, start, time.monotonic())
        for calls in _recorders:
            with calls.lock:
                calls.calls.append(call)

    async def _info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        await self._called("info", path)
        return _info_of(Path(path))

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        found = [_info_of(p) for p in sorted(Path(path).iterdir())] if Path(path).is_dir() else [_info_of(Path(path))]
        await self._called("list", path, max(1, -(-len(found) // PAGE_NAMES)))
        return found if detail else [f["name"] for f in found]

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        path = self._strip_protocol(path)
        await self._called("read", path)
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            first, last, _ = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(last - first, 0))

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        await self._called("write", path)
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        # as on an object store, nobody sees a part
        whole = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        whole.write_bytes(value)
        if mode == "create":
            try:
                target.hardlink_to(whole)
            finally:
                whole.unlink()
        else:
            whole.replace(target)

    async def _put_file(self, lpath: str, rpath: str, **kwargs: Any) -> None:
        await self._pipe_file(rpath, Path(lpath).read_bytes())

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        await self._called("delete", path)
        Path(path).unlink()

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **kwargs: Any) -> _File:
        return _File(self, self._strip_protocol(path), mode, block_size=block_size or "default", **kwargs)

    def created(self, path: str) -> Any:
        """Return a file's time of creation."""
        return self.info(path)["created"]

    def modified(self, path: str) -> Any:
        """Return a file's time of modification."""
        return self.info(path)["mtime"]


def _info_of(path: Path) -> dict[str, Any]:
    found = path.stat()
    kind = "directory" if path.is_dir() else "file"
    return {"name": str(path), "size": found.st_size, "type": kind, "mtime": found.st_mtime, "created": found.st_ctime}


def register() -> None:
    """Make fsspec find ``latency://``."""
    fsspec.register_implementation("latency", LatencyFileSystem, clobber=True)
