"""Conditions that Polars hands to a dataset as text are parsed, never run, and estimated from statistics."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Call, Column, Literal
from delta_core.table.interop.plain_files import stored_names
from delta_core.table.interop.polars_conditions import parse_condition
from delta_core.table.interop.share_of_rows import share_of_rows

ID, NAME = "pa.compute.field('id')", "pa.compute.field('name')"
X, N = Column(("id",)), Column(("name",))


def _parsed(text: str, *columns: str) -> Any:
    return parse_condition(text, {name: name for name in columns or ("id", "name")})


def test_columns_have_their_names_in_the_table() -> None:
    assert parse_condition("(pa.compute.field('col-1') > 3)", {"col-1": "id"}) == Call(">", (X, Literal(3)))
    assert parse_condition("(pa.compute.field('id') > 3)", {"col-1": "id"}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"({ID} < 0.5)", Call("<", (X, Literal(0.5)))),
        (f"({ID} >= -5)", Call(">=", (X, Literal(-5)))),
        (f"(3 != {ID})", Call("!=", (Literal(3), X))),
        (f"({NAME} == 'x y')", Call("=", (N, Literal("x y")))),
        (f"({ID}).isin([1,2])", Call("in", (X, Literal(1), Literal(2)))),
        (f"({ID}).is_null()", Call("isnull", (X,))),
        (f"~({ID}).is_null()", Call("not", (Call("isnull", (X,)),))),
        (f"~({ID})", Call("not", (X,))),
        (f"pa.compute.starts_with({NAME}, pattern='n1')", Call("startswith", (N, Literal("n1")))),
        (f"({ID} > to_py_date(18263))", Call(">", (X, Literal(dt.date(2020, 1, 2))))),
        (
            f"({ID} > to_py_datetime(1000001,'us','UTC'))",
            Call(">", (X, Literal(dt.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=dt.UTC)))),
        ),
        (f"(({ID} > 1) | ({ID} < 0))", Call("or", (Call(">", (X, Literal(1))), Call("<", (X, Literal(0)))))),
        # parts that AND joins are left out, not others
        (f"(({ID} > 1) & ({ID} + 1 < 3))", Call(">", (X, Literal(1)))),
        (f"(({ID} > 1) | ({ID} + 1 < 3))", None),
        (f"~(({ID} > 1) & ({ID} + 1 < 3))", None),
    ],
)
def test_condition_translates(text: str, expected: Any) -> None:
    assert _parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pa.compute.scalar(False)",
        f"({ID} > NaN)",
        f"({ID} > __import__('os').getpid())",
        f"({ID} > (lambda: 1)())",
        f"({ID} > 1 < 3)",
        f"({ID}).isin([])",
        f"({ID}).isin([1], 2)",
        f"({ID}).is_nan()",
        f"({ID} == b'ab')",
        f"({ID} == None)",
        f"({NAME} == 'a\\n')",
        f"pa.compute.starts_with({NAME}, pattern='n', ignore_case=True)",
        "(pa.compute.field('other') > 1)",
        "(other.field('id') > 1)",
        f"({ID} > to_py_datetime(1,'ns'))",
        f"({ID} > to_py_date(10000000000))",
        f"({ID} > to_py_date('x'))",
        "(" * 5_000 + ID + " > 1" + ")" * 5_000,
        "~" * 5_000 + f"({ID})",
    ],
)
def test_condition_that_is_not_known_is_left_out(text: str) -> None:
    assert _parsed(text) is None


@pytest.mark.parametrize("name", ["x') > 1) | (pa.compute.field('id", 'a"b', "a\\", "a\nb"])
def test_names_that_end_a_quotation_choose_nothing(name: str) -> None:
    assert _parsed(f"(pa.compute.field('{name}') < 1)", name, "id") is None


def test_share_of_rows_is_estimated_from_bounds(tmp_path: Path) -> None:
    days = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 11)])
    for start in (0.0, 50.0):
        rows = {"v": [start, start + 50.0], "day": days, "s": ["a", "b"], "one": [7, 7]}
        write_deltalake(tmp_path, pa.table(rows), mode="append")
    snapshot = DeltaTable(tmp_path).snapshot()

    def share(sql: str) -> float:
        predicate = to_expression(sql, snapshot.schema)
        assert predicate is not None
        return share_of_rows(predicate, snapshot.files, stored_names(snapshot))

    assert share("v < 25") == 0.25
    assert share("25 < v") == 0.75
    assert share("v >= 200") == 0.0
    assert share("day < DATE '2024-01-06' AND v < 90") == 0.5
    assert share("one < 7") == 0.5
    assert [share(sql) for sql in ("s < 'b'", "v = 3", "v < 90 AND s = 'a'", "v < 90 OR v > 95")] == [0.0] * 4
