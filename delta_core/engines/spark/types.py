"""Delta's types as Spark's, and the schema under which Spark's Parquet reader finds the physical columns.

Field metadata never reaches Spark's reader, but for field ids: a default that is there would fill columns which
older files lack, if Delta means null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, functions as F, types as T

from delta_core.errors import SchemaError, UnsupportedFeatureError
from delta_core.expressions.coercion import canonical
from delta_core.schema.fields import FIELD_ID, format_path, walk, without_void
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
    parse_decimal,
    type_to_json,
)

__all__ = [
    "as_declared", "declared_schema", "narrowed", "raw_schema", "renamed", "reshape", "row_width", "shown_schema",
    "spark_schema", "spark_type",
]  # fmt: skip

_PRIMITIVES: Mapping[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "byte": T.ByteType(),
    "short": T.ShortType(),
    "integer": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "void": T.NullType(),
    "timestamp_ntz": T.TimestampNTZType(),
    "variant": T.VariantType(),
}
#: Spark's default sizes of values.
_WIDTHS: Mapping[str, int] = {
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "long": 8,
    "float": 4,
    "double": 8,
    "string": 20,
    "binary": 100,
    "date": 4,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "void": 1,
    "variant": 2048,
}
#: Digits of decimals that a long holds.
_LONG_DIGITS = 18
#: Physical names that no file assigns to any other column: writers make them of a UUID.
_UNIQUE = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The name that a field found by id has instead of one that is not unique; no file has such a column.
_BY_ID = "__delta_id_"
_VOID = PrimitiveType("void")
#: The column that Spark's reader requests in the place of a column that no file contains.
_NOWHERE, _NOTHING = "__delta_void_", PrimitiveType("boolean")


class StoredUserDefinedType(T.UserDefinedType):  # type: ignore[misc]  # pyspark has no types
    """A user-defined type as a schema has it: Spark's driver loads the class, and Python if values are made.

    Parameters
    ----------
    t : UserDefinedType
        The type.
    """

    def __init__(self, t: UserDefinedType) -> None:
        self._type = t

    def sqlType(self) -> T.DataType:  # noqa: N802 (PySpark's name)
        """Return the type that files hold."""
        return spark_type(self._type.stored, KNOWN_TYPES)

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802 (PySpark's name)
        """Return the type as the schema has it."""
        return dict(type_to_json(self._type))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredUserDefinedType) and self._type == other._type

    def __hash__(self) -> int:
        return hash(self._type)


def spark_type(t: DataType, types: Mapping[str, TypeDef]) -> T.DataType:
    """Return Spark's type; UnsupportedFeatureError names one that Spark does not have.

    Raises
    ------
    UnsupportedFeatureError
        For a type that Spark lacks.
    """
    if isinstance(t, StructType):
        return spark_schema(t, types)
    if isinstance(t, ArrayType):
        return T.ArrayType(spark_type(t.element_type, types), t.contains_null)
    if isinstance(t, MapType):
        return T.MapType(spark_type(t.key_type, types), spark_type(t.value_type, types), t.value_contains_null)
    if isinstance(t, UserDefinedType):
        return StoredUserDefinedType(t)
    decimal = parse_decimal(t.type)
    if decimal is not None:
        return T.DecimalType(*decimal)
    definition = types.get(t.type)
    found = _PRIMITIVES.get(t.type if definition is None else definition.name)
    if found is None and definition is not None and definition.decode is None:
        stored = canonical(CustomType(t.type, definition))
        if not isinstance(stored, CustomType):
            return spark_type(stored, types)
    if found is None:
        raise UnsupportedFeatureError(
            f"Type {t.type!r} can't be read on Spark, which has no such type. Read the table with engine 'arrow'.",
            type=t.type,
        )
    return found


def spark_schema(struct: StructType, types: Mapping[str, TypeDef]) -> T.StructType:
    """Return a struct as Spark's, every field nullable at the top as Spark reads files; field ids are kept."""
    return T.StructType(
        [
            T.StructField(
                f.name, spark_type(f.type, types), True, {k: v for k, v in f.metadata.items() if k == FIELD_ID}
            )
            for f in struct.members
        ]
    )


def declared_schema(struct: StructType, types: Mapping[str, TypeDef]) -> T.StructType:
    """Return a struct as Spark's, with NOT NULL, comments, defaults and other metadata that features do not own."""
    return _declared(spark_schema(struct, types), struct)


def as_declared(rows: T.StructType, declared: T.StructType) -> T.StructType:
    """Return the schema of rows with what the columns of their table have beside types."""
    fields = {f.name: f for f in declared.fields}

    def found(f: T.StructField) -> T.StructField:
        own = fields.get(f.name)
        if own is None or not _is_same(f.dataType, own.dataType):
            return f
        return T.StructField(f.name, own.dataType, own.nullable, own.metadata | f.metadata)

    return T.StructType([found(f) for f in rows.fields])


def _is_same(a: T.DataType, b: T.DataType) -> bool:
    """Whether types are the same but for what they may have as null."""
    return bool(a.simpleString() == b.simpleString())


def _declared(plain: T.StructType, struct: StructType) -> T.StructType:
    fields = zip(plain.fields, struct.members, strict=True)
    return T.StructType(
        [T.StructField(p.name, _declared_type(p.dataType, f.type), f.nullable, _shown_metadata(f)) for p, f in fields]
    )


def _declared_type(plain: T.DataType, t: DataType) -> T.DataType:
    if isinstance(plain, T.StructType) and isinstance(t, StructType):
        return _declared(plain, t)
    if isinstance(plain, T.ArrayType) and isinstance(t, ArrayType):
        return T.ArrayType(_declared_type(plain.elementType, t.element_type), t.contains_null)
    if isinstance(plain, T.MapType) and isinstance(t, MapType):
        key, value = _declared_type(plain.keyType, t.key_type), _declared_type(plain.valueType, t.value_type)
        return T.MapType(key, value, t.value_contains_null)
    return plain


def _shown_metadata(f: Field) -> dict[str, Any]:
    return {k: v for k, v in f.metadata.items() if not k.startswith(("delta.", "EXISTS_DEFAULT"))}


def raw_schema(columns: StructType, match: Literal["name", "id"]) -> StructType:
    """Return the physical columns as Spark's reader is to request them, parallel to ``columns``.

    By id, Spark would still push a filter down by name, to whatever column has that name in an old file. So a field
    with an id has a name that no other column of any file has. Fields of type void are left out of structs, since files
    do not contain them: `reshape` adds them.

    Raises
    ------
    SchemaError
        For a field of type void within a struct whose other fields can be found by their ids alone.
    """
    found = StructType(_stored_field(_raw_field(f, match), i) for i, f in enumerate(columns.members))
    for f, raw in zip(columns.members, found.members, strict=True):
        void = next((p for p, below in walk(f.type, (f.name,)) if below.type == _VOID), None)
        if void is not None and _is_found_by_id(raw.type):
            raise SchemaError(
                f"Column {format_path(void)} has type void beside fields that Spark finds by their ids alone. Read the "
                "table with engine 'arrow'."
            )
    return found


def shown_schema(raw: StructType, logical: StructType) -> StructType:
    """Return `raw_schema` under the table's names for the fields within columns."""
    stored = [without_void(f.type) or _NOTHING for f in logical.members]
    return StructType(Field(a.name, t, True, a.metadata) for a, t in zip(raw.members, stored, strict=True))


def _stored_field(raw: Field, number: int) -> Field:
    t = without_void(raw.type)
    return Field(f"{_NOWHERE}{number}", _NOTHING) if t is None else Field(raw.name, t, True, raw.metadata)


def row_width(schema: StructType) -> int:
    """Return the bytes that Spark counts for a row in its estimates of sizes."""
    return 8 + _width(schema)


def _width(t: DataType) -> int:
    if isinstance(t, StructType):
        return sum(_width(f.type) for f in t.members)
    if isinstance(t, ArrayType):
        return _width(t.element_type)
    if isinstance(t, MapType):
        return _width(t.key_type) + _width(t.value_type)
    if isinstance(t, UserDefinedType):
        return _width(t.stored)
    decimal = parse_decimal(t.type)
    if decimal is not None:
        return 8 if decimal[0] <= _LONG_DIGITS else 16
    return _WIDTHS.get(t.type, _WIDTHS["string"])


def _raw_field(f: Field, match: str) -> Field:
    number = f.metadata.get(FIELD_ID) if match == "id" else None
    metadata = {} if number is None else {FIELD_ID: int(number)}
    name = f.name if number is None or _UNIQUE.fullmatch(f.name) else f"{_BY_ID}{number}"
    return Field(name, _raw_type(f.type, match), True, metadata)


def _raw_type(t: DataType, match: str) -> DataType:
    if isinstance(t, StructType):
        return StructType(_raw_field(f, match) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(_raw_type(t.element_type, match), True)
    if isinstance(t, MapType):
        return MapType(_raw_type(t.key_type, match), _raw_type(t.value_type, match), True)
    return t


# --- names within nested columns -----------------------------------------------------------

Pairs = Callable[[StructType, Any], Iterable[tuple[Field, str, Any]]]


def renamed(t: DataType, arrow: pa.DataType) -> DataType:
    """Return a type under the names of an Arrow type that is parallel to it."""
    return _follow(t, arrow, lambda s, a: ((f, a.field(i).name, a.field(i).type) for i, f in enumerate(s.members)))


def narrowed(t: DataType, arrow: pa.DataType) -> DataType:
    """Return the fields of a type that an Arrow type has too, in the Arrow type's order."""
    return _follow(t, arrow, _by_name)


def _by_name(s: StructType, a: Any) -> Iterable[tuple[Field, str, Any]]:
    by_name = {f.name: f for f in s.members}
    return ((by_name[f.name], f.name, f.type) for f in a)


def _follow(t: DataType, arrow: Any, pairs: Pairs) -> DataType:
    if isinstance(t, StructType):
        return StructType(Field(name, _follow(f.type, a, pairs)) for f, name, a in pairs(t, arrow))
    if isinstance(t, ArrayType):
        return ArrayType(_follow(t.element_type, arrow.value_type, pairs))
    if isinstance(t, MapType):
        return MapType(_follow(t.key_type, arrow.key_type, pairs), _follow(t.value_type, arrow.item_type, pairs))
    return t


def reshape(column: Column, have: DataType, want: DataType, types: Mapping[str, TypeDef]) -> Column:
    """Return a nested column under other names, with fewer fields, or with void ones; a null struct stays null.

    Structs are taken apart field by field, so that Spark reads only the fields that are used. As many fields: they are
    parallel; fewer: they are found by name; more: they are parallel but for those of type void, which ``have`` lacks.
    """
    if _without_metadata(have) == _without_metadata(want):
        return column
    if isinstance(have, PrimitiveType) and without_void(want) is None:
        return F.lit(None).cast(spark_type(want, types))
    if isinstance(have, StructType) and isinstance(want, StructType) and not _is_found_by_id(have):
        fields = [_field(column, h, w, types).alias(w.name) for h, w in _partners(have, want)]
        return F.when(column.isNotNull(), F.struct(*fields))
    if _same_width(have, want):
        return column.cast(spark_type(want, types))
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        old, new = have.element_type, want.element_type
        return F.transform(column, lambda e: reshape(e, old, new, types))
    assert isinstance(have, MapType)
    assert isinstance(want, MapType)
    keys, before, after = (have.key_type, want.key_type), have.value_type, want.value_type
    if not _same_width(*keys):
        column = F.transform_keys(column, lambda k, _: reshape(k, *keys, types))
    return F.transform_values(column, lambda _, v: reshape(v, before, after, types))


def _is_found_by_id(t: DataType) -> bool:
    """Whether fields below can be found by id alone: if Spark reads some fields of a struct, it forgets their ids."""
    return any(f.name.startswith(_BY_ID) for _, f in walk(t))


def _field(column: Column, have: Field | None, want: Field, types: Mapping[str, TypeDef]) -> Column:
    if have is None:
        return F.lit(None).cast(spark_type(want.type, types))
    return reshape(column.getField(have.name), have.type, want.type, types)


def _partners(have: StructType, want: StructType) -> Iterable[tuple[Field | None, Field]]:
    if len(have) == len(want):
        return zip(have.members, want.members, strict=True)
    if len(have) < len(want):
        stored = iter(have.members)
        return [(None if without_void(w.type) is None else next(stored), w) for w in want.members]
    by_name = {f.name: f for f in have.members}
    return [(by_name[w.name], w) for w in want.members]


def _same_width(a: DataType, b: DataType) -> bool:
    if isinstance(a, StructType) and isinstance(b, StructType):
        return len(a) == len(b) and all(_same_width(x.type, y.type) for x, y in zip(a.members, b.members, strict=True))
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return _same_width(a.element_type, b.element_type)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return _same_width(a.key_type, b.key_type) and _same_width(a.value_type, b.value_type)
    return True


def _without_metadata(t: DataType) -> DataType:
    """Return a type without nullability and metadata."""
    if isinstance(t, StructType):
        return StructType(Field(f.name, _without_metadata(f.type)) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(_without_metadata(t.element_type))
    return MapType(_without_metadata(t.key_type), _without_metadata(t.value_type)) if isinstance(t, MapType) else t
