"""SQL as pylance's users write it, as far as it has the same meaning here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.api import Call, Cast, Column, Expression, Literal, PrimitiveType, UnsupportedExpressionError, parse_sql

__all__ = ["condition", "required", "value"]

_LONG, _FLOAT, _DOUBLE = PrimitiveType("long"), PrimitiveType("float"), PrimitiveType("double")
_COMPARED = frozenset(["=", "!=", "<", "<=", ">", ">=", "in"])
#: Functions and operators that return the same in Spark and in DataFusion, or an error in one of them.
_ALIKE = frozenset(
    [
        *("and", "or", "not", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "%", "negative", "[]"),
        *("isnull", "isnotnull", "in", "like", "ilike", "case", "if", "coalesce", "nullif", "isnan"),
        *("abs", "lower", "upper", "length", "concat"),
    ]
)


def condition(given: Any, schema: pa.Schema) -> Any:
    """Return a condition as scans take it; a text is parsed, other conditions stay as they are.

    Parameters
    ----------
    given : str, Expression or None
        The condition.
    schema : pyarrow.Schema
        The columns of the dataset: numbers that are compared with a float32 are rounded to one.

    Raises
    ------
    UnsupportedExpressionError
        For SQL that may have another meaning here.
    """
    if not isinstance(given, str):
        return given
    return value(given, frozenset(path for path, of in _leaves(schema) if of == pa.float32()))


def required(given: Any) -> Any:
    """Return a condition of rows that are deleted: without one, all would be.

    Raises
    ------
    TypeError
        If there is none.
    """
    if given is None:
        raise TypeError("Found no predicate, expected SQL or an expression; 'true' deletes all rows.")
    return given


def value(text: str, floats: frozenset[tuple[str, ...]] = frozenset()) -> Expression:
    """Return an expression: whole numbers have the type of the other operand.

    Parameters
    ----------
    text : str
        The SQL.
    floats : frozenset of tuple of str
        The columns of float32, in lower case: numbers that are compared with them are rounded to one.

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
    parsed = parse_sql(text.replace("\\", "\\\\"))
    if floats:
        # a number that was cast to double is not rounded; the parser returns it as it returns 1e-3
        rounded = (int, Decimal) if "cast" in text.lower() or "::" in text else (int, Decimal, float)
        parsed = _with_floats(parsed, floats, rounded)
    found = _rewritten(parsed, text)
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


def _leaves(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for field in fields:
        path = (*above, field.name.lower())
        yield path, field.type
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)


def _with_floats(e: Expression, floats: frozenset[tuple[str, ...]], rounded: tuple[type, ...]) -> Expression:
    """Round the numbers that are compared with columns of float32, as pylance does."""
    if not isinstance(e, Call):
        return e
    args = tuple(_with_floats(a, floats, rounded) for a in e.args)
    if e.function in _COMPARED and any(_is_float(a, floats) for a in args):
        args = tuple(_rounded(a) if isinstance(a, Literal) and isinstance(a.value, rounded) else a for a in args)
    return Call(e.function, args)


def _is_float(e: Expression, floats: frozenset[tuple[str, ...]]) -> bool:
    if not isinstance(e, Column):
        return False
    path = tuple(name.lower() for name in e.path)
    return path in floats or (path[0] in ("source", "target") and path[1:] in floats)


def _rounded(e: Literal) -> Literal:
    if isinstance(e.value, bool):
        return e
    with np.errstate(over="ignore"):  # a number beyond those of a float32 is infinite
        return Literal(float(np.float32(e.value)), _FLOAT)
