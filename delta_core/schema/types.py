"""Delta's logical types: their JSON form, Arrow mapping, Spark DDL name and partition text.

A type is a frozen value. ``parse_type`` reads the JSON of ``schemaString``; a primitive name that is
not known parses too and is rejected, with its column, if a table is opened (`schema.check_types`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Union

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import force_setattr

from delta_core.errors import (
    ArgumentTypeError,
    ArrowTypeError,
    InvalidArgumentError,
    SchemaError,
    TypeKindError,
    UnsupportedFeatureError,
)
from delta_core.runtime.arguments import is_of_deltalake
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.patterns import lazy_pattern

__all__ = [
    "BASE_TYPES",
    "KNOWN_TYPES",
    "TIMESTAMP_NTZ",
    "VARIANT",
    "ArrayType",
    "CustomType",
    "DataType",
    "Field",
    "MapType",
    "PrimitiveType",
    "spark_name",
]  # fmt: skip


class TypeDef(Struct, frozen=True):
    """The meaning of the name of a primitive type.

    Parameters
    ----------
    name : str
        The name in ``schemaString``.
    arrow : pyarrow.DataType
        How a column of it lies in memory.
    ddl : str
        Spark's DDL name.
    codec : str
        How a partition value's text is read: the name of a codec in `delta_core.kernel.log.partition_values`;
        empty if the type can't partition a table.
    aliases : tuple of str
        Further names that drafts used.
    ordered : bool
        Whether min and max of it prune files.
    decode : function(pyarrow.Array) -> pyarrow.Array, optional
        For a type that data files may store in several layouts: from a column as the file stores it, with every
        field below it, to ``arrow``. A reader of data files calls it wherever the file's type is not ``arrow``;
        it rejects a layout that it does not support with DataFileError. Without it the usual casts apply.
    to_json : function(pyarrow.Array) -> pyarrow.Array of string, optional
        Each value as JSON text, for people and text formats. Without it the values of ``arrow`` are shown.
    """

    name: str
    arrow: pa.DataType
    ddl: str
    codec: str = ""
    aliases: tuple[str, ...] = ()
    ordered: bool = True
    decode: Callable[[pa.Array], pa.Array] | None = None
    to_json: Callable[[pa.Array], pa.Array] | None = None


VARIANT_ARROW = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])

_BASE = (
    TypeDef("boolean", pa.bool_(), "BOOLEAN", "boolean"),
    TypeDef("byte", pa.int8(), "TINYINT", "integer"),
    TypeDef("short", pa.int16(), "SMALLINT", "integer"),
    TypeDef("integer", pa.int32(), "INT", "integer"),
    TypeDef("long", pa.int64(), "BIGINT", "integer"),
    TypeDef("float", pa.float32(), "FLOAT", "floating"),
    TypeDef("double", pa.float64(), "DOUBLE", "floating"),
    TypeDef("string", pa.string(), "STRING", "string"),
    TypeDef("binary", pa.binary(), "BINARY", "binary"),
    TypeDef("date", pa.date32(), "DATE", "date"),
    TypeDef("timestamp", pa.timestamp("us", "UTC"), "TIMESTAMP", "timestamp"),
    TypeDef("void", pa.null(), "VOID", "void", aliases=("null",), ordered=False),
)
BASE_TYPES: Mapping[str, TypeDef] = {name: t for t in _BASE for name in (t.name, *t.aliases)}
TIMESTAMP_NTZ = TypeDef(
    "timestamp_ntz",
    pa.timestamp("us"),
    "TIMESTAMP_NTZ",
    "timestamp_ntz",
    aliases=("timestampNTZ", "timestampWithoutTimezone"),
)
VARIANT = TypeDef("variant", VARIANT_ARROW, "VARIANT", ordered=False)
KNOWN_TYPES: Mapping[str, TypeDef] = {
    **BASE_TYPES,
    **dict.fromkeys((TIMESTAMP_NTZ.name, *TIMESTAMP_NTZ.aliases), TIMESTAMP_NTZ),
    "variant": VARIANT,
}
#: Names in SQL, and in other libraries, of types that have another name in the protocol.
_SQL_NAMES = {
    "bigint": "long",
    "bool": "boolean",
    "int": "integer",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "int8": "byte",
    "float32": "float",
    "float64": "double",
    "smallint": "short",
    "str": "string",
    "tinyint": "byte",
    "varchar": "string",
}
_DECIMAL = lazy_pattern(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?\Z")


@lru_cache(maxsize=256)
def parse_decimal(name: str) -> tuple[int, int] | None:
    """Return (precision, scale) of a ``decimal(p,s)`` name, None for any other name.

    Parameters
    ----------
    name : str
        The name of a primitive type.
    """
    if not name.startswith("decimal"):
        return None
    # as Delta writes it: compiling the pattern takes longer than all that a start reads of types
    precision, _, scale = name[8:-1].partition(",")
    if name.startswith("decimal(") and name.endswith(")") and precision.isdecimal() and scale.isdecimal():
        return int(precision), int(scale)
    match = _DECIMAL.match(name)
    if match is None:
        return None
    return (int(match[1]), int(match[2])) if match[1] else (10, 0)


class _ArrowExportable:
    """Takes part in the Arrow PyCapsule interface, by what ``to_arrow`` returns."""

    __slots__ = ()

    def __arrow_c_schema__(self) -> Any:
        return self.to_arrow().__arrow_c_schema__()  # type: ignore[attr-defined]  # of the subclass


class PrimitiveType(_ArrowExportable, Struct, frozen=True):
    """A type without parts, known by its name, e.g. ``PrimitiveType("decimal(10,2)")``.

    Parameters
    ----------
    type : str
        The protocol's name of the type.

    Examples
    --------
    >>> PrimitiveType("decimal(10,2)").type
    'decimal(10,2)'
    """

    type: str

    def __post_init__(self) -> None:
        if self.type in KNOWN_TYPES:
            return
        if not isinstance(self.type, str):
            raise ArgumentTypeError(f"Found the name of a type as {type(self.type).__name__}, expected text.")
        if self.type.startswith("decimal("):
            found = parse_decimal(self.type)
            if found is None or not (1 <= found[0] <= 38 and 0 <= found[1] <= found[0]):
                raise SchemaError(f"Found type {self.type!r}, expected decimal(p,s) with 1 <= p <= 38, 0 <= s <= p.")
            force_setattr(self, "type", f"decimal({found[0]},{found[1]})")
        elif not self.type or self.type in _SQL_NAMES:
            hint = f"; did you mean {_SQL_NAMES[self.type]!r}?" if self.type else ", such as 'long'."
            raise SchemaError(f"Found type {self.type!r}, expected a name of the protocol{hint}", type=self.type)

    def __str__(self) -> str:
        return f'PrimitiveType("{self.type}")'

    __repr__ = __str__

    def to_json(self) -> str:
        """Return the JSON text of the type.

        Examples
        --------
        >>> PrimitiveType("timestamp").to_json()
        '"timestamp"'
        """
        return compact_json(self.type)

    @staticmethod
    def from_json(type_json: str) -> PrimitiveType:
        """Parse the JSON text of a primitive type.

        Parameters
        ----------
        type_json : str
            The JSON text.

        Raises
        ------
        TypeKindError
            For the JSON of another kind of type.

        Examples
        --------
        >>> PrimitiveType.from_json('"timestamp"')
        PrimitiveType("timestamp")
        """
        found = parse_type(_decoded(type_json))
        if not isinstance(found, PrimitiveType):
            raise TypeKindError(f"Found {type_json}, expected the name of a primitive type.")
        return found

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> pa.DataType:
        """Return the Arrow type; ``types`` has the names that the table may use.

        Parameters
        ----------
        types : Mapping of str to TypeDef
            The primitive types that the table may use, by name.

        Raises
        ------
        SchemaError
            For a type that has no Arrow type here.

        Examples
        --------
        >>> PrimitiveType("timestamp").to_arrow()
        TimestampType(timestamp[us, tz=UTC])
        """
        decimal = parse_decimal(self.type)
        if decimal is not None:
            return pa.decimal128(*decimal)
        found = types.get(self.type)
        if found is None:
            raise SchemaError(f"Type {self.type!r} is not known here.", type=self.type)
        return found.arrow

    @staticmethod
    def from_arrow(data_type: Any) -> PrimitiveType:
        """Return the Delta type that stores an Arrow type.

        Parameters
        ----------
        data_type : pyarrow.DataType
            A type without parts.

        Raises
        ------
        ArrowTypeError
            For another kind of Arrow type.

        Examples
        --------
        >>> PrimitiveType.from_arrow(pa.int32())
        PrimitiveType("integer")
        """
        found = arrow_to_type(data_type)
        if not isinstance(found, PrimitiveType):
            raise ArrowTypeError(f"Found Arrow type {data_type}, expected one without parts.")
        return found


class _IsVariant(type):
    def __instancecheck__(cls, value: object) -> bool:
        return value == PrimitiveType("variant")


class VariantType(metaclass=_IsVariant):
    """The type ``variant`` under the name that scripts written for `deltalake` use: makes a `PrimitiveType`.

    Examples
    --------
    >>> VariantType()
    PrimitiveType("variant")
    """

    def __new__(cls) -> PrimitiveType:  # type: ignore[misc]  # makes another class, on purpose
        """Return the variant type."""
        return PrimitiveType("variant")

    @staticmethod
    def from_json(type_json: str) -> PrimitiveType:
        """Return the variant type of its JSON.

        Parameters
        ----------
        type_json : str
            ``"variant"`` in quotes.

        Raises
        ------
        SchemaError, InvalidArgumentError
            For the JSON of another type, and for what is none.

        Examples
        --------
        >>> VariantType.from_json('"variant"')
        PrimitiveType("variant")
        """
        return _variant(PrimitiveType.from_json(type_json))

    @staticmethod
    def from_arrow(data_type: Any) -> PrimitiveType:
        """Return the variant type of an Arrow type that is stored as it.

        Parameters
        ----------
        data_type : pyarrow.DataType or an object with ``__arrow_c_schema__``
            The Arrow type.

        Raises
        ------
        ArrowTypeError
            For a type that is stored as another one.

        Examples
        --------
        >>> VariantType.from_arrow(pa.int64())
        Traceback (most recent call last):
        delta_core.errors.ArrowTypeError: Found PrimitiveType("long"), expected the type variant.
        """
        return _variant(arrow_to_type(data_type))


def _check_flag(name: str, value: object) -> None:
    # the class of NumPy's truth values is named so, with the underscore before NumPy 2
    if type(value).__name__ not in ("bool", "bool_"):
        raise ArgumentTypeError(f"Found {name}={value!r}, expected True or False.")


def _variant(found: DataType) -> PrimitiveType:
    if not isinstance(found, VariantType):
        raise ArrowTypeError(f"Found {found}, expected the type variant.")
    return PrimitiveType("variant")


class CustomType(PrimitiveType, frozen=True):
    """A primitive type that a plugin defines, in the schema of a table; it equals the `PrimitiveType` of its name.

    Parameters
    ----------
    definition : TypeDef
        As the plugin returned it. In expressions a value is one of the Delta type that stores its Arrow type.
    """

    definition: TypeDef

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimitiveType) and other.type == self.type

    def __hash__(self) -> int:
        return hash(PrimitiveType(self.type))

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> pa.DataType:
        """Return the Arrow type."""
        return types.get(self.type, self.definition).arrow


class UserDefinedType(CustomType, frozen=True):
    """A type that a class of Spark defines, such as ``VectorUDT``: values are stored as those of another type.

    Its parts are no fields of the table: they have no ids, statistics or names of their own. Types are equal if their
    classes and stored types are.

    Parameters
    ----------
    type : str
        ``udt(<class>)``, for messages.
    definition : TypeDef
        The Arrow type of what files hold.
    stored : DataType
        The type of what files hold (``sqlType``).
    class_name : str
        The class on the JVM, or in Python if it has none there.
    json : str
        The JSON text of the type as the schema has it.

    Protocol
    --------
    None: Spark adds these types to the Schema Serialization Format.
    """

    stored: DataType
    class_name: str
    json: str

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserDefinedType):
            return False
        return (self.class_name, self.stored) == (other.class_name, other.stored)

    def __hash__(self) -> int:
        return hash(self.class_name)

    def to_json(self) -> str:
        """Return the JSON text of the type."""
        return self.json


class ArrayType(_ArrowExportable, Struct, frozen=True):
    """A list of elements of one type.

    Parameters
    ----------
    element_type : DataType or str
        The type of the elements, or the name of a primitive one.
    contains_null : bool
        Whether elements may be null.

    Examples
    --------
    >>> ArrayType("string", contains_null=False)
    ArrayType(PrimitiveType("string"), contains_null=False)
    """

    type: ClassVar[str] = "array"
    element_type: DataType
    contains_null: bool = True

    def __post_init__(self) -> None:
        _check_flag("contains_null", self.contains_null)
        force_setattr(self, "element_type", _as_type(self.element_type))

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"

    def to_json(self) -> str:
        """Return the JSON text of the type.

        Examples
        --------
        >>> ArrayType("long").to_json()
        '{"type":"array","elementType":"long","containsNull":true}'
        """
        return compact_json(type_to_json(self))

    @staticmethod
    def from_json(type_json: str) -> ArrayType:
        """Parse the JSON text of an array type.

        Parameters
        ----------
        type_json : str
            The JSON text.

        Raises
        ------
        TypeKindError
            For the JSON of another kind of type.

        Examples
        --------
        >>> ArrayType.from_json(ArrayType("long").to_json())
        ArrayType(PrimitiveType("long"), contains_null=True)
        """
        found = parse_type(_decoded(type_json))
        if not isinstance(found, ArrayType):
            raise TypeKindError(f"Found {type_json}, expected an array type.")
        return found

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> pa.DataType:
        """Return the Arrow list type.

        Parameters
        ----------
        types : Mapping of str to TypeDef
            The primitive types that the table may use, by name.

        Examples
        --------
        >>> ArrayType("long").to_arrow()
        ListType(list<element: int64>)
        """
        return pa.list_(pa.field("element", self.element_type.to_arrow(types), self.contains_null))

    @staticmethod
    def from_arrow(data_type: Any) -> ArrayType:
        """Return the Delta type that stores an Arrow list type.

        Parameters
        ----------
        data_type : pyarrow.DataType
            A list type.

        Raises
        ------
        ArrowTypeError
            For another kind of Arrow type.

        Examples
        --------
        >>> ArrayType.from_arrow(pa.list_(pa.int64()))
        ArrayType(PrimitiveType("long"), contains_null=True)
        """
        found = arrow_to_type(data_type)
        if not isinstance(found, ArrayType):
            raise ArrowTypeError(f"Found Arrow type {data_type}, expected a list.")
        return found


class MapType(_ArrowExportable, Struct, frozen=True):
    """A map from keys of one type to values of one type.

    Parameters
    ----------
    key_type, value_type : DataType or str
        The types of keys and values, or the names of primitive ones.
    value_contains_null : bool
        Whether values may be null.

    Examples
    --------
    >>> MapType("string", "double")
    MapType(PrimitiveType("string"), PrimitiveType("double"), value_contains_null=True)
    """

    type: ClassVar[str] = "map"
    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def __post_init__(self) -> None:
        _check_flag("value_contains_null", self.value_contains_null)
        force_setattr(self, "key_type", _as_type(self.key_type))
        force_setattr(self, "value_type", _as_type(self.value_type))

    def __repr__(self) -> str:
        return f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={self.value_contains_null})"

    def to_json(self) -> str:
        """Return the JSON text of the type.

        Examples
        --------
        >>> MapType("string", "double").to_json()
        '{"type":"map","keyType":"string","valueType":"double","valueContainsNull":true}'
        """
        return compact_json(type_to_json(self))

    @staticmethod
    def from_json(type_json: str) -> MapType:
        """Parse the JSON text of a map type.

        Parameters
        ----------
        type_json : str
            The JSON text.

        Raises
        ------
        TypeKindError
            For the JSON of another kind of type.

        Examples
        --------
        >>> MapType.from_json(MapType("string", "double").to_json())
        MapType(PrimitiveType("string"), PrimitiveType("double"), value_contains_null=True)
        """
        found = parse_type(_decoded(type_json))
        if not isinstance(found, MapType):
            raise TypeKindError(f"Found {type_json}, expected a map type.")
        return found

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> pa.DataType:
        """Return the Arrow map type.

        Parameters
        ----------
        types : Mapping of str to TypeDef
            The primitive types that the table may use, by name.

        Examples
        --------
        >>> MapType("string", "double").to_arrow()
        MapType(map<string, double>)
        """
        value = pa.field("value", self.value_type.to_arrow(types), self.value_contains_null)
        return pa.map_(pa.field("key", self.key_type.to_arrow(types), False), value)

    @staticmethod
    def from_arrow(data_type: Any) -> MapType:
        """Return the Delta type that stores an Arrow map type.

        Parameters
        ----------
        data_type : pyarrow.DataType
            A map type.

        Raises
        ------
        ArrowTypeError
            For another kind of Arrow type.

        Examples
        --------
        >>> MapType.from_arrow(pa.map_(pa.string(), pa.float64()))
        MapType(PrimitiveType("string"), PrimitiveType("double"), value_contains_null=True)
        """
        found = arrow_to_type(data_type)
        if not isinstance(found, MapType):
            raise ArrowTypeError(f"Found Arrow type {data_type}, expected a map.")
        return found


class Field(_ArrowExportable, Struct, frozen=True):
    """A named column or part of a struct, with its metadata.

    Parameters
    ----------
    name : str
        The name.
    type : DataType or str
        The type, or the name of a primitive one.
    nullable : bool
        Whether values may be null.
    metadata : Mapping of str to object, optional
        The metadata of the field, as JSON values.

    Examples
    --------
    >>> Field("amount", "decimal(10,2)", nullable=False)
    Field(amount, PrimitiveType("decimal(10,2)"), nullable=False)
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = None  # type: ignore[assignment]  # the peer's default; never None once made

    if TYPE_CHECKING:

        def __init__(
            self, name: str, type: DataType | str, nullable: bool = True, metadata: Mapping[str, Any] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.name) is not str and not isinstance(self.name, str):
            raise ArgumentTypeError(f"Found the name of a column as {type(self.name).__name__}, expected text.")
        _check_flag("nullable", self.nullable)
        force_setattr(self, "type", _as_type(self.type))
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise ArgumentTypeError(
                f"Found the metadata of a column as {type(self.metadata).__name__}, expected a mapping."
            )
        force_setattr(self, "metadata", dict(self.metadata or {}))

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.nullable))

    def __repr__(self) -> str:
        metadata = f", metadata={dict(self.metadata)}" if self.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{metadata})"

    def to_json(self) -> str:
        """Return the JSON text of the field.

        Examples
        --------
        >>> Field("id", "long").to_json()
        '{"name":"id","type":"long","nullable":true,"metadata":{}}'
        """
        return compact_json(_field_to_json(self))

    @staticmethod
    def from_json(field_json: str) -> Field:
        """Parse the JSON text of a field.

        Parameters
        ----------
        field_json : str
            The JSON text.

        Examples
        --------
        >>> Field.from_json(Field("id", "long").to_json())
        Field(id, PrimitiveType("long"), nullable=True)
        """
        return _parse_field(_decoded(field_json))

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> pa.Field:
        """Return the Arrow field; metadata values become JSON text unless they are strings.

        Parameters
        ----------
        types : Mapping of str to TypeDef
            The primitive types that the table may use, by name.

        Examples
        --------
        >>> Field("id", "long", nullable=False).to_arrow()
        pyarrow.Field<id: int64 not null>
        """
        meta = {k: v if isinstance(v, str) else compact_json(v) for k, v in self.metadata.items()}
        return pa.field(self.name, self.type.to_arrow(types), self.nullable, meta or None)

    @staticmethod
    def from_arrow(field: Any) -> Field:
        """Return the Delta field that stores an Arrow field (anything with ``__arrow_c_schema__``).

        Parameters
        ----------
        field : pyarrow.Field, or any object with ``__arrow_c_schema__``
            The Arrow field.

        Raises
        ------
        SchemaError
            For anything else, and for a type that no Delta type stores.

        Examples
        --------
        >>> Field.from_arrow(pa.field("id", pa.int64()))
        Field(id, PrimitiveType("long"), nullable=True)
        """
        try:
            f = field if isinstance(field, pa.Field) else pa.field(field)
        except (TypeError, ValueError) as e:
            raise SchemaError(
                f"Found a field as {type(field).__name__}, expected one of pyarrow, or anything with "
                f"__arrow_c_schema__ ({e})."
            ) from e
        if f.type.num_fields:
            check_arrow_nesting(f.type)
        return _arrow_to_field(f)


class StructType(_ArrowExportable):
    """Named fields in order.

    Examples
    --------
    >>> StructType([Field("street", "string"), Field("number", "integer")]).index("number")
    1
    """

    __slots__ = ("_by_name", "arrow", "checked", "members")
    #: The fields, in order.
    members: tuple[Field, ...]
    #: The types for which `check_types` last passed.
    checked: Mapping[str, TypeDef] | None
    #: The last result of `arrow_schema`, after the types that it was made with.
    arrow: tuple[Mapping[str, TypeDef], pa.Schema] | None
    type = "struct"

    def __init__(self, fields: Any) -> None:
        if isinstance(fields, (str, bytes)):
            raise ArgumentTypeError(f"Found the fields {fields!r}, expected a list of Field.")
        self.members = tuple(map(_as_field, fields))
        self.arrow = self.checked = None
        self._by_name: tuple[dict[str, int], dict[str, int]] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructType) and self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.members)!r})"

    def __iter__(self) -> Iterator[Field]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.members,)

    @property
    def fields(self) -> list[Field]:
        """The fields, in order; a list of its own, so that a change of it is none of the type.

        Examples
        --------
        >>> [field.name for field in table.schema().fields]
        ['id', 'city', 'amount']
        """
        return list(self.members)

    @property
    def names(self) -> list[str]:
        """The fields' names, in order.

        Examples
        --------
        >>> table.schema().names
        ['id', 'city', 'amount']
        """
        return [f.name for f in self.members]

    def get(self, name: str) -> Field | None:
        """Return the field of this name: the exact one, else the one that is equal ignoring case.

        Parameters
        ----------
        name : str
            The name, in any case.

        Examples
        --------
        >>> table.schema().get("CITY")
        Field(city, PrimitiveType("string"), nullable=True)
        """
        index = self.index(name)
        return None if index is None else self.members[index]

    def index(self, name: str) -> int | None:
        """Return the place of the field that `get` returns.

        Parameters
        ----------
        name : str
            The name, in any case.

        Examples
        --------
        >>> table.schema().index("amount")
        2
        """
        if self._by_name is None:
            places = range(len(self.members) - 1, -1, -1)
            names = self.names
            self._by_name = {names[i]: i for i in places}, {names[i].lower(): i for i in places}
        exact, lower = self._by_name
        found = exact.get(name)
        return lower.get(name.lower()) if found is None else found

    def to_json(self) -> str:
        """Return the JSON text, as in ``schemaString``.

        Examples
        --------
        >>> StructType([Field("id", "long")]).to_json()
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
        """
        return compact_json(type_to_json(self))

    @staticmethod
    def from_json(type_json: str) -> StructType:
        """Parse the JSON text of a struct type.

        Parameters
        ----------
        type_json : str
            The JSON text.

        Raises
        ------
        TypeKindError
            For the JSON of another kind of type.

        Examples
        --------
        >>> StructType.from_json(StructType([Field("id", "long")]).to_json()).names
        ['id']
        """
        found = parse_type(_decoded(type_json))
        if not isinstance(found, StructType):
            raise TypeKindError(f"Found {type_json[:200]}, expected a struct type.")
        return found

    def to_arrow(self, types: Mapping[str, TypeDef] = KNOWN_TYPES) -> Any:
        """Return the Arrow struct type.

        Parameters
        ----------
        types : Mapping of str to TypeDef
            The primitive types that the table may use, by name.

        Examples
        --------
        >>> StructType([Field("id", "long")]).to_arrow()
        StructType(struct<id: int64>)
        """
        return pa.struct([f.to_arrow(types) for f in self.members])

    @staticmethod
    def from_arrow(data_type: Any) -> StructType:
        """Return the Delta type that stores an Arrow struct type.

        Parameters
        ----------
        data_type : pyarrow.DataType
            A struct type.

        Raises
        ------
        ArrowTypeError
            For another kind of Arrow type.

        Examples
        --------
        >>> StructType.from_arrow(pa.struct([pa.field("id", pa.int64())])).names
        ['id']
        """
        found = arrow_to_type(data_type)
        if not isinstance(found, StructType):
            raise ArrowTypeError(f"Found Arrow type {data_type}, expected a struct.")
        return found


DataType = Union[PrimitiveType, ArrayType, MapType, StructType]


def _as_type(value: Any) -> DataType:
    if isinstance(value, str):
        return PrimitiveType(value)
    own = parse_type(_decoded(value.to_json())) if is_of_deltalake(value) else value
    if not isinstance(own, (PrimitiveType, ArrayType, MapType, StructType)):
        raise InvalidArgumentError(f"Found a type as {type(value).__name__}, expected a type of a column or its name.")
    return own


def _as_field(value: Any) -> Field:
    if isinstance(value, Field):
        return value
    if is_of_deltalake(value, "Field"):
        return _parse_field(_decoded(value.to_json()))
    raise ArgumentTypeError(f"Found a field as {type(value).__name__}, expected a Field.")


def _decoded(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as e:
        raise InvalidArgumentError(f"Found {str(text)[:200]!r}, expected a type's JSON: {e}") from e
    except RecursionError:
        raise _too_nested() from None
    check_nesting(value, _json_parts)
    return value


#: Levels of a Parquet schema that Arrow reads: a struct is one of them, a list or map two.
MOST_PARQUET_LEVELS = 98
#: The deepest nesting that Arrow reads in files that it writes, which hold Arrow's own schema too: 62 structs, 46 lists
#: or 31 maps.
_MOST_WRITTEN = 186


def check_nesting(
    whole: Any, parts: Callable[[Any], tuple[int, Iterable[Any]]] | None = None, most: int = MOST_PARQUET_LEVELS + 1
) -> None:
    """Reject a type that is nested deeper than Arrow reads Parquet.

    Parameters
    ----------
    whole : DataType
        The type, or an object that ``parts`` can take apart.
    parts : function(type) -> (int, types), optional
        The levels that a type takes, and the types right below it; by default those of a `DataType`.
    most : int
        The levels of all; by default those of a schema, which is a struct itself.

    Raises
    ------
    SchemaError
        If it exceeds a limit, which the message names.
    """
    below = parts or _type_parts
    left = [(whole, 0)]
    while left:
        t, level = left.pop()
        levels, inner = below(t)
        if level + levels > most:
            raise _too_nested()
        if inner:
            left += [(part, level + levels) for part in inner]


def _too_nested() -> SchemaError:
    return SchemaError(
        f"A type is nested deeper than Arrow reads Parquet files: {MOST_PARQUET_LEVELS} levels, and a list or map "
        "takes two; of files that are written here, 62 structs, 46 lists or 31 maps within each other. Flatten it.",
        limit=MOST_PARQUET_LEVELS,
    )


def _json_parts(value: Any) -> tuple[int, Iterable[Any]]:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "struct":
        fields = value.get("fields")
        return 1, [f.get("type") for f in fields if isinstance(f, dict)] if isinstance(fields, list) else ()
    if kind in ("array", "map"):
        return 2, [value.get(name) for name in ("elementType", "keyType", "valueType")]
    if kind == "udt":
        return 0, [value.get("sqlType")]
    return 0, [kind] if isinstance(kind, dict) else ()


def _type_parts(t: DataType) -> tuple[int, Iterable[Any]]:
    if isinstance(t, StructType):
        return 1, [f.type for f in t.members]
    if isinstance(t, ArrayType):
        return 2, (t.element_type,)
    if isinstance(t, UserDefinedType):
        return 0, (t.stored,)
    return (2, (t.key_type, t.value_type)) if isinstance(t, MapType) else (0, ())


def _arrow_parts(t: Any) -> tuple[int, Iterable[Any]]:
    inner = [t.field(i).type for i in range(t.num_fields)] if pa.types.is_nested(t) else ()
    # below a map is the struct of its entries
    return (3 if pa.types.is_struct(t) or pa.types.is_map(t) else 4 if inner else 0), inner


def check_arrow_nesting(t: pa.DataType) -> None:
    """Reject an Arrow type that is nested deeper than Arrow reads files that are written with it."""
    check_nesting(t, _arrow_parts, _MOST_WRITTEN)


def parse_type(value: Any) -> DataType:
    """Build a type from its decoded JSON; raises SchemaError if the shape is not Delta's.

    Protocol: Schema Serialization Format.

    Raises
    ------
    SchemaError
        For JSON that is not a type.
    UnsupportedFeatureError
        For a type that is not known, or a user-defined one that is stored as a type which the table's features would
        have to provide.
    """
    if isinstance(value, str):
        return PrimitiveType("void" if value == "null" else value)
    if not isinstance(value, dict) or "type" not in value:
        raise SchemaError(f"Found {str(value)[:200]}, expected a type's name or an object with 'type'.")
    kind = value["type"]
    try:
        if kind == "struct":
            return StructType(_parse_field(f) for f in value["fields"])
        if kind == "array":
            return ArrayType(parse_type(value["elementType"]), bool(value.get("containsNull", True)))
        if kind == "map":
            nulls = bool(value.get("valueContainsNull", True))
            return MapType(parse_type(value["keyType"]), parse_type(value["valueType"]), nulls)
        if kind == "udt":
            return _parse_user_defined(value)
    except (KeyError, TypeError) as e:
        raise SchemaError(f"A {kind} type lacks {e}: found {str(value)[:200]}.") from e
    if isinstance(kind, str):
        raise UnsupportedFeatureError(
            f"The schema has the type {kind[:100]!r}, which this release can't read; expected struct, array, map, udt "
            "or a primitive's name. Read the table with the engine that wrote it, or upgrade "
            "delta-core-lake.",
            feature=kind[:100],
        )
    raise SchemaError(f"Found {str(kind)[:100]!r} as a type, expected struct, array, map or a primitive's name.")


#: The primitive types whose values need nothing but a Parquet column: no feature describes how files hold them.
_PLAIN = frozenset(BASE_TYPES.keys() - {"void", "null"} | {TIMESTAMP_NTZ.name})


_UDT_KEYS = ("type", "class", "pyClass", "serializedClass", "sqlType")


def _parse_user_defined(value: Mapping[str, Any]) -> UserDefinedType:
    classes = value.get("class"), value.get("pyClass")
    if any(not isinstance(c, str | None) for c in classes) or not any(classes):
        raise SchemaError(f"Found {str(value)[:200]}, expected a user-defined type with 'class' or 'pyClass'.")
    class_name = str(classes[0] or classes[1])
    name = f"udt({class_name[:200]})"
    stored = parse_type(value["sqlType"])
    left: list[DataType] = [stored]
    while left:
        t = left.pop()
        left += _type_parts(t)[1]
        is_plain = not isinstance(t, PrimitiveType) or isinstance(t, UserDefinedType)
        if not is_plain and t.type not in _PLAIN and parse_decimal(t.type) is None:
            raise UnsupportedFeatureError(
                f"The schema has the user-defined type {name}, which is stored as the type {t.type!r}; expected types "
                "that need no table feature, such as string or double. Read the table with the engine that wrote it.",
                feature="udt",
                type=t.type,
            )
    # in the order of Spark's own JSON: PySpark sorts the keys
    text = compact_json({**{k: value[k] for k in _UDT_KEYS if k in value}, **value, "sqlType": type_to_json(stored)})
    return UserDefinedType(name, TypeDef(name, stored.to_arrow(), name, ordered=False), stored, class_name, text)


def _parse_field(value: Any) -> Field:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "type" not in value:
        raise SchemaError(f"Found {str(value)[:200]}, expected a field with 'name' and 'type'.")
    try:
        return Field(value["name"], parse_type(value["type"]), bool(value.get("nullable", True)), value.get("metadata"))
    except SchemaError as e:
        raise _of_column(value["name"], e) from None


def _field_to_json(f: Field) -> dict[str, Any]:
    return {"name": f.name, "type": type_to_json(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}


def type_to_json(t: DataType) -> Any:
    """Return the JSON value of a type, the inverse of `parse_type`."""
    if isinstance(t, UserDefinedType):
        return json.loads(t.json)
    if isinstance(t, PrimitiveType):
        return t.type
    if isinstance(t, StructType):
        return {"type": "struct", "fields": [_field_to_json(f) for f in t.members]}
    if isinstance(t, ArrayType):
        return {"type": "array", "elementType": type_to_json(t.element_type), "containsNull": t.contains_null}
    return {
        "type": "map",
        "keyType": type_to_json(t.key_type),
        "valueType": type_to_json(t.value_type),
        "valueContainsNull": t.value_contains_null,
    }


_FROM_ARROW: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_int8, "byte"), (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"), (pa.types.is_int64, "long"), (pa.types.is_uint8, "short"),
    (pa.types.is_uint16, "integer"), (pa.types.is_uint32, "long"), (pa.types.is_uint64, "decimal(20,0)"),
    (pa.types.is_float16, "float"), (pa.types.is_float32, "float"), (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"), (pa.types.is_large_string, "string"), (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"), (pa.types.is_large_binary, "binary"), (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"), (pa.types.is_date, "date"), (pa.types.is_null, "void"),
)  # fmt: skip


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def arrow_to_type(data_type: Any) -> DataType:
    """Return the Delta type that stores an Arrow type.

    Parameters
    ----------
    data_type : pyarrow.DataType
        The Arrow type.

    Raises
    ------
    SchemaError
        No Delta type stores it, or the value is no Arrow type.
    """
    try:
        t = data_type if isinstance(data_type, pa.DataType) else pa.field(data_type).type
    except (TypeError, ValueError) as e:
        raise SchemaError(
            f"Found an Arrow type as {type(data_type).__name__}, expected one of pyarrow, or anything with "
            f"__arrow_c_schema__ ({e})."
        ) from e
    check_arrow_nesting(t)
    return _from_arrow(t)


def _from_arrow(t: pa.DataType) -> DataType:
    for test, name in _FROM_ARROW:
        if test(t):
            return PrimitiveType(name)
    if pa.types.is_timestamp(t):
        return PrimitiveType("timestamp" if t.tz else "timestamp_ntz")
    if pa.types.is_decimal(t):
        if t.precision > 38 or not 0 <= t.scale <= t.precision:
            raise SchemaError(
                f"Arrow type {t} has no Delta type, which is decimal(p,s) with 1 <= p <= 38, 0 <= s <= p. Cast it to "
                "one."
            )
        return PrimitiveType(f"decimal({t.precision},{t.scale})")
    if isinstance(t, (pa.DictionaryType, pa.BaseExtensionType)):
        return _from_arrow(t.value_type if isinstance(t, pa.DictionaryType) else _storage_type(t))
    if pa.types.is_struct(t):
        return StructType(_arrow_to_field(t.field(i)) for i in range(t.num_fields))
    if pa.types.is_map(t):
        return MapType(_from_arrow(t.key_type), _from_arrow(t.item_type), t.item_field.nullable)
    if any(test(t) for test in _LISTS):
        return ArrayType(_from_arrow(t.value_type), t.value_field.nullable)
    raise SchemaError(f"Arrow type {t} has no Delta type. Cast it to one that has.")


#: Extension types that users take for their storage type too.
_PLAIN_EXTENSIONS = ("arrow.json", "arrow.bool8", "arrow.uuid", "arrow.opaque")


def is_plain_extension(t: pa.BaseExtensionType) -> bool:
    """Return whether values of an extension type can be taken for values of its storage type."""
    return t.extension_name in _PLAIN_EXTENSIONS or _parameters(t) is not None


def _storage_type(t: pa.BaseExtensionType) -> pa.DataType:
    """Return the storage type of an extension type; SchemaError if a table can't hold what the type means."""
    if is_plain_extension(t):
        return t.storage_type
    raise SchemaError(f"Arrow type {t} has no Delta type. Cast it to one that has, such as its storage type.")


def _parameters(t: pa.DataType) -> str | None:
    """Return the parameters by which readers restore an extension type from its storage; None for any other type."""
    if not isinstance(t, pa.BaseExtensionType) or t.storage_type != _from_arrow(t.storage_type).to_arrow():
        # 16 bytes of a UUID become BINARY, which PyArrow fails to read as a UUID
        return None
    if isinstance(t, pa.OpaqueType):
        return json.dumps({"type_name": t.type_name, "vendor_name": t.vendor_name}, separators=(",", ":"))
    if t.extension_name in ("arrow.json", "arrow.bool8"):
        return ""
    try:
        return str(t.__arrow_ext_serialize__().decode()) if isinstance(t, pa.ExtensionType) else None
    except UnicodeDecodeError:  # a schema holds texts
        return None


def _arrow_to_field(f: pa.Field) -> Field:
    meta = {k.decode(): v.decode() for k, v in (f.metadata or {}).items() if k != b"PARQUET:field_id"}
    try:
        parameters = _parameters(f.type)
        if parameters is not None:
            meta |= {"ARROW:extension:name": f.type.extension_name, "ARROW:extension:metadata": parameters}
        return Field(f.name, _from_arrow(f.type), f.nullable, meta)
    except SchemaError as e:
        raise _of_column(f.name, e) from None


def _of_column(name: str, error: SchemaError) -> SchemaError:
    """Return an error of a type with the column that has it, or that has the column which it names."""
    column = f"{name}.{error.facts['column']}" if "column" in error.facts else name
    why = str(error).removeprefix(f"Column {error.facts.get('column')}: ")
    return SchemaError(f"Column {column}: {why}", **{**error.facts, "column": column})


#: SQL's name of each type that the protocol calls otherwise.
_DDL = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT", "timestamp_ntz": "TIMESTAMP_NTZ"}


def spark_name(t: DataType) -> str:
    """Return the type as Spark's DDL spells it.

    Parameters
    ----------
    t : DataType
        The type.
    """
    if isinstance(t, ArrayType):
        return f"ARRAY<{spark_name(t.element_type)}>"
    if isinstance(t, MapType):
        return f"MAP<{spark_name(t.key_type)}, {spark_name(t.value_type)}>"
    if isinstance(t, StructType):
        return "STRUCT<" + ", ".join(f"`{f.name}`: {spark_name(f.type)}" for f in t.members) + ">"
    return t.type if isinstance(t, CustomType) and type(t) is not CustomType else _DDL.get(t.type, t.type.upper())
