"""Rows of many files in another order: in memory, or by way of temporary files if they need more of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import SpillLimitError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import empty_table, number_array
from delta_core.kernels.curves import Ranges, cell_ranks, cells_of, check_ordered, curve_bits, radix_order, ranks_of
from delta_core.kernels.memory import release_unused
from delta_core.operations.temporary import temporary_files
from delta_core.runtime.sizes import num_bytes
from delta_core.runtime.threads import ThreadPool
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Order", "OrderedRows", "Spill"]

Order = Literal["zorder", "hilbert", "linear"]

#: Rows whose values decide the ranges.
SAMPLE_ROWS = 1 << 18
#: Parts that rows are spilled to at most: each has an open file.
MOST_PARTS = 512


class Spill(Struct, frozen=True):
    """How much memory and disk rows may take.

    Parameters
    ----------
    memory : int
        Bytes of rows in memory.
    disk : int or None
        Bytes of temporary files; None for no limit.
    """

    memory: int
    disk: int | None = None


class OrderedRows:
    """Sorts rows by columns or along a curve through them.

    Parameters
    ----------
    columns : sequence of Path
        Of the rows, by name; fields of structs are reached by longer paths.
    order : str
        ``zorder``, ``hilbert``, or ``linear`` for ascending values with nulls first.
    num_files : int
        Files that the rows will be in, about.
    num_rows : int
        The rows, about.
    spill : Spill
        The limits.
    keys : function() -> RecordBatchReader
        Reads the columns alone, for a sample of rows that do not fit into memory.
    """

    def __init__(
        self,
        columns: Sequence[Path],
        order: Order,
        num_files: int,
        num_rows: int,
        spill: Spill,
        keys: Callable[[], pa.RecordBatchReader],
    ) -> None:
        self._columns = columns
        self._order = order
        self._num_rows = max(num_rows, 1)
        self._bits = curve_bits(1 if order == "linear" else len(columns), num_files)
        self._spill = spill
        self._read_keys = keys
        self._ranges: list[Ranges] = []
        self._ranks: NDArray[np.uint32] | None = None

    def parts(self, rows: pa.RecordBatchReader) -> Iterator[tuple[pa.Table, pa.Array]]:
        """Yield the rows in parts, one after the other, each with the order of its rows.

        Parameters
        ----------
        rows : pyarrow.RecordBatchReader
            The rows, with the columns.

        Raises
        ------
        SpillLimitError
            If the temporary files need more than they may.
        SpillError
            If they can't be written, as on a full disk.
        """
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            held.append(batch)
            size += num_bytes(batch)
            # sorted rows are a copy
            if size > self._spill.memory // 2:
                yield from self._spilled(held, size, rows)
                return
        columns: list[Any] = [pa.chunked_array([b.column(i) for b in held], t) for i, t in enumerate(rows.schema.types)]
        held.clear()
        for i, column in enumerate(columns):
            # one after the other, so that the pieces of all columns are never in memory beside the whole
            columns[i] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            del column
        table = pa.Table.from_arrays(columns, schema=rows.schema)
        if table.num_rows:
            yield table, self.order_of(table)

    # --- in memory ---

    def order_of(self, table: pa.Table) -> pa.Array:
        """Return the order of rows in memory."""
        if self._order == "linear":
            return self._linear_order(table)
        if not self._ranges:
            self._learn(table, [_reach(table, path) for path in self._columns])
        return _indices(radix_order(self._positions(table), self._bits * len(self._columns)))

    def _linear_order(self, table: pa.Table) -> pa.Array:
        columns = []
        for column in (_reach(table, path) for path in self._columns):
            check_ordered(column.type)
            if pa.types.is_floating(column.type):
                # PyArrow puts NaN beside nulls; it is above every number
                columns.append(pc.is_nan(column))
            columns.append(column)
        names = [f"{i}" for i in range(len(columns))]
        keys = pa.table(columns, names)
        return pc.sort_indices(keys, sort_keys=[(n, "ascending", "at_start") for n in names])

    def _learn(self, table: pa.Table, columns: Sequence[pa.ChunkedArray]) -> None:
        """Find the ranges of each column from some rows, and the order of the cells."""
        if table.num_rows > SAMPLE_ROWS:
            some = np.sort(np.random.default_rng(0).integers(0, table.num_rows, SAMPLE_ROWS))
            columns = [pc.take(c, _indices(some)) for c in columns]
        own = columns[:1] if self._order == "linear" else columns
        self._ranges = [Ranges(c, self._bits) for c in own]
        num_cells = 1 << (self._bits * len(own))
        if self._order != "linear" and 2 * max(self._num_rows, table.num_rows) > num_cells:
            self._ranks = cell_ranks(self._order, len(own), self._bits)

    def _positions(self, table: pa.Table | pa.RecordBatch) -> NDArray[np.uint32]:
        """Return the position of each row on the curve, or the range of its first column."""
        paths = self._columns[: len(self._ranges)]
        if len(paths) > 1 and table.num_rows > SAMPLE_ROWS:
            with ThreadPool(len(paths), "delta-order") as pool:
                found = pool.map(lambda r, p: r.numbers(_reach(table, p)), self._ranges, paths)
        else:
            found = [r.numbers(_reach(table, p)) for r, p in zip(self._ranges, paths, strict=True)]
        cells = cells_of(found, self._bits)
        if self._ranks is not None:
            return self._ranks[cells]
        return cells if self._order == "linear" else ranks_of(self._order, cells, len(paths), self._bits)

    # --- by way of files ---

    def _spilled(
        self, held: list[pa.RecordBatch], size: int, rest: pa.RecordBatchReader
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        width = size / max(sum(b.num_rows for b in held), 1)
        bounds = self._part_bounds(width * self._num_rows)
        with ExitStack() as stack:
            with temporary_files():
                folder = FilePath(stack.enter_context(tempfile.TemporaryDirectory(prefix="delta-core-")))
            parts = [_Part(folder / f"{i}.arrow", rest.schema) for i in range(len(bounds) + 1)]
            for part in parts:
                stack.callback(part.discard)
            written = 0

            def batches() -> Iterator[pa.RecordBatch]:
                while held:
                    yield held.pop(0)
                yield from rest

            for batch in batches():
                written += self._distribute(batch, bounds, parts)
                if self._spill.disk is not None and written > self._spill.disk:
                    raise SpillLimitError(
                        f"Sorting rows needs more than max_temp_directory_size={self._spill.disk} bytes of temporary "
                        f"files below {folder}. Allow more, or more memory with max_spill_size.",
                        limit=self._spill.disk,
                    )
            release_unused()
            for part in parts:
                table = part.read()
                if table.num_rows:
                    table = table.combine_chunks()
                    yield table, self.order_of(table)

    def _part_bounds(self, total: float) -> NDArray[np.uint32]:
        """Return the positions at which parts begin, so that each has about as many rows and fits into memory."""
        # a part, its sorted copy, and what waits to be written
        count = min(max(2, int(total * 4 / self._spill.memory) + 1), MOST_PARTS)
        rate = min(1.0, SAMPLE_ROWS / self._num_rows)
        random = np.random.default_rng(0)
        some = []
        with self._read_keys() as keys:
            for batch in keys:
                chosen = np.flatnonzero(random.random(batch.num_rows) < rate)
                some.append(pc.take(batch, _indices(chosen)))
            table = pa.Table.from_batches(some, keys.schema)
        self._learn(table, [_reach(table, path) for path in self._columns])
        positions = np.sort(self._positions(table))
        if not len(positions):
            return positions
        return np.unique(positions[np.arange(1, count) * len(positions) // count])

    def _distribute(self, batch: pa.RecordBatch, bounds: NDArray[np.uint32], parts: Sequence[_Part]) -> int:
        numbers = np.searchsorted(bounds, self._positions(batch), side="right").astype(np.uint16)
        order = np.argsort(numbers, kind="stable")
        rows = pc.take(batch, _indices(order))
        ends = np.cumsum(np.bincount(numbers, minlength=len(parts))).tolist()
        start, written = 0, 0
        for part, end in zip(parts, ends, strict=True):
            if end > start:
                written += part.write(rows.slice(start, end - start))
            start = end
        return written


class _Part:
    """Rows in a temporary file."""

    def __init__(self, path: FilePath, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._sink: Any = None
        self._writer: Any = None

    def write(self, rows: pa.RecordBatch) -> int:
        """Append rows; return the bytes that they take."""
        with temporary_files():
            if self._writer is None:
                self._sink = pa.OSFile(str(self._path), "wb")
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writer = pa.ipc.new_stream(self._sink, self._schema, options=options)
            before = self._sink.tell()
            self._writer.write_batch(rows)
            return int(self._sink.tell() - before)

    def discard(self) -> None:
        """Let go of the file as it is."""
        if self._writer is not None:
            self._writer = None
            with suppress(OSError):
                self._sink.close()

    def read(self) -> pa.Table:
        """Return the rows, and delete the file."""
        if self._writer is None:
            return empty_table(self._schema)
        with temporary_files():
            self._writer.close()
            self._sink.close()
            self._writer = None
            with pa.OSFile(str(self._path), "rb") as source:
                table = pa.ipc.open_stream(source).read_all()
            self._path.unlink()
        return table


def _reach(rows: pa.Table | pa.RecordBatch, path: Path) -> Any:
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def _indices(order: NDArray[np.integer[Any]]) -> pa.Array:
    small = order.max(initial=0) < 1 << 32
    return number_array(order.astype(np.uint32 if small else np.uint64))
