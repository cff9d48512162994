"""Each widening of a column, noted in the schema. Protocol: Writer Requirements for Type Widening."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    ArrayType,
    DataType,
    Field,
    MapType,
    Metadata,
    Path,
    PrimitiveType,
    Schema,
    StructType,
    TableState,
    walk,
    without_metadata,
)
from delta_plugins.type_widening.logic import TYPE_CHANGES, is_widening

__all__ = ["changed_columns", "with_changes", "without_changes"]

_PHYSICAL_NAME = "delta.columnMapping.physicalName"


def with_changes(metadata: Metadata, previous: TableState) -> Metadata:
    """Return the metadata with every change of a type against the altered table, after the older ones.

    A field that comes without the changes which it has in the table gets them back. If a type changes to one that is
    no wider, all files were replaced, and the part's older changes mean nothing any more.
    """
    schema = metadata.schema
    made = Schema(_struct(schema, previous.schema))
    return metadata if made == schema else replace(metadata, schema_string=made.to_json())


def without_changes(schema: Schema) -> Schema:
    """Return the schema without the changes: all files then have its types."""
    return without_metadata(schema, (TYPE_CHANGES,))


def changed_columns(schema: Schema) -> tuple[Path, ...]:
    """Return the columns whose types changed; parts of arrays and maps are ``element``, ``key`` and ``value``."""
    found = [
        (*path, *str(change.get("fieldPath") or "").split("."))
        for path, f in walk(schema)
        for change in f.metadata.get(TYPE_CHANGES) or ()
    ]
    return tuple(dict.fromkeys(tuple(p for p in path if p) for path in found))


def _struct(t: StructType, old: StructType) -> list[Field]:
    before = {_name(f): f for f in old.members}
    return [_field(f, before[_name(f)]) if _name(f) in before else f for f in t.members]


def _name(f: Field) -> str:
    """Return the name of a field in files."""
    return str(f.metadata.get(_PHYSICAL_NAME, f.name))


def _field(f: Field, old: Field) -> Field:
    known = [dict(c) for c in old.metadata.get(TYPE_CHANGES) or ()]
    given = [dict(c) for c in f.metadata.get(TYPE_CHANGES) or ()]
    changes = given if len(given) > len(known) else known
    for path, before, after in _changed(f.type, old.type, ()):
        where = {"fieldPath": ".".join(path)} if path else {}
        note = {"fromType": before, "toType": after, **where}
        if is_widening(before, after):
            changes = changes if note in given else [*changes, note]
        else:
            changes = [c for c in changes if (c.get("fieldPath") or "") != ".".join(path)]
    own = {k: v for k, v in f.metadata.items() if k != TYPE_CHANGES} | ({TYPE_CHANGES: changes} if changes else {})
    return Field(f.name, _inner(f.type, old.type), f.nullable, own)


def _changed(t: DataType, old: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield (path, old, new) of primitive types that changed, down to the next struct."""
    if isinstance(t, PrimitiveType) and isinstance(old, PrimitiveType):
        if t != old and old.type != "void":
            yield path, old.type, t.type
    elif isinstance(t, ArrayType) and isinstance(old, ArrayType):
        yield from _changed(t.element_type, old.element_type, (*path, "element"))
    elif isinstance(t, MapType) and isinstance(old, MapType):
        yield from _changed(t.key_type, old.key_type, (*path, "key"))
        yield from _changed(t.value_type, old.value_type, (*path, "value"))


def _inner(t: DataType, old: Any) -> DataType:
    """Return a type with the changes of the structs in it."""
    if isinstance(t, StructType) and isinstance(old, StructType):
        return StructType(_struct(t, old))
    if isinstance(t, ArrayType) and isinstance(old, ArrayType):
        return ArrayType(_inner(t.element_type, old.element_type), t.contains_null)
    if isinstance(t, MapType) and isinstance(old, MapType):
        return MapType(_inner(t.key_type, old.key_type), _inner(t.value_type, old.value_type), t.value_contains_null)
    return t
