"""Tables in the call forms of delta-spark: `delta.tables.DeltaTable` on the operations of this library."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession, types as T

from delta_core import operations
from delta_core.engines.spark.arguments import (
    check_bool,
    check_condition,
    check_properties,
    check_text,
    check_values,
    check_version,
)
from delta_core.engines.spark.builder import Definition, SparkTableBuilder, given_columns
from delta_core.engines.spark.catalog import (
    check_new_place,
    definition_names,
    is_catalog_place,
    path_in,
    plan_table,
    sees_place,
    table_path,
    table_to_convert,
)
from delta_core.engines.spark.conditions import portable_definition, portable_text
from delta_core.engines.spark.connect import has_format
from delta_core.engines.spark.connect_changes import (
    delete_statement,
    merge_on_server,
    truncate_statement,
    update_statement,
)
from delta_core.engines.spark.failures import convert_failures, failing_as
from delta_core.engines.spark.format_table import format_table_at
from delta_core.engines.spark.latest import latest_rows
from delta_core.engines.spark.merge import merge_frame
from delta_core.engines.spark.merged_columns import MergedColumns
from delta_core.engines.spark.merger import SparkMerger
from delta_core.engines.spark.optimized import OPTIMIZED, optimized_row
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.read import read
from delta_core.engines.spark.relations import spark_engine
from delta_core.engines.spark.results import result_frame
from delta_core.engines.spark.settings import column_paths, session_settings
from delta_core.engines.spark.spark_errors import class_raises_spark_errors, with_condition
from delta_core.engines.spark.table_columns import TableColumns
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import (
    ArgumentTypeError,
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.expressions.ast import column
from delta_core.expressions.sql import is_default, parse_sql
from delta_core.kernel.commit.options import commit_arguments
from delta_core.kernel.commit.recorded import Recorded, recording
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.plan import plan_write
from delta_core.operations.changes import Changed
from delta_core.operations.facts import has_transactions
from delta_core.operations.merge.builder import MergeClause
from delta_core.schema.fields import Path, Schema
from delta_core.schema.types import StructType
from delta_core.table import interop
from delta_core.table.delta_table import DeltaTable
from delta_core.table.optimizer import TableOptimizer
from delta_core.table.writer import convert_to_deltalake

__all__ = ["DETAIL", "HISTORY", "RESTORED", "SparkTable", "check_replaced", "clustering_columns"]

_log = logging.getLogger(__name__)

#: Runs one of the calls of an optimizer, with the size of files that the session sets.
_Optimize: TypeAlias = Callable[[TableOptimizer, int | None], Mapping[str, Any]]
_TEXTS = T.MapType(T.StringType(), T.StringType())
#: The columns that delta-spark returns of a table's history.
HISTORY = T.StructType([
    T.StructField("version", T.LongType()),
    T.StructField("timestamp", T.TimestampType()),
    T.StructField("userId", T.StringType()),
    T.StructField("userName", T.StringType()),
    T.StructField("operation", T.StringType()),
    T.StructField("operationParameters", _TEXTS),
    T.StructField("job", T.StructType([T.StructField(n, T.StringType()) for n in (
        "jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")])),
    T.StructField("notebook", T.StructType([T.StructField("notebookId", T.StringType())])),
    T.StructField("clusterId", T.StringType()),
    T.StructField("readVersion", T.LongType()),
    T.StructField("isolationLevel", T.StringType()),
    T.StructField("isBlindAppend", T.BooleanType()),
    T.StructField("operationMetrics", _TEXTS),
    T.StructField("userMetadata", T.StringType()),
    T.StructField("engineInfo", T.StringType()),
])  # fmt: skip
#: The columns of its description.
DETAIL = T.StructType([
    *(T.StructField(n, T.StringType()) for n in ("format", "id", "name", "description", "location")),
    *(T.StructField(n, T.TimestampType()) for n in ("createdAt", "lastModified")),
    *(T.StructField(n, T.ArrayType(T.StringType())) for n in ("partitionColumns", "clusteringColumns")),
    *(T.StructField(n, T.LongType()) for n in ("numFiles", "sizeInBytes")),
    T.StructField("properties", _TEXTS),
    *(T.StructField(n, T.IntegerType()) for n in ("minReaderVersion", "minWriterVersion")),
    T.StructField("tableFeatures", T.ArrayType(T.StringType())),
])  # fmt: skip
#: The result of RESTORE: columns, and metrics of the commit.
RESTORED = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}


@class_raises_spark_errors
class SparkTable:
    """A table by its place; each call works on the latest version.

    Made by `forPath` or `forName`. The call forms and results are those of ``delta.tables.DeltaTable``.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    path : str or path
        A local path or the URI of any file system that fsspec and Hadoop support.
    **options
        ``storage_options``, ``plugins`` and ``allow_external``, as of `read`.

    Raises
    ------
    TableNotFoundError
        There is no Delta log.
    """

    def __init__(self, spark: SparkSession, path: str | os.PathLike[str], **options: Any) -> None:
        private.check_version()
        if private.is_available(spark):
            convert_failures()
        self._spark, self._path, self._options = spark, os.fspath(path), options
        self._alias: str | None = None
        self._options = options
        self._session = session_settings(spark)
        self._table = _opened(spark, self._path, **options)

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: str | os.PathLike[str],
        hadoopConf: Mapping[str, str] | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        plugins: Any = None,
        allow_external: Sequence[str] | Literal[False] | None = None,
    ) -> SparkTable:
        """Return the table at a path; for one of another format than Delta, a `SparkFormatTable`.

        Parameters
        ----------
        sparkSession : SparkSession
            The session that runs the jobs.
        path : str or path
            A local path or the URI of any file system that fsspec and Hadoop support.
        hadoopConf : Mapping, optional
            Settings of Hadoop that the session has too; without effect on local paths, and rejected for others: the log
            is read with ``storage_options``, data files with the session's own settings.
        storage_options : Mapping, optional
            For the log and the vectors, which Python reads.
        plugins : PluginRegistry, optional
            Which table features there are; by default those installed.
        allow_external : sequence of str or False, optional
            As of `read`.

        Raises
        ------
        TableNotFoundError
            There is no Delta log.
        InvalidArgumentError
            ``hadoopConf`` has entries that the session does not have.
        """
        _check_hadoop(sparkSession, os.fspath(path), hadoopConf)
        given = {"storage_options": storage_options, "plugins": plugins, "allow_external": allow_external}
        return cls._at(sparkSession, os.fspath(path), given)

    @classmethod
    def _at(cls, spark: SparkSession, path: str, options: Mapping[str, Any]) -> SparkTable:
        try:
            return cls(spark, path, **options)
        except TableNotFoundError:
            found: Any = format_table_at(spark, path, **options)
            if found is None:
                raise
            return found  # type: ignore[no-any-return]  # callers of delta-spark's calls have one class for them

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str, **options: Any) -> SparkTable:
        """Return the table of a name in the session's catalog, or of ``delta.`path```.

        Parameters
        ----------
        sparkSession : SparkSession
            A classic session, unless the name contains a path.
        tableOrViewName : str
            A table whose provider is ``delta``, or another format that Spark reads here, such as ``lance``.
        **options
            As of `forPath`.

        Raises
        ------
        TableNotFoundError
            The catalog has no such table, or it is not a Delta table.
        UnsupportedOperationError
            On Spark Connect, whose catalog does not return a table's location.
        """
        with with_condition(TableNotFoundError, "DELTA_MISSING_DELTA_TABLE"):
            path = table_path(sparkSession, tableOrViewName)
        return cls._at(sparkSession, path, options)

    @classmethod
    def isDeltaTable(
        cls, sparkSession: SparkSession, identifier: str, storage_options: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether there is a Delta log at a path, or at a folder above it."""
        settings, path = session_settings(sparkSession), (path_in(identifier) or identifier).rstrip("/")
        try:
            while path.strip("/") and not path.endswith((":", "/_delta_log", "/_samples")):
                if DeltaTable.is_deltatable(path, storage_options):
                    return True
                path = path.rpartition("/")[0].rstrip("/")
        except (DeltaError, OSError):
            if settings.permits("isDeltaTable.throwOnError"):
                raise
        return False

    @property
    def path(self) -> str:
        """The place of the table."""
        return self._path

    @property
    def table(self) -> DeltaTable:
        """The latest version as `delta_core.DeltaTable`, whose operations run on Spark."""
        self._latest()
        return self._table

    @property
    def schema(self) -> StructType:
        """The columns of the latest version."""
        return self._latest().schema

    @property
    def sparkSession(self) -> SparkSession:
        """The session that runs the jobs."""
        return self._spark

    # --- making tables ---------------------------------------------------------------------

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None, **options: Any) -> SparkTableBuilder:
        """Return a builder of a table that must not exist, in the active session unless one is given.

        ``options`` are those of `forPath`.
        """
        return cls._builder("error", sparkSession, options)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None, **options: Any) -> SparkTableBuilder:
        """Return a builder of a table that stays as it is if it exists."""
        return cls._builder("ignore", sparkSession, options)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None, **options: Any) -> SparkTableBuilder:
        """Return a builder of a table in place of one that exists, whose rows are removed."""
        return cls._builder("replace", sparkSession, options)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None, **options: Any) -> SparkTableBuilder:
        """Return a builder of a table in place of one that may exist, whose rows are removed."""
        return cls._builder("overwrite", sparkSession, options)

    @classmethod
    def _builder(cls, mode: Any, given: SparkSession | None, options: Mapping[str, Any]) -> SparkTableBuilder:
        spark = SparkSession.getActiveSession() if given is None else given
        if spark is None:
            raise InvalidArgumentError("There is no active session of Spark. Pass one.")

        def make(wanted: Definition) -> SparkTable:
            settings = session_settings(spark)
            place, storage_options = plan_table(spark, wanted.name, wanted.path), options.get("storage_options")
            path = place.path
            is_managed = is_catalog_place(spark, place, wanted.name, wanted.path)
            is_missing = is_managed and not place.is_known
            if wanted.mode == "replace" and (is_missing or not DeltaTable.is_deltatable(path, storage_options)):
                raise TableNotFoundError(f"There is no table to replace at {path}.", path=path)
            if wanted.mode == "error" and place.is_known:
                raise TableExistsError(f"The session's catalog has a table {wanted.name} at {path}.", path=path)
            texts = wanted.properties
            if settings.lowers_property_names:
                texts = {n if n.lower().startswith("delta.") else n.lower(): text for n, text in texts.items()}
            properties, fields = portable_definition(spark, texts, wanted.schema.members)
            words = {"replace": "REPLACE", "overwrite": "CREATE OR REPLACE"}.get(wanted.mode, "CREATE")
            if not place.is_known and sees_place(spark, is_managed, storage_options):
                check_new_place(spark, place, is_managed, DeltaTable.is_deltatable(path, storage_options))
            with recording(definition_names(words, is_managed)):
                DeltaTable.create(
                    path,
                    Schema(fields),
                    "overwrite" if wanted.mode == "replace" else wanted.mode,
                    list(wanted.partition_by),
                    description=wanted.comment,
                    configuration=properties,
                    cluster_by=wanted.cluster_by,
                    storage_options=storage_options,
                    plugins=options.get("plugins"),
                    engine=spark_engine(spark, path, storage_options, options.get("allow_external")),
                )
            place.register(spark, is_managed)
            return cls.forPath(spark, path, **options)

        return SparkTableBuilder(mode, make)

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | T.StructType | None = None,
        *,
        collect_stats: bool = True,
        **options: Any,
    ) -> SparkTable:
        """Make a table of a folder of Parquet files, in place; a folder that is a table already stays as it is.

        Executors read the footers, from 1,000 files on.

        Parameters
        ----------
        sparkSession : SparkSession
            The session of the table that is returned.
        identifier : str
            ``parquet.`path```, or a table of the session's catalog whose provider is Parquet, which becomes one of
            Delta.
        partitionSchema : str or StructType, optional
            The partition columns with their types; files then lie in folders such as ``day=2024-05-01``.
        collect_stats : bool
            Whether bounds and counts of nulls are taken from the footers, so that reads skip files.
        **options
            As of `forPath`.

        Raises
        ------
        TableNotFoundError
            The catalog has no such table.
        UnsupportedOperationError
            The table has partitions outside of its folder.
        InvalidArgumentError, SchemaError, SchemaMismatchError, DataFileError
            As for `delta_core.convert_to_deltalake`.
        """
        path, is_named = path_in(identifier), False
        if path is None:
            path, is_named = table_to_convert(sparkSession, identifier, partitionSchema), True
            schema = private.partition_schema(sparkSession, identifier) or None
        else:
            schema = T.StructType.fromDDL(partitionSchema) if isinstance(partitionSchema, str) else partitionSchema
        settings = session_settings(sparkSession)
        by = None if schema is None else Schema(given_columns(schema))
        hive: Literal["hive"] | None = None if by is None else "hive"
        engine = spark_engine(sparkSession, path, options.get("storage_options"), options.get("allow_external"))
        properties = private.own_properties(sparkSession, identifier) if is_named else None
        if not DeltaTable.is_deltatable(path, options.get("storage_options")):
            with recording({"CONVERT": Recorded("CONVERT", {"sourceFormat": "parquet"})}):
                convert_to_deltalake(
                    path,
                    "ignore",
                    by,
                    hive,
                    collect_stats=collect_stats,
                    configuration=properties,
                    engine=engine,
                    null_on_failed_cast=settings.requests("convert.partitionValues.ignoreCastFailure"),
                    use_sink_log=settings.permits("convert.useMetadataLog"),
                )
        if is_named:
            private.become_delta_table(sparkSession, identifier)
        return cls.forPath(sparkSession, path, **options)

    # --- reading ---------------------------------------------------------------------------

    def toDF(self) -> DataFrame:
        """Return the rows of the table: each query reads its latest version, with ``plugins`` that of now."""
        options = {name: value for name, value in self._options.items() if value is not None}
        is_plain = "plugins" not in options
        rows = latest_rows(self._spark, self._path, **options) if is_plain else read(self._spark, self._path, **options)
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> SparkTable:
        """Return the table under an alias, by which conditions may name its columns."""
        check_text(aliasName, "aliasName")
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._alias = aliasName
        return made

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits, newest first: the columns of delta-spark's history."""
        rows = [_history_row(info) for info in self._latest().history(limit)]
        return result_frame(self._spark, rows, HISTORY)

    def detail(self) -> DataFrame:
        """Return one row about the table: the columns of delta-spark's detail."""
        snapshot = self._latest()
        metadata, protocol, sizes = snapshot.metadata, snapshot.protocol, interop.sizes(snapshot)
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        row = (
            "delta", metadata.id, metadata.name, metadata.description, interop.root_uri(snapshot).rstrip("/"),
            _time(metadata.created_time), _time(snapshot.timestamp_ms), list(snapshot.state.partition_columns),
            clustering_columns(snapshot), sizes.files, sizes.size_bytes, dict(metadata.configuration),
            protocol.min_reader_version, protocol.min_writer_version, sorted(features or snapshot.state.features),
        )  # fmt: skip
        return result_frame(self._spark, [dict(zip(DETAIL.names, row, strict=True))], DETAIL)

    # --- changes of rows -------------------------------------------------------------------

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows for which a condition is true; all without one.

        Rows are dropped by deletion vectors if the table has them enabled. Otherwise the files that contain such rows
        are rewritten without them. If no row is selected, nothing is committed.

        Parameters
        ----------
        condition : str or Column, optional
            Any expression of one row that Spark accepts.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows``; -1 if files were removed whose number of rows is not known.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            The condition does not fit the table.
        UnsupportedExpressionError
            Its value is not the same each time, or it contains a query.
        UnsupportedOperationError
            The table is append-only, or the session is one of Spark Connect, and its server lacks the format ``delta``,
            or the table was opened with ``storage_options`` or ``plugins``, which the server does not have.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        EngineError
            A Spark job failed; nothing was changed.
        """
        if self._is_served():
            check_condition(condition)
            return self._spark.sql(delete_statement(self._path, self._alias, condition))
        return self._deleted(condition, Recorded("DELETE", {} if condition is not None else {"predicate": '["true"]'}))

    def truncate(self) -> None:
        """Delete all rows, as TRUNCATE TABLE of the history.

        Raises
        ------
        UnsupportedOperationError, CommitConflictError, EngineError
            As for `delete`.
        """
        if self._is_served():
            self._spark.sql(truncate_statement(self._path))
        else:
            self._deleted(None, Recorded("TRUNCATE", without=("predicate",)))

    def _deleted(self, condition: str | Column | None, name: Recorded) -> DataFrame:
        base = self._changeable("delete")
        options = operations.ChangeOptions(
            predicate=None if condition is None else self._columns(base).condition(condition),
            **self._session.change_options("delete"),
        )
        with recording({"DELETE": name}), failing_as(f"Spark failed to delete rows of {self._path}", path=self._path):
            done = operations.delete_rows(base, options)
        return self._taken(done, {"num_affected_rows": done.metrics.get("numDeletedRows", -1)})

    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> DataFrame:
        """Assign new values to columns of the rows for which a condition is true; of all rows without one.

        Parameters
        ----------
        condition : str or Column, optional
            Any expression of one row that Spark accepts.
        set : Mapping of str to (str or Column)
            By column, or by a dotted path to a field of a struct: Spark SQL over the row as it was.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows``.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            The condition or an assignment does not fit the table.
        ArgumentTypeError
            ``set`` is no mapping, or the condition or a value neither text nor a Column.
        InvalidArgumentError
            Nothing is assigned, or a column twice.
        SchemaMismatchError, ConstraintViolationError
            The new values don't fit the table; nothing was written.
        UnsupportedExpressionError, UnsupportedOperationError, CommitConflictError, EngineError
            As for `delete`.
        """
        check_values(set, "set")
        if self._is_served():
            check_condition(condition)
            if not set:
                raise InvalidArgumentError("An update needs values: set={column: value}.")
            return self._spark.sql(update_statement(self._path, self._alias, condition, set))
        base = self._changeable("update")
        columns, named = self._columns(base), {self._own_name(base, name): v for name, v in (set or {}).items()}
        updates = {name: v if is_default(v) else columns.value(name, v) for name, v in named.items()}
        self._session.check_case(base.schema, _assigned_paths(base.schema, updates))
        options = operations.UpdateOptions(
            predicate=None if condition is None else columns.condition(condition),
            updates=updates,
            **self._session.change_options("update"),
        )
        with failing_as(f"Spark failed to update rows of {self._path}", path=self._path):
            done = operations.update_rows(base, options)
        return self._taken(done, {"num_affected_rows": done.metrics["numUpdatedRows"]})

    def _numbers(self, found: Mapping[str, int]) -> DataFrame:
        """Return one row of numbers, a constant of the plan."""
        values, names = (", ".join(parts) for parts in ((f"{n}L" for n in found.values()), found))
        return self._spark.sql(f"SELECT * FROM VALUES ({values}) AS t({names})")  # noqa: S608 (numbers, and names of this module)

    def merge(self, source: DataFrame, condition: str | Column) -> SparkMerger:
        """Merge the rows of a DataFrame into the table: the object that is returned takes clauses, and runs the merge.

        Parameters
        ----------
        source : DataFrame
            The rows. Its query runs once.
        condition : str or Column
            Which rows of the table and of the source match. Columns are named by the aliases of both, as
            ``t.id = s.id``.

        Raises
        ------
        ArgumentTypeError
            The source is no DataFrame of PySpark, or the condition neither text nor a Column.
        InvalidArgumentError
            There is no condition.
        UnsupportedOperationError
            As for `delete`.
        """
        if not hasattr(source, "sparkSession"):
            raise ArgumentTypeError(f"Found {type(source).__name__} for source, expected a DataFrame of PySpark.")
        if condition is None:
            raise InvalidArgumentError("Found None for condition, expected SQL text or a Column of PySpark.")
        check_condition(condition)
        if self._is_served():
            return SparkMerger(
                lambda clauses, is_evolving: merge_on_server(
                    self._path, self._alias, source, condition, clauses, is_evolving
                )
            )
        self._changeable("merge")
        return SparkMerger(lambda clauses, is_evolving: self._merged(source, condition, clauses, is_evolving))

    def _merged(
        self, source: DataFrame, condition: Any, clauses: Sequence[MergeClause], is_evolving: bool
    ) -> DataFrame:
        base = self._latest()
        alias = private.alias_of(source)
        merged = MergedColumns(self._spark, base, source, self._alias, alias, self._session)
        on = merged.condition(condition)
        parsed = [merged.clause(clause) for clause in clauses]
        if self._session.is_case_sensitive:
            self._check_merged_case(base, source, alias or "source", on, parsed)
        options = operations.MergeOptions(
            predicate=on,
            clauses=tuple(parsed),
            source_alias=alias,
            target_alias=self._alias,
            merge_schema=is_evolving or self._session.merges_schema,
            **self._session.change_options("merge"),
        )
        if not options.merge_schema:
            _check_stars(base, source, clauses)
        done = merge_frame(self._spark, base, source, options)
        updated, deleted, inserted = (done.metrics[f"numTargetRows{n}"] for n in ("Updated", "Deleted", "Inserted"))
        return self._taken(
            done,
            {
                "num_affected_rows": updated + deleted + inserted,
                "num_updated_rows": updated,
                "num_deleted_rows": deleted,
                "num_inserted_rows": inserted,
            },
        )

    def _check_merged_case(
        self, base: Snapshot, source: DataFrame, alias: str, on: Any, clauses: Sequence[MergeClause]
    ) -> None:
        """Reject names of columns in a merge in another case of letters than the table or the source has them."""
        given = [on, *(v for c in clauses for v in (c.predicate, *(c.updates or {}).values()))]
        read = [v for v in given if v is not None and not is_default(v)]
        paths = column_paths(*(parse_sql(v) if isinstance(v, str) else v for v in read))
        sides = {(self._alias or "target").lower(): base.schema, alias.lower(): given_schema(source)}
        for path in paths:
            own = sides.get(path[0].lower()) if len(path) > 1 else None
            if own is not None:
                self._session.check_case(own, [path[1:]])
            elif not any(path[0] in schema.names for schema in sides.values()):
                for schema in sides.values():
                    self._session.check_case(schema, [path])
        names = [self._own_name(base, n) for c in clauses for n in c.updates or ()]
        stars = [(name,) for name in source.columns if any(c.is_star for c in clauses)]
        self._session.check_case(base.schema, [*_assigned_paths(base.schema, names), *stars])

    def optimize(self) -> SparkOptimizer:
        """Return what compacts the table's files.

        Raises
        ------
        UnsupportedOperationError
            The session is one of Spark Connect.
        """
        self._changeable("optimize")
        return SparkOptimizer(
            self._optimized,
            lambda: bool(clustering_columns(self._latest())),
            lambda text: str(portable_text(self._spark, text)),
        )

    def purge(self, where: str | None = None) -> DataFrame:
        """Write files with deleted rows again without these; return path and metrics as `optimize` does.

        Parameters
        ----------
        where : str, optional
            Only partitions for which this is true.

        Raises
        ------
        InvalidArgumentError, UnsupportedOperationError, CommitConflictError, EngineError
            As for `SparkOptimizer.executeCompaction`.
        """
        self._changeable("optimize")
        return self._optimized(lambda optimize, size: optimize.purge(portable_text(self._spark, where), size))

    def _optimized(self, run: _Optimize, *, is_z_order: bool = False) -> DataFrame:
        base = self._latest()
        start = _now_ms()
        with failing_as(f"Spark failed to write files of {self._path} again", path=self._path):
            # as in delta-spark, a filter selects partitions
            optimizer = TableOptimizer(self._table, prunes_files=False, commit_size=self._session.batch_size)
            done = run(optimizer, self._session.optimize_size)
        root = interop.root_uri(self._table.snapshot()).rstrip("/")
        num_tasks, num_columns = int(self._spark.sparkContext.defaultParallelism), len(base.schema.members)
        indexed = read_property(base.metadata.configuration, "delta.dataSkippingNumIndexedCols")
        columns = num_columns, num_columns if indexed < 0 else min(indexed, num_columns)
        row = optimized_row(done, (start, _now_ms()), num_tasks, columns, is_z_order=is_z_order)
        return result_frame(self._spark, [dict(zip(OPTIMIZED.names, (root, row), strict=True))], OPTIMIZED)

    # --- the log ---------------------------------------------------------------------------

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete files that no version within the retention needs, and return an empty DataFrame.

        ``spark.databricks.delta.retentionDurationCheck.enabled = false`` allows a shorter retention than the table's.

        Raises
        ------
        InvalidArgumentError
            The retention is shorter than the table's, and there are files to delete.
        """
        self.vacuum_files(retentionHours)
        return result_frame(self._spark, [], T.StructType([]))

    def vacuum_files(
        self, retention_hours: float | None = None, *, dry_run: bool = False, full: bool = True
    ) -> list[str]:
        """Delete files as `vacuum` does, and return their paths from the table's root.

        Parameters
        ----------
        retention_hours : float, optional
            As of `vacuum`.
        dry_run : bool
            Whether the files are only listed.
        full : bool
            Whether all files below the root are looked at; otherwise those that the log names as removed.

        Raises
        ------
        InvalidArgumentError
            The retention is shorter than the table's, and there are files to delete.
        """
        table, hours = self.table, float(retention_hours) if isinstance(retention_hours, str) else retention_hours
        try:
            plan = table.plan_vacuum(hours, self._session.checks_retention, full=full)
        except InvalidArgumentError:
            if not self._session.checks_retention:
                raise
            plan = table.plan_vacuum(hours, False, full=full)
            if plan.num_files or plan.empty_folders:
                raise
        if not dry_run:
            records: Literal["always", "never"] = "always" if self._session.records_vacuum else "never"
            options = operations.VacuumOptions(commit=commit_arguments(None, None), records=records)
            table.adopt(operations.run_vacuum(table.snapshot(), plan, options).snapshot)
        return plan.paths()

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore an older version in a new commit, and return delta-spark's metrics of it."""
        return self._restored(version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the version of a point in time, in the session's zone unless it names one."""
        check_text(timestamp, "timestamp")
        return self._restored(timestamp)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the versions of the protocol; lower ones change nothing.

        Reader version 3 and writer version 7 list the features that the table had before.

        Raises
        ------
        InvalidArgumentError
            For reader version 3 without writer version 7.
        UnsupportedVersionError
            For versions that this release does not support.
        """
        check_version(readerVersion, "readerVersion")
        check_version(writerVersion, "writerVersion")
        latest = self._latest()
        protocol = latest.protocol
        if readerVersion == 3 and max(writerVersion, protocol.min_writer_version) < 7:
            raise InvalidArgumentError(
                f"Found reader version 3 and writer version {writerVersion}, expected writer version 7 beside it."
            )
        if readerVersion <= 3 and writerVersion == 7:
            self._table.adopt(operations.list_features(latest, readerVersion, {}))
        elif readerVersion > protocol.min_reader_version or writerVersion > protocol.min_writer_version:
            versions = {"delta.minReaderVersion": str(readerVersion), "delta.minWriterVersion": str(writerVersion)}
            self._table.alter.set_table_properties(versions)

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a table feature, with those that it needs."""
        check_text(featureName, "featureName")
        self._latest()
        self._table.alter.add_feature(featureName, allow_protocol_versions_increase=True)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Remove a table feature: first what it left in metadata and files, then its name from the protocol."""
        check_text(featureName, "featureName")
        if truncateHistory is not None:
            check_bool(truncateHistory, "truncateHistory")
        self._latest()
        protects = self._session.permits("tableFeatures.fastDropFeature.enabled")
        with failing_as(f"Spark failed to rewrite files of {self._path}", path=self._path):
            self._table.alter.drop_feature(
                featureName, truncate_history=bool(truncateHistory), protect_history=protects
            )

    def generate(self, mode: str) -> None:
        """Write symlink manifests (``symlink_format_manifest``), as `delta_core.DeltaTable.generate`; no job runs."""
        self._latest()
        self._table.generate(mode)  # type: ignore[arg-type]  # it rejects other modes

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> SparkTable:
        """Make a table with the files of the latest version, as copies or by reference; the driver copies them."""
        self._latest()
        return self._cloned(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> SparkTable:
        """Make a table with the files of a version."""
        return self._cloned(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> SparkTable:
        """Make a table with the files of the version of a time."""
        return self._cloned(target, isShallow, replace, properties, timestamp=timestamp)

    # --- inside ----------------------------------------------------------------------------

    def _cloned(
        self, target: str, is_shallow: bool, replace: bool, properties: Mapping[str, str] | None, **version: Any
    ) -> SparkTable:
        check_text(target, "target")
        check_bool(is_shallow, "isShallow")
        check_bool(replace, "replace")
        if properties is not None:
            check_properties(properties, "properties")
        if version.get("timestamp") is not None:
            check_text(version["timestamp"], "timestamp")
            version["timestamp"] = session_settings(self._spark).time(version["timestamp"])
        path = path_in(target) or target
        if replace:
            check_replaced(self._spark, path, self._options.get("storage_options"))
        properties = None if properties is None else portable_definition(self._spark, properties)[0]
        engine = spark_engine(self._spark, path, self._options.get("storage_options"))
        self._table.clone(path, deep=not is_shallow, replace=replace, properties=properties, engine=engine, **version)
        return type(self).forPath(self._spark, path, **self._options)

    def _latest(self) -> Snapshot:
        self._session = session_settings(self._spark)
        self._table.update_incremental()
        return self._table.snapshot()

    def _is_served(self) -> bool:
        """Whether a server of Spark Connect changes the rows."""
        given = any(value is not None for value in self._options.values())
        if given or private.is_available(self._spark) or not has_format(self._spark):
            return False
        session_settings(self._spark)
        return True

    def _changeable(self, call: str) -> Snapshot:
        if not private.is_available(self._spark):
            raise UnsupportedOperationError(
                f"{call} needs a classic session of a known version of Spark; this one is of Spark Connect, or newer. "
                + (
                    "Use spark.sql, whose statements the server runs."
                    if has_format(self._spark)
                    else f"Use delta_core.DeltaTable(path).{call}."
                ),
                operation=call,
            )
        return self._latest()

    def _taken(self, done: Changed, numbers: Mapping[str, int]) -> DataFrame:
        """Move to the version that a change of rows committed; return its numbers, no row if it was done before."""
        transactions = self._session.transactions
        is_repeated = not done.is_committed and has_transactions(done.snapshot, transactions)
        self._session.finish_transaction(self._spark)
        compacted = operations.compact_after(done.snapshot, self._session.compaction) if done.is_committed else None
        self._table.adopt(compacted or done.snapshot)
        found = self._numbers(numbers)
        return found.limit(0) if is_repeated else found

    def _columns(self, base: Snapshot) -> TableColumns:
        return TableColumns(self._spark, base, self._alias, self._session)

    def _own_name(self, base: Snapshot, name: str) -> str:
        first, _, rest = name.partition(".")
        is_qualified = self._alias is not None and rest and first.lower() == self._alias.lower()
        return rest if is_qualified and base.schema.get(first) is None else name

    def _restored(self, target: int | str) -> DataFrame:
        self._latest()
        before = self._table.version()
        is_time = isinstance(target, str)
        if isinstance(target, str):
            target = self._session.time(target)
        may_downgrade = self._session.requests("restore.protocolDowngradeAllowed")
        by = {"version": None} if is_time else {"timestamp": None}
        with recording({"RESTORE": Recorded("RESTORE", by)}):
            self._table.restore(target, protocol_downgrade_allowed=may_downgrade)
        infos = self._table.history(1) if self._table.version() > before else [{}]
        metrics = infos[0].get("operationMetrics") or {}
        return self._numbers({name: int(metrics.get(known, 0)) for name, known in RESTORED.items()})


@class_raises_spark_errors
class SparkOptimizer:
    """The result of `SparkTable.optimize`.

    Parameters
    ----------
    run : function(function(TableOptimizer) -> Mapping, *, is_z_order) -> DataFrame
        Runs one of the calls of `delta_core.DeltaTable.optimize`.
    is_clustered : function() -> bool
        Whether the table has clustering columns.
    read : function(str) -> str
        Returns a condition, written for the session, as every session reads it.
    """

    def __init__(
        self, run: Callable[..., DataFrame], is_clustered: Callable[[], bool], read: Callable[[str], str]
    ) -> None:
        self._run, self._is_clustered, self._read = run, is_clustered, read
        self._filter: str | None = None
        self._is_full = False

    def where(self, partitionFilter: str) -> SparkOptimizer:
        """Select partitions: a condition in Spark SQL on partition columns alone."""
        check_text(partitionFilter, "partitionFilter")
        self._filter = self._read(partitionFilter)
        return self

    def full(self) -> SparkOptimizer:
        """Cluster files again too that are clustered by other columns; for clustered tables."""
        self._is_full = True
        return self

    def executeCompaction(self) -> DataFrame:
        """Join small files, and rewrite files with many deleted rows; return path and metrics as delta-spark does.

        Each group of files is written by a Spark job of one task, several at a time. Rows, row ids and the change feed
        stay as they are. The rows of a clustered table are ordered by its clustering columns, those of files that are
        not yet clustered well enough.

        Raises
        ------
        InvalidArgumentError
            The filter uses other columns than partition columns.
        UnsupportedOperationError
            A filter for a clustered table, or `full` for another one.
        CommitConflictError
            Another writer changed the same files or the definition at each attempt.
        EngineError
            A Spark job failed; nothing was changed.
        """
        where, is_full = self._filter, self._is_full
        if not is_full and not self._is_clustered():
            return self._run(lambda optimize, size: optimize.compact(where, size))
        if where is not None:
            raise UnsupportedOperationError(
                "The files of a clustered table are chosen by how they are clustered. Leave the condition out.",
                operation="optimize",
            )
        return self._run(lambda optimize, size: optimize.cluster(full=is_full, target_size=size))

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Write all rows of each partition again along a Z-order curve through columns; results as of compaction.

        Spark samples the columns, computes each row's place on the curve, and sorts by it. Without columns it is
        `executeCompaction`.

        Raises
        ------
        ColumnNotFoundError
            The table lacks a column.
        ArgumentTypeError
            For names that are no texts.
        InvalidArgumentError
            For partition columns, columns of a type without an order, or a filter as of `executeCompaction`.
        UnsupportedOperationError
            The table is clustered.
        CommitConflictError, EngineError
            As for `executeCompaction`.
        """
        if self._is_clustered():
            raise UnsupportedOperationError(
                "The table has columns of its own that its rows are ordered by. Call executeCompaction().",
                operation="executeZOrderBy",
            )
        if not cols:
            return self.executeCompaction()
        names = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else list(cols)
        if not all(isinstance(n, str) for n in names):
            raise ArgumentTypeError(f"Found {cols!r}, expected names of columns.")
        where = self._filter
        try:
            return self._run(
                lambda optimize, size: optimize.z_order([str(n) for n in names], where, size), is_z_order=True
            )
        except ColumnNotFoundError as e:
            raise ColumnNotFoundError(f"ZORDER BY: {e.message}", **e.facts) from e


def check_replaced(spark: Any, path: str, storage_options: Mapping[str, Any] | None) -> None:
    """Reject a clone in place of a table if the session does; otherwise it need not look for one."""
    error = session_settings(spark).disabled("clone.replaceEnabled")
    if error is not None and DeltaTable.is_deltatable(path, storage_options):
        raise error


def _assigned_paths(schema: StructType, names: Iterable[str]) -> list[Path]:
    """Return assigned columns as they are spelled; the name of a column wins over its dots."""
    return [(name,) if schema.get(name) is not None else column(name).path or (name,) for name in names]


def _check_stars(base: Snapshot, source: DataFrame, clauses: Sequence[MergeClause]) -> None:
    """Reject clauses for all columns whose source lacks one that the table does not fill by itself."""
    plan, given = plan_write(base.state, base.plugins, "MERGE"), {name.lower() for name in source.columns}
    filled = {
        "insert": {r.column[0] for r in plan.fills},
        "update": {*plan.computed, *(r.column[0] for r in plan.fills if r.exclusive)},
    }
    for clause in clauses:
        if not clause.is_star:
            continue
        name = next((n for n in base.schema.names if n.lower() not in given and n not in filled[clause.action]), None)
        if name is not None:
            raise SchemaMismatchError(
                f"The source lacks the column {name}, which {'INSERT' if clause.action == 'insert' else 'UPDATE SET'} "
                "* assigns. Name the columns and their values, or call withSchemaEvolution().",
                column=name,
                condition="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            )


def _opened(
    spark: Any, path: str, *, storage_options: Any = None, plugins: Any = None, allow_external: Any = None
) -> DeltaTable:
    engine = spark_engine(spark, path, storage_options, allow_external)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return DeltaTable(path, storage_options=storage_options, engine=engine, plugins=plugins, timezone=zone)


def _check_hadoop(spark: Any, path: str, given: Mapping[str, str] | None) -> None:
    if given is None:
        return
    check_properties(given, "hadoopConf")
    if not given:
        return
    if "://" not in path or path.startswith("file://"):
        _log.warning("hadoopConf has no effect on the table at %s: %s", path, ", ".join(sorted(given)))
        return
    # a client of Spark Connect can't look at the settings of the session
    own = spark._jsparkSession.sessionState().newHadoopConf() if private.is_available(spark) else {}
    others = sorted(name for name, text in given.items() if own.get(name) != text)
    if others:
        raise InvalidArgumentError(
            f"Found {', '.join(others)} in hadoopConf, which only this table would use. Set them in the session as "
            "spark.hadoop.<name>, and pass the credentials for the log in storage_options."
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _history_row(info: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {n: info.get(n) for n in HISTORY.fieldNames()}
    for name in ("operationParameters", "operationMetrics"):
        if row[name] is not None:
            row[name] = {k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in row[name].items()}
    return {**row, "timestamp": _time(info["timestamp"])}


def clustering_columns(snapshot: Snapshot) -> list[str]:
    """Return the names of the columns that a table is clustered by."""
    return list(snapshot.plugins.request_values("cluster_by", snapshot.state))
