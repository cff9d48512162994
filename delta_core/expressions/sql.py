"""Spark SQL text to expressions; `printing` goes the other way. sqlglot reads what `simple_sql` leaves to it."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from delta_core.expressions import parts as late
from delta_core.expressions.ast import MANY, Call, Cast, Column, Expression, transform
from delta_core.expressions.simple_sql import PLACEHOLDER, parse_simple
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["parse_sql"]


def parse_sql(text: str) -> Expression:
    """Parse one predicate or scalar expression in Spark's dialect.

    Returns
    -------
    Expression
        Not bound to any schema; the root carries ``text`` in ``sql``. ``current_date`` and the like are
        calls, which `binding.bind` replaces by constants.

    Raises
    ------
    ExpressionError
        The text is not one expression.
    UnsupportedExpressionError
        It holds a part that can't be evaluated over single rows, such as a subquery, or that is not known.
    """
    short, parts = _lift_lists(text)
    found = parse_simple(short) or late.parse_with_sqlglot(short, text, parts)
    if parts:
        found = transform(found, lambda leaf: parts.get(leaf, leaf))
    return replace(found, sql=text) if isinstance(found, (Call, Cast)) else found


_NUMBER = r"\s*+[+-]?[0-9]++\s*+"
_PLAIN_TEXT = r"\s*+'[^'\\]*+'\s*+"
#: What may hold anything (texts, quoted names, comments), and lists of constants behind IN.
_LISTS = lazy_pattern(
    r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`[^`]*+`|--[^\n]*+|/\*.*?\*/|\bIN\s*+\("""
    rf"(?:(?P<numbers>{_NUMBER}(?:,{_NUMBER})++)|(?P<texts>{_PLAIN_TEXT}(?:,{_PLAIN_TEXT})++))\)",
    re.IGNORECASE | re.DOTALL,
)


def _lift_lists(text: str) -> tuple[str, dict[Any, Expression]]:
    """Take long lists of constants out of a text, since a parser takes seconds for a million of them.

    Returns the text with a column in the place of each list, and the values by column.
    """
    lists: dict[Any, Expression] = {}

    def lift(match: re.Match[str]) -> str:
        numbers, texts = match.group("numbers", "texts")
        values = None if numbers is None and texts is None else late.from_text(numbers, texts)
        if values is None:
            return match[0]
        placeholder = Column((f"{PLACEHOLDER}{len(lists)}",))
        lists[placeholder] = values
        return f"IN (`{placeholder.name}`)"

    return (_LISTS.sub(lift, text), lists) if len(text) > 2 * MANY else (text, lists)
