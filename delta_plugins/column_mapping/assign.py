"""Ids and physical names for the columns that lack them, and which changes of them are allowed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    FIELD_ID,
    NOT_IN_NAMES,
    ArrayType,
    DataType,
    Field,
    InvalidArgumentError,
    MapType,
    Metadata,
    Path,
    Schema,
    SchemaError,
    StructType,
    TableState,
    format_path,
    walk,
    without_metadata,
)
from delta_plugins.column_mapping.logic import ID, MAX_ID, MODE, NESTED_IDS, PHYSICAL_NAME, mapping_mode

__all__ = ["check_change", "special_names", "with_ids", "without_names"]

FEATURE = "columnMapping"
#: Properties under which the parts of lists and maps have ids too.
_NESTED = ("delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")
#: Properties under which a column is named by its id.
_BY_ID = ("delta.enableIcebergWriterCompatV1", "delta.enableIcebergWriterCompatV3")


def with_ids(table: TableState, metadata: Metadata, previous: TableState | None) -> Metadata:
    """Return the metadata with an id and a physical name for every column, and the highest id.

    A column that comes without them is the one of its name in the table that is altered, if there is one: it keeps what
    it has, and under its own name if mapping is only switched on now, since files hold it so. Protocol: Writer
    Requirements for Column Mapping.
    """
    if mapping_mode(metadata.configuration) == "none":
        return metadata
    schema = metadata.schema
    giver = _Giver(table, metadata, schema, previous)
    fields = giver.struct(schema, None if previous is None else previous.schema)
    configuration = {**metadata.configuration, MAX_ID: str(giver.last)}
    return replace(metadata, schema_string=Schema(fields).to_json(), configuration=configuration)


def without_names(schema: Schema) -> Schema:
    """Return the schema without ids and physical names: files then contain the columns under their own names."""
    return without_metadata(schema, (ID, PHYSICAL_NAME, NESTED_IDS))


def special_names(schema: Schema) -> tuple[str, ...]:
    """Return the columns whose names files may not have."""
    return tuple(f"column {format_path(p)}" for p, f in walk(schema) if not f.name or set(f.name) & set(NOT_IN_NAMES))


def _is_on(metadata: Metadata, switch: str) -> bool:
    return metadata.configuration.get(switch, "").strip().lower() == "true"


class _Giver:
    """Returns ids and names to one schema."""

    def __init__(self, table: TableState, metadata: Metadata, schema: Schema, previous: TableState | None) -> None:
        #: Whether the table that is altered has files under logical names.
        self._starts = previous is not None and not previous.is_active(FEATURE)
        # what another feature switched on just now is not active in the table yet
        self._nested = any(_is_on(metadata, switch) for switch in _NESTED)
        self._by_id = any(_is_on(metadata, switch) for switch in _BY_ID)
        unchanged = metadata.configuration.get("delta.columnMapping.hasDroppedOrRenamed", "true").lower() == "false"
        self._by_name = table.is_supported("columnMappingUsageTracking") and unchanged
        known = [highest_id(metadata.configuration), 0 if self._starts else max(_ids(schema), default=0)]
        if previous is not None:
            known += [highest_id(previous.configuration), *([] if self._starts else _ids(previous.schema))]
        self.last = max(known)

    def _next(self) -> int:
        self.last += 1
        return self.last

    def struct(self, t: StructType, old: DataType | None) -> list[Field]:
        before = old.members if isinstance(old, StructType) else ()
        by_physical = {f.metadata.get(PHYSICAL_NAME): f for f in before}
        out = []
        for f in t.members:
            named = None if self._starts else f.metadata.get(PHYSICAL_NAME)
            same = (
                by_physical.get(named)
                if named is not None
                else old.get(f.name)
                if isinstance(old, StructType)
                else None
            )
            out.append(self._field(f, same))
        return out

    def _field(self, f: Field, old: Field | None) -> Field:
        own = {k: v for k, v in f.metadata.items() if not (self._starts and k in (ID, PHYSICAL_NAME, NESTED_IDS))}
        if self._starts and old is not None:
            own[PHYSICAL_NAME] = old.name
        elif old is not None and ID not in own and PHYSICAL_NAME not in own:
            own |= {k: old.metadata[k] for k in (ID, PHYSICAL_NAME, NESTED_IDS) if k in old.metadata}
        if ID not in own:
            own[ID] = self._next()
        if PHYSICAL_NAME not in own:
            own[PHYSICAL_NAME] = f"col-{own[ID]}" if self._by_id else f.name if self._by_name else f"col-{uuid.uuid4()}"
        made = self._type(f.type, None if old is None else old.type)
        if self._nested and not isinstance(f.type, StructType):
            given = own.get(NESTED_IDS) or {}
            found = {k: given[k] if k in given else self._next() for k in _part_keys(f.type, str(own[PHYSICAL_NAME]))}
            own = {**own, NESTED_IDS: found} if found else own
        return Field(f.name, made, f.nullable, own)

    def _type(self, t: DataType, old: DataType | None) -> DataType:
        if isinstance(t, StructType):
            return StructType(self.struct(t, old))
        if isinstance(t, ArrayType):
            element = self._type(t.element_type, old.element_type if isinstance(old, ArrayType) else None)
            return ArrayType(element, t.contains_null)
        if isinstance(t, MapType):
            keys, values = (old.key_type, old.value_type) if isinstance(old, MapType) else (None, None)
            return MapType(self._type(t.key_type, keys), self._type(t.value_type, values), t.value_contains_null)
        return t


def _part_keys(t: DataType, prefix: str) -> Iterator[str]:
    """Yield the keys of the parts of a list or map, down to the next struct. Protocol: IcebergCompatV2."""
    parts: dict[str, DataType] = {}
    if isinstance(t, ArrayType):
        parts = {"element": t.element_type}
    elif isinstance(t, MapType):
        parts = {"key": t.key_type, "value": t.value_type}
    for name, part in parts.items():
        yield f"{prefix}.{name}"
        yield from _part_keys(part, f"{prefix}.{name}")


def highest_id(configuration: Mapping[str, str]) -> int:
    """Return ``delta.columnMapping.maxColumnId``, 0 if there is none.

    Raises
    ------
    InvalidArgumentError
        If the property is no number.
    """
    text = configuration.get(MAX_ID, "0")
    if not text.isdecimal():
        raise InvalidArgumentError(f"Table property {MAX_ID} is {text!r}; expected a number.", property=MAX_ID)
    return int(text)


def _ids(schema: StructType) -> Iterator[int]:
    for _, f in walk(schema):
        nested: Any = f.metadata.get(NESTED_IDS) or {}
        yield from (v for v in (f.metadata.get(ID), *nested.values()) if isinstance(v, int))


# --- what may change -----------------------------------------------------------------------


def check_change(table: TableState, previous: TableState | None, *, is_new: bool) -> None:
    """Reject changes after which older files could not be read; a table that is replaced has none.

    Raises
    ------
    InvalidArgumentError
        For a change of the mode other than from none to name.
    SchemaError
        For a column that changes its id or physical name.
    """
    if previous is not None and not is_new:
        _check_mode(mapping_mode(table.configuration), previous)
    if not table.is_active(FEATURE):
        return
    numbers: dict[int, Path] = {}
    for number, path in _numbered(table.schema):
        if numbers.setdefault(number, path) != path:
            raise SchemaError(
                f"Columns {format_path(numbers[number])} and {format_path(path)} both have id {number}; expected one "
                "each.",
                column=format_path(path),
            )
    last = highest_id(table.configuration)
    if numbers and last < max(numbers):
        raise SchemaError(
            f"Table property {MAX_ID} is {last}, below the id {max(numbers)} of a column.", property=MAX_ID
        )
    if previous is not None and previous.is_active(FEATURE):
        _check_names(table, previous)


def _check_mode(mode: str, previous: TableState) -> None:
    before = mapping_mode(previous.configuration) if previous.is_active(FEATURE) else "none"
    if mode == before or (before, mode) == ("none", "name"):
        return
    advice = {
        "none": "Drop the feature instead, which rewrites the files.",
        "id": "An existing table can be mapped by name; by id only a new one.",
    }.get(mode, "Keep it, or copy the rows to a new table.")
    raise InvalidArgumentError(f"Table property {MODE} would change from {before} to {mode}. {advice}", property=MODE)


def _check_names(table: TableState, previous: TableState) -> None:
    """Physical names and ids never change: a column is the one whose id or physical path it has."""
    before, after = _physical(previous), _physical(table)
    names = {number: path[-1] for path, number in before.items() if number is not None}
    for path, number in after.items():
        if number is None:
            continue
        if (before.get(path) or number) != number:
            raise SchemaError(f"The column that files name {path[-1]!r} has id {before[path]} and would get {number}.")
        if names.get(number, path[-1]) != path[-1]:
            raise SchemaError(
                f"The column with id {number} is {names[number]!r} in files and would become {path[-1]!r}; physical "
                "names never change."
            )


def _physical(table: TableState) -> dict[Path, int | None]:
    return {
        path: f.metadata.get(FIELD_ID) for path, f in walk(table.column_map.physical) if PHYSICAL_NAME in f.metadata
    }


def _numbered(schema: StructType) -> Iterator[tuple[int, Path]]:
    """Yield every id, those of parts of lists and maps too, with its column."""
    for path, f in walk(schema):
        nested: Any = f.metadata.get(NESTED_IDS) or {}
        yield from ((v, path) for v in (f.metadata.get(ID),) if isinstance(v, int))
        yield from ((v, (*path, k)) for k, v in nested.items() if isinstance(v, int))
