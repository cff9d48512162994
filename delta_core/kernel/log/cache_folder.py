"""A folder with the file tables of snapshots, which processes share: entries by key, checked, replaced whole, bounded.

An entry is one file: for each part of the log a mask of its live rows and an Arrow stream of their columns, then a
footer. Processes map it into memory. It is trusted only as the file that a full check found to be right: the check
leaves a stamp with the file's number, size and times, so that a file that was written to is checked again.
"""

from __future__ import annotations

import os
import stat
import time
import warnings
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import InvalidArgumentError
from delta_core.handles.secrets import shown_uri
from delta_core.runtime.arguments import path_text
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernel.log.file_columns import Mask
    from delta_core.kernel.log.files import Map

__all__ = ["CACHE_VARIABLE", "CachedPart", "SnapshotCache", "StoredPart", "find_cache"]

#: The environment variable that names the folder of the cache.
CACHE_VARIABLE = "DELTA_CORE_CACHE"
#: The entries are in this folder, whose name changes with their format.
_FOLDER = "snapshots-1"
_ENTRY, _STAMP, _TEMPORARY = ".files", ".checked", ".tmp"
_MAGIC = b"DCFILES1"
#: The end of an entry: the footer's place, length and checksum, and the magic number.
_END = Layout("<QQI4x8s")
_ALIGNMENT = 64
#: A temporary file this many seconds old is of a process that was killed.
_MOST_SECONDS = 600
#: The times of a file do not change if it is written to again within this many seconds, so it is not trusted yet.
_YOUNG_SECONDS = 2.0

_warned: set[str] = set()


class CachedPart(Struct, frozen=True):
    """The live rows of one part of the log, to be stored.

    Parameters
    ----------
    number : int
        Which chunk of the log they are of.
    source : str
        The chunk's source.
    alive : bool[n]
        Which rows of the chunk are live files.
    table : pyarrow.Table
        The columns of these.
    nulls : tuple of str
        Columns without a value, whose type follows from their name.
    """

    number: int
    source: str
    alive: Mask
    table: pa.Table
    nulls: tuple[str, ...]


class _Place(Struct, frozen=True):
    """A run of bytes of an entry and its checksum."""

    at: int
    length: int
    checksum: int


class _PartFooter(Struct, frozen=True):
    number: int
    source: str
    num_rows: int
    num_live: int
    mask: _Place
    table: _Place
    nulls: tuple[str, ...]


class _Footer(Struct, frozen=True):
    key: str
    num_chunks: int
    parts: tuple[_PartFooter, ...]


class StoredPart:
    """The live rows of one part of the log, in an entry that is mapped into memory."""

    def __init__(self, footer: _PartFooter, content: mmap) -> None:
        self.number: int = footer.number
        self.source: str = footer.source
        self.num_rows: int = footer.num_rows
        self.num_live: int = footer.num_live
        self.nulls: frozenset[str] = frozenset(footer.nulls)
        self._footer = footer
        self._content = content

    @cached_property
    def alive(self) -> Mask:
        """Which rows of the chunk are live files."""
        place = self._footer.mask
        packed: NDArray[np.uint8] = np.frombuffer(self._content, np.uint8, place.length, place.at)
        return np.unpackbits(packed, count=self.num_rows).view(np.bool_)

    @cached_property
    def table(self) -> pa.Table:
        """The columns of the live rows; nothing is copied."""
        place = self._footer.table
        with pa.ipc.open_stream(pa.py_buffer(self._content).slice(place.at, place.length)) as reader:
            return reader.read_all()

    def check(self) -> bool:
        """Whether the bytes are those that were written."""
        with memoryview(self._content) as content:
            for place in (self._footer.mask, self._footer.table):
                if zlib.crc32(content[place.at : place.at + place.length]) != place.checksum:
                    return False
        return True


class StoredFiles(Struct, frozen=True):
    """An entry.

    Parameters
    ----------
    num_chunks : int
        The number of chunks of the log, with those that have no live row.
    parts : tuple of StoredPart
        Those that have live rows, newest first.
    """

    key: str
    num_chunks: int
    parts: tuple[StoredPart, ...]

    @property
    def count(self) -> int:
        """The number of live files."""
        return sum(p.num_live for p in self.parts)


class SnapshotCache(Struct, frozen=True):
    """A folder in which processes of one user share the file tables of the snapshots that they open.

    A table that is opened again, by any of them, maps its file table into memory in place of decoding the checkpoint
    and the commits. An entry is used only for exactly the files of the log that it was made of, and for later commits
    on top of them.

    Parameters
    ----------
    folder : str or path
        The folder, on a local disk. It is created if it does not exist; what is made in it is for its user only.
    max_bytes : int
        The most bytes of all entries. The entries that were used least recently are deleted first.
    least_files : int
        Tables with fewer files are not stored: to read their log takes no longer.

    Raises
    ------
    InvalidArgumentError
        For numbers below 0, and for a URI.

    Examples
    --------
    >>> cache = SnapshotCache("cache", max_bytes=1_000_000_000, least_files=0)
    >>> DeltaTable("table", cache=cache).scan().files(["path"]).num_rows
    2
    >>> cache.count()
    1
    """

    folder: str | os.PathLike[str]
    max_bytes: int = 4_000_000_000
    least_files: int = 1_000

    def __post_init__(self) -> None:
        text = path_text(self.folder)
        if "://" in text:
            raise InvalidArgumentError(f"Found the cache {shown_uri(text)!r}, expected a folder on a local disk.")
        for name in ("max_bytes", "least_files"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InvalidArgumentError(f"Found {name}={value!r}, expected a number from 0 on.")

    def count(self) -> int:
        """Return the number of entries.

        Examples
        --------
        >>> SnapshotCache("empty").count()
        0
        """
        return len(self.keys())

    def clear(self) -> None:
        """Delete all entries; processes that use them are not disturbed.

        Examples
        --------
        >>> cache = SnapshotCache("cache", least_files=0)
        >>> DeltaTable("table", cache=cache).scan().files(["path"]).num_rows
        2
        >>> cache.clear()
        >>> cache.count()
        0
        """
        with suppress(OSError):
            for entry in list(os.scandir(self._place)):
                if entry.name.endswith((_ENTRY, _STAMP, _TEMPORARY)):
                    _remove(entry.path)

    @property
    def _place(self) -> str:
        return os.path.join(self._root, _FOLDER)

    @property
    def _root(self) -> str:
        return os.path.expanduser(self.folder)

    def _path(self, key: str, ending: str) -> str:
        return os.path.join(self._place, key + ending)

    def prepare(self) -> bool:
        """Create the folder; return whether it can be used. If not, a warning reports why, once.

        Examples
        --------
        >>> SnapshotCache("prepared").prepare()
        True
        """
        problem = self._made()
        if problem and self._place not in _warned:
            _warned.add(self._place)
            warnings.warn(
                f"The snapshot cache {os.fspath(self.folder)} is not used: {problem}. Pass a folder that this user can "
                "write.",
                RuntimeWarning,
                stacklevel=2,
            )
        return not problem

    def _made(self) -> str:
        """Create the folder; return why it can't be used, empty if it can."""
        try:
            os.makedirs(self._root, 0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self._place, 0o700)
            found = os.lstat(self._place)
            if not stat.S_ISDIR(found.st_mode):
                return f"{self._place} is not a folder"
            if hasattr(os, "getuid") and found.st_uid != os.getuid():
                return f"{self._place} is of another user"
            if stat.S_IMODE(found.st_mode) != 0o700:
                os.chmod(self._place, 0o700)
        except OSError as e:
            return str(e)
        return "" if os.access(self._place, os.W_OK | os.X_OK) else f"{self._place} can't be written"

    def keys(self) -> set[str]:
        """Return the keys of the entries.

        Examples
        --------
        >>> SnapshotCache("empty").keys()
        set()
        """
        try:
            return {n.removesuffix(_ENTRY) for n in os.listdir(self._place) if n.endswith(_ENTRY)}
        except OSError:
            return set()

    def open(self, key: str, run: Map, *, is_own: bool = False) -> StoredFiles | None:
        """Return an entry; None if there is none. One that is damaged is deleted.

        Parameters
        ----------
        key : str
            Its key.
        run : Map
            Runs the check of the parts on threads.
        is_own : bool
            Whether this process wrote it just now.

        Examples
        --------
        >>> SnapshotCache("empty").open("unknown", map) is None
        True
        """
        path, stamp = self._path(key, _ENTRY), self._path(key, _STAMP)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return None
        try:
            found = os.fstat(descriptor)
            content = mmap(descriptor, 0, access=ACCESS_READ)
        except (OSError, ValueError):  # nothing can be mapped of an empty file
            content = None
        finally:
            os.close(descriptor)
        files = None if content is None else _parsed(key, content)
        if files is None:
            self.discard(key)
            return None
        expected = _stamp_of(found)
        if is_own:
            return files
        if _read(stamp) == expected:
            with suppress(OSError):
                os.utime(stamp)
            return files
        if not all(run(lambda part: part.check(), files.parts)):
            self.discard(key)
            return None
        if time.time() - found.st_ctime > _YOUNG_SECONDS:
            with suppress(OSError):
                self._write(stamp, [expected])
        return files

    def discard(self, key: str) -> None:
        """Delete an entry.

        Parameters
        ----------
        key : str
            Its key.

        Examples
        --------
        >>> cache = SnapshotCache("cache", least_files=0)
        >>> DeltaTable("table", cache=cache).scan().files(["path"]).num_rows
        2
        >>> for key in cache.keys():
        ...     cache.discard(key)
        >>> cache.count()
        0
        """
        _remove(self._path(key, _ENTRY))
        _remove(self._path(key, _STAMP))

    def store(self, key: str, num_chunks: int, parts: Iterable[CachedPart], is_right: Any) -> bool:
        """Write an entry, whole or not at all; return whether it was written.

        Parameters
        ----------
        key : str
            Its key.
        num_chunks : int
            The number of chunks of the log.
        parts : iterable of CachedPart
            Its content, consumed piece by piece.
        is_right : function() -> bool
            Is called before the entry becomes visible; if false, it never does.

        Examples
        --------
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> from delta_core.kernel.log.cache_folder import CachedPart
        >>> cache = SnapshotCache("stored")
        >>> cache.prepare()
        True
        >>> part = CachedPart(0, "commits", np.array([False, True]), pa.table({"path": ["new"]}), ())
        >>> cache.store("key", 1, [part], lambda: True)
        True
        >>> cache.open("key", map).count
        1
        """
        if self._is_written(key):
            return False
        temporary = self._path(key, f".{os.urandom(8).hex()}{_TEMPORARY}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with open(descriptor, "wb") as file:
                    if not _write_entry(file, key, num_chunks, parts, self.max_bytes):
                        return False
                    file.flush()
                    os.fsync(file.fileno())
                if not is_right():
                    return False
                os.replace(temporary, self._path(key, _ENTRY))
            finally:
                _remove(temporary)
        except (OSError, pa.ArrowException):
            return False
        self._trim(key)
        return True

    def _is_written(self, key: str) -> bool:
        """Whether another process writes the entry now."""
        now = time.time()
        with suppress(OSError):
            for name in os.listdir(self._place):
                if name.startswith(key) and name.endswith(_TEMPORARY):
                    with suppress(OSError):
                        if abs(now - os.stat(os.path.join(self._place, name)).st_mtime) < _MOST_SECONDS:
                            return True
        return False

    def _write(self, path: str, pieces: Sequence[bytes]) -> None:
        temporary = f"{path}.{os.urandom(8).hex()}{_TEMPORARY}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(pieces)
            os.replace(temporary, path)
        finally:
            _remove(temporary)

    def _trim(self, newest: str) -> None:
        """Delete what was used least recently until the bound holds, and what killed processes left."""
        now = time.time()
        used: dict[str, float] = {}
        entries: dict[str, os.stat_result] = {}
        total = 0
        with suppress(OSError):
            for entry in list(os.scandir(self._place)):
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_TEMPORARY):
                        if now - found.st_mtime > _MOST_SECONDS:
                            _remove(entry.path)
                        else:
                            total += found.st_size
                    elif entry.name.endswith(_ENTRY):
                        entries[entry.name.removesuffix(_ENTRY)] = found
                        total += found.st_size
                    elif entry.name.endswith(_STAMP):
                        used[entry.name.removesuffix(_STAMP)] = found.st_mtime
        for key in used.keys() - entries.keys():
            _remove(self._path(key, _STAMP))
        for key in sorted(entries, key=lambda k: max(entries[k].st_mtime, used.get(k, 0.0))):
            if total <= self.max_bytes:
                return
            if key != newest:
                self.discard(key)
                total -= entries[key].st_size


def find_cache(cache: Any) -> SnapshotCache | None:
    """Return the cache that an argument names, or the environment; None for none.

    Parameters
    ----------
    cache : SnapshotCache, str, path, False or None
        The argument ``cache``; None: the folder of the variable ``DELTA_CORE_CACHE``, False: none whatever it is.

    Raises
    ------
    ArgumentTypeError
        If it is none of these.
    """
    if cache is False:
        return None
    if isinstance(cache, SnapshotCache):
        return cache
    folder = os.environ.get(CACHE_VARIABLE) if cache is None else path_text(cache)
    return SnapshotCache(folder) if folder else None


def _write_entry(file: Any, key: str, num_chunks: int, parts: Iterable[CachedPart], most: int) -> bool:
    footers: list[_PartFooter] = []
    for part in parts:
        mask = _append(file, np.packbits(part.alive).tobytes())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.table.schema) as writer:
            writer.write_table(part.table)
        table = _append(file, sink.getvalue())
        if file.tell() > most:
            return False
        count = len(part.alive)
        footers.append(_PartFooter(part.number, part.source, count, part.table.num_rows, mask, table, part.nulls))
    footer = msgspec.json.encode(_Footer(key, num_chunks, tuple(footers)))
    place = _append(file, footer)
    file.write(_END.pack(place.at, place.length, place.checksum, _MAGIC))
    return bool(file.tell() <= most)


def _append(file: Any, content: Any) -> _Place:
    file.write(bytes(-file.tell() % _ALIGNMENT))
    at = file.tell()
    view = memoryview(content)
    file.write(view)
    return _Place(at, view.nbytes, zlib.crc32(view))


def _parsed(key: str, content: mmap) -> StoredFiles | None:
    """Return an entry whose footer is right; None for any other."""
    size = len(content)
    if size < _END.size:
        return None
    at, length, checksum, magic = _END.unpack(content[size - _END.size :])
    if magic != _MAGIC or at + length != size - _END.size:
        return None
    text = content[at : at + length]
    if zlib.crc32(text) != checksum:
        return None
    try:
        footer = msgspec.json.decode(text, type=_Footer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    places = [p for part in footer.parts for p in (part.mask, part.table)]
    if footer.key != key or any(p.at < 0 or p.length < 0 or p.at + p.length > at for p in places):
        return None
    return StoredFiles(key, footer.num_chunks, tuple(StoredPart(p, content) for p in footer.parts))


def _stamp_of(found: os.stat_result) -> bytes:
    parts = (_boot(), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return ":".join(map(str, parts)).encode()


def _boot() -> str:
    """Return a text of this start of the machine, after which what was on its disk is checked again."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", 0) as file:
            return file.read(1024)
    except OSError:
        return b""


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
