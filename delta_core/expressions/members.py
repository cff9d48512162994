"""The values of long IN lists, as one Arrow array: a million of them take no Python object each."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from delta_core.expressions.ast import Call, Expression, Literal, Values
from delta_core.expressions.coercion import as_decimal, decimal_type, is_integral, name_of
from delta_core.expressions.literals import INTEGRAL_RANGES, to_microseconds
from delta_core.types import DataType, PrimitiveType, arrow_to_type

__all__ = ["MANY", "cast_values", "expand", "from_arrow", "from_literals", "from_python", "from_text", "look_up"]

#: Lists of more values are kept as `Values`; shorter ones as constants, which every engine knows.
MANY = 24
#: Python types whose lists Arrow converts as their values are typed one by one.
_PLAIN = frozenset((int, float, str, bytes, bool, dt.date))
_KINDS = frozenset((*INTEGRAL_RANGES, "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz", "decimal"))


def from_python(values: Collection[Any]) -> Values | None:
    """Return many Python values of one plain type; None for few ones, and where they have to be typed one by one."""
    if len(values) <= MANY:
        return None
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) != 1 or kinds.pop() not in _PLAIN:
        return None
    try:
        array = pa.array(list(values))
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None
    return from_arrow(array)


def from_text(numbers: str | None, texts: str | None) -> Values | None:
    """Return the values of a list as SQL writes it: whole numbers, or plain texts in single quotes, between commas."""
    import pyarrow.compute as pc

    parts = pc.split_pattern(pa.array([numbers if texts is None else texts]), "," if texts is None else "'").flatten()
    try:
        # between quotes stand the texts, at odd places; the rest are commas
        return from_arrow(pc.utf8_trim_whitespace(parts).cast(pa.int64()) if texts is None else parts.take(
            pa.array(range(1, len(parts), 2))))  # fmt: skip
    except pa.ArrowInvalid:  # more than 64 bits
        return None


def from_arrow(array: pa.Array) -> Values | None:
    """Return many values of an Arrow array; None for few ones, and for types that no constant has."""
    if len(array) - array.null_count <= MANY:
        return None
    if pa.types.is_unsigned_integer(array.type) and array.type != pa.uint64():
        array = array.cast(pa.int64())
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if not _is_plain(array.type):
        return None
    has_null = array.null_count > 0
    known = array.drop_null() if has_null else array
    kind = _integral(known) if pa.types.is_integer(array.type) else arrow_to_type(array.type)
    return Values(known.cast(kind.to_arrow()), kind, has_null)


def _is_plain(t: pa.DataType) -> bool:
    tests = (pa.types.is_signed_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean, pa.types.is_date32)
    return t in (pa.string(), pa.binary()) or any(test(t) for test in tests)


def _integral(array: pa.Array) -> DataType:
    """Return the type that SQL gives to the widest of some whole numbers."""
    import pyarrow.compute as pc

    ends = pc.min_max(array).as_py()
    low, high = INTEGRAL_RANGES["integer"]
    return PrimitiveType("integer" if low <= ends["min"] and ends["max"] <= high else "long")


def from_literals(literals: Sequence[Literal]) -> Values | None:
    """Return typed constants as values of one type; None where they have no common Arrow type."""
    known = [e for e in literals if e.value is not None]
    kinds = {e.type for e in known}
    if len(kinds) > 1:
        sizes = [as_decimal(t) for t in kinds if t is not None]
        scale = max((s[1] for s in sizes if s is not None), default=0)
        digits = max((s[0] - s[1] for s in sizes if s is not None), default=0) + scale
        if None in sizes or digits > 38:
            return None
        kind: DataType = decimal_type(digits, scale)
    else:
        kind = next((t for t in kinds if t is not None), PrimitiveType("void"))
    name = name_of(kind)
    if name not in _KINDS:
        return None
    try:
        array = _array([e.value for e in known], name, kind.to_arrow())
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None
    return Values(array, kind, len(known) < len(literals))


def _array(values: list[Any], name: str, arrow: pa.DataType) -> pa.Array:
    if name in ("timestamp", "timestamp_ntz"):
        return pa.array([to_microseconds(v) for v in values], pa.int64()).cast(arrow)
    if name == "decimal":
        values = [decimal.Decimal(v) for v in values]
    return pa.array(values, arrow)


def expand(values: Values) -> list[Literal]:
    """Return the values as constants."""
    literals = [Literal(v, values.type) for v in values.array.to_pylist()]
    return [*literals, Literal(None, values.type)] if values.has_null else literals


def cast_values(values: Values, target: DataType) -> Values | None:
    """Cast values whose type Arrow casts as Spark casts constants; None where each has to be cast alone."""
    source, wanted = name_of(values.type), name_of(target)
    if values.type == target:
        return values
    widens = is_integral(values.type) and is_integral(target) and _width(source) < _width(wanted)
    exact = is_integral(values.type) and wanted in ("double", "decimal") or (source, wanted) == ("decimal", "decimal")
    known = {("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz")}
    if not (widens or exact or (source, wanted) in known):
        return None
    try:
        return replace(values, array=values.array.cast(target.to_arrow()), type=target)
    except pa.ArrowException:
        return None


def _width(name: str) -> int:
    return INTEGRAL_RANGES[name][1]


def ordered(values: Values) -> Values:
    """Return the values sorted, each once; NaN comes last."""
    import pyarrow.compute as pc

    if values.is_sorted:
        return values
    array = values.array.take(pc.sort_indices(values.array))
    return replace(values, array=array, is_sorted=True)


def look_up(value: Expression, values: Values) -> Call:
    """Return the test whether a value is among many."""
    return Call("in", (value, ordered(values)))
