"""The short parser builds the tree that sqlglot's does, or leaves the text to it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from delta_core.errors import DeltaError
from delta_core.expressions.ast import Call, Column, Expression, Literal
from delta_core.expressions.simple_sql import RESERVED, parse_simple
from delta_core.expressions.sqlglot_trees import parse_with_sqlglot
from delta_core.schema.types import PrimitiveType

LEAVES = st.sampled_from([
    "a", "b.c", "`x y`", "name", "Date", "t.`q.r`.s", "1", "-5", "1.5", ".5", "2.", "1e3", "'x'", "''", "true", "NULL",
    "99999999999",
    "12345678901234567890123",
])  # fmt: skip
SIGNS = st.sampled_from([" + ", "-", " * ", "/", " % "])
COMPARISONS = st.sampled_from(["=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>"])
RANGES = st.sampled_from(
    [
        " is null",
        " is not null",
        " IS TRUE",
        " is not false",
        " in (1, 2,-3)",
        " not in ('a')",
        " like 'a%'",
        " NOT LIKE '_'",
        " between 1 and 2",
        " not between a and b + 1",
    ]
)


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    return st.tuples(*(p if isinstance(p, st.SearchStrategy) else st.just(p) for p in parts)).map("".join)


NUMBERS = st.recursive(
    LEAVES, lambda e: joined("(", e, ")") | joined("-", e) | joined("- ", e) | joined(e, SIGNS, e), max_leaves=4
)
CONDITIONS = st.recursive(
    joined(NUMBERS, " ", COMPARISONS, " ", NUMBERS) | joined(NUMBERS, RANGES) | NUMBERS,
    lambda c: joined("not ", c) | joined("(", c, ")") | joined(c, " and ", c) | joined(c, " OR ", c),
    max_leaves=5,
)
NOISE = st.sampled_from(["'", "(", ")", "=", ".", "`", " ", " not ", "5", "L", "-", "[", "::", "e1", "is"])


def by_sqlglot(text: str) -> Expression | None:
    try:
        return parse_with_sqlglot(text, text, {})
    except DeltaError:
        return None


@given(CONDITIONS)
def test_tree_is_that_of_sqlglot(text: str) -> None:
    found = parse_simple(text)
    if found is not None:
        assert repr(found) == repr(by_sqlglot(text))


@given(CONDITIONS, st.integers(0, 1000), NOISE, st.integers(0, 1))
def test_text_with_noise_is_read_like_sqlglot_or_left_to_it(text: str, place: int, noise: str, cut: int) -> None:
    at = place % (len(text) + 1)
    text = text[:at] + noise + text[at + cut :]
    found = parse_simple(text)
    if found is not None:
        assert repr(found) == repr(by_sqlglot(text))


@pytest.mark.parametrize(
    "text",
    [
        "id > 5",
        "value < 0.00001",
        "name = 'n7'",
        "id % 100 = 7",
        "day >= '2024-05-01' and amount > 100",
        "a is null",
        "x in (1, 2, 3)",
    ],
)
def test_predicates_as_people_write_them_need_no_sqlglot(text: str) -> None:
    assert parse_simple(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "f(a) = 1", "a = 'it''s'", "a = 'x' 'y'", "a = \"x\"", "a = 5L", "date '2024-01-01' < a",
        "a = b = c", "a = b is null", "a is null = b", "case when a then 1 end", "a || b = 'x'", "a & 1 = 1",
        "a like 'x' escape 'y'", "a = 1 -- b", "a[0] = 1", "a:b = 1", "not not a", "not (a) is null", "x'AB' = a",
        "a = ?", "a.* = 1", "ä = 1", "a = 1;", "(" * 40 + "a" + ")" * 40, "a = 1" + " and a = 1" * 500,
        "(a, b) = (1, 2)", "a in (b)", "a in (select 1)", "a in ()", "1e3-1 = 2", "interval 1 day = a",
        "a like any ('x')", "cast(a as int) = 1",
    ],
)  # fmt: skip
def test_other_texts_are_left_to_sqlglot(text: str) -> None:
    assert parse_simple(text) is None


def test_words_that_sqlglot_takes_for_no_column_are_reserved() -> None:
    from sqlglot.dialects.spark import Spark

    parser = Spark.parser_class if hasattr(Spark, "parser_class") else Spark.Parser
    tables = (
        Spark.tokenizer_class.KEYWORDS,
        parser.FUNCTION_PARSERS,
        parser.FUNCTIONS,
        parser.NO_PAREN_FUNCTION_PARSERS,
    )
    words = {word.lower() for table in tables for word in table if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", word)}
    assert len(words) > 500
    one = Literal(1, PrimitiveType("integer"))
    for word in sorted(words - RESERVED):
        column = Column((word,))
        assert by_sqlglot(f"{word} = 1 and 1 < {word} or not {word}") == Call(
            "or", (Call("and", (Call("=", (column, one)), Call("<", (one, column)))), Call("not", (column,)))
        ), word
        assert by_sqlglot(f"a.{word}.b is null") == Call("isnull", (Column(("a", word, "b")),)), word
        assert by_sqlglot(f"{word} in (1) and {word} like 'a'") is not None, word
