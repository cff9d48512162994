"""What double quotes enclose: names in SQL that a person passes, texts in a table's log."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from delta_core.errors import ColumnNotFoundError, ExpressionError
from delta_core.expressions import parse_sql, to_expression
from delta_core.expressions.ast import Call, Column, Literal
from delta_core.expressions.printing import format_sql
from delta_core.expressions.sql import portable_sql
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType

STRING = PrimitiveType("string")
#: Characters that quote, escape or begin something in one of the readers.
WORDS = st.text(st.sampled_from(list("ab'\"`\\-/* .%_\né")), min_size=1, max_size=8)


def _is_same(found: object, expected: Call) -> bool:
    return isinstance(found, Call) and (found.function, found.args) == (expected.function, expected.args)


def _in(quote: str, text: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


@given(WORDS, WORDS)
def test_double_quoted_name_equals_name_in_backticks(name: str, text: str) -> None:
    literal = format_sql(Literal(text, STRING))
    wanted = parse_sql(f"{_in('`', name)} = {literal}")
    found = parse_sql(f"{_in(chr(34), name)} = {literal}", "name")
    assert isinstance(wanted, Call)
    assert _is_same(found, wanted)
    assert wanted.args == (Column((name,)), Literal(text, STRING))


@given(WORDS)
def test_double_quoted_text_of_a_log_equals_text_in_single_quotes(text: str) -> None:
    body = text.replace("\\", "\\\\").replace('"', '""')
    sql = f'"{body}" = x'
    portable = portable_sql(sql, "text")
    assert "'" in portable
    assert parse_sql(sql) is not None
    assert _is_same(parse_sql(portable), Call("=", (Literal(text, STRING), Column(("x",)))))
    assert _is_same(parse_sql(sql), Call("=", (Literal(text, STRING), Column(("x",)))))
    assert portable_sql(portable, "name") == portable or '"' in text


@pytest.mark.parametrize(
    ("text", "portable"),
    [
        ("x = 'say \"hi\"'", "x = 'say \"hi\"'"),
        ('x = 1 -- "y"', 'x = 1 -- "y"'),
        ('x = 1 /* "y" */', 'x = 1 /* "y" */'),
        ('`a"b` = 1', '`a"b` = 1'),
        ('x rlike r\'\\d"\' AND "y" = 1', "x rlike r'\\d\"' AND `y` = 1"),
        ('"t"."id" = s."x y"', "`t`.`id` = s.`x y`"),
        ("x = 'it\\'s' AND \"y\" = 'a''b'", "x = 'it\\'s' AND `y` = 'a''b'"),
    ],
)
def test_only_double_quotes_outside_of_texts_comments_and_names_change(text: str, portable: str) -> None:
    assert portable_sql(text, "name") == portable


def test_double_quoted_texts_that_touch_others_stay_apart() -> None:
    for sql in ("\"a\"'b'", "'b'\"a\""):
        assert parse_sql(portable_sql(sql, "text")) == parse_sql(sql)


@pytest.mark.parametrize(
    "text",
    [
        '"" = x',
        'DATE "2024-01-01" = d',
        'x = r"a"',
        'X"1F" = x',
        'd + INTERVAL "1" DAY > d',
        "x LIKE 'a' ESCAPE \"!\"",
        '"x',
    ],
)
def test_double_quotes_where_no_name_can_be_are_rejected_with_the_quotes_of_texts(text: str) -> None:
    with pytest.raises(ExpressionError, match="put texts in single quotes"):
        parse_sql(text, "name")


@pytest.mark.parametrize("text", ['kind = "hello"', "kind = hello", "upper(hello) = kind", 'kind LIKE "hello"'])
def test_unknown_name_in_sql_is_rejected_with_the_quotes_of_texts(text: str) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"Column hello is not.*single quotes: 'hello'"):
        to_expression(text, Schema([Field("kind", STRING)]))


def test_unknown_name_in_filters_is_rejected_without_advice_on_sql() -> None:
    with pytest.raises(ColumnNotFoundError) as e:
        to_expression([("colour", "=", "red")], Schema([Field("kind", STRING)]))
    assert "quotes" not in str(e.value)
