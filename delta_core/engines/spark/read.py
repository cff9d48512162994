"""Tables and their changes as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.conditions import portable_text
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.format_read import FormatPlace, read_format, recognised
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.frame import Route, frame
from delta_core.engines.spark.predicates import condition, files_for, selected
from delta_core.engines.spark.read_versions import with_version
from delta_core.engines.spark.settings import SessionSettings, session_settings
from delta_core.engines.spark.snapshots import identity, open_latest
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.void_columns import paths_without_void
from delta_core.errors import InvalidArgumentError, TableNotFoundError, UnsupportedOperationError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.snapshot import open_snapshot
from delta_core.runtime.arguments import path_text
from delta_core.schema.fields import ColumnMap
from delta_core.table.delta_table import DeltaTable

__all__ = ["read", "read_changes"]


@raises_spark_errors
def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    version: int | None = None,
    timestamp: str | datetime | None = None,
    *,
    tag: str | None = None,
    branch: str | None = None,
    columns: Sequence[str] | None = None,
    metadata: Sequence[str] = (),
    predicate: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    commits: Any = None,
    plugins: Any = None,
    timezone: str | None = None,
    route: Route = "auto",
    vector_bytes: int | None = None,
    parallel_from: int | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> DataFrame:
    """Return a table's rows: of a Delta table, or of a table of another format that plans splits, such as Lance.

    The version is fixed by this call: the DataFrame stays at it, whatever is committed later, also if no version is
    passed. If none was passed, and the rows are written back to their table, the write fails with a
    CommitConflictError if commits since removed rows, or added rows that the write would replace. Spark Connect hands
    out no plans to find this in: there, such a write replaces them.

    `DeltaTable.toDF`, and the format ``delta`` of sessions made by `configure`, read the latest version in each query.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    uri : str or path
        A local path or the URI of any file system that fsspec and Hadoop support.
    version, timestamp : optional
        Which version, or the last one at a time; the latest if neither is given.
    tag, branch : str, optional
        Of formats that have them, such as Lance.
    columns : sequence of str, optional
        Names, dotted ones reach into structs; all unless given.
    metadata : sequence of str
        Metadata columns, after the others: ``_file_path``, ``_file_row_index`` and what the table's features offer,
        as ``_row_id`` and ``_row_commit_version``.
    predicate : str, filters or Expression, optional
        The same as ``.where`` on the result, for text in Spark's own SQL; it may name columns that are not requested.
        Files are skipped for any ``.where`` and join, with or without it.
    storage_options : Mapping, optional
        For the log and the vectors, which Python reads; data files are read with what Hadoop is configured for.
    commits : CommitSource, optional
        The catalog of a catalog-managed table.
    plugins : PluginRegistry, optional
        Which table features there are; by default those installed.
    timezone : str, optional
        The zone of partition timestamps that name none; the session's unless given.
    route : "auto", "index" or "join"
        How constants and vectors reach the rows; see docs/spark.md.
    vector_bytes : int, optional
        How many bytes of deletion vectors the driver may hold.
    parallel_from : int, optional
        How many file actions the checkpoint must hold for a job of Spark to replay the log, instead of this process;
        what ``spark.delta_core.parallelPlanning.minActions`` specifies in the session unless given; else a job does so
        from 20,000,000 actions on if executors have 32 cores, with fewer cores from accordingly more actions on.
    allow_external : sequence of str or False, optional
        Prefixes of places outside the table's root that its log may name. Spark reads with credentials of its own, so
        that of object stores another bucket has to be named too. See docs/stores.md.

    Raises
    ------
    TableNotFoundError, VersionNotFoundError, UnsupportedFeatureError, LogError, CheckpointError
        As `open_snapshot` does.
    UnsupportedOperationError
        For an argument that the table's format does not have.
    InvalidArgumentError
        For a tag or branch of a Delta table, which has none.
    UnsupportedExpressionError
        A rule of the table can't be evaluated in this session.

    Notes
    -----
    Every column is nullable. Failed row checks and missing files fail the action that reads them. In
    classic Spark, an action raises this library's errors under their own types.
    """
    settings = _prepare(spark)
    zone = timezone or _zone(spark)

    def other() -> DataFrame | None:
        place = recognised(uri, storage_options, allow_external)
        if place is None:
            return None
        of_delta = {"commits": commits, "plugins": plugins, "timezone": timezone, "vector_bytes": vector_bytes}
        _check_arguments(
            place, {**of_delta, "parallel_from": parallel_from, "route": None if route == "auto" else route}
        )
        options = {"version": version, "timestamp": timestamp, "tag": tag, "branch": branch}
        return read_format(spark, place, options, columns=columns, metadata=metadata, predicate=predicate)

    if tag is not None or branch is not None:
        found = other()
        if found is None:
            raise InvalidArgumentError(
                f"Found tag or branch, which the table at {shown_uri(path_text(uri))} can't have."
            )
        return found
    try:
        if version is None and timestamp is None and commits is None and plugins is None:
            snapshot = open_latest(spark, os.fspath(uri), storage_options, zone, allow_external)
        else:
            snapshot = open_snapshot(
                uri,
                version,
                timestamp,
                storage_options=storage_options,
                commits=commits,
                plugins=plugins,
                timezone=zone,
                allow_external=allow_external,
            )
    except TableNotFoundError:
        found = other()
        if found is None:
            raise
        return found
    same = "" if commits is not None or plugins is not None else identity(snapshot, storage_options, allow_external)
    is_requested = version is not None or timestamp is not None
    columns = _shown_columns(snapshot, columns, settings)

    def returned(rows: DataFrame) -> DataFrame:
        return rows if is_requested else with_version(rows, snapshot, may_lack_classes=route == "join")

    if predicate is None:
        rows = frame(spark, snapshot.scan(columns, metadata), route, vector_bytes, parallel_from, same)
        return returned(with_declared_types(rows, snapshot.schema, settings))
    predicate = portable_text(spark, predicate)
    files = files_for(spark, snapshot, predicate, route)
    rows = frame(spark, snapshot.scan(None, metadata, files=files), route, vector_bytes, parallel_from, same)
    rows = with_declared_types(rows, snapshot.schema, settings).where(condition(snapshot, predicate))
    return returned(rows if columns is None else selected(rows, snapshot, columns, metadata))


def _shown_columns(snapshot: Any, columns: Sequence[str] | None, settings: SessionSettings) -> Any:
    """Return the columns that are read, as they are requested or as the session shows them; None for all."""
    return paths_without_void(snapshot.schema) if columns is None and settings.drops_void_columns else columns


def _check_arguments(place: FormatPlace, given: Mapping[str, Any]) -> None:
    unknown = [name for name, value in given.items() if value is not None]
    if unknown:
        raise UnsupportedOperationError(
            f"Found {', '.join(unknown)} for {place!r}: these arguments of read are for Delta tables. Leave them out."
        )


@raises_spark_errors
def read_changes(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    start_version: int | None = None,
    end_version: int | None = None,
    *,
    start_timestamp: str | datetime | None = None,
    end_timestamp: str | datetime | None = None,
    columns: Sequence[str] | None = None,
    allow_out_of_range: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    commits: Any = None,
    plugins: Any = None,
    timezone: str | None = None,
    route: Route = "auto",
    vector_bytes: int | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> DataFrame:
    """Return the rows that a range of versions inserted, deleted and updated.

    After the table's columns come ``_change_type``, ``_commit_version`` and ``_commit_timestamp``. Both ends are part
    of the range. The columns are those of the latest version; of a table with column mapping those of the end of the
    range, unless ``spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable`` is another mode.

    Raises
    ------
    UnsupportedOperationError
        If the table's features keep no changes. Further errors are those of `read` and of the operation ``changes``.
    """
    settings = _prepare(spark)
    table = DeltaTable(
        uri,
        storage_options=storage_options,
        commits=commits,
        plugins=plugins,
        timezone=timezone or _zone(spark),
        allow_external=allow_external,
    )
    state = table.snapshot().state
    is_mapped = state.column_map != ColumnMap.identity(state.schema)
    scan = table.operation("changes")(
        start_version,
        end_version,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        columns=columns,
        allow_out_of_range=allow_out_of_range or settings.allows_later_timestamps,
        latest_columns=not is_mapped or settings.changes_schema_mode != "endVersion",
        ignore_renames=settings.ignores_renames,
    )
    return with_declared_types(frame(spark, scan, route, vector_bytes), table.snapshot().schema, settings)


def _prepare(spark: Any) -> SessionSettings:
    private.check_version()
    if private.is_available(spark):
        convert_failures()
    return session_settings(spark)


def _zone(spark: Any) -> str:
    return str(spark.conf.get("spark.sql.session.timeZone"))
