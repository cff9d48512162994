"""Storage on every filesystem that fsspec supports: object stores first of all."""

from __future__ import annotations

import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import WALKED_FILE, FileIdentity, FolderFiles, Listing, PutResult, RangeRequest
from delta_core.errors import DeltaError
from delta_core.kernels.arrow_buffers import array_of
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import ThreadPool
from delta_core.storage.boundary import AllowExternal, CrossStoreStorage, Opener, Place, Renewal, has_dots
from delta_core.storage.filesystems import (
    endpoint,
    entity_tag,
    has_own,
    http_status,
    modified_ms,
    open_filesystem,
    protocols,
)
from delta_core.storage.object_listing import BULK, Walked, bulk_delete, first_keys, lister, walk_keys
from delta_core.storage.places import StoreErrors, scheme_of, store_error
from delta_core.storage.ranges import REMOTE_GAP, join_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FsspecStorage", "MemoryStorage", "RenameStorage", "make_pool", "open_remote"]

#: Calls under way at once on a remote store.
CONCURRENCY = 64
#: An upload of no more bytes goes into one conditional put, as a commit does.
_PUT_AT_ONCE = 16 << 20
#: Filesystems whose larger uploads are conditional too.
_CREATES_UPLOADS = frozenset({"s3", "gs", "abfs"})
#: The most folders that are remembered while the keys of a store are listed.
_MOST_FOLDERS = 100_000
#: A path with an empty part or with dots is a name of its own on some stores, and of another file on others.
_ODD_PATH = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\0")


def open_remote(
    root: str,
    options: dict[str, Any],
    opener: Opener | None = None,
    allow_external: AllowExternal = None,
    renewal: Renewal | None = None,
) -> FsspecStorage:
    """Return the storage of a URI, of the kind that its filesystem's way of creating files requires; does no I/O."""
    filesystem = open_filesystem(root, options)
    if "memory" in protocols(filesystem):
        return MemoryStorage(root, options, opener, allow_external, renewal)
    kind = FsspecStorage if has_own(filesystem, "pipe_file") or has_own(filesystem, "_pipe_file") else RenameStorage
    return kind(root, options, opener, allow_external, renewal)


class FsspecStorage(CrossStoreStorage):
    """Files of a filesystem that itself creates a file only if there is none, as object stores do.

    Parameters
    ----------
    root : str
        The table's URI.
    options : dict
        fsspec's own options, or the names that the ``deltalake`` package takes (see `credentials`).
    renewal : function() -> Mapping, optional
        Returns the options that are valid now, the same object until they change.
    """

    options: dict[str, Any]
    _renewal: Renewal | None = None

    def __init__(
        self,
        root: str,
        options: dict[str, Any],
        opener: Opener | None = None,
        allow_external: AllowExternal = None,
        renewal: Renewal | None = None,
    ) -> None:
        super().__init__(root, options, opener, allow_external)
        self._renewal = renewal
        self._renewed: Any = options
        self._scheme = scheme_of(root)
        self._filesystem = PerProcess(partial(open_filesystem, root, options))
        self._base = str(self._fs._strip_protocol(root))
        self._lister = lister(self._fs)
        self._pool = PerProcess(make_pool)
        #: Which store this is: what was proven of one holds for it alone.
        self.store: str | None = f"{self._scheme}://{urlsplit(root).netloc}" + endpoint(self._fs)

    def __reduce__(self) -> tuple[Any, ...]:
        renewal = () if self._renewal is None else (self._renewal,)
        return type(self), (self.root, self.options, self._opener, self._allow_external, *renewal)

    @property
    def has_issued_credentials(self) -> bool:
        """Whether the credentials are issued, and renewed, by a catalog."""
        return self._renewal is not None

    @property
    def _fs(self) -> Any:
        if self._renewal is not None and (found := self._renewal()) is not self._renewed:
            # threads that do so at once make filesystems that are equal
            self._filesystem = PerProcess(partial(open_filesystem, self.root, found))
            self.options = dict(found)
            self._renewed = found
        return self._filesystem.get()

    # --- names ---

    def local_path(self, path: str) -> str | None:
        """Return None: no file of this store is on this machine's disk; raises ExternalPathError as `read` would."""
        if not self._boundary.is_plain(path):
            self._own_place(path)
        return None

    def local_paths(self, paths: Sequence[str]) -> list[str | None]:
        """Return None for each path; raises ExternalPathError as `read` would."""
        return [self.local_path(p) for p in paths]

    def _key(self, path: str) -> str | None:
        """Return the filesystem's own path, None if another store, which is followed, holds the file."""
        if self._boundary.is_plain(path):
            return posixpath.join(self._base, path) if path else self._base
        place = self._own_place(path)
        if place is None:
            return None
        if place.is_below(self._boundary.root):
            return posixpath.join(self._base, self._below(place))
        return str(self._fs._strip_protocol(self._origin + place.path))

    def _below(self, place: Place) -> str:
        """Return the path from the root of a place below it."""
        return place.path[len(self._boundary.root.path.rstrip("/")) :].lstrip("/")

    def _inside(self, path: str) -> str:
        """Return the filesystem's own path of a file below the root; raises ExternalPathError for any other."""
        self._boundary.check_inside(path)
        key = self._key(path)
        assert key is not None
        return key

    @property
    def _origin(self) -> str:
        """The URI of the store's root, without a slash."""
        return f"{self._scheme}://{urlsplit(self.root).netloc}"

    def uri(self, path: str) -> str:
        """Return the URI."""
        if self._boundary.is_plain(path):
            return f"{self.root}/{path}" if path else self.root
        place = self._own_place(path)
        if place is None or (scheme_of(path) and not has_dots(path)):
            return self._foreign_uri(path)
        return self._origin + place.path

    def uri_for_engine(self, path: str) -> str:
        """Return the URI, unless it lies in another bucket, which this storage reads without credentials."""
        if not self._boundary.is_plain(path) and not self._boundary.gets_credentials(self._boundary.place(path)):
            self._boundary.reject_credentials(path)
        return self.uri(path)

    # --- reading ---

    def list_from(self, directory: str, start: str = "", limit: int | None = None) -> Listing:
        """List a directory from a name on: by the store's own call if there is one, else by the filesystem's."""
        key = self._key(directory)
        if key is None:
            return self._other(directory).list_from(directory, start, limit)
        try:
            with StoreErrors("list", directory, self.root, (FileNotFoundError, NotADirectoryError)):
                if self._lister is not None:
                    return self._lister(self._fs, key.rstrip("/"), start, limit)
                return self._list_all(key, start)
        except (FileNotFoundError, NotADirectoryError):
            return Listing([])

    def first_names(self, limit: int) -> list[str] | None:
        """Return names of some files below the root, None if the store would list all of them for it."""
        with StoreErrors("list", "", self.root, (FileNotFoundError, NotADirectoryError)):
            return first_keys(self._fs, self._base, limit)

    def _list_all(self, key: str, start: str) -> Listing:
        entries = sorted(
            (name, e.get("size") or 0, modified_ms(e))
            for e in self._fs.ls(key, detail=True)
            if e["type"] != "directory" and (name := posixpath.basename(e["name"].rstrip("/"))) >= start
        )
        modified = [m for _, _, m in entries]
        known = None if any(m is None for m in modified) else [m for m in modified if m is not None]
        return Listing([n for n, _, _ in entries], [s for _, s, _ in entries], known)

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file, requested concurrently."""

        def one(path: str) -> tuple[int, int]:
            key = self._key(path)
            if key is None:
                return self._other(path).stat([path])[0]
            found = self._describe(path, key)
            return int(found.get("size") or 0), modified_ms(found) or 0

        return self._map(one, paths)

    def identify(self, paths: Sequence[str]) -> list[FileIdentity]:
        """Return each file's size and entity tag, requested concurrently."""

        def one(path: str) -> FileIdentity:
            key = self._key(path)
            if key is None:
                return self._other(path).identify([path])[0]
            found = self._describe(path, key)
            return FileIdentity(int(found.get("size") or 0), entity_tag(found), modified_ms(found))

        return self._map(one, paths)

    def _describe(self, path: str, key: str) -> dict[str, Any]:
        with StoreErrors("look at", path, self.shown, (FileNotFoundError,)):
            found: dict[str, Any] = self._fs.info(key)
            if found["type"] == "directory":
                raise FileNotFoundError(f"{path} is a directory")
            return found

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges concurrently; those of one file that lie close are joined."""
        return join_ranges(requests, self._fetch, REMOTE_GAP)

    def _fetch(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        keys = [self._key(r.path) for r in requests]
        if not self._fs.async_impl or None in keys or len(requests) == 1:
            return self._map(self._fetch_one, requests)
        return self._fetch_async([k for k in keys if k is not None], requests)

    def _fetch_async(self, keys: list[str], requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        import asyncio

        from fsspec.asyn import sync

        async def gather() -> list[Any]:
            gate = asyncio.Semaphore(CONCURRENCY)

            async def one(key: str, r: RangeRequest) -> Any:
                async with gate:
                    return await self._fs._cat_file(key, start=r.offset or None, end=_end(r))

            calls = [one(k, r) for k, r in zip(keys, requests, strict=True)]
            return list(await asyncio.gather(*calls, return_exceptions=True))

        found = sync(self._fs.loop, gather)
        return [self._unwrapped(data, r) for data, r in zip(found, requests, strict=True)]

    def _fetch_one(self, r: RangeRequest) -> bytes | memoryview:
        key = self._key(r.path)
        if key is None:
            return self._other(r.path).read([r])[0]
        try:
            data: Any = self._fs.cat_file(key, start=r.offset or None, end=_end(r))
        except Exception as e:  # noqa: BLE001 (raised below, as what it means)
            data = e
        return self._unwrapped(data, r)

    def _unwrapped(self, data: Any, r: RangeRequest) -> bytes | memoryview:
        """Return bytes; raise what came in their place."""
        if isinstance(data, (FileNotFoundError, DeltaError)):
            raise data
        if isinstance(data, BaseException):
            if r.offset and http_status(data) == 416:  # the range begins past the end
                return b""
            raise store_error("read", r.path, self.shown, data) from data
        found: bytes | memoryview = data
        return found

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access; each read is one call."""
        key = self._key(path)
        if key is None:
            return self._other(path).open(path, size)
        extra = {} if size is None else {"size": size}
        with StoreErrors("open", path, self.shown, (FileNotFoundError,)):
            return pa.PythonFile(self._fs.open(key, "rb", cache_type="none", **extra), "r")

    # --- writing ---

    def put_if_absent(
        self, path: str, data: bytes | Iterable[bytes], *, durable: bool = True, ready: Callable[[], None] | None = None
    ) -> PutResult:
        """Create the object by the store's conditional put."""
        key = self._inside(path)
        whole = data if isinstance(data, bytes) else b"".join(data)
        with StoreErrors("create", path, self.shown):
            if ready is not None:
                ready()
            return "created" if self._create(key, whole) else "exists"

    def _create(self, key: str, data: bytes) -> bool:
        return _created(lambda: self._fs.pipe_file(key, data, mode="create"))

    def put(self, path: str, data: bytes) -> None:
        """Write the object, replacing it."""
        key = self._inside(path)
        with StoreErrors("write", path, self.shown):
            self._fs.pipe_file(key, data)

    def create(self, path: str) -> pa.NativeFile:
        """Open a new object to be written part by part; it is there once it is closed."""
        key = self._inside(path)
        with StoreErrors("create", path, self.shown):
            return pa.PythonFile(self._open_new(key), "w")

    def _open_new(self, key: str) -> Any:
        try:
            return self._fs.open(key, "wb")
        except FileNotFoundError:  # stores with real directories
            self._fs.makedirs(posixpath.dirname(key), exist_ok=True)
            return self._fs.open(key, "wb")

    @contextmanager
    def put_stream(self, path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """Write to this machine's disk, and upload the file once it is whole.

        Raises
        ------
        EngineError
            If this machine's disk or the store fails.
        FileExistsError
            If the file exists and ``replace`` is false.
        """
        import tempfile

        key = self._inside(path)

        with tempfile.NamedTemporaryFile(prefix="delta-", suffix=".tmp") as f:
            try:
                yield f
                f.flush()
            except OSError as e:
                if isinstance(e, DeltaError):
                    raise
                raise store_error("write", path, self.shown, e) from e
            with StoreErrors("write", path, self.shown):
                created = self._upload(f.name, key, replace)
            if not created:
                raise FileExistsError(path)

    def copy(self, source: Storage, path: str, target: str) -> None:
        """Copy a file: on one object store by its own call, which moves no bytes here."""
        key = self._inside(target)
        origin = source._key(path) if isinstance(source, FsspecStorage) and self._copies_within(source) else None
        if origin is None:
            super().copy(source, path, target)
            return
        with StoreErrors("copy", path, self.shown, (FileNotFoundError,)):
            self._fs.cp_file(origin, key)

    def _copies_within(self, source: FsspecStorage) -> bool:
        """Whether the store itself can copy: it is one store, reached with the same credentials."""
        own = has_own(self._fs, "cp_file") or has_own(self._fs, "_cp_file")
        return own and source.store == self.store and source.options == self.options and type(source) is type(self)

    def _upload(self, local: str, key: str, replace: bool) -> bool:
        """Sync a file to the store; False if there is one that is not to be replaced."""
        if replace:
            self._fs.put_file(local, key)
            return True
        if self._fs.exists(key):
            return False
        try:
            if os.path.getsize(local) <= _PUT_AT_ONCE:
                with open(local, "rb") as file:
                    return self._create(key, file.read())
            if not _CREATES_UPLOADS.isdisjoint(protocols(self._fs)):
                return _created(lambda: self._fs.put_file(local, key, mode="create"))
        except Exception as e:
            if http_status(e) != 501:  # a store that has no conditional puts
                raise
        self._fs.put_file(local, key)
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, many at once; a missing one is no error."""

        def one(path: str) -> None:
            key = self._inside(path)
            with suppress(FileNotFoundError), StoreErrors("delete", path, self.shown, (FileNotFoundError,)):
                self._fs.rm_file(key)

        self._map(one, list(paths))

    def walk(self, skip: Callable[[str], bool], below: Sequence[str] = ("",)) -> Iterator[FolderFiles]:
        """Yield all files below folders: by the store's pages if they ignore folders, else folder by folder."""
        with StoreErrors("list", "", self.shown):
            if not below or walk_keys(self._fs, self._base) is None:
                yield from self._walk_folders(skip, below)
            elif len(below) == 1:
                yield from self._walk_pages(self._pages(below[0]), skip, below[0])
            else:
                for start in range(0, len(below), CONCURRENCY):
                    window = below[start : start + CONCURRENCY]
                    found = self._map(lambda folder: list(self._pages(folder)), window)
                    for folder, pages in zip(window, found, strict=True):
                        yield from self._walk_pages(iter(pages), skip, folder)

    def _pages(self, folder: str) -> Iterator[list[Walked]]:
        return walk_keys(self._fs, posixpath.join(self._base, folder) if folder else self._base) or iter(())

    def _walk_folders(self, skip: Callable[[str], bool], below: Sequence[str]) -> Iterator[FolderFiles]:
        waiting = list(below)
        while waiting:
            window, waiting = waiting[-CONCURRENCY:], waiting[:-CONCURRENCY]
            files, folders = self._listed(window)
            waiting += [folder for folder in folders if not skip(folder)]
            yield files

    def list_folders(self, folders: Sequence[str]) -> tuple[FolderFiles, list[str]]:
        """Return the files that lie in folders, and the folders in them."""
        with StoreErrors("list", "", self.shown):
            return self._listed(folders)

    def _listed(self, folders: Sequence[str]) -> tuple[FolderFiles, list[str]]:
        found = self._map(self._entries, folders)
        empty = tuple(w for w, (_, _, count) in zip(folders, found, strict=True) if w and not count)
        files = _walked([f for files, _, _ in found for f in files])
        return FolderFiles(files, empty, num_folders=len(folders)), [f for _, inside, _ in found for f in inside]

    def _entries(self, folder: str) -> tuple[list[Walked], list[str], int]:
        """Return the files and folders in a folder, and how many entries it has of whatever kind."""
        key = posixpath.join(self._base, folder) if folder else self._base
        try:
            listed = self._fs.ls(key, detail=True)
        except (FileNotFoundError, NotADirectoryError):  # deleted meanwhile
            return [], [], 1
        files: list[Walked] = []
        folders: list[str] = []
        for e in listed:
            name = posixpath.basename(e["name"].rstrip("/"))
            path = f"{folder}/{name}" if folder else name
            # an object may represent the folder itself
            if not name or e.get("islink") or posixpath.join(self._base, path).strip("/") != e["name"].strip("/"):
                continue
            if e["type"] == "directory":
                folders.append(path)
            elif e["type"] == "file" and not e["name"].endswith("/"):
                files.append((path, int(e.get("size") or 0), modified_ms(e)))
        return files, folders, len(listed)

    def _walk_pages(
        self, pages: Iterator[list[Walked]], skip: Callable[[str], bool], below: str
    ) -> Iterator[FolderFiles]:
        skipped = {below: False}
        head = f"{below}/" if below else ""

        def is_skipped(folder: str) -> bool:
            if folder not in skipped:
                if len(skipped) > _MOST_FOLDERS:
                    skipped.clear()
                    skipped[below] = False
                above = is_skipped(folder.rpartition("/")[0])
                skipped[folder] = above or skip(folder)
            return skipped[folder]

        last = None
        for found in pages:
            page = [(head + path, size, modified) for path, size, modified in found] if head else found
            folders = [path.rpartition("/")[0] for path, _, _ in page]
            chosen = [f for f, folder in zip(page, folders, strict=True) if not is_skipped(folder)]
            number = sum(a != b for a, b in zip([last, *folders], folders, strict=False))
            last = folders[-1] if folders else last
            yield FolderFiles(_walked(chosen), num_folders=number)

    def find(self, paths: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sizes and modification times of files below the root, requested concurrently; -1 if there is none."""

        def one(path: str) -> tuple[int, int]:
            try:
                found = self._describe(path, self._inside(path))
            except FileNotFoundError:
                return -1, -1
            return int(found.get("size") or 0), modified_ms(found) or -1

        found = np.array(self._map(one, paths.to_pylist()), np.int64).reshape(-1, 2)
        return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])

    def delete_files(self, paths: pa.Array) -> int:
        """Delete objects: by calls of the store for many at once if it has such a call."""
        names = paths.to_pylist()
        delete = bulk_delete(self._fs)
        if delete is None:
            self.delete(names)
            return len(names)
        keys = [self._inside(name) for name in names]
        windows = [keys[i : i + BULK] for i in range(0, len(keys), BULK)]
        with StoreErrors("delete files of", "", self.shown):
            self._map(partial(delete, self._fs), windows)
        return len(names)

    def delete_folders(self, paths: Sequence[str]) -> int:
        """Delete folders in which there is nothing; the others stay."""
        deleted = 0
        for path in paths:
            key = self._inside(path)
            with suppress(Exception):
                if not self._fs.ls(key, detail=False):
                    self._fs.rmdir(key)
                    deleted += 1
        return deleted

    def _map(self, function: Any, items: Sequence[Any]) -> list[Any]:
        if len(items) < 2:
            return [function(x) for x in items]
        return self._pool.get().map(function, items)


def _walked(files: Sequence[Walked]) -> pa.RecordBatch:
    """Return files as Arrow, those whose path could lead elsewhere left out."""
    chosen = [f for f in files if not _ODD_PATH.search(f[0])]
    columns = [array_of([f[i] for f in chosen], kind.type) for i, kind in enumerate(WALKED_FILE)]
    return pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE)


def make_pool() -> ThreadPool:
    """Return the threads of one storage's calls; none is started yet."""
    return ThreadPool(CONCURRENCY, "delta-storage")


class RenameStorage(FsspecStorage):
    """Files of a filesystem that can't create exclusively but whose rename fails if the target exists, as HDFS's.

    fsspec's own exclusive creation looks for the file first and then writes it: two writers would both succeed there.
    """

    def _create(self, key: str, data: bytes) -> bool:
        if not has_own(self._fs, "mv"):
            raise NotImplementedError(
                f"fsspec's filesystem for {self._scheme}:// neither creates files exclusively nor renames them in one "
                "step"
            )
        temporary = _temporary(key)
        try:
            with self._open_new(temporary) as file:
                file.write(data)
            try:
                self._fs.mv(temporary, key)
            except Exception:
                if self._fs.exists(key):
                    return False
                raise
            # some answer false instead of raising
            return not self._fs.exists(temporary)
        finally:
            with suppress(Exception):
                self._fs.rm_file(temporary)

    def _copies_within(self, source: FsspecStorage) -> bool:
        return False  # a copy that is under way would be visible

    def put(self, path: str, data: bytes) -> None:
        """Write a temporary file, which takes the place of the one of this name; for a moment there is none."""
        with self.put_stream(path) as file:
            file.write(data)

    def _upload(self, local: str, key: str, replace: bool) -> bool:
        temporary = _temporary(key)
        self._fs.makedirs(posixpath.dirname(key), exist_ok=True)
        try:
            self._fs.put_file(local, temporary)
            if replace:
                with suppress(FileNotFoundError):
                    self._fs.rm_file(key)
            elif self._fs.exists(key):
                return False
            try:
                self._fs.mv(temporary, key)
            except Exception:
                if replace or not self._fs.exists(key):
                    raise
                return False
            # some answer false instead of raising
            return replace or not self._fs.exists(temporary)
        finally:
            with suppress(Exception):
                self._fs.rm_file(temporary)


def _created(put: Callable[[], object]) -> bool:
    """Run a conditional put; False if the file exists."""
    try:
        put()
    except FileExistsError:
        return False
    except Exception as e:
        # stores that do not specify which of the request's conditions failed
        if http_status(e) == 412:
            return False
        raise
    return True


def _temporary(key: str) -> str:
    directory, name = posixpath.split(key)
    return f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"


class MemoryStorage(FsspecStorage):
    """Files of fsspec's memory filesystem, which is one for the whole process and guards nothing itself."""

    _guard = PerProcess(Lock)

    def _upload(self, local: str, key: str, replace: bool) -> bool:
        # the filesystem's own upload shows a file while it grows
        with open(local, "rb") as file:
            data = file.read()
        if not replace:
            return self._create(key, data)
        self._fs.pipe_file(key, data)
        return True

    def _create(self, key: str, data: bytes) -> bool:
        with self._guard.get():
            return super()._create(key, data)

    def _list_all(self, key: str, start: str) -> Listing:
        with self._guard.get():
            return super()._list_all(key, start)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access, with a position of its own: the filesystem hands out one object to all."""
        key = self._key(path)
        if key is None:
            return self._other(path).open(path, size)
        return pa.BufferReader(self.read([RangeRequest(path)])[0])


def _end(r: RangeRequest) -> int | None:
    return None if r.length is None else r.offset + r.length
