"""Predicates in every accepted form."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core.engines.arrow.evaluate.evaluator import compile_expression, read_column
from delta_core.errors import ArgumentTypeError, ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
from delta_core.expressions import format_sql, from_filters, parse_sql, to_expression
from delta_core.expressions.ast import Call, Column, Expression, Literal, literal
from delta_core.expressions.polars_filters import from_polars
from delta_core.expressions.pyarrow_filters import from_pyarrow
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType, StructType

TABLE = pa.table(
    {
        "i": pa.array([1, None, -7, 9], pa.int32()),
        "f": [1.5, None, 0.0, -2.5],
        "s": ["abc", None, "b", "zz"],
        "d": pa.array([Decimal("1.50"), None, Decimal("-3.10"), Decimal("7.00")], pa.decimal128(10, 2)),
        "dt": pa.array([0, -1, 20000, None], pa.date32()),
        "b": [True, False, None, True],
        "ts": pa.array([0, -1, None, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
        "ntz": pa.array([0, -1, None, 1_700_000_000_123_456], pa.timestamp("us")),
        "bin": [b"a", b"\xff", None, b""],
        "st": [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}, {"x": 4, "y": {"z": None}}],
    }
)
SCHEMA = Schema.from_arrow(TABLE.schema)


def rows(predicate: Any) -> list[bool]:
    bound = to_expression(predicate, SCHEMA)
    assert bound is not None
    compiled = _compile(bound)
    columns = [read_column(TABLE, leaf.path) for leaf in compiled.leaves]
    return [value is True for value in compiled(columns, 4).to_pylist()]


def _compile(bound: Expression) -> Any:
    types = {}
    for name in TABLE.schema.names:
        types[parse_sql(name)] = TABLE.schema.field(name).type
    types[parse_sql("st.x")], types[parse_sql("st.y.z")] = pa.int64(), pa.string()
    return compile_expression(bound, types)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "sql"),
    [
        ([("i", "=", 1)], "i = 1"),
        (("i", "==", 1), "i = 1"),
        ([("i", ">", 0), ("s", "!=", "x")], "(i > 0) AND (s != 'x')"),
        ([[("i", ">", 0)], [("s", "in", ["a", "b"]), ("f", "<", 2)]], "(i > 0) OR ((s IN ('a', 'b')) AND (f < 2.0D))"),
        ([("i", "not in", {1})], "NOT (i IN (1))"),
        ([("i", "in", [])], "FALSE"),
        ([("dt", "=", "2020-01-01")], "dt = DATE '2020-01-01'"),
        ([("i", "=", "1")], "CAST(i AS BIGINT) = 1L"),
        ([("st.x", "is", None)], "st.x IS NULL"),
        ([("S", "is not", None)], "s IS NOT NULL"),
        ([("s", "like", "a%")], "s LIKE 'a%'"),
        ([("s", "NOT  LIKE", "a%")], "NOT (s LIKE 'a%')"),
        ([("ts", ">=", dt.datetime(2020, 1, 1, tzinfo=dt.UTC))], "ts >= TIMESTAMP '2020-01-01 00:00:00Z'"),
        ("i = 1 AND s LIKE 'a%'", "(i = 1) AND (s LIKE 'a%')"),
        (literal(True), "TRUE"),
    ],
)
def test_filters_read_as_sql(filters: Any, sql: str) -> None:
    found = to_expression(filters, SCHEMA)
    assert found is not None
    assert format_sql(found) == sql


@pytest.mark.parametrize("filters", [None, [], ()])
def test_no_filters_are_no_predicate(filters: Any) -> None:
    assert to_expression(filters, SCHEMA) is None
    assert from_filters(filters or []) is None


@pytest.mark.parametrize(
    ("filters", "error", "named"),
    [
        ([("i", "~", 1)], UnsupportedExpressionError, "~"),
        ([("i", "=", None)], ExpressionError, "'is'"),
        ([("i", "in", "abc")], ExpressionError, "list"),
        ([("i", "=")], ExpressionError, "list of"),
        ([[("i", "=", 1)], ("i", "=", 2)], ExpressionError, "list of"),
        ([("nope", "=", 1)], ColumnNotFoundError, "nope"),
        ("i + 1", ExpressionError, "BOOLEAN"),
        (5, ArgumentTypeError, "int"),
        ([("i", "is", 5)], ExpressionError, "None"),
    ],
)
def test_filters_that_make_no_sense_are_named(filters: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        to_expression(filters, SCHEMA)


F = pc.field


@pytest.mark.parametrize(
    "expression",
    [
        F("i") > 0,
        F("i") == pa.scalar(1, pa.int8()),
        (F("i") > 0) & (F("s") != "abc"),
        (F("i") < 0) | F("b"),
        ~F("b"),
        F("i").is_null(),
        F("s").is_valid(),
        F("i").isin([1, 9]),
        ~F("i").isin([1]),
        F("i").isin([1, None]),
        F("st", "x") >= 1,
        F("st", "y", "z") == "q",
        F("f") < 1.25,
        F("f") > -3.0,
        F("d") > Decimal("1.25"),
        F("d").isin([Decimal("1.50")]),
        F("dt") > dt.date(1960, 1, 1),
        F("ts") <= dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        F("ntz") > dt.datetime(2000, 1, 1),
        F("bin") == b"\xff",
        pc.starts_with(F("s"), "a"),
        pc.ends_with(F("s"), "z"),
        pc.match_substring(F("s"), "b"),
        F("i") + 1 == 2,
        F("i") * 2 == 2,
        F("f").is_nan(),
        ~F("f").is_nan(),
        F("b") == pa.scalar(True),
        F("i") == pa.scalar(None, pa.int32()),
        pc.scalar(True),
        pc.coalesce(F("i"), 1) == 1,
    ],
)
def test_pyarrow_expression_keeps_the_same_rows(expression: pc.Expression) -> None:
    numbered = TABLE.append_column("n", pa.array(range(4)))
    kept = numbered.filter(expression)["n"].to_pylist()
    assert rows(expression) == [i in kept for i in range(4)]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (F("i").cast(pa.int64()) == 1, UnsupportedExpressionError),
        (pc.utf8_upper(F("s")) == "X", UnsupportedExpressionError),
        (F("i") / 2 == 1, UnsupportedExpressionError),
        (pc.if_else(F("b"), 1, 2) == 1, UnsupportedExpressionError),
        (pc.starts_with(F("s"), "a", ignore_case=True), UnsupportedExpressionError),
        (F("nope") == 1, ColumnNotFoundError),
        (F("i").cast(pa.int64(), safe=False) == 1, UnsupportedExpressionError),
    ],
)
def test_pyarrow_expression_that_does_not_translate_is_rejected(
    expression: pc.Expression, error: type[Exception]
) -> None:
    with pytest.raises(error):
        from_pyarrow(expression, SCHEMA)


@pytest.mark.peer
def test_polars_expression_keeps_the_same_rows() -> None:
    pl = pytest.importorskip("polars")
    c = pl.col
    frame = pl.DataFrame(TABLE)
    for expression in (
        c("i") > 0,
        (c("i") > 0) & (c("s") == "zz"),
        (c("i") < 0) | c("b"),
        ~c("b"),
        c("i").is_null(),
        c("s").is_not_null(),
        c("i").is_between(1, 9, closed="left"),
        c("i").is_in([1, 9]),
        ~c("s").is_in(["abc"]),
        c("f") < 1.25,
        c("s").str.starts_with("a"),
        c("dt") > dt.date(1960, 1, 1),
        c("ts") <= dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        c("ntz") > dt.datetime(2000, 1, 1),
        c("d") == Decimal("1.5"),
        c("i").eq_missing(pl.lit(None)),
        c("f").is_nan(),
        c("i") == pl.lit(9, dtype=pl.Int8),
        c("b"),
    ):
        found, is_whole = from_polars(expression)
        assert found is not None, str(expression)
        assert is_whole, str(expression)
        assert rows(found) == frame.select(expression.fill_null(False)).to_series().to_list(), str(expression)


@pytest.mark.peer
def test_polars_sql_is_translated_as_expressions_are() -> None:
    """Lists come as a series there."""
    pl = pytest.importorskip("polars")
    plugins = pytest.importorskip("polars.io.plugins")
    frame = pl.DataFrame(TABLE)
    seen: list[Any] = []

    def source(columns: Any, predicate: Any, *_: Any) -> Any:
        seen.append(from_polars(predicate))
        yield frame.filter(predicate)

    lazy = plugins.register_io_source(source, schema=frame.schema)
    for test in ("s in ('abc', 'zz')", "i in (1, 9)", "not (s in ('abc'))", "d in (1.5, 2)", "b and i in (1, 2, 3)"):
        lazy.sql(f"select i from self where {test}").collect()
        found, is_whole = seen.pop()
        assert is_whole, test
        assert rows(found) == frame.sql(f"select coalesce({test}, false) as x from self")["x"].to_list(), test


@pytest.mark.peer
def test_polars_fields_of_structs_are_translated() -> None:
    pl = pytest.importorskip("polars")
    found = from_polars(pl.col("st").struct.field("x") < 1.5)
    assert found == (Call("<", (Column(("st", "x")), Literal(1.5))), True), found
    assert from_polars(pl.col("st").struct.field("x").struct.field("y").is_null()).expression == Call(
        "isnull", (Column(("st", "x", "y")),)
    )


def test_pyarrow_list_of_duckdb_is_null_for_null() -> None:
    """DuckDB writes ``in`` so that its negation drops nulls."""
    i, none = pc.field("i"), pa.scalar(None, pa.bool_())
    schema = StructType([Field("i", PrimitiveType("long")), Field("s", PrimitiveType("string"))])

    def listed(test: Any) -> Any:
        return to_expression(pc.if_else(i.is_valid(), test, none), schema)

    one, many = Call("=", (Column(("i",)), Literal(1, PrimitiveType("long")))), i.isin([1, 9])
    members = to_expression([("i", "in", [1, 9])], schema)
    assert listed(many) == members
    assert listed((i == 1) | many) == Call("or", (one, members))
    assert listed((i == 1) | pc.scalar(False)) == one
    negated = to_expression(~pc.if_else(i.is_valid(), many, none), schema)
    assert negated == Call("not", (members,))
    for other in (pc.field("s") == "a", i.isin([1, None]), pc.scalar(True), (i == 1) & many, i == pc.field("i"), i > 1):
        with pytest.raises(UnsupportedExpressionError):
            listed(other)
    with pytest.raises(UnsupportedExpressionError):
        to_expression(pc.if_else(i.is_valid(), many, pa.scalar(False)), schema)
    with pytest.raises(UnsupportedExpressionError):
        to_expression(pc.if_else(i == 1, many, none), schema)


@pytest.mark.peer
def test_polars_members_with_null_are_left_to_polars() -> None:
    """What is not among them is false or unknown there by version, unknown in SQL: a negation would lose rows."""
    pl = pytest.importorskip("polars")
    assert from_polars(~pl.col("i").is_in([1, None])) == (None, False)
    assert from_polars(~pl.col("i").is_in([])) == (None, False)
    assert from_polars(pl.col("i").is_in([1, 2])).is_whole


def test_polars_expression_is_translated_as_far_as_it_goes() -> None:
    pl = pytest.importorskip("polars")
    unknown = pl.col("s").str.contains("a.*")
    assert from_polars(unknown) == (None, False)
    assert from_polars(unknown | (pl.col("i") > 0)) == (None, False)
    found, is_whole = from_polars(unknown & (pl.col("i") > 0))
    assert found is not None
    assert not is_whole
    assert format_sql(found) == "i > 0"
