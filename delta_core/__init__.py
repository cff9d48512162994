"""Delta Lake tables in Python, with every table feature as a plugin.

``from delta_core import DeltaTable`` is the way in. Names are resolved on first use, so that importing the
package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_core import exceptions
    from delta_core.properties import BloomFilterProperties, ColumnProperties, WriterProperties
    from delta_core.query import QueryBuilder
    from delta_core.schema import Schema
    from delta_core.table import DeltaTable, Metadata, ProtocolVersions, open_table
    from delta_core.transaction import CommitProperties, PostCommitHookProperties, Transaction
    from delta_core.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType
    from delta_core.unavailable import TableFeatures
    from delta_core.writer import convert_to_deltalake, write_deltalake

    __version__: str

__all__ = [
    "ArrayType", "BloomFilterProperties", "ColumnProperties", "CommitProperties", "DataType", "DeltaTable", "Field",
    "MapType", "Metadata", "PostCommitHookProperties", "PrimitiveType", "ProtocolVersions", "QueryBuilder", "Schema",
    "StructType", "TableFeatures", "Transaction", "VariantType", "WriterProperties", "__version__", "convert_to_deltalake",
    "exceptions", "open_table", "write_deltalake",
]  # fmt: skip

_HOME = {
    "DeltaTable": "table",
    "Metadata": "table",
    "ProtocolVersions": "table",
    "open_table": "table",
    "QueryBuilder": "query",
    "Schema": "schema",
    "TableFeatures": "unavailable",
    **dict.fromkeys(("convert_to_deltalake", "write_deltalake"), "writer"),
    **dict.fromkeys(("BloomFilterProperties", "ColumnProperties", "WriterProperties"), "properties"),
    **dict.fromkeys(("CommitProperties", "PostCommitHookProperties", "Transaction"), "transaction"),
    **dict.fromkeys(
        ("ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "StructType", "VariantType"), "types"
    ),
}


def __getattr__(name: str) -> Any:
    if name == "exceptions":
        return importlib.import_module("delta_core.exceptions")
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("delta-core-lake")
    if name not in _HOME:
        raise AttributeError(f"module 'delta_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"delta_core.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
