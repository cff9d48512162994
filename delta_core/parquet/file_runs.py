"""Small Parquet files that one writer encodes, as row groups of one file in memory that is cut into files.

To begin and end a file, and to parse the footer that it got, takes PyArrow as long as to encode some hundred rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.records import ColumnStatistics
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.parquet.row_group_files import row_group_files
from delta_core.parquet.statistics import Leaf, Measured, footer_statistics, leaves_to_measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EncodedFiles", "FileRun", "can_be_cut"]


class EncodedFiles(Struct, frozen=True):
    """Files in memory.

    Parameters
    ----------
    data : memoryview
        The concatenated files.
    ends : int64[n]
        Where each one ends.
    statistics : sequence of tuple of ColumnStatistics
        Statistics of the leaves of each.
    """

    data: memoryview
    ends: NDArray[Any]
    statistics: Sequence[tuple[ColumnStatistics, ...]]


def can_be_cut(options: Mapping[str, Any]) -> bool:
    """Whether files that are written with some options contain their places in the footer only, as far as it moves."""
    return not options.keys() & {"write_page_index", "bloom_filter_options"}


class FileRun:
    """Files of one row group each.

    Parameters
    ----------
    schema : pyarrow.Schema
        Their columns.
    options : Mapping
        PyArrow's, for which `can_be_cut` holds.
    leaves : sequence of Leaf
        The columns to measure.
    """

    def __init__(self, schema: pa.Schema, options: Mapping[str, Any], leaves: tuple[Leaf, ...]) -> None:
        # not `pyarrow.parquet`, which loads every file system that PyArrow has
        from pyarrow._parquet import ParquetWriter

        self._leaves = leaves
        self._tables: list[pa.Table] = []
        self._sink = pa.BufferOutputStream(POOL_OF_BATCHES)
        self._writer: Any = ParquetWriter(
            self._sink, schema, writer_engine_version="V2", memory_pool=POOL_OF_BATCHES, **options
        )

    def append(self, table: pa.Table) -> None:
        """Encode the rows of a file."""
        self._tables.append(table)
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> EncodedFiles:
        """Return the files."""
        self._writer.close()
        metadata = self._writer.metadata
        data, ends = row_group_files(self._sink.getvalue())
        leaves = leaves_to_measure(self._leaves, self._tables)
        statistics = []
        for number, table in enumerate(self._tables):
            measured = Measured(leaves)
            if leaves:
                measured.add(0, table, {})
            statistics.append(footer_statistics(metadata, self._leaves, measured, [number]))
        return EncodedFiles(data, ends, statistics)
