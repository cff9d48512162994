"""Columns of blobs, written: their bytes into the data file or beside it, and a packed column that locates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import structs

from delta_core.api import DataFileError, InvalidArgumentError
from delta_core.kernels.arrow_buffers import bool_array, number_array
from delta_plugins.lance.external_blobs import decode_reference, is_reference
from delta_plugins.lance.files.streams import abandon_stream
from delta_plugins.lance.schema import (
    DEDICATED,
    DESCRIPTOR_V2,
    EXTERNAL,
    INLINE,
    PACKED,
    TOP,
    LanceField,
    arrow_field,
    blob_kind,
    has_blobs,
)
from delta_plugins.lance.wire import decode, encode

__all__ = [
    "BlobFiles",
    "NullRows",
    "PlacedBlobs",
    "blob_bytes",
    "blob_page",
    "descriptor_field",
    "descriptors",
    "null_positions",
    "stored_field",
    "with_fields_of_blobs",
]

_BLOB = "lance-encoding:blob"
#: The most bytes of a blob in the data file, of one in a file with others, and of such a file.
_LIMITS: Mapping[str, int] = {
    "lance-encoding:blob-inline-size-threshold": 64 << 10,
    "lance-encoding:blob-dedicated-size-threshold": 4 << 20,
    "lance-encoding:blob-pack-file-size-threshold": 1 << 30,
}
_LEAST = dict(zip(_LIMITS, (0, 1, 1), strict=True))
#: Layers of a page of values that are all valid, and of values that may be null.
_VALID, _NULLABLE = 1, 3
#: Bits of a repetition level, which come below the definition level in the position of a null blob.
_LEVEL_BITS = 16
#: Whether a field takes nulls, and which of its rows are null (None: none).
NullRows = tuple[bool, "np.ndarray[Any, np.dtype[np.bool_]] | None"]


def with_fields_of_blobs(field: LanceField, change: Callable[[LanceField], LanceField]) -> LanceField:
    """Return a field with others in the place of the columns of blobs in it."""
    if blob_kind(field):
        return change(field)
    if not has_blobs(field):
        return field
    return structs.replace(field, children=tuple(with_fields_of_blobs(c, change) for c in field.children))


def descriptor_field(field: LanceField) -> LanceField:
    """Return the field of the column that the descriptors of blobs are in.

    Raises
    ------
    InvalidArgumentError
        For requests, which blobs do not have.
    """
    known = {_BLOB, *(_LIMITS if blob_kind(field) == 2 else ())}
    for key in field.metadata:
        if key.startswith("lance-encoding:") and key not in known:
            raise InvalidArgumentError(
                f"Field {field.name!r} (id {field.id}) has the request {key!r}, but blobs are stored as they are. "
                "Remove it from the metadata of the field."
            )
    of = arrow_field(field).type
    children = tuple(LanceField(-1, TOP, f.name, str(f.type), False) for f in of)
    # null is a position of blobs in the data file, and a null descriptor of others
    is_nullable = field.nullable and blob_kind(field) == 2
    return LanceField(field.id, field.parent_id, field.name, "struct", is_nullable, {"packed": b"true"}, None, children)


def stored_field(descriptor: LanceField) -> LanceField:
    """Return the field that the schema of a file has for a column of blobs of the extension type."""
    return structs.replace(descriptor, metadata={_BLOB: b"true", "lance-encoding:packed": b"true"})


class PlacedBlobs:
    """The blobs of the extension type in one column: small ones are in the data file, others in files beside it.

    Parameters
    ----------
    field : LanceField
        The column; its metadata may have other limits of sizes.
    files : BlobFiles
        Those of the data file.

    Raises
    ------
    InvalidArgumentError
        For a limit that is no number.
    """

    def __init__(self, field: LanceField, files: BlobFiles) -> None:
        self._inline, self._dedicated, self._most_packed = (_limit(field, k, n) for k, n in _LIMITS.items())
        self._files = files
        self._pack: _Pack | None = None

    def put(self, array: pa.Array[Any], put_inline: Callable[[Any], int]) -> pa.Array[Any]:
        """Write the bytes of blobs, and return their descriptors.

        Parameters
        ----------
        array : pyarrow.LargeBinaryArray, **shape (n,)**
            The blobs; external ones are references (`external_blobs.encode_reference`).
        put_inline : function(bytes) -> int
            Writes bytes into the data file, and returns where they are.
        """
        is_external = is_reference(array)
        data, bounds = blob_bytes(array)
        sizes = np.diff(bounds)
        is_inline = (sizes <= self._inline) & (sizes <= self._dedicated) & ~is_external
        kinds = np.where(is_inline, INLINE, np.where(sizes <= self._dedicated, PACKED, DEDICATED)).astype(np.uint8)
        kinds[is_external] = EXTERNAL
        numbers = np.zeros(len(sizes), np.uint32)
        small = np.where(is_inline, sizes, 0)
        positions = np.cumsum(small) - small
        if len(sizes):
            inline = data if is_inline.all() else blob_bytes(array.filter(bool_array(is_inline)))[0]
            positions += put_inline(inline)
        positions[~is_inline] = 0
        # each of them has many bytes
        for i in np.flatnonzero(~is_inline & ~is_external).tolist():
            blob = data[bounds[i] : bounds[i + 1]]
            numbers[i], positions[i] = self._placed(blob, bool(kinds[i] == PACKED))
        is_null = np.asarray(array.is_null()) if array.null_count else None
        if is_null is not None:
            positions[is_null] = 0
        found = positions.astype(np.uint64), sizes.astype(np.uint64)
        uris: list[str] | None = None
        for i in np.flatnonzero(is_external).tolist():
            uris = uris or [""] * len(sizes)
            numbers[i], uris[i], found[0][i], found[1][i] = decode_reference(bytes(data[bounds[i] : bounds[i + 1]]))
        columns = [number_array(c) for c in (kinds, *found, numbers)]
        texts = pa.repeat(pa.scalar(""), len(array)) if uris is None else pa.array(uris, pa.string())
        mask = None if is_null is None else bool_array(is_null)
        return pa.StructArray.from_arrays([*columns, texts], fields=list(DESCRIPTOR_V2), mask=mask)

    def _placed(self, blob: memoryview, is_packed: bool) -> tuple[int, int]:
        """Write a blob beside the data file; return the number of its file, and its position."""
        if not is_packed:
            number, stream = self._files.open()
            stream.write(blob)
            self._files.close(number)
            return number, 0
        if self._pack is None or self._pack.size + len(blob) > self._most_packed:
            if self._pack is not None:
                self._files.close(self._pack.number)
            self._pack = _Pack(*self._files.open())
        at = self._pack.size
        self._pack.stream.write(blob)
        self._pack.size += len(blob)
        return self._pack.number, at


class _Pack:
    """The file that blobs of medium size are written to, one after the other."""

    def __init__(self, number: int, stream: Any) -> None:
        self.number, self.stream, self.size = number, stream, 0


class BlobFiles:
    """The files of blobs beside one data file.

    Parameters
    ----------
    open_file : function(int) -> context manager of ByteSink
        Opens the file of a number; the file is complete when the context ends.
    """

    def __init__(self, open_file: Callable[[int], AbstractContextManager[Any]]) -> None:
        self._open_file = open_file
        self._opened: dict[int, AbstractContextManager[Any]] = {}
        self._next = 1

    def open(self) -> tuple[int, Any]:
        """Open the next file; return its number and its stream."""
        number = self._next
        self._next += 1
        stream = self._open_file(number)
        found = stream.__enter__()
        self._opened[number] = stream
        return number, found

    def close(self, number: int) -> None:
        """Complete a file."""
        self._opened.pop(number).__exit__(None, None, None)

    def finish(self) -> None:
        """Complete all files."""
        for number in list(self._opened):
            self.close(number)

    def abandon(self) -> None:
        """End the open files without completing them."""
        while self._opened:
            abandon_stream(self._opened.popitem()[1])


def _limit(field: LanceField, key: str, default: int) -> int:
    text = field.metadata.get(key, b"%d" % default).decode(errors="replace")
    if not (text.isascii() and text.isdigit() and len(text) < 19) or int(text) < _LEAST[key]:
        raise InvalidArgumentError(
            f"Field {field.name!r} (id {field.id}) requests {key!r} = {text!r}, expected a number of bytes from "
            f"{_LEAST[key]} on. Change or remove the request."
        )
    return int(text)


def blob_bytes(array: pa.Array[Any]) -> tuple[memoryview, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the bytes of blobs, one after the other, and where each one ends; of a large_binary array."""
    plain = array.fill_null(b"") if array.null_count else array
    _, ends, data = plain.buffers()
    bounds = np.frombuffer(ends, np.int64, len(plain) + 1, plain.offset * 8)
    start, stop = int(bounds[0]), int(bounds[-1])
    found = memoryview(data)[start:stop] if data is not None else memoryview(b"")
    return found, bounds - start


def descriptors(
    array: pa.Array[Any], bounds: np.ndarray[Any, np.dtype[np.int64]], position: int, nulls: Any
) -> pa.Array[Any]:
    """Return the positions and sizes of blobs whose bytes were written from a position on.

    ``nulls``: the position of null blobs, one for all or one for each row; their size is 0.
    """
    sizes = np.diff(bounds)
    starts = np.where(sizes > 0, bounds[:-1] + position, 0)
    if array.null_count:
        is_null = np.asarray(array.is_null())
        starts = np.where(is_null, nulls, starts)
    columns = [number_array(np.ascontiguousarray(c, np.uint64)) for c in (starts, sizes)]
    fields = [pa.field(n, pa.uint64(), False) for n in ("position", "size")]
    return pa.StructArray.from_arrays(columns, fields=fields)


def null_positions(layers: Sequence[NullRows]) -> Any:
    """Return the positions of null blobs in files of version 2.1: their definition levels.

    Parameters
    ----------
    layers : sequence of NullRows
        The blobs, then the structs that they are in, the innermost one first.
    """
    found: Any = 0
    level = 0
    for nullable, is_null in layers:
        level += nullable
        if is_null is not None:
            found = np.where(is_null, level << _LEVEL_BITS, found)
    return found


def blob_page(encoding: bytes, nullable: Sequence[bool]) -> bytes:
    """Return the PageLayout of blobs around that of their positions and sizes.

    ``nullable``: whether the blobs, and the structs that they are in, may be null, the innermost one first.
    """
    inner = decode("PageLayout", encoding, "a page of positions", DataFileError)
    layers = [_NULLABLE if n else _VALID for n in nullable]
    return encode("PageLayout", {"blob": {"inner_layout": inner, "layers": layers}})
