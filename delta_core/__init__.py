"""Delta Lake tables in Python, with every table feature as a plugin.

``from delta_core import DeltaTable`` is the way in. Names are resolved on first use, so that importing the
package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core import exceptions
    from delta_core.alterer import TableFeatures
    from delta_core.log.position import StreamPosition
    from delta_core.protocol.properties import BloomFilterProperties, ColumnProperties, WriterProperties
    from delta_core.protocol.schema import Schema
    from delta_core.protocol.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType
    from delta_core.query import QueryBuilder
    from delta_core.table import DeltaTable, Metadata, ProtocolVersions, TableMetadata, open_table
    from delta_core.transaction import AppTransaction, CommitProperties, PostCommitHookProperties, Transaction
    from delta_core.version import __version__
    from delta_core.writer import convert_to_deltalake, write_deltalake

__all__ = [
    "AppTransaction", "ArrayType", "BloomFilterProperties", "ColumnProperties", "CommitProperties", "DataType",
    "DeltaTable",
    "Field", "MapType", "Metadata", "PostCommitHookProperties", "PrimitiveType", "ProtocolVersions", "QueryBuilder",
    "Schema",
    "StreamPosition", "StructType", "TableFeatures", "TableMetadata", "Transaction", "VariantType", "WriterProperties",
    "__version__",
    "convert_to_deltalake", "exceptions", "open_table", "write_deltalake",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.exceptions": "exceptions",
        "delta_core.alterer": "TableFeatures",
        "delta_core.log.position": "StreamPosition",
        "delta_core.protocol.properties": "BloomFilterProperties ColumnProperties WriterProperties",
        "delta_core.protocol.schema": "Schema",
        "delta_core.protocol.types": "ArrayType DataType Field MapType PrimitiveType StructType VariantType",
        "delta_core.query": "QueryBuilder",
        "delta_core.table": "DeltaTable Metadata ProtocolVersions TableMetadata open_table",
        "delta_core.transaction": "AppTransaction CommitProperties PostCommitHookProperties Transaction",
        "delta_core.version": "__version__",
        "delta_core.writer": "convert_to_deltalake write_deltalake",
    },
)
