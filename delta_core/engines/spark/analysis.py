"""Expressions that only Spark understands, as it analyzes them: the library gets their columns, and what prunes files.

An expression of a statement is the library's own where both evaluate it alike. Spark analyzes what the library lacks,
or would evaluate otherwise (in a session whose zone is not UTC, or without ANSI mode). Of such an expression,
comparisons, null tests and what joins them are the library's; below them, what it can't evaluate is an `EngineCall`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.filter_texts import read_filter
from delta_core.engines.spark.types import spark_type
from delta_core.engines.spark.write.values import as_nullable
from delta_core.errors import (
    ColumnNotFoundError,
    DeltaError,
    ExpressionError,
    SchemaMismatchError,
    UnsupportedExpressionError,
)
from delta_core.expressions import ast
from delta_core.expressions.ast import EngineCall, Expression
from delta_core.schema.fields import Path
from delta_core.schema.types import DataType, PrimitiveType, StructType, TypeDef

__all__ = ["analyzed_condition", "analyzed_value", "cast_value", "understood"]

#: The errors for an expression that the library lacks, or that does not fit the columns that it finds.
_NOT_UNDERSTOOD = (ColumnNotFoundError, ExpressionError, SchemaMismatchError)
_BOOLEAN = PrimitiveType("boolean")
_UNSUPPORTED, _NOT_DETERMINISTIC = "UNSUPPORTED_EXPR_FOR_OPERATOR", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
#: Conditions of Spark's errors for aggregates beside columns.
_NOT_GROUPED = {"MISSING_GROUP_BY", "MISSING_AGGREGATION"}


def understood(own: Callable[[], Any], analyzed: Callable[[], Expression | None]) -> Any:
    """Return an expression of the library; where it has none, as Spark analyzes it.

    Parameters
    ----------
    own : function() -> object
        Returns it, or raises the reason why the library has none.
    analyzed : function() -> Expression or None
        Returns it as Spark analyzes it; None if Spark rejects it too: then the library's error is raised.
    """
    try:
        return own()
    except _NOT_UNDERSTOOD:
        found = analyzed()
        if found is None:
            raise
        return found


def analyzed_condition(
    given: str | Column, rows: DataFrame, places: Sequence[Path], *, is_merge: bool = False
) -> Expression | None:
    """Return a condition as Spark analyzes it.

    Parameters
    ----------
    given : str or Column
        The condition.
    rows : DataFrame
        The rows that it tests.
    places : sequence of tuple of str
        The library's name of each column of the rows, in order.
    is_merge : bool
        Whether it is one of a merge.

    Returns
    -------
    Expression or None
        None if Spark rejects it.

    Raises
    ------
    UnsupportedExpressionError
        Its value for a row is not the same each time, or depends on other rows, or it contains a query.
    ExpressionError
        It is not BOOLEAN.
    """
    found = _analyzed(given, rows, aggregates="DELTA_AGGREGATION_NOT_SUPPORTED" if is_merge else _UNSUPPORTED)
    if found is None:
        return None
    if not found.isDeterministic():
        raise _not_deterministic(
            f"condition {given}", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED" if is_merge else _NOT_DETERMINISTIC
        )
    if found.hasQuery():
        raise UnsupportedExpressionError(
            f"The condition {given} contains a query. Use MERGE, with the query as its source.", feature=""
        )
    expression, kind = _read(found, places, given)
    if kind == PrimitiveType("void"):
        return ast.Literal(None, _BOOLEAN)
    if kind != _BOOLEAN:
        raise ExpressionError(f"A condition must be BOOLEAN, found {kind.type}: {given}.")
    return expression


def analyzed_value(
    given: str | Column,
    rows: DataFrame,
    places: Sequence[Path],
    target: DataType | None = None,
    *,
    is_merge: bool = False,
) -> Expression | None:
    """Return a value as Spark analyzes it; None if Spark rejects it.

    Parameters
    ----------
    given : str or Column
        The value.
    rows : DataFrame
        The rows that it is calculated from.
    places : sequence of tuple of str
        As of `analyzed_condition`.
    target : DataType, optional
        The type of the column that it is assigned to. Spark casts it to a type without fields or elements, and fails
        for a value that does not fit.
    is_merge : bool
        Whether it is one of a merge, which calculates each value once.

    Raises
    ------
    UnsupportedExpressionError
        It depends on other rows, or it is not the same each time and is not one of a merge.
    """
    cast = target.to_json() if isinstance(target, PrimitiveType) and target.type != "void" else ""
    found = _analyzed(given, rows, cast)
    if found is None:
        return None
    if not is_merge and not found.isDeterministic():
        raise _not_deterministic(f"value {given}", _NOT_DETERMINISTIC)
    return _read(found, places, given)[0]


def cast_value(
    given: str | Column,
    rows: DataFrame,
    places: Sequence[Path],
    target: DataType,
    types: Mapping[str, TypeDef],
    *,
    is_merge: bool = False,
) -> Expression | None:
    """Return a value cast as a query of the session casts it; None if Spark rejects it.

    Parameters
    ----------
    given, rows, places, is_merge
        As of `analyzed_value`.
    target : DataType
        The type that it is cast to.
    types : Mapping of str to TypeDef
        Custom types of the table.

    Raises
    ------
    UnsupportedExpressionError
        As of `analyzed_value`.
    """
    value = F.expr(given) if isinstance(given, str) else given
    found = _analyzed(value.cast(spark_type(target, types)), rows)
    if found is None:
        return None
    if not is_merge and not found.isDeterministic():
        raise _not_deterministic(f"value {given}", _NOT_DETERMINISTIC)
    return _whole(found, places)


def _analyzed(given: str | Column, rows: DataFrame, target: str = "", aggregates: str = _UNSUPPORTED) -> Any:
    """Return what Spark analyzed; None if Spark rejects it. An aggregate is rejected with a condition."""
    if not private.is_available(rows.sparkSession):
        return None
    try:
        value = F.expr(given) if isinstance(given, str) else given
        found = private.analyzed(rows, value, target)
        if found is not None or (target and private.analyzed(rows, value) is not None):
            return found
    except DeltaError:  # of this library, and of PySpark too
        raise
    except (AnalysisException, ParseException) as e:
        if e.getCondition() not in _NOT_GROUPED:
            return None
    raise UnsupportedExpressionError(
        f"The expression {given} is not calculated from one row: it has an aggregate, a window or a generator. Use "
        "MERGE with a source that has its values.",
        feature="",
        condition=aggregates,
    )


def _not_deterministic(what: str, condition: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"The {what} is not the same each time that it is evaluated. Add it to the table as a column first, write it "
        "as a constant, or use MERGE, which takes it as a value.",
        feature="",
        condition=condition,
    )


def _read(found: Any, places: Sequence[Path], given: str | Column) -> tuple[Expression, DataType]:
    """Return what Spark analyzed, and its type."""
    text = given if isinstance(given, str) else ""

    def column(names: list[str]) -> Expression:
        return ast.Column((*places[int(names[0])], *names[1:]))

    def call(parts: list[Any]) -> EngineCall:
        return _call(found, places, parts)

    whole = _whole(found, places, text)
    parsed = read_filter(json.loads(found.text()), column, whole=True, call=call)
    if parsed is None or isinstance(parsed, EngineCall):
        return whole, whole.type
    return (replace(parsed, sql=text) if isinstance(parsed, ast.Call) else parsed), whole.type


def _whole(found: Any, places: Sequence[Path], text: str = "") -> EngineCall:
    """Return what Spark analyzed as one call."""
    return _call(found, places, json.loads(found.whole())[1:], text)


def _call(found: Any, places: Sequence[Path], parts: Sequence[Any], text: str = "") -> EngineCall:
    number, kind, shown, *own = parts
    args = tuple(ast.Column(places[i]) for i in own)
    return EngineCall(args, _type(kind), found.call(number), text or shown)


def _type(given: Any) -> DataType:
    field = {"name": "value", "type": given, "nullable": True, "metadata": {}}
    made = StructType.from_json(json.dumps({"type": "struct", "fields": [field]}))
    return as_nullable(made.members[0].type)
