"""Rows for any filter that a scan takes, without `pyarrow.dataset`, which imports an installed pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

import pyarrow as pa

from delta_core.kernels.arrow_buffers import joined_batches
from delta_core.runtime.arguments import check_names
from delta_core.scan.rows import Scannable

__all__ = ["FEW_ROWS", "gathered", "schema_of_rows", "shared_out", "with_repeated"]

#: A batch of fewer rows and bytes waits for others, until there are this many together.
FEW_ROWS, _FEW_BYTES = 8_192, 1 << 20
_ENOUGH_ROWS, _ENOUGH_BYTES = 32_768, 8 << 20
#: The number of parts into which the first batches are split, and their rows.
_SHARES, _SHARE_ROWS = 8, 16_384
#: A plan of all columns takes longer than a small read of a few.
_schemas: WeakKeyDictionary[Scannable, pa.Schema] = WeakKeyDictionary()


def schema_of_rows(source: Scannable) -> pa.Schema:
    """Return the columns of a scan of everything, which is planned once for a snapshot."""
    found = _schemas.get(source)
    if found is None:
        found = _schemas[source] = source.scan().schema
    return found


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join neighbouring small batches, as a filter leaves them: another library takes a fixed time for each batch.

    Batches of other types, as the rest of a larger one with string views has, are not joined.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_small = batch.num_rows < FEW_ROWS and batch.nbytes < _FEW_BYTES
        if waiting and is_small and not batch.schema.equals(waiting[0].schema):
            yield joined_batches(waiting)
            waiting, rows, size = [], 0, 0
        if is_small:
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if waiting and (not is_small or rows >= _ENOUGH_ROWS or size >= _ENOUGH_BYTES):
            yield joined_batches(waiting)
            waiting, rows, size = [], 0, 0
        if not is_small:
            yield batch
    if waiting:
        yield joined_batches(waiting)


def shared_out(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Split the first rows into several batches, without a copy: a small result may be one batch.

    Other libraries hand a batch to one of their threads whole.
    """
    shares = 0
    for batch in batches:
        first = 0
        while shares < _SHARES and batch.num_rows - first > _SHARE_ROWS:
            yield batch.slice(first, _SHARE_ROWS)
            first += _SHARE_ROWS
            shares += 1
        yield batch.slice(first) if first else batch


def with_repeated(columns: Sequence[str] | None, read: Callable[[list[str] | None], pa.Table]) -> pa.Table:
    """Call ``read`` with each column once, and return the columns as often as they are named."""
    check_names("columns", columns)
    names = None if columns is None else list(dict.fromkeys(columns))
    table = read(names)
    if columns is None or names is None or len(names) == len(columns):
        return table
    return table.select([names.index(c) for c in columns])
