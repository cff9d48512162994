"""Casts with Spark's ANSI rules: what does not fit raises; ``try_cast`` returns null there.

Fractions are cut toward zero on the way to whole numbers and rounded half up on the way to decimals; text is
trimmed; times without a zone are UTC's; float and double print as Java prints them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import Kernel, by_value, evaluated_type, on_arrays, to_numpy, typed
from delta_core.engines.arrow.evaluate.nested_order import spans
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions import literals
from delta_core.expressions.coercion import TIMESTAMP, TIMESTAMP_NTZ, can_cast, is_open, same_type
from delta_core.expressions.literals import TRIMMED
from delta_core.kernels.arrow_buffers import number_array
from delta_core.kernels.decimals import checked_cast, round_half_up
from delta_core.schema.logical import LogicalType, facts, open_type
from delta_core.schema.types import ArrayType, DataType, StructType, spark_name

__all__ = ["cast_kernel", "java_double"]

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US


def cast_kernel(source: DataType, target: DataType, safe: bool = False) -> Kernel:
    """Return the kernel that casts.

    Raises
    ------
    UnsupportedExpressionError
        If values of the one type can't be cast to the other.
    """
    if same_type(source, target):
        return lambda x: x
    into = evaluated_type(target)
    if facts(source).family == "void":
        return lambda x: typed(None, into) if isinstance(x, pa.Scalar) else pa.nulls(len(x), into)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _of_arrays(cast_kernel(source.element_type, target.element_type, safe), into)
    if isinstance(source, StructType) and isinstance(target, StructType) and len(source) == len(target):
        fields = [cast_kernel(a.type, b.type, safe) for a, b in zip(source, target, strict=True)]
        return _of_structs(fields, into)
    strict = _strict(source, target)
    if strict is None:
        raise UnsupportedExpressionError(
            f"A cast from {spark_name(source)} to {spark_name(target)} is not supported.", cast=spark_name(target)
        )
    return _nulling(strict, into) if safe else strict


def _of_arrays(element: Kernel, into: pa.DataType) -> Kernel:
    def kernel(x: pa.ListArray) -> pa.ListArray:
        _, lengths = spans(x)
        ends = number_array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        nulls = pc.is_null(x) if x.null_count else None
        return pa.ListArray.from_arrays(ends, element(x.flatten()), type=into, mask=nulls)

    return on_arrays(kernel)


def _of_structs(fields: list[Kernel], into: pa.DataType) -> Kernel:
    def kernel(x: pa.StructArray) -> pa.StructArray:
        parts = [cast(part) for cast, part in zip(fields, x.flatten(), strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(into), mask=pc.is_null(x) if x.null_count else None)

    return on_arrays(kernel)


def _strict(source: DataType, target: DataType) -> Kernel | None:
    """Find the cast between two types that differ."""
    if not can_cast(source, target):
        return None
    have, want = facts(source), facts(target)
    is_printed = want.family == "text" and have.per_day > _DAY_US
    if _is_other_unit(source) and have.family != want.family and not is_printed:
        # by way of the microseconds that Delta has
        plain = TIMESTAMP if have.is_zoned else TIMESTAMP_NTZ
        return _by_way_of(_strict(source, plain), _strict(plain, target))
    if _is_other_unit(target) and have.family not in ("timestamp", "date", "text"):
        return _by_way_of(_strict(source, TIMESTAMP), _strict(TIMESTAMP, target))
    make = _FAMILIES.get(have.family)
    return None if make is None else make(want, target)


def _is_other_unit(t: DataType) -> bool:
    found = facts(t)
    return found.family == "timestamp" and found.per_day != _DAY_US


def _by_way_of(first: Kernel | None, second: Kernel | None) -> Kernel | None:
    if first is None or second is None:
        return None
    return lambda x: second(first(x))


def _nulling(strict: Kernel, into: pa.DataType) -> Kernel:
    """Return null if the strict cast raises: halve the distinct values until those that raise are alone."""

    def halves(x: pa.Array) -> list[pa.Array]:
        try:
            return [strict(x)]
        except (ExpressionError, pa.ArrowInvalid):
            if len(x) == 1:
                return [pa.nulls(1, into)]
            middle = len(x) // 2
            return halves(x[:middle]) + halves(x[middle:])

    def kernel(x: Any) -> Any:
        try:
            return strict(x)
        except (ExpressionError, pa.ArrowInvalid):
            if isinstance(x, pa.Scalar):
                return typed(None, into)
            coded = pc.dictionary_encode(x)
            return pc.array_take(pa.concat_arrays(halves(coded.dictionary)), coded.indices)

    return kernel


# --- from numbers --------------------------------------------------------------------------


def _from_integral(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family in ("integer", "text"):
        return lambda x: pc.cast(x, into)
    if want.family == "floating":
        return lambda x: pc.cast(x, into, safe=False)
    if want.family == "boolean":
        return lambda x: pc.not_equal(x, typed(0, x.type))
    if want.family == "decimal":
        return lambda x: checked_cast(x, into)
    if want.family == "timestamp":
        return lambda x: pc.cast(pc.multiply_checked(pc.cast(x, pa.int64()), _SECOND_US), into)
    return None


def _from_float(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "integer":
        return lambda x: pc.cast(pc.trunc(x), into)
    if want.family == "floating":
        return lambda x: pc.cast(x, into, safe=False)
    if want.family == "boolean":
        return lambda x: pc.not_equal(x, typed(0, x.type))
    if want.family == "text":
        return _print_floats
    if want.family == "decimal":
        # NaN and the infinities are null, as in Spark, also outside try_cast
        return by_value(lambda v: literals.parse_decimal_text(repr(v), target) if isfinite(v) else None, into)
    if want.family == "timestamp":
        # By way of int64, so that NaN and what overflows raise.
        return lambda x: pc.cast(pc.cast(pc.trunc(pc.multiply(pc.cast(x, pa.float64()), 1e6)), pa.int64()), into)
    return None


def _print_floats(x: Any) -> Any:
    single = pa.types.is_float32(x.type)
    return by_value(lambda v: java_double(np.float32(v) if single else v), pa.string())(x)


def java_double(value: Any) -> str:
    """Format a float as Java does: ``1.0``, ``1.0E10``, ``1.0E-5``, ``NaN``, ``Infinity``."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"


def _from_decimal(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "decimal":
        return lambda x: round_half_up(x, into)
    if want.family == "integer":
        return lambda x: pc.cast(pc.trunc(x), into)
    if want.family == "floating":
        # By way of text: the nearest double, if Arrow's own conversion may be one off.
        return lambda x: pc.cast(pc.cast(x, pa.string()), into)
    if want.family == "boolean":
        return lambda x: pc.not_equal(x, typed(decimal.Decimal(0), x.type))
    if want.family == "text":
        return by_value(lambda v: format(v, "f"), into)
    if want.family == "timestamp":
        return by_value(lambda v: int(v * _SECOND_US), into)
    return None


def _from_boolean(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "decimal":
        return lambda x: checked_cast(pc.cast(x, pa.int64()), into)
    return lambda x: pc.cast(x, into)


# --- from times ----------------------------------------------------------------------------


def _from_date(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "text":
        return lambda x: pc.cast(x, into)
    if want.per_day != _DAY_US:
        rescale = _rescale(1, want)
        return lambda x: rescale(pc.cast(x, pa.int32()))
    return lambda x: pc.cast(pc.cast(x, pa.timestamp("us")), into)


def _from_timestamp(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "text":
        return _print_timestamps
    if want.family == "timestamp":
        return _to_unit(want)
    if want.family == "date":
        days = on_arrays(lambda x: pc.cast(_from_numpy(_floor_divide(x, 86_400 * _SECOND_US), pa.int32()), into))
        return lambda x: days(pc.cast(x, pa.int64()))
    if want.family == "floating":
        return lambda x: pc.cast(pc.divide(pc.cast(pc.cast(x, pa.int64()), pa.float64(), safe=False), 1e6), into)
    if want.family == "decimal":
        return by_value(
            lambda v: literals.parse_decimal_text(str(decimal.Decimal(literals.to_microseconds(v)).scaleb(-6)), target),
            into,
        )
    seconds = on_arrays(lambda x: _from_numpy(_floor_divide(x, _SECOND_US), pa.int64()))
    return lambda x: pc.cast(seconds(pc.cast(x, pa.int64())), into)


def _from_time(want: LogicalType, target: DataType) -> Kernel | None:
    return (lambda x: pc.cast(x, pa.string())) if want.family == "text" else _to_unit(want)


def _from_duration(want: LogicalType, target: DataType) -> Kernel | None:
    return _to_unit(want)


def _to_unit(want: LogicalType) -> Kernel:
    """Return the kernel that converts times to another unit, rounded down; what the unit does not hold raises."""
    into = want.arrow

    def kernel(x: Any) -> Any:
        number = pc.cast(x, pa.int32() if x.type.bit_width == 32 else pa.int64())
        per_day = facts(open_type(x.type)).per_day
        return pc.cast(number, into) if per_day == want.per_day else _rescale(per_day, want)(number)

    return kernel


def _rescale(per_day: int, want: LogicalType) -> Kernel:
    """Return the kernel that makes times of whole numbers in other units."""
    stored = pa.int32() if want.arrow.bit_width == 32 else pa.int64()
    if per_day <= want.per_day:
        factor = want.per_day // per_day
        return lambda x: pc.cast(
            pc.cast(pc.multiply_checked(pc.cast(x, pa.int64()), typed(factor, pa.int64())), stored), want.arrow
        )
    divisor = per_day // want.per_day
    return on_arrays(lambda x: pc.cast(pc.cast(_from_numpy(_floor_divide(x, divisor), pa.int64()), stored), want.arrow))


def _floor_divide(x: pa.Array, by: int) -> tuple[Any, Any]:
    values, nulls = to_numpy(x)
    return np.floor_divide(values, by), nulls


def _from_numpy(pair: tuple[Any, Any], into: pa.DataType) -> pa.Array:
    values, nulls = pair
    return pc.cast(pa.array(values, mask=nulls), into)


def _print_timestamps(x: Any) -> Any:
    text = pc.strftime(pc.cast(x, pa.timestamp(x.type.unit)), format="%Y-%m-%d %H:%M:%S")
    return pc.utf8_rtrim(pc.utf8_rtrim(text, characters="0"), characters=".")


# --- from text -----------------------------------------------------------------------------

_INTEGER_TEXT = "^[+-]?[0-9]+$"
_DOUBLE_TEXT = r"(?i)^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?[df]?|[+-]?inf(?:inity)?|nan)$"


def _from_text(want: LogicalType, target: DataType) -> Kernel | None:
    into = want.arrow
    if want.family == "binary":
        return lambda x: pc.cast(x, into)
    if want.family == "integer":
        return lambda x: pc.cast(pc.utf8_ltrim(_matching(x, _INTEGER_TEXT, target), characters="+"), into)
    if want.family == "floating":
        return lambda x: pc.cast(
            pc.replace_substring_regex(
                pc.utf8_ltrim(_matching(x, _DOUBLE_TEXT, target), characters="+"),
                pattern="([0-9.])[dDfF]$",
                replacement=r"\1",
            ),
            into,
        )
    readers = {
        "decimal": literals.parse_decimal_text,
        "boolean": literals.parse_boolean,
        "date": literals.parse_date,
        "timestamp": literals.parse_units if is_open(target) else literals.parse_timestamp,
        "time": literals.parse_units,
    }
    if want.family not in readers:
        return None
    read = readers[want.family]
    slow = by_value(lambda text: read(text, target), into)
    is_plain = want.family in ("date", "timestamp") and not is_open(target)
    return (lambda x: _read_times(x, into, slow)) if is_plain else slow


def _from_binary(want: LogicalType, target: DataType) -> Kernel | None:
    return (lambda x: pc.cast(x, want.arrow)) if want.family == "text" else None


def _matching(x: Any, pattern: str, target: DataType) -> Any:
    """Trim text and raise if it does not match."""
    trimmed = pc.utf8_trim(x, characters=TRIMMED)
    matches = pc.match_substring_regex(trimmed, pattern=pattern)
    good = matches.as_py() is not False if isinstance(matches, pa.Scalar) else pc.all(matches).as_py() is not False
    if not good:
        bad = x if isinstance(x, pa.Scalar) else pc.filter(x, pc.invert(matches))[0]
        raise ExpressionError(
            f"The text {bad.as_py()[:100]!r} can't be cast to {spark_name(target)}. Correct it, or use try_cast.",
            condition="CAST_INVALID_INPUT",
            value=bad.as_py(),
        )
    return trimmed


def _read_times(x: Any, into: pa.DataType, slow: Kernel) -> Any:
    """Read the plain ISO forms with Arrow, and everything if one is of another form value by value."""
    try:
        plain = pc.cast(
            pc.utf8_trim(x, characters=TRIMMED), pa.date32() if pa.types.is_date32(into) else pa.timestamp("us")
        )
    except pa.ArrowInvalid:
        return slow(x)
    return pc.cast(plain, into)


#: By the family of the source, what returns the cast to a type; None if there is none.
_FAMILIES: dict[str, Callable[[LogicalType, DataType], Kernel | None]] = {
    "integer": _from_integral,
    "floating": _from_float,
    "decimal": _from_decimal,
    "boolean": _from_boolean,
    "text": _from_text,
    "binary": _from_binary,
    "date": _from_date,
    "timestamp": _from_timestamp,
    "time": _from_time,
    "duration": _from_duration,
    "interval": _from_duration,
}
