"""SQL as pylance's users write it, as far as it has the same meaning here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from delta_core.api import Call, Cast, Expression, Literal, PrimitiveType, UnsupportedExpressionError, parse_sql

__all__ = ["condition", "required_condition", "value"]

_LONG, _DOUBLE = PrimitiveType("long"), PrimitiveType("double")
#: Functions and operators that return the same in Spark and in DataFusion, or an error in one of them.
_ALIKE = frozenset(
    [
        *("and", "or", "not", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "%", "negative", "[]"),
        *("isnull", "isnotnull", "in", "like", "ilike", "case", "if", "coalesce", "nullif", "isnan"),
        *("abs", "lower", "upper", "length", "concat"),
    ]
)


def condition(given: Any) -> Any:
    """Return a condition as scans take it; a text is parsed, other conditions stay as they are.

    Raises
    ------
    UnsupportedExpressionError
        For SQL that may have another meaning here.
    """
    return value(given) if isinstance(given, str) else given


def required_condition(given: Any) -> Any:
    """Return a condition of rows that are deleted: without one, all would be.

    Raises
    ------
    UnsupportedExpressionError
        For SQL that may have another meaning here.
    TypeError
        If there is none.
    """
    if given is None:
        raise TypeError("Found no predicate, expected SQL or an expression; 'true' deletes all rows.")
    return condition(given)


def value(text: str) -> Expression:
    """Return an expression: whole numbers have the type of the other operand.

    Raises
    ------
    UnsupportedExpressionError
        For SQL that may have another meaning here.
    TypeError
        For something else than a text.
    """
    if not isinstance(text, str):
        raise TypeError(f"Found {text!r}, expected SQL as a text.")
    # DataFusion keeps a backslash of a text as it is, and only LIKE takes it for an escape
    found = _rewritten(parse_sql(text.replace("\\", "\\\\")), text)
    if isinstance(found, Literal) and isinstance(found.value, int) and found.type is None:
        return Literal(found.value, _LONG)
    return found


def _rewritten(e: Expression, text: str) -> Expression:
    if isinstance(e, Literal):
        if isinstance(e.value, int) and not isinstance(e.value, bool):
            return Literal(e.value)  # of the type of the other operand
        return Literal(float(e.value), _DOUBLE) if isinstance(e.value, Decimal) else e
    if isinstance(e, Cast):
        return Cast(_rewritten(e.arg, text), e.type, e.safe)
    if isinstance(e, Call):
        # of two texts joined by ||, both make null of null; the function concat does not in DataFusion
        if e.function not in _ALIKE or (e.function == "concat" and "concat" in text.lower()):
            raise UnsupportedExpressionError(
                f"{e.function!r} in {text!r} may return something else here than in pylance. Pass the expression to "
                "the same call of delta_core.open_table(uri), in Spark SQL.",
                function=e.function,
            )
        return Call(e.function, tuple(_rewritten(a, text) for a in e.args))
    return e
