"""Ranges that comparisons of functions of a column imply: true wherever these are, and near."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.arrow.evaluate.evaluator import compile_expression
from delta_core.expressions import bind, parse_sql
from delta_core.expressions.ast import Column, Expression, leaves
from delta_core.expressions.coercion import canonical
from delta_core.expressions.implied import implied_range
from delta_core.schema.fields import Schema, find
from delta_core.schema.types import DataType

UTC = dt.UTC
#: The first and the last day, and the instants, that Python has.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
TYPES = {
    "f": pa.float64(),
    "r": pa.float32(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "i": pa.int32(),
}
SCHEMA = pa.schema(TYPES)
DELTA = Schema.from_arrow(SCHEMA)


def type_of(column: Column) -> DataType:
    return canonical(find(DELTA, column.path)[1].type)


def evaluated(expression: Expression, table: pa.Table) -> list[bool | None]:
    types = {leaf: table.schema.field(leaf.path[0]).type for leaf in leaves(expression)}
    compiled = compile_expression(expression, types)
    columns = [table.column(leaf.path[0]).combine_chunks() for leaf in compiled.leaves]
    found: list[bool | None] = compiled(columns, table.num_rows).to_pylist()
    return found


def implied(text: str) -> list[Expression]:
    return implied_range(bind(parse_sql(text), DELTA), type_of)


DAYS = st.dates()
TIMES = st.datetimes()
FLOATS = st.one_of(
    st.floats(),
    st.floats(-1000, 1000),
    st.integers(-2000, 2000).map(lambda n: n / 20),
    st.sampled_from([0.0, -0.0, 2.0**62, -(2.0**63), 2.0**63, 1e300]),
)
OPERATORS = st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"])
UNITS = ["year", "yyyy", "quarter", "month", "MM", "week", "day", "hour", "minute", "fortnight"]
FUNCTIONS: dict[str, tuple[list[str], Any, Any]] = {
    "f": (
        [*(f"{name}(f, {digits})" for name in ("round", "bround") for digits in (-300, -2, 0, 1, 3, 300)),
         "floor(f)", "ceil(f)", "round(bround(f, 2), 1)"],
        FLOATS,
        FLOATS.filter(math.isfinite),
    ),
    "r": (["round(r, 1)", "bround(r, -1)", "floor(r)", "ceil(r)", "round(cast(r as double), 2)"], FLOATS,
        FLOATS.filter(math.isfinite)),
    "d": ([*(f"trunc(d, '{unit}')" for unit in UNITS)], DAYS, DAYS),
    "t": ([*(f"date_trunc('{unit}', t)" for unit in UNITS)], TIMES, TIMES),
}  # fmt: skip


def _literal(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(' ')}+00:00'"
    return f"date '{value.isoformat()}'" if isinstance(value, dt.date) else f"{value!r}D"


@given(data=st.data())
def test_range_holds_where_the_comparison_does(data: st.DataObject) -> None:
    column = data.draw(st.sampled_from([*FUNCTIONS, "y"]))
    if column == "y":
        source = data.draw(st.sampled_from(["d", "t", "n"]))
        function, values = f"year({source})", DAYS if source == "d" else TIMES
        constant = f"{data.draw(st.integers(-5, 10_005))}"
    elif column == "d" and data.draw(st.booleans()):
        source = data.draw(st.sampled_from(["t", "n"]))
        function, values, constant = f"cast({source} as date)", TIMES, _literal(data.draw(DAYS))
    else:
        functions, values, constants = FUNCTIONS[column]
        source, function, constant = column, data.draw(st.sampled_from(functions)), _literal(data.draw(constants))
    drawn = data.draw(st.lists(st.none() | values, min_size=1, max_size=30))
    if source == "r":
        with np.errstate(all="ignore"):
            drawn = [None if v is None else float(np.float32(v)) for v in drawn]
    if source == "t":
        drawn = [None if v is None else v.replace(tzinfo=UTC) for v in drawn]
    table = pa.table({source: pa.array(drawn, TYPES[source])})
    if data.draw(st.booleans()):
        text = f"{function} {data.draw(OPERATORS)} {constant}"
    else:
        text = f"{constant} {data.draw(OPERATORS)} {function}"
    part = bind(parse_sql(text), DELTA)
    passed = evaluated(part, table)
    for found in implied_range(part, type_of):
        assert all(not p or q for p, q in zip(passed, evaluated(found, table), strict=True)), (text, found)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("round(f, 1) = 5.5", 5.3, 5.7),
        ("round(f) > 100", 98, None),
        ("4 >= bround(f)", None, 6),
        ("floor(f) = 7", 5, 9),
        ("ceil(r) < -3", None, -1),
        ("round(r, 1) in (1.5, 7.5)", 1.3, 7.7),
        ("year(d) = 2020", dt.date(2020, 1, 1), dt.date(2020, 12, 31)),
        ("year(d) in (2020, 2022)", dt.date(2020, 1, 1), dt.date(2022, 12, 31)),
        ("year(t) <= 2020", None,
         dt.datetime(2021, 1, 3, tzinfo=UTC)),
        ("date_trunc('month', t) = '2020-02-01T00:00:00Z'", dt.datetime(2020, 1, 30, tzinfo=UTC),
         dt.datetime(2020, 3, 5, tzinfo=UTC)),
        ("cast(n as date) >= '2020-02-01'", dt.datetime(2020, 1, 30), None),
    ],
)  # fmt: skip
def test_range_is_near(text: str, low: Any, high: Any) -> None:
    found = {e.function: e.args[1].value for e in implied(text)}  # type: ignore[attr-defined]  # calls
    assert found.keys() == {name for name, bound in ((">=", low), ("<=", high)) if bound is not None}
    if low is not None:
        assert found[">="] >= low
    if high is not None:
        assert found["<="] <= high


@pytest.mark.parametrize(
    "text",
    [
        "f = 1", "floor(f) = 0", "floor(f) < 5", "ceil(f) >= -1",  # NaN is rounded to 0
        "round(f) = double('NaN')", "round(f) != 5", "month(d) = 3", "year(d) = i", "year(d) >= 10000",
        "round(i, -2) = 5",
        "not round(f) = 5", "round(f) = 5 or i = 3", "floor(f) = 9223372036854775807",
        "year(date '2020-01-01') = 2020",
        "round(f) in (1, null, i)",
    ],
)  # fmt: skip
def test_no_range_is_implied(text: str) -> None:
    assert not implied(text)


def test_rows_and_files_outside_are_left_out(tmp_path: Path) -> None:
    for start in range(0, 400, 100):
        rows = pa.table({"f": np.arange(start, start + 100) / 4 + 0.01, "k": np.arange(start, start + 100)})
        write_deltalake(tmp_path, rows, mode="append")
    table = DeltaTable(tmp_path)
    scan = table.scan(predicate="round(f, 1) = 30.3")
    assert scan.to_table().column("k").to_pylist() == [121]
    assert scan.files().num_rows == 1
    assert table.scan(predicate="round(f, 1) > 99").to_table().num_rows == 3
