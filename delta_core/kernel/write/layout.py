"""The layout of a table's data files: physical columns in order, with Parquet field ids at every level."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.write.plan import WritePlan
from delta_core.schema.fields import FIELD_ID, NESTED_IDS, Path, format_path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, TypeDef

__all__ = ["FileColumn", "arrow_type", "file_columns"]

_VOID = PrimitiveType("void")


class FileColumn(Struct, frozen=True):
    """A top-level column of the data files.

    Parameters
    ----------
    name : str
        Logical name, or a hidden column's own.
    field : pyarrow.Field
        As it lies in the file; every part may be null, so that making a column nullable later costs nothing.
    stored : pyarrow.DataType
        The same type under logical names. Of a column that is encoded it is that of the stored form.
    """

    name: str
    field: pa.Field
    stored: pa.DataType


def arrow_type(t: DataType, types: Mapping[str, TypeDef]) -> pa.DataType:
    """Return the Arrow type of a logical type with every part nullable.

    Parameters
    ----------
    t : DataType
        The type.
    types : Mapping of str to TypeDef
        The definitions of primitive types, by name.
    """
    if isinstance(t, StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.type, types)) for f in t.members])
    if isinstance(t, ArrayType):
        return pa.list_(pa.field("element", arrow_type(t.element_type, types)))
    if isinstance(t, MapType):
        key = pa.field("key", arrow_type(t.key_type, types), False)
        return pa.map_(key, pa.field("value", arrow_type(t.value_type, types)))
    return t.to_arrow(types)


def file_columns(plan: WritePlan) -> tuple[FileColumn, ...]:
    """Return the columns of a table's data files: its own, then partition columns if requested, then hidden ones.

    Raises
    ------
    UnsupportedOperationError
        If voids leave nothing that a file could hold, so that rows would be lost.

    Protocol
    --------
    Void Type
    """
    table = plan.table
    _check_voids(table.schema, (), inside=False)
    partitions = {name.lower() for name in table.partition_columns}
    layout = _Layout(table.types)
    data: list[FileColumn] = []
    partition: list[FileColumn] = []
    for logical, physical in zip(table.schema.members, table.column_map.physical.members, strict=True):
        if logical.type != _VOID:
            encoding = table.encodings.get(logical.name)
            made = layout.column(logical, physical, None if encoding is None else encoding.stored)
            (partition if logical.name.lower() in partitions else data).append(made)
    if plan.requirements.materialize_partition_columns:
        data += partition
    if not data:
        raise UnsupportedOperationError(
            "The table has only partition columns and columns of type void, which no file holds: rows would be lost. "
            "Pass it a column with values first.",
            column=table.schema.names[0],
        )
    for rule in plan.hidden:
        t = arrow_type(rule.type, table.types)
        data.append(FileColumn(rule.name, pa.field(rule.name, t, metadata=_metadata(rule.field_id)), t))
    return tuple(data)


def _check_voids(t: DataType, path: Path, inside: bool) -> None:
    """Reject voids that no file can be made without; ``inside``: whether a list or map is above."""
    column = format_path(path)
    if isinstance(t, StructType):
        if all(f.type == _VOID for f in t.members):
            what = f"Column {column} is a struct without fields" if path else "The table has no columns"
            raise UnsupportedOperationError(
                f"{what} that hold values (all are of type void), which no Parquet file can hold.", column=column
            )
        for f in t.members:
            _check_voids(f.type, (*path, f.name), inside)
    elif isinstance(t, ArrayType):
        _check_voids(t.element_type, (*path, "element"), inside=True)
    elif isinstance(t, MapType):
        _check_voids(t.key_type, (*path, "key"), inside=True)
        _check_voids(t.value_type, (*path, "value"), inside=True)
    elif t == _VOID and inside:
        raise UnsupportedOperationError(
            f"Column {column} is of type void within a list or map, which no Parquet file can hold.", column=column
        )


def _metadata(field_id: object) -> dict[str, str] | None:
    return None if field_id is None else {"PARQUET:field_id": str(field_id)}


class _Layout:
    def __init__(self, types: Mapping[str, TypeDef]) -> None:
        self._types = types

    def column(self, logical: Field, physical: Field, encoded: DataType | None) -> FileColumn:
        if encoded is not None:
            logical, physical = (Field(f.name, encoded, f.nullable, f.metadata) for f in (logical, physical))
        stored, written = self._field(logical, physical, (logical.name,))
        return FileColumn(logical.name, written, stored)

    def _field(self, logical: Field, physical: Field, path: Path) -> tuple[pa.DataType, pa.Field]:
        parts = _Parts(physical.metadata.get(NESTED_IDS, {}), (physical.name, logical.name))
        stored, written = self._type(logical.type, physical.type, path, parts)
        return stored, pa.field(physical.name, written, metadata=_metadata(physical.metadata.get(FIELD_ID)))

    def _type(
        self, logical: DataType, physical: DataType, path: Path, parts: _Parts
    ) -> tuple[pa.DataType, pa.DataType]:
        if isinstance(logical, StructType) and isinstance(physical, StructType):
            return self._struct(logical, physical, path)
        if isinstance(logical, ArrayType) and isinstance(physical, ArrayType):
            stored, written = self._part(logical.element_type, physical.element_type, path, parts, "element")
            return pa.list_(pa.field("element", stored)), pa.list_(written)
        if isinstance(logical, MapType) and isinstance(physical, MapType):
            key, key_field = self._part(logical.key_type, physical.key_type, path, parts, "key")
            value, value_field = self._part(logical.value_type, physical.value_type, path, parts, "value")
            stored = pa.map_(pa.field("key", key, False), pa.field("value", value))
            return stored, pa.map_(key_field.with_nullable(False), value_field)
        found = arrow_type(logical, self._types)
        return found, found

    def _struct(self, logical: StructType, physical: StructType, path: Path) -> tuple[pa.DataType, pa.DataType]:
        pairs = [
            (f.name, self._field(f, g, (*path, f.name)))
            for f, g in zip(logical.members, physical.members, strict=True)
            if f.type != _VOID
        ]
        return pa.struct([pa.field(n, stored) for n, (stored, _) in pairs]), pa.struct([w for _, (_, w) in pairs])

    def _part(
        self, logical: DataType, physical: DataType, path: Path, parts: _Parts, name: str
    ) -> tuple[pa.DataType, pa.Field]:
        inner = parts.of(name)
        stored, written = self._type(logical, physical, (*path, name), inner)
        return stored, pa.field(name, written, metadata=_metadata(inner.id))


class _Parts:
    """The ids of the parts of lists and maps below one field, by dotted keys that begin with its name."""

    def __init__(self, ids: Mapping[str, object], keys: tuple[str, ...]) -> None:
        self._ids = ids
        self._keys = keys

    @property
    def id(self) -> object:
        return next((self._ids[k] for k in self._keys if k in self._ids), None)

    def of(self, name: str) -> _Parts:
        return _Parts(self._ids, tuple(f"{k}.{name}" for k in self._keys))
