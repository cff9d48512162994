"""Which column chunks of a Parquet file our own decoder reads, from the footer; PyArrow reads the others.

On a local disk only: elsewhere the network takes the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.engines.arrow.parquet_types import is_encoded_string, num_leaves
from delta_core.kernels.gather import Picks, gather_column
from delta_core.kernels.parquet_pages import ColumnChunk, UnsupportedPagesError, read_chunk

__all__ = ["Batch", "GroupReader", "find_chunk", "opened", "read_chunks"]

Key = TypeVar("Key")
#: The position of a batch's first row, the batch, and which of the rows from there on it has; None: each one.
Batch = tuple[int, pa.RecordBatch, "Picks | None"]
#: From a position and a number of rows: which of them are wanted, None for all.
Wanted = Callable[[int, int], "Picks | None"]

_CODECS = {"UNCOMPRESSED": False, "SNAPPY": True}
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
#: A footer that claims more may be damaged, and room is made by what it says.
MOST_ROWS = 1 << 24
MOST_BYTES = 256 << 20
#: A row group that takes more when it is decoded as a whole is streamed by PyArrow.
GROUP_BYTES = 64 << 20
#: Rows of a mask's word: a batch of a masked row group begins with one.
_WORD = 64


class GroupReader:
    """Reads row groups of one data file as batches of its top-level columns, in the file's order.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        Open.
    path : str or None
        Where the file lies on a local disk.
    leaves : sequence of int
        The Parquet columns to decode, ascending.
    """

    def __init__(self, file: Any, path: str | None, leaves: Sequence[int]) -> None:
        self._file = file
        self._path = path
        self._leaves = list(leaves)
        self._schema: pa.Schema = file.schema_arrow
        self._flat = {} if path is None else _flat_columns(self._schema, frozenset(leaves))

    def batches(self, groups: Sequence[int], first: int, batch_rows: int, wanted: Wanted | None = None) -> Iterator[Batch]:
        """Yield the rows of neighbouring row groups, of which the first begins at a position.

        Rows that are not wanted are left out of row groups that are read as a whole; a batch that lacks some comes with those
        that it has.
        """
        streamed: list[int] = []
        start = first
        for group in groups:
            rows = self._file.metadata.row_group(group).num_rows
            chunks = self._chunks(group)
            if chunks:
                yield from self._stream(streamed, start, batch_rows)
                yield from self._whole(group, first, chunks, batch_rows, wanted)
                streamed, start = [], first + rows
            else:
                streamed.append(group)
            first += rows
        yield from self._stream(streamed, start, batch_rows)

    def _stream(self, groups: Sequence[int], first: int, batch_rows: int) -> Iterator[Batch]:
        if groups:
            for batch in self._file.reader.iter_batches(
                batch_rows, row_groups=groups, column_indices=self._leaves, use_threads=False
            ):
                yield first, batch, None
                first += batch.num_rows

    def _whole(
        self, group: int, first: int, chunks: dict[int, ColumnChunk], batch_rows: int, wanted: Wanted | None
    ) -> Iterator[Batch]:
        rows = self._file.metadata.row_group(group).num_rows
        picks = wanted(first, rows) if wanted is not None and batch_rows >= _WORD else None
        if picks is None or picks.mask is None:
            for batch in self._read(group, chunks, None).to_batches(batch_rows):
                yield first, batch, None
                first += batch.num_rows
            return
        if not picks.count:
            return
        (kept,) = self._read(group, chunks, picks).to_batches()
        step = batch_rows // _WORD * _WORD
        at = 0
        for start in range(0, rows, step):
            part = picks.part(start, min(start + step, rows))
            if part.count:
                yield first + start, kept.slice(at, part.count), part
                at += part.count

    def _chunks(self, group: int) -> dict[int, ColumnChunk]:
        """Return the chunks of a row group that our own decoder reads, by leaf; none where the group is big."""
        metadata = self._file.metadata
        found = {}
        for leaf, place in self._flat.items():
            t = self._schema.field(place).type
            chunk = find_chunk(metadata, group, leaf, t.value_type if is_encoded_string(t) else t)
            if chunk is not None:
                found[leaf] = chunk
        columns = metadata.row_group(group)
        size = sum(columns.column(leaf).total_uncompressed_size for leaf in self._leaves) if found else 0
        # numbers and codes may take no more than a few bits as they are stored
        return found if size + sum(8 * c.num_rows for c in found.values()) <= GROUP_BYTES else {}

    def _read(self, group: int, chunks: dict[int, ColumnChunk], picks: Picks | None) -> pa.Table:
        """Read a row group, or those rows of it: such columns through our own decoder, the others through PyArrow."""
        assert self._path is not None
        fields = {leaf: self._schema.field(self._flat[leaf]) for leaf in chunks}
        coded = [leaf for leaf, f in fields.items() if is_encoded_string(f.type)]
        found = read_chunks(self._path, chunks, coded, None if picks is None else picks.mask)
        columns: dict[str, Any] = {fields[leaf].name: array for leaf, array in found.items()}
        others = [leaf for leaf in self._leaves if leaf not in found]
        if others:
            table = self._file.reader.read_row_group(group, column_indices=others, use_threads=False)
            for name, column in zip(table.column_names, table.columns, strict=True):
                columns[name] = column if picks is None else gather_column(column.combine_chunks(), picks, decode=False)
        return pa.table({name: columns[name] for name in self._schema.names if name in columns})


def _flat_columns(schema: pa.Schema, leaves: frozenset[int]) -> dict[int, int]:
    """Return the numbers of the top-level columns that are no nested ones, by leaf."""
    found = {}
    leaf = 0
    for place, field in enumerate(schema):
        if leaf in leaves and not pa.types.is_nested(field.type):
            found[leaf] = place
        leaf += num_leaves(field.type)
    # a name that stands twice tells no column
    return found if len(set(schema.names)) == len(schema.names) else {}


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a file on a local disk for reading by the decoder."""
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


def read_chunks(
    path: str, chunks: Mapping[Key, ColumnChunk], coded: Collection[Key] = (), keep: NDArray[np.uint64] | None = None
) -> dict[Key, pa.Array]:
    """Decode column chunks of a file on a local disk; those that are PyArrow's to read are left out.

    Parameters
    ----------
    coded : collection
        Chunks whose strings are wanted as dictionary codes.
    keep : uint64, **shape (n,)**, optional
        A mask of the chunks' rows, see `kernels.parquet_pages.read_chunk`.
    """
    found: dict[Key, pa.Array] = {}
    with opened(path) as file:
        for key, chunk in chunks.items():
            with suppress(UnsupportedPagesError):
                found[key] = read_chunk(file, chunk, key in coded, keep)
    return found


def find_chunk(metadata: Any, group: int, leaf: int, type: pa.DataType) -> ColumnChunk | None:
    """Return where a column chunk lies; None where it is PyArrow's to read.

    Parameters
    ----------
    metadata : pyarrow.parquet.FileMetaData
    leaf : int
        The Parquet column's number.
    type : pyarrow.DataType
        What PyArrow would read it as.
    """
    column = metadata.schema.column(leaf)
    row_group = metadata.row_group(group)
    chunk, rows = row_group.column(leaf), row_group.num_rows
    sizes = chunk.total_compressed_size, chunk.total_uncompressed_size
    if (
        column.max_repetition_level
        or not _is_stored_as(chunk.physical_type, type)
        or chunk.compression not in _CODECS
        or not _ENCODINGS.issuperset(chunk.encodings)
        or chunk.num_values != rows
        or not 0 < rows <= MOST_ROWS
        or not all(0 < size <= MOST_BYTES for size in sizes)
    ):
        return None
    first = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < first:
        first = dictionary
    return ColumnChunk(type, first, sizes[0], _CODECS[chunk.compression], column.max_definition_level, rows, sizes[1])


def _is_stored_as(physical: str, t: pa.DataType) -> bool:
    """Whether the bytes that Parquet stores are those of the Arrow type."""
    types = pa.types
    if physical == "INT32":
        return bool(types.is_int32(t) or types.is_date32(t))
    if physical == "INT64":
        return bool(types.is_int64(t) or types.is_timestamp(t))
    if physical == "BYTE_ARRAY":
        return bool(types.is_string(t) or types.is_binary(t))
    return physical == "DOUBLE" and bool(types.is_float64(t)) or physical == "FLOAT" and bool(types.is_float32(t))
