"""Comparisons of arrays and structs, with the order that Spark has for them."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.engines.arrow.evaluate.evaluator import compile_expression
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions import parse_sql
from delta_core.expressions.ast import Call, Cast, Column, Expression
from delta_core.schema.types import ArrayType, PrimitiveType

ONE, NULL, TWO = "named_struct('x', 1, 'y', 'a')", "named_struct('x', 1, 'y', cast(null as string))", "struct(2, 'a')"
#: What Spark 4 returns.
OF_SPARK: dict[str, Any] = {
    f"{ONE} = {ONE}": True, f"{ONE} = {NULL}": False, f"{NULL} = {NULL}": True, f"{NULL} <=> {NULL}": True,
    f"{NULL} < {ONE}": True, f"{ONE} <= {NULL}": False, f"{NULL} != {ONE}": True, f"{TWO} > {ONE}": True,
    "struct(1, 2) = named_struct('a', 1, 'b', 2)": True, "struct(1) = struct(1L)": True,
    "named_struct('x', 1, 'y', 2) = named_struct('y', 2, 'x', 1)": False, "struct(1) = null": None,
    "struct(1) <=> null": False, "array(1, null) = array(1, null)": True, "array(1, null) < array(1, 0)": True,
    "array(1) < array(1, null)": True, "array(1, 2) < array(1)": False, "array(1) = array(1L)": True,
    "array() = array(1)": False, "cast(null as array<int>) < array(1)": None, "array(array(1, 2)) < array(array(1, 3))":
    True, "array(cast('nan' as double)) > array(1d)": True, "struct(0.0d) = struct(-0.0d)": True,
    "array(1) in (array(1), array(2))": True, "struct(1) in (struct(2), struct(3))": False,
    "array(1) between array(0) and array(2)": True, "greatest(array(1), array(2))": [2], "nullif(array(1), array(1))":
    None, "case array(1) when array(1) then 1 end": 1, "array_contains(array(struct(1)), struct(1))": True,
    "struct(X'01') < struct(X'02')": True, "struct(true) > struct(false)": True, "struct(1.50) = struct(1.5)": True,
    "named_struct('x', 1)['X']": 1, "named_struct('s', struct(7))['s']['col1']": 7,
}  # fmt: skip


def _value(e: Expression, columns: dict[str, pa.Array], num_rows: int) -> list[Any]:
    compiled = compile_expression(e, {Column((n,)): c.type for n, c in columns.items()})
    values = [columns[leaf.path[0]] for leaf in compiled.leaves if isinstance(leaf, Column)]
    return compiled(values, num_rows).to_pylist()


@pytest.mark.parametrize(("text", "expected"), OF_SPARK.items())
def test_comparison_equals_that_of_spark(text: str, expected: Any) -> None:
    assert _value(parse_sql(text), {}, 1) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "struct(1) = array(1)",
        "struct(1) = struct('1')",
        "struct(1) = struct(1, 2)",
        "named_struct('a', 1) = named_struct('b', 1L)",
        "struct(1) < 1",
        "array(1) = array('1')",
        "m = m",
        "array(m) = array(m)",
        "struct(m) <=> struct(m)",
        "named_struct('x', 1)['z']",
        "named_struct('x', 1)[0]",
    ],
)
def test_what_spark_does_not_compare_is_rejected(text: str) -> None:
    with pytest.raises((ExpressionError, UnsupportedExpressionError)):
        compile_expression(parse_sql(text), {Column(("m",)): pa.map_(pa.string(), pa.int64())})


NUMBERS = st.none() | st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf])
STRUCTS = st.none() | st.fixed_dictionaries({"x": NUMBERS, "t": st.none() | st.sampled_from(["", "a", "é"])})
VALUES = st.none() | st.lists(STRUCTS, max_size=3)
TYPE = pa.list_(pa.struct([("x", pa.float64()), ("t", pa.string())]))


def _rank(value: Any) -> tuple[Any, ...]:
    """Return a key that orders as Spark does: null first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, list):
        return (1, tuple(map(_rank, value)))
    if isinstance(value, dict):
        return (1, tuple(map(_rank, value.values())))
    return (1, value.encode()) if isinstance(value, str) else (1, math.isnan(value), 0 if math.isnan(value) else value)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=12), st.integers(0, 3))
def test_comparisons_order_arrays_of_structs_as_their_parts(rows: list[tuple[Any, Any]], start: int) -> None:
    columns = {n: pa.array([r[i] for r in rows], TYPE)[start:] for i, n in enumerate("ab")}
    rows = rows[start:]
    tests = {
        "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }  # fmt: skip
    both = (Column(("a",)), Column(("b",)))
    for operator, test in tests.items():
        expected = [None if a is None or b is None else test(_rank(a), _rank(b)) for a, b in rows]
        assert _value(Call(operator, both), columns, len(rows)) == expected
    assert _value(Call("<=>", both), columns, len(rows)) == [_rank(a) == _rank(b) for a, b in rows]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3), max_size=8), st.integers(0, 3))
def test_cast_of_arrays_casts_their_elements_alone(rows: list[Any], start: int) -> None:
    column = pa.array(rows, pa.list_(pa.int32()))[start:]
    cast = Cast(Column(("a",)), ArrayType(PrimitiveType("string"), True))
    expected = [None if r is None else [None if v is None else str(v) for v in r] for r in rows[start:]]
    assert _value(cast, {"a": column}, len(column)) == expected
