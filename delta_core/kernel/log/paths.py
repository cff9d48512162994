"""Paths of data files, from the log's texts to Python's: whole columns are decoded and split at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError, LogError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import scalar_of, string_bytes, string_ends
from delta_core.kernels.path_texts import decoded_texts, uri_texts
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["are_below_root", "are_excluded", "around_paths", "decode_paths", "decoded_parts", "path_uris", "uri_maker"]

_SCHEME_TEXT = r"[A-Za-z][A-Za-z0-9+.-]*:"
_SCHEME = lazy_pattern(_SCHEME_TEXT)
#: The same at the beginning of one of many paths.
_ANY_SCHEME = lazy_pattern(rb"\0" + _SCHEME_TEXT.encode())
#: Fewer paths are decoded one by one.
_FEW = 32
#: Paths that are decoded at once, so that memory stays small beside the list.
_ROWS = 1 << 18
_TWO_DOTS = 0x2E2E
_HEX = b"0123456789ABCDEFabcdef"


def decode_paths(paths: pa.ChunkedArray) -> list[str]:
    """Return the log's paths percent-decoded, once.

    Parameters
    ----------
    paths : string array or chunked array, **shape (n,)**
        As the log spells them, percent-encoded; null = no file.

    Raises
    ------
    LogError
        For a path whose encoded bytes are no UTF-8.

    Protocol
    --------
    Add File (paths are URIs by RFC 2396)
    """
    return _completed(paths, decoded_texts(paths), _decoded)


def path_uris(paths: pa.ChunkedArray, uri: Callable[[str], str]) -> list[str]:
    """Return the URIs of the log's paths; see `uri_maker`.

    Parameters
    ----------
    paths : string array or chunked array, **shape (n,)**
        As the log spells them, percent-encoded; null = no file.
    uri : function(str) -> str
        Returns the URI of a relative path.
    """
    return uri_maker(uri)(paths)


def uri_maker(uri: Callable[[str], str]) -> Callable[[pa.ChunkedArray], list[str]]:
    """Return a function that returns the URIs of the log's paths.

    Parameters
    ----------
    uri : function(str) -> str
        The storage's; it is called for unusual paths only.

    Raises
    ------
    LogError
        By the function: for a path whose encoded bytes are no UTF-8.
    """
    before, behind = around_paths(uri)

    def keeps(odd: str) -> bool:
        return uri(odd) == f"{before}{odd}{behind}"

    # some stores resolve escapes of their own and what is beside them, or take what precedes a colon for a scheme
    percents, colons = keeps("\1%41") and keeps("./\1%41"), keeps("\1/b c=1:2/d")

    def uris(paths: pa.ChunkedArray) -> list[str]:
        texts = uri_texts(paths, before, behind, keeps_percents=percents, keeps_colons=colons)
        return _completed(paths, texts, lambda path: uri(_decoded(path)))

    return uris


def around_paths(uri: Callable[[str], str]) -> tuple[str, str]:
    """Return what precedes and follows a relative path in its URI; in most stores nothing follows it.

    Parameters
    ----------
    uri : function(str) -> str
        Returns the URI of a relative path.
    """
    before, _, behind = uri("\1").partition("\1")
    return before, behind


def _completed(
    paths: pa.ChunkedArray, texts: tuple[list[str | None], list[int]], of_path: Callable[[str], str]
) -> list[str]:
    """Return texts, with those that are missing made one by one."""
    found, missing = texts
    for row in missing:
        found[row] = of_path(paths[row].as_py())
    return cast("list[str]", found)


def decoded_parts(paths: pa.ChunkedArray) -> Iterator[tuple[pa.Array | None, pa.Array]]:
    """Yield stretches of the log's paths, percent-decoded and as they are.

    The first is None if paths of the stretch can only be decoded one by one, as `decode_paths` does.

    Parameters
    ----------
    paths : string array or chunked array, **shape (n,)**
        As the log spells them, percent-encoded; null = no file.
    """
    for chunk in paths.chunks:
        for first in range(0, len(chunk), _ROWS):
            part = chunk.slice(first, _ROWS)
            yield _decoded_together(part), part


def are_below_root(paths: pa.Array) -> bool:
    """Whether decoded paths are certainly relative ones that stay below the root; if one is in doubt, False.

    Parameters
    ----------
    paths : string array, **shape (n,)**
        Decoded paths; no nulls.
    """
    data = string_bytes(paths)
    codes, starts = np.frombuffer(data, np.uint8), string_ends(paths)[:-1]
    if b":" in data or b"\0" in data:
        return False
    # two dots, at even and at odd places: much faster than a search for both
    pairs = (codes[at : len(codes) - (len(codes) - at) % 2].view(np.uint16) for at in (0, 1))
    return not any((p == _TWO_DOTS).any() for p in pairs) and not (codes[starts[starts < len(codes)]] == ord("/")).any()


def _decoded_together(paths: pa.Array) -> pa.Array | None:
    is_text = pa.types.is_string(paths.type) and not paths.null_count
    if not is_text or not len(paths) or b"%" not in (plain := string_bytes(paths)):
        return paths if is_text else None
    if len(paths) < _FEW or b"\0" in plain:
        return None
    data = string_bytes(pc.binary_join_element_wise(paths, *(scalar_of(text, paths.type) for text in ("", "\0"))))
    escapes = _escapes(data)
    if escapes is None:
        return None
    for escape, byte in escapes:
        data = data.replace(escape, byte)
    # a scheme that was encoded is none
    if b":" in data and _ANY_SCHEME.search(b"\0" + data) is not None:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    offsets = np.concatenate([np.zeros(1, np.int32), (ends - np.arange(len(ends))).astype(np.int32)])
    return pa.Array.from_buffers(
        paths.type, len(paths), [None, pa.py_buffer(offsets), pa.py_buffer(data.replace(b"\0", b""))]
    )


def _escapes(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the escapes that a text has, each with its byte, in the order in which to replace them.

    None if replacing one could make another: of a digit after a percent sign.
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
    from urllib.parse import unquote  # takes 3 ms of a first read, and few tables have such names

    try:
        out = unquote(path, errors="strict")
    except UnicodeDecodeError as e:
        raise LogError(
            f"The log names the data file {path!r}, whose percent-encoded bytes are no UTF-8.", path=path
        ) from e
    # a colon that was encoded is part of a name and ends no scheme
    return f"./{out}" if _SCHEME.match(out) and ":" not in path else out


def are_excluded(paths: pa.ChunkedArray | pa.Array, exclude_regex: str) -> pa.ChunkedArray | pa.Array:
    """Return whether each path, as the log spells it, contains a match of an expression in RE2's syntax.

    Parameters
    ----------
    paths : string array or chunked array, **shape (n,)**
        As the log spells them, percent-encoded; null = no file.
    exclude_regex : str
        The expression.

    Raises
    ------
    InvalidArgumentError
        It is no such expression.
    """
    try:
        return pc.match_substring_regex(paths, exclude_regex)
    except (pa.ArrowInvalid, TypeError) as e:
        raise InvalidArgumentError(f"Found exclude_regex={exclude_regex!r}: {e}.") from e
