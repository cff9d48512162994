"""The expressions of one MERGE of a session, over the columns of the table and of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.analysis import analyzed_condition, analyzed_value, cast_value, understood
from delta_core.engines.spark.chars import padded_expression
from delta_core.engines.spark.conditions import empty_rows, parse_value, portable_text
from delta_core.engines.spark.relations import check_session
from delta_core.engines.spark.settings import SessionSettings
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import ColumnNotFoundError, DeltaError, UnsupportedOperationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.printing import quote_name
from delta_core.expressions.sql import is_default
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.merge.builder import Kind, MergeClause
from delta_core.operations.merge.clauses import SOURCE, TARGET, MergeNames
from delta_core.schema.fields import Path
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["MergedColumns"]


@contextmanager
def _unresolved() -> Iterator[None]:
    """Set the condition of delta-spark for a function that Spark does not resolve in a merge."""
    try:
        yield
    except DeltaError as e:
        condition = getattr(e.__cause__, "getCondition", lambda: None)()
        if condition == "UNSUPPORTED_GROUPING_EXPRESSION":
            e.facts["condition"] = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
        raise


class MergedColumns:
    """Reads the expressions of a merge.

    Parameters
    ----------
    spark : SparkSession
        The session.
    base : Snapshot
        The table.
    source : DataFrame
        The rows that are merged into it.
    target_alias, source_alias : str or None
        The names of both sides in expressions.
    settings : SessionSettings
        Those of the session.
    """

    def __init__(
        self,
        spark: Any,
        base: Snapshot,
        source: DataFrame,
        target_alias: str | None,
        source_alias: str | None,
        settings: SessionSettings,
    ) -> None:
        self._spark, self._base, self._settings = spark, base, settings
        self._target, self._source = target_alias or TARGET, source_alias or SOURCE
        self._both = empty_rows(spark, base.schema, base.state.types, self._target).join(
            source if source_alias else source.alias(SOURCE)
        )
        self._rows = given_schema(source)

    @cached_property
    def _names(self) -> MergeNames:
        return MergeNames(
            self._base.schema, self._rows, self._target, self._source, self._base.plugins.functions, is_evolving=True
        )

    @cached_property
    def _places(self) -> list[Path]:
        own = [(self._target, f.name) for f in self._base.schema.members]
        return [*own, *((self._source, f.name) for f in self._rows.members)]

    def condition(self, given: str | Column) -> str | Expression:
        """Return the merge condition: text as every session reads it, or an expression.

        Raises
        ------
        InvalidArgumentError, ExpressionError
            As of `parse_value`.
        """
        found: str | Expression = self._condition(given, "the merge condition", "matched")
        return found

    def clause(self, given: MergeClause) -> MergeClause:
        """Return a clause with expressions as of `condition`.

        Raises
        ------
        InvalidArgumentError, ExpressionError
            As of `parse_value`.
        """
        values = given.updates
        if given.is_star and self._settings.casts_as_queries:
            values = self._cast_columns(given)
        return replace(
            given,
            predicate=None if given.predicate is None else self._condition(given.predicate, "a condition", given.kind),
            updates=None if values is None else {n: self._value(n, v, given.kind) for n, v in values.items()},
            except_columns=() if values is not None else given.except_columns,
        )

    def _condition(self, given: Any, what: str, kind: Kind) -> Any:
        with _unresolved():
            return understood(
                lambda: self._own(given, what, kind),
                lambda: self._padded(analyzed_condition(given, self._both, self._places, is_merge=True)),
            )

    def _value(self, name: str, given: Any, kind: Kind) -> Any:
        if is_default(given):
            return given
        target = self._type(name)
        if self._settings.casts_as_queries and isinstance(target, PrimitiveType):
            cast = cast_value(given, self._both, self._places, target, self._base.state.types, is_merge=True)
            if cast is not None:
                return self._padded(cast)
        with _unresolved():
            return understood(
                lambda: self._own(given, f"the value of {name!r}", kind, name),
                lambda: self._padded(analyzed_value(given, self._both, self._places, target, is_merge=True)),
            )

    def _cast_columns(self, given: MergeClause) -> Mapping[str, Any] | None:
        """Return the columns of the source by their names for a clause that assigns all, if one of them has to be cast.

        Raises
        ------
        UnsupportedOperationError
            The source has columns that the table lacks, which this clause might add.
        """
        own = {f.name: self._base.schema.get(f.name) for f in self._rows.members}
        kinds = {f.name: f.type for f in self._rows.members}
        if all(f is None or not isinstance(f.type, PrimitiveType) or f.type == kinds[n] for n, f in own.items()):
            return None
        more = next((name for name, f in own.items() if f is None), None)
        if more is not None:
            raise UnsupportedOperationError(
                f"The source has the column {more}, which the table lacks, and others have to be cast: name the "
                "columns of the clause and their values, since the session's setting "
                "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag is true.",
                operation="merge",
            )
        excluded = {name.lower() for name in given.except_columns}
        return {
            f.name: F.col(f"{quote_name(self._source)}.{quote_name(n)}")
            for n, f in own.items()
            if f is not None and n.lower() not in excluded
        }

    def _own(self, given: Any, what: str, kind: Kind, name: str | None = None) -> Any:
        value = parse_value(given, self._both, what)
        padded = self._padded(value)
        check_session(self._names.bound(padded, kind, name), self._spark, value)
        # a commit has the text as it was written
        return portable_text(self._spark, given) if padded is value and isinstance(given, str) else padded

    def _padded(self, value: Expression | None) -> Any:
        return None if value is None else padded_expression(value, self._base.schema, self._settings, self._target)

    def _type(self, name: str) -> DataType | None:
        """Return the type of a column that is assigned; None for one that the merge adds."""
        try:
            return self._names.assigned_type(name)
        except ColumnNotFoundError:
            return None
