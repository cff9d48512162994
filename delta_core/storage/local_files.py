"""Files that appear whole or not at all on a local disk, and names that are claimed once."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "WriteBack",
    "claim",
    "create_whole",
    "make_directory",
    "replace_file",
    "sync_directory",
    "sync_path",
    "temporary_file",
]

#: The least bytes that are synced to the disk at once while a file is written.
_WRITE_BACK_BYTES = 4 << 20
#: How a disk specifies that it has no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
#: Seconds between attempts to replace a file that is open; Windows does not replace it then.
_PAUSES = (0.001, 0.005, 0.02, 0.1, 0.3, 0.6, 1.0)
_RENAME_NOREPLACE = 1
_RENAME_EXCL = 4
_AT_FDCWD = -100
_SYNC_FILE_RANGE_WRITE = 2
_sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform == "linux" else None


def create_whole(
    target: str, data: bytes | Iterable[bytes], durable: bool, ready: Callable[[], None] | None = None
) -> bool:
    """Create a file with its whole content unless there is one of that name; return whether it was created.

    The content goes to a temporary name first, and is on the disk before it gets its own, as is that name when this
    returns; neither unless ``durable``. ``ready`` is called right before the file gets its name, which it does not get
    if that raises. Makes the directory where it is missing.
    """
    directory = os.path.dirname(target)
    temporary, handle = _create_temporary(target)
    try:
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                _write_fully(handle, piece)
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        if ready is not None:
            ready()
        created = claim(temporary, target)
    finally:
        # gone already if it became the target
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    if created and durable:
        sync_directory(directory)
    return created


def _create_temporary(target: str) -> tuple[str, int]:
    """Create an empty file beside the target; return its name and its handle."""
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, f".{name}.{uuid.uuid4().hex}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        return temporary, os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        make_directory(directory)
        return temporary, os.open(temporary, flags, 0o666)


def _write_fully(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def temporary_file(target: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Open a new file beside the target; whatever happens, nothing of that name is there afterwards.

    Makes the directory where it is missing.
    """
    temporary, handle = _create_temporary(target)
    try:
        with io.BufferedWriter(_WrittenBack(handle)) as file:
            yield temporary, file
    finally:
        # gone already if it became the target
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def claim(temporary: str, target: str) -> bool:
    """Publish a whole file under its name unless there is a file of that name; atomic among concurrent writers.

    By a hard link, else by a rename that replaces nothing; on Windows, where renames never replace a file, by a rename.

    Raises
    ------
    OSError
        On a disk that has neither: the name could be claimed there only by an empty file, and readers would see a part
        of it.
    """
    if sys.platform == "win32":
        try:
            os.rename(temporary, target)
        except PermissionError:  # for a file of that name too, while it is open
            if os.path.lexists(target):
                return False
            raise
        except FileExistsError:
            return False
        return True
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError as e:
        if e.errno not in _NO_LINKS:
            raise
        return _rename_without_replacing(temporary, target)
    return True


def replace_file(temporary: str, target: str) -> None:
    """Publish a whole file under its name, in place of any that has it.

    Windows replaces no file that is open: there, this waits two seconds at most for its readers.
    """
    for pause in _PAUSES if sys.platform == "win32" else ():
        try:
            os.replace(temporary, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(temporary, target)


def _rename_without_replacing(source: str, target: str) -> bool:
    rename = _exclusive_rename()
    error = errno.ENOSYS if rename is None else rename(os.fsencode(source), os.fsencode(target))
    if error in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
        found = "the disk has neither hard links nor renames that replace nothing: commits are not safe there"
        raise OSError(errno.ENOTSUP, found, target)
    if error not in (0, errno.EEXIST):
        raise OSError(error, os.strerror(error), target)
    return error == 0


def _exclusive_rename() -> Any:
    """Return a function of two names that returns an error number, None if the system has no such call."""
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call, before, between, flag = getattr(library, "renamex_np", None), (), (), _RENAME_EXCL
    else:
        call, before, between, flag = (
            getattr(library, "renameat2", None),
            (_AT_FDCWD,),
            (_AT_FDCWD,),
            _RENAME_NOREPLACE,
        )
    if call is None:
        return None
    return lambda source, target: ctypes.get_errno() if call(*before, source, *between, target, flag) else 0


def make_directory(directory: str, *, durable: bool = True) -> None:
    """Make a directory and those above it that are missing, each synced into the one that holds it if ``durable``."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    make_directory(parent, durable=durable)
    with suppress(FileExistsError):
        os.mkdir(directory)
    if durable:
        sync_directory(parent)


def sync_path(path: str) -> None:
    """Sync a file, or a directory's names, to the disk."""
    if sys.platform == "win32":  # which syncs files only that are opened to be written
        if os.path.isdir(path):
            return
        handle = os.open(path, os.O_RDWR | os.O_BINARY)
    else:
        handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: str) -> None:
    """Sync a directory's names to the disk; Windows has no call for that, and NTFS keeps a journal of them."""
    if sys.platform == "win32":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as e:
        # network disks that sync names by themselves reject the call
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


class WriteBack:
    """Lets the system sync a file to the disk while it is written, so that the sync at its end finds little left to do.

    Nothing is promised: what has to last is synced. Linux only; elsewhere nothing happens.
    """

    def __init__(self) -> None:
        self._started = 0

    def reached(self, handle: int, end: int) -> None:
        """Note how far the file is written; begin with what is new if that is enough."""
        size = end - self._started
        if _sync_file_range is None or size < _WRITE_BACK_BYTES:
            return
        _sync_file_range(handle, ctypes.c_int64(self._started), ctypes.c_int64(size), _SYNC_FILE_RANGE_WRITE)
        self._started = end


class _WrittenBack(io.FileIO):
    """A file that is synced to the disk while it is written."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle, "wb")
        self._write_back = WriteBack()

    def write(self, data: Buffer, /) -> int:
        written = super().write(data)
        self._write_back.reached(self.fileno(), self.tell())
        return written
