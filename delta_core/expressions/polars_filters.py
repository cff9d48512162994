"""Polars predicates, read through the JSON that Polars writes of them, for pushdown.

Nothing is rejected here: what does not translate is left out, and Polars filters by itself.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, all_of
from delta_core.expressions.members import from_arrow
from delta_core.runtime.json_text import load_json
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.types import PrimitiveType

__all__ = ["Translated", "from_polars"]

_OPERATORS = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "And": "and",
    "LogicalAnd": "and",
    "Or": "or",
    "LogicalOr": "or",
    "EqValidity": "<=>",
}
_BOOLEAN = {"IsNull": "isnull", "IsNotNull": "isnotnull", "Not": "not"}
_TEXT = {"StartsWith": "startswith", "EndsWith": "endswith"}
_NAMES = {
    "Int8": "byte",
    "Int16": "short",
    "Int32": "integer",
    "Int64": "long",
    "Float32": "float",
    "Float64": "double",
    "String": "string",
    "Boolean": "boolean",
}


class _UntranslatableError(Exception):
    pass


class Translated(NamedTuple):
    """The part of a predicate that could be translated, None for nothing, and whether that is the whole of it."""

    expression: Expression | None
    is_whole: bool


def from_polars(predicate: Any) -> Translated:
    """Translate what can be translated of a ``polars.Expr``.

    The result is not bound yet, and follows from the predicate: of parts that AND joins, those are left out
    that don't translate; Polars must still filter by them. Comparisons agree with Spark's: Polars too takes NaN as
    equal to itself and above every number.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = load_json(predicate.meta.serialize(format="json"))
    except (ValueError, AttributeError):
        return Translated(None, is_whole=False)
    except Exception as e:
        if type(e).__module__.startswith("polars"):
            return Translated(None, is_whole=False)
        raise
    parts = list(_parts(tree))
    return Translated(all_of([p for p in parts if p is not None]), is_whole=None not in parts)


def _parts(tree: Any) -> Iterator[Expression | None]:
    """Yield the parts joined by AND, None for each that does not translate."""
    left = [tree]
    while left:
        node = left.pop()
        binary = node.get("BinaryExpr", {}) if isinstance(node, dict) else {}
        if _OPERATORS.get(str(binary.get("op"))) == "and":
            left += [binary["right"], binary["left"]]
            continue
        found: Expression | None = None
        with suppress(_UntranslatableError, KeyError, TypeError, ValueError, IndexError, AttributeError):
            found = run(_convert(node))
        yield found


def _convert(node: Any) -> Steps[Expression]:
    (kind, body), *rest = node.items()
    if rest or kind not in _KINDS:
        raise _UntranslatableError(kind)
    found: Expression = yield _KINDS[kind](body)
    return found


def _binary(body: Any) -> Steps[Expression]:
    left, right = (yield _convert(body["left"])), (yield _convert(body["right"]))
    if body["op"] == "NotEqValidity":
        return Call("not", (Call("<=>", (left, right)),))
    return Call(_OPERATORS[body["op"]], (left, right))


def _function(body: Any) -> Steps[Expression]:
    (family, function), *rest = body["function"].items()
    known = [a for a in body["input"] if _list_bytes(a) is None]
    args = tuple((yield from each(map(_convert, known))))
    if rest:
        raise _UntranslatableError(family)
    if family == "Boolean" and isinstance(function, str) and function in _BOOLEAN:
        return Call(_BOOLEAN[function], args)
    if family == "Boolean" and function == "IsNan":
        return Call("=", (args[0], Literal(math.nan)))  # null for null, if Spark's isnan is false
    if family == "Boolean" and function == {"IsIn": {"nulls_equal": False}}:
        return _members(args[0], body["input"][1])
    if family == "Boolean" and "IsBetween" in function:
        ends = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
        above, below = ends[function["IsBetween"]["closed"]]
        return Call("and", (Call(above, args[:2]), Call(below, (args[0], args[2]))))
    if family == "StructExpr" and "FieldByName" in function and isinstance(args[0], Column):
        return Column((*args[0].path, function["FieldByName"]))
    if family == "StringExpr" and function in _TEXT:
        return Call(_TEXT[function], args)
    raise _UntranslatableError(str(function))


def _cast(body: Any) -> Steps[Expression]:
    if body["dtype"] != {"Literal": "Int64"}:  # which SQL makes of whole numbers that a list is searched for
        raise _UntranslatableError(str(body["dtype"]))
    return Cast((yield _convert(body["expr"])), PrimitiveType("long"))


def _list_bytes(node: Any) -> Any:
    """Return the Arrow stream of a constant that is a list: as an expression has it, or as SQL does, in a row."""
    literal = node.get("Literal", {})
    scalar = literal.get("Scalar", {})
    return literal.get("Series") or (scalar.get("List") if isinstance(scalar, dict) else None)


def _members(value: Expression, node: Any) -> Expression:
    """Read ``is_in`` a list of constants, which comes as an Arrow stream of one column."""
    import pyarrow as pa

    with pa.ipc.open_stream(bytes(_list_bytes(node))) as stream:
        column = stream.read_all().column(0).combine_chunks()
    if "Series" in node["Literal"]:
        if (
            len(column) != 1
            or column.null_count
            or not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type))
        ):
            raise _UntranslatableError("IsIn of a series")
        column = column.flatten()
    if column.null_count:  # in SQL what is not found is then unknown, in Polars it is false
        raise _UntranslatableError("IsIn with null")
    many = from_arrow(column)
    if many is not None:
        return Call("in", (value, many))
    if not len(column):  # for null Polars answers null, and an empty list has no such form in SQL
        raise _UntranslatableError("IsIn without values")
    return Call("in", (value, *map(Literal, column.to_pylist())))


def _literal(body: Any) -> Literal:
    (kind, value), *rest = body.items()
    if rest or kind not in ("Dyn", "Scalar"):
        raise _UntranslatableError(kind)
    if value in ("Null", {"Null": "Null"}):
        return Literal(None)
    ((name, constant),) = value.items()
    if kind == "Dyn":
        if name not in ("Int", "Float", "Str"):
            raise _UntranslatableError(name)
        return Literal(constant)
    if name == "Date":
        return Literal(dt.date(1970, 1, 1) + dt.timedelta(days=constant))
    if name == "Datetime":
        return _datetime(*constant)
    if name == "Decimal":
        unscaled, _, scale = constant
        return Literal(decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=60)))
    return Literal(constant, PrimitiveType(_NAMES[name]))


def _datetime(count: int, unit: str, zone: Any) -> Literal:
    if unit != "Microseconds" or zone not in (None, "UTC", {"inner": "UTC"}):
        raise _UntranslatableError(unit)
    time = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=count)  # noqa: DTZ001 (the zone is set below)
    return Literal(time if zone is None else time.replace(tzinfo=dt.UTC))


#: Returns an expression, or the steps to it.
_KINDS: dict[str, Callable[[Any], Any]] = {
    "BinaryExpr": _binary,
    "Function": _function,
    "Cast": _cast,
    "Literal": _literal,
    "Column": lambda name: Column((name,)),
    "Alias": lambda body: _convert(body[0]),
}
