"""Rows to the bytes of data files as Delta writers lay them out, and back to logical rows."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Mapping, Sequence
from typing import Any, Union
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from delta_core.schema.fields import Schema
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, parse_type

__all__ = [
    "Rows",
    "as_schema",
    "as_table",
    "hive_directory",
    "logical_rows",
    "map_columns",
    "parquet_bytes",
    "partition_text",
    "physical_name",
    "physical_table",
]

#: The forms of rows that the builder takes: dicts, columns, or Arrow.
Rows = Union[Sequence[Mapping[str, Any]], Mapping[str, Sequence[Any]], pa.Table]

COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
#: The characters that Hive escapes in a partition directory, beside control characters.
_HIVE_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^")


def as_schema(value: Any) -> Schema:
    """Return the schema of a Delta schema, an Arrow schema, decoded JSON, or ``{"id": "long"}``."""
    if isinstance(value, Schema):
        return value
    if isinstance(value, StructType):
        return Schema(value.members)
    if isinstance(value, pa.Schema):
        return Schema.from_arrow(value)
    if value.get("type") == "struct" and "fields" in value:
        parsed = parse_type(value)
        assert isinstance(parsed, StructType)
        return Schema(parsed.members)
    return Schema(Field(name, parse_type(t) if isinstance(t, dict) else t) for name, t in value.items())


# --- physical names and field ids ----------------------------------------------------------


def map_columns(schema: Schema, last_id: int = 0, previous: StructType | None = None) -> tuple[Schema, int]:
    """Assign every field without one an id and a physical name; return the schema and the highest id.

    Protocol: Column Mapping. Physical names are ``col-<id>``; fields of the previous schema keep theirs by name.
    """
    fields, last_id = _map_fields(schema, last_id, previous)
    return Schema(fields), last_id


def _map_fields(struct: StructType, last_id: int, old: DataType | None) -> tuple[list[Field], int]:
    given = {f.metadata[COLUMN_ID] for f in struct.members if COLUMN_ID in f.metadata}
    fields = old.members if isinstance(old, StructType) else ()
    known = {f.name: f for f in fields if f.metadata.get(COLUMN_ID) not in given}
    out = []
    for f in struct.members:
        before = known.get(f.name)
        meta = {k: v for k, v in before.metadata.items() if k in (COLUMN_ID, PHYSICAL_NAME)} if before else {}
        meta |= f.metadata
        column_id = int(meta.get(COLUMN_ID, last_id + 1))
        last_id = max(last_id, column_id)
        inner, last_id = _map_type(f.type, last_id, before.type if before else None)
        out.append(Field(f.name, inner, f.nullable, {COLUMN_ID: column_id, PHYSICAL_NAME: f"col-{column_id}", **meta}))
    return out, last_id


def _map_type(t: DataType, last_id: int, old: DataType | None) -> tuple[DataType, int]:
    if isinstance(t, StructType):
        fields, last_id = _map_fields(t, last_id, old)
        return StructType(fields), last_id
    if isinstance(t, ArrayType):
        element, last_id = _map_type(t.element_type, last_id, getattr(old, "element_type", None))
        return replace(t, element_type=element), last_id
    if isinstance(t, MapType):
        key, last_id = _map_type(t.key_type, last_id, getattr(old, "key_type", None))
        value, last_id = _map_type(t.value_type, last_id, getattr(old, "value_type", None))
        return replace(t, key_type=key, value_type=value), last_id
    return t, last_id


def physical_name(f: Field) -> str:
    """Return the name under which files, statistics and partition values hold a field."""
    return str(f.metadata.get(PHYSICAL_NAME, f.name))


def _physical_field(f: pa.Field, struct: StructType) -> pa.Field:
    known = next((k for k in struct.members if k.name == f.name), None)
    if known is None:
        return f
    column_id = known.metadata.get(COLUMN_ID)
    meta = None if column_id is None else {"PARQUET:field_id": str(column_id)}
    return pa.field(physical_name(known), _physical_type(f.type, known.type), f.nullable, meta)


def _physical_type(arrow: pa.DataType, t: DataType) -> pa.DataType:
    if isinstance(t, StructType):
        return pa.struct([_physical_field(arrow.field(i), t) for i in range(arrow.num_fields)])
    if isinstance(t, ArrayType):
        return pa.list_(arrow.value_field.with_type(_physical_type(arrow.value_type, t.element_type)))
    if isinstance(t, MapType):
        key = arrow.key_field.with_type(_physical_type(arrow.key_type, t.key_type))
        return pa.map_(key, arrow.item_field.with_type(_physical_type(arrow.item_type, t.value_type)))
    return arrow


class _Retyped:
    """A batch under another schema of the same layout: only names and field metadata differ."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested: Any = None) -> tuple[Any, Any]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


# --- rows to tables and back ---------------------------------------------------------------


def as_table(rows: Rows, schema: StructType) -> pa.Table:
    """Return rows as Arrow under logical names; columns that no row names are left out, strange ones inferred."""
    if isinstance(rows, pa.Table):
        return rows
    names = list(rows) if isinstance(rows, Mapping) else list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda n: next((i for i, f in enumerate(schema.members) if f.name == n), len(schema.members)))
    arrays, fields = [], []
    for name in names:
        values = rows[name] if isinstance(rows, Mapping) else [row.get(name) for row in rows]
        known = next((f for f in schema.members if f.name == name), None)
        array = pa.array(values) if known is None else pa.array(values, known.type.to_arrow())
        arrays.append(array)
        fields.append(pa.field(name, array.type, known is None or known.nullable))
    return pa.table(arrays, schema=pa.schema(fields))


def physical_table(table: pa.Table, schema: StructType) -> pa.Table:
    """Return the table under physical names and field ids; void columns are not stored."""
    void = [f.name for f in schema.members if f.type == PrimitiveType("void") and f.name in table.column_names]
    table = table.drop_columns(void)
    physical = pa.schema([_physical_field(f, schema) for f in table.schema])
    batch = table.combine_chunks().to_batches()
    if not batch:
        return physical.empty_table()
    return pa.Table.from_batches([pa.record_batch(_Retyped(batch[0], physical))])


def logical_rows(table: pa.Table, schema: StructType, partition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a physical table's rows under the logical names of a (perhaps later) schema; absent is None.

    Parameters
    ----------
    table : pyarrow.Table
        The rows as files hold them.
    schema : StructType
        The columns of the result.
    partition : Mapping
        Physical name to the typed value that all rows have.
    """
    struct = StructType(schema.members)
    return [_logical({**row, **partition}, struct) for row in table.to_pylist()]


def _logical(value: Any, t: DataType) -> Any:
    if value is None:
        return None
    if isinstance(t, StructType):
        return {f.name: _logical(value.get(physical_name(f)), f.type) for f in t.members}
    if isinstance(t, ArrayType):
        return [_logical(v, t.element_type) for v in value]
    if isinstance(t, MapType):
        return [(_logical(k, t.key_type), _logical(v, t.value_type)) for k, v in value]
    if t == PrimitiveType("timestamp_ntz") and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


# --- files ---------------------------------------------------------------------------------


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return a Parquet file; ``options`` are those of `pyarrow.parquet.write_table`."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def partition_text(value: Any) -> str | None:
    """Return a partition value's text, None for null. Protocol: Partition Value Serialization."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").removesuffix(".000000")
    return str(value)


def hive_directory(names: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the directory that Hive-style writers use, ``year=2024/kind=a%2Fb``, not yet URI-encoded."""
    parts = []
    for name in names:
        text = partition_text(values[name])
        shown = "__HIVE_DEFAULT_PARTITION__" if text in (None, "") else _escape(str(text))
        parts.append(f"{_escape(name)}={shown}")
    return "/".join(parts)


def _escape(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if ord(c) < 32 or c in _HIVE_ESCAPED else c for c in text)


def uri_path(path: str) -> str:
    """Return a relative path as the log writes it: percent-encoded once."""
    return quote(path, safe="/=!$&'()*+,;:@~-._")
