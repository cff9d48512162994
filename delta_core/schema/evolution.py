"""Schema evolution by writing: what a table's schema becomes when rows with other columns arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from delta_core.errors import SchemaMismatchError
from delta_core.schema.fields import Path, Schema, format_path, walk
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, UserDefinedType

__all__ = ["feature_metadata", "merge_rows_schema", "merge_schemas"]

#: How the keys of metadata begin that features set.
_FEATURES = "delta."

#: Whether a column may change its type so: from its path, the table's type and the rows' type.
Accept = Callable[[Path, DataType, DataType], bool]


def merge_schemas(table: Schema, rows: Schema, accept: Accept) -> Schema:
    """Return the table's schema with the columns that only the rows have, nullable, after the others.

    A column that both have keeps the table's type, unless the rows' one is wider and ``accept`` lets it change. Names
    are compared ignoring case; nested structs merge likewise.

    Raises
    ------
    SchemaMismatchError
        If a column is a struct, list or map on one side only, and not the form in which Arrow has the table's type.
    """
    return Schema(_merged_struct(table, rows, accept, ()).members)


def merge_rows_schema(table: Schema, rows: Schema, accept: Accept) -> Schema:
    """Return what `merge_schemas` returns, for rows that may add plain columns only.

    Raises
    ------
    SchemaMismatchError
        Also if an added column has metadata that features set: rows that the table has would lack its values, or get
        those of a dropped column, which had its name in files.
    """
    merged = merge_schemas(table, rows, accept)
    for path, key in feature_metadata(table, merged):
        raise SchemaMismatchError(
            f"The rows add column {format_path(path)} with the metadata {key!r}, which features set. Leave that "
            "metadata out; a default can be set afterwards (table.alter.set_default).",
            column=format_path(path),
        )
    return merged


def feature_metadata(before: StructType, after: StructType) -> Iterator[tuple[Path, str]]:
    """Yield the path of each column or part of one that only the later schema has, with each key that features set."""
    old = {path for path, _ in walk(before)}
    for path, f in walk(after):
        if path not in old:
            yield from ((path, key) for key in f.metadata if key.startswith(_FEATURES))


def _merged_struct(old: StructType, new: StructType, accept: Accept, path: Path) -> StructType:
    given = {f.name.lower(): f for f in new.members}
    fields = []
    for f in old.members:
        found = given.pop(f.name.lower(), None)
        merged = f.type if found is None else _merged(f.type, found.type, accept, (*path, f.name))
        fields.append(f if merged == f.type else Field(f.name, merged, f.nullable, f.metadata))
    return StructType([*fields, *(Field(f.name, f.type, True, f.metadata) for f in given.values())])


def _merged(old: DataType, new: DataType, accept: Accept, path: Path) -> DataType:
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _merged_struct(old, new, accept, path)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        element = _merged(old.element_type, new.element_type, accept, (*path, "element"))
        return ArrayType(element, old.contains_null)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = _merged(old.key_type, new.key_type, accept, (*path, "key"))
        value = _merged(old.value_type, new.value_type, accept, (*path, "value"))
        return MapType(key, value, old.value_contains_null)
    if old == PrimitiveType("void"):
        return new
    if isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType):
        return new if old != new and accept(path, old, new) else old
    if new == PrimitiveType("void") or _is_stored_form(old, new):
        return old
    raise SchemaMismatchError(
        f"Column {format_path(path)} is {old} in the table and {new} in the rows.", column=format_path(path)
    )


def _is_stored_form(old: DataType, new: DataType) -> bool:
    """Whether rows have a type as Arrow has one that is none to Delta, such as a variant."""
    if isinstance(old, UserDefinedType):
        try:
            return _merged(old.stored, new, lambda *_: False, ()) == old.stored
        except SchemaMismatchError:
            return False
    if not isinstance(old, PrimitiveType) or not isinstance(new, StructType):
        return False
    stored = old.to_arrow()
    if not pa.types.is_struct(stored):
        return False
    return [(f.name, f.type) for f in stored] == [(f.name, f.type.to_arrow()) for f in new.members]
