"""Names of ``deltalake.writer`` and its modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from delta_core.errors import TableNotFoundError
from delta_core.schema.fields import Schema
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import (
    BloomFilterProperties,
    ColumnProperties,
    WriterProperties,
    convert_to_deltalake,
    write_deltalake,
)

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "Compression",
    "Encoding",
    "Schema",
    "WriterProperties",
    "convert_to_deltalake",
    "try_get_deltatable",
    "try_get_table_and_table_uri",
    "write_deltalake",
]


class Compression(Enum):
    """The codecs of Parquet files."""

    UNCOMPRESSED = "UNCOMPRESSED"
    SNAPPY = "SNAPPY"
    GZIP = "GZIP"
    BROTLI = "BROTLI"
    LZ4 = "LZ4"
    ZSTD = "ZSTD"
    LZ4_RAW = "LZ4_RAW"


class Encoding(Enum):
    """The encodings of columns in Parquet files."""

    PLAIN = "PLAIN"
    RLE = "RLE"
    DELTA_BINARY_PACKED = "DELTA_BINARY_PACKED"
    DELTA_LENGTH_BYTE_ARRAY = "DELTA_LENGTH_BYTE_ARRAY"
    DELTA_BYTE_ARRAY = "DELTA_BYTE_ARRAY"
    BYTE_STREAM_SPLIT = "BYTE_STREAM_SPLIT"


def try_get_deltatable(
    table_uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> DeltaTable | None:
    """Return a table, or None if there is none at its place.

    Parameters
    ----------
    table_uri : str or path
        The table's place.
    storage_options : Mapping, optional
        Options of the file system.
    """
    try:
        return DeltaTable(table_uri, storage_options=storage_options)
    except TableNotFoundError:
        return None


def try_get_table_and_table_uri(
    table_or_uri: str | Path | DeltaTable, storage_options: Mapping[str, Any] | None = None
) -> tuple[DeltaTable | None, str]:
    """Return a table, or None if there is none at its place, and the place.

    Parameters
    ----------
    table_or_uri : str, Path or DeltaTable
        The table or its place.
    storage_options : Mapping, optional
        Options of the file system, for a place.

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(table_or_uri, DeltaTable):
        return table_or_uri, table_or_uri.table_uri
    if isinstance(table_or_uri, (str, Path)):
        return try_get_deltatable(table_or_uri, storage_options), str(table_or_uri)
    raise ValueError(f"Found {type(table_or_uri).__name__}, expected a str, Path or DeltaTable.")
