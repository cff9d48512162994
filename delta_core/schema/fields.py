"""Field paths in a schema, and the map from logical to physical names.

*Logical* is the user's name; *physical* is the name in Parquet, statistics and ``partitionValues``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ColumnNotFoundError, SchemaError, TypeKindError, UnsupportedFeatureError, did_you_mean
from delta_core.runtime.arguments import check_kinds
from delta_core.schema import parts
from delta_core.schema.types import (
    KNOWN_TYPES,
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeDef,
    UserDefinedType,
    check_nesting,
    parse_decimal,
    type_to_json,
)

__all__ = [
    "FIELD_ID",
    "NESTED_IDS",
    "NOT_IN_NAMES",
    "ColumnMap",
    "Path",
    "Schema",
    "arrow_schema",
    "check_types",
    "find",
    "format_path",
    "leaf_fields",
    "unknown_types",
    "walk",
    "with_custom_types",
    "with_field_metadata",
    "without_metadata",
    "without_void",
]

Path = tuple[str, ...]
_VOID = PrimitiveType("void")
#: Characters that Delta on Spark rejects in names of columns which files have under the same names.
NOT_IN_NAMES = " ,;{}()\n\t="
#: The key under which a physical field carries its Parquet field id.
FIELD_ID = "parquet.field.id"
#: The key under which it carries the ids of the parts of lists and maps below it: dotted keys that begin with its name.
NESTED_IDS = "parquet.field.nested.ids"


class Schema(StructType):
    """A table's schema: a struct type that converts to and from ``pyarrow.Schema``.

    Examples
    --------
    >>> Schema([Field("id", "long"), Field("city", "string")]).names
    ['id', 'city']
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return parts.schema_table(self)

    @staticmethod
    def from_json(schema_json: str) -> Schema:
        """Parse ``schemaString``.

        Parameters
        ----------
        schema_json : str
            The JSON text.

        Examples
        --------
        >>> Schema.from_json(table.schema().to_json()) == table.schema()
        True
        """
        return Schema(StructType.from_json(schema_json).members)

    def json(self) -> dict[str, Any]:
        """Return the schema as decoded JSON.

        Examples
        --------
        >>> Schema([Field("id", "long")]).json()["fields"][0]["type"]
        'long'
        """
        return dict(type_to_json(self))

    @staticmethod
    def from_arrow(data_type: Any) -> Schema:
        """Return the Delta schema of an Arrow schema (anything with ``__arrow_c_schema__``).

        Parameters
        ----------
        data_type : pyarrow.Schema, or any object with ``__arrow_c_schema__``
            The Arrow schema.

        Raises
        ------
        TypeKindError
            For an object that is no schema.

        Examples
        --------
        >>> Schema.from_arrow(pa.schema([pa.field("id", pa.int64(), nullable=False)]))
        Schema([Field(id, PrimitiveType("long"), nullable=False)])
        """
        try:
            schema = data_type if isinstance(data_type, pa.Schema) else pa.schema(data_type)
        except (TypeError, ValueError) as e:
            raise TypeKindError(
                f"Found a schema as {type(data_type).__name__}; expected a Schema, or anything with __arrow_c_schema__ "
                f"({e})."
            ) from e
        return Schema(Field.from_arrow(f) for f in schema)

    def to_arrow(self, as_large_types: bool = False, **kwargs: Any) -> pa.Schema:  # type: ignore[override]  # deltalake's signature
        """Return the Arrow schema; with ``as_large_types`` strings, binaries and lists have 64-bit offsets.

        Parameters
        ----------
        as_large_types : bool
            Whether strings, binary values and lists have 64-bit offsets.
        **kwargs
            The arguments of `Field.to_arrow`.

        Examples
        --------
        >>> Schema([Field("id", "long"), Field("city", "string")]).to_arrow(as_large_types=True)
        id: int64
        city: large_string
        """
        check_kinds([("as_large_types", as_large_types)])
        schema = pa.schema([f.to_arrow(**kwargs) for f in self.members])
        return pa.schema([f.with_type(_large(f.type)) for f in schema]) if as_large_types else schema


def _large(t: pa.DataType) -> pa.DataType:
    if pa.types.is_string(t):
        return pa.large_string()
    if pa.types.is_binary(t):
        return pa.large_binary()
    if pa.types.is_struct(t):
        return pa.struct([f.with_type(_large(f.type)) for f in t])
    if pa.types.is_list(t):
        return pa.large_list(t.value_field.with_type(_large(t.value_type)))
    if pa.types.is_map(t):
        return pa.map_(t.key_field.with_type(_large(t.key_type)), t.item_field.with_type(_large(t.item_type)))
    return t


class ColumnMap(Struct, frozen=True):
    """How the table's columns are found in its files.

    Parameters
    ----------
    match : "name" or "id"
        How a field is found in Parquet. By id, a file's fields match by ``field_id`` at every level and
        never by name.
    physical : StructType
        The table's schema with physical names, field for field parallel to the logical one; a field's
        Parquet id is in its metadata under ``parquet.field.id``.
    """

    match: Literal["name", "id"]
    physical: StructType

    @staticmethod
    def identity(schema: StructType) -> ColumnMap:
        """Return the map of a table whose physical names are the logical ones.

        Parameters
        ----------
        schema : StructType
            The table's schema.
        """
        return ColumnMap("name", schema)

    def physical_path(self, schema: StructType, path: Path) -> Path:
        """Return the physical path of a logical one (``element``, ``key``, ``value`` stay).

        Parameters
        ----------
        schema : StructType
            The logical schema.
        path : tuple of str
            The logical path.

        Raises
        ------
        ColumnNotFoundError
            If the schema lacks the path.
        """
        names: list[str] = []
        logical: DataType = schema
        physical: DataType = self.physical
        for part in path:
            if isinstance(logical, StructType) and isinstance(physical, StructType):
                index = logical.index(part)
                if index is None:
                    raise _not_found(schema, path)
                names.append(physical.members[index].name)
                logical, physical = logical.members[index].type, physical.members[index].type
            else:
                names.append(part)
                logical, physical = _part(logical, part, schema, path), _part(physical, part, schema, path)
        return tuple(names)


def _part(t: DataType, part: str, schema: StructType, path: Path) -> DataType:
    if isinstance(t, ArrayType) and part == "element":
        return t.element_type
    if isinstance(t, MapType) and part in ("key", "value"):
        return t.key_type if part == "key" else t.value_type
    raise _not_found(schema, path)


def _not_found(schema: StructType, path: Path) -> ColumnNotFoundError:
    column = format_path(path)
    names = ", ".join(schema.names[:20])
    known = schema.names if len(path) == 1 else [format_path(p) for p, _ in walk(schema)]
    text = f"Column {column} is not in the table; its columns are: {names}.{did_you_mean(column, known)}"
    return ColumnNotFoundError(text, column=column)


def find(schema: StructType, path: Path) -> tuple[Path, Field]:
    """Find a column by path: exact names first, else ignoring case as Spark does.

    Returns the path as the schema spells it and its last field.

    Parameters
    ----------
    schema : StructType
        The schema.
    path : tuple of str
        The names from the outermost in.

    Raises
    ------
    ColumnNotFoundError
        For a path that the schema lacks.
    """
    found: Field | None = None
    names: list[str] = []
    current: DataType = schema
    for part in path:
        if isinstance(current, StructType):
            found = current.get(part)
            if found is None:
                raise _not_found(schema, path)
            names.append(found.name)
            current = found.type
        else:
            current = _part(current, part, schema, path)
            found = Field(part, current)
            names.append(part)
    if found is None:
        raise _not_found(schema, path)
    return tuple(names), found


def format_path(path: Path) -> str:
    """Join a path by dots, names that hold a dot or backtick in backticks.

    Parameters
    ----------
    path : tuple of str
        The names from the outermost in.
    """
    return ".".join(f"`{p.replace('`', '``')}`" if "." in p or "`" in p else p for p in path)


def leaf_fields(struct: StructType, prefix: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Yield (path, field) of every field that is not a struct; arrays and maps count as leaves.

    Parameters
    ----------
    struct : StructType
        The struct.
    prefix : tuple of str
        The path of the struct, with which the yielded ones begin.
    """
    for f in struct.members:
        if isinstance(f.type, StructType):
            yield from leaf_fields(f.type, (*prefix, f.name))
        else:
            yield (*prefix, f.name), f


def walk(t: DataType, path: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Yield (path, field) of every part of a type at every depth, parents first.

    The parts of arrays and maps count as fields named ``element``, ``key`` and ``value``.

    Parameters
    ----------
    t : DataType
        The type.
    path : tuple of str
        The path of the type, with which the yielded ones begin.
    """
    parts: tuple[Field, ...] = ()
    if isinstance(t, StructType):
        parts = t.members
    elif isinstance(t, ArrayType):
        parts = (Field("element", t.element_type, t.contains_null),)
    elif isinstance(t, MapType):
        parts = (Field("key", t.key_type, False), Field("value", t.value_type, t.value_contains_null))
    for f in parts:
        own = (*path, f.name)
        yield own, f
        if not isinstance(f.type, PrimitiveType):  # few are nested, of many
            yield from walk(f.type, own)


def without_metadata(schema: StructType, keys: Collection[str]) -> Schema:
    """Return a schema whose fields, at every depth, lack some keys of their metadata.

    Parameters
    ----------
    schema : StructType
        The schema.
    keys : collection of str
        The keys.
    """
    return with_field_metadata(schema, lambda f: {k: v for k, v in f.metadata.items() if k not in keys})


def with_field_metadata(schema: StructType, change: Callable[[Field], Mapping[str, Any]]) -> Schema:
    """Return a schema whose fields, at every depth, have the metadata that ``change`` returns for them."""
    return _changed(schema, change, lambda t: t)


def with_custom_types(schema: StructType, types: Mapping[str, TypeDef]) -> Schema:
    """Return a schema whose types of plugins, at every depth, have their definitions; names are known."""

    def defined(t: PrimitiveType) -> PrimitiveType:
        is_custom = t.type in types and t.type not in KNOWN_TYPES
        return CustomType(t.type, types[t.type]) if is_custom else t

    return _changed(schema, lambda f: f.metadata, defined)


def _changed(
    schema: StructType,
    metadata: Callable[[Field], Mapping[str, Any]],
    primitive: Callable[[PrimitiveType], PrimitiveType],
) -> Schema:
    def inner(t: DataType) -> DataType:
        if isinstance(t, StructType):
            return StructType(map(plain, t.members))
        if isinstance(t, ArrayType):
            return ArrayType(inner(t.element_type), t.contains_null)
        if isinstance(t, MapType):
            return MapType(inner(t.key_type), inner(t.value_type), t.value_contains_null)
        return primitive(t)

    def plain(f: Field) -> Field:
        return Field(f.name, inner(f.type), f.nullable, metadata(f))

    return Schema(map(plain, schema.members))


def unknown_types(schema: StructType, types: Mapping[str, TypeDef]) -> Iterator[tuple[Path, str]]:
    """Yield path and name of each primitive type that is not among the known ones; a decimal's numbers are checked."""
    for path, f in walk(schema):
        if isinstance(f.type, PrimitiveType) and f.type.type not in types and not isinstance(f.type, UserDefinedType):
            if parse_decimal(f.type.type) is None:
                yield path, f.type.type
            else:
                f.type.to_arrow()


#: The names in SQL and Python of types that the protocol has under other names, and that a plugin may define.
_SQL_NAMES = {"text": "string", "bytes": "binary"}


def check_types(schema: StructType, types: Mapping[str, TypeDef]) -> None:
    """Reject a schema with a type that neither the core nor a feature of the table has.

    Raises
    ------
    UnsupportedFeatureError
        For a type that no feature provides; the message names column and type.
    SchemaError
        For names that differ by case only.
    """
    if schema.checked is not None and schema.checked == types:  # a new table's is checked at each step
        return
    check_nesting(schema)
    _check_names(schema, ())
    for path, f in walk(schema):
        if isinstance(f.type, StructType):
            _check_names(f.type, path)
    for path, name in unknown_types(schema, types):
        meant = _SQL_NAMES.get(name.lower())
        what = (
            f"The protocol calls it {meant!r}."
            if meant
            else "Install a plugin that provides the type, or upgrade delta-core-lake."
        )
        raise UnsupportedFeatureError(
            f"Column {format_path(path)} has type {name!r}, which no feature of this table provides. {what}",
            column=format_path(path),
            type=name,
        )
    schema.checked = types


def _check_names(t: StructType, path: Path) -> None:
    lower: dict[str, str] = {}
    for f in t.members:
        other = lower.setdefault(f.name.lower(), f.name)
        if other is not f.name:
            where = format_path(path) or "the table"
            raise SchemaError(f"Columns {other!r} and {f.name!r} of {where} differ by case only.")


def arrow_schema(struct: StructType, types: Mapping[str, TypeDef]) -> pa.Schema:
    """Return the Arrow schema without field metadata, which is what scans hand out."""

    def plain(t: DataType) -> pa.DataType:
        if isinstance(t, PrimitiveType):
            return t.to_arrow(types)
        if isinstance(t, StructType):
            return pa.struct([pa.field(f.name, plain(f.type), f.nullable) for f in t.members])
        if isinstance(t, ArrayType):
            return pa.list_(pa.field("element", plain(t.element_type), t.contains_null))
        value = pa.field("value", plain(t.value_type), t.value_contains_null)
        return pa.map_(pa.field("key", plain(t.key_type), False), value)

    if struct.arrow is None or struct.arrow[0] is not types:
        struct.arrow = types, pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in struct.members])
    return struct.arrow[1]


def without_void(t: DataType) -> DataType | None:
    """Return the part of a type that files contain; None if that is nothing, so that every value is null.

    Protocol
    --------
    Void Type
    """
    if isinstance(t, StructType):
        kept = [(f, stored) for f in t.members if (stored := without_void(f.type)) is not None]
        fields = [f if stored is f.type else Field(f.name, stored, f.nullable, f.metadata) for f, stored in kept]
        return StructType(fields) if fields or not t.members else None
    if isinstance(t, ArrayType):
        element = without_void(t.element_type)
        return None if element is None else ArrayType(element, t.contains_null)
    if isinstance(t, MapType):
        key, value = without_void(t.key_type), without_void(t.value_type)
        return None if key is None or value is None else MapType(key, value, t.value_contains_null)
    return None if t == _VOID else t
