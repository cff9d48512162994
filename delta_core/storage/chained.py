"""Storage on fsspec's chained URIs: a table within an archive, or in a cached store. It only reads."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, NoReturn

import pyarrow as pa

from delta_core.engines.records import PutResult, RangeRequest
from delta_core.errors import UnsupportedOperationError
from delta_core.runtime.processes import PerProcess
from delta_core.storage.boundary import AllowExternal, CrossStoreStorage, Opener
from delta_core.storage.filesystems import open_chain
from delta_core.storage.places import LINK, StoreErrors, scheme_of
from delta_core.storage.remote import FsspecStorage, make_pool

__all__ = ["ChainedStorage"]


class ChainedStorage(FsspecStorage):
    """Files of a chain of filesystems, such as ``zip://sales::s3://bucket/archive.zip`` or ``simplecache::s3://bucket/sales``.

    Chains do not specify whether they create a file exclusively, so every write is rejected.

    Parameters
    ----------
    options : dict
        fsspec's own for chains: those of each filesystem under its protocol's name, others for the first one.
    """

    def __init__(
        self, root: str, options: dict[str, Any], opener: Opener | None = None, allow_external: AllowExternal = None
    ) -> None:
        CrossStoreStorage.__init__(self, root, options, opener, allow_external, chained=True)
        self._scheme = scheme_of(root)
        self._chain = PerProcess(partial(open_chain, root, options))
        self._base = self._chain.get()[1]
        self._pool = PerProcess(make_pool)
        self._lister = None
        self.store: str | None = None

    @property
    def _fs(self) -> Any:
        return self._chain.get()[0]

    def uri(self, path: str) -> str:
        """Return the URI: the path goes into the first link that has one."""
        if not path:
            return self.root
        place = self._own_place(path)
        if place is None:
            return self._foreign_uri(path)
        links = self.root.split(LINK)
        at = next((i for i, link in enumerate(links) if "/" in link), 0)
        links[at] = posixpath.join(links[at], path if self._boundary.is_plain(path) else self._below(place))
        return LINK.join(links)

    # a cache hands out what its target has of asynchronous calls, which would pass it by
    def _fetch(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        return self._map(self._fetch_one, requests)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access."""
        key = self._key(path)
        if key is None:
            return self._other(path).open(path, size)
        with StoreErrors("open", path, self.shown, (FileNotFoundError,)):
            file = self._fs.open(key, "rb")
        if isinstance(file, io.BufferedReader):  # a cache's copy on this machine's disk
            file.close()
            return pa.OSFile(file.name)
        return pa.PythonFile(file, "r")

    # --- writing ---

    def _reject(self, path: str) -> NoReturn:
        raise UnsupportedOperationError(
            f"{path!r} can't be written: {self.root} is a chain of filesystems, through which tables are only read. "
            "Open the table at its own place to write it.",
            path=path,
        )

    def put_if_absent(
        self, path: str, data: bytes | Iterable[bytes], *, durable: bool = True, ready: Callable[[], None] | None = None
    ) -> PutResult:
        """Raise UnsupportedOperationError."""
        self._reject(path)

    def put(self, path: str, data: bytes) -> None:
        """Raise UnsupportedOperationError."""
        self._reject(path)

    def create(self, path: str) -> pa.NativeFile:
        """Raise UnsupportedOperationError."""
        self._reject(path)

    @contextmanager
    def put_stream(self, path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """Raise UnsupportedOperationError."""
        yield self._reject(path)

    def delete(self, paths: Iterable[str]) -> None:
        """Raise UnsupportedOperationError."""
        for path in paths:
            self._reject(path)

    def delete_files(self, paths: pa.Array) -> int:
        """Raise UnsupportedOperationError."""
        for path in paths.to_pylist():
            self._reject(path)
        return 0

    def delete_folders(self, paths: Sequence[str]) -> int:
        """Raise UnsupportedOperationError."""
        for path in paths:
            self._reject(path)
        return 0
