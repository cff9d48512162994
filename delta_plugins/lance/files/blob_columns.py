"""Columns of blobs, written: the bytes into the data file, and a packed column of their positions and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.api import DataFileError, InvalidArgumentError
from delta_core.kernels.arrow_buffers import number_array
from delta_plugins.lance.schema import LanceField
from delta_plugins.lance.wire import decode, encode

__all__ = ["blob_bytes", "blob_page", "descriptor_field", "descriptors"]

_BLOB = "lance-encoding:blob"
#: Layers of a page of values that are all valid, and of values that may be null.
_VALID, _NULLABLE = 1, 3


def descriptor_field(field: LanceField) -> LanceField:
    """Return the field of the positions and the sizes of a column of blobs.

    Raises
    ------
    InvalidArgumentError
        For requests, which blobs do not have.
    """
    for key in field.metadata:
        if key.startswith("lance-encoding:") and key != _BLOB:
            raise InvalidArgumentError(
                f"Field {field.name!r} (id {field.id}) has the request {key!r}, but blobs are stored as they are. "
                "Remove it from the metadata of the field."
            )
    children = tuple(LanceField(-1, field.id, n, "uint64", False) for n in ("position", "size"))
    return LanceField(field.id, field.parent_id, field.name, "struct", False, {"packed": b"true"}, None, children)


def blob_bytes(array: pa.Array[Any]) -> tuple[memoryview, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the bytes of blobs, one after the other, and where each one ends; of a large_binary array."""
    plain = array.fill_null(b"") if array.null_count else array
    _, ends, data = plain.buffers()
    bounds = np.frombuffer(ends, np.int64, len(plain) + 1, plain.offset * 8)
    start, stop = int(bounds[0]), int(bounds[-1])
    found = memoryview(data)[start:stop] if data is not None else memoryview(b"")
    return found, bounds - start


def descriptors(
    array: pa.Array[Any], bounds: np.ndarray[Any, np.dtype[np.int64]], position: int, null: int
) -> pa.Array[Any]:
    """Return the positions and sizes of blobs whose bytes were written from a position on; (``null``, 0) is null."""
    sizes = np.diff(bounds)
    starts = np.where(sizes > 0, bounds[:-1] + position, 0)
    if array.null_count:
        starts[np.asarray(array.is_null())] = null
    columns = [number_array(c.astype(np.uint64)) for c in (starts, sizes)]
    fields = [pa.field(n, pa.uint64(), False) for n in ("position", "size")]
    return pa.StructArray.from_arrays(columns, fields=fields)


def blob_page(encoding: bytes, nullable: bool) -> bytes:
    """Return the PageLayout of blobs around that of their positions and sizes."""
    inner = decode("PageLayout", encoding, "a page of positions", DataFileError)
    return encode("PageLayout", {"blob": {"inner_layout": inner, "layers": [_NULLABLE if nullable else _VALID]}})
