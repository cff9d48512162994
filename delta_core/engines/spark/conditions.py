"""Conditions and values as delta-spark takes them, texts or Columns, as expressions of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, types as T

from delta_core.engines.spark.failures import reason
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.types import spark_schema
from delta_core.errors import ArgumentTypeError, ExpressionError, UnsupportedExpressionError
from delta_core.expressions import ast
from delta_core.expressions.ast import Expression, Leaf, transform
from delta_core.expressions.sql import DoubleQuotes, parse_sql, portable_sql
from delta_core.kernel.commit.expression_texts import portable_metadata
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.protocol.actions import Metadata
from delta_core.schema.types import Field, StructType, TypeDef

__all__ = [
    "empty_rows", "empty_rows_of", "parse_condition", "parse_value", "portable_definition", "portable_text",
    "without_alias",
]  # fmt: skip

_RAW_TEXTS = "spark.sql.parser.escapedStringLiterals"
_NAMES, _ANSI = "spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.ansi.enabled"


def portable_text(spark: Any, given: Any) -> Any:
    """Return SQL as every session and reader reads it, without double quotes; what is no text is returned as it is."""
    return portable_sql(given, _double_quotes(spark)) if isinstance(given, str) and '"' in given else given


def portable_definition(
    spark: Any, properties: Mapping[str, Any] | None, fields: Sequence[Field] = ()
) -> tuple[dict[str, Any], tuple[Field, ...]]:
    """Return properties and columns whose expressions, such as those of constraints, are as `portable_text`."""
    given = Metadata(id="", schema_string=StructType(fields).to_json(), configuration=dict(properties or {}))
    features = default_registry().everything.features.values()
    found = portable_metadata(given, (), features, _double_quotes(spark))
    return dict(found.configuration), found.schema.members


def _double_quotes(spark: Any) -> DoubleQuotes:
    """Return what double quotes enclose in the statements of a session."""
    return "name" if all(str(spark.conf.get(n)).lower() == "true" for n in (_NAMES, _ANSI)) else "text"


def empty_rows(spark: Any, schema: StructType, types: Mapping[str, TypeDef], alias: str | None = None) -> DataFrame:
    """Return a DataFrame of a table's columns without rows, on which Columns are resolved."""
    private.check_loads(spark, schema)
    return empty_rows_of(spark, spark_schema(schema, types), alias)


def empty_rows_of(spark: Any, columns: T.StructType, alias: str | None = None) -> DataFrame:
    """Return a DataFrame of Spark's columns without rows."""
    rows = private.empty_frame(spark, columns) if private.is_available(spark) else spark.createDataFrame([], columns)
    return rows if alias is None else rows.alias(alias)


def parse_condition(given: str | Column, rows: DataFrame, what: str) -> Expression:
    """Return a condition; a Column is resolved on ``rows`` by Spark, and taken as the SQL that Spark prints of it.

    Raises
    ------
    ArgumentTypeError
        For anything but text or a Column.
    ExpressionError
        Spark can't resolve it, or the library lacks one of its functions.
    UnsupportedExpressionError
        Text with a backslash, which the session is set to read literally.
    """
    if isinstance(given, str):
        return _parsed(given, rows)
    _check_column(given, what)
    try:
        return parse_sql(str(rows.where(given)._jdf.queryExecution().analyzed().condition().sql()))
    except Exception as e:
        raise _unresolved(given, what, e) from e


def parse_value(given: str | Column, rows: DataFrame, what: str) -> Expression:
    """Return a value, with the arguments of `parse_condition`.

    Raises
    ------
    ArgumentTypeError, ExpressionError, UnsupportedExpressionError
        As for `parse_condition`.
    """
    if isinstance(given, str):
        return _parsed(given, rows)
    _check_column(given, what)
    try:
        analyzed = rows.select(given.alias("value"))._jdf.queryExecution().analyzed()
        if analyzed.nodeName() == "Project":
            return parse_sql(str(analyzed.projectList().head().child().sql()))
    except Exception as e:
        raise _unresolved(given, what, e) from e
    raise UnsupportedExpressionError(
        f"Found {what} as {given}, which is not calculated from one row. Use MERGE with a source that has its values.",
        feature="",
    )


def without_alias(expression: Expression, schema: StructType, alias: str | None) -> Expression:
    """Return an expression over a table's columns, which may have been named with the table's alias."""
    if alias is None:
        return expression

    def own(leaf: Leaf) -> Expression:
        if not isinstance(leaf, ast.Column) or len(leaf.path) < 2 or leaf.path[0].lower() != alias.lower():
            return leaf
        return leaf if schema.get(leaf.path[1]) is None else ast.Column(leaf.path[1:])

    return transform(expression, own)


def _parsed(text: str, rows: DataFrame) -> Expression:
    is_raw = str(rows.sparkSession.conf.get(_RAW_TEXTS, "false")).lower() == "true"
    if is_raw and "\\" in text:
        raise UnsupportedExpressionError(
            f"The expression {text} contains a backslash, which begins an escape here and is literal in this session. "
            f"Set {_RAW_TEXTS} to false, or pass a Column.",
            feature="",
        )
    return parse_sql(str(portable_text(rows.sparkSession, text)))


def _check_column(given: Any, what: str) -> None:
    if not isinstance(given, Column):
        raise ArgumentTypeError(f"Found {what} as {type(given).__name__}, expected SQL text or a Column of PySpark.")


def _unresolved(given: Column, what: str, error: Exception) -> ExpressionError:
    return ExpressionError(f"Found {what} as {given}, which can't be evaluated on the table: {reason(error)}")
