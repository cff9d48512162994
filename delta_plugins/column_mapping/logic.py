"""From annotations in the schema to the physical schema."""

from collections.abc import Mapping
from typing import TypeVar

from delta_core.api import (
    FIELD_ID,
    ArrayType,
    ColumnMap,
    DataType,
    Field,
    MapType,
    Path,
    Schema,
    SchemaError,
    StructType,
    UnsupportedFeatureError,
    format_path,
)

__all__ = ["ID", "MAX_ID", "MODE", "NESTED_IDS", "PHYSICAL_NAME", "column_map", "mapping_mode"]

MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
ID = "delta.columnMapping.id"
MAX_ID = "delta.columnMapping.maxColumnId"
#: Ids of the parts of lists and maps, in the metadata of the nearest field above.
NESTED_IDS = "delta.columnMapping.nested.ids"
#: Ids of the parts of lists and maps, as the schema has them and as physical fields carry them.
PART_IDS, PARQUET_PART_IDS = "delta.columnMapping.nested.ids", "parquet.field.nested.ids"
K = TypeVar("K")


def mapping_mode(configuration: Mapping[str, str]) -> str:
    """Return ``none``, ``name`` or ``id``.

    Raises
    ------
    UnsupportedFeatureError
        If the table has another mode.
    """
    mode = configuration.get(MODE, "none").strip().lower()
    if mode not in ("none", "name", "id"):
        raise UnsupportedFeatureError(
            f"Table property {MODE} is {mode!r}, expected none, name or id. Upgrade delta-core-lake to read the table.",
            feature="columnMapping",
            mode=mode,
        )
    return mode


def column_map(schema: Schema, configuration: Mapping[str, str]) -> ColumnMap | None:
    """Return the map to physical names, or None if the mode is none.

    Every field of every struct, those inside arrays and maps too, has a physical name, and an id in mode ``id``; in
    mode ``none`` such annotations mean nothing.

    Raises
    ------
    SchemaError
        For a field that lacks them and for two fields with one physical path or id, naming the columns.
    """
    mode = mapping_mode(configuration)
    if mode == "none":
        return None
    owners: dict[int, str] = {}
    physical = Schema(_physical_fields(schema, (), mode == "id", owners))
    return ColumnMap("id" if mode == "id" else "name", physical)


def _physical_fields(struct: StructType, path: Path, by_id: bool, owners: dict[int, str]) -> list[Field]:
    taken: dict[str, str] = {}
    fields = []
    for f in struct.members:
        here = (*path, f.name)
        name = f.metadata.get(PHYSICAL_NAME)
        if not isinstance(name, str) or not name:
            raise SchemaError(
                f"Column {format_path(here)} has {PHYSICAL_NAME}={name!r}; with mode {'id' if by_id else 'name'} "
                "of column mapping, expected its physical name.",
                column=format_path(here),
            )
        _claim(taken, name, here, f"physical name {name!r}")
        metadata = dict(f.metadata)
        if PART_IDS in metadata:
            metadata[PARQUET_PART_IDS] = metadata[PART_IDS]
        number = _field_id(f, here, by_id)
        if number is not None:
            metadata[FIELD_ID] = number
            if by_id:
                _claim(owners, number, here, f"id {number}")
        fields.append(Field(name, _physical_type(f.type, here, by_id, owners), f.nullable, metadata))
    return fields


def _physical_type(t: DataType, path: Path, by_id: bool, owners: dict[int, str]) -> DataType:
    if isinstance(t, StructType):
        return StructType(_physical_fields(t, path, by_id, owners))
    if isinstance(t, ArrayType):
        return ArrayType(_physical_type(t.element_type, (*path, "element"), by_id, owners), t.contains_null)
    if isinstance(t, MapType):
        key = _physical_type(t.key_type, (*path, "key"), by_id, owners)
        return MapType(key, _physical_type(t.value_type, (*path, "value"), by_id, owners), t.value_contains_null)
    return t


def _field_id(f: Field, path: Path, required: bool) -> int | None:
    number = f.metadata.get(ID)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    if required or number is not None:
        raise SchemaError(
            f"Column {format_path(path)} has {ID}={number!r}; expected a number.", column=format_path(path)
        )
    return None


def _claim(owners: dict[K, str], key: K, path: Path, what: str) -> None:
    column = format_path(path)
    other = owners.setdefault(key, column)
    if other is not column:
        raise SchemaError(f"Columns {other} and {column} both have {what}; each needs its own.", column=column)
