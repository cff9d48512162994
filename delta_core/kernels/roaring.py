"""Roaring bytes straight into masks and positions, and the bytes of a deletion vector around them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels import _roaring
from delta_core.kernels.memory import fresh_array
from delta_core.kernels.row_set import RowSet

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = [
    "DV_FILE_VERSION",
    "DV_MAGIC",
    "decode_bits",
    "decode_dv_bits",
    "decode_dv_payload",
    "decode_mask",
    "decode_positions",
    "dv_bitmap",
    "encode_dv_payload",
    "format_dv_block",
    "read_dv_block",
]

DV_MAGIC = 1681511377
"""First four bytes of a deletion vector, little-endian."""
DV_FILE_VERSION = 1
"""First byte of a file of deletion vectors."""


def decode_positions(data: Buffer, bits: int = 64) -> NDArray[np.int64]:
    """Read portable roaring bytes into ascending positions, int64 of **shape (cardinality,)**.

    Parameters
    ----------
    data : bytes-like
        Not modified, not kept.
    bits : int
        64 for the format of deletion vectors, 32 for one roaring bitmap.

    Raises
    ------
    CorruptTableError
        The bytes break the format.
    """
    return _roaring.decode_positions(data, bits, fresh_array)


def decode_bits(
    data: Buffer, num_rows: int, out: NDArray[np.uint8] | None = None, *, bits: int = 64, keep: bool = False
) -> NDArray[np.uint8]:
    """Read portable roaring bytes into the bit mask of a whole file.

    Parameters
    ----------
    data : bytes-like
        Not modified, not kept.
    num_rows : int
        Rows of the file.
    out : uint8[n_bytes], optional
        A contiguous buffer to reuse, with room for `num_rows` bits rounded up to 8 bytes; bytes after these are
        not changed. Left undefined if an error is raised.
    bits : int
        64 for the format of deletion vectors, 32 for one roaring bitmap.
    keep : bool
        False: 1 = the row is in the set. True: 1 = the row is not.

    Returns
    -------
    uint8[ceil(num_rows / 64) * 8]
        Least significant bit first, zeros after the last row; `out` or the front of it.

    Raises
    ------
    CorruptTableError
        The bytes break the format, or hold a row beyond the file.
    """
    num_bytes = max(num_rows + 63, 0) // 64 * 8
    target = np.empty(num_bytes, np.uint8) if out is None else out
    _roaring.decode_bits(data, target, num_rows, bits, keep)
    return target[:num_bytes]


def decode_mask(
    data: Buffer, num_rows: int, out: NDArray[np.uint8] | None = None, *, bits: int = 64, keep: bool = False
) -> NDArray[np.uint8]:
    """Read portable roaring bytes into the mask of a whole file, one byte a row; otherwise as `decode_bits`.

    Parameters
    ----------
    data : bytes-like
        Not modified, not kept.
    num_rows : int
        Rows of the file.
    out : uint8, **shape (m,)** with m >= num_rows, optional
        A contiguous array to reuse. Left undefined if an error is raised.
    bits : int
        64 for the format of deletion vectors, 32 for one roaring bitmap.
    keep : bool
        False: 1 = the row is in the set. True: 1 = the row is not.

    Returns
    -------
    uint8[num_rows]
        `out`, the front of it, or a fresh array (whose page faults cost more than the decoding).
    """
    target = np.empty(max(num_rows, 0), np.uint8) if out is None else out
    _roaring.decode_mask(data, target, num_rows, bits, keep)
    return target[:num_rows]


# --- deletion vectors: magic number, size and checksum ----------------------------------------


def dv_bitmap(payload: Buffer) -> memoryview:
    """Check the magic number of a deletion vector and return the 64-bit roaring bytes after it.

    Parameters
    ----------
    payload : bytes-like
        Magic number and bitmap; kept alive by the result.

    Raises
    ------
    CorruptTableError
        Cut off, or not a vector in the portable format.

    Protocol
    --------
    Deletion Vector Format
    """
    view = memoryview(payload).cast("B")
    if len(view) < 4:
        raise CorruptTableError(f"a deletion vector has a magic number of 4 bytes, these are {len(view)}")
    magic = int.from_bytes(view[:4], "little")
    if magic != DV_MAGIC:
        raise CorruptTableError(
            f"a deletion vector starts with the magic number {DV_MAGIC}, not {magic}"
            + (" (an obsolete format, written before vectors were released)" if _is_obsolete(view) else "")
        )
    return view[4:]


def _is_obsolete(view: memoryview) -> bool:
    return DV_MAGIC - 1 in (int.from_bytes(view[:4], "little"), int.from_bytes(view[:4], "big"))


def decode_dv_payload(payload: Buffer) -> RowSet:
    """Read the payload of a deletion vector (magic number and bitmap; `sizeInBytes` bytes) into the rows it deletes.

    Parameters
    ----------
    payload : bytes-like
        Not modified, not kept.

    Raises
    ------
    CorruptTableError
        The payload breaks the format.

    Protocol
    --------
    Deletion Vector Format
    """
    return RowSet.from_roaring(dv_bitmap(payload))


def decode_dv_bits(
    payload: Buffer, num_rows: int, out: NDArray[np.uint8] | None = None, *, keep: bool = False
) -> NDArray[np.uint8]:
    """Read the payload of a deletion vector into the bit mask of its file: `dv_bitmap`, then `decode_bits`.

    Parameters
    ----------
    payload : bytes-like
        Magic number and bitmap; not modified, not kept.
    num_rows : int
        Rows of the file.
    out : uint8, **shape (m,)**, optional
        A contiguous array to reuse, as for `decode_bits`.
    keep : bool
        False: 1 = the row is in the set. True: 1 = the row is not.

    Returns
    -------
    uint8, **shape (ceil(num_rows / 64) * 8,)**
        As `decode_bits` returns it.
    """
    return decode_bits(dv_bitmap(payload), num_rows, out, keep=keep)


def encode_dv_payload(rows: RowSet) -> bytes:
    """Return the payload of the deletion vector that deletes `rows`; its length is `sizeInBytes`.

    Parameters
    ----------
    rows : RowSet
        The rows that the vector deletes.
    """
    return DV_MAGIC.to_bytes(4, "little") + rows.to_roaring()


def read_dv_block(block: Buffer, expected_size: int) -> memoryview:
    """Check size and checksum of one vector in a deletion vector file and return its payload.

    Parameters
    ----------
    block : bytes-like
        The file from the vector's `offset`: size, payload, CRC-32. Bytes after these are not read.
    expected_size : int
        The descriptor's `sizeInBytes`.

    Returns
    -------
    memoryview
        `sizeInBytes` bytes of `block`, which it keeps alive.

    Raises
    ------
    CorruptTableError
        The size differs from the descriptor's, the block is cut off, or the checksum is wrong.

    Protocol
    --------
    Deletion Vector File Storage Format
    """
    view = memoryview(block).cast("B")
    if len(view) < 4:
        raise CorruptTableError(f"a deletion vector's size field has 4 bytes, {len(view)} are left in the file")
    size = int.from_bytes(view[:4], "big", signed=True)
    if size != expected_size:
        raise CorruptTableError(
            f"the deletion vector file specifies that the vector has {size} bytes, the descriptor's sizeInBytes "
            f"{expected_size}"
        )
    if size < 0 or len(view) < size + 8:
        raise CorruptTableError(
            f"a deletion vector of {size} bytes takes {size + 8} with size and checksum, {len(view)} are left in the "
            "file"
        )
    payload = view[4 : 4 + size]
    stored, found = int.from_bytes(view[4 + size : 8 + size], "big"), zlib.crc32(payload)
    if stored != found:
        raise CorruptTableError(
            f"the deletion vector's bytes have CRC-32 {found:#010x}, the file specifies {stored:#010x}"
        )
    return payload


def format_dv_block(payload: bytes | memoryview) -> bytes:
    """Return size, payload and CRC-32, as they are in a deletion vector file after its version byte.

    Parameters
    ----------
    payload : bytes or memoryview
        Magic number and bitmap, less than 2**31 bytes.

    Raises
    ------
    InvalidArgumentError
        The payload's size doesn't fit the format's 32 bits.
    """
    if len(payload) >= 2**31:
        raise InvalidArgumentError(f"a deletion vector of {len(payload)} bytes doesn't fit the format's 2**31 - 1")
    return len(payload).to_bytes(4, "big") + bytes(payload) + zlib.crc32(payload).to_bytes(4, "big")
