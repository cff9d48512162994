"""Rows whose top-level strings are dictionary codes, for libraries that fix the types before they see the first row.

DuckDB hashes, compares and joins each distinct string of a batch once if it gets codes. Strings that are not stored as
codes get one of their own for each row, which costs little beside reading them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import is_valid, number_array
from delta_core.kernels.gather import gather_column
from delta_core.kernels.nested import batch_of
from delta_core.scan.interop.rows import FEW_ROWS, gathered, shared_out

__all__ = ["coded_reader", "coded_schema"]

_CODES = pa.dictionary(pa.int32(), pa.string())


def coded_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with top-level strings as ``dictionary<int32, string>``."""
    return pa.schema([f.with_type(_CODES) if f.type == pa.string() else f for f in schema], schema.metadata)


def coded_reader(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return rows in batches of sizes that other libraries take best.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows, with strings as such.
    batches : iterable of pyarrow.RecordBatch
        Of this schema, but for strings that may be codes: see `Scan.encoded_batches`.
    """
    coded = coded_schema(schema)
    return pa.RecordBatchReader.from_batches(coded, _coded(batches, coded))


def _coded(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # the parts of a batch are encoded: DuckDB takes over the dictionary of each of them whole
    for batch in shared_out(gathered(map(_decoded_if_small, batches))):
        columns = batch.columns
        for i, wanted in enumerate(schema.types):
            if wanted == _CODES:
                columns[i] = _codes(columns[i])
        yield batch_of(columns, schema)


def _decoded_if_small(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode the strings of a batch that is joined with others, which have other dictionaries."""
    if batch.num_rows >= FEW_ROWS or _CODES not in batch.schema.types:
        return batch
    # other dictionaries are of a type that a caller chose
    columns = [gather_column(c, None) if c.type == _CODES else c for c in batch.columns]
    # a field that is not nullable stays so: batches are joined with those that had no codes
    fields = [f.with_type(c.type) for f, c in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _codes(array: pa.Array) -> pa.Array:
    """Return strings as codes: of themselves if they have none, or if the dictionary is longer than they are."""
    if pa.types.is_dictionary(array.type):
        if len(array.dictionary) <= len(array):
            return array
        array = gather_column(array, None)
    known = is_valid(array) if array.null_count else None
    codes = number_array(np.arange(len(array), dtype=np.int32), pa.int32(), known)
    # pyarrow unifies no dictionaries that have nulls: what is null is an empty string that no code refers to
    _, ends, texts = array.buffers()
    if array.null_count and ends is not None:
        texts = pa.py_buffer(b"") if texts is None else texts
        array = pa.Array.from_buffers(array.type, len(array), [None, ends, texts], 0, array.offset)
    return pa.DictionaryArray.from_arrays(codes, array, safe=False)
