"""A file of the log that is read at several times, with the certainty that it is the same content each time.

Writers of other libraries replace a checkpoint of one version by another: its footer specifies nothing about the
columns of the new one.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileIdentity, RangeRequest
from delta_core.errors import LogChangedError
from delta_core.kernel.log.names import is_unique
from delta_core.storage.open_files import arrow_file, check_regular, identity_of

__all__ = ["PinnedFile"]

#: A remote file up to this size is fetched by one call and kept: that is consistent, and fewer calls than looking.
WHOLE_BYTES = 1 << 20
#: Descriptors that all tables of the process keep open together, at most; further files are opened for each read.
MOST_DESCRIPTORS = 256


class PinnedFile:
    """One file of the log; its first opening decides which content it is.

    Parameters
    ----------
    size : int, optional
        Bytes, as a listing or an action has them.
    listed : FileIdentity, optional
        The identity that a listing reported for it.

    Notes
    -----
    On a local disk the descriptor stays open, so that a replaced or deleted file can be read to its end; beyond
    `MOST_DESCRIPTORS` files are opened again and compared. On other stores the identity is looked up after each read,
    before anything is made of the bytes, unless the name has a UUID.
    """

    def __init__(self, storage: Storage, path: str, size: int | None, listed: FileIdentity | None = None) -> None:
        self.path = path
        self._storage = storage
        self._size = size
        self._is_unique = is_unique(path)
        self.local: str | None = storage.local_path(path)
        self._content: Any = None
        self._identity: FileIdentity | None = None
        self._listed = None if storage in _listing_otherwise else listed

    @contextmanager
    def opened(self, for_footer: bool = False) -> Iterator[Any]:
        """Open the file for random access; on a local disk it has a descriptor.

        A footer need not be checked: the first look after it compares with the listing that came before it.

        Raises
        ------
        LogChangedError
            If the file is not the one that was opened first, also if it is replaced while the block runs: what the
            block read must not be used then.
        """
        if self.local is not None:
            yield from self._opened_locally(self.local)
            return
        if self._content is None and self._size is not None and self._size <= WHOLE_BYTES:
            self._content = self._fetch(self._size)
        if self._content is not None:
            yield pa.BufferReader(self._content)
            return
        if self._is_unique:
            with self._storage.open(self.path, self._size) as file:
                yield file
            return
        if for_footer and self._listed is not None:
            with self._storage.open(self.path, self._listed.size) as file:
                yield from self._read_as_listed(file)
            return
        if self._identity is None and self._listed is None:
            (self._identity,) = self._storage.identify([self.path])
            if self._size not in (None, self._identity.size):
                raise LogChangedError.of_replaced(self.path)
        with self._storage.open(self.path, self._size) as file:
            yield pa.PythonFile(_VerifiedReads(file, self.check_name), "r")

    def check_name(self) -> None:
        """Reject a name that represents another content by now.

        Raises
        ------
        LogChangedError
            If the file was replaced.
        """
        if self._identity is None and self._listed is None:
            return
        (found,) = self._storage.identify([self.path])
        if self._identity is None and self._listed is not None:
            if not found.is_as_listed(self._listed):
                # a filesystem may describe one file in two ways; then there is one more look at each file
                _listing_otherwise.add(self._storage)
                raise LogChangedError.of_replaced(self.path)
            self._identity = found
        if found != self._identity:
            raise LogChangedError.of_replaced(self.path)

    def _read_as_listed(self, file: Any) -> Iterator[Any]:
        try:
            yield file
        except Exception:
            self.check_name()
            raise

    def _fetch(self, size: int) -> pa.Buffer:
        # a byte more reports a file that has grown
        (data,) = self._storage.read([RangeRequest(self.path, 0, size + 1)])
        if len(data) != size:
            raise LogChangedError.of_replaced(self.path)
        return pa.py_buffer(data)

    def _opened_locally(self, path: str) -> Iterator[Any]:
        file = self._content
        if file is None:
            file = self._open(path)
        try:
            yield from self._verified(file, lambda: identity_of(os.fstat(file.fileno())))
        except OSError as e:
            if e.errno == errno.ESTALE:  # on a network disk a deleted file can't be read any more
                raise LogChangedError.of_replaced(self.path) from e
            raise
        finally:
            if file is not self._content:
                file.close()

    def _open(self, path: str) -> Any:
        check_regular(path)
        file = arrow_file(path, "rb")
        if self._identity is None:
            self._identity = identity_of(os.fstat(file.fileno()))
            # files with unique names are many, and are never replaced
            if not self._is_unique and _take():
                self._content = file
                weakref.finalize(self, _release, file)
        return file

    def _verified(self, file: Any, look: Callable[[], FileIdentity]) -> Iterator[Any]:
        if look() != self._identity:
            raise LogChangedError.of_replaced(self.path)
        try:
            yield file
        except (Exception, GeneratorExit) as e:
            if look() != self._identity:
                raise LogChangedError.of_replaced(self.path) from e
            raise
        if look() != self._identity:
            raise LogChangedError.of_replaced(self.path)


class _VerifiedReads:
    """A file whose content is checked after every read: other content is never decoded."""

    closed = False

    def __init__(self, file: Any, check: Callable[[], None]) -> None:
        self._file = file
        self._check = check
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(None if size < 0 else size)
        self._check()
        return data

    def close(self) -> None:
        self.closed = True


def _num_descriptors() -> int:
    try:
        import resource
    except ImportError:  # no POSIX system
        return 0
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(MOST_DESCRIPTORS, soft // 4)


#: Storages whose listings and descriptions of files did not agree.
_listing_otherwise: weakref.WeakSet[Any] = weakref.WeakSet()
#: One entry per descriptor that may still be kept; without a lock, since a finalizer may run anywhere.
_free: deque[None] = deque([None] * _num_descriptors())


def _take() -> bool:
    try:
        _free.pop()
    except IndexError:
        return False
    return True


def _release(file: Any) -> None:
    file.close()
    _free.append(None)
