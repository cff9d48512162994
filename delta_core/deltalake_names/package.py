"""Names of ``deltalake`` itself."""

from __future__ import annotations

from typing import NoReturn

from delta_core.deltalake_names.internal import init_tracing, rust_core_version, shutdown_tracing
from delta_core.errors import UnsupportedOperationError
from delta_core.schema.fields import Schema
from delta_core.schema.types import DataType, Field, VariantType
from delta_core.table.alterer import TableFeatures
from delta_core.table.delta_table import DeltaTable, Metadata
from delta_core.table.query import QueryBuilder
from delta_core.table.transaction import CommitProperties, PostCommitHookProperties, Transaction
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
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "Metadata",
    "PostCommitHookProperties",
    "QueryBuilder",
    "Schema",
    "TableFeatures",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "convert_to_deltalake",
    "enable_nanosecond_timestamps",
    "init_tracing",
    "rust_core_version",
    "shutdown_tracing",
    "write_deltalake",
]


def enable_nanosecond_timestamps() -> NoReturn:
    """Reject a switch that this library does not have.

    Raises
    ------
    UnsupportedOperationError
        Always: timestamps of Delta tables have microseconds.
    """
    raise UnsupportedOperationError(
        "enable_nanosecond_timestamps is not available: the protocol's timestamps have microseconds, and no other "
        "reader has finer ones. Store nanoseconds as a column of type long."
    )
