"""Spark SQL text to expressions; `printing` goes the other way. sqlglot reads what `simple_sql` leaves to it.

The meaning of double quotes depends on the origin of a text (`DoubleQuotes`). A text without them means the same to
every reader, so `portable_sql` makes such a text before anything else reads it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec.structs import replace

from delta_core.errors import ExpressionError
from delta_core.expressions import parts as late
from delta_core.expressions.ast import MANY, Call, Cast, Column, Expression, transform
from delta_core.expressions.simple_sql import PLACEHOLDER, parse_simple
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["DoubleQuotes", "is_default", "operator_hint", "parse_sql", "portable_sql"]

#: The text that double quotes enclose: a name, as in standard SQL and in every text that a person passes; or a text, as
#: in Spark by default, and so in the expressions that a table's log contains.
DoubleQuotes = Literal["name", "text"]


def parse_sql(text: str, double_quotes: DoubleQuotes = "text") -> Expression:
    """Parse one predicate or scalar expression in Spark's dialect.

    Parameters
    ----------
    text : str
        The expression.
    double_quotes : "text" or "name"
        The text that double quotes enclose: a text in an expression of a table's log, a name in one that a person
        passes.

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
    if double_quotes == "name" and '"' in text:
        try:
            return parse_sql(portable_sql(text, "name"))
        except ExpressionError as e:
            raise type(e)(f"{e.message} {_NAMES_HINT}", **e.facts) from e
    short, parts = _lift_lists(text)
    try:
        found = parse_simple(short) or late.parse_with_sqlglot(short, text, parts)
    except ExpressionError as e:
        hint = operator_hint(text)
        if not hint:
            raise
        raise type(e)(f"{e.message}{hint}", **e.facts) from e
    if parts:
        found = transform(found, lambda leaf: parts.get(leaf, leaf))
    return replace(found, sql=text) if isinstance(found, (Call, Cast)) else found


#: Tokens that may contain double quotes that enclose nothing, and tokens that double quotes enclose: names double them
#: alone, texts have escapes too.
_QUOTED = {
    kind: lazy_pattern(
        r"""(?<!\w)[rR](?:'[^']*+'|"(?P<raw>[^"]*+)")|'(?:[^'\\]|\\.)*+'|`[^`]*+`|--[^\n]*+|/\*.*?\*/"""
        rf"""|"(?P<body>{body})\"""",
        re.DOTALL,
    )
    for kind, body in (("name", r'(?:[^"]|"")*+'), ("text", r'(?:[^"\\]|\\.|"")*+'))
}


def portable_sql(text: str, double_quotes: DoubleQuotes) -> str:
    """Return SQL without double quotes: names are in backticks, texts in single quotes, as all readers read them.

    Parameters
    ----------
    text : str
        An expression. One without double quotes is returned as it is.
    double_quotes : "name" or "text"
        The meaning of their text in it.

    Raises
    ------
    ExpressionError
        For an empty name, or a raw text (``r"..."``) if double quotes enclose names.
    """

    def requote(match: re.Match[str]) -> str:
        raw, body = match.group("raw", "body")
        if raw is None and body is None:
            return match[0]
        if double_quotes == "text":
            inner = _requoted(body) if raw is None else raw.replace("\\", "\\\\").replace("'", "\\'")
            # two quotes that touch are one character
            before, after = ("" if c != "'" else " " for c in (text[: match.start()][-1:], text[match.end() :][:1]))
            return f"{before}'{inner}'{after}"
        if not body:
            raise ExpressionError(f"The expression {text!r} contains {match[0]}, which is no name.", sql=text)
        return "`" + body.replace('""', '"').replace("`", "``") + "`"

    return _QUOTED[double_quotes].sub(requote, text) if '"' in text else text


#: Operators of other languages, longer ones first, with what SQL has in their place.
_FOREIGN = {
    "&&": "AND", "===": "=", "!==": "<>", "=>": ">=", "=<": "<=", "=~": "RLIKE", "!~": "NOT ... RLIKE", ":=": "=",
    "||": "OR (|| joins texts)",
}  # fmt: skip
_QUOTED_PARTS = lazy_pattern(
    r"""'(?:[^'\\]|\\.)*+'|`[^`]*+`|"[^"]*+"|--[^\n]*+|/\*.*?\*/|(===|!==|&&|=>|=<|=~|!~|:=|\|\|)""", re.DOTALL
)


def operator_hint(text: Any) -> str:
    """Return what to write in place of an operator that SQL lacks, or reads in another way; empty if there is none."""
    if not isinstance(text, str):
        return ""
    found = next((m[1] for m in _QUOTED_PARTS.finditer(text) if m[1]), None)
    return "" if found is None else f" Found {found}: write {_FOREIGN[found]}."


def is_default(value: Any) -> bool:
    """Return whether a new value is SQL's keyword ``DEFAULT``, which represents the default of a column."""
    return isinstance(value, str) and value.strip().upper() == "DEFAULT"


_INNER = lazy_pattern(r"""\\.|""|'""", re.DOTALL)


def _requoted(body: str) -> str:
    """Return what double quotes enclose as a text in Spark, for single quotes."""
    return _INNER.sub(lambda m: {'""': '"', "'": "\\'"}.get(m[0], m[0]), body)


_NAMES_HINT = "Double quotes enclose names; put texts in single quotes, such as 'hello'."
_NUMBER = r"\s*+[+-]?[0-9]++\s*+"
_PLAIN_TEXT = r"\s*+'[^'\\]*+'\s*+"
#: Tokens that may hold anything (texts, quoted names, comments), and lists of constants after IN.
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
