"""Names of ``deltalake.table``."""

from __future__ import annotations

from typing import Any, TypeAlias

from delta_core.operations.merge.builder import TableMerger
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field
from delta_core.table.alterer import TableAlterer, TableFeatures
from delta_core.table.delta_table import DeltaTable, Metadata
from delta_core.table.named_tuples import DeltaTableConfig, ProtocolVersions
from delta_core.table.optimizer import TableOptimizer
from delta_core.table.raw_table import RawTable as RawDeltaTable
from delta_core.table.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
)
from delta_core.table.writer import WriterProperties

__all__ = [
    "MAX_SUPPORTED_PYARROW_WRITER_VERSION",
    "MAX_SUPPORTED_READER_VERSION",
    "NOT_SUPPORTED_PYARROW_WRITER_VERSIONS",
    "NOT_SUPPORTED_READER_VERSION",
    "AddAction",
    "CommitProperties",
    "DeltaField",
    "DeltaSchema",
    "DeltaTable",
    "DeltaTableConfig",
    "Field",
    "FilePruningPredicateType",
    "FilterConjunctionType",
    "FilterDNFType",
    "FilterLiteralType",
    "FilterType",
    "Metadata",
    "PartitionFilterType",
    "PostCommitHookProperties",
    "ProtocolVersions",
    "RawDeltaTable",
    "RemoveAction",
    "Schema",
    "TableAlterer",
    "TableFeatures",
    "TableMerger",
    "TableOptimizer",
    "Transaction",
    "WriterProperties",
]

DeltaField: TypeAlias = Field
DeltaSchema: TypeAlias = Schema

#: Libraries that write files themselves, and commit them by `DeltaTable.create_write_transaction`, compare it with the
#: writer version of the table.
MAX_SUPPORTED_PYARROW_WRITER_VERSION = 7
NOT_SUPPORTED_PYARROW_WRITER_VERSIONS = [3, 4, 5, 6]

#: Of libraries that read the files of `DeltaTable.file_uris` themselves.
MAX_SUPPORTED_READER_VERSION = 3
NOT_SUPPORTED_READER_VERSION = -1

FilterLiteralType: TypeAlias = tuple[str, str, Any]
FilterConjunctionType: TypeAlias = list[FilterLiteralType]
FilterDNFType: TypeAlias = list[FilterConjunctionType]
FilterType: TypeAlias = FilterConjunctionType | FilterDNFType
PartitionFilterType: TypeAlias = list[tuple[str, str, str | list[str]]]
FilePruningPredicateType: TypeAlias = str | FilterType
