"""Columns as users pass them, provided to a table's types without losing a value: `write.convert` for Spark.

Which types may be turned into others is decided there, from the types alone; here a value that does not fit fails its
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, functions as F

from delta_core.engines.spark.types import spark_type
from delta_core.errors import SchemaMismatchError
from delta_core.expressions.coercion import common_type
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeDef,
    UserDefinedType,
    parse_decimal,
    spark_name,
)

__all__ = ["BAD_VALUE", "as_nullable", "check_kinds", "converted", "with_null_fields", "without_nullability"]

#: The beginning of the message of a value that does not fit.
BAD_VALUE = "delta_core value: "
_VOID = PrimitiveType("void")
#: The start of counting, as an instant and as a wall clock.
_EPOCH, _NTZ_EPOCH = "TIMESTAMP '1970-01-01 00:00:00Z'", "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def as_nullable(t: DataType) -> DataType:
    """Return a type with every part nullable and no metadata but what physical fields carry."""
    if isinstance(t, StructType):
        return StructType(Field(f.name, as_nullable(f.type), True, f.metadata) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(as_nullable(t.element_type))
    return MapType(as_nullable(t.key_type), as_nullable(t.value_type)) if isinstance(t, MapType) else t


def without_nullability(t: DataType) -> DataType:
    """Return a type with names and types only, without nullability and metadata."""
    if isinstance(t, StructType):
        return StructType(Field(f.name, without_nullability(f.type)) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(without_nullability(t.element_type))
    return MapType(without_nullability(t.key_type), without_nullability(t.value_type)) if isinstance(t, MapType) else t


def check_kinds(have: DataType, want: DataType, path: Path) -> None:
    """Reject a column that Arrow could convert, though a table does not hold the values of the rows' type.

    Raises
    ------
    SchemaMismatchError
        The table has a void where the rows have another type, though all its values may be null; or one of the two
        has a user-defined type that the other lacks.

    Protocol
    --------
    Void Type
    """
    if want == _VOID or isinstance(want, UserDefinedType) or isinstance(have, UserDefinedType):
        _check_kind(have, want, path)
    elif isinstance(have, StructType) and isinstance(want, StructType):
        given = {f.name.lower(): f.type for f in have.members}
        for f in want.members:
            check_kinds(given.get(f.name.lower(), _VOID), f.type, (*path, f.name))
    elif isinstance(have, ArrayType) and isinstance(want, ArrayType):
        check_kinds(have.element_type, want.element_type, (*path, "element"))
    elif isinstance(have, MapType) and isinstance(want, MapType):
        check_kinds(have.key_type, want.key_type, (*path, "key"))
        check_kinds(have.value_type, want.value_type, (*path, "value"))


def _check_kind(have: DataType, want: DataType, path: Path) -> None:
    if have in (want, _VOID):
        return
    if want == _VOID:
        raise SchemaMismatchError(
            f"Column {format_path(path)} is of type void in the table, which holds no values, and of type "
            f"{have.type} in the rows. Leave it out, pass a void, or write with schema_mode='merge' (the option "
            "mergeSchema), which sets the type of the rows in the table.",
            column=format_path(path),
            found=have.type,
            expected="void",
        )
    raise SchemaMismatchError(
        f"Column {format_path(path)} is of type {spark_name(want)} in the table, and of type {spark_name(have)} in the "
        "rows. Spark converts no values to or from a user-defined type: pass a column of the table's type.",
        column=format_path(path),
        found=have.type,
        expected=want.type,
    )


def converted(column: Column, have: DataType, want: DataType, types: Mapping[str, TypeDef], path: Path) -> Column:
    """Return a column as the table's type; the types are known to fit."""
    if without_nullability(have) == without_nullability(want):
        return column
    if have == _VOID:
        return F.lit(None).cast(spark_type(as_nullable(want), types))
    if isinstance(have, StructType) and isinstance(want, StructType):
        return _struct(column, have, want, types, path)
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return F.transform(column, _inner(have.element_type, want.element_type, types, (*path, "element")))
    if isinstance(have, ArrayType) and isinstance(want, MapType):
        assert isinstance(have.element_type, StructType)
        key, value = have.element_type.members
        entries = MapType(key.type, value.type)
        return converted(F.map_from_entries(column), entries, want, types, path)
    if isinstance(have, MapType) and isinstance(want, MapType):
        return _map(column, have, want, types, path)
    return _primitive(column, have, want, types, path)


def _inner(have: DataType, want: DataType, types: Mapping[str, TypeDef], path: Path) -> Callable[[Column], Column]:
    return lambda x: converted(x, have, want, types, path)


def _struct(column: Column, have: StructType, want: StructType, types: Mapping[str, TypeDef], path: Path) -> Column:
    given = {f.name.lower(): f for f in have.members}
    parts = []
    for f in want.members:
        found = given.get(f.name.lower())
        if found is None:
            part = F.lit(None).cast(spark_type(as_nullable(f.type), types))
        else:
            part = converted(column.getField(found.name), found.type, f.type, types, (*path, f.name))
        parts.append(part.alias(f.name))
    return F.when(column.isNotNull(), F.struct(*parts))


def _map(column: Column, have: MapType, want: MapType, types: Mapping[str, TypeDef], path: Path) -> Column:
    if without_nullability(have.value_type) != without_nullability(want.value_type):
        change = _inner(have.value_type, want.value_type, types, (*path, "value"))
        column = F.transform_values(column, lambda _, v: change(v))
    if without_nullability(have.key_type) != without_nullability(want.key_type):
        other = _inner(have.key_type, want.key_type, types, (*path, "key"))
        column = F.transform_keys(column, lambda k, _: other(k))
    return column


def with_null_fields(column: Column, have: DataType, want: DataType) -> Column:
    """Return a column in which null structs are structs of nulls, if its type is another one than that of the table."""
    return column if without_nullability(have) == without_nullability(want) else _filled(column, have)


def _filled(column: Column, t: DataType) -> Column:
    if isinstance(t, StructType):
        return F.struct(*[_filled(column.getField(f.name), f.type).alias(f.name) for f in t.members])
    if isinstance(t, ArrayType) and _has_structs(t):
        return F.transform(column, lambda x: _filled(x, t.element_type))
    if isinstance(t, MapType) and _has_structs(t.value_type):
        return F.transform_values(column, lambda _, v: _filled(v, t.value_type))
    return column


def _has_structs(t: DataType) -> bool:
    if isinstance(t, ArrayType):
        return _has_structs(t.element_type)
    return isinstance(t, StructType) or (isinstance(t, MapType) and _has_structs(t.value_type))


def _primitive(column: Column, have: DataType, want: DataType, types: Mapping[str, TypeDef], path: Path) -> Column:
    target = spark_type(want, types)
    pair = have.type, want.type
    if pair == ("timestamp_ntz", "timestamp"):
        # a wall clock is one in UTC, whatever the session's zone
        return F.expr(_EPOCH) + (column - F.expr(_NTZ_EPOCH))
    if pair == ("double", "float"):
        made = column.cast(target)
        infinite = (F.abs(made) == float("inf")) & (F.abs(column) != float("inf"))
        return F.when(infinite, _fail(column, want, path, types)).otherwise(made)
    if _is_wider(have, want):
        return column.cast(target)
    made = column.try_cast(target)
    same = made.cast(spark_type(have, types)).eqNullSafe(column)
    return F.when(same, made).otherwise(_fail(column, want, path, types))


def _is_wider(have: DataType, want: DataType) -> bool:
    """Whether every value fits: whole numbers into doubles do not, though Spark widens so."""
    whole = have.type in ("byte", "short", "integer", "long")
    if whole and want.type in ("float", "double"):
        return want.type == "double" and have.type != "long" or have.type in ("byte", "short")
    if parse_decimal(have.type) is not None and parse_decimal(want.type) is None:
        return False
    return common_type(have, want) == want


def _fail(column: Column, want: DataType, path: Path, types: Mapping[str, TypeDef]) -> Column:
    name = format_path(path)
    text = F.concat(
        F.lit(f"{BAD_VALUE}Column {name} holds "),
        column.cast("string"),
        F.lit(
            f", which the table's type {want.type} can't hold exactly. Correct it, or cast the column before writing."
        ),
    )
    return F.raise_error(text).cast(spark_type(want, types))
