"""Ranges of a column that a comparison of a function of it implies: ``round(x, 1) = 5.5`` only if x is near 5.5.

They are wider than they have to be: files, row groups and values outside are left out early, and the comparison itself
is evaluated for what is left.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal
from delta_core.expressions.coercion import name_of
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["implied_range"]

_DOUBLE = PrimitiveType("double")
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: A session's time zone, and what a calendar skips, move a time by less.
_SLACK = dt.timedelta(days=2)
#: The longest duration of a unit; others last a year or less.
_UNIT_DAYS = {"quarter": 92, "month": 31, "mon": 31, "mm": 31, "week": 7, "day": 1, "dd": 1, "hour": 1}
_MOST_DAYS = 366
#: The error of a number of 4 bytes, and more than calculations with those of 8 are.
_RELATIVE = 1e-6
#: Greater numbers are not rounded to whole ones of 8 bytes.
_MOST_WHOLE = 1 << 62
_MOST_DIGITS = 300


class _Range(Struct, frozen=True):
    """Values from one to another, both included; None: no such bound."""

    low: Any
    high: Any

    def map(self, low: Callable[[Any], Any], high: Callable[[Any], Any]) -> _Range:
        """Return the range whose bounds are calculated from these; one that can't be is none."""
        return _Range(_calculated(low, self.low), _calculated(high, self.high))


def _calculated(function: Callable[[Any], Any], bound: Any) -> Any:
    try:
        found = None if bound is None else function(bound)
    except (OverflowError, ValueError):  # beyond the calendar
        return None
    return None if isinstance(found, float) and not math.isfinite(found) else found


def implied_range(part: Expression, type_of: Callable[[Column], DataType | None]) -> list[Expression]:
    """Return comparisons of a top-level column with constants that are true wherever a part of a predicate is.

    Parameters
    ----------
    part : Expression
        Bound: a comparison with a constant, or ``in``, of a function that never falls as its operand grows.
    type_of : function(Column) -> DataType or None
        The type of a column.
    """
    if not isinstance(part, Call):
        return []
    found = _compared(part)
    if found is None:
        return []
    value, values = found
    if isinstance(value, Column):  # it is compared itself
        return []
    while not isinstance(value, Column):
        inner = _operand(value, values, type_of)
        if inner is None:
            return []
        value, values = inner
    kind = type_of(value)
    if len(value.path) != 1 or kind is None:
        return []
    compared: Expression = value
    if name_of(kind) == "float":
        compared, kind = Cast(value, _DOUBLE), _DOUBLE
    bounds = ((">=", values.low), ("<=", values.high))
    return [Call(function, (compared, Literal(bound, kind))) for function, bound in bounds if bound is not None]


def _compared(part: Call) -> tuple[Expression, _Range] | None:
    """Return what is compared, and the range of its values if the comparison is true."""
    if part.function == "in":
        value, *members = part.args
        known = [m.value for m in members if isinstance(m, Literal) and m.value is not None]
        if not known or not all(isinstance(m, Literal) for m in members) or not all(map(_is_ordered, known)):
            return None
        return value, _Range(min(known), max(known))
    if part.function not in _FLIPPED:
        return None
    function, (value, constant) = part.function, part.args
    if isinstance(value, Literal):
        function, value, constant = _FLIPPED[function], constant, value
    if not isinstance(constant, Literal) or not _is_ordered(constant.value):
        return None
    return value, _Range(
        None if function in ("<", "<=") else constant.value, None if function in (">", ">=") else constant.value
    )


def _is_ordered(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (int, dt.date)) and not isinstance(value, bool)


def _operand(
    e: Expression, values: _Range, type_of: Callable[[Column], DataType | None]
) -> tuple[Expression, _Range] | None:
    """Return the operand of a function whose values lie in a range, and the range of the operand's."""
    if isinstance(e, Cast):
        return _operand_of_cast(e, values, type_of)
    if not isinstance(e, Call):
        return None
    if e.function in ("round", "bround", "floor", "ceil"):
        return _operand_of_rounding(e, values, type_of)
    if e.function == "year":
        return e.args[0], values.map(lambda y: dt.date(y, 1, 1), lambda y: dt.date(y, 12, 31))
    if e.function in ("trunc", "date_trunc"):
        operand, unit = e.args if e.function == "trunc" else e.args[::-1]
        if not isinstance(unit, Literal):
            return None
        span = dt.timedelta(days=_UNIT_DAYS.get(str(unit.value).lower(), _MOST_DAYS))
        return operand, values.map(lambda t: t - _SLACK, lambda t: t + span + _SLACK)
    return None


def _operand_of_cast(
    e: Cast, values: _Range, type_of: Callable[[Column], DataType | None]
) -> tuple[Expression, _Range] | None:
    target = name_of(e.type)
    if target == "double" and _is_float(e.arg, type_of):
        return e.arg, values
    source = type_of(e.arg) if isinstance(e.arg, Column) else None
    if target != "date" or source is None or name_of(source) not in ("timestamp", "timestamp_ntz"):
        return None
    zone = dt.UTC if name_of(source) == "timestamp" else None

    def start(day: dt.date) -> dt.datetime:
        return dt.datetime(day.year, day.month, day.day, tzinfo=zone)

    return e.arg, values.map(lambda d: start(d) - _SLACK, lambda d: start(d) + dt.timedelta(days=1) + _SLACK)


def _operand_of_rounding(
    e: Call, values: _Range, type_of: Callable[[Column], DataType | None]
) -> tuple[Expression, _Range] | None:
    operand = e.args[0]
    if not _is_float(operand, type_of):
        return None
    step = 1.0
    if e.function in ("floor", "ceil"):
        # NaN becomes 0, infinities become the greatest numbers
        low, high = values.low, values.high
        if (low is None or low <= 0) and (high is None or high >= 0):
            return None
        if any(bound is not None and abs(bound) > _MOST_WHOLE for bound in (low, high)):
            return None
    else:
        digits = e.args[1]
        if not isinstance(digits, Literal) or not isinstance(digits.value, int) or abs(digits.value) > _MOST_DIGITS:
            return None
        step = 10.0**-digits.value

    def margin(bound: float) -> float:
        return step + abs(bound) * _RELATIVE

    return operand, values.map(lambda c: float(c) - margin(c), lambda c: float(c) + margin(c))


def _is_float(e: Expression, type_of: Callable[[Column], DataType | None]) -> bool:
    """Whether an expression is a column of floats, or such a column as a double or rounded."""
    if isinstance(e, Cast):
        return name_of(e.type) == "double" and _is_float(e.arg, type_of)
    if isinstance(e, Call):
        return e.function in ("round", "bround") and _is_float(e.args[0], type_of)
    found = type_of(e) if isinstance(e, Column) else None
    return found is not None and name_of(found) in ("float", "double")
