"""Bytes of data files, read through the storage of an engine, and where the files of a version are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from delta_core.api import DataFileError, DataFileNotFoundError, RangeRequest, Storage, UnsupportedFeatureError
from delta_plugins.lance.manifest import BasePath

__all__ = ["Places", "StoredFile"]

#: The end of a file, which has the footer and the metadata of its columns; a smaller file is read whole.
TAIL_BYTES = 64 << 10
#: Most columns of one page have metadata of fewer bytes, with their part of the schema; more than this is not read.
_COLUMN_BYTES, _MOST_MORE = 320, 1 << 20


class StoredFile:
    """The bytes of one data file (`files.ByteSource`). Its last bytes are read once, with the first request of some.

    Parameters
    ----------
    storage : Storage
        Where it is.
    path : str
        As the storage takes it.
    size : int
        How many bytes it has.
    num_columns : int
        How many columns it has, at most; the last bytes of a remote file with many columns are more.
    """

    __slots__ = ("_ahead", "_path", "_size", "_starts", "_storage", "_tail", "_tail_start", "is_remote")

    def __init__(self, storage: Storage, path: str, size: int, num_columns: int = 0) -> None:
        self._storage = storage
        self._path = path
        self._size = size
        self.is_remote = storage.local_path(path) is None
        more = min(_COLUMN_BYTES * num_columns, _MOST_MORE) if self.is_remote else 0
        self._tail_start = max(size - TAIL_BYTES - more, 0)
        self._tail: memoryview | None = None
        self._ahead: dict[tuple[int, int], memoryview] = {}
        self._starts: list[tuple[int, int]] = []

    def read_at(self, offset: int, length: int) -> Any:
        """Return ``length`` bytes from ``offset`` on."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """Return the bytes of each (offset, length).

        Raises
        ------
        DataFileNotFoundError
            If the file is missing.
        DataFileError
            If it ends before a range does.
        """
        first = self._tail_start
        if all(first <= at and at + size <= self._size for at, size in ranges):
            if self._tail is None:
                [found] = self._read([(first, self._size - first)])
                self._tail = memoryview(found)
            return [self._tail[at - first : at - first + size] for at, size in ranges]
        if not self._ahead:
            return self._read(ranges)
        found = [self._kept(*r) for r in ranges]
        missing = [r for r, data in zip(ranges, found, strict=True) if data is None]
        more = iter(self._read(missing) if missing else ())
        return [next(more) if data is None else data for data in found]

    def read_ahead(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read ranges that are requested soon at once, and keep them until the next call; of a remote file only."""
        if not self.is_remote:
            return
        new = [r for r in ranges if r not in self._ahead]
        kept = {r: self._ahead[r] for r in ranges if r in self._ahead}
        self._ahead = kept | {r: memoryview(d) for r, d in zip(new, self._read(new) if new else (), strict=True)}
        self._starts = sorted(self._ahead)

    def _kept(self, offset: int, length: int) -> memoryview | None:
        """Return bytes that were read ahead; None if they were not."""
        i = bisect_right(self._starts, (offset, self._size)) - 1
        if i < 0 or offset + length > sum(self._starts[i]):
            return None
        at = offset - self._starts[i][0]
        return self._ahead[self._starts[i]][at : at + length]

    def _read(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        try:
            found = self._storage.read([RangeRequest(self._path, at, size) for at, size in ranges])
        except FileNotFoundError as e:
            raise missing(self._path) from e
        for (at, size), data in zip(ranges, found, strict=True):
            if len(data) != size:
                raise DataFileError(
                    f"Data file {self._path!r} is damaged: it ends at byte {at + len(data)}, but {size} bytes from "
                    f"byte {at} on were expected. Restore the file from a copy.",
                    path=self._path,
                )
        return found


def missing(path: str) -> DataFileNotFoundError:
    """Return the error of a data file that is not there."""
    return DataFileNotFoundError(
        f"Data file {path!r}, which the manifest names, is not there. If the dataset was cleaned up since it was "
        "opened, open its latest version; otherwise restore the file.",
        path=path,
    )


class Places:
    """Where the files of a version are, by the base path that they refer to.

    Parameters
    ----------
    below : str
        The folder of a branch below the root of the storage, empty for the main one.
    root : str
        The storage's root, as its manifests may name it.
    bases : Mapping of int to BasePath
        Of the manifest.
    """

    def __init__(self, below: str, root: str, bases: Mapping[int, BasePath]) -> None:
        self._folders = {-1: (below, True)}
        for base in bases.values():
            self._folders[base.id] = (_folder(base, below, root), base.is_dataset_root)

    def data(self, base: int, name: str) -> str:
        """Return the path of a data file; ``base`` is -1 for the dataset's own."""
        folder, is_root = self._folders[base]
        return _joined(folder, f"data/{name}" if is_root else name)

    def other(self, base: int, path: str) -> str:
        """Return the path of a file that is not in the folder ``data``, such as a deletion file."""
        return _joined(self._folders[base][0], path)


def _joined(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


def _folder(base: BasePath, below: str, root: str) -> str:
    path = base.path.rstrip("/")
    if path.startswith("/") or "://" in path:
        return "" if path == root.rstrip("/") else path
    if not below or not base.is_dataset_root:
        raise UnsupportedFeatureError(
            f"Base path {base.id} of the dataset is {base.path!r}, which depends on the folder that its writer ran in; "
            "expected an absolute path or URI. Create the dataset again with absolute paths.",
            path=base.path,
            feature="relative base paths",
        )
    # a branch was created through a relative path: its parent is the dataset that it is in, or a branch of that
    _, _, branch = path.rpartition("/tree/")
    return f"tree/{branch}" if branch and "/tree/" in path else ""
