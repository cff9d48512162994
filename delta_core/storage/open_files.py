"""Reads of open files, and the facts that identify them."""

from __future__ import annotations

import os
import stat
import sys
import weakref
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from delta_core.engines.records import FileIdentity
from delta_core.errors import IrregularFileError
from delta_core.kernels.arrow_buffers import ARROW_VERSION
from delta_core.kernels.memory import LEAST_KEPT, fresh_array

if TYPE_CHECKING or sys.platform == "win32":
    from delta_core.storage._file_reads import open_shared, read_into

__all__ = ["arrow_file", "check_regular", "identity_of", "open_regular", "pread", "read_at"]

#: A pipe without a writer is not waited for.
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class _FileWithDescriptor(pa.OSFile):  # type: ignore[misc]
    """A file of PyArrow with a descriptor of its own, for versions before 25, whose `OSFile.fileno` always fails."""

    def __new__(cls, path: str, mode: str) -> Self:
        flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o666)
        release = None
        try:
            # the name may be that of another file by now; on Windows, no file that is open is replaced
            self: Self = super().__new__(cls, path if os.name == "nt" else f"/dev/fd/{descriptor}", mode)
            release = weakref.finalize(self, os.close, descriptor)
        finally:
            if release is None:
                os.close(descriptor)
        self._descriptor, self._release = descriptor, release
        return self

    def fileno(self) -> int:
        return self._descriptor  # type: ignore[no-any-return]

    def close(self) -> None:
        super().close()
        self._release()


def arrow_file(path: str, mode: str) -> pa.NativeFile:
    """Open a file of this machine for PyArrow, with `fileno` in every version of PyArrow; the mode is "rb" or "wb"."""
    return pa.OSFile(path, mode) if ARROW_VERSION >= 25 else _FileWithDescriptor(path, mode)


def identity_of(found: os.stat_result) -> FileIdentity:
    """Return what distinguishes a file from any that takes its name, or its number once it is gone."""
    return FileIdentity(found.st_size, f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}")


def read_at(descriptor: int, offset: int, length: int | None) -> bytes | memoryview:
    """Read ``length`` bytes from ``offset`` on, fewer only at the end of the file; None: all up to its end.

    Many go to memory that is used again: to take fresh memory from the system takes longer than to copy to it.
    """
    if length is None and sys.platform == "win32":  # reads from a place on move the position of other readers there
        length = max(os.fstat(descriptor).st_size - offset, 0)
    if length is None:
        with open(descriptor, "rb", 0, closefd=False) as file:
            file.seek(offset)
            return file.readall()
    if length >= LEAST_KEPT:
        return _read_kept(descriptor, offset, length)
    data = pread(descriptor, length, offset)
    while len(data) < length and (part := pread(descriptor, length - len(data), offset + len(data))):
        data += part
    return data


if TYPE_CHECKING or sys.platform == "win32":

    def pread(descriptor: int, length: int, offset: int) -> bytes:
        """Read bytes from a place on, as `os.pread`."""
        data = bytearray(length)
        return bytes(memoryview(data)[: read_into(descriptor, data, offset)])

    def _pread_into(descriptor: int, view: memoryview, offset: int) -> int:
        return read_into(descriptor, view, offset)

else:
    pread = os.pread

    def _pread_into(descriptor: int, view: memoryview, offset: int) -> int:
        return os.preadv(descriptor, [view], offset)


def _read_kept(descriptor: int, offset: int, length: int) -> memoryview:
    # a damaged table may request more than there is
    size = max(min(length, os.fstat(descriptor).st_size - offset), 0)
    view = fresh_array(size // 8 + 1).data.cast("B")[:size]
    done = 0
    while done < size and (count := _pread_into(descriptor, view[done:], offset + done)):
        done += count
    return view[:done].toreadonly()


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of a file that is opened to be read.

    Raises
    ------
    OSError
        If it can't be opened.
    IrregularFileError
        If it is a pipe, a socket or a device: those may never end.
    """
    # others may replace or delete the file meanwhile, as on other systems
    is_shared = sys.platform == "win32" and flags == os.O_RDONLY
    descriptor = open_shared(os.fsencode(path)) if is_shared else os.open(path, flags | _FLAGS)
    try:
        _check_mode(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: str) -> None:
    """Reject a pipe, a socket or a device; what `open_regular` does, before another library opens the file."""
    _check_mode(path, os.stat(path).st_mode)


def _check_mode(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise IrregularFileError.of(path)
