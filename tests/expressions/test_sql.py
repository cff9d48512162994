"""Spark SQL text to expressions and back."""

from __future__ import annotations

import datetime as dt
import math
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions import bind, format_sql, parse_sql
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, PartitionValue
from delta_core.expressions.functions import function_names
from delta_core.schema.types import Field, PrimitiveType, StructType

A, B = Column(("a",)), Column(("b",))
SCHEMA = StructType([Field("a", "integer"), Field("b", "boolean"), Field("s", "string"), Field("d", "date")])


def typed(value: Any, name: str) -> Literal:
    return Literal(value, PrimitiveType(name))


ONE = typed(1, "integer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 1", Call("=", (A, ONE))),
        ("a <> 1", Call("!=", (A, ONE))),
        ("a <=> 1", Call("<=>", (A, ONE))),
        ("not a = 1", Call("not", (Call("=", (A, ONE)),))),
        ("!a", Call("not", (A,))),
        ("a is not null", Call("isnotnull", (A,))),
        ("a is not true", Call("not", (Call("<=>", (A, typed(True, "boolean"))),))),
        ("a not in (1)", Call("not", (Call("in", (A, ONE)),))),
        ("a between 1 and b", Call("and", (Call(">=", (A, ONE)), Call("<=", (A, B))))),
        ("not between(a, 1, b)", Call("not", (Call("between", (A, ONE, B)),))),
        ("a not between (1) and (b)", Call("not", (Call("and", (Call(">=", (A, ONE)), Call("<=", (A, B)))),))),
        ("a like 'x%' escape '!'", Call("like", (A, typed("x%", "string"), typed("!", "string")))),
        ("a not rlike 'x'", Call("not", (Call("rlike", (A, typed("x", "string"))),))),
        ("a is distinct from b", Call("not", (Call("<=>", (A, B)),))),
        ("a or b and a", Call("or", (A, Call("and", (B, A))))),
        ("a + b * a", Call("+", (A, Call("*", (B, A))))),
        ("a div b", Call("div", (A, B))),
        ("-a", Call("negative", (A,))),
        ("a::bigint", Cast(A, PrimitiveType("long"))),
        ("try_cast(a as decimal(10, 2))", Cast(A, PrimitiveType("decimal(10,2)"), safe=True)),
        ("case a when 1 then b end", Call("case", (Call("=", (A, ONE)), B))),
        ("case when a then 1 else b end", Call("case", (A, ONE, B))),
        ("if(a, b, 1)", Call("if", (A, B, ONE))),
        ("a.`b c`.d", Column(("a", "b c", "d"))),
        ("`a``b`", Column(("a`b",))),
        (
            "a[1].x['k']",
            Call("[]", (Call("get_field", (Call("[]", (A, ONE)), typed("x", "string"))), typed("k", "string"))),
        ),
        ("date_add(a, 1)", Call("date_add", (A, ONE))),
        ("My_Function(a)", Call("my_function", (A,))),
        ("extract(year from a)", Call("date_part", (typed("YEAR", "string"), A))),
        ("trim(leading 'x' from a)", Call("ltrim", (typed("x", "string"), A))),
        ("position('x' in a)", Call("locate", (typed("x", "string"), A))),
        ("a || b || 'c'", Call("concat", (Call("concat", (A, B)), typed("c", "string")))),
        ("comment = 1", Call("=", (Column(("comment",)), ONE))),
        ("a /* note */ = 1 -- end", Call("=", (A, ONE))),
    ],
)
def test_text_parses_to_tree(text: str, expected: Expression) -> None:
    found = parse_sql(text)
    assert found == expected
    assert getattr(found, "sql", text) == text


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("5", 5, "integer"),
        ("-5", -5, None),
        ("3000000000", 3_000_000_000, "long"),
        ("5L", 5, "long"),
        ("5Y", 5, "byte"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        ("1.5BD", Decimal("1.5"), "decimal(2,1)"),
        ("-1234567890123456789012345678901234567.1BD", Decimal("-1234567890123456789012345678901234567.1"), None),
        ("-1234567890123456789012345678901234567.1", Decimal("-1234567890123456789012345678901234567.1"), None),
        ("-12345678901234567890123456789012345678", Decimal(-12345678901234567890123456789012345678), None),
        ("1.5D", 1.5, "double"),
        ("1e3", 1000.0, "double"),
        ("9223372036854775808", Decimal(2**63), "decimal(19,0)"),
        ("true", True, "boolean"),
        ("null", None, None),
        ("X'0aFF'", b"\x0a\xff", "binary"),
        ("date '2020-02-29'", dt.date(2020, 2, 29), "date"),
        ("timestamp '2020-01-01T00:00:00+01:00'", dt.datetime(2019, 12, 31, 23, tzinfo=dt.UTC), "timestamp"),
        ("timestamp_ntz '2020-01-01 1:2:3.5'", dt.datetime(2020, 1, 1, 1, 2, 3, 500000), "timestamp_ntz"),
        ("'a' 'b'", "ab", "string"),
        (r"'it\'s \\ \n \% \u00e9'", "it's \\ \n \\% é", "string"),
        ("'it''s'", "it's", "string"),
        ("'a\"\"b'", 'a""b', "string"),
        ('"a""b"', 'a"b', "string"),
        (r"r'a\nb'", r"a\nb", "string"),
        ('"text"', "text", "string"),
        ("interval 2 weeks", 14 * 86_400_000_000, "interval day"),
        ("interval '3' hours", 10_800_000_000, "interval day to second"),
        ("interval -1 year", -12, "interval year to month"),
    ],
)
def test_literal_has_sparks_type(text: str, value: Any, type_name: str | None) -> None:
    found = parse_sql(text)
    assert isinstance(found, Literal)
    assert (found.value, found.type) == (value, None if type_name is None else PrimitiveType(type_name))


@pytest.mark.parametrize(("text", "inner"), [("-'5'", "5"), ("-date '2020-01-02'", dt.date(2020, 1, 2))])
def test_negative_of_another_constant_than_a_number_is_left_to_types(text: str, inner: Any) -> None:
    found = parse_sql(text)
    assert isinstance(found, Call)
    assert found.function == "negative"
    assert found.args[0].value == inner


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a = (select 1)", "subquery"),
        ("exists (select 1)", "subquery"),
        ("a in (select b)", "list of values"),
        ("sum(a) over (partition by b)", "window function"),
        ("filter(a, x -> x > 1)", "lambda"),
        ("a.*", "star"),
        ("a = :p", "parameter"),
        ("(a, b) = (1, 2)", "tuple"),
        ("a collate x", "COLLATE"),
        ("a like any ('x')", "ANY"),
        ("[1, 2]", "array"),
        ("cast(a as struct<x: int>)", "STRUCT"),
        ("a & b | a", "parentheses"),
        ("a = b in (1)", "parentheses"),
        ("1 || a + b", "parentheses"),
        ("interval 'x' day", "interval"),
    ],
)
def test_unsupported_part_is_named(text: str, named: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match=named):
        parse_sql(text)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "a =", "a = 1)", "a; b", "'open", "a = 1 group by b", "a as b", "a b c", "date '2020-13-01'", "1Q2 ="],
)
def test_text_that_is_no_expression_is_rejected(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_sql(text)
    assert "class" not in str(caught.value), "a parser's class is no business of who wrote the text"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("count(*) > 1", "aggregate"),
        ("max(a) > 1", "aggregate"),
        ("rank() = 1", "window"),
        ("rand() < 0.5", "deterministic"),
        ("uuid() = s", "deterministic"),
        ("explode(s) = 1", "generator"),
        ("frobnicate(a)", "frobnicate"),
    ],
)
def test_function_that_rows_cannot_have_is_named_on_binding(text: str, named: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match=named):
        bind(parse_sql(text), SCHEMA)


# --- printing ------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=5).filter(lambda n: "\x00" not in n)
LITERALS = st.one_of(
    st.integers(-(2**31) + 1, 2**31 - 1).map(lambda v: typed(v, "integer")),
    st.integers(-(2**63) + 1, 2**63 - 1).map(lambda v: typed(v, "long")),
    st.floats(allow_nan=False).map(lambda v: typed(v, "double")),
    st.text().map(lambda v: typed(v, "string")),
    st.binary(max_size=6).map(lambda v: typed(v, "binary")),
    st.booleans().map(lambda v: typed(v, "boolean")),
    st.dates().map(lambda v: typed(v, "date")),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda v: typed(v, "timestamp")),
    st.datetimes().map(lambda v: typed(v, "timestamp_ntz")),
    st.just(Literal(None)),
)


def _varies(e: Expression) -> bool:
    return not isinstance(e, Literal)


def _branch(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    binary = st.sampled_from(["=", "<=>", "<", "and", "or", "+", "-", "*", "/", "%", "div", "like", "concat", "[]"])
    return st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b)), binary, inner, inner),
        st.builds(
            lambda f, a: Call(f, (a,)), st.sampled_from(["not", "isnull", "isnotnull", "upper", "negative"]), inner
        ),
        st.builds(lambda a, b, c: Call("case", (a, b, c)), inner, inner, inner),
        st.builds(lambda a, b, c: Call("in", (a, b, c)), inner, inner, inner),
        st.builds(lambda a, safe: Cast(a, PrimitiveType("long"), safe), inner.filter(_varies), st.booleans()),
    )


COLUMNS = st.lists(NAMES, min_size=1, max_size=3).map(lambda p: Column(tuple(p)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a =", "an operand is missing at line 1, column 3"),
        ("a between 1", "an operand is missing at line 1, column 11"),
        ("a in (1", "expected ) at line 1, column 7"),
        ("a = 1)", "unexpected text at line 1, column 6"),
        ("cast(a as foo)", "expected TYPE after CAST at line 1, column 13"),
        ("s = 'x", "a quote or a comment is not closed"),
        ("a = 1 /* x", "a quote or a comment is not closed"),
    ],
)
def test_text_that_is_no_expression_is_rejected_in_plain_words(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=rf"can't be parsed: {re.escape(reason)}\.$"):
        parse_sql(text)


@given(st.recursive(st.one_of(LITERALS, COLUMNS), _branch, max_leaves=8))
def test_printed_text_parses_to_the_same_tree(expression: Expression) -> None:
    assert _settled(parse_sql(format_sql(expression))) == _settled(expression)


def test_columns_named_like_keywords_are_quoted_where_the_parser_needs_it() -> None:
    from sqlglot.dialects.spark import Spark

    words = [w for w in Spark.Tokenizer.KEYWORDS if w.replace("_", "").isalpha()]
    assert len(words) > 200
    for word in words:
        for path in ((word,), (word.lower(),), (word, "a"), ("a", word)):
            assert parse_sql(format_sql(Column(path))) == Column(path)


def _settled(e: Expression) -> Expression:
    """Return the tree with constants in one form: text shows neither -(5) nor a cast of a constant."""
    if isinstance(e, Call):
        args = tuple(_settled(a) for a in e.args)
        if e.function == "negative" and isinstance(args[0], Literal) and isinstance(args[0].value, int | float):
            return Literal(-args[0].value, None)
        return Call(e.function, args)
    if isinstance(e, Cast):
        return Cast(_settled(e.arg), e.type, e.safe)
    if isinstance(e, Literal) and isinstance(e.value, int | float) and not isinstance(e.value, bool):
        return Literal(e.value, None)
    return e


def test_leaf_without_sql_is_printed_for_messages() -> None:
    assert (
        format_sql(Call("<", (PartitionValue("p q", PrimitiveType("date")), typed(math.inf, "double"))))
        == "`p q` < CAST('Infinity' AS DOUBLE)"
    )


def test_importing_the_tree_imports_no_parser() -> None:
    late = ("sqlglot", "pyarrow.compute", "polars")
    code = f"import sys, delta_core.expressions.ast; print([m for m in {late} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_function_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")
    words = set(page.replace("`", " ").split())
    assert [name for name in function_names() if name not in words] == []
