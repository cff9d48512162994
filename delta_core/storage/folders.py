"""Many files of a local disk at once: a folder's files as Arrow columns, and files found or deleted below a root."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels.arrow_buffers import is_utf8, number_array, plain_strings, string_array, string_buffers
from delta_core.storage._text_hashes import hashes

if sys.platform == "win32":
    from delta_core.storage.scanned_folders import create, entries, first_files, sync, visit
else:
    from delta_core.storage._folders import create, entries, first_files, sync, visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Folder",
    "create_files",
    "delete_files",
    "find_files",
    "first_files",
    "list_folder",
    "sync_files",
    "text_hashes",
]

_FILE, _FOLDER, _LINK, _OTHER = 0, 1, 2, 3


class Folder(Struct, frozen=True):
    """The entries of a folder.

    Parameters
    ----------
    paths : string array, **shape (n,)**
        Its files, each with the prefix that was passed.
    sizes, modified_ms : int64[n]
        Bytes, and ms since the epoch.
    folders, links : list of str
        Its folders and symbolic links, with the prefix.
    num_entries : int
        How many names there are, of whatever kind.
    unnamed : list of str
        Files whose names are no UTF-8, as `os.fsdecode` spells them.
    irregular : list of str
        Its pipes, sockets and devices, with the prefix.
    """

    paths: pa.Array[Any]
    sizes: NDArray[np.int64]
    modified_ms: NDArray[np.int64]
    folders: list[str]
    links: list[str]
    num_entries: int
    unnamed: list[str]
    irregular: list[str]


def list_folder(folder: str, prefix: str = "") -> Folder:
    """List a folder that is no symbolic link; releases the GIL.

    Files whose names are no UTF-8 are listed apart: no log can name them.

    Raises
    ------
    OSError
        If the folder can't be read.
    """
    data, table = entries(os.fsencode(folder), os.fsencode(prefix))
    ends = np.concatenate([np.zeros(1, np.int64), table[:, 0]])
    kinds = table[:, 3]
    everything = string_array(ends, data, np.ones(len(table), bool))
    taken = kinds == _FILE
    unnamed: list[str] = []
    if not is_utf8(everything):
        texts = [data[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        are_texts = np.array([_is_text(t) for t in texts], bool)
        unnamed = [os.fsdecode(texts[i]) for i in np.flatnonzero(taken & ~are_texts).tolist()]
        taken &= are_texts
    chosen = np.flatnonzero(taken)
    paths = everything if len(chosen) == len(table) else everything.take(number_array(chosen))
    folders, links, irregular = (
        [os.fsdecode(data[ends[i] : ends[i + 1]]) for i in np.flatnonzero(kinds == kind)]
        for kind in (_FOLDER, _LINK, _OTHER)
    )
    return Folder(paths, table[chosen, 1], table[chosen, 2], folders, links, len(table), unnamed, irregular)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def create_files(paths: Sequence[str], data: bytes | memoryview, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Create files with their content, and the folders that are missing; nothing is synced. Releases the GIL.

    Parameters
    ----------
    paths : sequence of str
        Absolute.
    data : buffer
        The concatenated files.
    ends : int64[n]
        Where each one ends.

    Returns
    -------
    modified_ms : int64[n]
        When each one was modified, ms since the epoch.

    Raises
    ------
    OSError
        If the disk fails, with the path; those after it were not created.
    """
    times, error, failed = create(*_names(paths), np.frombuffer(data, np.uint8), ends)
    if error:
        raise OSError(error, os.strerror(error), paths[failed])
    return times


def sync_files(paths: Sequence[str]) -> None:
    """Sync files and folders to the disk, one after the other. Releases the GIL.

    Parameters
    ----------
    paths : sequence of str
        Absolute.

    Raises
    ------
    OSError
        If the disk fails, with the path; those after it were not synced.
    """
    error, failed = sync(*_names(paths))
    if error:
        raise OSError(error, os.strerror(error), paths[failed])


def _names(paths: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return names, each followed by a zero byte, and where each one ends."""
    texts = [os.fsencode(path) for path in paths]
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    return np.frombuffer(bytearray(b"\0".join([*texts, b""])), np.uint8), ends


def find_files(root: str, paths: pa.Array[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sizes and modification times (ms since the epoch) of files below a root; -1 for those that are not there.

    A path through a symbolic link, or with ``.`` or ``..``, counts as not there. Releases the GIL.

    Raises
    ------
    OSError
        If the root can't be opened.
    """
    sizes, times, _ = _visit(root, paths, delete=False)
    return sizes, times


def delete_files(root: str, paths: pa.Array[Any]) -> NDArray[np.int32]:
    """Delete files below a root; return the error number of each, 0 if it was deleted. Releases the GIL.

    Notes
    -----
    Each folder of a path is opened on its own and no link is followed, so that nothing outside the root is deleted even
    if folders are replaced meanwhile. A path through a link has the error ELOOP or ENOTDIR, one with ``..`` EXDEV.

    Raises
    ------
    OSError
        If the root can't be opened.
    """
    errors: NDArray[np.int32] = _visit(root, paths, delete=True)[2]
    return errors


def _visit(root: str, paths: pa.Array[Any], delete: bool) -> Any:
    buffers = string_buffers(paths)
    if buffers is None:
        return (np.full(len(paths), -1, np.int64),) * 2 + (np.zeros(len(paths), np.int32),)
    return visit(os.fsencode(root), buffers, delete)


def text_hashes(texts: pa.Array[Any], secret: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of 64 bits of each text: equal texts have equal hashes. Releases the GIL.

    Parameters
    ----------
    texts : string array, **shape (n,)**
        Null has the hash 0.
    secret : uint64[2]
        Random numbers, so that no writer can choose texts that collide.
    """
    buffers = string_buffers(plain_strings(texts))
    return np.zeros(len(texts), np.uint64) if buffers is None else hashes(buffers, secret)
