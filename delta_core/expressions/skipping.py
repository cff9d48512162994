"""From a predicate over rows, predicates over files: by partition values, and by statistics.

Two different promises. The *partition* predicate is implied by the row predicate: if it is not true, no row
of the file matches. The *statistics* predicate is false only if no row can match; true and null keep the
file, so a missing statistic never prunes. Both hold for what writers really record:

- bounds are bounds, not values: text may be cut, bounds may be wide (``tightBounds`` false), and NaN, the greatest
  of all values, is left out, so the maximum of floats bounds nothing unless the predicate shuts NaN out;
- timestamps are floored to milliseconds, so the maximum is up to a millisecond larger;
- a column that was FLOAT and is DOUBLE now has bounds in a float's shortest text, which as a double is another number;
- bounds of decimals may be rounded to doubles; `kernel.log.decimal_bounds` widens them before they are compared;
- ``nullCount`` reports something if it is 0 or equal to ``numRecords``; there, bounds mean nothing.

A part that may raise for a row (`raising`) excludes no file in which it does, nor does anything that rows reach only
after it: whether a predicate fails must not depend on which files its statistics exclude.

The same predicate serves Parquet row groups, with a group's bounds, null count and rows instead of a file's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from delta_core.expressions import parts as late
from delta_core.expressions.ast import (
    NUM_RECORDS,
    Call,
    Cast,
    Column,
    Expression,
    FileStatistic,
    Literal,
    PartitionValue,
    Values,
    all_of,
    any_of,
    conjuncts,
    leaves,
    negate,
    transform,
)
from delta_core.expressions.coercion import bounds_type, canonical, name_of
from delta_core.expressions.functions import COMPARISONS, can_test_files
from delta_core.expressions.raising import cast_may_raise, may_raise, only_casts_raise, raising_last, types_in
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.fields import ColumnMap, find
from delta_core.schema.types import DataType, Field, PrimitiveType, StructType

__all__ = ["SkippingPlan", "implied_by", "plan_skipping"]

_LONG, _BOOLEAN = PrimitiveType("long"), PrimitiveType("boolean")
_FALSE = Literal(False, _BOOLEAN)
_INVERSE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: How many monotone functions around a column are looked through.
_MONOTONE_LEVELS = 8
_MILLISECOND = dt.timedelta(milliseconds=1)
_UNBOUNDED_TYPES = ("binary", "void", "variant")


class SkippingPlan(Struct, frozen=True):
    """How to choose files before reading them; None if nothing is to be tested.

    Parameters
    ----------
    partition : Expression, optional
        Over PartitionValue leaves. Drop the file unless it is true.
    statistics : Expression, optional
        Over FileStatistic and PartitionValue leaves. Drop the file only if it is false.
    """

    partition: Expression | None
    statistics: Expression | None

    @property
    def row_groups(self) -> Expression | None:
        """The statistics predicate over FileStatistic leaves alone, for the parts of one file.

        A part that requires partition values is unknown there: a null value in their place would make ``isnotnull``
        false.
        """
        return None if self.statistics is None else run(_unpartitioned(self.statistics))


def _unpartitioned(e: Expression) -> Steps[Expression]:
    if isinstance(e, Call) and e.function in ("and", "or", "not"):
        args = yield from each(map(_unpartitioned, e.args))
        return replace(e, args=tuple(args), sql="")
    return Literal(None, _BOOLEAN) if any(isinstance(leaf, PartitionValue) for leaf in leaves(e)) else e


def plan_skipping(
    predicate: Expression | None,
    schema: StructType,
    column_map: ColumnMap,
    partition_columns: Sequence[str],
    without_bounds: Collection[str] = (),
) -> SkippingPlan:
    """Plan which files a predicate needs.

    Parameters
    ----------
    predicate : Expression
        Bound to ``schema``: logical columns, typed constants. Parts over other leaves prune nothing.
    schema : StructType
        The table's columns by their logical names.
    column_map : ColumnMap
        Their physical names, by which statistics and partition values are found.
    partition_columns : sequence of str
        Logical names, as in ``metaData.partitionColumns``.
    without_bounds : collection of str
        Logical names of top-level columns whose bounds are not those of the values: only their nulls are looked at.
    """
    scope = _Scope(schema, column_map, frozenset(partition_columns), frozenset(without_bounds))
    by_partition: list[Expression] = []
    by_statistics: list[Expression] = []
    parts = raising_last(conjuncts(predicate), scope.type_of)
    is_exact = all(scope.as_partition(part) is not None for part in parts)
    for part in parts:
        raises = not is_exact and may_raise(part, scope.type_of)
        exact = None if raises else scope.as_partition(part)
        if exact is not None:
            by_partition.append(exact)
            continue
        weaker = run(_weaken(part, scope, positive=True))
        if weaker is not None:
            by_partition.append(weaker)
        by_statistics += [part] if raises else [part, *implied_by(part, scope.type_of)]
        if raises:
            break  # no row reaches the others before it
    joined = all_of(by_statistics)
    statistics = None if joined is None else run(_may_match(joined, scope, frozenset()))
    # Bounds drop far more files than null counts do, and what is requested later is evaluated for fewer files.
    ordered = sorted(conjuncts(statistics), key=_counts_nulls)
    return SkippingPlan(all_of(by_partition), all_of(ordered))


def implied_by(part: Expression, type_of: Callable[[Column], DataType | None]) -> list[Expression]:
    """Return comparisons of a column that a comparison of a function of it implies; see `implied_range`."""
    if not isinstance(part, Call) or not any(isinstance(a, (Call, Cast)) for a in part.args):
        return []
    return late.implied_range(part, type_of)


def _counts_nulls(test: Expression) -> bool:
    return any(isinstance(leaf, FileStatistic) and leaf.kind == "nullCount" for leaf in leaves(test))


# --- columns -------------------------------------------------------------------------------


class _Bounds(Struct, frozen=True):
    """The facts that hold for every non-null value of an expression in a file.

    ``low`` and ``high`` are null if unknown; ``low`` holds for NaN too, ``high`` only if ``may_be_nan`` is
    false. ``late``: the true values may lie up to a millisecond above ``high``.
    """

    low: Expression
    high: Expression
    column: Column | None = None
    may_be_nan: bool = False
    late: bool = False

    @property
    def is_constant(self) -> bool:
        return not leaves(self.low)


class _Scope:
    """The table's columns, as partition values and statistics."""

    def __init__(
        self,
        schema: StructType,
        column_map: ColumnMap,
        partition_columns: frozenset[str],
        without_bounds: frozenset[str],
    ) -> None:
        self._schema, self._map, self._partitions = schema, column_map, partition_columns
        self._without_bounds = without_bounds
        #: Returns the type of a bound expression, None if a plugin's function is in it.
        self.type_of = types_in(schema)

    def is_partition(self, leaf: Expression) -> bool:
        return isinstance(leaf, PartitionValue) or (
            isinstance(leaf, Column) and len(leaf.path) == 1 and leaf.path[0] in self._partitions
        )

    def as_partition(self, e: Expression) -> Expression | None:
        """Return the expression over partition values; None if it has other leaves, or can't test files."""
        if not can_test_files(e) or not all(self.is_partition(leaf) for leaf in leaves(e)):
            return None
        return transform(e, self._partition_value)

    def _partition_value(self, leaf: Any) -> Expression:
        if isinstance(leaf, PartitionValue):
            return leaf
        path, found = find(self._schema, leaf.path)
        return PartitionValue(self._map.physical_path(self._schema, path)[0], canonical(found.type))

    def may_be_nan(self, e: Expression) -> bool:
        """Return whether a value may be NaN."""
        if isinstance(e, Literal):
            return bool(e.value != e.value)
        t = self.type_of(e)
        return t is None or name_of(t) in ("float", "double")

    def statistic(self, kind: str, column: Column, t: DataType) -> FileStatistic:
        return FileStatistic(kind, self._map.physical_path(self._schema, column.path), t)

    def bounds(self, column: Column) -> _Bounds | None:
        """Return the bounds of a data column; None for types and collations whose bounds can't be compared."""
        _, found = find(self._schema, column.path)
        t = bounds_type(found.type)
        if column.path[0] in self._without_bounds:
            return None
        if t is None or t.type in _UNBOUNDED_TYPES or self._is_collated(column):
            return None
        low: Expression = self.statistic("min", column, t)
        high: Expression = self.statistic("max", column, t)
        if t.type in ("float", "double"):
            if _was_float(found):
                low, high = Call("least", (low, _as_float(low, t))), Call("greatest", (high, _as_float(high, t)))
            # Some writers let NaN spoil their bounds.
            low, high = (Call("if", (Call("isnan", (b,)), Literal(None, t), b)) for b in (low, high))
            return _Bounds(low, high, column, may_be_nan=True)
        return _Bounds(low, high, column, late=t.type in ("timestamp", "timestamp_ntz"))

    def has_null_count(self, column: Column) -> bool:
        return not isinstance(find(self._schema, column.path)[1].type, StructType)

    def nulls(self, column: Column) -> Expression:
        """Return what is false only if the column has no null."""
        if self.is_partition(column):
            return Call("isnull", (self._partition_value(column),))
        return Call(">", (self.statistic("nullCount", column, _LONG), Literal(0, _LONG)))

    def values(self, column: Column) -> Expression:
        """Return what is false only if the column is all null."""
        if self.is_partition(column):
            return Call("isnotnull", (self._partition_value(column),))
        return Call("!=", (self.statistic("nullCount", column, _LONG), NUM_RECORDS))

    def _is_collated(self, column: Column) -> bool:
        ancestors: list[Field] = [find(self._schema, column.path[: i + 1])[1] for i in range(len(column.path))]
        return any("__COLLATIONS" in f.metadata for f in ancestors)


def _was_float(column: Field) -> bool:
    """Return whether files may hold floats for a column that is DOUBLE now."""
    changes = column.metadata.get("delta.typeChanges")
    if column.type != PrimitiveType("double") or not isinstance(changes, (list, tuple)):
        return False
    return any(isinstance(c, Mapping) and c.get("fromType") == "float" for c in changes)


def _as_float(bound: Expression, t: DataType) -> Expression:
    """Return the float that a bound represents: writers return the float's shortest text, such as -0.1."""
    return Cast(Cast(bound, PrimitiveType("float")), t)


# --- partition values ----------------------------------------------------------------------


def _weaken(e: Expression, scope: _Scope, positive: bool) -> Steps[Expression | None]:
    """Return what follows from the expression (or its negation) and has partition leaves only.

    Rows may never reach a cast in it, so it must not fail; a file with a value that does not cast is kept.
    """
    if isinstance(e, Call) and e.function == "not":
        inner: Expression | None = yield _weaken(e.args[0], scope, not positive)
        return inner
    if isinstance(e, Call) and e.function in ("and", "or"):
        parts = yield from each(_weaken(a, scope, positive) for a in _reached(e, scope, positive))
        if (e.function == "and") == positive:
            return all_of([p for p in parts if p is not None])
        weaker = [p for p in parts if p is not None]
        return any_of(weaker) if len(weaker) == len(parts) else None
    exact = scope.as_partition(e)
    if exact is None or not only_casts_raise(exact, scope.type_of):
        return None
    safe: Expression = yield _safely_cast(exact)
    known = safe if positive else negate(safe)
    # what does not cast is null, and raises for the rows of the file
    return Call("coalesce", (known, Literal(True, _BOOLEAN))) if may_raise(exact, scope.type_of) else known


def _safely_cast(e: Expression) -> Steps[Expression]:
    if isinstance(e, Cast):
        return replace(e, arg=(yield _safely_cast(e.arg)), safe=True, sql="")
    if not isinstance(e, Call):
        return e
    args = yield from each(map(_safely_cast, e.args))
    return replace(e, args=tuple(args), sql="")


# --- statistics ----------------------------------------------------------------------------


def _may_match(
    e: Expression, scope: _Scope, no_nan: frozenset[Column], positive: bool = True
) -> Steps[Expression | None]:
    """Return what is false only if no row makes the expression true (or false, if not ``positive``).

    ``no_nan`` are the columns that are no NaN in any row that matches.
    """
    if isinstance(e, Literal):
        return None if e.value is positive else _FALSE
    if isinstance(e, Column):
        return _compare("=", e, Literal(positive, _BOOLEAN), scope, no_nan)
    if not isinstance(e, Call):
        return None
    found: Expression | None
    if e.function == "not":
        found = yield _may_match(e.args[0], scope, no_nan, not positive)
        return found
    if e.function in ("and", "or"):
        found = yield _junction(e, scope, no_nan, positive)
        return found
    if e.function == "in":
        found = yield _within(e, scope, no_nan, positive)
        return found
    return _may_match_test(e, scope, no_nan, positive)


def _may_match_test(e: Call, scope: _Scope, no_nan: frozenset[Column], positive: bool) -> Expression | None:
    """As `_may_match`, of a call that contains no other predicates."""
    if e.function in ("isnull", "isnotnull"):
        return _null_test(e.args[0], scope, (e.function == "isnull") == positive)
    if e.function == "<=>":
        return _null_safe(e.args[0], e.args[1], scope, no_nan, positive)
    if e.function in COMPARISONS:
        return _compare(e.function if positive else _INVERSE[e.function], e.args[0], e.args[1], scope, no_nan)
    if e.function in ("like", "startswith"):
        return _prefix(e, scope) if positive else None
    return None


def _junction(e: Call, scope: _Scope, no_nan: frozenset[Column], positive: bool) -> Steps[Expression | None]:
    if (e.function == "and") == positive:
        shut_out = no_nan | _without_nan(e, positive)
        parts = yield from each(_may_match(a, scope, shut_out, positive) for a in _reached(e, scope, positive))
        tests = [test for p in parts if p is not None for test in conjuncts(p)]
        return all_of(list(dict.fromkeys(tests)))
    parts = yield from each(_may_match(a, scope, no_nan, positive) for a in e.args)
    known = [p for p in parts if p is not None]
    return any_of(known) if len(known) == len(parts) else None


def _reached(e: Call, scope: _Scope, positive: bool) -> Sequence[Expression]:
    """Return the parts of AND, or of a negated OR, which may exclude rows.

    A part that may raise is evaluated for the rows for which another one is null, so none but itself excludes them.
    """
    raising = [a for a in e.args if may_raise(a, scope.type_of)]
    if (e.function == "and") != positive or not raising:
        return e.args
    return raising if len(raising) == 1 else ()


def _without_nan(e: Expression, positive: bool) -> frozenset[Column]:
    """Return the columns that are not NaN if the expression is true (or false)."""
    found: set[Column] = set()
    left = [(e, positive)]
    while left:
        part, is_positive = left.pop()
        if isinstance(part, Call) and part.function == "not":
            left.append((part.args[0], not is_positive))
        elif isinstance(part, Call) and part.function == ("and" if is_positive else "or"):
            left.extend((a, is_positive) for a in part.args)
        else:
            found |= _no_nan_column(part, is_positive)
    return frozenset(found)


def _no_nan_column(e: Expression, positive: bool) -> frozenset[Column]:
    if not isinstance(e, Call):
        return frozenset()
    if e.function == "isnan" and not positive and isinstance(e.args[0], Column):
        return frozenset((e.args[0],))
    if e.function in _INVERSE:
        operator = e.function if positive else _INVERSE[e.function]
        left, right = e.args
        if operator in (">", ">="):
            operator, left, right = _FLIPPED[operator], right, left
        column = left.arg if isinstance(left, Cast) and name_of(left.type) == "double" else left
        if operator in ("<", "<=", "=") and isinstance(column, Column) and _is_value(right):
            return frozenset((column,))
    return frozenset()


def _is_value(e: Expression) -> bool:
    return isinstance(e, Literal) and e.value is not None and e.value == e.value


def _null_test(e: Expression, scope: _Scope, is_null: bool) -> Expression | None:
    if not isinstance(e, Column) or not scope.has_null_count(e):
        return None
    return scope.nulls(e) if is_null else scope.values(e)


def _null_safe(
    left: Expression, right: Expression, scope: _Scope, no_nan: frozenset[Column], positive: bool
) -> Expression | None:
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(right, Literal):
        if right.value is None:
            return _null_test(left, scope, positive)
        compared = _compare("=" if positive else "!=", left, right, scope, no_nan)
        return compared if positive else _either(compared, _null_test(left, scope, True))
    if not positive:
        return None
    both_null = [_null_test(e, scope, True) for e in (left, right)]
    known = [t for t in both_null if t is not None]
    return _either(_compare("=", left, right, scope, no_nan), all_of(known))


def _either(a: Expression | None, b: Expression | None) -> Expression | None:
    return None if a is None or b is None else Call("or", (a, b))


def _within(e: Call, scope: _Scope, no_nan: frozenset[Column], positive: bool) -> Steps[Expression | None]:
    value, candidates = e.args[0], list(e.args[1:])
    found: Expression | None
    if isinstance(candidates[0], Values):
        found = yield _among(value, candidates[0], scope, no_nan, positive)
        return found
    if may_raise(e, scope.type_of) and (not positive or any(may_raise(c, scope.type_of) for c in candidates)):
        return None
    nulls = [c for c in candidates if isinstance(c, Literal) and c.value is None]
    if not positive:
        if nulls:
            return _FALSE  # never true: unknown at best
        found = yield _may_match(Call("and", tuple(Call("!=", (value, c)) for c in candidates)), scope, no_nan)
        return found
    candidates = [c for c in candidates if c not in nulls]
    if not candidates:
        return None if may_raise(value, scope.type_of) else _FALSE
    found = yield _may_match(Call("or", tuple(Call("=", (value, c)) for c in candidates)), scope, no_nan)
    return found


def _among(
    value: Expression, values: Values, scope: _Scope, no_nan: frozenset[Column], positive: bool
) -> Steps[Expression | None]:
    """Prune by the least and the greatest of many values, then by whether any lies within the bounds."""
    if not positive:
        return (
            _FALSE if values.has_null and not may_raise(value, scope.type_of) else None
        )  # with a null among them it is never true: unknown at best
    ends: Expression | None = None
    try:
        least, greatest = (Literal(values.array[i].as_py(), values.type) for i in (0, -1))
    except (ValueError, OverflowError):  # a time that Python can't hold: no constant, but still one of the values
        pass
    else:
        if not (_is_value(least) and _is_value(greatest)):
            return None
        shut_out = no_nan | ({value} if isinstance(value, Column) else frozenset())
        within = Call("and", (Call(">=", (value, least)), Call("<=", (value, greatest))))
        ends = yield _may_match(within, scope, shut_out)
    bounds = _bounds(value, scope)
    if bounds is None or bounds.is_constant:
        return ends
    high = _raised(bounds.high) if bounds.late else bounds.high
    tests = [*conjuncts(ends), Call("between any", (bounds.low, high, values))]
    return all_of(tests)


def _prefix(e: Call, scope: _Scope) -> Expression | None:
    """Prune ``like 'abc%'`` and ``startswith``: such text lies from the prefix up to the prefix's successor."""
    text = _bounds(e.args[0], scope)
    if text is None or text.column is None or not all(isinstance(a, Literal) for a in e.args[1:]):
        return None
    constants = [a.value for a in e.args[1:] if isinstance(a, Literal)]
    if any(not isinstance(c, str) for c in constants):
        return None if any(c is not None for c in constants if not isinstance(c, str)) else _FALSE
    parts: list[str | None] = [*constants[0], None] if e.function == "startswith" else late.parse_like(*constants)
    fixed = next((i for i, p in enumerate(parts) if not p), len(parts))
    prefix = "".join(p or "" for p in parts[:fixed])
    tests = [scope.values(text.column)]
    if prefix:
        tests.append(Call(">=", (text.high, Literal(prefix, PrimitiveType("string")))))
        following = prefix if fixed == len(parts) else _successor(prefix)
        if following is not None:
            operator = "<=" if fixed == len(parts) else "<"
            tests.append(Call(operator, (text.low, Literal(following, PrimitiveType("string")))))
    return all_of(tests)


def _successor(prefix: str) -> str | None:
    """Return the least text above everything that starts with the prefix; None if there is none."""
    shortened = prefix.rstrip("\U0010ffff")
    if not shortened:
        return None
    code = ord(shortened[-1]) + 1
    return shortened[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)


# --- comparisons ---------------------------------------------------------------------------


def _compare(
    operator: str, left: Expression, right: Expression, scope: _Scope, no_nan: frozenset[Column]
) -> Expression | None:
    a, b = _bounds(left, scope), _bounds(right, scope)
    raising = [x for x, e in ((a, left), (b, right)) if may_raise(e, scope.type_of)]
    if None in raising or len(raising) > 1:
        return None
    if not raising and any(isinstance(e, Literal) and e.value is None for e in (left, right)):
        return _FALSE
    tests = [scope.values(x.column) for x in raising or (a, b) if x is not None and x.column is not None]
    if a is not None and b is not None and not (a.is_constant and b.is_constant):
        a, b = (replace(x, may_be_nan=False) if x.column in no_nan else x for x in (a, b))
        tests += _range_tests(operator, a, b)
    return all_of(tests)


def _range_tests(operator: str, a: _Bounds, b: _Bounds) -> list[Expression]:
    """Return tests; one is false only if no value of ``a`` compares so with one of ``b``."""
    if operator in (">", ">="):
        return _range_tests(_FLIPPED[operator], b, a)
    if operator in ("<", "<="):
        # NaN is the greatest value: the upper bound of what may be NaN is unknown.
        return [] if b.may_be_nan else [_below(operator, a.low, b)]
    if operator == "=":
        if a.may_be_nan and b.may_be_nan:
            return []
        # One side is never NaN, so NaN on the other side never equals it.
        return [_below("<=", a.low, b), _below("<=", b.low, a)]
    if a.may_be_nan or b.may_be_nan or a.late or b.late:
        return []
    return [Call("or", (Call("!=", (a.low, b.high)), Call("!=", (a.high, b.low))))]


def _below(operator: str, low: Expression, bounds: _Bounds) -> Expression:
    """Return ``low operator high``, with a millisecond added to a high that was cut down to one."""
    if not bounds.late:
        return Call(operator, (low, bounds.high))
    if isinstance(low, Literal) and isinstance(low.value, dt.datetime) and low.value.year > 1:
        # Taken from the constant instead, which costs nothing a file and can't overflow.
        return Call(operator, (replace(low, value=low.value - _MILLISECOND), bounds.high))
    return Call(operator, (low, _raised(bounds.high)))


def _raised(high: Expression) -> Expression:
    """Return the bound plus a millisecond; unknown if that leaves the calendar."""
    assert isinstance(high, FileStatistic)
    zone = dt.UTC if name_of(high.type) == "timestamp" else None
    last = Literal(dt.datetime(9999, 12, 31, tzinfo=zone), high.type)
    step = Literal(1_000, PrimitiveType("interval day to second"))
    return Call("if", (Call("<=", (high, last)), Call("+", (high, step)), Literal(None, high.type)))


def _bounds(e: Expression, scope: _Scope, levels: int = _MONOTONE_LEVELS) -> _Bounds | None:
    """Return the bounds of a constant, a partition value, a column, or a few monotone functions of a column."""
    exact = scope.as_partition(e)
    if exact is not None:
        if not only_casts_raise(exact, scope.type_of):
            return None
        # what does not cast becomes unknown
        safe: Expression = run(_safely_cast(exact))
        return _Bounds(safe, safe, may_be_nan=scope.may_be_nan(e))
    if isinstance(e, Column):
        return scope.bounds(e)
    found = _monotone(e, scope) if levels else None
    inner = None if found is None else _bounds(found[0], scope, levels - 1)
    if found is None or inner is None:
        return None
    _, change = found
    low, high = change(inner.low), change(_raised(inner.high) if inner.late else inner.high)
    if isinstance(e, Cast) and cast_may_raise(scope.type_of(e.arg), e.type):
        # only if both bounds fit, all values between them do
        low, high = _if_known(high, low, e.type), _if_known(low, high, e.type)
    return _Bounds(low, high, inner.column, inner.may_be_nan)


def _if_known(other: Expression, bound: Expression, t: DataType) -> Expression:
    return Call("if", (Call("isnull", (other,)), Literal(None, t), bound))


_NUMBERS = frozenset(("byte", "short", "integer", "long", "decimal", "float", "double"))
_MONOTONE_CASTS = {
    **dict.fromkeys(("byte", "short", "integer", "long", "decimal"), _NUMBERS),
    **dict.fromkeys(("float", "double"), frozenset(("float", "double"))),
    "date": frozenset(("timestamp", "timestamp_ntz")),
    "timestamp": frozenset(("date", "timestamp_ntz", "long")),
    "timestamp_ntz": frozenset(("date", "timestamp")),
}
_MONOTONE_CALLS = {
    "year",
    "trunc",
    "date_trunc",
    "unix_timestamp",
    "unix_seconds",
    "unix_millis",
    "unix_micros",
    "unix_date",
}


def _monotone(e: Expression, scope: _Scope) -> tuple[Expression, Callable[[Expression], Expression]] | None:
    """Return the operand of a function that never falls as its operand grows, and the function itself."""
    if isinstance(e, Cast):
        source, target = scope.type_of(e.arg), e.type
        if source is None or name_of(target) not in _MONOTONE_CASTS.get(name_of(source), ()):
            return None
        # A bound that does not fit becomes unknown.
        return e.arg, lambda bound: Cast(bound, target, safe=True)
    if not isinstance(e, Call):
        return None
    varying = [i for i, a in enumerate(e.args) if leaves(a)]
    prefix = e.function == "substring" and [a.value for a in e.args[1:2] if isinstance(a, Literal)] == [1]
    if len(varying) != 1 or not (prefix or e.function in _MONOTONE_CALLS) or (prefix and varying != [0]):
        return None
    place = varying[0]
    return e.args[place], lambda bound: replace(e, args=(*e.args[:place], bound, *e.args[place + 1 :]), sql="")
