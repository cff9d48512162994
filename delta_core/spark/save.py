"""DataFrames into tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import Column, DataFrame

from delta_core.commit.options import MAX_COMMIT_RETRIES
from delta_core.errors import InvalidArgumentError
from delta_core.operations.write import WriteOptions
from delta_core.snapshot import open_context
from delta_core.spark.conditions import portable_definition, portable_text
from delta_core.spark.failures import convert_failures
from delta_core.spark.plan.private import check_version, is_available
from delta_core.spark.relations import spark_engine
from delta_core.spark.write.files import FrameOptions
from delta_core.spark.write.modes import FrameWriteOptions, write_rows

__all__ = ["write"]


def write(
    df: DataFrame,
    uri: str | os.PathLike[str],
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    *,
    partition_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str] = (),
    schema_mode: Literal["merge", "overwrite"] | None = None,
    replace_definition: bool = False,
    replace_where: Any = None,
    replace_using: Sequence[str] | str = (),
    replace_on: str | Column | None = None,
    partition_overwrite_mode: Literal["static", "dynamic"] = "static",
    properties: Mapping[str, Any] | None = None,
    name: str | None = None,
    description: str | None = None,
    txn: tuple[str, int] | None = None,
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
        ``merge`` adds columns that only the rows have; ``overwrite``, with mode overwrite, takes the rows' schema.
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
    partition_overwrite_mode : str
        ``dynamic``, with overwrite: replace only the partitions that the new rows are in.
    properties : Mapping, optional
        Of a table that is created.
    name, description : str, optional
        Texts of a table that is created, or whose schema is overwritten.
    txn : (str, int), optional
        An application's id and version: rows of a version that the table has already are not written again.
    user_metadata : str, optional
        ``userMetadata`` of the commit.
    custom_metadata : Mapping, optional
        Further fields of ``commitInfo``.
    data_change : bool
        False, with overwrite: the rows are those that they replace, arranged otherwise.
    max_records_per_file : int, optional
        A file ends with so many rows; without limit unless given.
    optimize_write : bool, optional
        Shuffle rows into tasks of the size of a file first; ``delta.autoOptimize.optimizeWrite`` unless given.
    parquet_options : Mapping, optional
        Of Spark's Parquet writer, as ``parquet.block.size``.
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
        For another kind of DataFrame, or an argument with a value that it can't have.

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
    options = WriteOptions(
        mode=mode,
        replace_where=portable_text(df.sparkSession, replace_where),
        partition_overwrite=partition_overwrite_mode,
        schema_mode=schema_mode,
        replaces_definition=replace_definition,
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        cluster_by=cluster_by,
        properties=None if properties is None else portable_definition(df.sparkSession, properties)[0],
        name=name,
        description=description,
        transactions=dict([txn]) if txn else {},
        data_change=data_change,
        user_metadata=user_metadata,
        custom_metadata=custom_metadata or {},
        max_commit_retries=max_commit_retries,
    )
    files = FrameOptions(max_records_per_file, optimize_write, parquet_options or {}, route == "plain")
    using = (replace_using,) if isinstance(replace_using, str) else tuple(replace_using)
    place = os.fspath(uri)
    engine = spark_engine(df.sparkSession, place, storage_options, allow_external, files)
    context = open_context(place, storage_options, engine, commits=commits, plugins=plugins)
    result = write_rows(
        context, df, options, FrameWriteOptions(using, portable_text(df.sparkSession, replace_on), files)
    )
    return None if result is None else result.version
