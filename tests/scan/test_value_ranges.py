"""A range of values accepts the rows that the condition does."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.expressions.ast import Call, Column, Expression, Literal, Values
from delta_core.protocol.types import PrimitiveType
from delta_core.scan.plan import ConstantSource, PhysicalSource
from delta_core.scan.value_ranges import value_range

X = Column(("x",))
Y = Column(("y",))
FLOATS = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.5, math.nan, math.inf, -math.inf]
VALUES: dict[str, list[Any]] = {
    "integer": [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "long": [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    "double": [*FLOATS, 1.7976931348623157e308, 2.2250738585072014e-308],
    "float": [*(f for f in FLOATS if abs(f) != 5e-324), 3.4028234663852886e38],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)],
    "timestamp": [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)],
}
OPERATORS = ("=", "<", "<=", ">", ">=")


def found(condition: Expression, name: str) -> Any:
    t = PrimitiveType(name).to_arrow()
    sources = {X: PhysicalSource(3), Y: PhysicalSource(4)}
    return value_range(condition, sources, {X: t, Y: t})


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_range_accepts_the_values_that_the_condition_accepts(name: str, data: st.DataObject) -> None:
    t = PrimitiveType(name)
    constant = st.sampled_from(VALUES[name]).map(lambda v: Literal(v, t))
    one = st.tuples(st.sampled_from(OPERATORS), constant, st.booleans()).map(
        lambda c: Call(c[0], (X, c[1]) if c[2] else (c[1], X))
    )
    present = st.just(Call("isnotnull", (X,)))
    several = st.tuples(one, st.one_of(one, present)).flatmap(st.permutations)
    condition = data.draw(st.one_of(one, several.map(lambda both: Call("and", tuple(both)))))
    values = found(condition, name)
    if values is None:
        return
    assert values.column == 3
    rows = pa.array([*VALUES[name], None], t.to_arrow())
    expected = ArrowEvaluator().compile(condition, {X: t.to_arrow()})([rows], len(rows))
    stored = rows.cast(pa.int64()) if name == "timestamp" else rows.cast(pa.int32()) if name == "date" else rows
    accepted = [
        v is not None and (values.least <= v <= values.most or (v != v and values.with_nan)) for v in stored.to_pylist()
    ]
    assert accepted == [v is True for v in expected.to_pylist()]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("function", OPERATORS)
def test_most_comparisons_are_ranges(name: str, function: str) -> None:
    assert found(Call(function, (X, Literal(VALUES[name][1], PrimitiveType(name)))), name) is not None


@pytest.mark.parametrize(
    "condition",
    [
        Call("!=", (X, Literal(1, PrimitiveType("long")))),
        Call("<", (X, Literal(None, PrimitiveType("long")))),
        Call("<", (X, Literal(1, PrimitiveType("integer")))),
        Call("<", (X, Y)),
        Call("=", (Call("in", (X, Values(pa.array([1, 2]), PrimitiveType("long")))), Literal(True,
                                                                                             PrimitiveType("boolean")))),
        Call("<", (Literal(1, PrimitiveType("long")), Literal(2, PrimitiveType("long")))),
        Call("<", (Call("+", (X, X)), Literal(1, PrimitiveType("long")))),
        Call("or", (Call("<", (X, Literal(1, PrimitiveType("long")))), Call(">", (X, Literal(9,
                                                                                             PrimitiveType("long")))))),
        Call("and", tuple(Call("<", (c, Literal(1, PrimitiveType("long")))) for c in (X, Y))),
        Call("<=", (X, Literal(2**63 - 1, PrimitiveType("long")))),
    ],
)  # fmt: skip
def test_other_conditions_are_no_ranges(condition: Expression) -> None:
    assert found(condition, "long") is None


def test_values_of_the_table_and_parts_of_columns_are_no_ranges() -> None:
    condition = Call("<", (X, Literal(1, PrimitiveType("long"))))
    for source in (ConstantSource(0), PhysicalSource(1, (0,))):
        assert value_range(condition, {X: source}, {X: pa.int64()}) is None


def test_null_test_of_another_column_or_alone_is_no_range() -> None:
    below = Call("<", (X, Literal(1, PrimitiveType("long"))))
    assert found(Call("isnotnull", (X,)), "long") is None
    assert found(Call("and", (below, Call("isnotnull", (Y,)))), "long") is None
    assert found(Call("and", (below, Call("isnotnull", (below,)))), "long") is None
