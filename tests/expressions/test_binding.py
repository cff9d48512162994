"""Names resolved, constants typed, casts put in as Spark would."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import ColumnNotFoundError, ExpressionError, PluginError, UnsupportedExpressionError
from delta_core.expressions import bind, format_sql, parse_sql
from delta_core.expressions.ast import Call, Column, Expression, Literal
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.plugin_functions import Function
from delta_core.schema.types import ArrayType, Field, MapType, PrimitiveType, StructType

SCHEMA = StructType(
    [
        Field("Id", "integer"),
        Field("y", "byte"),
        Field("l", "long"),
        Field("r", "float"),
        Field("f", "double"),
        Field("d", "decimal(10,2)"),
        Field("w", "decimal(38,10)"),
        Field("s", "string"),
        Field("dt", "date"),
        Field("ts", "timestamp"),
        Field("b", "boolean"),
        Field("n.m", "integer"),
        Field("st", StructType([Field("X", "double"), Field("in", StructType([Field("z", "long")]))])),
        Field("m", MapType("string", "integer")),
        Field("ms", MapType("string", StructType([Field("q", "date")]))),
        Field("arr", ArrayType(StructType([Field("e", "integer")]))),
        Field("v", "variant"),
    ]
)
NOW = dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)


def bound(text: str) -> str:
    return format_sql(bind(parse_sql(text), SCHEMA, now=NOW))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID = 1", "Id = 1"),
        ("ST.x > 0", "st.X > 0.0D"),
        ("st.In.Z = 1", "st.`in`.z = 1L"),
        ("`n.m` = 1", "`n.m` = 1"),
        ("m.k = 1", "element_at(m, 'k') = 1"),
        ("ms.k.Q is null", "element_at(ms, 'k').q IS NULL"),
        ("arr[0].e = 1", "arr[0].e = 1"),
        ("y = 300", "CAST(y AS INT) = 300"),
        ("id = 5.5", "CAST(Id AS DECIMAL(10,0)) = 5.5BD"),
        ("d = 5", "d = 5BD"),
        ("d = 5e0", "CAST(d AS DOUBLE) = 5.0D"),
        ("r = 1", "CAST(r AS DOUBLE) = 1.0D"),
        ("s = 5", "CAST(s AS BIGINT) = 5L"),
        ("s > 1.5", "CAST(s AS DOUBLE) > 1.5D"),
        ("id = '7'", "CAST(Id AS BIGINT) = 7L"),
        ("dt >= '2020-1-5'", "dt >= DATE '2020-01-05'"),
        ("dt < ts", "CAST(dt AS TIMESTAMP) < ts"),
        ("ts = '2020-01-01 01:00+01'", "ts = TIMESTAMP '2020-01-01 00:00:00Z'"),
        ("id in (1, 2L)", "CAST(Id AS BIGINT) IN (1L, 2L)"),
        ("coalesce(id, d)", "coalesce(CAST(Id AS DECIMAL(12,2)), CAST(d AS DECIMAL(12,2)))"),
        ("dt + 1", "date_add(dt, 1)"),
        ("dt - interval 2 months", "add_months(dt, -2)"),
        ("nvl(s, 'x')", "coalesce(s, 'x')"),
        ("int(s)", "CAST(s AS INT)"),
        ("year(ts)", "year(CAST(ts AS DATE))"),
        ("date_part('day', dt)", "day(dt)"),
        ("id / 2", "CAST(Id AS DOUBLE) / 2.0D"),
        ("upper(id)", "upper(CAST(Id AS STRING))"),
        ("ts < now()", "ts < TIMESTAMP '2024-05-06 07:08:09Z'"),
        ("dt = current_date", "dt = DATE '2024-05-06'"),
        ("null = id", "CAST(NULL AS INT) = Id"),
        ("position('a' in s)", "instr(s, 'a')"),
    ],
)
def test_bound_form(text: str, expected: str) -> None:
    assert bound(text) == expected
    once = bind(parse_sql(text), SCHEMA, now=NOW)
    assert bind(once, SCHEMA) == once


@pytest.mark.parametrize(
    ("text", "type_name"),
    [
        ("y + 1", "integer"),
        ("id + l", "long"),
        ("r + id", "double"),
        ("d + d", "decimal(11,2)"),
        ("d * 2", "decimal(12,2)"),
        ("d / 3", "decimal(14,6)"),
        ("w * w", "decimal(38,6)"),
        ("w + d", "decimal(38,9)"),
        ("d % 7", "decimal(3,2)"),
        ("id div 2", "long"),
        ("round(d, 1)", "decimal(10,1)"),
        ("round(d, -1)", "decimal(9,0)"),
        ("floor(d)", "decimal(9,0)"),
        ("ceil(f)", "long"),
        ("case when b then id else 1.5 end", "decimal(11,1)"),
        ("length(s)", "integer"),
        ("hash(s)", "integer"),
        ("xxhash64(s)", "long"),
        ("date_trunc('day', dt)", "timestamp"),
        ("-y", "byte"),
        ("null", "void"),
        ("m['k']", "integer"),
    ],
)
def test_result_type_equals_spark(text: str, type_name: str) -> None:
    assert bind_typed(parse_sql(text), SCHEMA).type == PrimitiveType(type_name)


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("missing = 1", ColumnNotFoundError, "missing"),
        ("st.nope = 1", ColumnNotFoundError, "st.nope"),
        ("arr.e = 1", ColumnNotFoundError, "arr"),
        ("s.x = 1", ColumnNotFoundError, "s.x"),
        ("b and id", ExpressionError, "INT"),
        ("dt = 'soon'", ExpressionError, "soon"),
        ("dt = 5", ExpressionError, "DATE, INT"),
        ("m = m", UnsupportedExpressionError, "MAP"),
        ("v = v", UnsupportedExpressionError, "VARIANT"),
        ("cast(dt as int)", UnsupportedExpressionError, "DATE to INT"),
        ("substring(s)", ExpressionError, "1 arguments"),
        ("round(d, id)", UnsupportedExpressionError, "round"),
        ("dt + ts", UnsupportedExpressionError, "TIMESTAMP"),
        ("y & 1.5", ExpressionError, "whole"),
        ("date_part('eon', dt)", UnsupportedExpressionError, "eon"),
        ("id = 'x'", ExpressionError, "BIGINT"),
        ("hash(m)", ExpressionError, "MAP"),
    ],
)
def test_what_does_not_fit_is_named(text: str, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        bound(text)


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (5, "integer"),
        (2**40, "long"),
        (2**70, "decimal(22,0)"),
        (1.5, "double"),
        ("x", "string"),
        (b"x", "binary"),
        (True, "boolean"),
        (Decimal("1.50"), "decimal(3,2)"),
        (Decimal("1E+3"), "decimal(4,0)"),
        (dt.date(2020, 1, 1), "date"),
        (NOW, "timestamp"),
        (NOW.replace(tzinfo=None), "timestamp_ntz"),
        (pa.scalar(5, pa.int8()), "integer"),
        (None, "void"),
    ],
)
def test_untyped_constant_takes_its_values_type(value: Any, type_name: str) -> None:
    assert bind_typed(Literal(value), SCHEMA).type == PrimitiveType(type_name)


def test_constant_without_a_type_is_rejected() -> None:
    with pytest.raises(ExpressionError, match="object"):
        bind(Call("=", (Column(("Id",)), Literal(object()))), SCHEMA)


def test_dotted_name_reaches_into_structs_unless_a_column_has_it() -> None:
    def column(name: str) -> Expression:
        return bind(Column((name,)), SCHEMA)

    assert column("st.x") == Column(("st", "X"))
    assert column("n.m") == Column(("n.m",))


def test_text_is_kept_unless_it_holds_the_time() -> None:
    assert bind(parse_sql("ID = 1"), SCHEMA).sql == "ID = 1"  # type: ignore[union-attr]
    assert bind(parse_sql("ts < now()"), SCHEMA).sql == ""  # type: ignore[union-attr]


def test_plugins_function_is_typed_by_its_rule() -> None:
    twice = Function("mine", "twice", lambda types: types[0], lambda values: values)
    found = bind_typed(parse_sql("twice(l)"), SCHEMA, {"twice": twice})
    assert found.type == PrimitiveType("long")
    shadow = Function("mine", "upper", lambda types: pa.int64(), lambda values: values)
    assert bind_typed(parse_sql("upper(s)"), SCHEMA, {"upper": shadow}).type == PrimitiveType("string")


def test_plugins_rejection_names_the_function() -> None:
    def refuse(types: list[pa.DataType]) -> pa.DataType:
        raise TypeError("no")

    with pytest.raises(PluginError, match="picky"):
        bind(parse_sql("picky(s)"), SCHEMA, {"picky": Function("mine", "picky", refuse, lambda values: values)})


def test_try_cast_of_bad_constant_is_null() -> None:
    assert bind(parse_sql("try_cast('x' as int)"), SCHEMA) == Literal(None, PrimitiveType("integer"))
