"""The values of long IN lists, as one Arrow array: a million of them take no Python object each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.expressions.ast import MANY, Call, Expression, Literal, Values
from delta_core.expressions.coercion import as_decimal, decimal_type, is_integral, is_unsigned, name_of
from delta_core.expressions.literals import INTEGRAL_RANGES, to_microseconds
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, number_array
from delta_core.schema.logical import facts
from delta_core.schema.types import DataType, PrimitiveType, arrow_to_type

__all__ = ["cast_values", "expand", "from_arrow", "from_literals", "from_python", "from_text", "look_up"]

#: Python types whose lists Arrow converts as their values are typed one by one.
_PLAIN: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    dt.date: pa.date32(),
}
#: Joins texts to be split again, at once if none of them holds it.
_SEPARATOR = "\x1f"
#: Families of types whose constants are joined to one array.
_FAMILIES = frozenset(("integer", "floating", "text", "boolean", "date", "timestamp", "time", "duration", "decimal"))


def from_python(values: Collection[Any]) -> Values | None:
    """Return many Python values of one plain type; None for few ones, and where they have to be typed one by one."""
    if len(values) <= MANY:
        return None
    kinds = set(map(type, values)) - {type(None)}
    arrow = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
    if arrow is None:
        return None
    known = [v for v in values if v is not None]
    array = _array(known, arrow)
    found = None if array is None else from_arrow(array)
    return found if found is None or len(known) == len(values) else replace(found, has_null=True)


def from_text(numbers: str | None, texts: str | None) -> Values | None:
    """Return the values of a list as SQL writes it: whole numbers, or plain texts in single quotes, between commas."""
    if texts is not None:
        parts = _split(texts, "'")
        # between quotes are the texts, at odd places; the rest are commas
        return from_arrow(pc.take(parts, number_array(np.arange(1, len(parts), 2))))
    try:
        return from_arrow(pc.cast(pc.utf8_trim_whitespace(_split(numbers or "", ",")), pa.int64()))
    except pa.ArrowInvalid:  # more than 64 bits
        return None


def _split(text: str, separator: str) -> pa.Array:

    return pc.split_pattern(array_of([text], pa.string()), separator).flatten()


def from_arrow(array: pa.Array) -> Values | None:
    """Return many values of an Arrow array; None for few ones, and for types that no constant has."""
    if len(array) - array.null_count <= MANY:
        return None
    if pa.types.is_unsigned_integer(array.type) and array.type != pa.uint64():
        array = pc.cast(array, pa.int64())
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = pc.cast(array, pa.string())
    if not _is_plain(array.type):
        return None
    has_null = array.null_count > 0
    known = pc.drop_null(array) if has_null else array
    kind = _integral(known) if pa.types.is_integer(array.type) else arrow_to_type(array.type)
    return Values(pc.cast(known, kind.to_arrow()), kind, has_null)


def _is_plain(t: pa.DataType) -> bool:
    tests = (
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_boolean,
        pa.types.is_date32,
    )
    return t in (pa.string(), pa.binary()) or any(test(t) for test in tests)


def _integral(array: pa.Array) -> DataType:
    """Return the type that SQL returns to the widest of some whole numbers."""
    ends = pc.min_max(array).as_py()
    low, high = INTEGRAL_RANGES["integer"]
    return PrimitiveType("integer" if low <= ends["min"] and ends["max"] <= high else "long")


def from_literals(literals: Sequence[Literal]) -> Values | None:
    """Return typed constants as values of one type; None if they have no common Arrow type."""
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
    family = facts(kind).family
    if family not in _FAMILIES:
        return None
    values = [to_microseconds(e.value) if family == "timestamp" else e.value for e in known]
    array = _array(values, kind.to_arrow())
    return None if array is None else Values(array, kind, len(known) < len(literals))


def _array(values: list[Any], arrow: pa.DataType) -> pa.Array | None:
    """Return values of one type as an array; None if one of them does not fit."""
    try:
        if pa.types.is_date32(arrow):
            return number_array(np.array(values, "datetime64[D]").astype(np.int32), arrow)
        if pa.types.is_integer(arrow) or pa.types.is_floating(arrow):
            return number_array(np.array(values, arrow.to_pandas_dtype()), arrow)
        if pa.types.is_timestamp(arrow):
            return number_array(np.array(values, np.int64), arrow)
        if arrow == pa.string() and values and (joined := _SEPARATOR.join(values)).count(_SEPARATOR) == len(values) - 1:
            return _split(joined, _SEPARATOR)
        return array_of(values, arrow)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        return None


def expand(values: Values) -> list[Literal]:
    """Return the values as constants."""
    literals = [Literal(v, values.type) for v in values.array.to_pylist()]
    return [*literals, Literal(None, values.type)] if values.has_null else literals


def cast_values(values: Values, target: DataType) -> Values | None:
    """Cast values whose type Arrow casts as Spark casts constants; None if each has to be cast alone."""
    source, target_name = name_of(values.type), name_of(target)
    if values.type == target:
        return values
    if is_integral(values.type) and is_unsigned(target):
        return _unsigned(values, target)
    widens = is_integral(values.type) and is_integral(target) and facts(values.type).bits < facts(target).bits
    exact = (
        is_integral(values.type)
        and target_name in ("double", "decimal")
        or (source, target_name) == ("decimal", "decimal")
    )
    known = {("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz")}
    if not (widens or exact or (source, target_name) in known):
        return None
    try:
        return replace(values, array=pc.cast(values.array, target.to_arrow()), type=target)
    except pa.ArrowException:
        return None


def _unsigned(values: Values, target: DataType) -> Values:
    """Return the values that an unsigned type holds: a column of that type equals no other one."""
    low, high = facts(target).limits
    array = values.array
    # compared with what the values' own type holds: no constant is cast
    least, most = facts(values.type).limits
    if least < low or most > high:
        ends = (array_of([min(max(end, least), most)], array.type)[0] for end in (low, high))
        below, above = ends
        array = pc.filter(array, pc.and_(pc.greater_equal(array, below), pc.less_equal(array, above)))
    return replace(values, array=pc.cast(array, facts(target).arrow), type=target)


def ordered(values: Values) -> Values:
    """Return the values sorted, each once; NaN comes last."""
    if values.is_sorted:
        return values
    array = pc.take(values.array, pc.sort_indices(values.array))
    return replace(values, array=array, is_sorted=True)


def look_up(value: Expression, values: Values) -> Call:
    """Return the test whether a value is among many."""
    return Call("in", (value, ordered(values)))
