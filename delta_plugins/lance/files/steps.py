"""Reads of several columns that go forward side by side, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_plugins.lance._pages import TooLongError
from delta_plugins.lance.files.array_pages import Steps

__all__ = ["advanced", "concatenated", "in_turn", "joined_lists", "joined_spans"]

_Read = Callable[[list[tuple[int, int]]], Sequence[Any]]


def advanced(columns: Sequence[Steps], read: _Read) -> list[Any]:
    """Run columns to their ends; the ranges that all of them need next are read together.

    Parameters
    ----------
    columns : sequence of generator
        Each one yields ranges of bytes, is sent their bytes, and returns its result.
    read : callable
        Returns the bytes of ranges.
    """
    found: list[Any] = [None] * len(columns)
    waiting: list[tuple[int, list[tuple[int, int]]]] = []

    def advance(i: int, data: Any) -> None:
        try:
            waiting.append((i, columns[i].send(data)))
        except StopIteration as e:
            found[i] = e.value

    for i in range(len(columns)):
        advance(i, None)
    while waiting:
        data = iter(read([r for _, ranges in waiting for r in ranges]))
        now = waiting[:]
        waiting.clear()
        for i, ranges in now:
            advance(i, [next(data) for _ in ranges])
    return found


def in_turn(reads: Iterable[Steps]) -> Steps:
    """Run reads one after the other, and return a list of their results."""
    found = []
    for read in reads:
        found.append((yield from read))  # noqa: PERF401 - no comprehension may yield
    return found


def joined_spans(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return spans that rise, those that touch as one, without empty ones."""
    spans = spans[spans[:, 0] < spans[:, 1]]
    if len(spans) < 2:
        return spans
    first = np.flatnonzero(np.r_[True, spans[1:, 0] != spans[:-1, 1]])
    return np.stack([spans[first, 0], spans[np.r_[first[1:] - 1, len(spans) - 1], 1]], 1)


def concatenated(arrays: list[pa.Array[Any]], type: pa.DataType) -> pa.Array[Any]:
    """Return arrays as one.

    Raises
    ------
    TooLongError
        If 32-bit offsets do not describe all of the values.
    """
    if not arrays:
        return pa.nulls(0, type)
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid:
        raise TooLongError("values take more than 2 GiB") from None


def joined_lists(
    type: pa.DataType, parts: Sequence[tuple[int, Any, Any, int]], items: pa.Array[Any], is_wide: bool
) -> pa.Array[Any]:
    """Return the lists of several pages, whose items are in one array.

    Parameters
    ----------
    type : pyarrow.DataType
        Of the lists.
    parts : sequence of tuple
        The number of lists, their offsets from 0 on, their validity or None, and the nulls, of each page.
    items : pyarrow.Array
        The items of all pages.
    is_wide : bool
        Whether offsets have 64 bits.

    Raises
    ------
    TooLongError
        If 32-bit offsets do not describe all of the items.
    """
    if len(parts) == 1:
        [(n, offsets, bits, nulls)] = parts
        return pa.Array.from_buffers(type, n, [bits, offsets], nulls, children=[items])
    if not parts:
        return pa.nulls(0, type)
    kind = np.int64 if is_wide else np.int32
    ends = [np.zeros(1, np.int64)]
    valid = []
    for n, offsets, bits, _ in parts:
        ends.append(np.frombuffer(offsets, kind, n + 1)[1:] + ends[-1][-1])
        one = np.ones(n, np.uint8)
        valid.append(one if bits is None else np.unpackbits(np.frombuffer(bits, np.uint8), count=n, bitorder="little"))
    whole = np.concatenate(ends)
    if not is_wide and whole[-1] > np.iinfo(np.int32).max:
        raise TooLongError("lists have more items than 32-bit offsets hold")
    nulls = sum(p[3] for p in parts)
    validity = pa.py_buffer(np.packbits(np.concatenate(valid), bitorder="little")) if nulls else None
    buffers = [validity, pa.py_buffer(whole.astype(kind))]
    return pa.Array.from_buffers(type, len(whole) - 1, buffers, nulls, children=[items])
