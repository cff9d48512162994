"""Conditions on the values of columns that an engine can test while it decodes these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.conditions import (
    WILDCARD,
    ColumnTest,
    JoinedTest,
    NullTest,
    RowCondition,
    TextBound,
    ValueCondition,
    ValuePattern,
    ValueRange,
    ValueSet,
)
from delta_core.errors import DeltaError
from delta_core.expressions import parts as expressions
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    Expression,
    Leaf,
    Literal,
    PhysicalColumn,
    Values,
    all_parts,
    conjuncts,
    leaves,
)
from delta_core.kernels.arrow_buffers import array_of, distinct_numbers, is_text, string_bytes, values_of
from delta_core.scan.sources import PhysicalSource, Source
from delta_core.schema.types import arrow_to_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import Compiled

__all__ = ["Accepted", "Build", "column_test", "joined_test", "part_test"]

#: Compiles an expression.
Build = Callable[[Expression], "Compiled"]
#: Each comparison with its operands exchanged, and the one that is true of the other values.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!=", "<=>": "<=>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}
#: Conditions on texts, with the wildcards that are before and after the constant.
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
#: A condition with more parts, unless a set of keys replaces them, or within more others, is left to the evaluator.
_MOST_PARTS, _MOST_DEPTH = 32, 8
#: Functions of constants, the same for each row, that are evaluated once.
_ARITHMETIC = frozenset(("+", "-", "*", "date_add", "date_sub", "add_months", "date_trunc", "trunc", "to_date"))
#: Decimals of a greater exponent are compared by the evaluator.
_MOST_EXPONENT = 100


class Accepted(Struct, frozen=True):
    """Which values of a column a condition is true of.

    Parameters
    ----------
    column : int
    values : ValueCondition or bool
        True of all values but null, or of none.
    with_null : bool
        Whether it is true of null.
    key : int or float, optional
        The only value, if a set of keys may have it.
    """

    column: int
    values: ValueCondition | bool
    with_null: bool = False
    key: int | float | None = None

    def test(self) -> ColumnTest | None:
        """Return the test of them; None if there are none, or null and all others."""
        if isinstance(self.values, bool):
            return None if self.values == self.with_null else NullTest(self.column, self.with_null)
        if not self.with_null:
            return self.values
        if isinstance(self.values, JoinedTest):
            return JoinedTest(self.column, self.values.parts, self.values.is_any, self.values.is_negated, True)
        return JoinedTest(self.column, (self.values,), with_null=True)


#: The values that a condition is true for; None if an engine can't test it.
_Found = Accepted | RowCondition | None


def column_test(
    condition: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType], build: Build | None = None
) -> ColumnTest | RowCondition | None:
    """Return which values of columns a condition accepts, None if it has no such form.

    Parameters
    ----------
    condition : Expression
        Bound. A boolean column, a comparison with a constant, ``in``, ``startswith``, ``endswith``, ``contains``,
        ``like``, or a null test; or several of these with ``and``, ``or`` and ``not``.
    sources : Mapping of Leaf to Source
        Where the values of its leaves come from.
    types : Mapping of Leaf to pyarrow.DataType
        Of its leaves.
    build : function(Expression) -> Compiled, optional
        Compiles arithmetic of constants, which is evaluated once.

    Notes
    -----
    NaN is greater than any number, and -0.0 equals 0.0, as in all comparisons.
    """
    return joined_test([part_test(part, sources, types, build) for part in conjuncts(condition)])


def joined_test(found: Sequence[_Found]) -> ColumnTest | RowCondition | None:
    """Return the test of a condition from those of the parts that ``and`` joins in it; see `column_test`.

    Parameters
    ----------
    found : sequence
        The result of `part_test` for each part.
    """
    accepted = _joined(found, False)
    return accepted.test() if isinstance(accepted, Accepted) else accepted


def part_test(
    e: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType], build: Build | None = None
) -> _Found:
    """Return what one part of a condition accepts, for `joined_test`; None if it has no such form.

    Parameters
    ----------
    e : Expression
        The part, bound.
    sources, types, build
        See `column_test`.
    """
    return _accepted(e, False, _Columns(sources, types, build), 0)


class _Columns(Struct, frozen=True):
    sources: Mapping[Leaf, Source]
    types: Mapping[Leaf, pa.DataType]
    build: Build | None

    def constant(self, e: Expression) -> Literal | None:
        """Return the value of an expression without leaves, such as the date seven days before today."""
        if isinstance(e, Literal):
            return e
        if self.build is None or not all(
            isinstance(part, (Literal, Cast)) or (isinstance(part, Call) and part.function in _ARITHMETIC)
            for part in all_parts(e)
        ):
            return None
        try:
            compiled = self.build(e)
            found = compiled([], 1)
            value = (found if isinstance(found, pa.Scalar) else found[0]).as_py()
            return Literal(value, arrow_to_type(compiled.type))
        except (DeltaError, pa.ArrowException, ArithmeticError, ValueError):
            return None  # it is raised for a row, if any is tested


def _accepted(e: Expression, is_negated: bool, columns: _Columns, depth: int) -> _Found:
    """Return what a condition is true of, or the opposite of it; most are neither true nor false of null."""
    if depth > _MOST_DEPTH:
        return None
    if not isinstance(e, Call):
        return _of_comparison("!=" if is_negated else "=", e, True, columns)
    if e.function == "not":
        return _accepted(e.args[0], not is_negated, columns, depth + 1)
    if e.function in ("and", "or"):
        found = []
        for part in _flattened(e):
            found.append(_accepted(part, is_negated, columns, depth + 1))
            if found[-1] is None:
                return None
        return _joined(found, (e.function == "or") != is_negated)
    return _of_operands(e, is_negated, columns) if e.function in _MIRRORED else _of_value(e, is_negated, columns)


def _of_operands(e: Call, is_negated: bool, columns: _Columns) -> _Found:
    (value, other), function = e.args, e.function
    if not leaves(value):
        value, other, function = other, value, _MIRRORED[function]
    constant = columns.constant(other)
    if constant is None:
        return None
    if function == "<=>":
        return _of_same(value, constant, is_negated, columns)
    return _of_comparison(_OPPOSITE[function] if is_negated else function, value, constant, columns)


def _of_value(e: Call, is_negated: bool, columns: _Columns) -> _Found:
    value = _stored(e.args[0], columns.types)
    column = None if value is None else _column(value, columns.sources)
    if value is None or column is None:
        return None
    if e.function in ("isnull", "isnotnull"):
        is_null = (e.function == "isnull") != is_negated
        return Accepted(column, not is_null, is_null)
    cast, t = e.args[0], columns.types[value]
    test: ValueCondition | None = None
    if e.function == "in":
        compared = cast.type.to_arrow() if isinstance(cast, Cast) else t
        test = _of_members(column, e.args[1:], compared, t, is_negated)
    elif e.function in _PATTERNS:
        test = _of_pattern(column, e, t)
    if test is None:
        return None
    return Accepted(column, JoinedTest(column, (test,), is_negated=True) if is_negated else test)


def _flattened(e: Call) -> Iterator[Expression]:
    """Yield the parts that the same function joins."""
    left: list[Expression] = [e]
    while left:
        part = left.pop()
        if isinstance(part, Call) and part.function == e.function:
            left.extend(reversed(part.args))
        else:
            yield part


def _joined(found: Sequence[_Found], is_any: bool) -> _Found:
    """Return what all conditions are true of, or any."""
    by_column: dict[int, list[Accepted]] = {}
    others: list[ColumnTest | RowCondition] = []
    for part in found:
        if part is None:
            return None
        if isinstance(part, Accepted):
            by_column.setdefault(part.column, []).append(part)
        elif part.is_any == is_any:
            others += part.parts
        else:
            others.append(part)
    if len(by_column) == 1 and not others:
        (same,) = by_column.values()
        return _joined_values(same, is_any)
    for same in by_column.values():
        accepted = _joined_values(same, is_any)
        test = None if accepted is None else accepted.test()
        if test is None:
            return None
        others.append(test)
    return RowCondition(tuple(others), is_any) if 0 < len(others) <= _MOST_PARTS else None


def _joined_values(parts: Sequence[Accepted], is_any: bool) -> Accepted | None:
    """Return which values of one column all conditions are true of, or any."""
    column = parts[0].column
    with_null = any(p.with_null for p in parts) if is_any else all(p.with_null for p in parts)
    tests: list[ValueCondition] = []
    keys: list[int | float] = []
    for part in parts:
        if isinstance(part.values, bool):
            if part.values == is_any:
                return Accepted(column, is_any, with_null)
        elif is_any and part.key is not None:
            keys.append(part.key)
        elif isinstance(part.values, JoinedTest) and part.values.is_any == is_any and not part.values.is_negated:
            tests += part.values.parts
        else:
            tests.append(part.values)
    if len(keys) == 1:
        tests.append(ValueRange(column, keys[0], keys[0]))
    tests = _with_one_set(column, tests, keys if len(keys) > 1 else []) if is_any else _with_one_range(column, tests)
    if not tests:
        return Accepted(column, not is_any, with_null)
    if len(tests) > _MOST_PARTS:
        return None
    return Accepted(column, tests[0] if len(tests) == 1 else JoinedTest(column, tuple(tests), is_any), with_null)


def _with_one_range(column: int, tests: Sequence[ValueCondition]) -> list[ValueCondition]:
    """Join conditions with ``and``: one range replaces several."""
    ranges = [test for test in tests if isinstance(test, ValueRange)]
    if len(ranges) < 2:
        return list(tests)
    least, most = max(r.least for r in ranges), min(r.most for r in ranges)
    joint = ValueRange(column, least, most, all(r.with_nan for r in ranges))
    return [joint, *(test for test in tests if not isinstance(test, ValueRange))]


def _with_one_set(column: int, tests: Sequence[ValueCondition], keys: Sequence[int | float]) -> list[ValueCondition]:
    """Join conditions with ``or``: one set replaces keys and several sets."""
    sets = [test for test in tests if isinstance(test, ValueSet)]
    others = [test for test in tests if not isinstance(test, ValueSet)]
    if len(sets) + bool(keys) < 2 and not keys:
        return list(tests)
    texts = {text for test in sets if isinstance(test.keys, tuple) for text in test.keys}
    if texts:
        return [ValueSet(column, tuple(sorted(texts))), *others]
    kind = np.float64 if keys and isinstance(keys[0], float) else np.int64
    numbers = [test.keys for test in sets if not isinstance(test.keys, tuple)]
    joint = np.concatenate([*numbers, np.array(keys, kind)] if keys else numbers)
    return [ValueSet(column, distinct_numbers(joint + 0)), *others]


def _of_members(
    column: int, members: tuple[Expression, ...], t: pa.DataType, stored: pa.DataType, is_negated: bool
) -> ValueSet | JoinedTest | None:
    """Return the test of a list; a null in it makes what is not found unknown, which does not pass either."""
    first = members[0]
    has_null = any(m.has_null if isinstance(m, Values) else getattr(m, "value", None) is None for m in members)
    if has_null and is_negated:
        return None
    if pa.types.is_decimal128(t):
        return _of_decimals(column, members, stored)
    array = first.array if len(members) == 1 and isinstance(first, Values) else _literals(members, t)
    if array is None or not _are_stored_alike(array.type, t) or array.null_count:
        return None
    if len(array) > (_MOST_TEXTS if is_text(array.type) else _MOST_KEYS):
        return None
    keys = _keys(array)
    return None if keys is None else ValueSet(column, keys)


def _of_decimals(column: int, members: tuple[Expression, ...], t: pa.DataType) -> JoinedTest | None:
    """Return the test of a list of decimals, of a column of these or of whole numbers."""
    if len(members) > _MOST_PARTS or not all(isinstance(m, Literal) for m in members):
        return None
    ranges = []
    for member in members:
        assert isinstance(member, Literal)
        limits = None if member.value is None else _exact_bounds("=", member.value, t)
        if limits is None and member.value is not None:
            return None
        if limits is not None:
            ranges.append(ValueRange(column, *limits))
    return JoinedTest(column, tuple(ranges), is_any=True) if ranges else None


def _literals(members: tuple[Expression, ...], t: pa.DataType) -> pa.Array | None:
    known = [m for m in members if isinstance(m, Literal) and m.value is not None]
    nulls = sum(isinstance(m, Literal) and m.value is None for m in members)
    if len(known) + nulls < len(members):
        return None
    if any(m.type is None or not _are_stored_alike(m.type.to_arrow(), t) for m in known):
        return None
    return array_of([m.value for m in known], _narrow(t)) if _is_any_text(t) or _is_stored_number(t) else None


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
    if (
        len(texts) < len(e.args) - 1
        or not all(isinstance(text, str) for text in texts)
        or not pa.types.is_string(_narrow(t))
    ):
        return None
    before, behind = _PATTERNS[e.function]
    characters = expressions.parse_like(*texts) if e.function == "like" else [*before, *texts[0], *behind]
    # of each part the texts between its wildcards of one character
    parts = [[""]]
    for character in characters:
        if character is None:
            parts.append([""])
        elif character:
            parts[-1][-1] += character
        else:
            parts[-1].append("")
    keys = tuple(WILDCARD.join(string_bytes(array_of([text], pa.string())) for text in part) for part in parts)
    is_pattern = len(keys) > 1 or len(parts[0]) > 1
    return ValuePattern(column, keys) if is_pattern else ValueSet(column, keys)


def _of_comparison(function: str, value: Expression, constant: Literal | bool, columns: _Columns) -> Accepted | None:
    """Return what a comparison is true of; of `True` that a boolean column is."""
    stored = _stored(value, columns.types)
    column = None if stored is None else _column(stored, columns.sources)
    if stored is None or column is None:
        return None
    if function == "!=":
        found = _of_comparison("=", value, constant, columns)
        if found is None or isinstance(found.values, bool):
            return None
        return Accepted(column, JoinedTest(column, (found.values,), is_negated=True))
    t = columns.types[stored]
    known = constant if isinstance(constant, bool) else constant.value
    if isinstance(known, bool) or pa.types.is_boolean(t):
        is_flag = isinstance(known, bool) and pa.types.is_boolean(t) and stored is value
        return _in_range(column, _whole_bounds(function, int(known), int(known), 0, 1)) if is_flag else None
    if known is None or isinstance(constant, bool) or constant.type is None:
        return None
    if pa.types.is_float32(t) and isinstance(value, Cast):
        bounds = _narrow_bounds(function, known)
        return None if bounds is None else Accepted(column, ValueRange(column, *bounds))
    if pa.types.is_decimal128(t) or (isinstance(value, Cast) and not pa.types.is_timestamp(t)):
        return _in_range(column, _exact_bounds(function, known, t))
    return _of_numbers(function, column, known, t) if _are_stored_alike(constant.type.to_arrow(), t) else None


def _of_numbers(function: str, column: int, constant: Any, t: pa.DataType) -> Accepted | None:
    """Return what a comparison with a constant of the same type is true of, a text or a number."""
    if _is_any_text(t):
        (text,) = array_of([constant], _narrow(t)).view(pa.binary()).to_pylist()
        if function == "=":
            return Accepted(column, ValueSet(column, (text,)))
        bound = TextBound(column, text, function in ("<=", ">"))
        return Accepted(column, bound if function in ("<", "<=") else JoinedTest(column, (bound,), is_negated=True))
    bounds = _bounds(function, constant, t)
    if bounds is None:
        return None
    is_key = function == "=" and not pa.types.is_uint64(t)  # keys of a set have a sign
    return Accepted(column, ValueRange(column, *bounds), key=bounds[0] if is_key else None)


def _in_range(column: int, bounds: tuple[int, int] | None) -> Accepted | None:
    return None if bounds is None else Accepted(column, ValueRange(column, *bounds))


def _of_same(value: Expression, constant: Literal, is_negated: bool, columns: _Columns) -> Accepted | None:
    """Return what `<=>` is true of, which is false of null, or true if the constant is null."""
    if constant.value is None:
        stored = _stored(value, columns.types)
        column = None if stored is None else _column(stored, columns.sources)
        return None if column is None else Accepted(column, is_negated, not is_negated)
    found = _of_comparison("!=" if is_negated else "=", value, constant, columns)
    return None if found is None else Accepted(found.column, found.values, is_negated, found.key)


def _is_stored_number(t: pa.DataType) -> bool:
    """Whether values of a type are stored as a number with the same order."""
    types = pa.types
    is_time = types.is_date32(t) or types.is_timestamp(t)
    return bool(is_time or types.is_float64(t) or types.is_float32(t) or types.is_integer(t))


def _is_any_text(t: pa.DataType) -> bool:
    """Whether values of a type are strings or bytes."""
    return is_text(t) or bool(pa.types.is_large_string(t) or pa.types.is_large_binary(t))


def _narrow(t: pa.DataType) -> pa.DataType:
    """Return the type of strings or bytes with 32-bit offsets; any other type as it is."""
    if pa.types.is_large_string(t):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(t) else t


def _are_stored_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of two types that are equal are stored as the same number, or as the same bytes."""
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        # a time without a zone is one of UTC
        return bool(one.unit == other.unit)
    return bool(_narrow(one) == _narrow(other))


def _stored(e: Expression, types: Mapping[Leaf, pa.DataType]) -> Column | PhysicalColumn | None:
    """Return the column that an expression is, or whose numbers it casts to a type that holds all of them."""
    if isinstance(e, (Column, PhysicalColumn)):
        return e
    if not isinstance(e, Cast) or not isinstance(e.arg, (Column, PhysicalColumn)):
        return None
    before, after = types[e.arg], e.type.to_arrow()
    if pa.types.is_float32(before):
        return e.arg if pa.types.is_float64(after) else None
    if pa.types.is_timestamp(before):
        return e.arg if pa.types.is_timestamp(after) and _are_stored_alike(before, after) else None
    if not pa.types.is_signed_integer(before):
        return None
    if pa.types.is_decimal128(after):
        return e.arg if 0 <= after.scale <= after.precision - len(str(1 << before.bit_width - 1)) else None
    return e.arg if pa.types.is_signed_integer(after) and before.bit_width < after.bit_width else None


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
    return _whole_bounds(function, below, above, -(1 << t.bit_width - 1), (1 << t.bit_width - 1) - 1)


def _whole_bounds(function: str, below: int, above: int, least: int, most: int) -> tuple[int, int] | None:
    """Return the bounds among two of a comparison with a constant between two whole numbers, or equal to both."""
    if function == "=":
        least, most = max(least, above), min(most, below)
    elif function in ("<", "<="):
        most = min(most, above - 1 if function == "<" else below)
    else:
        least = max(least, below + 1 if function == ">" else above)
    return (least, most) if least <= most else None


def _narrow_bounds(function: str, constant: Any) -> tuple[float, float, bool] | None:
    """Return the bounds of a comparison of floats of 4 bytes with one of 8."""
    with np.errstate(all="ignore"):  # numpy warns of what is beyond the greatest number
        nearest = np.float32(constant)
        if not np.isfinite(nearest):
            return None
        before, behind = float(np.nextafter(nearest, -np.inf)), float(np.nextafter(nearest, np.inf))
    exact = float(nearest)
    if function == "=":
        return (exact, exact, False) if exact == constant else None
    if function in ("<", "<="):
        return -math.inf, exact if exact < constant or (function == "<=" and exact == constant) else before, False
    return exact if exact > constant or (function == ">=" and exact == constant) else behind, math.inf, True


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
