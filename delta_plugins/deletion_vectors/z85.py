"""Z85 text: inline deletion vectors, and the UUIDs in the names of vector files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import CorruptTableError
from delta_core.kernels.arrow_buffers import StringBuffers, is_valid, plain_strings, string_array, string_buffers
from delta_plugins.deletion_vectors import _z85

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decode", "decode_uuids", "encode", "vector_file_names"]


def decode(text: str | bytes, size: int | None = None) -> bytes:
    """Turn Z85 text into bytes.

    Parameters
    ----------
    text : str or bytes
        Groups of 5 letters, 4 bytes each.
    size : int, optional
        Bytes to return; the text may hold up to 3 more, which padded it to whole groups (`sizeInBytes` of an inline
        deletion vector).

    Raises
    ------
    CorruptTableError
        A letter or group that is not Z85, letters left over, or not `size` bytes.
    """
    try:
        data = _z85.decode(text.encode("ascii") if isinstance(text, str) else text)
    except UnicodeEncodeError as error:
        raise CorruptTableError(f"Z85 text is ASCII, found {error.object[error.start : error.end]!r}") from error
    if size is None:
        return data
    if not 0 <= len(data) - size < 4:
        raise CorruptTableError(
            f"{len(text)} letters of Z85 hold {len(data)} bytes, expected {size} and at most 3 more"
        )
    return data[:size]


def encode(data: bytes, *, pad: bool = False) -> str:
    """Turn bytes into Z85 text.

    Raises
    ------
    InvalidArgumentError
        Not a multiple of 4 bytes, without `pad` (which adds up to 3 zero bytes).
    """
    return _z85.encode(data + bytes(-len(data) % 4) if pad else data).decode("ascii")


def decode_uuids(texts: pa.Array[Any]) -> NDArray[np.uint8]:
    """Decode the last 20 letters of every text, as `pathOrInlineDv` of storage type ``u`` has them.

    Parameters
    ----------
    texts : string array, **shape (n,)**
        The letters before the last 20 are the random prefix. Null returns zeros.

    Returns
    -------
    uint8, **shape (n, 16)**
        The bytes of the UUIDs.

    Raises
    ------
    CorruptTableError
        A text is shorter, or not Z85.

    Protocol
    --------
    Deletion Vector Descriptor Schema
    """
    buffers = string_buffers(texts)
    return np.zeros((len(texts), 16), np.uint8) if buffers is None else _uuids(texts, buffers)


def vector_file_names(texts: pa.Array[Any]) -> pa.Array[Any]:
    """Return ``<prefix>/deletion_vector_<uuid>.bin``, relative to the table's root, for every text; null for null.

    Otherwise as `decode_uuids`.
    """
    texts = plain_strings(texts)
    buffers = string_buffers(texts)
    if buffers is None:
        return pa.nulls(len(texts), pa.string())
    return string_array(*_z85.vector_names(buffers, _uuids(texts, buffers)), is_valid(texts))


def _uuids(texts: pa.Array[Any], buffers: StringBuffers) -> NDArray[np.uint8]:
    uuids, bad = _z85.decode_uuids(buffers)
    if bad >= 0:
        raise CorruptTableError(
            f"the path {texts[bad].as_py()!r} of a deletion vector doesn't end in 20 letters of Z85, the UUID of its "
            "file"
        )
    return uuids
