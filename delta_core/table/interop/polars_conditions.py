"""Conditions of queries as Polars hands them to a dataset: text of calls of PyArrow, which is parsed, never run.

Polars writes only the parts that PyArrow has, joined by AND. Of these, parts that do not translate are left out.
"""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from delta_core.expressions.ast import Call, Column, Expression, Literal, all_of
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["parse_condition"]

#: Characters that no name and no constant may hold, since Polars quotes them without escapes.
_UNQUOTED = lazy_pattern(r"['\"\\\r\n\0]")
_COMPARED: dict[type, str] = {
    ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_JOINED: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or"}
_TESTS = {"is_null": "isnull", "is_valid": "isnotnull"}
_MOST_CHARACTERS = 100_000
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (the zone is set where there is one)


class _UntranslatableError(Exception):
    pass


def parse_condition(text: str, columns: Mapping[str, str]) -> Expression | None:
    """Return what translates of a condition, not bound yet; None if nothing does.

    Parameters
    ----------
    text : str
        As Polars writes it, such as ``(pa.compute.field('id') > 3)``.
    columns : mapping of str to str
        The columns that it names, each with its name in the table.
    """
    if len(text) > _MOST_CHARACTERS or any(_UNQUOTED.search(name) for name in columns):
        return None
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = []
    for part in _conjuncts(tree):
        with suppress(_UntranslatableError, RecursionError, OverflowError):
            found.append(_condition(part, columns))
    return all_of(found)


def _conjuncts(tree: ast.expr) -> Iterator[ast.expr]:
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            left += [node.right, node.left]
        else:
            yield node


def _condition(node: ast.expr, columns: Mapping[str, str]) -> Expression:
    if isinstance(node, ast.BinOp) and type(node.op) in _JOINED:
        return Call(_JOINED[type(node.op)], (_condition(node.left, columns), _condition(node.right, columns)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return Call("not", (_condition(node.operand, columns),))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        sides = (_operand(node.left, columns), _operand(node.comparators[0], columns))
        return Call(_COMPARED[type(node.ops[0])], sides)
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if isinstance(node.func, ast.Attribute) and not node.keywords and name not in _CALLS:
            return _tested(node.func, node.args, columns)
        if name == "pa.compute.starts_with" and len(node.args) == 1 and [k.arg for k in node.keywords] == ["pattern"]:
            return Call("startswith", (_field(node.args[0], columns), Literal(_text(node.keywords[0].value))))
    return _field(node, columns)


def _tested(function: ast.Attribute, arguments: list[ast.expr], columns: Mapping[str, str]) -> Expression:
    column = _field(function.value, columns)
    if function.attr in _TESTS and not arguments:
        return Call(_TESTS[function.attr], (column,))
    if function.attr == "isin" and len(arguments) == 1 and isinstance(arguments[0], ast.List) and arguments[0].elts:
        return Call("in", (column, *(_constant(e) for e in arguments[0].elts)))
    raise _UntranslatableError(function.attr)


def _operand(node: ast.expr, columns: Mapping[str, str]) -> Expression:
    if isinstance(node, ast.Call) and _name(node.func) == "pa.compute.field":
        return _field(node, columns)
    return _constant(node)


def _field(node: ast.expr, columns: Mapping[str, str]) -> Column:
    if isinstance(node, ast.Call) and _name(node.func) == "pa.compute.field" and len(node.args) == 1:
        name = _text(node.args[0])
        if name in columns and not node.keywords:
            return Column((columns[name],))
    raise _UntranslatableError(ast.dump(node))


def _constant(node: ast.expr) -> Literal:
    is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and is_negative else node
    if isinstance(inner, ast.Constant) and isinstance(inner.value, (int, float)) and not isinstance(inner.value, bool):
        return Literal(-inner.value if is_negative else inner.value)
    if isinstance(inner, ast.Constant) and not is_negative:
        return Literal(inner.value if isinstance(inner.value, bool) else _text(inner))
    if isinstance(inner, ast.Call) and not is_negative and not inner.keywords:
        make = _TIMES.get(_name(inner.func))
        if make is not None:
            return Literal(make(*(_argument(a) for a in inner.args)))
    raise _UntranslatableError(ast.dump(node))


def _argument(node: ast.expr) -> Any:
    value = _constant(node).value
    if isinstance(value, bool):
        raise _UntranslatableError("bool")
    return value


def _text(node: ast.expr) -> str:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or _UNQUOTED.search(node.value):
        raise _UntranslatableError(ast.dump(node))
    return node.value


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _date(*arguments: Any) -> dt.date:
    match arguments:
        case [int(days)]:
            return dt.date(1970, 1, 1) + dt.timedelta(days=days)
    raise _UntranslatableError("date")


def _datetime(*arguments: Any) -> dt.datetime:
    match arguments:
        case [int(count), "us"]:
            return _EPOCH + dt.timedelta(microseconds=count)
        case [int(count), "us", "UTC"]:
            return (_EPOCH + dt.timedelta(microseconds=count)).replace(tzinfo=dt.UTC)
    raise _UntranslatableError("datetime")


_TIMES: dict[str, Callable[..., Any]] = {"to_py_date": _date, "to_py_datetime": _datetime}
_CALLS = frozenset(("pa.compute.field", "pa.compute.starts_with", "pa.compute.scalar"))
