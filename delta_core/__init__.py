"""Delta Lake tables in Python, with every table feature as a plugin.

``from delta_core import DeltaTable`` is the way in. Names are resolved on first use, so that importing the
package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core import exceptions
    from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
    from delta_core.kernel.log.position import StreamPosition
    from delta_core.schema.fields import Schema
    from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType
    from delta_core.table.alterer import TableFeatures
    from delta_core.table.delta_table import DeltaTable, Metadata, ProtocolVersions, TableMetadata, open_table
    from delta_core.table.query import QueryBuilder
    from delta_core.table.transaction import AppTransaction, CommitProperties, PostCommitHookProperties, Transaction
    from delta_core.table.writer import convert_to_deltalake, write_deltalake
    from delta_core.version import __version__

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
        "delta_core.table.alterer": "TableFeatures",
        "delta_core.kernel.log.position": "StreamPosition",
        "delta_core.engines.writer_properties": "BloomFilterProperties ColumnProperties WriterProperties",
        "delta_core.schema.fields": "Schema",
        "delta_core.schema.types": "ArrayType DataType Field MapType PrimitiveType StructType VariantType",
        "delta_core.table.query": "QueryBuilder",
        "delta_core.table.delta_table": "DeltaTable Metadata ProtocolVersions TableMetadata open_table",
        "delta_core.table.transaction": "AppTransaction CommitProperties PostCommitHookProperties Transaction",
        "delta_core.version": "__version__",
        "delta_core.table.writer": "convert_to_deltalake write_deltalake",
    },
)
