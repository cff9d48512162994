"""Expressions to Spark SQL text."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    EngineCall,
    Expression,
    FileConstant,
    FileStatistic,
    Literal,
    PartitionValue,
    PhysicalColumn,
    Values,
)
from delta_core.expressions.coercion import INTERVAL_DAY, INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH, is_open, name_of
from delta_core.expressions.literals import to_microseconds, typed
from delta_core.expressions.members import expand
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import scalar_of
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.fields import walk
from delta_core.schema.logical import facts
from delta_core.schema.types import DataType, UserDefinedType, spark_name

__all__ = ["format_sql", "quote_name"]

_INFIX = frozenset(("=", "!=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "&", "|", "^", "and", "or"))
#: Written with words or signs around their operands, so that these are in parentheses.
_LOW_PRECEDENCE = frozenset(("not", "isnull", "isnotnull", "in", "like", "ilike", "rlike", "negative", "positive", "~"))
_WORD = {"and": "AND", "or": "OR", "div": "DIV", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}
_ESCAPED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\b": "\\b", "\x1a": "\\Z"}
#: Words that a plain name may not be, lest Spark reads them as something else.
_RESERVED = frozenset((
    "and", "or", "not", "null", "true", "false", "case", "when", "then", "else", "end", "is", "in", "like", "ilike",
    "rlike", "between", "exists", "select", "from", "where", "cast", "interval", "distinct", "any", "all", "some",
    "current_date", "current_timestamp", "div",
    # names of columns for Spark, but not for sqlglot
    "alter", "as", "create", "cross", "drop", "except", "fetch", "for", "glob", "grant", "having", "inner", "insert",
    "intersect", "into", "join", "lateral", "minus", "notnull", "on", "outer", "partitioned_by", "qualify", "regexp",
    "returning", "revoke", "rollback", "serdeproperties", "tablesample", "uncache", "union", "using", "values", "with",
    "xor",
))  # fmt: skip


def format_sql(expression: Expression) -> str:
    """Print an expression as Spark SQL that parses to the same tree.

    Compound operands are in parentheses. A leaf that no SQL names (a statistic, a row position) is printed as
    a function of its name, for messages.

    Parameters
    ----------
    expression : Expression
        The expression.
    """
    return run(_format(expression))


def _format(e: Expression) -> Steps[str]:
    if isinstance(e, Literal):
        return _literal(e)
    if isinstance(e, Cast):
        word = "TRY_CAST" if e.safe else "CAST"
        return f"{word}({(yield _format(e.arg))} AS {spark_name(e.type)})"
    if isinstance(e, EngineCall):
        return e.sql
    if not isinstance(e, Call):
        return _leaf(e)
    parts = _candidates(e) if e.function == "in" else e.args
    texts = yield from each(map(_format, parts))
    return _call(e, [_Part(p, t) for p, t in zip(parts, texts, strict=True)])


class _Part(Struct, frozen=True):
    """An argument and its text."""

    expression: Expression
    text: str


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


def _operand(part: _Part) -> str:
    e, text = part.expression, part.text
    compound = isinstance(e, Call) and (e.function in _INFIX or e.function in _LOW_PRECEDENCE)
    negative = isinstance(e, Literal) and text.startswith("-")
    return f"({text})" if compound or negative else text


def _holder(part: _Part) -> str:
    e, text = part.expression, part.text
    closed = isinstance(e, Literal) or (isinstance(e, Call) and e.function == "case")
    return f"({text})" if closed else _operand(part)


def _call(e: Call, parts: list[_Part]) -> str:
    texts = [p.text for p in parts]
    if e.function in _INFIX and len(parts) > 1:
        return f" {_WORD.get(e.function, e.function)} ".join(map(_operand, parts))
    if e.function in ("and", "or"):
        return texts[0]
    if e.function in _SYNTAX:
        return str(_SYNTAX[e.function](e, parts))
    if e.function in ("negative", "positive", "~"):
        sign = {"negative": "-", "positive": "+", "~": "~"}[e.function]
        return f"{sign}({texts[0]})"
    return f"{e.function}({', '.join(texts)})"


def _case(_: Call, parts: list[_Part]) -> str:
    pairs = zip(parts[0::2], parts[1::2], strict=False)
    body = "".join(f" WHEN {condition.text} THEN {value.text}" for condition, value in pairs)
    otherwise = f" ELSE {parts[-1].text}" if len(parts) % 2 else ""
    return f"CASE{body}{otherwise} END"


def _like(e: Call, parts: list[_Part]) -> str:
    escape = f" ESCAPE {_operand(parts[2])}" if len(parts) > 2 else ""
    return f"{_operand(parts[0])} {_WORD[e.function]} {_operand(parts[1])}{escape}"


def _field(_: Call, parts: list[_Part]) -> str:
    name = parts[1].expression
    assert isinstance(name, Literal)
    return f"{_holder(parts[0])}.{quote_name(str(name.value))}"


def _candidates(e: Call) -> Sequence[Expression]:
    values = e.args[-1]
    return [e.args[0], *expand(values)] if isinstance(values, Values) else e.args


_SYNTAX: dict[str, Any] = {
    "not": lambda _, parts: f"NOT {_operand(parts[0])}",
    "isnull": lambda _, parts: f"{_operand(parts[0])} IS NULL",
    "isnotnull": lambda _, parts: f"{_operand(parts[0])} IS NOT NULL",
    "in": lambda _, parts: f"{_operand(parts[0])} IN ({', '.join(p.text for p in parts[1:])})",
    "like": _like,
    "ilike": _like,
    "rlike": _like,
    "case": _case,
    "get_field": _field,
    "[]": lambda _, parts: f"{_holder(parts[0])}[{parts[1].text}]",
}


# --- constants -----------------------------------------------------------------------------


def _has_user_defined(t: DataType) -> bool:
    return isinstance(t, UserDefinedType) or any(isinstance(f.type, UserDefinedType) for _, f in walk(t))


def _literal(literal: Literal) -> str:
    found = typed(literal)
    assert found.type is not None
    name, value = name_of(found.type), found.value
    if value is None:
        # Spark casts an untyped null to a user-defined type, and nothing else
        is_plain = name == "void" or literal.type is None or _has_user_defined(literal.type)
        return "NULL" if is_plain else f"CAST(NULL AS {spark_name(found.type)})"
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
    if is_open(found.type):
        return _of_open_type(found)
    raise ExpressionError(f"A constant of type {spark_name(found.type)} has no SQL text.", value=value)


def _of_open_type(literal: Literal) -> str:
    """Return the text of a constant that Delta has no type for: a whole number, or a cast to a type that SQL lacks."""
    assert literal.type is not None
    of = facts(literal.type)
    if of.family == "integer":
        return str(literal.value)
    shown = pc.cast(scalar_of(literal.value, of.arrow), pa.string())
    return f"CAST('{shown}' AS {spark_name(literal.type)})"


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
    "boolean": lambda v: "TRUE" if v else "FALSE",
    "byte": lambda v: f"{v}Y",
    "short": lambda v: f"{v}S",
    "integer": str,
    "long": lambda v: f"{v}L",
    "decimal": _decimal,
    "string": _text,
    "float": lambda v: _double(v, "F"),
    "double": lambda v: _double(v, "D"),
    "binary": lambda v: f"X'{v.hex().upper()}'",
    "date": lambda v: f"DATE '{v}'",
    "timestamp": lambda v: _timestamp(v, "TIMESTAMP"),
    "timestamp_ntz": lambda v: _timestamp(v, "TIMESTAMP_NTZ"),
}
