"""Tables of other formats in the call forms of delta-spark: the format's own operations change their rows.

They run in the driver's Python process. The rows of a merge's source come to it as Arrow batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession, types as T

from delta_core.engines.spark.arrow_types import spark_field
from delta_core.engines.spark.conditions import (
    empty_rows_of,
    parse_condition,
    parse_value,
    portable_text,
    without_alias,
)
from delta_core.engines.spark.failures import convert_failures, failing_as
from delta_core.engines.spark.format_read import FormatPlace, read_format, recognised
from delta_core.engines.spark.format_write import FrameStream, write_format
from delta_core.engines.spark.merger import SparkMerger
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.relations import check_session
from delta_core.engines.spark.settings import column_paths, session_settings
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_core.expressions.ast import Expression
from delta_core.expressions.filters import to_expression
from delta_core.expressions.sql import is_default, parse_sql
from delta_core.formats import ChangedTable
from delta_core.kernel.commit.options import AppTransaction, CommitProperties
from delta_core.operations.merge.builder import MergeClause, TableMerger
from delta_core.operations.merge.clauses import MergeNames
from delta_core.operations.update import assigned_columns
from delta_core.schema.types import StructType

__all__ = ["NOT_OFFERED", "SparkFormatTable", "format_table_at"]

#: Rows of a source that are held in memory; more of them go to a temporary file.
_SOURCE_BYTES = 256 << 20
#: The calls of a Delta table that a table of another format does not have.
NOT_OFFERED = frozenset((
    "addFeatureSupport", "clone", "cloneAtTimestamp", "cloneAtVersion", "detail", "dropFeatureSupport", "generate",
    "history", "optimize", "purge", "restoreToTimestamp", "restoreToVersion", "upgradeTableProtocol", "vacuum",
    "vacuum_files",
))  # fmt: skip


def format_table_at(
    spark: Any,
    uri: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    plugins: Any = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> SparkFormatTable | None:
    """Return the table of another format than Delta at a place, None if there is none.

    Parameters
    ----------
    spark : SparkSession
        The session.
    uri : str
        The place.
    storage_options, plugins, allow_external
        As of `SparkTable.forPath`.

    Raises
    ------
    UnsupportedOperationError
        For ``plugins``, which are those of Delta tables, and for a format whose tables Spark does not read or change.
    """
    place = recognised(uri, storage_options, allow_external)
    if place is not None and plugins is not None:
        raise UnsupportedOperationError(f"Found plugins for {place!r}: they are for Delta tables. Leave them out.")
    return None if place is None else SparkFormatTable(spark, place)


class SparkFormatTable:
    """A table of another format than Delta by its place; each call works on the latest version.

    Made by `SparkTable.forPath`. DELETE, UPDATE and MERGE are the format's own operations in the driver's Python
    process: no job of Spark runs but the query of a merge's source.

    Parameters
    ----------
    spark : SparkSession
        The session.
    place : FormatPlace
        The table.

    Raises
    ------
    TableNotFoundError
        There is none.
    UnsupportedOperationError
        The format does not change rows.
    """

    def __init__(self, spark: SparkSession, place: FormatPlace) -> None:
        if private.is_available(spark):
            convert_failures()
        self._spark, self._place = spark, place
        self._alias: str | None = None
        self._session = session_settings(spark)
        self._table = self._opened()

    def __getattr__(self, name: str) -> Any:
        if name in NOT_OFFERED:
            raise UnsupportedOperationError(
                f"A table of the format {self._place.table_format.name} has no {name} on Spark. Use the methods of its "
                "property 'table', which is what delta_core.open_table returns.",
                operation=name,
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def path(self) -> str:
        """The place of the table."""
        return self._place.uri

    @property
    def place(self) -> FormatPlace:
        """The place, with the format and the options of its store."""
        return self._place

    @property
    def table(self) -> ChangedTable:
        """The latest version, as `delta_core.open_table` returns it."""
        self._table = self._opened()
        return self._table

    @property
    def schema(self) -> StructType:
        """The columns of the latest version."""
        return self.table.schema

    @property
    def sparkSession(self) -> SparkSession:
        """The session that runs the query of a merge's source."""
        return self._spark

    def toDF(self) -> DataFrame:
        """Return the rows of the latest version, as `delta_core.spark.read` does."""
        rows = read_format(self._spark, self._place, {})
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> SparkFormatTable:
        """Return the table under an alias, by which conditions may name its columns."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._alias = aliasName
        return made

    # --- changes ---------------------------------------------------------------------------

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows for which a condition is true; all without one.

        Parameters
        ----------
        condition : str or Column, optional
            In Spark SQL, of the functions that docs/expressions.md lists.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows``.

        Raises
        ------
        ExpressionError, ColumnNotFoundError, UnsupportedExpressionError
            As for `SparkTable.delete`.
        UnsupportedOperationError
            The session is one of Spark Connect.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        base = self._changeable("delete")
        done = base.delete(self._condition(base, condition), commit_properties=self._properties())
        return self._result({"num_affected_rows": done["num_deleted_rows"]})

    def truncate(self) -> None:
        """Delete all rows.

        Raises
        ------
        UnsupportedOperationError, CommitConflictError
            As for `delete`.
        """
        self.delete()

    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> DataFrame:
        """Assign new values to columns of the rows for which a condition is true; of all rows without one.

        Parameters
        ----------
        condition : str or Column, optional
            As of `delete`.
        set : Mapping of str to (str or Column)
            By column, or by a dotted path to a field of a struct: Spark SQL over the row as it was.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows``.

        Raises
        ------
        ArgumentTypeError
            ``set`` is no mapping, or the condition or a value neither text nor a Column.
        InvalidArgumentError
            Nothing is assigned, or a column twice.
        ExpressionError, ColumnNotFoundError, SchemaMismatchError
            The condition or an assignment does not fit the table.
        UnsupportedExpressionError, UnsupportedOperationError, CommitConflictError
            As for `delete`.
        """
        if not isinstance(set, Mapping):
            raise ArgumentTypeError(f"Found set as {type(set).__name__}, expected a dict of column to value.")
        base = self._changeable("update")
        rows = self._empty(base)
        updates = {
            self._own_name(base, name): v
            if is_default(v)
            else without_alias(parse_value(v, rows, f"the value of {name!r}"), base.schema, self._alias)
            for name, v in set.items()
        }
        given: dict[str, Expression] = {name: v for name, v in updates.items() if not is_default(v)}
        self._session.check_case(base.schema, column_paths(*map(parse_sql, updates), *given.values()))
        changed: Any = base
        for value in assigned_columns(changed, given).values() if given else ():
            check_session(value, self._spark, *given.values())
        condition_ = self._condition(base, condition)
        done = base.update(updates, predicate=condition_, commit_properties=self._properties())
        return self._result({"num_affected_rows": done["num_updated_rows"]})

    def merge(self, source: DataFrame, condition: str | Column) -> SparkMerger:
        """Merge the rows of a DataFrame into the table: the object that is returned takes clauses, and runs the merge.

        The driver's Python process gets the rows as Arrow batches, partition by partition. It holds 256 MiB of them;
        the rows of a larger source are in a temporary file.

        Parameters
        ----------
        source : DataFrame
            The rows. Its query runs again if another writer got in the way.
        condition : str or Column
            Which rows of the table and of the source match. Columns are named by the aliases of both, as
            ``t.id = s.id``.

        Raises
        ------
        InvalidArgumentError
            The source is no DataFrame of PySpark.
        UnsupportedOperationError
            The session is one of Spark Connect.
        """
        if not hasattr(source, "sparkSession"):
            raise InvalidArgumentError(f"Found {type(source).__name__} for source, expected a DataFrame of PySpark.")
        self._changeable("merge")
        return SparkMerger(lambda clauses, is_evolving: self._merged(source, condition, clauses, is_evolving))

    def insert(self, rows: DataFrame) -> None:
        """Append rows, which executors write.

        Parameters
        ----------
        rows : DataFrame
            With columns of the table, by their names.
        """
        write_format(rows, self._place, "append", {})

    def _merged(
        self, source: DataFrame, condition: Any, clauses: Sequence[MergeClause], is_evolving: bool
    ) -> DataFrame:
        if is_evolving:
            raise UnsupportedOperationError(
                f"A merge into a table of the format {self._place.table_format.name} adds no columns. Add them first, "
                "by the methods of its property 'table'."
            )
        base = self._changeable("merge")
        alias = private.alias_of(source)
        both = self._empty(base, "target").join(source if alias else source.alias("source"))

        def made(given: Any, what: str) -> Any:
            return None if given is None else parse_value(given, both, what)

        def valued(updates: Mapping[str, Any]) -> dict[str, Any]:
            return {n: v if is_default(v) else made(v, f"the value of {n!r}") for n, v in updates.items()}

        on = made(condition, "the merge condition")
        parsed = [
            MergeClause(
                c.kind, c.action, made(c.predicate, "a condition"), None if c.updates is None else valued(c.updates)
            )
            for c in clauses
        ]
        self._check_merge(base, given_schema(source), alias, on, parsed)
        rows = FrameStream(source)
        merger = base.merge(
            rows, on, alias, self._alias, max_spill_size=_SOURCE_BYTES, commit_properties=self._properties()
        )
        for clause in parsed:
            _add(merger, clause)
        with failing_as(f"Spark failed to merge rows into {self.path}", path=self.path), rows.raising():
            done = merger.execute()
        counts = {n: done[f"num_target_rows_{n}"] for n in ("updated", "deleted", "inserted")}
        return self._result(
            {"num_affected_rows": sum(counts.values()), **{f"num_{n}_rows": count for n, count in counts.items()}}
        )

    def _check_merge(
        self, base: ChangedTable, source: StructType, alias: str | None, on: Expression, clauses: Sequence[MergeClause]
    ) -> None:
        """Check names and times, which mean what they mean in the session."""
        sides = {(self._alias or "target").lower(): base.schema, (alias or "source").lower(): source}
        values = [v for c in clauses for v in (c.predicate, *(c.updates or {}).values())]
        for path in column_paths(on, *(v for v in values if v is not None and not is_default(v))):
            of = sides.get(path[0].lower()) if len(path) > 1 else None
            for schema, own in ((of, path[1:]),) if of is not None else tuple((s, path) for s in sides.values()):
                self._session.check_case(schema, [own])
        assigned = [parse_sql(self._own_name(base, n)) for c in clauses for n in c.updates or ()]
        self._session.check_case(base.schema, column_paths(*assigned))
        names = MergeNames(
            base.schema, source, self._alias, alias, base.functions, default_of=lambda path, updates=False: None
        )
        read = [v for v in (on, *values) if v is not None and not is_default(v)]
        check_session(names.condition(on), self._spark, *read)
        for clause in clauses:
            bound = names.clause(clause)
            for e in (bound.condition, *(a.value for a in bound.assignments)):
                if e is not None:
                    check_session(e, self._spark)

    # --- inside ----------------------------------------------------------------------------

    def _opened(self) -> ChangedTable:
        found: Any = self._place.open({})
        if not all(hasattr(found, n) for n in ("delete", "update", "merge")):
            raise UnsupportedOperationError(
                f"Spark can't change tables of the format {self._place.table_format.name}. Read them with "
                "delta_core.spark.read.",
                format=self._place.table_format.name,
            )
        return found  # type: ignore[no-any-return]

    def _changeable(self, call: str) -> ChangedTable:
        if not private.is_available(self._spark):
            raise UnsupportedOperationError(
                f"{call} needs a classic session of a known version of Spark; this one is of Spark Connect, or newer. "
                f"Use delta_core.open_table(path).{call}.",
                operation=call,
            )
        self._session = session_settings(self._spark)
        return self.table

    def _properties(self) -> CommitProperties:
        found = [AppTransaction(app, version) for app, version in self._session.transactions.items()]
        return CommitProperties(app_transactions=found or None)

    def _empty(self, base: Any, alias: str | None = None) -> DataFrame:
        """Return the columns that Spark has, without rows, on which Columns are resolved."""
        fields = []
        for field in base.scan().schema:
            try:
                fields.append(spark_field(field))
            except UnsupportedFeatureError:
                continue
        return empty_rows_of(self._spark, T.StructType(fields), self._alias or alias)

    def _condition(self, base: ChangedTable, given: str | Column | None) -> str | Expression | None:
        if given is None:
            return None
        parsed = without_alias(parse_condition(given, self._empty(base), "the condition"), base.schema, self._alias)
        self._session.check_case(base.schema, column_paths(parsed))
        bound = to_expression(parsed, base.schema, base.functions)
        assert bound is not None
        check_session(bound, self._spark, parsed)
        return str(portable_text(self._spark, given)) if isinstance(given, str) and self._alias is None else parsed

    def _own_name(self, base: ChangedTable, name: str) -> str:
        first, _, rest = name.partition(".")
        is_qualified = self._alias is not None and rest and first.lower() == self._alias.lower()
        return rest if is_qualified and base.schema.get(first) is None else name

    def _result(self, numbers: Mapping[str, int]) -> DataFrame:
        """Return one row of numbers."""
        self._session.finish_transaction(self._spark)
        values, names = (", ".join(parts) for parts in ((f"{n}L" for n in numbers.values()), numbers))
        return self._spark.sql(f"SELECT * FROM VALUES ({values}) AS t({names})")  # noqa: S608 (numbers, and names of this module)


def _add(merger: TableMerger, clause: MergeClause) -> None:
    is_star = clause.updates is None and clause.action != "delete"
    call = getattr(merger, f"when_{clause.kind}_{clause.action}{'_all' if is_star else ''}")
    call(*(() if clause.updates is None else (clause.updates,)), clause.predicate)
