"""Storage of the Arrow engine: local disks directly, everything else through fsspec."""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from delta_core.engine import Listing, PutResult, RangeRequest
from delta_core.engines.arrow.credentials import fsspec_options
from delta_core.engines.arrow.ranges import join_ranges
from delta_core.errors import EngineError, InvalidArgumentError, MissingDependencyError

__all__ = ["FsspecStorage", "LocalStorage", "open_storage"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
#: Calls under way at once on a remote store.
CONCURRENCY = 64
#: Ranges of one remote file closer than this are fetched by one call.
REMOTE_GAP = 256 * 1024


def open_storage(uri: str, options: Mapping[str, Any] | None = None) -> LocalStorage | FsspecStorage:
    """Return the storage for a table's URI or path; does no I/O."""
    if not uri:
        raise InvalidArgumentError("The table's URI is empty; expected a path or a URI such as s3://bucket/table.")
    scheme = _scheme(uri)
    if scheme in ("", "file", "local"):
        return LocalStorage(os.path.abspath(os.path.expanduser(_local(uri))), dict(options or {}))
    return FsspecStorage(uri.rstrip("/"), dict(options or {}))


def _scheme(uri: str) -> str:
    match = _SCHEME.match(uri)
    # one letter before the colon is a drive, not a scheme
    return match[1].lower() if match else ""


def _local(uri: str) -> str:
    """Return the path of a ``file:`` URI or of a plain path; URIs from users are percent-decoded."""
    return unquote(urlsplit(uri).path) if _scheme(uri) in ("file", "local") else uri


class _Storage:
    """What both storages share: files elsewhere are served by the storage of their own scheme."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self._others: dict[str, LocalStorage | FsspecStorage] = {}

    def _other(self, path: str) -> LocalStorage | FsspecStorage:
        parts = urlsplit(path)
        place = "/" if _scheme(path) == "file" else f"{parts.scheme}://{parts.netloc}"
        if place not in self._others:
            self._others[place] = open_storage(place, self.options)
        return self._others[place]


class LocalStorage(_Storage):
    """Files of this machine."""

    def __init__(self, root: str, options: dict[str, Any] | None = None) -> None:
        super().__init__(options or {})
        self.root = root

    def local_path(self, path: str) -> str | None:
        """Return the absolute path; None where a URI leads to another store."""
        scheme = _scheme(path)
        if scheme == "":
            return os.path.join(self.root, path)
        return re.sub(r"^[A-Za-z]+:/*", "/", path) if scheme in ("file", "local") else None

    def uri(self, path: str) -> str:
        """Return the absolute path, or the URI as it is."""
        return self.local_path(path) or path

    def list_from(self, directory: str, start: str = "") -> Listing:
        """List names without asking for sizes: that would cost a call a file."""
        try:
            names = os.listdir(os.path.join(self.root, directory))
        except (FileNotFoundError, NotADirectoryError):
            return Listing([])
        except OSError as e:
            raise _failed("list", directory, self.root, e) from e
        return Listing(sorted(n for n in names if n >= start))

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file."""
        out = []
        for path in paths:
            local = self.local_path(path)
            if local is None:
                out += self._other(path).stat([path])
                continue
            found = os.stat(local)
            out.append((found.st_size, found.st_mtime_ns // 1_000_000))
        return out

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges, in the order asked."""
        out: list[bytes | memoryview] = []
        for r in requests:
            local = self.local_path(r.path)
            if local is None:
                out += self._other(r.path).read([r])
                continue
            try:
                with open(local, "rb", buffering=0) as f:
                    if r.offset:
                        f.seek(r.offset)
                    out.append(_read_fully(f, r.length))
            except FileNotFoundError:
                raise
            except OSError as e:
                raise _failed("read", r.path, self.root, e) from e
        return out

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access."""
        local = self.local_path(path)
        return self._other(path).open(path, size) if local is None else pa.OSFile(local, "rb")

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create the file whole by linking a synced temporary one to its name."""
        target = os.path.join(self.root, path)
        temporary = self._write_temporary(target, data)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return "exists"
        except OSError as e:
            raise _failed("create", path, self.root, e) from e
        finally:
            os.unlink(temporary)
        _sync_directory(os.path.dirname(target))
        return "created"

    def put(self, path: str, data: bytes) -> None:
        """Replace the file by a synced temporary one."""
        target = os.path.join(self.root, path)
        os.replace(self._write_temporary(target, data), target)
        _sync_directory(os.path.dirname(target))

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to be written piece by piece."""
        local = self.local_path(path)
        if local is None:
            return self._other(path).create(path)
        try:
            return pa.OSFile(local, "wb")
        except FileNotFoundError:
            os.makedirs(os.path.dirname(local), exist_ok=True)
            return pa.OSFile(local, "wb")

    @contextmanager
    def put_stream(self, path: str) -> Iterator[IO[bytes]]:
        """Write a temporary file, which replaces the one of this name when it is whole and synced."""
        target = os.path.join(self.root, path)
        temporary = _temporary_name(target)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(temporary, "xb") as f:
                yield f
                f.flush()
                os.fsync(f.fileno())
            os.replace(temporary, target)
        except BaseException as e:
            _unlink_if_there(temporary)
            if isinstance(e, OSError):
                raise _failed("write", path, self.root, e) from e
            raise
        _sync_directory(os.path.dirname(target))

    def _write_temporary(self, target: str, data: bytes) -> str:
        temporary = _temporary_name(target)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(temporary, "xb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        except OSError as e:
            _unlink_if_there(temporary)
            raise _failed("write", target, self.root, e) from e
        return temporary

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; a missing one is no error."""
        for path in paths:
            try:
                os.unlink(os.path.join(self.root, path))
            except FileNotFoundError:
                continue
            except OSError as e:
                raise _failed("delete", path, self.root, e) from e


def _temporary_name(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{uuid.uuid4().hex}.tmp")


def _unlink_if_there(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _read_fully(f: Any, length: int | None) -> bytes:
    if length is None:
        data: bytes = f.readall()
        return data
    parts = []
    while length > 0 and (part := f.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts) if len(parts) != 1 else parts[0]


def _sync_directory(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(verb: str, path: str, root: str, cause: BaseException) -> EngineError:
    return EngineError(f"Could not {verb} {path!r} of {root}: {type(cause).__name__}: {cause}.", path=path)


class FsspecStorage(_Storage):
    """Files of any fsspec filesystem.

    Parameters
    ----------
    root : str
        The table's URI.
    options : dict
        fsspec's own options, or the names that the ``deltalake`` package takes (see `credentials`).
    """

    def __init__(self, root: str, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.root = root
        self._scheme = _scheme(root)
        self._fs = _filesystem(root, options)
        self._base = self._fs._strip_protocol(root)
        self._pool: ThreadPoolExecutor | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FsspecStorage, (self.root, self.options)

    def local_path(self, path: str) -> str | None:
        """Return None: no file of this store is on this machine's disk."""
        return None

    def _key(self, path: str) -> str | None:
        """Return the filesystem's own path, None where another store holds the file."""
        scheme = _scheme(path)
        if scheme:
            return str(self._fs._strip_protocol(path)) if self._serves(path, scheme) else None
        if path.startswith("/"):
            netloc = urlsplit(self.root).netloc
            return str(self._fs._strip_protocol(f"{self._scheme}://{netloc}{path}"))
        return posixpath.join(self._base, path) if path else str(self._base)

    def _serves(self, path: str, scheme: str) -> bool:
        names = self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        return scheme in names and urlsplit(path).netloc == urlsplit(self.root).netloc

    def uri(self, path: str) -> str:
        """Return the URI."""
        if _scheme(path):
            return path
        if path.startswith("/"):
            return f"{self._scheme}://{urlsplit(self.root).netloc}{path}"
        return f"{self.root}/{path}"

    def list_from(self, directory: str, start: str = "") -> Listing:
        """List a directory with one call of the filesystem; it pages by itself."""
        key = self._key(directory)
        try:
            found = self._fs.ls(key, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return Listing([])
        except Exception as e:
            raise _failed("list", directory, self.root, e) from e
        entries = sorted(
            (name, e.get("size") or 0, _modified_ms(e))
            for e in found
            if e["type"] != "directory" and (name := posixpath.basename(e["name"].rstrip("/"))) >= start
        )
        modified = [m for _, _, m in entries]
        known = None if any(m is None for m in modified) else [m for m in modified if m is not None]
        return Listing([n for n, _, _ in entries], [s for _, s, _ in entries], known)

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file, asked concurrently."""

        def one(path: str) -> tuple[int, int]:
            key = self._key(path)
            if key is None:
                return self._other(path).stat([path])[0]
            found = self._fs.info(key)
            return int(found.get("size") or 0), _modified_ms(found) or 0

        return self._map(one, paths)

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

            return list(await asyncio.gather(*(one(k, r) for k, r in zip(keys, requests, strict=True)), return_exceptions=True))

        found = sync(self._fs.loop, gather)
        return [_unwrap(data, r, self.root) for data, r in zip(found, requests, strict=True)]

    def _fetch_one(self, r: RangeRequest) -> bytes | memoryview:
        key = self._key(r.path)
        if key is None:
            return self._other(r.path).read([r])[0]
        try:
            data: bytes = self._fs.cat_file(key, start=r.offset or None, end=_end(r))
        except Exception as e:
            return _unwrap(e, r, self.root)
        return data

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access; each read is one call."""
        key = self._key(path)
        if key is None:
            return self._other(path).open(path, size)
        extra = {} if size is None else {"size": size}
        try:
            return pa.PythonFile(self._fs.open(key, "rb", cache_type="none", **extra), "r")
        except FileNotFoundError:
            raise
        except Exception as e:
            raise _failed("open", path, self.root, e) from e

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create the object by the store's conditional put."""
        try:
            self._fs.pipe_file(self._key(path), data, mode="create")
        except FileExistsError:
            return "exists"
        except Exception as e:
            raise _failed("create", path, self.root, e) from e
        return "created"

    def put(self, path: str, data: bytes) -> None:
        """Write the object, replacing it."""
        try:
            self._fs.pipe_file(self._key(path), data)
        except Exception as e:
            raise _failed("write", path, self.root, e) from e

    def create(self, path: str) -> pa.NativeFile:
        """Open a new object to be written part by part; it is there once it is closed."""
        key = self._key(path)
        if key is None:
            return self._other(path).create(path)
        try:
            return pa.PythonFile(self._open_new(key), "w")
        except Exception as e:
            raise _failed("create", path, self.root, e) from e

    def _open_new(self, key: str) -> Any:
        try:
            return self._fs.open(key, "wb")
        except FileNotFoundError:  # stores with real directories
            self._fs.makedirs(posixpath.dirname(key), exist_ok=True)
            return self._fs.open(key, "wb")

    @contextmanager
    def put_stream(self, path: str) -> Iterator[IO[bytes]]:
        """Write to this machine's disk, and upload the file once it is whole."""
        with tempfile.NamedTemporaryFile(prefix="delta-", suffix=".tmp") as f:
            try:
                yield f
                f.flush()
            except OSError as e:
                raise _failed("write", path, self.root, e) from e
            try:
                self._fs.put_file(f.name, self._key(path))
            except Exception as e:
                raise _failed("write", path, self.root, e) from e

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects; a missing one is no error."""
        for path in paths:
            try:
                self._fs.rm_file(self._key(path))
            except FileNotFoundError:
                continue
            except Exception as e:
                raise _failed("delete", path, self.root, e) from e

    def _map(self, function: Any, items: Sequence[Any]) -> list[Any]:
        if len(items) == 1:
            return [function(items[0])]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="delta-storage")
        return list(self._pool.map(function, items))


def _filesystem(root: str, options: dict[str, Any]) -> Any:
    import fsspec

    scheme = _scheme(root)
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as e:
        raise MissingDependencyError(
            f"No filesystem for {scheme}:// is installed: {e}. Install it, e.g. pip install 'delta_core[{_EXTRAS.get(scheme, 'all')}]'.",
            scheme=scheme,
        ) from e
    except ValueError as e:
        raise InvalidArgumentError(f"fsspec knows no filesystem for {scheme}:// ({root}): {e}.", scheme=scheme) from e
    given = {**kind._get_kwargs_from_urls(root), **fsspec_options(scheme, options)}
    # a stale listing would hide commits
    given.setdefault("use_listings_cache", False)
    try:
        return fsspec.filesystem(scheme, **given)
    except Exception as e:
        raise EngineError(f"Could not open the filesystem of {root}: {type(e).__name__}: {e}.", path=root) from e


_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure", "adl": "azure"}


def _end(r: RangeRequest) -> int | None:
    return None if r.length is None else r.offset + r.length


def _unwrap(data: Any, r: RangeRequest, root: str) -> Any:
    if isinstance(data, (FileNotFoundError, EngineError)):
        raise data
    if isinstance(data, BaseException):
        raise _failed("read", r.path, root, data) from data
    return data


def _modified_ms(entry: Mapping[str, Any]) -> int | None:
    """Return the modification time of a listing's entry; filesystems spell it in different ways."""
    for name in ("LastModified", "last_modified", "mtime", "updated", "modified", "created"):
        value = entry.get(name)
        if value is None:
            continue
        if isinstance(value, (int, float)):
            return int(value * 1000)
        if hasattr(value, "timestamp"):
            return int(value.timestamp() * 1000)
        if isinstance(value, str):
            from datetime import datetime

            return int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1000)
    return None
