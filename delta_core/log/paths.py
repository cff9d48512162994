"""Paths of data files, from the log's texts to Python's: whole columns are decoded and split, not one path after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from delta_core.errors import LogError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import holds_bytes, scalar_of, string_bytes

__all__ = ["decode_paths", "join_paths"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
#: The same at the beginning of one of many paths.
_ANY_SCHEME = re.compile(rb"\0" + _SCHEME.pattern.encode())
#: Fewer paths are decoded one by one.
_FEW = 32
#: Paths that are joined at once, so that memory stays small beside the list.
_ROWS = 1 << 18
_HEX = b"0123456789ABCDEFabcdef"


def decode_paths(paths: pa.ChunkedArray) -> list[str]:
    """Return the log's paths percent-decoded, once.

    Raises
    ------
    LogError
        For a path whose encoded bytes are no UTF-8.

    Protocol
    --------
    Add File (paths are URIs by RFC 2396)
    """
    found: list[str] = []
    for part in _parts(paths):
        joined = _decoded_together(part)
        found += [_decoded(p) for p in part.to_pylist()] if joined is None else joined.split("\0")
    return found


def join_paths(paths: pa.ChunkedArray) -> Iterator[tuple[str | None, pa.Array]]:
    """Yield stretches of the log's paths: decoded and joined by null characters, and as they are.

    The joined text is None if they are few, or can only be decoded one by one.
    """
    for part in _parts(paths):
        yield _decoded_together(part), part


def _parts(paths: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in paths.chunks:
        for first in range(0, len(chunk), _ROWS):
            yield chunk.slice(first, _ROWS)


def _decoded_together(paths: pa.Array) -> str | None:
    """Return paths decoded and joined by a byte that no path has; None if they are few, or some need to be decoded by themselves."""
    is_text = pa.types.is_string(paths.type) or pa.types.is_large_string(paths.type)
    if len(paths) < _FEW or not is_text or paths.null_count or holds_bytes(paths, b"\0"):
        return None
    ends = [scalar_of(text, paths.type) for text in ("", "\0")]
    data = string_bytes(pc.binary_join_element_wise(paths, *ends))[:-1]
    if b"%" in data:
        escapes = _escapes(data)
        if escapes is None:
            return None
        for escape, byte in escapes:
            data = data.replace(escape, byte)
        # a scheme that was encoded is none
        if b":" in data and _ANY_SCHEME.search(b"\0" + data) is not None:
            return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _escapes(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the escapes that a text has, each with its byte, in the order in which to replace them.

    None if replacing one could make another: of a digit behind a percent sign.
    """
    codes = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(codes[:-2] == ord("%"))
    pairs = np.unique(codes[at + 1].astype(np.uint16) << 8 | codes[at + 2])
    digits = [bytes((int(pair) >> 8, int(pair) & 255)) for pair in pairs]
    found = [(b"%" + d, bytes((int(d, 16),))) for d in digits if d[0] in _HEX and d[1] in _HEX]
    if any(byte in _HEX or byte == b"\0" for _, byte in found):
        return None
    return sorted(found, key=lambda escape: escape[1] == b"%")


def _decoded(path: str) -> str:
    if "%" not in path:
        return path
    try:
        out = unquote(path, errors="strict")
    except UnicodeDecodeError as e:
        raise LogError(
            f"The log names the data file {path!r}, whose percent-encoded bytes are no UTF-8.", path=path
        ) from e
    # a colon that was encoded is part of a name and ends no scheme
    return f"./{out}" if _SCHEME.match(out) and ":" not in path else out
