"""The columns of a table as the catalog records them. Unity Catalog: ColumnInfo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from delta_core.api import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    parse_decimal,
    spark_name,
)

__all__ = ["column_infos"]

_NAMES = {
    "boolean": "BOOLEAN", "byte": "BYTE", "short": "SHORT", "integer": "INT", "long": "LONG", "float": "FLOAT",
    "double": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ", "string": "STRING",
    "binary": "BINARY", "variant": "VARIANT", "void": "NULL",
}  # fmt: skip


def column_infos(schema: Schema, partition_by: Sequence[str]) -> list[dict[str, Any]]:
    """Return the columns of a schema as the catalog's API has them.

    Parameters
    ----------
    schema : Schema
        The logical schema.
    partition_by : sequence of str
        The logical names of the partition columns, in their order.
    """
    return [_column(position, f, partition_by) for position, f in enumerate(schema.members)]


def _column(position: int, f: Field, partition_by: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": f.name,
        "position": position,
        "nullable": f.nullable,
        "type_text": spark_name(f.type).lower(),
        "type_json": f.to_json(),
        "type_name": _type_name(f.type),
    }
    size = parse_decimal(f.type.type) if isinstance(f.type, PrimitiveType) else None
    if size is not None:
        out |= {"type_name": "DECIMAL", "type_precision": size[0], "type_scale": size[1]}
    if comment := f.metadata.get("comment"):
        out["comment"] = comment if isinstance(comment, str) else json.dumps(comment)
    if f.name in partition_by:
        out["partition_index"] = list(partition_by).index(f.name)
    return out


def _type_name(t: DataType) -> str:
    kinds = ((StructType, "STRUCT"), (ArrayType, "ARRAY"), (MapType, "MAP"))
    for kind, name in kinds:
        if isinstance(t, kind):
            return name
    return _NAMES.get(t.type, "USER_DEFINED_TYPE") if isinstance(t, PrimitiveType) else "USER_DEFINED_TYPE"
