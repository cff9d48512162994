"""Places of data files as a file system of pyarrow, whose Parquet reader prunes row groups by their bounds.

The bounds of floating-point columns leave NaN out, and pyarrow takes them for bounds of all rows: a filter such as
``f != 1`` or ``is_nan(f)`` then loses rows, and a count by statistics is wrong. So the footers that it reads here lack
such bounds, unless their writer shows NaN in them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from delta_core.engines.interface import Storage
from delta_core.errors import UnsupportedOperationError
from delta_core.parquet.footer_check import without_float_bounds

__all__ = ["file_system"]

_MAGIC = b"PAR1"
#: The length of the footer, and the magic.
_END = 8
#: The bytes at the end of a file that pyarrow reads first.
_TAIL_BYTES = 64 << 10


def file_system(source: Storage | pafs.FileSystem, *, has_floats: bool) -> pafs.FileSystem:
    """Return a storage, or a file system, as one to read from; of a system without floats in its files that itself."""
    if isinstance(source, pafs.FileSystem):
        return pafs.PyFileSystem(_Files(_OfSystem(source), has_floats)) if has_floats else source
    return pafs.PyFileSystem(_Files(_OfStorage(source), has_floats))


class _OfStorage:
    """Opens and describes files of the engine's storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfStorage) and other._storage is self._storage

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # Python marks classes that are not hashable so

    def open(self, path: str) -> pa.NativeFile:
        return self._storage.open(path)

    def describe(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        stats = self._storage.stat(list(paths))
        return [pafs.FileInfo(p, pafs.FileType.File, size=size) for p, (size, _) in zip(paths, stats, strict=True)]


class _OfSystem:
    """Opens and describes files of another file system."""

    def __init__(self, system: pafs.FileSystem) -> None:
        self._system = system

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfSystem) and bool(other._system == self._system)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as above

    def open(self, path: str) -> pa.NativeFile:
        return self._system.open_input_file(path)

    def describe(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return list(self._system.get_file_info(list(paths)))


class _Files(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Files to read; those with floats have no bounds of these."""

    def __init__(self, source: _OfStorage | _OfSystem, has_floats: bool) -> None:
        self._source, self._has_floats = source, has_floats

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and other._source == self._source and other._has_floats == self._has_floats

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as above

    def get_type_name(self) -> str:
        return "delta_core"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return self._source.describe(paths)

    def open_input_file(self, path: str) -> pa.NativeFile:
        file = self._source.open(path)
        return pa.PythonFile(_Unbounded(file), "r") if self._has_floats else file

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self._source.open(path)

    def _reject(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedOperationError("The files of a table's dataset can only be read.")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _reject
    delete_file = move = copy_file = open_output_stream = open_append_stream = _reject


class _Unbounded(io.RawIOBase):
    """A Parquet file whose footer has no bounds of floating-point columns; its end is read once."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._size = file.size()
        self._at = 0
        self._start, self._tail = self._read_tail()

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Set the position."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, count: int | None = -1, /) -> bytes:
        """Read bytes from the position on."""
        return bytes(self.read_buffer(count).to_pybytes())

    def read_buffer(self, count: int | None = None) -> pa.Buffer:
        """Read bytes from the position on, without a copy of those before the end."""
        left = max(self._size - self._at, 0)
        count = left if count is None or count < 0 else min(count, left)
        begin, end = self._at, self._at + count
        self._at = end
        if end <= self._start:
            return self._before(begin, count)
        last = self._tail[max(begin - self._start, 0) : end - self._start]
        if begin >= self._start:
            return pa.py_buffer(last)
        return pa.py_buffer(self._before(begin, self._start - begin).to_pybytes() + last)

    def _before(self, begin: int, count: int) -> pa.Buffer:
        self._file.seek(begin)
        return self._file.read_buffer(count)

    def _read_tail(self) -> tuple[int, bytes]:
        tail = self._end(_TAIL_BYTES)
        size = int.from_bytes(tail[-_END:-4], "little") + _END
        if tail[-4:] != _MAGIC or size > self._size:
            return self._size - len(tail), tail  # pyarrow reports what it is
        tail = tail if size <= len(tail) else self._end(size)
        changed = without_float_bounds(tail[-size:-_END])
        return self._size - len(tail), tail if changed is None else tail[:-size] + changed + tail[-_END:]

    def _end(self, count: int) -> bytes:
        count = min(count, self._size)
        return bytes(self._before(self._size - count, count).to_pybytes())
