"""Blobs: where the bytes of each are, their bytes as Arrow columns, and one blob as a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.api import DataFileError, DataFileNotFoundError, RangeRequest, Storage, UnsupportedFeatureError
from delta_core.kernels.nested import struct_of
from delta_plugins.lance.external_blobs import Reference
from delta_plugins.lance.names import blob_file_name
from delta_plugins.lance.schema import (
    DEDICATED,
    EXTERNAL,
    INLINE,
    PACKED,
    LanceField,
    arrow_field,
    blob_kind,
    has_blobs,
    is_packed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.version_files import VersionFiles

__all__ = [
    "BlobFile",
    "Blobs",
    "Located",
    "check_readable_blobs",
    "locate_all",
    "locate_blobs",
    "slices_by_size",
    "with_bytes",
]

Blobs = Literal["descriptor", "bytes"]

#: A batch of rows has at most this many bytes of blobs, or one row.
_BATCH_BYTES = 32 << 20


class _Range(NamedTuple):
    """The bytes of one blob; ``size`` -1 = all of the file."""

    path: str
    position: int
    size: int


class BlobFile(io.RawIOBase):
    """The bytes of one blob as a file for reading; each read is a range read of the store.

    Parameters
    ----------
    storage : Storage
        Where the file with its bytes is.
    path : str
        That file, as the storage takes it.
    position : int
        The first byte in it.
    size : int
        How many bytes the blob has.
    """

    def __init__(self, storage: Storage, path: str, position: int, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._path = path
        self._start = position
        self._size = size
        self._at = 0

    @property
    def size(self) -> int:
        """How many bytes the blob has."""
        return self._size

    def again(self) -> BlobFile:
        """Return the blob as a file of its own, which starts at the first byte."""
        return BlobFile(self._storage, self._path, self._start, self._size)

    def __repr__(self) -> str:
        return f"BlobFile({self._storage.uri(self._path)!r}, position={self._start}, size={self._size})"

    def readable(self) -> bool:
        """Return whether it can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Return whether it can be read from any byte on: yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte, counted from the start, from the current one or from the end; return its number.

        Raises
        ------
        ValueError
            For a byte before the first one, another ``whence``, or a closed file.
        """
        self._check_open()
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        if whence not in starts:
            raise ValueError(f"Found whence {whence!r}, expected 0, 1 or 2.")
        at = starts[whence] + offset
        if at < 0:
            raise ValueError(f"Found byte {at}, expected one from 0 on.")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the bytes from the current one on; return how many there were, 0 at the end.

        Raises
        ------
        DataFileError
            If the file ends before the blob does.
        DataFileNotFoundError
            If the file is missing.
        """
        view = memoryview(buffer).cast("B")
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """Return all bytes from the current one on; errors as of `readinto`."""
        return bytes(self._next(self._size))

    def _next(self, most: int) -> bytes | memoryview:
        self._check_open()
        length = min(most, max(self._size - self._at, 0))
        if not length:
            return b""
        [found] = _read(self._storage, [_Range(self._path, self._start + self._at, length)])
        self._at += length
        return found

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("The blob is closed.")


#: A blob that was found: a file, or the value of an external one in rows that are written again; None is null.
Located = BlobFile | bytes | None


def check_readable_blobs(fields: Sequence[LanceField], above: str = "") -> None:
    """Check that each blob of fields has a row of its own, so that its bytes can be returned in place of it.

    Raises
    ------
    UnsupportedFeatureError
        For blobs in lists or maps.
    """
    for field in fields:
        name = f"{above}{field.name}"
        if blob_kind(field) or is_packed(field):
            continue
        if field.logical_type != "struct" and has_blobs(field):
            raise UnsupportedFeatureError(
                f"Column {name!r} of type {field.logical_type!r} has blobs, whose bytes can't be read: only those of "
                "columns and of fields of structs can. Request blobs='descriptor', or other columns.",
                feature="blobs in lists",
                column=name,
            )
        check_readable_blobs(field.children, f"{name}.")


def _size(blob: Located) -> int:
    if blob is None:
        return 0
    return len(blob) if isinstance(blob, bytes) else blob.size


def slices_by_size(located: Iterable[Sequence[Located]], num_rows: int) -> Iterator[slice]:
    """Yield slices of rows whose blobs have few enough bytes for a batch; one row has any number of bytes.

    Parameters
    ----------
    located : iterable of sequences of Located
        The blobs of each column, one for each row.
    num_rows : int
        The number of rows.
    """
    sizes: NDArray[np.int64] = np.zeros(num_rows, np.int64)
    for blobs in located:
        sizes += np.fromiter(map(_size, blobs), np.int64, num_rows)
    ends, start = np.cumsum(sizes), 0
    while start < num_rows:
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _BATCH_BYTES, "right")), start + 1)
        yield slice(start, stop)
        start = stop


def locate_all(
    dataset: VersionFiles, fragment: int, field: LanceField, array: pa.Array[Any], files: Mapping[int, int]
) -> dict[int, list[Located]]:
    """Return the blobs of all columns of a field by the id of the column's field; see `locate_blobs`."""
    if blob_kind(field):
        return {field.id: locate_blobs(dataset, fragment, field, array, files)}
    found: dict[int, list[Located]] = {}
    if has_blobs(field):
        for child, part in zip(field.children, array.flatten(), strict=True):
            found |= locate_all(dataset, fragment, child, part, files)
    return found


def with_bytes(
    storage: Storage, field: LanceField, array: pa.Array[Any], located: Mapping[int, Sequence[Located]]
) -> pa.Array[Any]:
    """Return the array of a field with the bytes of blobs in place of their descriptors.

    Parameters
    ----------
    storage : Storage
        Where the blobs are.
    field : LanceField
        The field.
    array : pyarrow.Array, **shape (n,)**
        Its values, with descriptors.
    located : Mapping of int to sequence of Located
        The blobs of each column, of the same rows.

    Raises
    ------
    DataFileError, DataFileNotFoundError
        If files changed since the blobs were located.
    """
    if not has_blobs(field):
        return array
    if blob_kind(field):
        return _fetched(storage, located[field.id])
    children = [with_bytes(storage, c, a, located) for c, a in zip(field.children, array.flatten(), strict=True)]
    listed = [arrow_field(c, blobs="bytes") for c in field.children]
    return struct_of(listed, children, array)


def locate_blobs(
    dataset: VersionFiles, fragment: int, field: LanceField, descriptors: pa.Array[Any], files: Mapping[int, int]
) -> list[Located]:
    """Return the blobs of a column, None for null.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    fragment : int
        The index of the rows' fragment.
    field : LanceField
        The column.
    descriptors : pyarrow.StructArray, **shape (n,)**
        Its values.
    files : Mapping of int to int
        Which of the fragment's files has each column, by the id of its field.

    Raises
    ------
    DataFileError
        If a blob is not within its file.
    DataFileNotFoundError
        If a file with blobs is missing.
    ExternalPathError
        For an external blob in a place that ``allow_external`` excludes.
    UnsupportedFeatureError
        For a kind of blobs that is not known.
    """
    if descriptors.null_count == len(descriptors):
        return [None] * len(descriptors)
    path = dataset.file_path(fragment, files[field.id])
    if blob_kind(field) == 1:
        ranges = _ranges_in_file(descriptors, path, field.name)
    else:
        ranges = _ranges_by_kind(dataset, path, descriptors, field)
    return _checked(dataset.engine.storage, ranges, field.name)


def _ranges_in_file(descriptors: pa.Array[Any], path: str, name: str) -> list[_Range | bytes | None]:
    """Return the bytes of blobs that are all in the data file; (1, 0) is null in files of version 2.0."""
    found: list[_Range | bytes | None] = []
    for blob in descriptors.to_pylist():
        if blob is None or (blob["position"], blob["size"]) == (1, 0):
            found.append(None)
        elif not blob["size"] and blob["position"]:
            raise _damaged(path, name, f"it has no bytes, but position {blob['position']}; expected 0, or 1 for null")
        else:
            found.append(_Range(path, blob["position"], blob["size"]))
    return found


def _ranges_by_kind(
    dataset: VersionFiles, path: str, descriptors: pa.Array[Any], field: LanceField
) -> list[_Range | bytes | None]:
    folder, column = path.removesuffix(".lance"), field.name
    found: list[_Range | bytes | None] = []
    for blob in descriptors.to_pylist():
        if blob is None:
            found.append(None)
            continue
        kind, position, size = blob["kind"], blob["position"], blob["size"]
        if kind == INLINE:
            found.append(_Range(path, position, size))
        elif kind in (PACKED, DEDICATED):
            found.append(_Range(f"{folder}/{blob_file_name(blob['blob_id'])}", position, size))
        elif kind == EXTERNAL:
            if position and not size:
                raise _damaged(path, column, f"it is external and starts at byte {position}, but has no size")
            reference = Reference(blob["blob_id"], blob["blob_uri"], position, size)
            value = dataset.carried_blob(reference, field.id, path, column)
            if value is not None:
                found.append(value)
                continue
            external = dataset.external_path(reference.base, reference.uri, path, column)
            found.append(_Range(external, position, size or -1))
        else:
            raise UnsupportedFeatureError(
                f"Data file {path!r} has a blob of kind {kind} in column {column!r}; kinds 0 to 3 can be read. Request "
                "blobs='descriptor', or other columns.",
                path=path,
                feature=f"blobs of kind {kind}",
            )
    return found


def _checked(storage: Storage, ranges: Sequence[_Range | bytes | None], name: str) -> list[Located]:
    """Return blobs whose bytes are known to be in their files."""
    paths = list(dict.fromkeys(r.path for r in ranges if isinstance(r, _Range)))
    try:
        sizes = {p: size for p, (size, _) in zip(paths, storage.stat(paths), strict=True)}
    except FileNotFoundError as e:
        raise _missing(str(e), paths) from e
    found: list[Located] = []
    for blob in ranges:
        if not isinstance(blob, _Range):
            found.append(blob)
            continue
        size = sizes[blob.path] if blob.size < 0 else blob.size
        if blob.position + size > sizes[blob.path]:
            raise _damaged(
                blob.path,
                name,
                f"it has {size} bytes from byte {blob.position} on, but the file has {sizes[blob.path]} bytes",
            )
        found.append(BlobFile(storage, blob.path, blob.position, size))
    return found


def _fetched(storage: Storage, blobs: Sequence[Located]) -> pa.Array[Any]:
    """Return the bytes of blobs; those of one file that lie close are read together."""
    full = [b for b in blobs if isinstance(b, BlobFile) and b.size]
    read = iter(_read(storage, [_Range(b._path, b._start, b.size) for b in full]))
    data = [b if isinstance(b, bytes) else next(read) for b in blobs if _size(b)]
    ends = np.cumsum([0, *map(_size, blobs)], dtype=np.int64)
    valid = np.array([b is not None for b in blobs], np.bool_)
    nulls = len(valid) - int(valid.sum())
    validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(blobs), buffers, nulls)


def _read(storage: Storage, ranges: Sequence[_Range]) -> Sequence[bytes | memoryview]:
    try:
        found = storage.read([RangeRequest(*r) for r in ranges]) if ranges else []
    except FileNotFoundError as e:
        raise _missing(str(e), [r.path for r in ranges]) from e
    for (path, position, size), data in zip(ranges, found, strict=True):
        if len(data) != size:
            raise DataFileError(
                f"File {path!r} of blobs ends at byte {position + len(data)}, but {size} bytes from byte {position} on "
                "were expected: it changed since the blobs were located. Restore the file from a copy.",
                path=path,
            )
    return found


def _damaged(path: str, name: str, what: str) -> DataFileError:
    return DataFileError(
        f"A blob of column {name!r} in file {path!r} is damaged: {what}. Restore the file from a copy, or request "
        "blobs='descriptor'.",
        path=path,
    )


def _missing(what: str, paths: Sequence[str]) -> DataFileNotFoundError:
    path = next((p for p in paths if p in what), paths[0])
    return DataFileNotFoundError(
        f"File {path!r} has blobs of the dataset, but is not there. Restore the file, or request blobs='descriptor'.",
        path=path,
    )
