"""Paths of many files as Python strings, percent-decoded, as they are or between two texts."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

from delta_core.kernels._path_texts import decoded, moved_together, uris
from delta_core.kernels.arrow_buffers import StringBuffers, string_buffers

__all__ = ["decoded_texts", "joined_lists", "uri_texts"]

T = TypeVar("T")

Texts = tuple[list[str | None], list[int]]
"""A text for each path, and the rows that have none."""


def decoded_texts(paths: pa.ChunkedArray) -> Texts:
    """Return each path percent-decoded, and the rows where this is None.

    It is None for null, for bytes that are no UTF-8, and for a path that begins like a URI only when it is decoded.

    Parameters
    ----------
    paths : string array, **shape (n,)**
        Percent-encoded. Invalid escapes stay unchanged.
    """
    return decoded(_parts(paths), len(paths))


def uri_texts(paths: pa.ChunkedArray, before: str, after: str, *, keeps_percents: bool, keeps_colons: bool) -> Texts:
    """Return each path between two texts, percent-decoded, and the rows where this is None.

    It is None for a path that may be no relative one below its root, and where `decoded_texts` has None.

    Parameters
    ----------
    paths : string array, **shape (n,)**
        Percent-encoded.
    before, after : str
        The texts before and after a path.
    keeps_percents, keeps_colons : bool
        Whether this is also the URI of a decoded path with such a sign; else None is returned for it.
    """
    return uris(_parts(paths), len(paths), before.encode(), after.encode(), keeps_percents, keeps_colons)


def joined_lists(lists: list[list[T]]) -> list[T]:
    """Return the items of distinct lists as one list, and leave these empty.

    No item's references are counted, which takes longer than the rest if there are millions.

    Parameters
    ----------
    lists : list of list
        At least one; no list twice.
    """
    if len(lists) == 1:
        return lists[0]
    return moved_together(lists)


def _parts(paths: pa.ChunkedArray) -> list[tuple[StringBuffers | None, int]]:
    return [(string_buffers(part), len(part)) for part in paths.chunks]
