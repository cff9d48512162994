"""Columns of a row group that are decoded one stretch of its rows after the other, so that a part of it is in memory.

Our own decoder reads what it can; PyArrow streams the other columns beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from delta_core.kernels.arrow_buffers import is_text, one_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.parquet import page_parts
from delta_core.parquet.opened_file import DataFile
from delta_core.parquet.pages import ChunkStretches, ColumnChunk, PageCounts
from delta_core.runtime.lanes import run_at_once

if TYPE_CHECKING:
    from delta_core.parquet.nested_pages import NestedChunk, NestedColumn, NestedColumnStretches

__all__ = ["Own", "Stretches"]

#: The most rows of PyArrow's batches.
_BATCH_ROWS = 131_072
#: Columns that take less time are decoded on one thread: the other one begins a tenth of it later.
_LANE_NANOSECONDS = 2_000_000
#: Nanoseconds for which a byte is decompressed that is stored by a codec; others take little beside the plain bytes.
_PER_STORED_BYTE = {"GZIP": 2.2, "ZSTD": 0.8}


class Own(Struct, frozen=True):
    """The columns of a row group that our own decoder reads: chunks of flat ones by leaf, nested ones by name."""

    flat: dict[int, ColumnChunk]
    nested: dict[str, tuple[NestedColumn, dict[int, NestedChunk]]]

    @property
    def leaves(self) -> set[int]:
        """The Parquet columns of them."""
        return {*self.flat, *(leaf for _, chunks in self.nested.values() for leaf in chunks)}

    @property
    def chunks(self) -> list[ColumnChunk]:
        """Where their chunks lie."""
        return [*self.flat.values(), *(c.chunk for _, chunks in self.nested.values() for c in chunks.values())]

    def shares(self, coded: Collection[int], lanes: int, share: float = 1.0) -> list[Own]:
        """Divide the columns among ``lanes`` threads by the time that they take; among one, if that is little.

        Parameters
        ----------
        coded : collection of int
            The leaves of strings that are requested as codes.
        lanes : int
            Threads.
        share : float
            Of the rows, about how many are decoded.
        """
        weights: dict[int | str, float] = {}
        if lanes > 1 and len(self.flat) + len(self.nested) > 1:
            weights = {leaf: _weight(chunk, leaf in coded) for leaf, chunk in self.flat.items()}
            for name, (_, chunks) in self.nested.items():
                weights[name] = sum(_weight(chunk.chunk, False) for chunk in chunks.values())
        if not weights or sum(weights.values()) * share < _LANE_NANOSECONDS:
            return [self]
        found = [Own({}, {}) for _ in range(min(lanes, len(weights)))]
        taken = [0.0] * len(found)
        for key in sorted(weights, key=weights.__getitem__, reverse=True):
            lightest = taken.index(min(taken))
            taken[lightest] += weights[key]
            if isinstance(key, int):
                found[lightest].flat[key] = self.flat[key]
            else:
                found[lightest].nested[key] = self.nested[key]
        return found


class Stretches:
    """Top-level columns of some leaves of a row group, read one stretch of rows after the other.

    Parameters
    ----------
    file : DataFile
    group : int
        The row group's number.
    leaves : sequence of int
        The Parquet columns to decode.
    own : Own
        Those that our own decoder reads.
    names : Mapping of int to str
        The names of the flat columns among these.
    coded : collection of int
        Those of strings that are requested as codes.
    pages : PageCounts
        Is counted up.
    lanes : int
        The threads that decode them.
    """

    def __init__(
        self,
        file: DataFile,
        group: int,
        leaves: Sequence[int],
        own: Own,
        names: Mapping[int, str],
        coded: Collection[int],
        pages: PageCounts,
        lanes: int,
    ) -> None:
        self._file, self._group, self._pages = file, group, pages
        self._names = dict(names)
        self._has_threads = lanes > 1
        self._parts: list[_Part] = []
        self._streamed: list[_Streamed] = []
        source, mine = file.source_of([(c.offset, c.num_bytes) for c in own.chunks]), own.leaves
        if source is not None:
            rows = file.footer.group_rows[group]
            # a source that fetches ahead is one thread's
            for share in own.shares(coded, lanes if isinstance(source, int) else 1):
                flat = ChunkStretches(source, share.flat, coded, len(mine)) if share.flat else None
                nested = {
                    name: page_parts.NestedColumnStretches(source, column, chunks, rows, len(mine))
                    for name, (column, chunks) in share.nested.items()
                }
                self._parts.append(_Part(flat, nested))
        self._nested = {name: list(chunks) for name, (_, chunks) in own.nested.items()} if source is not None else {}
        self._stream([leaf for leaf in leaves if source is None or leaf not in mine])

    def _stream(self, leaves: list[int]) -> None:
        """Leave columns to PyArrow."""
        if leaves:
            self._streamed.append(_Streamed(self._file, self._group, leaves, self._has_threads))

    def read(self, start: int, stop: int, picks: SelectionVector | None = None) -> dict[str, pa.Array]:
        """Return the columns of a stretch, by name.

        Parameters
        ----------
        start, stop : int
            The first row, which is after those read before, and the row after the last.
        picks : SelectionVector, optional
            Which of these rows are returned.
        """
        mask, count = (None, stop - start) if picks is None else (picks.mask, picks.count)
        columns: dict[str, pa.Array] = {}
        for flat, nested, pages in run_at_once([partial(p.read, start, stop, mask, count) for p in self._parts]):
            columns |= {self._names[leaf]: array for leaf, array in flat.items()} | nested
            self._pages.add(pages)
        for leaf in [leaf for leaf, name in self._names.items() if name not in columns]:
            del self._names[leaf]
            self._stream([leaf])
        for name in [name for name in self._nested if name not in columns]:
            self._stream(self._nested.pop(name))
        for streamed in self._streamed:
            columns.update(streamed.read(start, stop, picks))
        return columns


def _weight(chunk: ColumnChunk, coded: bool) -> float:
    """Return how many nanoseconds a chunk takes, about: to copy its values, or to look them up by codes."""
    is_copied = chunk.plain_bytes >= 4 * chunk.num_rows
    per_row = 3 if is_text(chunk.type) and not coded else 0 if is_copied else 1
    per_stored = _PER_STORED_BYTE.get(chunk.codec, 0)
    return chunk.plain_bytes / 10 + per_stored * chunk.num_bytes + per_row * chunk.num_rows


class _Part:
    """Columns that one thread decodes."""

    def __init__(self, flat: ChunkStretches[int] | None, nested: dict[str, NestedColumnStretches]) -> None:
        self._flat = flat
        self._nested = nested

    def read(
        self, start: int, stop: int, mask: Any, count: int
    ) -> tuple[dict[int, pa.Array], dict[str, pa.Array], PageCounts]:
        """Return the columns of a stretch that can be decoded, the flat ones by leaf, and how many pages that read."""
        pages = PageCounts()
        flat = {} if self._flat is None else self._flat.read(start, stop, mask, pages)
        nested = {}
        for name, stretches in list(self._nested.items()):
            array = stretches.read(start, stop, mask, count, pages)
            if array is None:
                del self._nested[name]
            else:
                nested[name] = array
        return flat, nested, pages


class _Streamed:
    """Columns of a row group that PyArrow decodes."""

    def __init__(self, file: DataFile, group: int, leaves: list[int], use_threads: bool) -> None:
        batches = file.arrow.stream_leaves(_BATCH_ROWS, [group], leaves, use_threads=use_threads)
        self._batches: Iterator[pa.RecordBatch] = batches
        self._batch: pa.RecordBatch | None = None
        #: The rows of the current batch.
        self._first = self._end = 0

    def read(self, start: int, stop: int, picks: SelectionVector | None) -> dict[str, pa.Array]:
        """See `Stretches.read`."""
        parts: dict[str, list[pa.Array]] = {}
        for at, batch in self._parts(start, stop):
            part = None if picks is None else picks.part(at, at + batch.num_rows)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                parts.setdefault(name, []).append(column if part is None else gather_column(column, part, decode=False))
        return {name: one_array(pa.chunked_array(arrays)) for name, arrays in parts.items()}

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows from one on, each batch with the number of its first row after that one."""
        at = start
        while at < stop:
            if self._batch is None or at >= self._end:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    raise pa.ArrowInvalid(f"the row group has {self._end} rows, not {stop} or more")
                self._first, self._end = self._end, self._end + self._batch.num_rows
                continue
            end = min(stop, self._end)
            yield at - start, self._batch.slice(at - self._first, end - at)
            at = end
