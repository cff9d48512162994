"""Names of ``deltalake._internal`` that libraries import."""

from __future__ import annotations

from typing import Any, NoReturn

from delta_core.errors import (
    CommitError as CommitFailedError,
    DeltaError,
    ProtocolError as DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.schema.fields import Schema
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType
from delta_core.table.alterer import TableFeatures
from delta_core.table.raw_table import RawTable as RawDeltaTable
from delta_core.table.transaction import CommitProperties, PostCommitHookProperties, RemoveAction, Transaction
from delta_core.version import __version__ as _core_version

__all__ = [
    "ArrayType",
    "CommitFailedError",
    "CommitProperties",
    "DataType",
    "DeltaError",
    "DeltaProtocolError",
    "Field",
    "MapType",
    "PostCommitHookProperties",
    "PrimitiveType",
    "RawDeltaTable",
    "RemoveAction",
    "Schema",
    "SchemaMismatchError",
    "StructType",
    "TableFeatures",
    "TableNotFoundError",
    "Transaction",
    "VariantType",
    "init_tracing",
    "rust_core_version",
    "shutdown_tracing",
]


def rust_core_version() -> str:
    """Return what reads and writes the tables here, for lines of diagnosis."""
    return f"delta_core {_core_version}"


def init_tracing(endpoint: str | None = None) -> NoReturn:
    """Reject OpenTelemetry's traces.

    Parameters
    ----------
    endpoint : str, optional
        Where the traces would be sent.

    Raises
    ------
    UnsupportedOperationError
        Always.
    """
    raise UnsupportedOperationError(
        "init_tracing is not available: this library sends no traces. Leave the call out; DeltaTable.explain shows "
        "what a read touches."
    )


def shutdown_tracing(*_: Any) -> None:
    """Do nothing: no traces are sent."""
