"""Expressions to Spark SQL text."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Sequence
from typing import Any

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    Expression,
    FileConstant,
    FileStatistic,
    Literal,
    PartitionValue,
    PhysicalColumn,
    Values,
)  # fmt: skip
from delta_core.expressions.coercion import (
    INTERVAL_DAY,
    INTERVAL_DAY_TIME,
    INTERVAL_YEAR_MONTH,
    name_of,
    spark_name,
)
from delta_core.expressions.literals import to_microseconds, typed
from delta_core.expressions.members import expand

__all__ = ["format_sql", "quote_name"]

_INFIX = frozenset(
    ("=", "!=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "&", "|", "^", "and", "or")
)
#: Written with words or signs around their operands, so that these stand in parentheses.
_LOOSE = frozenset(
    ("not", "isnull", "isnotnull", "in", "like", "ilike", "rlike", "negative", "positive", "~")
)
_WORD = {"and": "AND", "or": "OR", "div": "DIV", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}
_ESCAPED = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\0": "\\0",
    "\b": "\\b",
    "\x1a": "\\Z",
}
#: Words that a bare name may not be, lest Spark reads them as something else.
_RESERVED = frozenset((
    "and", "or", "not", "null", "true", "false", "case", "when", "then", "else", "end", "is", "in", "like", "ilike",
    "rlike", "between", "exists", "select", "from", "where", "cast", "interval", "distinct", "any", "all", "some",
    "current_date",
    "current_timestamp", "div",
))  # fmt: skip


def format_sql(expression: Expression) -> str:
    """Print an expression as Spark SQL that parses to the same tree.

    Compound operands stand in parentheses. A leaf that no SQL names (a statistic, a row position) is printed as
    a function of its name, for messages.
    """
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Call):
        return _call(expression)
    if isinstance(expression, Cast):
        word = "TRY_CAST" if expression.safe else "CAST"
        return f"{word}({format_sql(expression.arg)} AS {spark_name(expression.type)})"
    return _leaf(expression)


def quote_name(name: str) -> str:
    """Return a column's name, in backticks unless it is plain."""
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is not None and name.lower() not in _RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def _leaf(leaf: Any) -> str:
    if isinstance(leaf, Values):
        return f"{len(leaf.array)} values"
    if isinstance(leaf, Column):
        return ".".join(map(quote_name, leaf.path))
    if isinstance(leaf, FileStatistic):
        return f"{leaf.kind}({'.'.join(map(quote_name, leaf.path))})"
    if isinstance(leaf, (PartitionValue, PhysicalColumn, FileConstant)):
        return quote_name(leaf.name)
    return f"{type(leaf).__name__}()"


def _operand(e: Expression) -> str:
    text = format_sql(e)
    compound = isinstance(e, Call) and (e.function in _INFIX or e.function in _LOOSE)
    negative = isinstance(e, Literal) and text.startswith("-")
    return f"({text})" if compound or negative else text


def _holder(e: Expression) -> str:
    closed = isinstance(e, Literal) or (isinstance(e, Call) and e.function == "case")
    return f"({format_sql(e)})" if closed else _operand(e)


def _call(e: Call) -> str:
    if e.function in _INFIX and len(e.args) > 1:
        return f" {_WORD.get(e.function, e.function)} ".join(map(_operand, e.args))
    if e.function in ("and", "or"):
        return format_sql(e.args[0])
    if e.function in _SYNTAX:
        return str(_SYNTAX[e.function](e))
    if e.function in ("negative", "positive", "~"):
        sign = {"negative": "-", "positive": "+", "~": "~"}[e.function]
        return f"{sign}({format_sql(e.args[0])})"
    return f"{e.function}({', '.join(map(format_sql, e.args))})"


def _case(e: Call) -> str:
    pairs = len(e.args) // 2
    body = "".join(
        f" WHEN {format_sql(e.args[2 * i])} THEN {format_sql(e.args[2 * i + 1])}" for i in range(pairs)
    )
    otherwise = f" ELSE {format_sql(e.args[-1])}" if len(e.args) % 2 else ""
    return f"CASE{body}{otherwise} END"


def _like(e: Call) -> str:
    escape = f" ESCAPE {_operand(e.args[2])}" if len(e.args) > 2 else ""
    return f"{_operand(e.args[0])} {_WORD[e.function]} {_operand(e.args[1])}{escape}"


def _field(e: Call) -> str:
    name = e.args[1]
    assert isinstance(name, Literal)
    return f"{_holder(e.args[0])}.{quote_name(str(name.value))}"


def _candidates(e: Call) -> Sequence[Expression]:
    values = e.args[-1]
    return expand(values) if isinstance(values, Values) else e.args[1:]


_SYNTAX: dict[str, Any] = {
    "not": lambda e: f"NOT {_operand(e.args[0])}",
    "isnull": lambda e: f"{_operand(e.args[0])} IS NULL",
    "isnotnull": lambda e: f"{_operand(e.args[0])} IS NOT NULL",
    "in": lambda e: f"{_operand(e.args[0])} IN ({', '.join(map(format_sql, _candidates(e)))})",
    "like": _like, "ilike": _like, "rlike": _like, "case": _case, "get_field": _field,
    "[]": lambda e: f"{_holder(e.args[0])}[{format_sql(e.args[1])}]",
}  # fmt: skip


# --- constants -----------------------------------------------------------------------------


def _literal(literal: Literal) -> str:
    found = typed(literal)
    assert found.type is not None
    name, value = name_of(found.type), found.value
    if value is None:
        return "NULL" if literal.type is None or name == "void" else f"CAST(NULL AS {spark_name(found.type)})"
    if name in _PRINTERS:
        return str(_PRINTERS[name](value))
    if found.type in (INTERVAL_DAY, INTERVAL_DAY_TIME):
        return (
            f"INTERVAL '{value // 86_400_000_000}' DAY"
            if found.type == INTERVAL_DAY
            else f"INTERVAL '{value}' MICROSECOND"
        )
    if found.type == INTERVAL_YEAR_MONTH:
        return f"INTERVAL '{value}' MONTH"
    raise ExpressionError(f"A constant of type {spark_name(found.type)} has no SQL text.", value=value)


def _text(value: str) -> str:
    # Spark keeps the backslash of \\% and \\_ and drops every other one, so a backslash is always doubled.
    return "'" + "".join(_ESCAPED.get(c, c) for c in value) + "'"


def _double(value: float, suffix: str) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS {'DOUBLE' if suffix == 'D' else 'FLOAT'})"
    return f"{value!r}{suffix}"


def _decimal(value: Any) -> str:
    return f"{decimal.Decimal(value):f}BD"


def _timestamp(value: Any, word: str) -> str:
    time = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=to_microseconds(value))  # noqa: DTZ001 (UTC, printed below)
    zone = "Z" if word == "TIMESTAMP" else ""
    return f"{word} '{time.isoformat(sep=' ')}{zone}'"


_PRINTERS: dict[str, Any] = {
    "boolean": lambda v: "TRUE" if v else "FALSE", "byte": lambda v: f"{v}Y", "short": lambda v: f"{v}S",
    "integer": str, "long": lambda v: f"{v}L", "decimal": _decimal, "string": _text,
    "float": lambda v: _double(v, "F"), "double": lambda v: _double(v, "D"), "binary": lambda v: f"X'{v.hex().upper()}'",
    "date": lambda v: f"DATE '{v}'", "timestamp": lambda v: _timestamp(v, "TIMESTAMP"),
    "timestamp_ntz": lambda v: _timestamp(v, "TIMESTAMP_NTZ"),
}  # fmt: skip
