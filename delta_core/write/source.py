"""Rows from wherever users have them, as Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.errors import InvalidArgumentError

__all__ = ["open_source"]


def open_source(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Return rows as a table if they are in memory, else as a stream that can be read once.

    Parameters
    ----------
    data : object
        Whatever has the Arrow PyCapsule interface (PyArrow, Polars, DuckDB results, a `Scan`), a pandas data frame,
        a PyArrow dataset or scanner, or a non-empty list of record batches.

    Raises
    ------
    InvalidArgumentError
        For anything else.
    """
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            # an index with a name is a column to whoever named it
            return pa.Table.from_pandas(data, preserve_index=any(n is not None for n in data.index.names))
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except pa.ArrowException as e:
        raise InvalidArgumentError(f"Found rows as {type(data).__name__}, which can't be taken as columns: {e}.") from e
    if isinstance(data, (list, tuple)) and data and all(isinstance(b, pa.RecordBatch) for b in data):
        return pa.Table.from_batches(list(data))
    for name in ("to_reader", "scanner"):  # a scanner, a dataset
        if hasattr(data, name):
            found = getattr(data, name)()
            return found if isinstance(found, pa.RecordBatchReader) else found.to_reader()
    raise InvalidArgumentError(
        f"Found rows as {type(data).__name__}; expected Arrow data (anything with __arrow_c_stream__), such as a "
        "pyarrow.Table, a Polars or pandas data frame."
    )
