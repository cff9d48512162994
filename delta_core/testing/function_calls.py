"""Calls of a plugin's functions, evaluated by Arrow and by Spark on values that implementations often treat apart."""

from __future__ import annotations

import datetime as dt
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Evaluator
from delta_core.expressions.ast import Call, Column, Expression, all_parts, leaves
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.plugin_functions import Function
from delta_core.schema.types import StructType

__all__ = ["Compute", "FunctionCall", "calls_in", "first_difference", "possible_calls"]

#: Combinations of arguments that are compared at most.
_MOST_ROWS = 400
_MOST_SIGNATURES = 6
_TYPES = (pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.binary())
_UTC_2024 = dt.datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=dt.UTC)

#: Computes an expression over the columns of a table; may raise.
Compute = Callable[[Expression, pa.Table], pa.Array]


class FunctionCall(Struct, frozen=True):
    """A call of a function with columns ``a0``, ``a1`` ... in place of the arguments that are no constants.

    Parameters
    ----------
    function : str
        The function's name.
    expression : Call
        The call.
    types : tuple of pyarrow.DataType
        The types of the columns.
    """

    function: str
    expression: Call
    types: tuple[pa.DataType, ...]

    def arguments(self, examples: Mapping[pa.DataType, Sequence[Any]], *, extremes: bool) -> pa.Table:
        """Return rows of arguments: null, edges of each type and the values of examples; or the extremes of types."""
        values = [
            _extremes(t) if extremes else list(dict.fromkeys([*_edges(t), *_hashable(examples.get(t, ()))]))
            for t in self.types
        ]
        rows = list(itertools.product(*values))
        rows = rows[:: len(rows) // _MOST_ROWS + 1]
        columns = zip(*rows, strict=True) if rows else [()] * len(self.types)
        arrays = [pa.array(list(c), t) for c, t in zip(columns, self.types, strict=True)]
        return pa.table(arrays, names=[f"a{i}" for i in range(len(self.types))])

    def on_arrow(self, evaluator: Evaluator, functions: Mapping[str, Function]) -> Compute:
        """Return what computes the call as the Arrow engine does, with its evaluator."""

        def compute(expression: Expression, rows: pa.Table) -> pa.Array:
            types: Any = {Column((n,)): t for n, t in zip(rows.column_names, self.types, strict=True)}
            compiled = evaluator.compile(expression, types, functions)
            columns = [rows.column(leaf.name).combine_chunks() for leaf in compiled.leaves]  # type: ignore[union-attr]
            return compiled(columns, rows.num_rows)

        return compute


def calls_in(
    expressions: Iterable[Expression], schema: StructType, functions: Mapping[str, Function], own: Iterable[str]
) -> Iterator[FunctionCall]:
    """Yield the calls of a plugin's own functions within expressions over the columns of a schema."""
    names = set(own)
    for expression in expressions:
        for part in all_parts(expression):
            if isinstance(part, Call) and part.function.lower() in names and leaves(part):
                yield _with_columns(part, schema, functions)


def _with_columns(call: Call, schema: StructType, functions: Mapping[str, Function]) -> FunctionCall:
    args, types = list[Expression](), list[pa.DataType]()
    for arg in call.args:
        if not leaves(arg):
            args.append(arg)
            continue
        args.append(Column((f"a{len(types)}",)))
        types.append(bind_typed(arg, schema, functions).type.to_arrow())
    return FunctionCall(call.function.lower(), Call(call.function, tuple(args)), tuple(types))


def possible_calls(
    function: Function,
    evaluator: Evaluator,
    functions: Mapping[str, Function],
    examples: Mapping[pa.DataType, Sequence[Any]],
) -> list[FunctionCall]:
    """Return calls of a function that Arrow can compute, for the types of examples first."""
    found: list[FunctionCall] = []
    types = list(dict.fromkeys([*examples, *_TYPES]))
    for number in _arities(function):
        for chosen in itertools.product(types, repeat=number):
            columns = tuple(Column((f"a{i}",)) for i in range(number))
            call = FunctionCall(function.name.lower(), Call(function.name, columns), chosen)
            try:
                call.on_arrow(evaluator, functions)(call.expression, call.arguments(examples, extremes=False))
            except Exception:  # noqa: BLE001, S112  (a plugin's function may raise anything for types that it does not take)
                continue
            found.append(call)
            if len(found) == _MOST_SIGNATURES:
                return found
    return found


def _arities(function: Function) -> list[int]:
    parameters = inspect.signature(function.arrays).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [1, 2]
    takes = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [len(takes)] if 0 < len(takes) <= 3 else []


# --- values ---


def _edges(t: pa.DataType) -> list[Any]:
    """Return null and values of a type that functions often treat apart."""
    if pa.types.is_boolean(t):
        return [None, True, False]
    if pa.types.is_integer(t):
        return [None, 0, 1, -1, 2, -2, 7, -7, 10, -10, 100, -100]
    if pa.types.is_floating(t):
        return [None, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 1000.25, -1000.25]
    if pa.types.is_decimal(t):
        unit = Decimal(1).scaleb(-t.scale)
        return [None, Decimal(0), unit, -unit, 7 * unit, -7 * unit]
    if pa.types.is_string(t):
        return [None, "", " ", "a", "A", "Ab c", " a ", "0", "-1", "ä", "\U0001f600", "a\n", "aa", "zz", "'", "\\"]
    if pa.types.is_binary(t):
        return [None, b"", b"\0", b"a", b"\xff\xfe", b"abc"]
    if pa.types.is_date(t):
        return [None, dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1900, 1, 1)]
    if pa.types.is_timestamp(t):
        found = [_UTC_2024, *(_UTC_2024.replace(year=y, day=28) for y in (1969, 1970, 1900))]
        return [None, *(v if t.tz else v.replace(tzinfo=None) for v in found)]
    return [None]


def _extremes(t: pa.DataType) -> list[Any]:
    """Return the limits of a type, for which a function may fail."""
    if pa.types.is_integer(t):
        return [-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1, 2 ** (t.bit_width - 2), 3]
    if pa.types.is_floating(t):
        return [math.inf, -math.inf, math.nan, 1e30, 5e-324, 3.0]
    if pa.types.is_decimal(t):
        most = Decimal(10**t.precision - 1).scaleb(-t.scale)
        return [most, -most]
    if pa.types.is_date(t):
        return [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 4)]
    return [v for v in _edges(t) if v is not None]


def _hashable(values: Iterable[Any]) -> list[Any]:
    return [v for v in values if not isinstance(v, (list, dict))]


# --- comparison ---


def first_difference(
    call: FunctionCall, rows: pa.Table, arrow: Compute, spark: Compute, *, failures: bool
) -> tuple[dict[str, Any], Any, Any] | None:
    """Return the first row of arguments for which two engines differ, with either result; None if there is none.

    Parameters
    ----------
    call : FunctionCall
        The call.
    rows : pyarrow.Table
        Its arguments.
    arrow, spark : function(Expression, pyarrow.Table) -> pyarrow.Array
        The function that computes it; may raise.
    failures : bool
        Whether it is a difference if one of them fails.
    """
    here, there = (_results(compute, call.expression, rows) for compute in (arrow, spark))
    for arguments, a, b in zip(rows.to_pylist(), here, there, strict=True):
        failed = [isinstance(v, Exception) for v in (a, b)]
        if any(failed):
            if failures and not all(failed):
                return arguments, a, b
        elif not _are_same(a, b):
            return arguments, a, b
    return None


def _results(compute: Compute, expression: Expression, rows: pa.Table) -> list[Any]:
    """Return a value for each row, or the exception that it raises."""
    if not rows.num_rows:
        return []
    try:
        return list(compute(expression, rows).to_pylist())
    except Exception as e:  # noqa: BLE001  (a plugin's function, or Spark, may raise anything)
        if rows.num_rows == 1:
            return [e]
    half = rows.num_rows // 2
    return [*_results(compute, expression, rows[:half]), *_results(compute, expression, rows[half:])]


def _are_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or math.isclose(a, b, rel_tol=1e-12)
    return type(a) is type(b) and bool(a == b)
