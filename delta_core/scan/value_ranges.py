"""Conditions on one column's values that an engine can test while it decodes the column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.expressions import parts as expressions
from delta_core.expressions.ast import Call, Cast, Column, Expression, Leaf, Literal, PhysicalColumn, Values, conjuncts
from delta_core.kernels.arrow_buffers import array_of, distinct_numbers, string_bytes, values_of
from delta_core.kernels.parquet_pages import ColumnTest, NullTest, ValuePattern, ValueRange, ValueSet, is_text
from delta_core.scan.plan import PhysicalSource, Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["column_test", "joined_test", "part_test"]

#: Each comparison with its operands exchanged.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
#: Conditions on texts, with the wildcards that are before and behind the constant.
_PATTERNS: Mapping[str, tuple[list[None], list[None]]] = {
    "startswith": ([], [None]),
    "endswith": ([None], []),
    "contains": ([None], [None]),
    "like": ([], []),
}
#: Of more keys each value is looked up in a table of all of them, whole columns at a time. Strings become Python's
#: first, and take more memory.
_MOST_KEYS = 1_000_000
_MOST_TEXTS = 100_000
#: Decimals of a greater exponent are compared by the evaluator.
_MOST_EXPONENT = 100


def column_test(
    condition: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType]
) -> ColumnTest | None:
    """Return which values of a column a condition accepts, None if it has no such form.

    Parameters
    ----------
    condition : Expression
        Bound. A comparison with a constant, ``in``, ``startswith``, ``endswith``, ``contains``, ``like`` without ``_``,
        or a null test. Several comparisons of numbers, and tests that the column is not null, may be joined with
        ``and``.
    sources : Mapping of Leaf to Source
        Where the values of its leaves come from.
    types : Mapping of Leaf to pyarrow.DataType
        Of its leaves.

    Notes
    -----
    NaN is greater than any number, and -0.0 equals 0.0, as in all comparisons.
    """
    return joined_test([part_test(part, sources, types) for part in conjuncts(condition)])


def joined_test(found: Sequence[ColumnTest | None]) -> ColumnTest | None:
    """Return the test of a condition from those of the parts that ``and`` joins in it; see `column_test`."""
    tests = [test for test in found if test is not None]
    if not tests or len(tests) < len(found) or len({test.column for test in tests}) > 1:
        return None
    # the other tests are never true of null
    others = [test for test in tests if test != NullTest(test.column, False)]
    ranges = [test for test in others if isinstance(test, ValueRange)]
    if len(others) > 1 and len(ranges) == len(others):
        return reduce(_both, ranges)
    is_absent = len(others) == 1 and isinstance(others[0], NullTest) and len(tests) > 1
    return None if len(others) > 1 or is_absent else (others or tests)[0]


def part_test(e: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType]) -> ColumnTest | None:
    """Return the test of one part of a condition; see `column_test`."""
    if not isinstance(e, Call):
        return None
    if e.function in _MIRRORED:
        return _of_comparison(e, sources, types)
    value = _stored(e.args[0], types)
    column = None if value is None else _column(value, sources)
    if value is None or column is None:
        return None
    if e.function in ("isnull", "isnotnull"):
        return NullTest(column, e.function == "isnull")
    cast, t = e.args[0], types[value]
    if e.function == "in":
        return _of_members(column, e.args[1:], cast.type.to_arrow() if isinstance(cast, Cast) else t)
    return _of_pattern(column, e, t) if e.function in _PATTERNS else None


def _of_members(column: int, members: tuple[Expression, ...], t: pa.DataType) -> ValueSet | None:
    """Return the test of a list; a null in it makes what is not found unknown, which does not pass either."""
    array = members[0].array if len(members) == 1 and isinstance(members[0], Values) else _literals(members, t)
    if array is None or array.type != t or array.null_count:
        return None
    if len(array) > (_MOST_TEXTS if is_text(t) else _MOST_KEYS):
        return None
    keys = _keys(array)
    return None if keys is None else ValueSet(column, keys)


def _literals(members: tuple[Expression, ...], t: pa.DataType) -> pa.Array | None:
    known = [m for m in members if isinstance(m, Literal) and m.value is not None]
    nulls = sum(isinstance(m, Literal) and m.value is None for m in members)
    if len(known) + nulls < len(members) or any(m.type is None or m.type.to_arrow() != t for m in known):
        return None
    return array_of([m.value for m in known], t) if is_text(t) or _is_stored_number(t) else None


def _keys(array: pa.Array) -> NDArray[Any] | tuple[bytes, ...] | None:
    """Return constants as the ascending keys of a set; None for other types, and for NaN."""
    if is_text(array.type):
        # no call of Python for each of them
        return tuple(sorted(set(array.view(pa.binary()).to_pylist())))
    if not _is_stored_number(array.type):
        return None
    values = values_of(array)
    if values.dtype.kind != "f":
        return distinct_numbers(values.astype(np.int64))
    return None if np.isnan(values).any() else distinct_numbers(values.astype(np.float64) + 0.0)


def _of_pattern(column: int, e: Call, t: pa.DataType) -> ValueSet | ValuePattern | None:
    texts = [a.value for a in e.args[1:] if isinstance(a, Literal)]
    if len(texts) < len(e.args) - 1 or not all(isinstance(text, str) for text in texts) or not pa.types.is_string(t):
        return None
    before, behind = _PATTERNS[e.function]
    characters = expressions.parse_like(*texts) if e.function == "like" else [*before, *texts[0], *behind]
    if "" in characters:  # the wildcard of one character
        return None
    parts = [""]
    for character in characters:
        if character is None:
            parts.append("")
        else:
            parts[-1] += character
    keys = tuple(string_bytes(array_of([part], t)) for part in parts)
    return ValuePattern(column, keys) if len(keys) > 1 else ValueSet(column, keys)


def _both(a: ValueRange, b: ValueRange) -> ValueRange:
    return ValueRange(a.column, max(a.least, b.least), min(a.most, b.most), a.with_nan and b.with_nan)


def _of_comparison(
    e: Call, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType]
) -> ValueRange | ValueSet | None:
    (value, constant), function = e.args, e.function
    if isinstance(value, Literal):
        value, constant, function = constant, value, _MIRRORED[function]
    stored = _stored(value, types)
    column = None if stored is None else _column(stored, sources)
    if stored is None or column is None or not isinstance(constant, Literal):
        return None
    t = types[stored]
    if constant.value is None or constant.type is None:
        return None
    if pa.types.is_decimal128(t) or isinstance(value, Cast):
        limits = _exact_bounds(function, constant.value, t)
        return None if limits is None else ValueRange(column, *limits)
    if constant.type.to_arrow() != t:
        return None
    if is_text(t):
        keys = _keys(array_of([constant.value], t)) if function == "=" else None
        return None if keys is None else ValueSet(column, keys)
    bounds = _bounds(function, constant.value, t)
    return None if bounds is None else ValueRange(column, *bounds)


def _is_stored_number(t: pa.DataType) -> bool:
    """Whether Arrow and Parquet store values of a type as the same number."""
    types = pa.types
    is_time = types.is_date32(t) or (types.is_timestamp(t) and t.unit == "us")
    return bool(is_time or types.is_float64(t) or types.is_float32(t) or types.is_signed_integer(t))


def _stored(e: Expression, types: Mapping[Leaf, pa.DataType]) -> Column | PhysicalColumn | None:
    """Return the column that an expression is, or whose whole numbers it casts to a type of more bytes."""
    if isinstance(e, (Column, PhysicalColumn)):
        return e
    if not isinstance(e, Cast) or not isinstance(e.arg, (Column, PhysicalColumn)):
        return None
    before, after = types[e.arg], e.type.to_arrow()
    is_wider = pa.types.is_signed_integer(before) and pa.types.is_signed_integer(after)
    return e.arg if is_wider and before.bit_width < after.bit_width else None


def _exact_bounds(function: str, constant: Any, t: pa.DataType) -> tuple[int, int] | None:
    """Return the bounds of a comparison of decimals, or of whole numbers, with an exact constant of any size."""
    if isinstance(constant, bool) or not isinstance(constant, (int, Decimal)):
        return None
    number, scale = Decimal(constant), t.scale if pa.types.is_decimal128(t) else 0
    if not number.is_finite() or abs(int(number.as_tuple().exponent)) > _MOST_EXPONENT:
        return None
    # no arithmetic of decimals: their context would round
    sign, digits, exponent = number.as_tuple()
    whole, power = int("".join(map(str, digits))) * (-1 if sign else 1), int(exponent) + scale
    below = whole * 10**power if power >= 0 else whole // 10**-power
    above = below if power >= 0 else -(-whole // 10**-power)
    least, most = -(1 << t.bit_width - 1), (1 << t.bit_width - 1) - 1
    if function == "=":
        least, most = max(least, above), min(most, below)
    elif function in ("<", "<="):
        most = min(most, above - 1 if function == "<" else below)
    else:
        least = max(least, below + 1 if function == ">" else above)
    return (least, most) if least <= most else None


def _column(e: Expression, sources: Mapping[Leaf, Source]) -> int | None:
    """Return the number of the physical column that an expression is; None if it is none as a whole."""
    source = sources.get(e) if isinstance(e, (Column, PhysicalColumn)) else None
    return source.index if isinstance(source, PhysicalSource) and not source.path else None


def _bounds(function: str, constant: Any, t: pa.DataType) -> tuple[Any, Any, bool] | None:
    if not _is_stored_number(t):
        return None
    is_float = pa.types.is_floating(t)
    stored = values_of(array_of([constant], t))[0]
    if is_float:
        if not math.isfinite(stored):
            return None
        with np.errstate(all="ignore"):  # numpy warns of what is beyond the greatest number
            below, above = float(np.nextafter(stored, -np.inf)), float(np.nextafter(stored, np.inf))
        least, most = -math.inf, math.inf
    else:
        # one beyond what the type holds: a range without values
        below, above = int(stored) - 1, int(stored) + 1
        limits = np.iinfo(stored.dtype)
        least, most = int(limits.min), int(limits.max)
        if below < least or above > most:
            return None
    exact = float(stored) if is_float else int(stored)
    if function == "=":
        return exact, exact, False
    if function in ("<", "<="):
        return least, below if function == "<" else exact, False
    return above if function == ">" else exact, most, is_float
