"""Rules' expressions as Spark SQL text."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from delta_core.errors import UnsupportedExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Leaf, Literal, Values, all_parts, leaves
from delta_core.expressions.functions import is_builtin
from delta_core.expressions.plugin_functions import Function
from delta_core.expressions.printing import format_sql
from delta_core.protocol.types import PrimitiveType
from delta_core.runtime.recursion import Steps, each, run

__all__ = ["check_zone", "to_sql"]

_TIMESTAMP = PrimitiveType("timestamp")
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
        if isinstance(e, (Literal, Values)):
            return e
        if isinstance(e, Cast):
            return Cast((yield visit(e.arg)), e.type, e.safe)
        if not isinstance(e, Call):
            return place(e)
        args = tuple((yield from each(map(visit, e.args))))
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
    # a column's type is not at hand
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
