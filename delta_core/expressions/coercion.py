"""Spark's type lattice under ANSI mode: which types meet where, which casts exist, how wide decimals get.

Types are compared without the nullability of their parts. Intervals appear in literals only, as the types
`INTERVAL_DAY_TIME` (int64 microseconds) and `INTERVAL_YEAR_MONTH` (int32 months), with `INTERVAL_DAY` for
whole days.
"""

from __future__ import annotations

from contextlib import suppress

from delta_core.errors import SchemaError
from delta_core.schema.types import (
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    UserDefinedType,
    arrow_to_type,
    parse_decimal,
)

__all__ = [
    "INTERVAL_DAY",
    "INTERVAL_DAY_TIME",
    "INTERVAL_YEAR_MONTH",
    "adjusted_decimal",
    "as_decimal",
    "can_cast",
    "canonical",
    "common_type",
    "decimal_result",
    "describe",
    "is_integral",
    "is_interval",
    "is_numeric",
    "name_of",
    "same_type",
    "spark_name",
]

BOOLEAN, BYTE, SHORT, INTEGER, LONG = map(PrimitiveType, ("boolean", "byte", "short", "integer", "long"))
FLOAT, DOUBLE, STRING, BINARY = map(PrimitiveType, ("float", "double", "string", "binary"))
DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID = map(PrimitiveType, ("date", "timestamp", "timestamp_ntz", "void"))
INTERVAL_DAY = PrimitiveType("interval day")
INTERVAL_DAY_TIME = PrimitiveType("interval day to second")
INTERVAL_YEAR_MONTH = PrimitiveType("interval year to month")

_ALIASES = {
    "null": "void",
    "timestampNTZ": "timestamp_ntz",
    "timestampWithoutTimezone": "timestamp_ntz",
    "decimal": "decimal(10,0)",
}
_INTEGRAL_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_PRECEDENCE = ("byte", "short", "integer", "long", "float", "double")
_DDL = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT", "timestamp_ntz": "TIMESTAMP_NTZ"}


def canonical(t: DataType) -> DataType:
    """Return the type that values have in expressions: its one name, and of a plugin's type what stores its values."""
    if isinstance(t, PrimitiveType):
        return _canonical_primitive(t)
    if isinstance(t, ArrayType):
        element = canonical(t.element_type)
        return t if element is t.element_type else ArrayType(element, t.contains_null)
    if isinstance(t, MapType):
        key, value = canonical(t.key_type), canonical(t.value_type)
        is_same = key is t.key_type and value is t.value_type
        return t if is_same else MapType(key, value, t.value_contains_null)
    types = [canonical(f.type) for f in t.fields]
    if all(new is f.type for new, f in zip(types, t.fields, strict=True)):
        return t
    return StructType([Field(f.name, new, f.nullable, f.metadata) for f, new in zip(t.fields, types, strict=True)])


def _canonical_primitive(t: PrimitiveType) -> DataType:
    if isinstance(t, CustomType):
        with suppress(SchemaError):  # no Delta type stores it: expressions reject it by its own name
            return canonical(arrow_to_type(t.definition.arrow))
        return t
    decimal = parse_decimal(t.type)
    if decimal is not None:
        name = f"decimal({decimal[0]},{decimal[1]})"
        return t if name == t.type else PrimitiveType(name)
    return PrimitiveType(_ALIASES[t.type]) if t.type in _ALIASES else t


def same_type(a: DataType, b: DataType) -> bool:
    """Return whether two types are equal but for the nullability of their parts."""
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return same_type(a.element_type, b.element_type)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return same_type(a.key_type, b.key_type) and same_type(a.value_type, b.value_type)
    if isinstance(a, StructType) and isinstance(b, StructType):
        return a.names == b.names and all(same_type(x.type, y.type) for x, y in zip(a, b, strict=True))
    return a == b


def name_of(t: DataType) -> str:
    """Return a primitive's name with ``decimal`` for every decimal; array, map or struct otherwise."""
    if not isinstance(t, PrimitiveType):
        return t.type
    return "decimal" if t.type.startswith("decimal") else t.type


def is_integral(t: DataType) -> bool:
    """Return whether the type is byte, short, integer or long."""
    return name_of(t) in _INTEGRAL_DIGITS


def is_numeric(t: DataType) -> bool:
    """Return whether the type is a number's."""
    return name_of(t) in (*_PRECEDENCE, "decimal")


def is_interval(t: DataType) -> bool:
    """Return whether the type is an interval's."""
    return t in (INTERVAL_DAY, INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH)


def as_decimal(t: DataType) -> tuple[int, int] | None:
    """Return (precision, scale) that hold every value of a decimal or integral type; None for others."""
    if is_integral(t):
        return _INTEGRAL_DIGITS[name_of(t)], 0
    return parse_decimal(t.type) if isinstance(t, PrimitiveType) else None


def decimal_type(precision: int, scale: int) -> PrimitiveType:
    """Return the decimal type cut to 38 digits from the right."""
    return PrimitiveType(f"decimal({min(precision, 38)},{min(scale, 38)})")


def adjusted_decimal(precision: int, scale: int) -> PrimitiveType:
    """Return the decimal type of a result: above 38 digits the scale shrinks, but not below 6."""
    if precision <= 38:
        return decimal_type(precision, scale)
    return decimal_type(38, max(38 - (precision - scale), min(scale, 6)))


def decimal_result(operator: str, a: tuple[int, int], b: tuple[int, int]) -> PrimitiveType:
    """Return the type of ``a operator b`` on decimals, by Spark's precision rules."""
    (p1, s1), (p2, s2) = a, b
    if operator in ("+", "-"):
        scale = max(s1, s2)
        return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return adjusted_decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return adjusted_decimal(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """Return the type that both sides of a comparison, or two branches, are cast to; None if there is none.

    A string meets a number as BIGINT or DOUBLE and any other atomic type as that type (ANSI mode).
    """
    if same_type(a, b):
        return a
    if a == VOID or b == VOID:
        return b if a == VOID else a
    for x, y in ((a, b), (b, a)):
        if x == STRING and isinstance(y, PrimitiveType) and not is_interval(y) and y.type != "variant":
            return LONG if is_integral(y) else DOUBLE if is_numeric(y) else y
        if x == DATE and y in (TIMESTAMP, TIMESTAMP_NTZ):
            return y
        if x == TIMESTAMP and y == TIMESTAMP_NTZ:
            return TIMESTAMP
        if x == INTERVAL_DAY and y == INTERVAL_DAY_TIME:
            return y
    return _common_number(a, b) if is_numeric(a) and is_numeric(b) else _common_nested(a, b)


def _common_number(a: DataType, b: DataType) -> DataType:
    names = {name_of(a), name_of(b)}
    if names & {"float", "double"}:
        # Spark goes by way of double wherever float would lose an integer's or decimal's digits.
        return FLOAT if names == {"float"} else DOUBLE
    if "decimal" in names:
        (p1, s1), (p2, s2) = as_decimal(a) or (38, 0), as_decimal(b) or (38, 0)
        scale = max(s1, s2)
        return decimal_type(max(p1 - s1, p2 - s2) + scale, scale)
    return PrimitiveType(max(names, key=_PRECEDENCE.index))


def _common_nested(a: DataType, b: DataType) -> DataType | None:
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        element = common_type(a.element_type, b.element_type)
        return None if element is None else ArrayType(element, a.contains_null or b.contains_null)
    return None


_ATOMIC = (
    "boolean",
    *_INTEGRAL_DIGITS,
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)
_NUMBERS = {*_INTEGRAL_DIGITS, "float", "double", "decimal"}
_CASTS: dict[str, set[str]] = {
    "boolean": {*_NUMBERS, "string"},
    **{n: {*_NUMBERS, "boolean", "string", "timestamp"} for n in _NUMBERS},
    "string": set(_ATOMIC),
    "binary": {"string"},
    "date": {"string", "timestamp", "timestamp_ntz"},
    "timestamp": {"string", "date", "timestamp_ntz", *_NUMBERS},
    "timestamp_ntz": {"string", "date", "timestamp"},
}


def can_cast(source: DataType, target: DataType) -> bool:
    """Return whether ANSI mode has a cast from one type to another (it may still fail on a value)."""
    if same_type(source, target) or source == VOID:
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return can_cast(source.element_type, target.element_type)
    if isinstance(source, StructType) and isinstance(target, StructType):
        # by place, so that the same names are required: new values of a column are assigned by name
        names = [[f.name.lower() for f in t.fields] for t in (source, target)]
        return names[0] == names[1] and all(can_cast(a.type, b.type) for a, b in zip(source, target, strict=True))
    return name_of(target) in _CASTS.get(name_of(source), ())


def spark_name(t: DataType) -> str:
    """Return the type as Spark's DDL spells it."""
    if isinstance(t, ArrayType):
        return f"ARRAY<{spark_name(t.element_type)}>"
    if isinstance(t, MapType):
        return f"MAP<{spark_name(t.key_type)}, {spark_name(t.value_type)}>"
    if isinstance(t, StructType):
        return "STRUCT<" + ", ".join(f"`{f.name}`: {spark_name(f.type)}" for f in t.fields) + ">"
    return t.type if isinstance(t, UserDefinedType) else _DDL.get(t.type, t.type.upper())


def describe(types: list[DataType]) -> str:
    """Return the types' names for a message."""
    return ", ".join(spark_name(t) for t in types)
