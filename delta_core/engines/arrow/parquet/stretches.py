"""Columns of a row group that are decoded one stretch of its rows after the other, so that a part of it is in memory.

Our own decoder reads what it can; PyArrow streams the other columns beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.parquet.opened_file import DataFile
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.parquet_nested import NestedChunk, NestedColumn, NestedColumnStretches
from delta_core.kernels.parquet_pages import ChunkStretches, ColumnChunk, PageCounts

__all__ = ["Own", "Stretches"]

#: PyArrow's batches have so many rows at most.
_BATCH_ROWS = 131_072


class Own(Struct, frozen=True):
    """What our own decoder reads of a row group: chunks of flat columns by leaf, nested columns by name."""

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
        What our own decoder reads of them.
    names : Mapping of int to str
        The names of the flat columns among these.
    coded : collection of int
        Those of strings that are requested as codes.
    pages : PageCounts
        Is counted up.
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
    ) -> None:
        self._file, self._group, self._pages = file, group, pages
        self._names = dict(names)
        self._flat: ChunkStretches[int] | None = None
        self._nested: dict[str, tuple[NestedColumnStretches, list[int]]] = {}
        self._streamed: list[_Streamed] = []
        source, mine = file.source_of([(c.offset, c.num_bytes) for c in own.chunks]), own.leaves
        if source is not None:
            rows = file.footer.group_rows[group]
            if own.flat:
                self._flat = ChunkStretches(source, own.flat, coded, len(mine))
            for name, (column, chunks) in own.nested.items():
                self._nested[name] = NestedColumnStretches(source, column, chunks, rows, len(mine)), list(chunks)
        self._stream([leaf for leaf in leaves if source is None or leaf not in mine])

    def _stream(self, leaves: list[int]) -> None:
        """Leave columns to PyArrow."""
        if leaves:
            self._streamed.append(_Streamed(self._file, self._group, leaves))

    def read(self, start: int, stop: int, picks: SelectionVector | None = None) -> dict[str, pa.Array]:
        """Return the columns of a stretch, by name.

        Parameters
        ----------
        start, stop : int
            The first row, behind those before, and the one behind the last.
        picks : SelectionVector, optional
            Which of these rows are returned.
        """
        mask, count = (None, stop - start) if picks is None else (picks.mask, picks.count)
        columns = {}
        if self._flat is not None:
            found = self._flat.read(start, stop, mask, self._pages)
            columns.update({self._names[leaf]: array for leaf, array in found.items()})
            undone = [leaf for leaf in self._names if leaf not in found]
            for leaf in undone:
                del self._names[leaf]
            self._stream(undone)
        for name, (stretches, leaves) in list(self._nested.items()):
            array = stretches.read(start, stop, mask, count, self._pages)
            if array is None:
                del self._nested[name]
                self._stream(leaves)
            else:
                columns[name] = array
        for streamed in self._streamed:
            columns.update(streamed.read(start, stop, picks))
        return columns


class _Streamed:
    """Columns of a row group that PyArrow decodes."""

    def __init__(self, file: DataFile, group: int, leaves: list[int]) -> None:
        self._batches: Iterator[pa.RecordBatch] = file.arrow.stream_leaves(_BATCH_ROWS, [group], leaves)
        self._batch: pa.RecordBatch | None = None
        #: The rows of the batch at hand.
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
        """Yield the rows from one on, each batch with the number of its first row behind that one."""
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
