"""Bind an expression: columns found in a schema, constants typed, Spark's implicit casts put in.

A bound expression binds again to itself. A part that can't be typed is rejected by name here, before data moves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa
from msgspec.structs import replace

from delta_core.errors import (
    ColumnNotFoundError,
    ExpressionError,
    HookContractError,
    PluginError,
    SchemaError,
    UnsupportedExpressionError,
)
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    EngineCall,
    Expression,
    Leaf,
    Literal,
    Values,
    check_depth,
    column,
    flatten,
)
from delta_core.expressions.coercion import VOID, can_cast, canonical, same_type
from delta_core.expressions.functions import is_builtin, resolve_call, rewrite
from delta_core.expressions.literals import cast_literal, typed
from delta_core.expressions.typing_rules import Typed, cast_to
from delta_core.runtime.plugin_errors import contract_error
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.fields import find, format_path
from delta_core.schema.logical import open_type
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, arrow_to_type, spark_name

__all__ = ["ResultOf", "bind", "bind_rule", "bind_typed", "leaf_type", "resolve", "resolve_args", "text_hint"]


class ResultOf(Protocol):
    """The part of a plugin's function that binding needs: see `delta_core.expressions.plugin_functions.Function`."""

    @property
    def result(self) -> Callable[[list[pa.DataType]], pa.DataType]:
        """Return the type of a result from those of the arguments."""
        ...


LeafType = Callable[[Leaf], Typed]
_NOW = ("current_timestamp", "current_date", "localtimestamp", "now", "curdate")


def bind(
    expression: Expression,
    schema: StructType,
    functions: Mapping[str, ResultOf] | None = None,
    now: dt.datetime | None = None,
) -> Expression:
    """Bind an expression to a schema.

    Parameters
    ----------
    expression : Expression
        As it was parsed or built.
    schema : StructType
        The columns by their logical names.
    functions : mapping of str to Function
        Plugins' functions, by lower-case name.
    now : datetime.datetime
        The value of ``current_timestamp()`` and ``current_date()``; by default the time of the call.

    Raises
    ------
    ColumnNotFoundError
        A column is not in the schema (names are compared ignoring case).
    ExpressionError
        The types don't fit each other.
    UnsupportedExpressionError
        A function or a combination of types is not known here.
    """
    return bind_typed(expression, schema, functions, now).expression


def bind_rule(
    feature: str,
    hook: str,
    what: str,
    expression: Expression,
    schema: StructType,
    functions: Mapping[str, ResultOf] | None = None,
    expected: DataType | None = None,
) -> Expression:
    """Bind the expression of a plugin's rule, and report what does not fit with plugin and hook.

    Parameters
    ----------
    feature : str
        The feature whose plugin returned the rule, for messages.
    hook : str
        The hook that returned it, for messages.
    what : str
        The rule, for messages.
    expression : Expression
        The rule's expression.
    schema : StructType
        The columns by their logical names.
    functions : mapping of str to Function
        Plugins' functions, by lower-case name.
    expected : DataType, optional
        The type that the expression must have; any unless given.

    Raises
    ------
    ColumnNotFoundError, ExpressionError
        As `bind`; the message names plugin and hook.
    HookContractError
        For an expression of another type.
    """
    try:
        bound = bind_typed(expression, schema, functions)
    except (ColumnNotFoundError, ExpressionError) as e:
        facts = {**e.facts, "plugin": feature, "hook": hook}
        raise type(e)(
            f"{what} of hook {hook} of plugin {feature!r} does not fit the table: {e.message}", **facts
        ) from e
    if expected is not None and not same_type(bound.type, expected):
        raise HookContractError(
            f"{what} of hook {hook} of plugin {feature!r} has an expression of type {spark_name(bound.type)}; expected "
            f"{spark_name(expected)}.",
            plugin=feature,
            hook=hook,
        )
    return bound.expression


def bind_typed(
    expression: Expression,
    schema: StructType,
    functions: Mapping[str, ResultOf] | None = None,
    now: dt.datetime | None = None,
) -> Typed:
    """Bind an expression as `bind` does, and return its type too.

    Parameters
    ----------
    expression : Expression
        The expression.
    schema : StructType
        The columns.
    functions : Mapping of str to Function
        Functions of plugins, by lower-case name.
    now : datetime, optional
        The value of ``current_timestamp()``; the current time unless given.

    Raises
    ------
    ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
        As `bind`.
    """

    def locate(leaf: Leaf) -> Typed:
        return _find_column(schema, leaf, moment) if isinstance(leaf, Column) else leaf_type(leaf)

    moment = now or dt.datetime.now(dt.UTC)
    flat = flatten(expression)
    check_depth(flat)
    try:
        return resolve(flat, locate, functions or {}, moment)
    except ColumnNotFoundError as e:
        if not getattr(expression, "sql", "") and not isinstance(expression, Column):
            raise
        raise ColumnNotFoundError(f"{e.message}{text_hint(str(e.column))}", **e.facts) from e


def text_hint(name: str) -> str:
    """Return how a name that SQL contains would be spelled if it were a text; empty for what can't be meant so."""
    plain = name.strip("`")
    return f" If it is a text, put it in single quotes: '{plain}'." if "'" not in plain else ""


def leaf_type(leaf: Leaf) -> Typed:
    """Return a leaf that carries its type; row positions and task numbers are LONG."""
    return Typed(leaf, canonical(getattr(leaf, "type", PrimitiveType("long"))))


def _find_column(schema: StructType, leaf: Column, now: dt.datetime) -> Typed:
    path = leaf.path
    if len(path) == 1 and schema.get(path[0]) is None:
        if path[0].lower() in _NOW:
            return _now(path[0].lower(), now)
        path = column(path[0]).path if "." in path[0] and "`" not in path[0] else path
    return _reach(schema, path)


def _reach(schema: StructType, path: tuple[str, ...]) -> Typed:
    """Follow a path through structs; from a map on, its parts are keys and the fields of its values."""
    current: DataType = schema
    for depth, _ in enumerate(path):
        if not isinstance(current, StructType):
            break
        names, found = find(schema, path[: depth + 1])
        current = found.type
    else:
        return Typed(Column(names), canonical(current))
    whole = Typed(Column(names), canonical(current))
    for part in path[depth:]:
        if isinstance(whole.type, ArrayType) or not isinstance(whole.type, (MapType, StructType)):
            raise ColumnNotFoundError(
                f"Column {format_path(path)} is not in the table: {format_path(names)} is {spark_name(current)}, "
                "which has no fields. Reach into an array with a[0].",
                column=format_path(path),
            )
        function = "element_at" if isinstance(whole.type, MapType) else "get_field"
        key = Literal(part, PrimitiveType("string"))
        whole = resolve_call(function, [whole, Typed(key, PrimitiveType("string"))])
    return whole


def _now(name: str, now: dt.datetime) -> Typed:
    utc = now.astimezone(dt.UTC)
    if name in ("current_date", "curdate"):
        value: Any = utc.date()
    else:
        value = utc.replace(tzinfo=None) if name == "localtimestamp" else utc
    constant = typed(Literal(value))
    return Typed(constant, constant.type or VOID)


def resolve(
    expression: Expression, locate: LeafType, functions: Mapping[str, ResultOf], now: dt.datetime | None = None
) -> Typed:
    """Bind an expression whose leaves ``locate`` finds and types. See `bind`."""

    def visit_leaf(e: Literal | Values | Leaf) -> Typed:
        if isinstance(e, Literal):
            constant = typed(e)
            return Typed(constant, constant.type or VOID)
        return Typed(e, e.type) if isinstance(e, Values) else locate(e)

    def visit(e: Expression) -> Steps[Typed]:
        if isinstance(e, Cast):
            return _cast(e, (yield visit(e.arg)))
        if isinstance(e, EngineCall):
            bound = yield from each(map(visit, e.args))
            return Typed(replace(e, args=tuple(b.expression for b in bound)), canonical(e.type))
        if not isinstance(e, Call):
            return visit_leaf(e)
        name = e.function.lower()
        if name in _NOW and not e.args:
            return _now(name, now or dt.datetime.now(dt.UTC))
        simpler = rewrite(name, e.args)
        if simpler is not None:
            found: Typed = yield visit(simpler)
            return found
        args: list[Typed] = []
        for arg in e.args:
            found = (yield visit(arg)) if isinstance(arg, (Call, Cast, EngineCall)) else visit_leaf(arg)
            args.append(found)
        made = resolve_args(name, args, functions)
        return _as_path(made, locate) if name == "[]" else made

    found = run(visit(expression))
    return _keep_text(expression, found)


def _as_path(found: Typed, locate: LeafType) -> Typed:
    """Return ``s['x']`` as the column that ``s.x`` is, which is read and pruned without the other fields."""
    call = found.expression
    if not isinstance(call, Call) or call.function != "get_field":
        return found
    holder, name = call.args
    if not isinstance(holder, Column) or not isinstance(name, Literal):
        return found
    try:
        return locate(Column((*holder.path, str(name.value))))
    except ExpressionError:  # an evaluator that gets whole columns
        return found


def resolve_args(name: str, args: list[Typed], functions: Mapping[str, ResultOf]) -> Typed:
    """Return the call of a function on bound arguments; a plugin's function never hides a built-in."""
    return resolve_call(name, args) if is_builtin(name) or name not in functions else _foreign(name, args, functions)


def _keep_text(source: Expression, found: Typed) -> Typed:
    """Carry the text over, unless the bound tree holds the time it was bound at."""
    text = getattr(source, "sql", "")
    if not text or not isinstance(found.expression, (Call, Cast)) or any(n in text.lower() for n in _NOW):
        return found
    return Typed(replace(found.expression, sql=text), found.type)


def _cast(e: Cast, arg: Typed) -> Typed:
    target = canonical(e.type)
    if not can_cast(arg.type, target):
        raise UnsupportedExpressionError(
            f"A cast from {spark_name(arg.type)} to {spark_name(target)} is not supported.", cast=spark_name(target)
        )
    if not e.safe or not isinstance(arg.expression, Literal):
        cast = cast_to(arg, target)
        return Typed(
            replace(cast, safe=e.safe) if isinstance(cast, Cast) and cast.arg is arg.expression else cast, target
        )
    try:
        folded = cast_literal(arg.expression, target)
    except ExpressionError:
        return Typed(Literal(None, target), target)
    return Typed(replace(folded, safe=True) if isinstance(folded, Cast) else folded, target)


def _foreign(name: str, args: list[Typed], functions: Mapping[str, ResultOf]) -> Typed:
    try:
        result = functions[name].result([a.type.to_arrow() for a in args])
    except ExpressionError:
        raise
    except Exception as e:
        types = ", ".join(spark_name(a.type) for a in args)
        raise PluginError(f"Function {name!r} of a plugin rejected ({types}): {e}", function=name) from e
    if not isinstance(result, pa.DataType):
        raise contract_error(
            str(getattr(functions[name], "feature", "")),
            "functions",
            f"Function.result of {name!r}",
            f"returned {result!r}; expected a pyarrow.DataType, such as pa.int64()",
            function=name,
        )
    return Typed(Call(name, tuple(a.expression for a in args)), canonical(_result_type(result)))


def _result_type(t: pa.DataType) -> DataType:
    try:
        return arrow_to_type(t)
    except SchemaError:
        return open_type(t)
