"""DataFrames into tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from msgspec import structs
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.conditions import portable_definition, portable_text
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.plan.private import check_version, is_available
from delta_core.engines.spark.relations import spark_engine
from delta_core.engines.spark.settings import SessionSettings, session_settings
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.write.files import FrameOptions
from delta_core.engines.spark.write.modes import FrameWriteOptions, write_rows
from delta_core.engines.spark.write.rows import given_schema
from delta_core.engines.spark.write.values import with_null_fields, without_nullability
from delta_core.errors import InvalidArgumentError, SchemaMismatchError
from delta_core.expressions import to_condition
from delta_core.expressions.printing import quote_name
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES
from delta_core.kernel.snapshot import TableContext, open_context
from delta_core.kernel.write.plan import plan_write
from delta_core.operations import compact_after
from delta_core.operations.create import column_names
from delta_core.operations.rewrite import selects_partitions
from delta_core.operations.write import QueryBatch, WriteOptions

__all__ = ["casting_columns", "write"]

#: Whether rows come from a statement, or by the places of their columns: these are cast whatever the session sets.
_is_casting: ContextVar[bool] = ContextVar("casting_columns", default=False)


@contextmanager
def casting_columns() -> Iterator[None]:
    """Have `write` cast columns in a session that does not let those of DataFrames be cast by their names."""
    token = _is_casting.set(True)
    try:
        yield
    finally:
        _is_casting.reset(token)


@raises_spark_errors
def write(
    df: DataFrame,
    uri: str | os.PathLike[str],
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    *,
    partition_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str] = (),
    schema_mode: Literal["merge", "overwrite", "fixed"] | None = None,
    replace_definition: bool = False,
    replace_where: Any = None,
    replace_using: Sequence[str] | str = (),
    replace_on: str | Column | None = None,
    partition_overwrite_mode: Literal["static", "dynamic"] | None = None,
    properties: Mapping[str, Any] | None = None,
    name: str | None = None,
    description: str | None = None,
    txn: tuple[str, int] | QueryBatch | None = None,
    user_metadata: str | None = None,
    custom_metadata: Mapping[str, Any] | None = None,
    data_change: bool = True,
    max_records_per_file: int | None = None,
    optimize_write: bool | None = None,
    parquet_options: Mapping[str, str] | None = None,
    max_commit_retries: int = MAX_COMMIT_RETRIES,
    storage_options: Mapping[str, Any] | None = None,
    commits: Any = None,
    plugins: Any = None,
    route: Literal["auto", "plain"] = "auto",
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> int | None:
    """Write a DataFrame's rows into a table, creating it if there is none.

    Parameters
    ----------
    df : DataFrame
        The rows; columns are matched by name, ignoring case.
    uri : str or path
        A local path or the URI of any file system that fsspec and Hadoop support.
    mode : str
        ``error``, ``append``, ``overwrite`` or ``ignore``, by what to do with a table that exists.
    partition_by : str or sequence of str, optional
        The partition columns of a table that is created; of one that exists, they must be its own.
    cluster_by : sequence of str
        Clustering columns of a table that is created, or whose schema is overwritten.
    schema_mode : str, optional
        ``merge`` adds columns that only the rows have; ``overwrite``, with mode overwrite, takes the rows' schema;
        ``fixed`` rejects rows with other columns. Unless given, the session's setting
        ``spark.databricks.delta.schema.autoMerge.enabled`` decides between the first and the last.
    replace_definition : bool
        With overwrite: take the rows' schema, and of partitioning, properties and description what these arguments
        specify, as if the table were created.
    replace_where : str or Expression, optional
        With overwrite: replace only the rows that it selects; the new rows must fit it.
    replace_using : sequence of str
        With overwrite: replace the rows that are equal to a new row in these columns; null equals nothing.
    replace_on : str or Column, optional
        With overwrite: replace the rows for which the condition holds with a new row. The table's columns are those of
        ``t``, the new rows' those of ``s``: ``t.id <=> s.id``.
    partition_overwrite_mode : str, optional
        ``dynamic``, with overwrite: replace only the partitions that the new rows are in; ``static``: all rows. Unless
        given, the session's setting ``spark.sql.sources.partitionOverwriteMode`` decides for a partitioned table.
    properties : Mapping, optional
        Of a table that is created.
    name, description : str, optional
        Texts of a table that is created, or whose schema is overwritten.
    txn : (str, int) or QueryBatch, optional
        An application's id and version: rows of a version that the table has already are not written again. Unless
        given, the session's settings ``spark.databricks.delta.write.txnAppId`` and ``txnVersion``. A `QueryBatch` is
        that of a streaming query, with its operation in the history.
    user_metadata : str, optional
        ``userMetadata`` of the commit; ``spark.databricks.delta.commitInfo.userMetadata`` unless given.
    custom_metadata : Mapping, optional
        Further fields of ``commitInfo``.
    data_change : bool
        False, with overwrite: the rows are those that they replace, arranged otherwise.
    max_records_per_file : int, optional
        The most rows of a file; without limit by default.
    optimize_write : bool, optional
        Shuffle rows into tasks of the size of a file first. Unless given, the session's setting
        ``spark.databricks.delta.optimizeWrite.enabled``, then the property ``delta.autoOptimize.optimizeWrite``.
    parquet_options : Mapping, optional
        Of Spark's Parquet writer, as ``parquet.block.size`` and ``compression``.
    max_commit_retries : int
        How often to try again after another writer's commit came first.
    storage_options : Mapping, optional
        For the log, which Python writes; data files are written with what Hadoop is configured for.
    commits : CommitSource, optional
        The catalog of a catalog-managed table.
    plugins : PluginRegistry, optional
        Which table features there are; by default those installed.
    route : "auto" or "plain"
        ``plain`` goes without Spark's private interfaces, as Spark Connect always does.
    allow_external : sequence of str or False, optional
        As for `read`: of files whose rows are kept.

    Returns
    -------
    int or None
        The version; None if there was nothing to do.

    Raises
    ------
    TableExistsError, SchemaMismatchError, ConstraintViolationError, CommitConflictError
        The table is as it was, and nothing that was written is left.
    EngineError
        The Spark job failed; Spark's own error is its cause.
    InvalidArgumentError
        For another kind of DataFrame, or an argument or setting with a value that it can't have.
    UnsupportedOperationError
        The session has a setting of Delta that this library does not follow.

    Notes
    -----
    One Spark job fills, checks and writes rows; statistics come from the footers. ``replace_*`` read the rows that they
    keep with Spark too.
    """
    check_version()
    if not hasattr(df, "sparkSession"):
        raise InvalidArgumentError(
            f"Found {type(df).__name__} for df, expected a DataFrame of PySpark. Use delta_core.write_deltalake for "
            "other rows."
        )
    if max_records_per_file is not None and (type(max_records_per_file) is not int or max_records_per_file < 1):
        raise InvalidArgumentError(f"Found max_records_per_file={max_records_per_file!r}, expected a number above 0.")
    if is_available(df.sparkSession):
        convert_failures()
    spark, place = df.sparkSession, os.fspath(uri)
    settings = session_settings(spark)
    using = (replace_using,) if isinstance(replace_using, str) else tuple(replace_using)
    options = WriteOptions(
        mode=mode,
        replace_where=portable_text(spark, replace_where),
        partition_overwrite=partition_overwrite_mode or "static",
        schema_mode=None if schema_mode == "fixed" else schema_mode,
        replaces_definition=replace_definition,
        partition_by=None if partition_by is None else column_names("partition_by", partition_by),
        cluster_by=column_names("cluster_by", cluster_by or ()),
        properties=None if properties is None else portable_definition(spark, properties)[0],
        name=name,
        description=description,
        transactions=dict([txn]) if isinstance(txn, tuple) else {} if txn else settings.transactions,
        batch=txn if isinstance(txn, QueryBatch) else None,
        data_change=data_change,
        checks_replaced=settings.permits("replaceWhere.constraintCheck.enabled"),
        may_widen=settings.may_widen,
        user_metadata=user_metadata,
        custom_metadata=custom_metadata or {},
        max_commit_retries=max_commit_retries,
    )
    optimize = settings.optimizes_writes if optimize_write is None else optimize_write
    files = FrameOptions(max_records_per_file, optimize, parquet_options or {}, route == "plain")
    if replace_on is not None:
        settings.permit("replaceOn.dataframe.writer.enabled")
    if using:
        settings.permit("replaceUsing.dataframe.writer.enabled")
    settings.permits_dynamic(partition_overwrite_mode == "dynamic")
    own = FrameWriteOptions(using, portable_text(spark, replace_on), files)
    engine = spark_engine(spark, place, storage_options, allow_external, files)
    context = open_context(place, storage_options, engine, commits=commits, plugins=plugins)
    if schema_mode is None:
        options = _evolving(options, settings)
    if partition_overwrite_mode is None and not own.replaces:
        options = _dynamic(context, options, settings)
    options = _with_parameters(options)
    _check_permitted(context, df, options, settings)
    result = write_rows(context, _prepared(context, df, options, settings), options, own)
    if not txn:
        settings.finish_transaction(spark)
    if result is None:
        return None
    compact_after(result.snapshot, settings.compaction)
    return result.version


def _with_parameters(options: WriteOptions) -> WriteOptions:
    """Return options of a write whose commit states that it may change the schema, as in delta-spark."""
    name = {"merge": "canMergeSchema", "overwrite": "canOverwriteSchema"}.get(options.schema_mode or "")
    return options if name is None else structs.replace(options, parameters={name: "true"})


def _prepared(context: TableContext, df: DataFrame, options: WriteOptions, settings: SessionSettings) -> DataFrame:
    """Return rows; if the session requests it, null structs of another type than their column become those of nulls."""
    keeps = settings.keeps_null_structs(options.batch is not None)
    base = None if keeps else context.find()
    if base is None:
        return df
    columns = []
    for found in given_schema(df).members:
        own, column = base.schema.get(found.name), F.col(quote_name(found.name))
        if own is not None:
            column = with_null_fields(column, found.type, own.type).alias(found.name)
        columns.append(column)
    return df.select(*columns)


def _check_permitted(context: TableContext, df: DataFrame, options: WriteOptions, settings: SessionSettings) -> None:
    """Reject a write that settings of the session disable."""
    if options.replace_where is not None and options.mode == "overwrite":
        _check_replaced(context, options, settings)
    keeps_columns = options.schema_mode != "overwrite" and not options.replaces_definition
    if options.mode in ("append", "overwrite") and keeps_columns and options.batch is None and not _is_casting.get():
        _check_types(context, df, options, settings)
    may_lack = settings.permits("generatedColumn.allowNullableIngest.enabled")
    if options.mode in ("append", "overwrite") and keeps_columns and not may_lack:
        _check_complete(context, df)


def _check_replaced(context: TableContext, options: WriteOptions, settings: SessionSettings) -> None:
    """Reject a condition that is not on partitions alone, if the session requests that."""
    base = None if settings.permits("replaceWhere.dataColumns.enabled") else context.find()
    if base is None:
        return
    predicate = to_condition(options.replace_where, base.schema, functions=base.plugins.functions)
    if predicate is not None and not selects_partitions(predicate, base.state.partition_columns):
        settings.permit("replaceWhere.dataColumns.enabled")


def _check_types(context: TableContext, df: DataFrame, options: WriteOptions, settings: SessionSettings) -> None:
    """Reject columns of other types than the table has, if the session does not let them be cast."""
    base = None if settings.permits("dml.insert.dfByName.allowImplicitCasts") else context.find()
    if base is None:
        return
    for found in given_schema(df).members:
        own = base.schema.get(found.name)
        given = without_nullability(found.type)
        if own is None or options.schema_mode is not None or given.type == "void":
            continue
        if given != without_nullability(own.type):
            raise SchemaMismatchError(
                f"Column {own.name} comes as {given.type}, and is {own.type.type} in the table: the setting "
                "spark.databricks.delta.dml.insert.dfByName.allowImplicitCasts is false.",
                column=own.name,
            )


def _check_complete(context: TableContext, df: DataFrame) -> None:
    """Reject rows for a table with generated columns that lack another one of its columns."""
    base = context.find()
    computed = frozenset() if base is None else plan_write(base.state, base.plugins, "WRITE").computed
    if base is None or not computed:
        return
    given = {name.lower() for name in df.columns}
    missing = [n for n in base.schema.names if n.lower() not in given and n not in computed]
    if missing:
        raise SchemaMismatchError(
            f"The rows lack the column {missing[0]}: the setting "
            "spark.databricks.delta.generatedColumn.allowNullableIngest.enabled is false.",
            column=missing[0],
            condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
        )


def _evolving(options: WriteOptions, settings: SessionSettings) -> WriteOptions:
    """Return options of a write that adds columns, if the session requests that of writes like this one."""
    if not settings.merges_schema or not options.data_change or options.replaces_definition:
        return options
    return structs.replace(options, schema_mode="merge")


def _dynamic(context: TableContext, options: WriteOptions, settings: SessionSettings) -> WriteOptions:
    """Return options of an overwrite of some partitions, if the session requests that of writes like this one."""
    is_whole = options.mode == "overwrite" and options.data_change and not options.replaces_definition
    if not settings.is_dynamic or not is_whole or options.replace_where is not None:
        return options
    base = context.find() if options.schema_mode != "overwrite" else None
    if base is None or not base.state.partition_columns:
        return options
    return structs.replace(options, partition_overwrite="dynamic")
