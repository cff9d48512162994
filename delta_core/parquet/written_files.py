"""The files of one write: those begun, those written, their syncs to the disk, and their deletion after an error."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileWrite, WrittenFile
from delta_core.errors import DeltaError, EngineError
from delta_core.parquet import parts
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import Task, ThreadPool
from delta_core.storage.local_files import sync_path

__all__ = ["SYNCS", "CreatedFile", "Failing", "WrittenFiles", "raise_first"]

#: A file above this is synced when it is closed; smaller ones all together at the end, `SYNCS` at once.
SYNC_BYTES = 8 << 20
SYNCS = 16

_syncs = PerProcess(partial(ThreadPool, SYNCS, "delta-sync"))


class Failing:
    """Turns the backend's errors into one that names the file."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (pa.ArrowException, OSError)) and not isinstance(error, DeltaError):
            cause = f"{type(error).__name__}: {error}"
            raise EngineError(f"Could not write data file {self._path!r}: {cause}.", path=self._path) from error


class BegunFile(Protocol):
    """A file that exists at least in part."""

    @property
    def path(self) -> str:
        """Its path below the table's root."""

    def abandon(self) -> None:
        """Close it without its end."""


class CreatedFile(NamedTuple):
    """A data file that is created whole."""

    path: str
    partition: int
    num_rows: int

    def abandon(self) -> None:
        """Do nothing: the file is complete."""


class WrittenFiles:
    """The files of one write. Its methods may be called by several threads.

    Parameters
    ----------
    storage : Storage
        The table's storage.
    write : FileWrite
        The write; ``partitioned`` specifies whether workers share files.
    """

    def __init__(self, storage: Storage, write: FileWrite) -> None:
        self._storage = storage
        self._write = write
        self._lock = threading.Lock()
        self._begun: list[BegunFile] = []
        self._done: list[tuple[tuple[int, int], WrittenFile]] = []
        self._syncs = _Syncs(storage)

    def begin(self, file: BegunFile, worker: int) -> tuple[int, int]:
        """Add a file that is begun; return its place among the files, which is that of its rows if it can be."""
        with self._lock:
            self._begun.append(file)
            return 0 if self._write.partitioned else worker, len(self._begun)

    def begin_whole(self, files: Sequence[CreatedFile]) -> int:
        """Add files that are created whole; return the place of the first one."""
        with self._lock:
            self._begun += files
            return len(self._begun) - len(files) + 1

    def add(self, place: tuple[int, int], file: WrittenFile) -> None:
        """Add a file that is written, at the place that `begin` returned."""
        with self._lock:
            self._done.append((place, file))

    def add_whole(self, first: int, files: Sequence[WrittenFile]) -> None:
        """Add files that were created, from the place that `begin_whole` returned on."""
        with self._lock:
            self._done += [((0, first + i), file) for i, file in enumerate(files)]

    @property
    def files(self) -> list[WrittenFile]:
        """The written files, in the order of their rows if each has consecutive ones."""
        return [found for _, found in sorted(self._done, key=lambda done: done[0])]

    def begin_sync(self, path: str, size: int) -> None:
        """Sync a closed file on another thread, if it is large; `sync` syncs the others."""
        if size >= SYNC_BYTES:
            self._syncs.begin([path])

    def sync(self) -> None:
        """Sync small files to the disk, and the directories of all, so that the names last too.

        Syncs that may last longer go on meanwhile; the others have ended when this returns.
        """
        if self._storage.local_path("") is None:
            return
        written = self.files
        directories = {os.path.dirname(f.path) for f in written}
        # each directory may be new, and so may those above it
        above = {"/".join(path.split("/")[:i]) for path in directories for i in range(path.count("/") + 2)}
        paths = [f.path for f in written if f.size < SYNC_BYTES] + sorted(above)
        # a file and its directory at once: the disk writes its journal once for both, in half the time
        # a small write needs one other thread: the caller syncs the last path itself
        last = [] if self._syncs.is_begun else paths[-1:]
        self._syncs.begin(paths[: len(paths) - len(last)])
        if self._write.syncs is None:
            self._syncs.finish(last)
        else:
            # this object is not needed for it
            self._write.syncs.append(partial(self._syncs.finish, last))

    def discard(self) -> None:
        """Delete every file that was begun."""
        for file in self._begun:
            file.abandon()
        paths = [f.path for f in self._begun]
        try:
            self._storage.delete(paths)
        except EngineError:
            # one that can't be deleted does not keep the others
            for path in paths:
                with suppress(EngineError):
                    self._storage.delete([path])


class _Syncs:
    """Syncs of the files and directories of a write."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._begun: list[Task[None]] = []

    @property
    def is_begun(self) -> bool:
        """Whether another thread syncs anything."""
        return bool(self._begun)

    def begin(self, paths: Sequence[str]) -> None:
        """Sync paths on other threads."""
        pool = _syncs.get()
        if len(paths) <= SYNCS:
            self._begun += [pool.submit(self._sync, path) for path in paths]
        else:
            self._begun += [pool.submit(self._sync_run, paths[i::SYNCS]) for i in range(SYNCS)]

    def finish(self, paths: Sequence[str]) -> None:
        """Sync paths on the caller's thread, and wait for all others."""
        failed: EngineError | None = None
        try:
            for path in paths:
                self._sync(path)
        except EngineError as e:
            failed = e
        finally:
            _wait(self._begun)
        # of several errors that of a file, which names it
        raise_first(self._begun)
        if failed is not None:
            raise failed

    def _sync(self, path: str) -> None:
        with Failing(path):
            sync_path(self._storage.local_path(path) or path)

    def _sync_run(self, paths: Sequence[str]) -> None:
        local = [self._storage.local_path(path) or path for path in paths]
        try:
            parts.sync_files(local)
        except OSError as e:
            with Failing(paths[local.index(e.filename)]):
                raise


def raise_first(tasks: Sequence[Task[None]]) -> None:
    """Wait for all tasks, and raise the error of the first one that has one."""
    _wait(tasks)
    for task in tasks:
        task.result()


def _wait(tasks: Iterable[Task[None]]) -> None:
    for task in tasks:
        task.wait()
