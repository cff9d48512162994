"""Rows from wherever users have them, as Arrow; a stream that was read before is rejected, not taken for no rows."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ArgumentEmptyError, ArgumentInterfaceError, InvalidArgumentError
from delta_core.handles.secrets import shown_uri

__all__ = ["open_source"]

#: Libraries whose objects with an Arrow stream, unless they are iterators, return all of their rows each time.
_REPEATABLE = frozenset(("daft", "datafusion", "delta_core", "duckdb", "_duckdb", "ibis", "polars", "pyarrow"))

#: The forms of rows, several at a time.
_PARTS = (pa.RecordBatch, pa.Table)


class _Reading(Struct):
    """The part of one source that was read.

    Parameters
    ----------
    is_begun, is_ended : bool
        Whether rows were requested, and whether all of them were returned.
    rows : int
        The most rows that one reading returned.
    """

    is_begun: bool = False
    is_ended: bool = False
    rows: int = 0


#: The readings of sources that exist, by the source's id; a reference to the source deletes its entry.
_readings: dict[int, tuple[weakref.ref[Any], _Reading]] = {}


def open_source(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Return rows as a table if they are in memory, else as a stream that can be read once.

    Parameters
    ----------
    data : object
        An object with the Arrow PyCapsule interface (PyArrow, Polars, DuckDB results, a `Scan`), a pandas data frame,
        a PyArrow dataset or scanner, a non-empty sequence (list, tuple, deque) of record batches and tables of one
        schema, or a generator of them.

    Raises
    ------
    InvalidArgumentError
        For anything else, and for a stream that an earlier call read, in part at least. The stream that is returned
        raises it too, if its source returns no rows where an earlier call read some.

    Notes
    -----
    Sources are remembered weakly, from the first request for their rows on. A call that fails before, for example since
    the table exists, leaves its stream usable.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            # an index with a name is a column for its author
            return pa.Table.from_pandas(data, preserve_index=any(n is not None for n in data.index.names))
        if hasattr(data, "__arrow_c_stream__"):
            return _noted(data, lambda: _stream_of(data))
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except pa.ArrowException as e:
        raise InvalidArgumentError(f"Found rows as {type(data).__name__}, which can't be taken as columns: {e}.") from e
    if hasattr(data, "to_reader"):  # a scanner
        return _noted(data, data.to_reader)
    if hasattr(data, "scanner"):  # a dataset
        return _noted(data, lambda: data.scanner().to_reader())
    return _in_parts(data)


def _in_parts(data: Any) -> pa.Table | pa.RecordBatchReader:
    if isinstance(data, Sequence) and data and all(isinstance(b, _PARTS) for b in data):
        return _joined(data)
    if isinstance(data, Generator):
        return _of_generator(data)
    raise _misfit(data)


def _misfit(data: Any) -> ArgumentInterfaceError:
    what = type(data).__name__
    if isinstance(data, (str, os.PathLike)):
        what = f"the {what} {shown_uri(os.fspath(data))!r}, which would be a table's place"
        hint = " To copy rows of a table, pass DeltaTable(uri)."
    elif isinstance(data, Sequence):
        what += f" of {type(data[0]).__name__}" if data else ", which is empty and has no schema"
        hint = " Make rows of Python into a table by pyarrow.Table.from_pylist."
    elif isinstance(data, Iterator):
        what, hint = f"{what}, an iterator", " Pass a generator or a list of record batches."
    else:
        hint = ""
    error = ArgumentEmptyError if isinstance(data, Sequence) and not data else ArgumentInterfaceError
    return error(
        f"Found rows as {what}; expected Arrow data (anything with __arrow_c_stream__), such as a pyarrow.Table, a "
        f"Polars or pandas data frame, or a list of record batches.{hint}"
    )


def _joined(parts: Sequence[pa.RecordBatch | pa.Table]) -> pa.Table:
    """Return batches and tables of one schema as one table; nothing is copied."""
    schema = parts[0].schema
    for number, part in enumerate(parts):
        _check_schema(part, schema, number)
    batches = [b for part in parts for b in (part.to_batches() if isinstance(part, pa.Table) else [part])]
    return pa.Table.from_batches(batches, schema)


def _check_schema(part: Any, schema: pa.Schema, number: int) -> None:
    if not isinstance(part, _PARTS):
        raise InvalidArgumentError(
            f"Found a {type(part).__name__} as number {number} of the batches; expected record batches or tables."
        )
    if not part.schema.equals(schema):
        found, expected = (", ".join(f"{f.name}: {f.type}" for f in s) for s in (part.schema, schema))
        raise InvalidArgumentError(
            f"Found the schema ({found}) in batch number {number}, counted from 0; expected that of the first, "
            f"({expected}). Cast the batches to one schema."
        )


def _of_generator(data: Generator[Any]) -> pa.RecordBatchReader:
    """Return the batches of a generator, whose first one has the schema, as a stream."""
    reading = _reading_of(data)
    _check_unread(data, reading)
    first = next(data, None)
    if first is None:
        raise InvalidArgumentError(
            "Found rows as a generator without batches, which has no schema: it was read before, or yields none."
        )
    _check_schema(first, first.schema if isinstance(first, _PARTS) else None, 0)
    # the first batch is gone from the generator, whether or not the stream is read
    reading.is_begun = True

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(chain((first,), data)):
            _check_schema(part, first.schema, number)
            reading.rows += part.num_rows
            yield from part.to_batches() if isinstance(part, pa.Table) else (part,)

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def _stream_of(data: Any) -> pa.RecordBatchReader:
    return data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)


def _noted(data: Any, opened: Callable[[], pa.RecordBatchReader]) -> pa.RecordBatchReader:
    """Return the rows of a source as a stream that notes how far the source is read."""
    reading = _reading_of(data)
    _check_unread(data, reading)
    if getattr(data, "closed", None) is True:
        raise _was_read(data, reading)
    reader = opened()
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(data, reader, reading))


def _batches(data: Any, reader: pa.RecordBatchReader, reading: _Reading) -> Iterator[pa.RecordBatch]:
    _check_unread(data, reading)
    is_again, rows = reading.is_begun, 0
    reading.is_begun, reading.is_ended = True, False
    try:
        for batch in reader:
            rows += batch.num_rows
            reading.rows = max(reading.rows, rows)
            yield batch
    except pa.ArrowException as e:
        if is_again and not rows:
            raise _was_read(data, reading) from e
        raise
    if not rows and reading.rows:
        raise _was_read(data, reading)
    reading.is_ended = True


def _reading_of(data: Any) -> _Reading:
    key = id(data)
    found = _readings.get(key)
    if found is not None and found[0]() is data:
        return found[1]
    reading = _Reading()

    def forget(reference: weakref.ref[Any]) -> None:
        # another object may have its id meanwhile
        if key in _readings and _readings[key][0] is reference:
            del _readings[key]

    with suppress(TypeError):  # of an object that takes no weak references
        _readings[key] = weakref.ref(data, forget), reading
    return reading


def _check_unread(data: Any, reading: _Reading) -> None:
    """Reject a source that can't return all of its rows (again)."""
    is_stream = isinstance(data, pa.RecordBatchReader) or hasattr(type(data), "__next__")
    is_partial = reading.is_begun and not reading.is_ended
    is_repeatable = type(data).__module__.partition(".")[0] in _REPEATABLE and not is_stream
    if (is_stream and reading.is_begun) or (is_partial and not is_repeatable):
        raise _was_read(data, reading)


def _was_read(data: Any, reading: _Reading) -> InvalidArgumentError:
    found = f"an earlier call read {reading.rows} rows of it" if reading.is_begun else "it is closed"
    return InvalidArgumentError(
        f"Found rows as a {type(data).__name__} that was read before: {found}, and a stream can be read once. Pass a "
        "new one (a merge has to be built again with it), or rows in memory, such as pyarrow.table(...).",
        rows=reading.rows,
    )
