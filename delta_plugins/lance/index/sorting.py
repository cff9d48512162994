"""Values with the ids of their rows, sorted in bounded memory by way of temporary files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from delta_core.api import temporary_files
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, number_array, one_array, values_of

__all__ = ["SortedValues", "order_keys"]

#: Runs that are merged at once.
MOST_RUNS = 32
#: A run takes this part of the memory: rows that are collected, their order and a sorted copy are there at once.
_PARTS_OF_MEMORY = 4
_LEAST_ROWS = 256
_INTS = {16: np.int16, 32: np.int32, 64: np.int64}


def order_keys(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return values that sort as these do: floating-point numbers are in the total order of IEEE 754.

    There -0.0 is before 0.0, and NaN at the ends by its sign. Other types are returned as they are.
    """
    if pa.types.is_boolean(values.type):
        return values.cast(pa.uint8())
    if not pa.types.is_floating(values.type):
        return values
    bits = values.type.bit_width
    numbers = values_of(values).view(_INTS[bits])
    flipped = numbers ^ ((numbers >> (bits - 1)) & np.iinfo(numbers.dtype).max)
    return number_array(flipped, valid=is_valid(values))


class SortedValues:
    """Sorts values, nulls first; of equal ones, those that were added first come first.

    Parameters
    ----------
    values : pyarrow.DataType
        Their type.
    memory : int
        About the most bytes in memory; a batch that is added is in memory whole.
    """

    def __init__(self, values: pa.DataType, memory: int) -> None:
        self._schema = pa.schema([pa.field("values", values), pa.field("ids", pa.uint64())])
        self._run_bytes = max(memory // _PARTS_OF_MEMORY, 1)
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._num_files = 0
        #: The files of sorted rows in the order in which these were added, and how often they were merged.
        self._runs: list[tuple[int, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def add(self, values: pa.Array[Any], ids: pa.Array[Any]) -> None:
        """Add values.

        Parameters
        ----------
        values : pyarrow.Array, **shape (n,)**
            Of the type.
        ids : pyarrow.UInt64Array, **shape (n,)**
            Of their rows, without nulls.

        Raises
        ------
        SpillError
            If a temporary file can't be written.
        """
        batch = pa.RecordBatch.from_arrays([values, ids], schema=self._schema)
        self._held.append(batch)
        self._size += batch.nbytes
        if self._size > self._run_bytes:
            self._add_run(0, iter([self._sorted()]))
            while len(self._runs) >= MOST_RUNS and self._runs[-MOST_RUNS][0] == self._runs[-1][0]:
                level, some = self._runs[-1][0], [p for _, p in self._runs[-MOST_RUNS:]]
                del self._runs[-MOST_RUNS:]
                self._add_run(level + 1, self._merged([_read(p) for p in some]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all of them, sorted, as batches with ``values`` and ``ids``.

        Raises
        ------
        SpillError
            If a temporary file can't be written or read.
        """
        sources = [_read(path) for _, path in self._runs]
        if self._held:
            sources.append(_pieces(self._sorted(), self._piece_bytes))
        return self._merged(sources) if len(sources) > 1 else iter(sources[0] if sources else ())

    @property
    def _piece_bytes(self) -> int:
        return max(self._run_bytes // MOST_RUNS, 1)

    def _sorted(self) -> pa.RecordBatch:
        held, self._held, self._size = self._held, [], 0
        return _in_order([one_array(pa.chunked_array([b.column(i) for b in held])) for i in (0, 1)], self._schema)

    def _add_run(self, level: int, batches: Iterator[pa.RecordBatch]) -> None:
        with temporary_files():
            if self._folder is None:
                folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="delta-core-"))
                self._folder = Path(folder)
            path = self._folder / f"{self._num_files}.arrow"
            self._num_files += 1
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, self._schema) as writer:
                for batch in batches:
                    for piece in _pieces(batch, self._piece_bytes):
                        writer.write_batch(piece)
        self._runs.append((level, path))

    def _merged(self, sources: list[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of sorted sources; of equal values, those of earlier sources come first."""
        heads: list[pa.RecordBatch | None] = [None] * len(sources)
        while True:
            for i, source in enumerate(sources):
                if heads[i] is None or not heads[i].num_rows:  # type: ignore[union-attr]
                    heads[i] = next(source, None)
            live = [i for i, head in enumerate(heads) if head is not None]
            if not live:
                return
            some = [heads[i] for i in live]
            ends = np.cumsum([h.num_rows for h in some])  # type: ignore[union-attr]
            columns = [one_array(pa.chunked_array([h.column(c) for h in some])) for c in (0, 1)]  # type: ignore[union-attr]
            order = values_of(_order(columns[0])).astype(np.int64)
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            # what follows the last row of a head may come before the rows after this place
            count = int(place[ends - 1].min()) + 1
            chosen = number_array(order[:count])
            yield pa.RecordBatch.from_arrays([one_array(pc.take(c, chosen)) for c in columns], schema=self._schema)
            taken = np.bincount(np.searchsorted(ends, order[:count], side="right"), minlength=len(live))
            for i, head, n in zip(live, some, taken.tolist(), strict=True):
                heads[i] = head.slice(n)  # type: ignore[union-attr]


def _order(values: pa.Array[Any]) -> pa.Array[Any]:
    sort: Callable[..., pa.Array[Any]] = pc.sort_indices
    keys = pa.table([order_keys(values)], ["0"])
    return sort(keys, sort_keys=[("0", "ascending", "at_start")])


def _in_order(columns: list[pa.Array[Any]], schema: pa.Schema) -> pa.RecordBatch:
    order = _order(columns[0])
    return pa.RecordBatch.from_arrays([one_array(pc.take(c, order)) for c in columns], schema=schema)


def _pieces(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, about a given number of bytes at a time."""
    step = max(most * batch.num_rows // max(batch.nbytes, 1), _LEAST_ROWS)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, and delete it."""
    with temporary_files():
        with pa.OSFile(str(path), "rb") as source:
            yield from pa.ipc.open_stream(source)
        path.unlink()
