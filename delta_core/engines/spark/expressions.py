"""Expressions as SQL and as Columns of Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pyspark.sql import Column as SparkColumn, functions as F

from delta_core.engines.spark.plan import private
from delta_core.errors import InternalError, UnsupportedExpressionError
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    EngineCall,
    Expression,
    Leaf,
    Literal,
    Values,
    all_parts,
    is_portable,
    leaves,
)
from delta_core.expressions.functions import SAME_NULLS, is_builtin
from delta_core.expressions.members import expand
from delta_core.expressions.plugin_functions import Function
from delta_core.expressions.printing import format_sql
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.types import PrimitiveType

__all__ = ["check_ansi", "check_zone", "to_column", "to_sql"]

_TIMESTAMP, _STRING, _BINARY = (PrimitiveType(n) for n in ("timestamp", "string", "binary"))
#: Functions that return the same with and without ANSI mode, whatever they are given.
_ANY_MODE = frozenset((
    "and", "or", "not", "=", "==", "!=", "<>", "<=>", "<", "<=", ">", ">=", "in", "isnull", "isnotnull", "isnan",
    "equal_null", "coalesce", "nvl", "ifnull", "nvl2", "nullif", "if", "case", "when", "greatest", "least", "like",
    "ilike", "rlike", "upper", "ucase", "lower", "lcase", "trim", "ltrim", "rtrim", "concat", "startswith", "endswith",
    "contains", "named_struct", "get_field",
))  # fmt: skip
#: Functions whose answer for a timestamp depends on the zone it is seen in.
_ZONED = frozenset(
    ("hour", "minute", "second", "date_format", "date_trunc", "to_date", "to_timestamp", "year", "month", "day")
)


def to_sql(expression: Expression, place: Callable[[Leaf], Expression], functions: Mapping[str, Function]) -> str:
    """Print a bound expression as Spark SQL.

    Parameters
    ----------
    expression : Expression
        Bound to the table's schema.
    place : function(Leaf) -> Expression
        A leaf as a column of the DataFrame, or as a constant.
    functions : Mapping
        Functions of plugins: printed by their template, or by name if they have none.
    """
    calls: dict[str, str] = {}

    def visit(e: Expression) -> Steps[Expression]:
        if isinstance(e, Literal):
            return _portable(e)
        if isinstance(e, Values):
            return e
        if isinstance(e, Cast):
            return Cast((yield visit(e.arg)), e.type, e.safe)
        if isinstance(e, EngineCall):
            raise InternalError(f"{e.sql} has no text of its own; it is a part of a Column.")
        if not isinstance(e, Call):
            return place(e)
        if e.function == SAME_NULLS:
            return _same_nulls(*(yield from each(map(visit, e.args[:2]))), *e.args[2:])
        first = tuple((yield from each(map(visit, e.args[: _num_values(e)]))))
        args = (*first, *_constants(e.args[_num_values(e) :]))
        function = functions.get(e.function)
        if function is None or is_builtin(e.function):
            return Call(e.function, args)
        printed = [format_sql(a) for a in args]
        name = f"call_{uuid.uuid4().hex}"
        template = function.spark or f"{e.function}({{arguments}})"
        calls[name] = template.format(*printed, arguments=", ".join(printed))
        return Column((name,))

    text = format_sql(run(visit(expression)))
    for name, call in reversed(calls.items()):  # an outer call was made after those within it
        text = text.replace(name, call)
    return text


def _same_nulls(values: Expression, stored: Expression, feature: Expression, column: Expression) -> Expression:
    """Return decoded values; the job fails if they are null in other rows than what files store."""
    text = (
        f"delta_core: {feature.value} decodes {{}} of column {column.value!r} as {{}}; expected null for null, and for "  # type: ignore[union-attr]
        "nothing else"
    )
    lost, found = (
        Call("raise_error", (_portable(Literal(text.format(*words), _STRING)),))
        for words in (("a value", "null"), ("null", "a value"))
    )
    kept = Call("coalesce", (values, lost))
    return Call("case", (Call("isnotnull", (stored,)), kept, Call("isnotnull", (values,)), found))


def to_column(
    expression: Expression,
    place: Callable[[Leaf], Expression],
    functions: Mapping[str, Function],
    *,
    strict_in: Any = None,
) -> SparkColumn:
    """Return a bound expression as a Column, with the arguments of `to_sql`; it may have parts that Spark analyzed.

    With ``strict_in``, the session, a value that does not fit the type that it is cast to fails, also without ANSI
    mode.
    """
    calls: dict[str, EngineCall] = {}

    def visit(e: Expression) -> Steps[Expression]:
        if isinstance(e, EngineCall):
            name = f"call_{uuid.uuid4().hex}"
            calls[name] = e
            return Column((name,))
        if isinstance(e, Call):
            args = yield from each(map(visit, e.args))
            if e.function == "get_field" and isinstance(e.args[0], EngineCall):
                args[0] = Call("coalesce", (args[0],))  # a field of its name would be a column of two names
            return replace(e, args=tuple(args))
        return replace(e, arg=(yield visit(e.arg))) if isinstance(e, Cast) else e

    portable = expression if is_portable(expression) else run(visit(expression))
    made = F.expr(to_sql(portable, lambda leaf: leaf if _is_call(leaf, calls) else place(leaf), functions))
    if strict_in is not None and any(isinstance(p, Cast) and not p.safe for p in all_parts(portable)):
        made = private.with_strict_casts(strict_in, made)
    for name, e in calls.items():
        made = private.embedded(made, name, e.call, [to_sql(a, place, functions) for a in e.args])
    return made


def _is_call(leaf: Leaf, calls: Mapping[str, EngineCall]) -> bool:
    return isinstance(leaf, Column) and leaf.path[0] in calls


def _num_values(call: Call) -> int:
    """Return how many arguments are values; those after them are candidates, or what the syntax has as a plain text."""
    is_special = call.function == "get_field" or (call.function == "in" and isinstance(call.args[-1], Values))
    return len(call.args) - 1 if is_special else 2 if call.function in ("like", "ilike") else len(call.args)


def _constants(arguments: Sequence[Expression]) -> Iterator[Expression]:
    for argument in arguments:
        if isinstance(argument, Values) and argument.type == _STRING:
            yield from map(_portable, expand(argument))
        else:
            yield argument


def _portable(literal: Literal) -> Expression:
    """Return a constant that each session reads alike: some read backslashes literally (``escapedStringLiterals``)."""
    text = literal.value
    is_plain = not isinstance(text, str) or text.isprintable() and not {"\\", "'"} & set(text)
    return literal if is_plain else Cast(Literal(text.encode(), _BINARY), _STRING)


def check_ansi(expression: Expression, is_ansi: bool) -> None:
    """Reject an expression that means something else in a session without ANSI mode: wrapped numbers, or nulls.

    Raises
    ------
    UnsupportedExpressionError
        For an expression with a cast, or a function that is not known to mean the same.
    """
    if is_ansi:
        return
    for part in all_parts(expression):
        is_cast = isinstance(part, Cast) and not part.safe and part.arg != Literal(None)
        if is_cast or (isinstance(part, Call) and part.function not in _ANY_MODE):
            raise UnsupportedExpressionError(
                f"The expression {format_sql(expression)} contains {format_sql(part)}. A value that does not fit "
                "raises here, and would be a wrong number or null in this session, which is without ANSI mode. Set "
                "spark.sql.ansi.enabled to true.",
                feature="",
            )


def check_zone(expression: Expression, zone: str, whose: str) -> None:
    """Reject a rule whose answer would follow the session's time zone: a table means the same in every session.

    Raises
    ------
    UnsupportedExpressionError
        For such a rule.
    """
    if zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT"):
        return
    has_time = any(getattr(leaf, "type", None) == _TIMESTAMP for leaf in leaves(expression)) or _has_timestamp(
        expression
    )
    if has_time and _looks_at_zone(expression):
        raise UnsupportedExpressionError(
            f"The rule of {whose} reads timestamps as dates or text ({format_sql(expression)}), which means UTC, and "
            f"the session's time zone is {zone}. Set spark.sql.session.timeZone to UTC to read this table.",
            feature=whose,
        )


def _has_timestamp(e: Expression) -> bool:
    # a column's type is not known here
    return any(
        isinstance(part, Column) or (isinstance(part, (Literal, Values, Cast)) and part.type == _TIMESTAMP)
        for part in all_parts(e)
    )


def _looks_at_zone(e: Expression) -> bool:
    plain = ("timestamp", "timestamp_ntz", "date", "string")
    return any(
        part.function in _ZONED
        if isinstance(part, Call)
        else isinstance(part, Cast) and isinstance(part.type, PrimitiveType) and part.type.type in plain
        for part in all_parts(e)
    )
