"""Deletion vectors to bytes in plain Python: an encoder that shares nothing with the compiled kernels it tests."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["VECTOR_FILE_VERSION", "decode_z85", "encode_vector", "encode_vector_file", "encode_z85", "vector_path"]

VECTOR_FILE_VERSION = 1
#: Little-endian, at the head of every vector's payload. Protocol: Deletion Vector Format.
MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def encode_z85(data: bytes) -> str:
    """Return the Z85 text of bytes, padded with zero bytes to a multiple of four."""
    data += bytes(-len(data) % 4)
    out = []
    for (word,) in struct.iter_unpack(">I", data):
        out.append("".join(_Z85[word // 85**k % 85] for k in (4, 3, 2, 1, 0)))
    return "".join(out)


def decode_z85(text: str) -> bytes:
    """Return the bytes of a Z85 text whose length is a multiple of five."""
    out = bytearray()
    for at in range(0, len(text), 5):
        word = 0
        for char in text[at : at + 5]:
            word = word * 85 + _Z85.index(char)
        out += struct.pack(">I", word)
    return bytes(out)


def vector_path(name: uuid.UUID, prefix: str = "") -> tuple[str, str]:
    """Return ``pathOrInlineDv`` of a ``u`` vector file, and the file's path below the table's root."""
    return prefix + encode_z85(name.bytes), f"{prefix}/deletion_vector_{name}.bin".lstrip("/")


def encode_vector(rows: Iterable[int], runs: bool = False) -> bytes:
    """Return magic and 64-bit portable roaring bitmap of row numbers; ``runs`` writes run containers.

    Protocol: Deletion Vector Format. Arrays up to 4096 values a container, bitmaps above.
    """
    buckets = _split(sorted(set(rows)), 32)
    parts = [struct.pack("<IQ", MAGIC, len(buckets))]
    for key, low in buckets:
        parts.append(struct.pack("<I", key) + _encode_32(low, runs))
    return b"".join(parts)


def _split(values: Sequence[int], bits: int) -> list[tuple[int, list[int]]]:
    """Group ascending values by their bits above ``bits``."""
    groups: dict[int, list[int]] = {}
    for value in values:
        groups.setdefault(value >> bits, []).append(value & ((1 << bits) - 1))
    return list(groups.items())


def _encode_32(values: list[int], runs: bool) -> bytes:
    containers = _split(values, 16)
    count = len(containers)
    head = struct.pack("<II", 12346, count)
    if runs:
        flags = ((1 << count) - 1).to_bytes(-(-count // 8), "little")
        head = struct.pack("<HH", 12347, count - 1) + flags
    head += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers)
    bodies = [_run_container(low) if runs else _container(low) for _, low in containers]
    if runs and count < 4:
        return head + b"".join(bodies)
    at = len(head) + 4 * count
    offsets = bytearray()
    for body in bodies:
        offsets += struct.pack("<I", at)
        at += len(body)
    return head + bytes(offsets) + b"".join(bodies)


def _container(low: list[int]) -> bytes:
    if len(low) <= 4096:
        return struct.pack(f"<{len(low)}H", *low)
    bitmap = bytearray(8192)
    for value in low:
        bitmap[value >> 3] |= 1 << (value & 7)
    return bytes(bitmap)


def _run_container(low: list[int]) -> bytes:
    spans = list(_spans(low))
    return struct.pack("<H", len(spans)) + b"".join(struct.pack("<HH", a, b - a) for a, b in spans)


def _spans(low: list[int]) -> Iterator[tuple[int, int]]:
    first = last = low[0]
    for value in low[1:]:
        if value != last + 1:
            yield first, last
            first = value
        last = value
    yield first, last


def encode_vector_file(vectors: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """Return a vector file's bytes and the offset of each vector (of its size field) in it.

    Protocol: Deletion Vector File Storage Format: the frame is big-endian, the payload little-endian.
    """
    out = bytearray([VECTOR_FILE_VERSION])
    offsets = []
    for vector in vectors:
        offsets.append(len(out))
        out += struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    return bytes(out), offsets
