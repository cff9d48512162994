"""Storage on local disks: whole files through synced temporary ones, names claimed by hard links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from delta_core.engine import Listing, PutResult, RangeRequest
from delta_core.engines.arrow.local_files import (
    create_whole,
    make_directory,
    read_fully,
    sync_directory,
    temporary_file,
)
from delta_core.engines.arrow.places import (
    LOCAL_SCHEMES,
    Elsewhere,
    Opener,
    absolute_path,
    failing,
    scheme_of,
)

__all__ = ["LocalStorage"]

_MISSING = (FileNotFoundError, NotADirectoryError)


class LocalStorage(Elsewhere):
    """Files of this machine."""

    #: The link call is exclusive by contract: nothing needs to be proven.
    store: str | None = None

    def __init__(
        self, root: str, options: dict[str, Any] | None = None, opener: Opener | None = None
    ) -> None:
        super().__init__(options or {}, opener)
        self.root = root

    def local_path(self, path: str) -> str | None:
        """Return the absolute path; None where a URI leads to another store."""
        scheme = scheme_of(path)
        if scheme == "":
            return os.path.join(self.root, path)
        return absolute_path(path) if scheme in LOCAL_SCHEMES else None

    def uri(self, path: str) -> str:
        """Return the absolute path, or the URI as it is."""
        return self.local_path(path) or path

    # --- reading ---

    def list_from(self, directory: str, start: str = "") -> Listing:
        """List names without asking for sizes: that would cost a call a file."""
        local = self.local_path(directory)
        if local is None:
            return self._other(directory).list_from(directory, start)
        try:
            with failing("list", directory, self.root, _MISSING), os.scandir(local) as entries:
                return Listing(sorted(e.name for e in entries if e.name >= start and not e.is_dir()))
        except _MISSING:
            return Listing([])

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file."""
        out: list[tuple[int, int]] = []
        for path in paths:
            local = self.local_path(path)
            if local is None:
                out += self._other(path).stat([path])
                continue
            with failing("look at", path, self.root, (FileNotFoundError,)):
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
                with failing("read", r.path, self.root, _MISSING), open(local, "rb", buffering=0) as f:
                    if r.offset:
                        f.seek(r.offset)
                    out.append(read_fully(f, r.length))
            except NotADirectoryError as e:  # a file stands where a folder would: what lies in it is missing
                raise FileNotFoundError(*e.args) from e
        return out

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access."""
        local = self.local_path(path)
        if local is None:
            return self._other(path).open(path, size)
        with failing("open", path, self.root, (FileNotFoundError,)):
            return pa.OSFile(local, "rb")

    # --- writing ---

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> PutResult:
        """Write a temporary file and link it to the name."""
        local = self.local_path(path)
        if local is None:
            return self._other(path).put_if_absent(path, data, durable=durable)
        with failing("create", path, self.root):
            return "created" if create_whole(local, data, durable) else "exists"

    def put(self, path: str, data: bytes) -> None:
        """Replace the file by a synced temporary one."""
        local = self.local_path(path)
        if local is None:
            self._other(path).put(path, data)
            return
        with self.put_stream(path) as file:
            file.write(data)

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to be written piece by piece."""
        local = self.local_path(path)
        if local is None:
            return self._other(path).create(path)
        with failing("create", path, self.root):
            try:
                return pa.OSFile(local, "wb")
            except FileNotFoundError:
                make_directory(os.path.dirname(local))
                return pa.OSFile(local, "wb")

    @contextmanager
    def put_stream(self, path: str) -> Iterator[IO[bytes]]:
        """Write a temporary file, which replaces the one of this name when it is whole and synced."""
        local = self.local_path(path)
        if local is None:
            with self._other(path).put_stream(path) as file:
                yield file
            return
        with _only_os_errors("write", path, self.root):
            with temporary_file(local) as (temporary, file):
                yield file
                _finish(file)
                os.replace(temporary, local)
            sync_directory(os.path.dirname(local))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; a missing one is no error."""
        for path in paths:
            local = self.local_path(path)
            if local is None:
                self._other(path).delete([path])
                continue
            try:
                with failing("delete", path, self.root, (FileNotFoundError,)):
                    os.unlink(local)
            except FileNotFoundError:
                continue


@contextmanager
def _only_os_errors(verb: str, path: str, root: str) -> Iterator[None]:
    """As `failing`, around a block of the caller's own: what is no failure of the disk passes."""
    try:
        yield
    except OSError as e:
        with failing(verb, path, root):
            raise e from None


def _finish(file: IO[bytes]) -> None:
    """Bring what was written to the system, and to the disk."""
    file.flush()
    os.fsync(file.fileno())
