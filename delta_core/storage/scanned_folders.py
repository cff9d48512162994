"""Many files of a local disk at once, with Python's own calls; for Windows, for which `_folders` is not compiled.

The functions are those of `_folders`, with the same results. Links are looked for before a file is found or deleted,
and not in the same call: a folder that a link replaces in between is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.storage.local_files import make_directory, sync_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernels.arrow_buffers import StringBuffers

__all__ = ["create", "entries", "first_files", "sync", "visit"]

_FILE, _FOLDER, _LINK, _OTHER = range(4)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Characters that no part of a path holds: on Windows, they separate folders, drives and streams of a file.
_SEPARATORS = frozenset("\0\\:" if os.name == "nt" else "\0")


def entries(folder: bytes, prefix: bytes) -> tuple[bytes, NDArray[np.int64]]:
    """Return names (with a prefix) as bytes, and their ends, sizes, times and kinds.

    Raises
    ------
    OSError
        If the folder can't be read, or is a link.
    """
    place = os.fsdecode(folder)
    if _is_link(os.lstat(place)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place)
    names: list[bytes] = []
    rows: list[tuple[int, int, int, int]] = []
    end = 0
    with os.scandir(place) as found:
        for entry in found:
            try:
                # not `entry.stat`: on Windows, a folder's own record of sizes and times may be out of date
                facts = os.lstat(entry.path)
            except FileNotFoundError:  # deleted meanwhile
                continue
            kind = _kind_of(facts)
            names.append(prefix + os.fsencode(entry.name))
            end += len(names[-1])
            is_known = kind in (_FOLDER, _LINK)
            rows.append((end, 0 if is_known else facts.st_size, 0 if is_known else _modified_ms(facts), kind))
    return b"".join(names), np.array(rows, np.int64).reshape(-1, 4)


def first_files(folder: bytes, start: bytes, limit: int) -> tuple[list[bytes], int]:
    """Return the first names of files from a start name on, in their order, and how many there are."""
    first: list[bytes] = []
    count = 0
    with os.scandir(os.fsdecode(folder)) as found:
        for entry in found:
            name = os.fsencode(entry.name)
            if name < start or entry.is_dir():
                continue
            count += 1
            if limit < 0:
                first.append(name)
            elif len(first) < limit or bisect_left(first, name) < limit:
                insort(first, name)
                del first[limit:]
    return sorted(first) if limit < 0 else first, count


def visit(
    root: bytes, paths: StringBuffers, delete: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Find or delete files below a root; return sizes, times and error numbers.

    Sizes and times are empty for deletions.

    Raises
    ------
    FileNotFoundError
        If the root is not there.
    NotADirectoryError
        If it is a file.
    """
    top = os.fsdecode(root)
    if not stat.S_ISDIR(os.stat(top).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), top)
    texts = _texts(paths)
    errors = np.zeros(len(texts), np.int32)
    sizes = np.full(0 if delete else len(texts), -1, np.int64)
    times = np.full(0 if delete else len(texts), -1, np.int64)
    folders = _Folders(top)
    for i, text in enumerate(texts):
        try:
            place = folders.place(text)
            if delete:
                os.unlink(place)
                continue
            facts = os.lstat(place)
            if _kind_of(facts) != _FILE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
            sizes[i], times[i] = facts.st_size, _modified_ms(facts)
        except OSError as e:
            errors[i] = e.errno or errno.EIO
    return sizes, times, errors


def create(
    names: NDArray[np.uint8], name_ends: NDArray[np.int64], data: NDArray[np.uint8], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int, int]:
    """Create files; return their times, an error number (0: none) and the index of the file that failed.

    Raises
    ------
    ValueError
        If the ends are not those of the names or of the files.
    """
    paths = list(_names(names, name_ends))
    if len(paths) != len(ends):
        raise ValueError("each file needs a path")
    if np.any(np.diff(ends, prepend=0) < 0) or (len(ends) and ends[-1] > len(data)):
        raise ValueError("the ends are not those of the files")
    times = np.zeros(len(ends), np.int64)
    content = data.data
    start = 0
    for i, (path, end) in enumerate(zip(paths, ends.tolist(), strict=True)):
        try:
            times[i] = _create(path, content[start:end])
        except OSError as e:
            return times, e.errno or errno.EIO, i
        start = end
    return times, 0, 0


def sync(names: NDArray[np.uint8], name_ends: NDArray[np.int64]) -> tuple[int, int]:
    """Sync files and folders; return an error number (0: none) and the index of the path that failed."""
    for i, path in enumerate(_names(names, name_ends)):
        try:
            sync_path(path)
        except OSError as e:
            return e.errno or errno.EIO, i
    return 0, 0


class _Folders:
    """The folders below a root, each looked at once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, OSError | None] = {"": None}

    def place(self, path: bytes | None) -> str:
        """Return the place of a file; raises OSError for a path that does not stay below the root."""
        text = os.fsdecode(path or b"")
        folder, _, name = text.rpartition("/")
        if not _is_name(name) or text[:1] == "/":
            raise _outside(text)
        self._check(folder)
        return f"{self._root}/{text}"

    def _check(self, folder: str) -> None:
        if folder not in self._known:
            try:
                self._known[folder] = self._problem(folder)
            except OSError as e:
                self._known[folder] = e
        if (problem := self._known[folder]) is not None:
            raise problem

    def _problem(self, folder: str) -> OSError | None:
        above, _, name = folder.rpartition("/")
        if not _is_name(name):
            return _outside(folder)
        self._check(above)
        facts = os.lstat(f"{self._root}/{folder}")
        if stat.S_ISDIR(facts.st_mode) and not _is_link(facts):
            return None
        number = errno.ELOOP if _is_link(facts) else errno.ENOTDIR
        return OSError(number, os.strerror(number), folder)


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and _SEPARATORS.isdisjoint(part)


def _outside(path: str) -> OSError:
    return OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)


def _kind_of(facts: os.stat_result) -> int:
    if _is_link(facts):
        return _LINK
    return _FILE if stat.S_ISREG(facts.st_mode) else _FOLDER if stat.S_ISDIR(facts.st_mode) else _OTHER


def _is_link(facts: os.stat_result) -> bool:
    """Return whether an entry leads to another place: a symbolic link, or a junction of Windows."""
    is_junction = getattr(facts, "st_reparse_tag", 0) == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)
    return stat.S_ISLNK(facts.st_mode) or is_junction


def _modified_ms(facts: os.stat_result) -> int:
    return facts.st_mtime_ns // 1_000_000


def _texts(buffers: StringBuffers) -> list[bytes | None]:
    valid, offsets, data, start, length, is_wide = buffers
    columns: list[Any] = [None if b is None else pa.py_buffer(b) for b in (valid, offsets, data)]
    kind = pa.large_binary() if is_wide else pa.binary()
    found: list[bytes | None] = pa.Array.from_buffers(kind, length, columns, offset=start).to_pylist()
    return found


def _names(names: NDArray[np.uint8], ends: NDArray[np.int64]) -> Iterator[str]:
    text = names.tobytes()
    start = 0
    for end in ends.tolist():
        if end <= start or end > len(text) or text[end - 1]:
            raise ValueError("the ends are not those of the names")
        yield os.fsdecode(text[start : end - 1])
        start = end


def _create(path: str, content: memoryview) -> int:
    try:
        handle = os.open(path, _CREATE, 0o666)
    except FileNotFoundError:
        make_directory(os.path.dirname(path), durable=False)
        handle = os.open(path, _CREATE, 0o666)
    try:
        while content:
            content = content[os.write(handle, content) :]
        return _modified_ms(os.fstat(handle))
    finally:
        os.close(handle)
