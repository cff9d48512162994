"""The expressions of a session over the columns of one table."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame

from delta_core.engines.spark.analysis import analyzed_condition, analyzed_value, cast_value, understood
from delta_core.engines.spark.chars import padded_expression
from delta_core.engines.spark.conditions import empty_rows, parse_condition, parse_value, portable_text, without_alias
from delta_core.engines.spark.relations import check_session
from delta_core.engines.spark.settings import SessionSettings, column_paths
from delta_core.expressions.ast import Expression
from delta_core.expressions.filters import to_expression
from delta_core.kernel.scan.plan import resolve_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.update import assigned_columns
from delta_core.schema.fields import Path, find
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["TableColumns"]


class TableColumns:
    """Reads conditions and values.

    Parameters
    ----------
    spark : SparkSession
        The session.
    base : Snapshot
        The table.
    alias : str or None
        The name by which they may call the table.
    settings : SessionSettings
        Those of the session.
    """

    def __init__(self, spark: Any, base: Snapshot, alias: str | None, settings: SessionSettings) -> None:
        self._spark, self._base, self._alias, self._settings = spark, base, alias, settings

    @cached_property
    def _rows(self) -> DataFrame:
        return empty_rows(self._spark, self._base.schema, self._base.state.types, self._alias)

    @property
    def _places(self) -> list[Path]:
        return [(f.name,) for f in self._base.schema.members]

    def condition(self, given: str | Column) -> str | Expression:
        """Return a condition: text as every session reads it, or an expression.

        Raises
        ------
        InvalidArgumentError, ExpressionError, ColumnNotFoundError
            As of `parse_condition`, and for a condition that neither the library nor Spark can evaluate.
        """

        def own() -> str | Expression:
            found = without_alias(parse_condition(given, self._rows, "the condition"), self._base.schema, self._alias)
            padded = self.padded(found)
            bound = to_expression(padded, self._base.schema, self._base.plugins.functions)
            assert bound is not None
            check_session(bound, self._spark, found)
            # the text of a condition goes into the commit as it was written
            is_kept = isinstance(given, str) and padded is found and self._alias is None
            return str(portable_text(self._spark, given)) if is_kept else padded

        result: str | Expression = understood(
            own, lambda: self._analyzed(analyzed_condition(given, self._rows, self._places))
        )
        return result

    def value(self, name: str, given: str | Column) -> Expression:
        """Return a new value of a column.

        Parameters
        ----------
        name : str
            The column, or a dotted path to a field of a struct, without the alias.
        given : str or Column
            The value.

        Raises
        ------
        InvalidArgumentError, ExpressionError, ColumnNotFoundError
            As of `condition`.
        """
        if self._settings.casts_as_queries:
            cast = self._cast(name, given)
            if cast is not None:
                return cast

        def own() -> Expression:
            found = without_alias(
                parse_value(given, self._rows, f"the value of {name!r}"), self._base.schema, self._alias
            )
            padded = self.padded(found)
            for value in assigned_columns(self._base, {name: padded}).values():
                check_session(value, self._spark, found)
            return padded

        def analyzed() -> Expression | None:
            return self._analyzed(analyzed_value(given, self._rows, self._places, self._type(name)))

        result: Expression = understood(own, analyzed)
        return result

    def _type(self, name: str) -> DataType:
        return find(self._base.schema, *resolve_columns(self._base.schema, [name]))[1].type

    def _cast(self, name: str, given: str | Column) -> Expression | None:
        """Return a value without fields or elements, cast as a query of the session casts it."""
        target = self._type(name)
        if not isinstance(target, PrimitiveType):
            return None
        return self._analyzed(cast_value(given, self._rows, self._places, target, self._base.state.types))

    def padded(self, found: Expression) -> Expression:
        """Return an expression that compares texts as a query does; the same one if it compares none of fixed length.

        Raises
        ------
        ColumnNotFoundError
            If the case of letters distinguishes columns, and it has one in another case.
        """
        self._settings.check_case(self._base.schema, column_paths(found))
        return padded_expression(found, self._base.schema, self._settings)

    def _analyzed(self, found: Expression | None) -> Expression | None:
        return None if found is None else padded_expression(found, self._base.schema, self._settings)
