"""Tests of the bounds of a few files or row groups in plain Python: an Arrow call takes longer than to compare them.

Dates are days and timestamps are microseconds, as Arrow stores them.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from delta_core.expressions.ast import Call, Cast, Expression, FileStatistic, Leaf, Literal, PartitionValue, Values
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["BoundTest", "bound_test"]

#: The value of each leaf for one file or row group, None if it is not known, to true, false or None. NaN has no test.
BoundTest = Callable[[Mapping[Leaf, Any]], Any]
#: Bits of whole numbers.
_WHOLE = {"byte": 8, "short": 16, "integer": 32, "long": 64}
#: Types that are compared with the same one only.
_OTHERS = frozenset(("double", "string", "boolean", "date", "timestamp", "timestamp_ntz"))
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_COMPARISONS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
#: Deeper expressions, and longer lists of values, are left to the evaluator.
_MOST_LEVELS = 32
_MOST_VALUES = 1_000


def bound_test(e: Expression, levels: int = _MOST_LEVELS) -> BoundTest | None:
    """Return a function that evaluates an expression for one file or row group.

    Parameters
    ----------
    e : Expression
        Bound, over FileStatistic and PartitionValue leaves.
    levels : int
        How deep the expression may be.

    Returns
    -------
    Callable or None
        None if a part is not one of comparisons of whole numbers, doubles other than NaN, strings, booleans, dates and
        timestamps, of null tests and of the functions that join them: the evaluator then evaluates all of it.
    """
    if levels == 0:
        return None
    if isinstance(e, Literal):
        return _constant(e)
    if isinstance(e, (FileStatistic, PartitionValue)):
        return _leaf(e)
    if isinstance(e, Cast):  # to a wider type
        return None if _kind(e) is None else bound_test(e.arg, levels - 1)
    if not isinstance(e, Call):
        return None
    if e.function == "between any":
        return _between_any(e, levels)
    if e.function in _COMPARISONS and not _are_comparable(e.args):
        return None
    parts = [bound_test(a, levels - 1) for a in e.args]
    known = [p for p in parts if p is not None]
    make = _MAKERS.get(e.function)
    return None if make is None or len(known) < len(parts) else make(e.function, known)


def _constant(e: Literal) -> BoundTest | None:
    value, name = e.value, _name(e.type)
    if value is not None and name in ("date", "timestamp", "timestamp_ntz"):
        value = _stored(value, name)
        if value is None:
            return None
    elif value is not None:
        kind = int if name in _WHOLE else {"double": float, "string": str, "boolean": bool}.get(name)
        if type(value) is not kind or value != value:
            return None
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            return None  # the evaluator rejects it: no column holds half of a surrogate pair
    return lambda _: value


def _stored(value: Any, name: str) -> int | None:
    """Return the days or microseconds of a date or timestamp; None for a value of another kind."""
    if name == "date":
        return value.toordinal() - _EPOCH_DAY if type(value) is date else None
    if type(value) is not datetime or (value.tzinfo is None) != (name == "timestamp_ntz"):
        return None
    return ((value.replace(tzinfo=UTC) if value.tzinfo is None else value) - _EPOCH) // _MICROSECOND


def _leaf(e: FileStatistic | PartitionValue) -> BoundTest:
    name = _name(e.type)
    if name not in _WHOLE:
        return lambda bounds: bounds[e]
    limit = 1 << (_WHOLE[name] - 1)

    def number(bounds: Mapping[Leaf, Any]) -> Any:
        value = bounds[e]
        return None if value is None or not -limit <= value < limit else value

    return number


def _name(t: DataType | None) -> str:
    return t.type if isinstance(t, PrimitiveType) else ""


def _are_comparable(args: Sequence[Expression]) -> bool:
    """Whether Python compares the arguments as Spark does."""
    kinds = {_kind(a) for a in args}
    return len(kinds) == 1 and None not in kinds


def _kind(e: Expression) -> str | None:
    if isinstance(e, Call) and e.function == "if":
        return _kind(e.args[-1])
    if isinstance(e, Cast):
        inner, bits = _name(getattr(e.arg, "type", None)), _WHOLE.get(_name(e.type), 0)
        return "whole" if _kind(e.arg) == "whole" and 0 < _WHOLE.get(inner, 65) <= bits else None
    if not isinstance(e, (Literal, FileStatistic, PartitionValue)):
        return None
    name = _name(e.type)
    return "whole" if name in _WHOLE else name if name in _OTHERS else None


def _comparison(name: str, parts: Sequence[BoundTest]) -> BoundTest:
    compare, (left, right) = _COMPARISONS[name], parts

    def test(bounds: Mapping[Leaf, Any]) -> Any:
        a, b = left(bounds), right(bounds)
        return None if a is None or b is None else compare(a, b)

    return test


def _junction(name: str, parts: Sequence[BoundTest]) -> BoundTest:
    decisive = name == "or"

    def test(bounds: Mapping[Leaf, Any]) -> Any:
        result: bool | None = not decisive
        for part in parts:
            value = part(bounds)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return test


def _not(_: str, parts: Sequence[BoundTest]) -> BoundTest:
    (part,) = parts

    def test(bounds: Mapping[Leaf, Any]) -> Any:
        value = part(bounds)
        return None if value is None else not value

    return test


def _null_test(name: str, parts: Sequence[BoundTest]) -> BoundTest:
    (part,), is_null = parts, name == "isnull"
    return lambda bounds: (part(bounds) is None) == is_null


def _is_nan(_: str, parts: Sequence[BoundTest]) -> BoundTest:
    (part,) = parts

    def test(bounds: Mapping[Leaf, Any]) -> bool:
        value = part(bounds)
        return bool(value != value)

    return test


def _if(_: str, parts: Sequence[BoundTest]) -> BoundTest:
    condition, then, otherwise = parts
    return lambda bounds: (then if condition(bounds) is True else otherwise)(bounds)


def _between_any(e: Call, levels: int) -> BoundTest | None:
    low, high, values = e.args
    if (
        not isinstance(values, Values)
        or not values.is_sorted
        or len(values.array) > _MOST_VALUES
        or _name(values.type) not in ("string", "long", "integer")
        or {_kind(low), _kind(high)} != {"string" if _name(values.type) == "string" else "whole"}
    ):
        return None
    least, most = bound_test(low, levels - 1), bound_test(high, levels - 1)
    if least is None or most is None:
        return None
    members = values.array.to_pylist()

    def test(bounds: Mapping[Leaf, Any]) -> Any:
        a, b = least(bounds), most(bounds)
        if a is None and b is None:
            return None
        first = 0 if a is None else bisect_left(members, a)
        return first < (len(members) if b is None else bisect_right(members, b))

    return test


_MAKERS: Mapping[str, Callable[[str, Sequence[BoundTest]], BoundTest]] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(("and", "or"), _junction),
    **dict.fromkeys(("isnull", "isnotnull"), _null_test),
    "not": _not,
    "isnan": _is_nan,
    "if": _if,
}
