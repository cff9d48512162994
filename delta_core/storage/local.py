"""Storage on local disks: whole files through synced temporary ones, names claimed by hard links."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.records import WALKED_FILE, FileIdentity, FolderFiles, Listing, PutResult, RangeRequest
from delta_core.errors import EngineError, ExternalPathError
from delta_core.kernels.arrow_buffers import number_array
from delta_core.runtime.threads import ThreadPool
from delta_core.storage import parts
from delta_core.storage.boundary import AllowExternal, CrossStoreStorage, Opener, are_plain, is_plain
from delta_core.storage.open_files import arrow_file, check_regular, identity_of, open_regular, read_at
from delta_core.storage.places import StoreErrors, store_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.storage.folders import Folder

__all__ = ["LocalStorage"]

_MISSING = (FileNotFoundError, NotADirectoryError)
#: The folders that are listed before their files are returned.
_FOLDERS_AT_ONCE = 64
_NONE = np.empty(0, np.int64)
#: How Python encodes the names of files; PyArrow, Spark and other readers encode them as UTF-8.
_ENCODING = sys.getfilesystemencoding()


class LocalStorage(CrossStoreStorage):
    """Files of this machine."""

    #: The link call is exclusive by contract: nothing needs to be proven.
    store: str | None = None

    def __init__(
        self,
        root: str,
        options: dict[str, Any] | None = None,
        opener: Opener | None = None,
        allow_external: AllowExternal = None,
    ) -> None:
        super().__init__(root, options or {}, opener, allow_external)
        if _ENCODING != "utf-8":
            _check_encoding(root)
        self._prefix = root.rstrip("/") + "/"
        self._real_root: str | None = None

    def local_path(self, path: str) -> str | None:
        """Return the absolute path, ``..`` resolved; None if a URI leads to another store that is followed."""
        if _ENCODING != "utf-8":
            _check_encoding(path)
        if is_plain(path):
            return self._prefix + path
        place = self._own_place(path)
        return None if place is None else place.path

    def local_paths(self, paths: Sequence[str]) -> list[str | None]:
        """Return the `local_path` of each path, without a call for each if they are plain."""
        if not are_plain(paths):
            return [self.local_path(p) for p in paths]
        if _ENCODING != "utf-8":
            _check_encoding(*paths)
        return [self._prefix + p for p in paths]

    def uri(self, path: str) -> str:
        """Return the absolute path, or the URI as it is."""
        return self.local_path(path) or self._foreign_uri(path)

    def uri_for_engine(self, path: str) -> str:
        """Return the absolute path, or the URI of another store that the caller allowed."""
        return self.uri(path)

    def _inside(self, path: str) -> str:
        """Return the absolute path of a file below the root; raises ExternalPathError for any other."""
        self._boundary.check_inside(path)
        local = self.local_path(path)
        assert local is not None
        return local

    # --- reading ---

    def list_from(self, directory: str, start: str = "", limit: int | None = None) -> Listing:
        """List names without requesting sizes: that would cost a call a file."""
        local = self.local_path(directory)
        if local is None:
            return self._other(directory).list_from(directory, start, limit)
        try:
            with StoreErrors("list", directory, self.root, _MISSING):
                if limit is None:
                    with os.scandir(local) as entries:
                        return Listing(sorted(e.name for e in entries if e.name >= start and not e.is_dir()))
                found, count = parts.first_files(os.fsencode(local), os.fsencode(start), limit)
                return Listing([os.fsdecode(name) for name in found], is_complete=count == len(found))
        except _MISSING:
            return Listing([])

    def first_names(self, limit: int) -> list[str]:
        """Return names of some entries of the root; none if there is no such folder."""
        try:
            with StoreErrors("list", "", self.root, _MISSING), os.scandir(self.root) as entries:
                return [entry.name for entry in islice(entries, limit)]
        except _MISSING:
            return []

    def stat(self, paths: Sequence[str]) -> list[tuple[int, int]]:
        """Return (size, modification time in ms) of each file."""
        out: list[tuple[int, int]] = []
        for path in paths:
            local = self.local_path(path)
            if local is None:
                out += self._other(path).stat([path])
                continue
            with StoreErrors("look at", path, self.root, (FileNotFoundError,)):
                found = os.stat(local)
            out.append((found.st_size, found.st_mtime_ns // 1_000_000))
        return out

    def identify(self, paths: Sequence[str]) -> list[FileIdentity]:
        """Return each file's identity; nothing is opened."""
        out: list[FileIdentity] = []
        for path in paths:
            local = self.local_path(path)
            if local is None:
                out += self._other(path).identify([path])
                continue
            with StoreErrors("look at", path, self.root, (FileNotFoundError,)):
                out.append(identity_of(os.stat(local)))
        return out

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes | memoryview]:
        """Read ranges, in the order requested.

        Raises
        ------
        FileNotFoundError
            If a file is missing, or a folder of its path is a file.
        """
        out: list[bytes | memoryview] = []
        for path, ranges in groupby(requests, lambda r: r.path):
            local = self.local_path(path)
            if local is None:
                out += self._other(path).read(list(ranges))
                continue
            try:
                with StoreErrors("read", path, self.root, _MISSING):
                    descriptor = open_regular(local)
                    try:
                        out += [read_at(descriptor, r.offset, r.length) for r in ranges]
                    finally:
                        os.close(descriptor)
            except NotADirectoryError as e:  # a file is where a folder would: what lies in it is missing
                raise FileNotFoundError(*e.args) from e
        return out

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access."""
        local = self.local_path(path)
        if local is None:
            return self._other(path).open(path, size)
        with StoreErrors("open", path, self.root, (FileNotFoundError,)):
            check_regular(local)
            return pa.OSFile(local, "rb")

    # --- writing ---

    def put_if_absent(
        self, path: str, data: bytes | Iterable[bytes], *, durable: bool = True, ready: Callable[[], None] | None = None
    ) -> PutResult:
        """Write a temporary file and link it to the name."""
        local = self._inside(path)
        with StoreErrors("create", path, self.root):
            return "created" if parts.create_whole(local, data, durable, ready) else "exists"

    def put(self, path: str, data: bytes) -> None:
        """Replace the file by a synced temporary one."""
        with self.put_stream(path) as file:
            file.write(data)

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to be written piece by piece."""
        local = self._inside(path)
        with StoreErrors("create", path, self.root):
            try:
                return arrow_file(local, "wb")
            except FileNotFoundError:
                parts.make_directory(self._prefix.rstrip("/"))
                # a write of many partitions syncs the folder that has all of theirs once
                parts.make_directory(os.path.dirname(local), durable=False)
                return arrow_file(local, "wb")

    @contextmanager
    def put_stream(self, path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """Write a temporary file, which gets the name when it is whole and synced.

        Raises
        ------
        FileExistsError
            If the file exists and ``replace`` is false.
        """
        local = self._inside(path)
        with _only_os_errors("write", path, self.root):
            with parts.temporary_file(local) as (temporary, file):
                yield file
                _finish(file)
                if replace:
                    parts.replace_file(temporary, local)
                elif not _claimed(temporary, local):
                    raise FileExistsError(local)
            parts.sync_directory(os.path.dirname(local))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; a missing one is no error. A link is deleted, never what it leads to."""
        for path in paths:
            local = self._inside(path)
            self._check_links(path, local)
            try:
                with StoreErrors("delete", path, self.root, (FileNotFoundError,)):
                    os.unlink(local)
            except FileNotFoundError:
                continue

    def walk(self, skip: Callable[[str], bool], below: Sequence[str] = ("",)) -> Iterator[FolderFiles]:
        """Yield all files below folders; symbolic links are not followed."""
        waiting = list(below)
        with ThreadPool(os.cpu_count() or 1, "delta-walk") as pool:
            while waiting:
                window, waiting = waiting[-_FOLDERS_AT_ONCE:], waiting[:-_FOLDERS_AT_ONCE]
                files, folders = self._listed(window, pool.map(self._list_folder, window))
                waiting += [folder for folder in folders if not skip(folder)]
                yield files

    def list_folders(self, folders: Sequence[str]) -> tuple[FolderFiles, list[str]]:
        """Return the files that lie in folders, and the folders in them."""
        return self._listed(folders, [self._list_folder(f) for f in folders])

    def _listed(self, folders: Sequence[str], found: Sequence[Folder]) -> tuple[FolderFiles, list[str]]:
        columns = [
            pa.concat_arrays([f.paths for f in found]),
            number_array(np.concatenate([f.sizes for f in found])),
            number_array(np.concatenate([f.modified_ms for f in found])),
        ]
        empty = tuple(w for w, f in zip(folders, found, strict=True) if w and not f.num_entries)
        links = [link for f in found for link in f.links]
        to_folders = tuple(link for link in links if os.path.isdir(self._prefix + link))
        files = FolderFiles(
            pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE),
            empty,
            tuple(self._targets(links)),
            len(found),
            tuple(link for link in links if link not in to_folders),
            to_folders,
            tuple(name for f in found for name in f.unnamed),
            tuple(name for f in found for name in f.irregular),
        )
        return files, [folder for f in found for folder in f.folders]

    def _list_folder(self, folder: str) -> Folder:
        try:
            with StoreErrors("list", folder, self.root, _MISSING):
                return parts.list_folder(self._prefix + folder, f"{folder}/" if folder else "")
        except _MISSING:  # deleted meanwhile, or another entry took its place
            return parts.Folder(pa.nulls(0, pa.string()), _NONE, _NONE, [], [], 1, [], [])

    def _targets(self, links: Sequence[str]) -> Iterator[str]:
        """Yield what links lead to below the root."""
        if links and self._real_root is None:
            self._real_root = os.path.realpath(self.root)
        for link in links:
            target = os.path.relpath(os.path.realpath(self._prefix + link), self._real_root)
            if target != os.pardir and not target.startswith(os.pardir + os.sep):
                yield "" if target == os.curdir else target.replace(os.sep, "/")

    def find(self, paths: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sizes and modification times of files below the root, -1 for those that are not there."""
        try:
            with StoreErrors("look at", "", self.root, (FileNotFoundError,)):
                return parts.find_files(self.root, paths)
        except FileNotFoundError:  # there is no root yet
            missing = np.full(len(paths), -1, np.int64)
            return missing, missing

    def delete_files(self, paths: pa.Array) -> int:
        """Delete files below the root; a missing one is no error.

        Raises
        ------
        ExternalPathError
            For a path with ``..``, or through a symbolic link.
        EngineError
            If the disk fails; the other files were deleted.
        """
        with StoreErrors("delete files of", "", self.root):
            errors = parts.delete_files(self.root, paths)
        failed = np.flatnonzero((errors != 0) & (errors != errno.ENOENT))
        if len(failed):
            first, number = paths[int(failed[0])].as_py(), int(errors[failed[0]])
            if number in (errno.EXDEV, errno.ELOOP, errno.ENOTDIR):
                raise ExternalPathError(
                    f"{first!r} of {self.root} was not deleted, as {len(failed) - 1} further files: its path has '..', "
                    "or goes through a symbolic link.",
                    path=first,
                )
            cause = OSError(number, os.strerror(number))
            raise store_error(f"delete {len(failed)} files, such as", first, self.root, cause) from cause
        return int((errors == 0).sum())

    def delete_folders(self, paths: Sequence[str]) -> int:
        """Delete folders in which there is nothing; the others stay."""
        deleted = 0
        for path in paths:
            local = self._inside(path)
            self._check_links(path, local)
            with suppress(OSError):
                os.rmdir(local)
                deleted += 1
        return deleted

    def _check_links(self, path: str, local: str) -> None:
        """Reject a file in a folder that a link adds from outside the root."""
        if self._real_root is None:
            self._real_root = os.path.realpath(self.root)
        folder = os.path.realpath(os.path.dirname(local))
        if folder != self._real_root and not folder.startswith(self._real_root.rstrip(os.sep) + os.sep):
            raise ExternalPathError(
                f"{path!r} of {self.root} lies in {folder}, to which a symbolic link leads; nothing outside the "
                "table's root is deleted.",
                path=path,
            )


def _check_encoding(*paths: str) -> None:
    """Reject names that Python would encode in another way than everybody else."""
    path = next((path for path in paths if not path.isascii()), None)
    if path is not None:
        raise EngineError(
            f"The path {path!r} can't be used in this process, where Python encodes the names of files as {_ENCODING} "
            "and not as UTF-8. Set the environment variable PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8.",
            path=path,
        )


def _claimed(temporary: str, target: str) -> bool:
    """As `claim`, but on a disk that can't create a name exclusively a look for the file has to do."""
    try:
        return parts.claim(temporary, target)
    except OSError as e:
        if e.errno != errno.ENOTSUP:
            raise
    if os.path.exists(target):
        return False
    parts.replace_file(temporary, target)
    return True


@contextmanager
def _only_os_errors(action: str, path: str, root: str) -> Iterator[None]:
    """As `StoreErrors`, around a block of the caller's own: what is no failure of the disk passes."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as e:
        with StoreErrors(action, path, root):
            raise e from None


def _finish(file: IO[bytes]) -> None:
    """Sync what was written to the system, and to the disk, and close the file: Windows renames none that is open."""
    file.flush()
    os.fsync(file.fileno())
    file.close()
