"""Columns of type void, which a session may leave out of the rows that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from delta_core.schema.fields import Path, Schema, without_void
from delta_core.schema.types import Field, StructType

__all__ = ["paths_without_void", "void_columns", "without_void_columns"]


def without_void_columns(schema: StructType) -> Schema:
    """Return the columns of a table, and the fields of their structs, that are not of type void."""
    kept = [(f, stored) for f in schema.members if (stored := without_void(f.type)) is not None]
    return Schema(Field(f.name, stored, f.nullable, f.metadata) for f, stored in kept)


def void_columns(schema: StructType) -> list[str]:
    """Return the names of the columns that are of type void, or have no other part."""
    return [f.name for f in schema.members if without_void(f.type) is None]


def paths_without_void(schema: StructType) -> list[Path] | None:
    """Return the paths of the columns and fields that are not of type void; None if there are no others."""
    found = list(_paths(schema, ()))
    return None if found == [(f.name,) for f in schema.members] else found


def _paths(struct: StructType, above: Path) -> Iterator[Path]:
    for f in struct.members:
        stored = without_void(f.type)
        if isinstance(f.type, StructType) and stored not in (None, f.type):
            yield from _paths(f.type, (*above, f.name))
        elif stored is not None:
            yield (*above, f.name)
