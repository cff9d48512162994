"""Spark's type lattice under ANSI mode: which types meet where, which casts exist, how wide decimals get.

Types are compared without the nullability of their parts. Intervals appear in literals only, as the types
`INTERVAL_DAY_TIME` (int64 microseconds) and `INTERVAL_YEAR_MONTH` (int32 months), with `INTERVAL_DAY` for
whole days.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from delta_core.errors import SchemaError
from delta_core.schema.logical import MOST_DIGITS, ArrowType, LogicalType, facts, held_type, open_type
from delta_core.schema.types import (
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    arrow_to_type,
    parse_decimal,
    spark_name,
)

__all__ = [
    "INTERVAL_DAY",
    "INTERVAL_DAY_TIME",
    "INTERVAL_YEAR_MONTH",
    "adjusted_decimal",
    "as_decimal",
    "bounds_type",
    "can_cast",
    "canonical",
    "common_type",
    "decimal_result",
    "describe",
    "is_integral",
    "is_interval",
    "is_numeric",
    "is_open",
    "is_unsigned",
    "most_digits",
    "name_of",
    "same_type",
    "widened",
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
#: Digits of Spark's decimals.
_DELTA_DIGITS = 38
#: Nanoseconds of a day. Delta's timestamps are microseconds.
_DAY_NS = 86_400 * 10**9


def canonical(t: DataType) -> DataType:
    """Return the type that values have in expressions: its one name, and of a plugin's type what stores its values."""
    if isinstance(t, PrimitiveType):
        return _canonical_primitive(t)
    if isinstance(t, ArrayType):
        element = canonical(t.element_type)
        is_same = element is t.element_type and type(t) is ArrayType  # not one of another layout
        return t if is_same else ArrayType(element, t.contains_null)
    if isinstance(t, MapType):
        key, value = canonical(t.key_type), canonical(t.value_type)
        is_same = key is t.key_type and value is t.value_type and type(t) is MapType
        return t if is_same else MapType(key, value, t.value_contains_null)
    types = [canonical(f.type) for f in t.members]
    if all(new is f.type for new, f in zip(types, t.members, strict=True)):
        return t
    return StructType([Field(f.name, new, f.nullable, f.metadata) for f, new in zip(t.members, types, strict=True)])


def _canonical_primitive(t: PrimitiveType) -> DataType:
    if isinstance(t, ArrowType):
        return held_type(t)
    if isinstance(t, CustomType) and facts(t).per_day <= _DAY_NS // 1000:
        with suppress(SchemaError):  # no Delta type stores it: expressions reject it by its own name
            return canonical(arrow_to_type(t.definition.arrow))
    if isinstance(t, CustomType):
        return t
    decimal = parse_decimal(t.type)
    if decimal is not None:
        name = f"decimal({decimal[0]},{decimal[1]})"
        return t if name == t.type else PrimitiveType(name)
    return PrimitiveType(_ALIASES[t.type]) if t.type in _ALIASES else t


def bounds_type(t: DataType) -> PrimitiveType | None:
    """Return the type of a column's bounds in statistics; None if they would not be those of a type of Delta."""
    if isinstance(t, CustomType):
        has_bounds = t.definition.ordered and not isinstance(open_type(t.definition.arrow), ArrowType)
        if not has_bounds:
            return None
    found = canonical(t)
    return found if isinstance(found, PrimitiveType) else None


def same_type(a: DataType, b: DataType) -> bool:
    """Return whether two types are equal but for the nullability of their parts.

    Parameters
    ----------
    a, b : DataType
        Two types.
    """
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
    """Return whether values are whole numbers of at most 64 bits."""
    return facts(t).family == "integer"


def is_unsigned(t: DataType) -> bool:
    """Return whether values are whole numbers that are never negative."""
    return not facts(t).is_signed


def is_numeric(t: DataType) -> bool:
    """Return whether the type is a number's."""
    return facts(t).family in ("integer", "floating", "decimal")


def is_interval(t: DataType) -> bool:
    """Return whether the type is an interval's."""
    return facts(t).family == "interval"


def is_open(t: DataType) -> bool:
    """Return whether Delta has no type for values of a canonical type, or of a part of it."""
    if isinstance(t, StructType):
        return any(is_open(f.type) for f in t.members)
    if isinstance(t, MapType):
        return is_open(t.key_type) or is_open(t.value_type)
    return is_open(t.element_type) if isinstance(t, ArrayType) else isinstance(t, CustomType)


def as_decimal(t: DataType) -> tuple[int, int] | None:
    """Return (precision, scale) that hold every value of a decimal or integral type; None for others."""
    found = facts(t)
    return (found.precision, found.scale) if found.precision else None


def decimal_type(precision: int, scale: int, most: int = _DELTA_DIGITS) -> PrimitiveType:
    """Return the decimal type cut to ``most`` digits from the right."""
    precision, scale = min(precision, most), min(scale, most)
    if precision <= _DELTA_DIGITS:
        return PrimitiveType(f"decimal({precision},{scale})")
    found = open_type(pa.decimal256(precision, scale))
    assert isinstance(found, PrimitiveType)
    return found


def adjusted_decimal(precision: int, scale: int, most: int = _DELTA_DIGITS) -> PrimitiveType:
    """Return the decimal type of a result: above ``most`` digits the scale shrinks, but not below 6."""
    if precision <= most:
        return decimal_type(precision, scale, most)
    return decimal_type(most, max(most - (precision - scale), min(scale, 6)), most)


def most_digits(*precisions: int) -> int:
    """Return the digits that a result of decimals may have: those of 256 bits if an argument needs them."""
    return MOST_DIGITS if max(precisions) > _DELTA_DIGITS else _DELTA_DIGITS


def decimal_result(operator: str, a: tuple[int, int], b: tuple[int, int]) -> PrimitiveType:
    """Return the type of ``a operator b`` on decimals, by Spark's precision rules."""
    (p1, s1), (p2, s2) = a, b
    most = most_digits(p1, p2)
    if operator in ("+", "-"):
        scale = max(s1, s2)
        return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale, most)
    if operator == "*":
        return adjusted_decimal(p1 + p2 + 1, s1 + s2, most)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return adjusted_decimal(p1 - s1 + s2 + scale, scale, most)
    scale = max(s1, s2)
    return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale, most)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """Return the type that both sides of a comparison, or two branches, are cast to; None if there is none.

    A string meets a number as BIGINT or DOUBLE and any other atomic type as that type (ANSI mode).

    Parameters
    ----------
    a, b : DataType
        Two types.
    """
    if same_type(a, b):
        return a
    if a == VOID or b == VOID:
        return b if a == VOID else a
    if STRING in (a, b):
        return _met_by_text(b if a == STRING else a)
    if {a, b} == {INTERVAL_DAY, INTERVAL_DAY_TIME}:
        return INTERVAL_DAY_TIME
    families = {facts(a).family, facts(b).family}
    if families == {"interval", "duration"}:
        return common_type(_as_duration(a), _as_duration(b))
    if families <= {"integer", "floating", "decimal"}:
        return _common_number(a, b)
    if families <= {"date", "timestamp"}:
        return _common_instant(facts(a), facts(b))
    if families in ({"time"}, {"duration"}):
        return max(a, b, key=lambda t: facts(t).per_day)
    return _common_nested(a, b)


def _as_duration(t: DataType) -> DataType:
    is_us = is_interval(t) and pa.types.is_duration(facts(t).arrow)
    return open_type(pa.duration("us")) if is_us else t


def _met_by_text(t: DataType) -> DataType | None:
    found = facts(t)
    if found.family in ("interval", "duration", "nested", "opaque"):
        return None
    if found.family == "integer":
        return t if found.limits[1] > facts(LONG).limits[1] else LONG
    return DOUBLE if found.family in ("floating", "decimal") else t


def _common_number(a: DataType, b: DataType) -> DataType:
    x, y = facts(a), facts(b)
    if "floating" in (x.family, y.family):
        # Spark goes by way of double wherever float would lose an integer's or decimal's digits.
        return FLOAT if x.bits == y.bits == 32 and x.family == y.family else DOUBLE
    if "decimal" in (x.family, y.family):
        scale = max(x.scale, y.scale)
        precision = max(x.precision - x.scale, y.precision - y.scale) + scale
        return decimal_type(precision, scale, most_digits(x.precision, y.precision))
    if x.is_signed == y.is_signed:
        return a if x.bits >= y.bits else b
    signed, unsigned = (a, b) if x.is_signed else (b, a)
    wide = widened(unsigned)
    return _common_number(signed, wide)


#: By the bits of unsigned numbers, the type with a sign that holds all of them.
_SIGNED = {8: SHORT, 16: INTEGER, 32: LONG, 64: PrimitiveType("decimal(20,0)")}


def widened(t: DataType) -> DataType:
    """Return the type with a sign that holds every value of an unsigned one; other types as they are."""
    found = facts(t)
    return t if found.is_signed else _SIGNED[found.bits]


def _common_instant(x: LogicalType, y: LogicalType) -> DataType:
    if x.family == y.family == "date":
        return DATE
    unit = (x if x.per_day >= y.per_day else y).arrow.unit
    return open_type(pa.timestamp(unit, "UTC" if x.is_zoned or y.is_zoned else None))


def _common_nested(a: DataType, b: DataType) -> DataType | None:
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        element = common_type(a.element_type, b.element_type)
        return None if element is None else ArrayType(element, a.contains_null or b.contains_null)
    return None


_NUMBERS = frozenset(("integer", "floating", "decimal"))
_ATOMIC = frozenset((*_NUMBERS, "boolean", "text", "binary", "date", "timestamp", "time"))
#: To which families values of a family are cast.
_CASTS: dict[str, frozenset[str]] = {
    "boolean": _NUMBERS | {"text"},
    **dict.fromkeys(_NUMBERS, _NUMBERS | {"boolean", "text", "timestamp"}),
    "text": _ATOMIC,
    "binary": frozenset(("text",)),
    "date": frozenset(("text", "date", "timestamp")),
    "timestamp": _NUMBERS | {"text", "date", "timestamp"},
    "time": frozenset(("text", "time")),
    **dict.fromkeys(("duration", "interval"), frozenset(("duration",))),
}


def _is_cast(source: LogicalType, target: LogicalType) -> bool:
    pair = {source.family, target.family}
    if "timestamp" in pair and pair & _NUMBERS:  # a number is the seconds since an instant
        return source.is_zoned or target.is_zoned
    if pair == {"interval", "duration"} and pa.types.is_integer(source.arrow):  # months have no fixed length
        return False
    return target.family in _CASTS.get(source.family, ())


def can_cast(source: DataType, target: DataType) -> bool:
    """Return whether ANSI mode has a cast from one type to another (it may still fail on a value)."""
    if same_type(source, target) or source == VOID:
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return can_cast(source.element_type, target.element_type)
    if isinstance(source, StructType) and isinstance(target, StructType):
        # by place, so that the same names are required: new values of a column are assigned by name
        names = [[f.name.lower() for f in t.members] for t in (source, target)]
        return names[0] == names[1] and all(can_cast(a.type, b.type) for a, b in zip(source, target, strict=True))
    return _is_cast(facts(source), facts(target))


def describe(types: list[DataType]) -> str:
    """Return the types' names for a message."""
    return ", ".join(spark_name(t) for t in types)
