"""Sets of files: hashes of their paths, compared with those of files that are found."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_core.kernel.log.paths import are_below_root
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import holds_bytes
from delta_core.storage.folders import text_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PathSet", "odd_paths"]

#: Whether disks take names for one that differ in case, or in dots and spaces at their end.
_TAKES_NAMES_FOR_ONE = sys.platform in ("win32", "darwin")
#: A path that is absolute, or has an empty part or dots: which file it is depends on the store.
_ODD = r"^[A-Za-z][A-Za-z0-9+.\-]*:|(?:^|/)\.{0,2}(?:/|$)"


class PathSet:
    """A set of files, by hashes of their paths.

    A path from the table's root represents one file. A path in any other form (an absolute URI, one with dots)
    represents every file of its name: a store can be reached under several names, and then too many files are in the
    set, never too few.

    Notes
    -----
    Takes 8 bytes a file. Hashes have 64 bits and a random key, and one that two paths share puts both into the set.
    """

    def __init__(self) -> None:
        self._secret = np.frombuffer(os.urandom(16), np.uint64)
        self._paths = _Hashes()
        self._names = _Hashes()

    def add(self, paths: pa.Array) -> None:
        """Add files.

        Parameters
        ----------
        paths : pyarrow.StringArray
            Their decoded paths; null is none.
        """
        paths = pc.drop_null(paths)
        if not len(paths):
            return
        odd = odd_paths(paths)
        paths = _folded(paths)
        self._paths.append(text_hashes(paths, self._secret))
        if odd is not None:
            self._names.append(text_hashes(_names_of(pc.filter(paths, odd)), self._secret))

    def contains(self, paths: pa.Array) -> NDArray[np.bool_]:
        """Return which files are in the set, bool[n_files].

        Parameters
        ----------
        paths : pyarrow.StringArray, shape (n_files,)
            Their decoded paths from the root.
        """
        paths = _folded(paths)
        found = self._paths.contain(text_hashes(paths, self._secret))
        return found | self._names.contain(text_hashes(_names_of(paths), self._secret)) if self._names else found


class _Hashes:
    """Hashes that are sorted when they are looked up."""

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.uint64)
        self._added: list[NDArray[np.uint64]] = []

    def __bool__(self) -> bool:
        return bool(len(self._sorted) or self._added)

    def append(self, hashes: NDArray[np.uint64]) -> None:
        self._added.append(hashes)

    def contain(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if self._added:
            # sorted in place, duplicates and all: there may be many
            self._sorted, self._added = np.concatenate([self._sorted, *self._added]), []
            self._sorted.sort()
        known = self._sorted
        if not len(known):
            return np.zeros(len(hashes), bool)
        at = np.searchsorted(known, hashes)
        at[at == len(known)] = 0
        return np.asarray(known[at] == hashes)


def odd_paths(paths: pa.Array) -> pa.BooleanArray | None:
    """Return which decoded paths are not plainly below the root, None if all are."""
    if are_below_root(paths) and not holds_bytes(paths, b"//", b"./"):
        return None
    return pc.match_substring_regex(paths, _ODD)


def _folded(paths: pa.Array) -> pa.Array:
    """Return paths that are equal if a disk of this system may take them for one; too many are, never too few."""
    if not _TAKES_NAMES_FOR_ONE:
        return paths
    return pc.replace_substring_regex(pc.utf8_lower(paths), r"[. ]+(/|$)", r"\1")


def _names_of(paths: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(paths, r"(?s)^.*/", "")
