"""The accepted forms of predicates, as expressions.

``to_expression`` is the one entry: SQL text, lists of ``(column, operator, value)``, expressions of our own,
and pyarrow expressions come out bound to a schema.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import pyarrow as pa

from delta_core.errors import ArgumentTypeError, ExpressionError, UnsupportedExpressionError
from delta_core.expressions import parts
from delta_core.expressions.ast import Call, Column, Expression, Literal, all_of, any_of, column
from delta_core.expressions.binding import ResultOf, bind_typed
from delta_core.expressions.coercion import VOID
from delta_core.expressions.sql import operator_hint, parse_sql
from delta_core.schema.types import PrimitiveType, StructType, spark_name

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["Filters", "PredicateLike", "from_filters", "is_pyarrow", "to_condition", "to_expression"]

#: ``(column, operator, value)``s that must all hold, or a list of such lists; then one list must hold.
Filters: TypeAlias = Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]
#: A predicate as `to_expression` takes it: SQL, filters, an expression of ours or of PyArrow.
PredicateLike: TypeAlias = "str | Filters | Expression | pc.Expression"

_Maker = Callable[[Column, Any], Expression]
_COMPARE = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}


def to_expression(
    predicate: PredicateLike | None,
    schema: StructType,
    functions: Mapping[str, ResultOf] | None = None,
    now: dt.datetime | None = None,
) -> Expression | None:
    """Return a predicate of any known form, bound to the schema; None for None and for empty filters.

    Parameters
    ----------
    predicate : str, filters, Expression, pyarrow.compute.Expression or None
        Spark SQL text, in which double quotes enclose names; ``[("x", ">", 5), ...]`` (all must hold) or a list of such
        lists (one of them must hold); an expression of our own; a pyarrow expression.
    schema : StructType
        The columns by their logical names.
    functions : mapping of str to Function
        Plugins' functions, by lower-case name.
    now : datetime.datetime
        The value of ``current_timestamp()`` and ``current_date()``; by default the time of the call.

    Raises
    ------
    ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
        See `binding.bind`; ExpressionError too if the predicate is not BOOLEAN.
    """
    found = _read(predicate, schema)
    if found is None:
        return None
    try:
        bound = bind_typed(found, schema, functions, now)
    except ExpressionError as e:
        hint = operator_hint(predicate)
        if not hint:
            raise
        raise type(e)(f"{e.message}{hint}", **e.facts) from e
    if bound.type not in (PrimitiveType("boolean"), VOID):
        found_type = spark_name(bound.type)
        raise ExpressionError(
            f"A predicate must be BOOLEAN, found {found_type}: {predicate!r}.{operator_hint(predicate)}"
        )
    return bound.expression


def to_condition(
    predicate: PredicateLike | None, schema: StructType, functions: Mapping[str, ResultOf] | None = None
) -> Expression | None:
    """Return which rows are changed or replaced, as `to_expression` does; None selects all rows.

    Raises
    ------
    ArgumentTypeError
        For an empty list of filters, which a program may have by mistake.
    """
    if isinstance(predicate, (list, tuple)) and not any(predicate):
        raise ArgumentTypeError(
            f"Found the predicate {predicate!r}, expected at least one filter. Pass None to select all rows."
        )
    return to_expression(predicate, schema, functions)


def _read(predicate: Any, schema: StructType) -> Expression | None:
    if predicate is None or isinstance(predicate, get_args(Expression)):
        return predicate
    if isinstance(predicate, str):
        return parse_sql(predicate, "name")
    if is_pyarrow(predicate):
        return parts.from_pyarrow(predicate, schema)
    if isinstance(predicate, (list, tuple)):
        return from_filters(predicate, schema)
    raise ArgumentTypeError(
        f"Found a predicate of type {type(predicate).__name__}; expected Spark SQL text, a list of (column, operator, "
        "value), an expression of delta_core or a pyarrow expression."
    )


def is_pyarrow(value: Any) -> bool:
    """Return whether a value is a pyarrow expression, without importing pyarrow.compute."""
    return type(value).__name__ == "Expression" and type(value).__module__.startswith("pyarrow")


def from_filters(
    filters: Sequence[Any], schema: StructType | None = None, *, null_is_value: bool = False
) -> Expression | None:
    """Return filters in disjunctive normal form as an expression that is not bound yet; None if empty.

    Parameters
    ----------
    filters : list of (column, operator, value), or list of such lists
        Operators: ``= == != < <= > >= in``, ``not in``, ``like``, ``not like``, ``is`` and ``is not`` (null).
        A column may be a dotted path.
    schema : StructType, optional
        The schema, whose own names of columns go before the meaning of dots and backticks.
    null_is_value : bool
        Whether null is a value of ``in`` and ``not in`` like others, as for PyArrow; else both are those of SQL.

    Raises
    ------
    ExpressionError
        For filters of another form.
    """
    if not filters:
        return None
    operators = _OPERATORS | _WITH_NULL if null_is_value else _OPERATORS
    if _is_test(filters):
        return _test(filters, schema, operators)
    if all(_is_test(f) for f in filters):
        return all_of([_test(f, schema, operators) for f in filters])
    groups = []
    for group in filters:
        if not isinstance(group, (list, tuple)) or not group or not all(_is_test(f) for f in group):
            raise ExpressionError(
                f"Found filters {filters!r}; expected a list of (column, operator, value), or a list of such lists."
            )
        groups.append(all_of([_test(f, schema, operators) for f in group]))
    return any_of([g for g in groups if g is not None])


def _is_test(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 3 and all(isinstance(v, str) for v in value[:2])


def _test(test: Sequence[Any], schema: StructType | None, operators: Mapping[str, _Maker]) -> Expression:
    name, operator, value = test
    is_quoted = "`" in name and (schema is None or schema.get(name) is None)
    tested, symbol = column(name) if is_quoted else Column((name,)), " ".join(operator.lower().split())
    make = operators.get(symbol)
    if make is None:
        raise UnsupportedExpressionError(
            f"Operator {operator!r} of filter {test!r} is not one of: {', '.join(operators)}."
        )
    return make(tested, value)


def _comparison(operator: str) -> Callable[[Column, Any], Expression]:
    def make(column: Column, value: Any) -> Expression:
        if value is None and operator != "<=>":
            raise ExpressionError(
                f"Filter on {column.name!r} compares with None, which is never true. "
                "Use (column, 'is', None) or (column, 'is not', None)."
            )
        return Call(operator, (column, Literal(value)))

    return make


def _members(column: Column, value: Any) -> Expression:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ExpressionError(f"Filter on {column.name!r} with 'in' needs a list of values, found {value!r}.")
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        many = parts.from_arrow(value if isinstance(value, pa.Array) else pa.concat_arrays(value.chunks))
    else:
        value = value.tolist() if hasattr(value, "tolist") else list(value)
        many = parts.from_python(value)
    if many is not None:
        return Call("in", (column, many))
    members = tuple(Literal(v) for v in value)
    return Call("in", (column, *members)) if members else Literal(False)


def _no_members(column: Column, value: Any) -> Expression:
    members = _members(column, value)
    return Literal(True) if isinstance(members, Literal) else Call("not", (members,))


def _null_test(function: str) -> Callable[[Column, Any], Expression]:
    def make(column: Column, value: Any) -> Expression:
        if value is not None:
            raise ExpressionError(f"Filter on {column.name!r} with 'is' takes None only, found {value!r}.")
        return Call(function, (column,))

    return make


def _members_or_null(column: Column, value: Any) -> Expression:
    others, has_null = _without_null(value)
    members = _members(column, others)
    return Call("or", (members, Call("isnull", (column,)))) if has_null else members


def _no_members_or_null(column: Column, value: Any) -> Expression:
    others, has_null = _without_null(value)
    no_members = _no_members(column, others)
    if has_null:
        return Call("and", (no_members, Call("isnotnull", (column,))))
    return Call("or", (no_members, Call("isnull", (column,))))


def _without_null(value: Any) -> tuple[Any, bool]:
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return value.drop_null(), value.null_count > 0
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value, False
    listed = value.tolist() if hasattr(value, "tolist") else list(value)
    others = [v for v in listed if v is not None]
    return others, len(others) < len(listed)


_OPERATORS: dict[str, _Maker] = {
    **{symbol: _comparison(function) for symbol, function in _COMPARE.items()},
    "in": _members,
    "not in": _no_members,
    "like": lambda column, value: Call("like", (column, Literal(value))),
    "not like": lambda column, value: Call("not", (Call("like", (column, Literal(value))),)),
    "is": _null_test("isnull"),
    "is not": _null_test("isnotnull"),
}
_WITH_NULL: dict[str, _Maker] = {"in": _members_or_null, "not in": _no_members_or_null}
