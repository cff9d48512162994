"""New fragments, one data file each, written batch after batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import EngineError, InvalidArgumentError, Storage, UnsupportedFeatureError
from delta_plugins.lance.commit.draft import NewFragment, file_message, new_fragment
from delta_plugins.lance.files import PAGE_BYTES, DataFileWriter
from delta_plugins.lance.files.blob_columns import BlobFiles
from delta_plugins.lance.files.streams import FileStream
from delta_plugins.lance.names import blob_file_name
from delta_plugins.lance.schema import LanceField

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.manifest import FileVersion, Manifest

__all__ = ["MAX_BYTES", "MAX_ROWS", "FragmentsWriter", "NewFile", "check_file_version", "data_path"]

#: Rows and bytes of a data file, as of pylance.
MAX_ROWS, MAX_BYTES = 1 << 20, 90 << 30


def data_path(below: str, name: str) -> str:
    """Return the path of a data file, as the storage takes it; ``below`` is the folder of a branch."""
    return f"{below}/data/{name}" if below else f"data/{name}"


def check_file_version(manifest: Manifest) -> None:
    """Reject a dataset in whose version of data files nothing is written.

    Raises
    ------
    UnsupportedFeatureError
        For version 0.1; the message specifies how to convert it.
    """
    if manifest.file_version < (2, 0):
        shown = ".".join(map(str, manifest.file_version))
        raise UnsupportedFeatureError(
            f"The dataset has data files of version {shown}, which are only read. Write its rows to a new dataset, "
            "write_lance(new, open_table(old)), and change that one.",
            feature=f"data files of version {shown}",
        )


class NewFile:
    """One data file that is being written; it is whole on its store, and synced, after `finish`.

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    below : str
        The folder of a branch.
    fields : sequence of LanceField
        Its columns.
    version : tuple of int
        Of the file.
    metadata : Mapping of str to bytes
        Of the schema.
    paths : list of str
        The path of the file is appended to it, and those of the files of its blobs.
    page_bytes : int
        As of `DataFileWriter`.
    """

    def __init__(
        self,
        storage: Storage,
        below: str,
        fields: Sequence[LanceField],
        version: FileVersion,
        metadata: Mapping[str, bytes],
        paths: list[str],
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self.name = f"{uuid.uuid4().hex}.lance"
        path = data_path(below, self.name)
        self._stream = FileStream(storage.put_stream(path, replace=False))

        def open_blob_file(number: int) -> AbstractContextManager[Any]:
            own = f"{path.removesuffix('.lance')}/{blob_file_name(number)}"
            paths.append(own)
            return storage.put_stream(own, replace=False)

        self._blobs = BlobFiles(open_blob_file)
        with self._writing():
            self.writer = DataFileWriter(
                self._stream.sink,
                fields,
                version=version,
                page_bytes=page_bytes,
                metadata=metadata,
                blob_files=self._blobs,
            )
        paths.append(path)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        with self._writing():
            self.writer.write(batch)

    def finish(self) -> dict[str, Any]:
        """Write what is collected, and return the message of the file."""
        with self._writing():
            done = self.writer.finish()
        self._stream.finish()
        return file_message(self.name, done.fields, done.column_indices, done.version, done.size)

    def abandon(self) -> None:
        """End without a file, unless it has ended."""
        self._blobs.abandon()
        self._stream.abandon()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._stream.writing():
            try:
                yield
            except BaseException:
                self._blobs.abandon()
                raise


class FragmentsWriter:
    """Writes rows as new fragments, in bounded memory.

    Parameters
    ----------
    storage : Storage
        Of the dataset.
    below : str
        The folder of a branch.
    fields : sequence of LanceField
        The columns.
    version : tuple of int
        Of the data files.
    metadata : Mapping of str to bytes
        Of the schema.
    max_rows : int
        The most rows of a fragment.
    max_bytes : int
        A fragment ends with the page that makes its file longer.
    page_bytes : int
        As of `DataFileWriter`.

    Attributes
    ----------
    first_rows : sequence of int
        The most rows of the first fragments, in place of ``max_rows``; none unless it is set.
    paths : list of str
        The data files and the files of their blobs, as the storage takes them.
    num_rows, num_bytes : int
        Of all that was written; bytes of complete files.
    """

    def __init__(
        self,
        storage: Storage,
        below: str,
        fields: Sequence[LanceField],
        version: FileVersion,
        metadata: Mapping[str, bytes] | None = None,
        max_rows: int = MAX_ROWS,
        max_bytes: int = MAX_BYTES,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        for name, found in (("rows", max_rows), ("bytes", max_bytes)):
            if isinstance(found, bool) or not isinstance(found, int) or found < 1:
                raise InvalidArgumentError(f"The most {name} of a file are {found!r}, expected a number from 1 on.")
        self._storage, self._below, self._fields, self._version = storage, below, fields, version
        self._metadata = metadata or {}
        self._max_rows, self._max_bytes, self._page_bytes = max_rows, max_bytes, page_bytes
        self.first_rows: Sequence[int] = ()
        self._file: NewFile | None = None
        self._kept: list[tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64] | None]] = []
        self._num_kept = 0
        self.fragments: list[NewFragment] = []
        self.paths: list[str] = []
        self.num_rows = self.num_bytes = 0

    def write(
        self,
        batch: pa.RecordBatch,
        ids: NDArray[np.uint64] | None = None,
        created: NDArray[np.uint64] | None = None,
        updated: NDArray[np.uint64] | None = None,
    ) -> None:
        """Append rows.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The columns of the dataset.
        ids, created, updated : uint64[n_rows], optional
            The stable ids that rows keep, and their versions; without ids, rows get new ones.
        """
        start = 0
        while start < batch.num_rows:
            if ids is not None and self._file is not None and self._num_kept < self._file.writer.num_rows:
                self._end()  # rows that keep their ids are the first ones of a fragment
            if self._file is None:
                self._file = NewFile(
                    self._storage,
                    self._below,
                    self._fields,
                    self._version,
                    self._metadata,
                    self.paths,
                    self._page_bytes,
                )
            writer = self._file.writer
            done = len(self.fragments)
            most = self.first_rows[done] if done < len(self.first_rows) else self._max_rows
            stop = min(batch.num_rows, start + most - writer.num_rows)
            self._file.write(batch.slice(start, stop - start))
            if ids is not None:
                assert created is not None
                own = slice(start, stop)
                self._kept.append((ids[own], created[own], None if updated is None else updated[own]))
                self._num_kept += stop - start
            if writer.num_rows >= most or writer.size >= self._max_bytes:
                self._end()
            self.num_rows += stop - start
            start = stop

    def _end(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        rows = file.writer.num_rows
        message = file.finish()
        self.num_bytes += message["file_size_bytes"]
        ids = created = updated = None
        if self._kept:
            ids, created = (np.concatenate([k[i] for k in self._kept]) for i in (0, 1))
            listed = [k[2] for k in self._kept if k[2] is not None]
            updated = np.concatenate(listed) if listed else None
        self._kept, self._num_kept = [], 0
        self.fragments.append(new_fragment(rows, [message], ids, created, updated))

    def finish(self) -> list[NewFragment]:
        """Complete the last file, and return the fragments."""
        self._end()
        return self.fragments

    def abandon(self) -> None:
        """Delete what was written."""
        if self._file is not None:
            self._file.abandon()
            self._file = None
        with suppress(EngineError):
            self._storage.delete(self.paths)
