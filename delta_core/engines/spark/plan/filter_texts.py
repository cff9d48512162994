"""Filters of Spark's plans, as `FilterText.java` writes them, as expressions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from delta_core.expressions.ast import Call, Expression, Literal, all_of
from delta_core.schema.types import DataType, PrimitiveType, parse_decimal

__all__ = ["read_filter"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FUNCTIONS = frozenset(("isnull", "isnotnull", "startswith", "in", "=", "<=>", "<", "<=", ">", ">="))


def read_filter(
    node: Any,
    column: Callable[[list[str]], Expression | None],
    whole: bool = False,
    call: Callable[[list[Any]], Expression] | None = None,
) -> Expression | None:
    """Return an expression that follows from a filter; None if none does.

    Parameters
    ----------
    node : list or None
        The filter as JSON: its name, then its arguments; None for a part that has no such form.
    column : function(list of str) -> Expression or None
        Returns the column at a path of names; None for one that can't be tested.
    whole : bool
        Whether the expression has to be equal to the filter, as below ``not``.
    call : function(list) -> Expression, optional
        Returns a part that only Spark can evaluate, from what `Analyzed.java` writes of it.
    """
    if node is None:
        return None
    name, *args = node
    if name == "column":
        return column(args)
    if name == "literal":
        return _literal(*args)
    if name == "call" and call is not None:
        return call(args)
    if name == "and" and not whole:
        return all_of([p for a in args if (p := read_filter(a, column, call=call)) is not None])
    if name not in ("and", "or", "not") and name not in _FUNCTIONS:
        return None
    parts = [read_filter(a, column, whole or name != "or", call) for a in args]
    known = [p for p in parts if p is not None]
    return Call(name, tuple(known)) if len(known) == len(parts) else None


def _literal(kind: Any, text: str | None) -> Literal | None:
    if not isinstance(kind, str):
        return None
    t: DataType = PrimitiveType(kind)
    if text is None:
        return Literal(None, t)
    try:
        return Literal(Decimal(text) if parse_decimal(kind) else _VALUES[kind](text), t)
    except (KeyError, ValueError, OverflowError):  # a type or a year that Python lacks
        return None


_VALUES: dict[str, Any] = {
    "boolean": lambda v: v == "true",
    "string": str,
    "binary": bytes.fromhex,
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "date": lambda v: (_EPOCH + dt.timedelta(days=int(v))).date(),
    "timestamp": lambda v: _EPOCH + dt.timedelta(microseconds=int(v)),
    "timestamp_ntz": lambda v: (_EPOCH + dt.timedelta(microseconds=int(v))).replace(tzinfo=None),
}
