"""A merge that is being put together, in the call forms of delta-spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from pyspark.sql import Column, DataFrame

from delta_core.engines.spark.arguments import check_condition, check_values
from delta_core.engines.spark.spark_errors import class_raises_spark_errors
from delta_core.errors import InvalidArgumentError
from delta_core.operations.merge.builder import Action, Kind, MergeClause

__all__ = ["SparkMerger"]

_Condition: TypeAlias = str | Column | None
_Values: TypeAlias = Mapping[str, str | Column]


@class_raises_spark_errors
class SparkMerger(Struct, frozen=True):
    """Clauses are added in order: of one kind, the first one applies whose condition is true for a row.

    Each method returns another merger with one more clause; `execute` runs the merge. Conditions and values are Spark
    SQL or Columns over the columns of the table and the source, by their aliases if both have a column of the name.

    Parameters
    ----------
    run : function(tuple of MergeClause, bool) -> DataFrame
        Runs the merge; the flag states whether the table gets columns that only the source has.
    clauses : tuple of MergeClause
        The clauses so far, with conditions and values as they were given.
    is_evolving : bool
        Whether the table gets columns that only the source has.
    """

    run: Callable[[Sequence[MergeClause], bool], DataFrame]
    clauses: tuple[MergeClause, ...] = ()
    is_evolving: bool = False

    def whenMatchedUpdate(self, condition: _Condition = None, set: _Values | None = None) -> SparkMerger:
        """Update rows that match: ``set`` maps columns of the table, or fields of structs, to values."""
        return self._with("matched", "update", condition, _given("set", set))

    def whenMatchedUpdateAll(self, condition: _Condition = None) -> SparkMerger:
        """Set the columns of rows that match to those of the source."""
        return self._with("matched", "update", condition, None)

    def whenMatchedDelete(self, condition: _Condition = None) -> SparkMerger:
        """Delete rows that match."""
        return self._with("matched", "delete", condition, None)

    def whenNotMatchedInsert(self, condition: _Condition = None, values: _Values | None = None) -> SparkMerger:
        """Insert rows of the source that match no row; columns not in ``values`` are filled as in any write."""
        return self._with("not_matched", "insert", condition, _given("values", values))

    def whenNotMatchedInsertAll(self, condition: _Condition = None) -> SparkMerger:
        """Insert rows of the source that match no row, with all columns of the source."""
        return self._with("not_matched", "insert", condition, None)

    def whenNotMatchedBySourceUpdate(self, condition: _Condition = None, set: _Values | None = None) -> SparkMerger:
        """Update rows of the table that no row of the source matches."""
        return self._with("not_matched_by_source", "update", condition, _given("set", set))

    def whenNotMatchedBySourceDelete(self, condition: _Condition = None) -> SparkMerger:
        """Delete rows of the table that no row of the source matches."""
        return self._with("not_matched_by_source", "delete", condition, None)

    def withSchemaEvolution(self) -> SparkMerger:
        """Add columns that clauses assign and only the source has, and widen types if the table allows it."""
        return SparkMerger(self.run, self.clauses, True)

    def execute(self) -> DataFrame:
        """Run the merge and commit it; no changed row makes no commit.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows`` and ``num_inserted_rows``.

        Raises
        ------
        InvalidArgumentError
            There is no clause.
        ExpressionError, ColumnNotFoundError, SchemaMismatchError
            A condition or a value does not fit the table and the source.
        MultipleMatchesError
            Several rows of the source match one row of the table.
        ConstraintViolationError
            A row that is written breaks a constraint of the table.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        EngineError
            A Spark job failed; nothing was changed.
        """
        if not self.clauses:
            raise InvalidArgumentError("A merge needs a clause, such as whenMatchedUpdateAll().")
        return self.run(self.clauses, self.is_evolving)

    def _with(self, kind: Kind, action: Action, condition: _Condition, values: _Values | None) -> SparkMerger:
        check_condition(condition)
        return SparkMerger(self.run, (*self.clauses, MergeClause(kind, action, condition, values)), self.is_evolving)


def _given(name: str, values: Any) -> _Values:
    check_values(values, name)
    assert isinstance(values, Mapping)
    return values
