"""Changes of a table's definition: columns, properties, name, features. Each is one commit that adds no file.

Every function looks for the latest version first, and returns the snapshot right after its commit; the latest version
itself if nothing would change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import (
    ArgumentTypeError,
    ColumnNotFoundError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaError,
    SchemaMismatchError,
    TypeChangeError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.expressions.ast import Call, Column, Expression, all_of, negate
from delta_core.expressions.sql import DoubleQuotes
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.options import kind_name
from delta_core.kernel.commit.property_requests import declared_properties, reserved_properties
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.properties import normalize_properties, parse_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.schema_checks import CHAR_VARCHAR
from delta_core.operations.create import property_texts
from delta_core.operations.feature.add import enabled_features, run_enabling_steps
from delta_core.runtime.arguments import is_of_deltalake
from delta_core.runtime.json_text import compact_json
from delta_core.schema.evolution import feature_metadata, merge_schemas
from delta_core.schema.fields import ColumnMap, Path, Schema, find, format_path, walk
from delta_core.schema.type_text import parse_type_text
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, type_to_json

__all__ = [
    "ColumnAlteration",
    "PlacedColumn",
    "add_column",
    "add_columns",
    "add_placed_columns",
    "change_column_metadata",
    "change_columns",
    "drop_columns",
    "drop_not_null",
    "move_column",
    "rename_column",
    "replace_columns",
    "set_not_null",
    "set_properties",
    "set_table_texts",
    "unset_properties",
    "widen_type",
]

#: The least and the most characters of the table's texts.
_TEXT_LENGTHS = {"name": (1, 255), "description": (0, 4000)}
_STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
#: The ways to name a column: a name, dotted for fields of structs, or its path.
ColumnName = str | Sequence[str]
#: Arguments of `Transaction.commit`.
CommitArguments = Mapping[str, Any]


# --- columns -------------------------------------------------------------------------------


def add_columns(
    base: Snapshot, fields: Field | Sequence[Field], commit: CommitArguments, *, operation: str = "ADD COLUMNS"
) -> Snapshot:
    """Add columns after the others, and fields to structs that the table has; rows that are there have null in them.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    fields : Field or sequence of Field
        A struct that the table has gets the fields that it lacks.
    commit : Mapping
        Arguments of `Transaction.commit`.
    operation : str
        How the history names the change.

    Raises
    ------
    SchemaError
        For a column that is NOT NULL, that the table has with another type, or whose metadata provides values, such as
        a default: rows that are there would lack them.
    InvalidArgumentError
        For something else than a field.
    """
    latest = base.latest()
    given = StructType([fields] if isinstance(fields, Field) or is_of_deltalake(fields) else fields).members
    strange = next((f for f in given if not isinstance(f, Field)), None)
    if strange is not None:
        raise InvalidArgumentError(f"Found {kind_name(strange)}, expected a Field of delta_core.")
    added: list[tuple[Path, Field]] = []
    _check_added(latest.schema, StructType(given), (), added)
    merged = merge_schemas(latest.schema, Schema(given), lambda path, old, new: False)
    if merged == latest.schema:
        return latest
    _check_plain(latest, merged, added)
    columns = [{"column": _shown(path, f)} for path, f in added]
    return _commit(latest, operation, {"columns": compact_json(columns)}, _with_schema(latest, merged), commit)


def add_column(
    base: Snapshot,
    column: ColumnName,
    data_type: DataType | str,
    commit: CommitArguments,
    *,
    metadata: Mapping[str, str] | None = None,
) -> Snapshot:
    """Add one column, or a field of a struct.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    column : str or sequence of str
        A name with dots is the path to a new field of a struct.
    data_type : DataType or str
        A type, or its name, such as ``bigint`` or ``struct<a: int>``.
    commit : Mapping
        Arguments of `Transaction.commit`.
    metadata : Mapping of str to str, optional
        Metadata of the new column, such as its ``comment``.

    Raises
    ------
    SchemaError
        If the table has a column of this name, and as `add_columns`.
    InvalidArgumentError
        For a path that leads into a column that is no struct.
    ColumnNotFoundError
        If the table has no such struct.
    """
    latest = base.latest()
    try:
        (path,) = parse_columns(column) if isinstance(column, str) else (tuple(column),)
    except ValueError as e:
        raise InvalidArgumentError(f"Found the new column {column!r}, expected one column's name.") from e
    if len(path) > 1:
        path = (*find(latest.schema, path[:-1])[0], path[-1])
    if _type_at(latest.schema, path[:-1]).type != "struct":
        raise InvalidArgumentError(
            f"Column {format_path(path[:-1])} is no struct and can't get a field.", column=format_path(path[:-1])
        )
    if path[-1].lower() in (f.name.lower() for f in _struct_of(_type_at(latest.schema, path[:-1]))):
        raise SchemaError(f"Column {format_path(path)} is in the table already.", column=format_path(path))
    new = parse_type_text(data_type) if isinstance(data_type, str) else data_type
    made = Field(path[-1], new, metadata=metadata)
    return add_columns(latest, _only(latest.schema, path, made).members, commit)


class PlacedColumn(Struct, frozen=True):
    """A new column, or a field of a struct, and its place.

    Parameters
    ----------
    path : Path
        Its name; several parts for a field of a struct.
    type : DataType
        Its type.
    metadata : Mapping of str to str
        Its metadata, such as its ``comment``.
    first : bool
        Whether it becomes the first one of its struct.
    after : str, optional
        The column beside it after which it is put. The last one of its struct if neither is given.
    """

    path: Path
    type: DataType
    metadata: Mapping[str, Any] = {}
    first: bool = False
    after: str | None = None

    def added_to(self, schema: Schema) -> tuple[Schema, Path]:
        """Return a schema with the column, and its path there.

        Raises
        ------
        InvalidArgumentError
            The path leads into a column that is no struct.
        SchemaError
            The schema has the column.
        ColumnNotFoundError
            The schema lacks the struct, or the column to follow.
        """
        path = (*find(schema, self.path[:-1])[0], self.path[-1]) if len(self.path) > 1 else self.path
        parent = _type_at(schema, path[:-1])
        if not isinstance(parent, StructType):
            name = format_path(path[:-1])
            raise InvalidArgumentError(f"Column {name} is no struct and can't get a field.", column=name)
        if parent.get(path[-1]) is not None:
            raise SchemaError(f"Column {format_path(path)} is in the table already.", column=format_path(path))
        made = Field(path[-1], self.type, metadata=self.metadata)
        return _with_fields(schema, path[:-1], lambda fields: _placed(fields, made, path, self.first, self.after)), path


def add_placed_columns(base: Snapshot, columns: Sequence[PlacedColumn], commit: CommitArguments) -> Snapshot:
    """Add columns and fields of structs at their places, one after the other, with one commit.

    Raises
    ------
    SchemaError
        For a column that the table has, and as of `add_columns`.
    InvalidArgumentError
        For a path that leads into a column that is no struct.
    ColumnNotFoundError
        If the table has no such struct, or no such column to follow.
    """
    latest = base.latest()
    schema, added = latest.schema, []
    for column in columns:
        schema, path = column.added_to(schema)
        added.append((path, find(schema, path)[1], column))
    _check_plain(latest, schema, [(path, f) for path, f, _ in added])
    shown = [_shown_at(path, f, c.first, c.after) for path, f, c in added]
    return _commit(latest, "ADD COLUMNS", {"columns": compact_json(shown)}, _with_schema(latest, schema), commit)


def _placed(fields: Sequence[Field], made: Field, path: Path, first: bool, after: str | None) -> list[Field]:
    """Return the fields of a struct with another one at its place: after them unless a place is given.

    Raises
    ------
    ColumnNotFoundError
        The field to follow is not among them.
    """
    at = 0 if first else len(fields)
    if after is not None:
        behind = StructType(fields).index(after)
        if behind is None:
            raise ColumnNotFoundError(f"Found AFTER {after}, which is not beside {format_path(path)}.", column=after)
        at = behind + 1
    return [*fields[:at], made, *fields[at:]]


def _type_at(schema: Schema, path: Path) -> DataType:
    return find(schema, path)[1].type if path else schema


def _only(t: DataType, path: Path, made: Field) -> Any:
    """Return a type with what leads to a new field alone."""
    if isinstance(t, StructType):
        if len(path) == 1:
            return StructType([made])
        inner = next(f.type for f in t.members if f.name == path[0])
        return StructType([Field(path[0], _only(inner, path[1:], made))])
    if isinstance(t, ArrayType):
        return ArrayType(_only(t.element_type, path[1:], made))
    assert isinstance(t, MapType)
    if path[0] == "key":
        return MapType(_only(t.key_type, path[1:], made), t.value_type)
    return MapType(t.key_type, _only(t.value_type, path[1:], made))


def _check_added(table: StructType, given: StructType, path: Path, added: list[tuple[Path, Field]]) -> None:
    """Collect the fields that a struct lacks; reject those that can't be added."""
    seen: set[str] = set()
    for f in given.members:
        here = (*path, f.name)
        column = format_path(here)
        if f.name.lower() in seen:
            raise SchemaError(f"Column {column} is given twice.", column=column)
        seen.add(f.name.lower())
        old = table.get(f.name)
        if old is None:
            if not f.nullable:
                raise SchemaError(
                    f"Column {column} is NOT NULL and can't be added: rows that are there have no value in it. Add it "
                    "nullable, fill it, and call set_column_not_null.",
                    column=column,
                )
            added.append((here, f))
        else:
            _check_inner(old.type, f.type, here, added)


def _check_inner(old: DataType, new: DataType, path: Path, added: list[tuple[Path, Field]]) -> None:
    if isinstance(old, StructType) and isinstance(new, StructType):
        _check_added(old, new, path, added)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        _check_inner(old.element_type, new.element_type, (*path, "element"), added)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        _check_inner(old.key_type, new.key_type, (*path, "key"), added)
        _check_inner(old.value_type, new.value_type, (*path, "value"), added)
    elif old != new:
        column = format_path(path)
        raise SchemaMismatchError(
            f"Column {column} is in the table already, as {old.type}, and can't be added as {new.type}.", column=column
        )


def _check_plain(latest: Snapshot, merged: Schema, added: Sequence[tuple[Path, Field]]) -> None:
    """Reject new fields whose metadata switches a feature on: it would provide values that rows which stay lack."""
    registry = latest.context.registry.everything

    def needed(schema: DataType) -> set[str]:
        text = compact_json(type_to_json(schema))
        return set(registry.collect("required_features", metadata=replace(latest.metadata, schema_string=text)))

    # other columns may need the same features
    without = _plain(merged)
    alone = without
    for path, f in added:
        alone = _with_field(alone, path, _replaced_by(f))
    features = sorted(needed(alone) - needed(without))
    if features:
        names = ", ".join(format_path(path) for path, _ in added)
        raise SchemaError(
            f"A column among {names} has metadata of the feature {features[0]}, which rows that are there would not "
            "meet. Add it without this metadata; a default can be set afterwards (set_default).",
            feature=features[0],
            column=names,
        )
    # such as the name of a dropped column in files, whose values would come back
    for path, _ in feature_metadata(latest.schema, merged):
        raise SchemaError(
            f"Column {format_path(path)} has metadata that features set, as a column of a table has it. Add it without "
            "the keys that begin with 'delta.'.",
            column=format_path(path),
        )


def _plain(t: DataType) -> DataType:
    """Return a type without the metadata of its fields."""
    if isinstance(t, StructType):
        return StructType(Field(f.name, _plain(f.type), f.nullable) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(_plain(t.element_type), t.contains_null)
    return MapType(_plain(t.key_type), _plain(t.value_type), t.value_contains_null) if isinstance(t, MapType) else t


def rename_column(base: Snapshot, column: ColumnName, name: str, commit: CommitArguments) -> Snapshot:
    """Rename a column, or a field of a struct; files stay as they are.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    column : str or sequence of str
        The column.
    name : str
        The new name of the column itself, without the path to it.
    commit : Mapping
        Arguments of `Transaction.commit`.

    Raises
    ------
    UnsupportedOperationError
        If files contain columns by the names of the table.
    SchemaError
        If another column has the name, or something in the metadata uses the old one, such as a constraint.
    InvalidArgumentError
        For a new name that is no text, or a part of a list or map.
    """
    latest = base.latest()
    path = _field_path(latest, column)
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"Found the new name {name!r} of column {format_path(path)}, expected text.")
    if name == path[-1]:
        return latest
    _check_mapped(latest, "renamed")
    renamed = (*path[:-1], name)

    def change(fields: tuple[Field, ...]) -> list[Field]:
        taken = next((f.name for f in fields if f.name.lower() == name.lower() and f.name != path[-1]), None)
        if taken is not None:
            raise SchemaError(
                f"Column {format_path(path)} can't be renamed to {name!r}: there is a column {taken!r} beside it.",
                column=format_path(path),
            )
        return [Field(name, f.type, f.nullable, f.metadata) if f.name == path[-1] else f for f in fields]

    metadata = _with_schema(latest, _with_fields(latest.schema, path[:-1], change))
    partitions = tuple(name if (c,) == path else c for c in metadata.partition_columns)
    metadata = replace(metadata, partition_columns=partitions)
    metadata = _with_statistics_columns(metadata, lambda p: (*renamed, *p[len(path) :]) if _is_under(p, path) else p)
    said = {"oldColumnPath": format_path(path), "newColumnPath": format_path(renamed)}
    return _commit(latest, "RENAME COLUMN", said, metadata, commit, double_quotes="text")


def drop_columns(base: Snapshot, columns: ColumnName | Sequence[ColumnName], commit: CommitArguments) -> Snapshot:
    """Drop columns, or fields of structs; files keep their values, which no later version returns.

    Raises
    ------
    UnsupportedOperationError
        If files contain columns by the names of the table: a later column of the name would return the old values.
    SchemaError
        If no other column would remain, or if something needs the column, such as the partitioning or a constraint.
    InvalidArgumentError
        If no column is named, and for a part of a list or map.
    """
    latest = base.latest()
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise InvalidArgumentError("Found no column to drop, expected at least one name.")
    paths = list(dict.fromkeys(_field_path(latest, name) for name in names))
    _check_mapped(latest, "dropped")
    schema: Schema = latest.schema
    for path in paths:
        if any(_is_under(path, other) for other in paths if other != path):
            continue
        schema = _with_fields(schema, path[:-1], partial(_without, path=path))
    if all(f.name in latest.state.partition_columns for f in schema.members):
        raise SchemaError(
            "Every column would be dropped but those that partition the table; a table needs at least one other "
            "column.",
            column=format_path(paths[0]),
        )
    metadata = _with_schema(latest, schema)
    metadata = _with_statistics_columns(metadata, lambda p: None if any(_is_under(p, d) for d in paths) else p)
    return _commit(latest, "DROP COLUMNS", {"columns": compact_json([format_path(p) for p in paths])}, metadata, commit)


def _without(fields: tuple[Field, ...], path: Path) -> list[Field]:
    left = [f for f in fields if f.name != path[-1]]
    if not left:
        raise SchemaError(
            f"Column {format_path(path)} is the only field that is left beside it and can't be dropped. Drop the whole "
            "column that contains it.",
            column=format_path(path),
        )
    return left


def move_column(
    base: Snapshot, column: ColumnName, commit: CommitArguments, *, first: bool = False, after: str | None = None
) -> Snapshot:
    """Move a column to the front of its struct, or after another field of the same struct.

    Raises
    ------
    InvalidArgumentError
        Unless exactly one of ``first`` and ``after`` is given.
    ColumnNotFoundError
        If ``after`` is no field of the same struct.
    """
    latest = base.latest()
    path = _field_path(latest, column)
    if first == (after is not None):
        raise InvalidArgumentError(
            "Expected either first=True, or after= with the name of a column (on the command line --first, --after)."
        )
    behind = None if after is None else find(latest.schema, (*path[:-1], after))[0][-1]
    if behind == path[-1]:
        raise InvalidArgumentError(f"Column {format_path(path)} can't be moved after itself.")
    schema = _moved(latest.schema, path, first, behind)
    if schema == latest.schema:
        return latest
    said = _changed_column(path, find(schema, path)[1])
    said["position"] = _position(first, behind)
    return _commit(latest, "CHANGE COLUMN", said, _with_schema(latest, schema), commit)


def widen_type(base: Snapshot, column: ColumnName, data_type: DataType | str, commit: CommitArguments) -> Snapshot:
    """Change the type of a column to one that contains all its values; files stay as they are.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    column : str or sequence of str
        ``element``, ``key`` and ``value`` are the names of the parts of lists and maps.
    data_type : DataType or str
        A type, or its name, such as ``bigint`` or ``decimal(20,2)``.
    commit : Mapping
        Arguments of `Transaction.commit`.

    Raises
    ------
    TypeChangeError
        For a change that no feature of the table allows, or of a column that an expression of the metadata uses.
    """
    latest = base.latest()
    path, f = _found(latest, column)
    new = parse_type_text(data_type) if isinstance(data_type, str) else data_type
    if new == f.type:
        return latest
    schema = Schema(_struct_of(_with_type(latest.schema, path, lambda old: new)))
    said = _changed_column(path, Field(f.name, new, f.nullable, f.metadata))
    return _commit(latest, "CHANGE COLUMN", said, _with_schema(latest, schema), commit)


class ColumnAlteration(Struct, frozen=True):
    """A change of a column: only what is given changes.

    Parameters
    ----------
    path : Path
        The column; ``element``, ``key`` and ``value`` name the parts of lists and maps.
    field : Field, optional
        Its new type, with the metadata that belongs to the type.
    comment : str, optional
        Its comment.
    first : bool
        Whether it becomes the first one of its struct.
    after : str, optional
        The column beside it after which it is put.
    """

    path: Path
    field: Field | None = None
    comment: str | None = None
    first: bool = False
    after: str | None = None

    def made_in(self, schema: Schema) -> Schema:
        """Return a schema with the change.

        Raises
        ------
        InvalidArgumentError
            For a comment or a place of a part of a list or map.
        TypeChangeError
            For another type of a struct, list or map as a whole.
        ColumnNotFoundError
            The schema lacks the column, or the one to follow.
        """
        path, f = find(schema, self.path)
        is_part = not isinstance(_type_at(schema, path[:-1]), StructType)
        if is_part and (self.comment is not None or self.first or self.after is not None):
            raise InvalidArgumentError(
                f"Column {format_path(path)} is a part of a list or map, which has a type alone.",
                column=format_path(path),
            )
        if is_part:
            new = f.type if self.field is None else self.field.type
            return Schema(_struct_of(_with_type(schema, path, lambda _: new)))
        metadata, t = dict(f.metadata), f.type
        if self.field is not None:
            t = self.field.type
            if _plain(t) == _plain(f.type):
                t = f.type
            elif not isinstance(t, PrimitiveType):
                raise TypeChangeError(
                    f"The type of column {format_path(path)} can't be given as a whole; change the fields below it.",
                    column=format_path(path),
                )
            metadata.pop(CHAR_VARCHAR, None)
            metadata.update(self.field.metadata)
        if self.comment is not None:
            metadata["comment"] = self.comment
        made = Field(f.name, t, f.nullable, metadata)
        changed = Schema(_struct_of(_with_field(schema, path, _replaced_by(made))))
        is_moved = self.first or self.after is not None
        return _moved(changed, path, self.first, self.after) if is_moved else changed

    def shown(self, schema: Schema) -> dict[str, Any]:
        """Return the change as history shows it."""
        return _shown_at(*find(schema, self.path), self.first, self.after)


def _kept(old: DataType, new: DataType) -> DataType:
    """Return a new type with the metadata and nullability that the fields of the old one have."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(_kept_field(old.get(f.name), f) for f in new.members)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(_kept(old.element_type, new.element_type), old.contains_null)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return MapType(
            _kept(old.key_type, new.key_type), _kept(old.value_type, new.value_type), old.value_contains_null
        )
    return new


def _kept_field(old: Field | None, new: Field) -> Field:
    if old is None:
        return new
    if old.nullable and not new.nullable:
        raise SchemaError(
            f"Column {old.name} can't become NOT NULL here: its rows may have nulls. Call set_column_not_null.",
            column=old.name,
        )
    own = {k: v for k, v in old.metadata.items() if k != CHAR_VARCHAR}
    return Field(old.name, _kept(old.type, new.type), new.nullable, {**own, **new.metadata})


def change_columns(base: Snapshot, changes: Sequence[ColumnAlteration], commit: CommitArguments) -> Snapshot:
    """Change types, comments and places of columns with one commit; files stay as they are.

    Raises
    ------
    TypeChangeError
        For a change of type that no feature of the table allows, or of a column that an expression of the metadata
        uses.
    ColumnNotFoundError
        If the table has no such column, or no such column to follow.
    InvalidArgumentError
        For a comment or a place of a part of a list or map.
    """
    latest = base.latest()
    schema = latest.schema
    for change in changes:
        schema = change.made_in(schema)
    if schema == latest.schema:
        return latest
    shown = [change.shown(schema) for change in changes]
    said = {name: v if isinstance(v, str) else compact_json(v) for name, v in shown[0].items()}
    operation, parameters = (
        ("CHANGE COLUMN", said) if len(shown) == 1 else ("CHANGE COLUMNS", {"columns": compact_json(shown)})
    )
    return _commit(latest, operation, parameters, _with_schema(latest, schema), commit)


def replace_columns(base: Snapshot, fields: Sequence[Field], commit: CommitArguments) -> Snapshot:
    """Put other columns in the place of the table's; those of the same names keep what the table has of them.

    Columns are moved and added, and their types and comments are changed. With column mapping, the table loses the
    columns that are left out.

    Raises
    ------
    UnsupportedOperationError
        A column is left out, and the files contain columns by the names of the table.
    SchemaError
        For a new column that is NOT NULL or has metadata that provides values.
    TypeChangeError
        For a change of type that no feature of the table allows.
    """
    latest = base.latest()
    old = latest.schema
    schema = Schema(_struct_of(_kept(old, StructType(fields))))
    names = [f.name.lower() for f in schema.members]
    again = next((f.name for f in schema.members if names.count(f.name.lower()) > 1), None)
    if again is not None:
        raise SchemaError(f"Column {again} is given twice.", column=again)
    if schema == old:
        return latest
    kept, had = ({_lowered(path) for path, _ in walk(s)} for s in (schema, old))
    left_out = [path for path, _ in walk(old) if _lowered(path) not in kept]
    if left_out:
        _check_mapped(latest, "dropped")
    added = [(path, f) for path, f in walk(schema) if _lowered(path) not in had]
    strict = next((format_path(path) for path, f in added if not f.nullable), None)
    if strict is not None:
        raise SchemaError(f"Column {strict} is NOT NULL and can't be added: rows that are there have no value in it.")
    if added:
        _check_plain(latest, schema, added)
    metadata = _with_statistics_columns(
        _with_schema(latest, schema), lambda p: None if any(_is_under(p, gone) for gone in left_out) else p
    )
    shown = [_shown((f.name,), f) for f in schema.members]
    return _commit(latest, "REPLACE COLUMNS", {"columns": compact_json(shown)}, metadata, commit)


def change_column_metadata(
    base: Snapshot,
    column: ColumnName,
    values: Mapping[str, str | None],
    commit: CommitArguments,
    *,
    operation: str = "CHANGE COLUMN",
) -> Snapshot:
    """Set keys of a column's metadata, such as its ``comment``; None removes one.

    Raises
    ------
    InvalidArgumentError, ArgumentTypeError
        For a key that begins with ``delta.``: features set those.
    """
    latest = base.latest()
    path = _field_path(latest, column)
    for key, value in values.items():
        if key.lower().startswith("delta."):
            raise InvalidArgumentError(
                f"Found the key {key!r} for the metadata of column {format_path(path)}; keys that begin with 'delta.' "
                "are set by table features. Use their operations.",
                column=format_path(path),
                key=key,
            )
        if value is not None and not isinstance(value, str):
            raise ArgumentTypeError(
                f"Found {key}={value!r} for the metadata of column {format_path(path)}, expected text or None.",
                column=format_path(path),
                key=key,
            )

    def change(f: Field) -> Field:
        merged = {**f.metadata, **values}
        return Field(f.name, f.type, f.nullable, {k: v for k, v in merged.items() if v is not None})

    return _change_field(latest, path, change, commit, operation)


def drop_not_null(base: Snapshot, column: ColumnName, raise_if_nullable: bool, commit: CommitArguments) -> Snapshot:
    """Let a column be null.

    Raises
    ------
    SchemaError
        If it may be null already, with `raise_if_nullable`.
    """
    latest = base.latest()
    path = _field_path(latest, column)
    if raise_if_nullable and find(latest.schema, path)[1].nullable:
        raise SchemaError(
            f"Column {format_path(path)} is nullable already. Pass raise_if_nullable=False to leave it as it is.",
            column=format_path(path),
        )
    return _change_field(latest, path, lambda f: Field(f.name, f.type, True, f.metadata), commit)


def set_not_null(base: Snapshot, column: ColumnName, commit: CommitArguments) -> Snapshot:
    """Make a column NOT NULL, once every row was checked to have a value in it.

    Raises
    ------
    ConstraintViolationError
        If a row has none; the table stays as it was.
    UnsupportedOperationError
        For a field within a list or map, whose rows can't be checked.
    ConcurrentAppendError
        If rows were added meanwhile, which were not checked.

    Notes
    -----
    Reads every file that may have a null in the column.
    """
    latest = base.latest()
    path, f = _found(latest, column)
    if not f.nullable:
        return latest
    for n in range(1, len(path)):
        if not isinstance(find(latest.schema, path[:n])[1].type, StructType):
            raise UnsupportedOperationError(
                f"Column {format_path(path)} is within a list or map and can't become NOT NULL: its rows can't be "
                "checked.",
                column=format_path(path),
            )
    _check_no_null(latest, path)
    made = Field(f.name, f.type, False, f.metadata)
    metadata = _with_schema(latest, Schema(_struct_of(_with_field(latest.schema, path, lambda _: made))))
    return _commit(latest, "CHANGE COLUMN", _changed_column(path, made), metadata, commit, without_nulls=(path,))


def _check_no_null(latest: Snapshot, path: Path) -> None:
    missing: Expression = Call("isnull", (Column(path),))
    if len(path) > 1:
        # a field of a struct that is null itself has no value to check
        missing = all_of([negate(Call("isnull", (Column(path[:-1]),))), missing]) or missing
    count = latest.scan(columns=[], predicate=missing).count()
    if count:
        column = format_path(path)
        raise ConstraintViolationError(
            f"{count} row{'s' * (count > 1)} of the table {'have' if count > 1 else 'has'} no value in column "
            f"{column}, which can't become NOT NULL. Fill or delete them first; the table stays as it was.",
            name=f"{column} IS NOT NULL",
            column=column,
            count=count,
        )


def _change_field(
    latest: Snapshot,
    path: Path,
    change: Callable[[Field], Field],
    commit: CommitArguments,
    operation: str = "CHANGE COLUMN",
) -> Snapshot:
    schema = Schema(_struct_of(_with_field(latest.schema, path, change)))
    if schema == latest.schema:
        return latest
    said = _changed_column(path, find(schema, path)[1])
    return _commit(latest, operation, said, _with_schema(latest, schema), commit)


# --- the table -----------------------------------------------------------------------------


def set_properties(
    base: Snapshot, properties: Mapping[str, Any], commit: CommitArguments, *, known_only: bool = True
) -> Snapshot:
    """Set table properties, and add the features that they need.

    Files that lack what such a feature requires of them, such as row ids, are added again with it first, in commits of
    their own; if the call is interrupted between these, calling it again goes on from there.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    properties : Mapping
        ``delta.feature.X`` = ``supported`` adds the feature X.
    commit : Mapping
        Arguments of `Transaction.commit`.
    known_only : bool
        Whether a property whose name begins with ``delta.`` is rejected if neither the core nor a feature declares it.

    Raises
    ------
    InvalidArgumentError
        For a value that a property can't have, an unknown name, and a property that its feature sets itself.
    """
    latest = base.latest()
    texts = normalize_properties(property_texts(properties), declared_properties(latest.context.registry.everything))
    if not texts:
        raise InvalidArgumentError("Found no table property to set, expected at least one.")
    metadata = replace(latest.metadata, configuration={**latest.metadata.configuration, **texts})
    if metadata == latest.metadata:
        return latest
    for feature in enabled_features(latest, metadata):
        latest = run_enabling_steps(latest, feature, commit)
    metadata = replace(latest.metadata, configuration={**latest.metadata.configuration, **texts})
    parameters = {"properties": compact_json(texts)}
    return _commit(latest, "SET TBLPROPERTIES", parameters, metadata, commit, allow_unknown=not known_only)


def unset_properties(
    base: Snapshot, names: Sequence[str], commit: CommitArguments, *, if_exists: bool = False
) -> Snapshot:
    """Remove table properties.

    Raises
    ------
    InvalidArgumentError
        For a property that the table does not have, unless ``if_exists``, and for one that its feature keeps.
    """
    latest = base.latest()
    wanted = [names] if isinstance(names, str) else list(names)
    have = latest.metadata.configuration
    spelled = {n.lower(): n for n in have if n.lower().startswith("delta.")}
    found = [n if n in have else spelled.get(n.lower(), n) for n in wanted]
    keepers = reserved_properties(latest.context.registry.everything)
    for name in found:
        if name not in have and not if_exists:
            raise InvalidArgumentError(
                f"The table has no property {name!r}.{did_you_mean(name, have)} It has: "
                f"{', '.join(sorted(have)) or 'none'}.",
                property=name,
            )
        if name in have and name in keepers:
            raise InvalidArgumentError(
                f"Table property {name} is kept by the feature {keepers[name]} and can't be removed.",
                property=name,
                feature=keepers[name],
            )
    left = {k: v for k, v in have.items() if k not in found}
    if left == have:
        return latest
    said = {"properties": compact_json(found), "ifExists": if_exists}
    return _commit(latest, "UNSET TBLPROPERTIES", said, replace(latest.metadata, configuration=left), commit)


def set_table_texts(base: Snapshot, texts: Mapping[str, str | None], commit: CommitArguments) -> Snapshot:
    """Set the ``name`` or the ``description`` of the table; None removes it.

    Raises
    ------
    InvalidArgumentError
        For a value that is no text, an empty name, and one of more than 255 or 4,000 characters.
    """
    for name, text in texts.items():
        least, most = _TEXT_LENGTHS[name]
        if isinstance(text, str) and not least <= len(text) <= most:
            raise InvalidArgumentError(
                f"Found a {name} of {len(text)} characters, expected {least} to {most}.", argument=name
            )
    latest = base.latest()
    metadata = replace(latest.metadata, **texts)
    if metadata == latest.metadata:
        return latest
    return _commit(latest, "UPDATE TABLE METADATA", {"metadata_update": compact_json(dict(texts))}, metadata, commit)


# --- the commit ----------------------------------------------------------------------------


def _commit(
    latest: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    metadata: Metadata,
    commit: CommitArguments,
    *,
    without_nulls: Collection[Path] = (),
    double_quotes: DoubleQuotes = "name",
    allow_unknown: bool = False,
) -> Snapshot:
    isolation = IsolationLevel.SERIALIZABLE if without_nulls else None
    transaction = Transaction(latest.context, latest, operation, parameters, isolation=isolation)
    transaction.set_metadata(
        metadata, without_nulls=without_nulls, double_quotes=double_quotes, allow_unknown=allow_unknown
    )
    if without_nulls:
        transaction.read(None)
    return transaction.commit(**commit).snapshot


def _check_mapped(latest: Snapshot, what: str) -> None:
    """Reject a change of names if files contain columns by the names of the table."""
    if latest.state.column_map == ColumnMap.identity(latest.schema):
        remedy = latest.context.registry.remedies("column_names").removeprefix(", or ")
        advice = f" First {remedy}." if remedy else ""
        raise UnsupportedOperationError(
            f"Columns of the table can't be {what}: its files contain them by the same names.{advice}"
        )


def _with_schema(latest: Snapshot, schema: Schema) -> Metadata:
    return replace(latest.metadata, schema_string=schema.to_json())


def _with_statistics_columns(metadata: Metadata, change: Callable[[Path], Path | None]) -> Metadata:
    """Return metadata whose list of columns with statistics follows a change of names; None drops a column."""
    text = metadata.configuration.get(_STATISTICS_COLUMNS)
    if text is None:
        return metadata
    old = list(parse_columns(text))
    new = [p for p in map(change, old) if p is not None]
    if new == old:
        return metadata
    listed = ",".join(".".join(_quoted(part) for part in p) for p in new)
    return replace(metadata, configuration={**metadata.configuration, _STATISTICS_COLUMNS: listed})


def _quoted(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else f"`{name.replace('`', '``')}`"


def _is_under(path: Path, other: Path) -> bool:
    """Whether a path is another one or a part of it; case does not count."""
    return [p.lower() for p in path[: len(other)]] == [p.lower() for p in other]


# --- paths and types -----------------------------------------------------------------------


def _found(latest: Snapshot, column: ColumnName) -> tuple[Path, Field]:
    """Find a column by its name or path; a name with dots is that of a whole column if there is one."""
    if not isinstance(column, str):
        return find(latest.schema, tuple(column))
    whole = latest.schema.get(column)
    if whole is not None:
        return (whole.name,), whole
    try:
        (path,) = parse_columns(column)
    except ValueError as e:
        raise InvalidArgumentError(f"Found the column {column!r}, expected one column's name.") from e
    return find(latest.schema, path)


def _field_path(latest: Snapshot, column: ColumnName) -> Path:
    """Return the path of a column or of a struct's field; parts of lists and maps have no names of their own."""
    path = _found(latest, column)[0]
    parent: DataType = latest.schema if len(path) == 1 else find(latest.schema, path[:-1])[1].type
    if not isinstance(parent, StructType):
        raise InvalidArgumentError(
            f"Column {format_path(path)} is a part of a list or map; expected a column or a field of a struct.",
            column=format_path(path),
        )
    return path


def _with_type(t: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    """Return a type with the part at a path changed."""
    if not path:
        return change(t)
    first, rest = path[0], path[1:]
    if isinstance(t, StructType):
        return StructType(
            Field(f.name, _with_type(f.type, rest, change), f.nullable, f.metadata) if f.name == first else f
            for f in t.members
        )
    if isinstance(t, ArrayType):
        return ArrayType(_with_type(t.element_type, rest, change), t.contains_null)
    assert isinstance(t, MapType)
    key, value = t.key_type, t.value_type
    if first == "key":
        key = _with_type(key, rest, change)
    else:
        value = _with_type(value, rest, change)
    return MapType(key, value, t.value_contains_null)


def _with_fields(schema: Schema, path: Path, change: Callable[[tuple[Field, ...]], list[Field]]) -> Schema:
    """Return a schema with other fields in the struct at a path; the empty path is the schema."""
    return Schema(_struct_of(_with_type(schema, path, lambda t: StructType(change(_struct_of(t))))))


def _moved(schema: Schema, path: Path, first: bool, after: str | None) -> Schema:
    """Return a schema with a column at another place of its struct."""

    def change(fields: tuple[Field, ...]) -> list[Field]:
        moved = next(f for f in fields if f.name == path[-1])
        return _placed([f for f in fields if f is not moved], moved, path, first, after)

    return _with_fields(schema, path[:-1], change)


def _lowered(path: Path) -> Path:
    return tuple(part.lower() for part in path)


def _replaced_by(new: Field) -> Callable[[Field], Field]:
    return lambda _: new


def _with_field(t: DataType, path: Path, change: Callable[[Field], Field]) -> DataType:
    return _with_type(t, path[:-1], lambda s: StructType(change(f) if f.name == path[-1] else f for f in _struct_of(s)))


def _struct_of(t: DataType) -> tuple[Field, ...]:
    assert isinstance(t, StructType)
    return t.members


# --- what history shows --------------------------------------------------------------------


def _changed_column(path: Path, f: Field) -> dict[str, str]:
    return {"column": compact_json(_shown(path, f))}


def _shown_at(path: Path, f: Field, first: bool, after: str | None) -> dict[str, Any]:
    is_placed = first or after is not None
    return {"column": _shown(path, f), **({"position": _position(first, after)} if is_placed else {})}


def _position(first: bool, after: str | None) -> str:
    return "FIRST" if first else f"AFTER {after}"


def _shown(path: Path, f: Field) -> dict[str, Any]:
    return {"name": format_path(path), "type": f.type.type, "nullable": f.nullable, "metadata": dict(f.metadata)}
