"""The change data feeds of tables as sources of streaming queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.plan.private import check_stream, stream_relation
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.stream_failures import no_rows, rows_or_failure
from delta_core.engines.spark.stream_start import start_of
from delta_core.engines.spark.stream_tracking import (
    Allowed,
    TrackedSchema,
    TrackedSource,
    Tracking,
    check_tracking,
    schema_version,
)
from delta_core.engines.spark.types import as_declared, declared_schema
from delta_core.errors import (
    InvalidArgumentError,
    StreamError,
    StreamRestartError,
    StreamSchemaError,
    VersionNotFoundError,
)
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.protocol.schema_history import why_unreadable
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.follow import FollowOptions, TableStream, check_options, check_position, first_position
from delta_core.operations.stream_schema import VersionDefinition, why_different
from delta_core.table.delta_table import DeltaTable

__all__ = ["read_changes_stream"]


@raises_spark_errors
def read_changes_stream(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    start: int | Literal["latest"] | None = None,
    start_timestamp: str | datetime | None = None,
    max_files: int | None = 1000,
    max_bytes: int | None = None,
    fail_on_data_loss: bool = True,
    exclude_regex: str | None = None,
    schema_tracking_location: str | os.PathLike[str] | None = None,
    source_tracking_id: str | None = None,
    allow_source_column_drop: Allowed = None,
    allow_source_column_rename: Allowed = None,
    allow_source_column_type_change: Allowed = None,
    storage_options: Mapping[str, Any] | None = None,
    commits: Any = None,
    plugins: Any = None,
    timezone: str | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that a table has, and of those that commits insert, delete and update.

    After the table's columns come those of `read_changes`. The rows that the table has come as inserted by its version.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    uri : str or path
        A local path or the URI of any file system that fsspec and Hadoop support.
    columns : sequence of str, optional
        Columns of the table; all unless given.
    start : int or "latest", optional
        The first version whose changes are read; ``latest``: the next one. None: first all rows that the table has.
    start_timestamp : str or datetime, optional
        Instead: begin with the first version committed at or after a time.
    max_files, max_bytes : int, optional
        The most that a batch reads. The changes of a version are never divided.
    fail_on_data_loss : bool
        Whether commits that were cleaned up before they were read are an error; otherwise the query goes on after
        them.
    exclude_regex : str, optional
        Rows and changes of files whose path in the log contains a match are left out; RE2's syntax.
    schema_tracking_location, source_tracking_id : optional
        As for `read_stream`.
    allow_source_column_drop, allow_source_column_rename, allow_source_column_type_change : optional
        As for `read_stream`.
    storage_options, commits, plugins, timezone, allow_external : optional
        As for `read`.

    Raises
    ------
    UnsupportedOperationError
        If the table's features keep no changes; on Spark Connect, and on untested versions of PySpark.
    InvalidArgumentError
        For two starts, or one after the next version.

    Notes
    -----
    The checkpoint and changes of the schema are as for `read_stream`.
    """
    check_stream(spark)
    session_settings(spark)
    convert_failures()
    tracking = Tracking.of(
        schema_tracking_location,
        source_tracking_id,
        allow_source_column_drop,
        allow_source_column_rename,
        allow_source_column_type_change,
    )
    table = DeltaTable(
        uri,
        storage_options=storage_options,
        commits=commits,
        plugins=plugins,
        timezone=timezone or str(spark.conf.get("spark.sql.session.timeZone")),
        allow_external=allow_external,
    )
    options = FollowOptions(
        columns=columns,
        start=start,
        start_timestamp=start_timestamp,
        max_files=max_files,
        max_bytes=max_bytes,
        fail_on_data_loss=fail_on_data_loss,
        exclude_regex=exclude_regex,
    )
    return changes_stream_of(spark, table, options, tracking)


def changes_stream_of(
    spark: SparkSession, table: DeltaTable, options: FollowOptions, tracking: Tracking | None
) -> DataFrame:
    """Return a streaming DataFrame of the changes of a table; arguments as `read_changes_stream` makes them."""
    check_options(options)
    check_tracking(options, tracking)
    base = table.snapshot()
    first = first_position(base, options)
    tracked = None if tracking is None else TrackedSchema(spark, tracking, base)
    definition = schema_version(tracked, base, first)
    if definition is not None:
        reader = _held(base, options, StreamPosition(base.metadata.id, definition.version), definition).reader
        table.adopt(reader)
    # the names and types of the columns, whatever the last version changed
    schema = _schema(spark, table, options)
    number = -1 if tracked is None else tracked.number

    def open_source() -> Any:
        return _Source(spark, copy(table), options, schema, tracking, number).answer

    return stream_relation(spark, schema, open_source)


def _held(
    base: Snapshot, options: FollowOptions, position: StreamPosition, definition: VersionDefinition
) -> TableStream:
    """Return the stream of the rows with a schema: it has the last version with it, and the next one."""
    return TableStream(base, replace(options, start=None, start_timestamp=None, position=position), definition)


def _schema(spark: SparkSession, table: DeltaTable, options: FollowOptions) -> StructType:
    rows = _changes(spark, table, table.version(), table.version(), options).schema
    snapshot = table.snapshot()
    return as_declared(rows, declared_schema(snapshot.schema, snapshot.state.types))


def _changes(spark: SparkSession, table: DeltaTable, first: int, last: int, options: FollowOptions) -> DataFrame:
    changes = table.operation("changes")
    found = changes(first, last, columns=options.columns, exclude_regex=options.exclude_regex)
    return with_declared_types(frame(spark, found, "index"), table.snapshot().schema, session_settings(spark))


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in schema]


class _Source(TrackedSource):
    """The source of one query. Spark calls it from one thread at a time.

    The table that it was made with stays at the last version with the schema of the query.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: DeltaTable,
        options: FollowOptions,
        schema: StructType,
        tracking: Tracking | None,
        number: int,
    ) -> None:
        super().__init__(spark, tracking, number)
        self._options = options
        self._table = table
        self._schema_of = self._newest = table.snapshot()
        self._schema = schema
        self._is_held = False
        #: The files that the table has when the query begins, as long as they are read.
        self._initial_stream: TableStream | None = None
        self._end: int | None = None
        self._changed: int | None = None

    def _first(self, folder: str, *offsets: str) -> str:
        return start_of(self._newest, self._options, folder, offsets).to_json()

    def _known(self) -> Snapshot:
        return self._newest

    def _available(self) -> None:
        self._newest = self._newest.update()
        self._end = self._newest.version

    def _latest(self, start: str, unlimited: str) -> str | None:
        position = self._at(start)
        if position.is_initial_snapshot:
            found = self._initial_files(position).next_position(position, unlimited=bool(unlimited))
            return None if found is None else found.to_json()
        self._initial_stream = None
        self._update()
        latest = self._table.version()
        last = latest if self._end is None else min(self._end, latest)
        if position.version > last:
            if self._changed is not None and (self._end is None or self._changed <= self._end):
                error = self._schema_error(self._changed, position)
                if self._tracked is not None:
                    self._tracked.evolve(error, self._table.snapshot(), self._changed)
                raise error
            return None
        options = self._options
        most = (None, None) if unlimited else (options.max_files, options.max_bytes)
        try:
            step = self._table.changes(position.version, last, max_files=most[0], max_bytes=most[1])
        except VersionNotFoundError as e:
            return self._behind_loss(position, e).to_json()
        return step.position.to_json()

    def _behind_loss(self, position: StreamPosition, error: VersionNotFoundError) -> StreamPosition:
        """Return the first version that exists after commits that were cleaned up, if that is allowed."""
        if self._options.fail_on_data_loss:
            raise error
        try:
            list(self._table.snapshot().commits(position.version, position.version))
        except VersionNotFoundError as e:
            first = e.facts.get("first")
            if first is None:
                raise
            return StreamPosition(position.table_id, int(first))
        raise error

    def _rows(self, start: str, end: str) -> Any:
        return rows_or_failure(self._spark, self._schema, lambda: self._batch(start, StreamPosition.parse(end)))._jdf

    def _batch(self, start: str, stop: StreamPosition) -> DataFrame:
        position = self._at(start, stop)
        if position.is_initial_snapshot:
            return self._checked(self._initial(position, stop), position.version)
        if stop.version <= position.version:  # a batch of delta-spark, at a change of the schema
            return no_rows(self._spark, self._schema)
        if self._table.version() < stop.version - 1:
            self._update()
        try:
            return self._between(position.version, stop.version - 1)
        except VersionNotFoundError as e:
            later = self._behind_loss(position, e).version
            return (
                no_rows(self._spark, self._schema) if later >= stop.version else self._between(later, stop.version - 1)
            )

    def _between(self, first: int, last: int) -> DataFrame:
        return self._checked(_changes(self._spark, self._table, first, last, self._options), last)

    def _checked(self, rows: DataFrame, last: int) -> DataFrame:
        """Return rows with the schema of a version if it is the query's: Spark takes the columns by their place.

        Raises
        ------
        StreamSchemaError
            If it is another one.
        """
        known = self._schema_of
        why = None
        if last < known.version and known.definition_changes(last + 1):
            why = why_unreadable(known.at(last).metadata, known.metadata, False, "")
        found = _types(rows.schema)
        if why is None and found != _types(self._schema):
            why = f"found the columns {found}, expected {_types(self._schema)}"
        if why is None:
            return rows
        raise StreamSchemaError(
            f"The changes of {shown_uri(known.uri)} up to version {last} have another schema than version "
            f"{known.version}, which the query has: {why}. Begin again after the change of the schema, with start= "
            "and another checkpoint; DeltaTable.changes reads the earlier versions.",
            version=last,
        )

    def _initial_files(self, position: StreamPosition) -> TableStream:
        """Return the stream of the files that the table has at the version of a position."""
        if self._initial_stream is None:
            snapshot = self._table.snapshot().at(position.version)
            options = FollowOptions(
                columns=self._options.columns,
                position=position,
                stop_at=position.version,
                max_files=self._options.max_files,
                max_bytes=self._options.max_bytes,
                exclude_regex=self._options.exclude_regex,
            )
            self._initial_stream = TableStream(snapshot, options)
        self._initial_stream.position = position
        return self._initial_stream

    def _initial(self, position: StreamPosition, stop: StreamPosition) -> DataFrame:
        version = position.version
        (commit,) = self._table.snapshot().commits(version, version)
        rows = frame(self._spark, self._initial_files(position).scan_until(stop), "index")
        rows = with_declared_types(rows, self._table.snapshot().schema, session_settings(self._spark))
        return rows.select(
            *rows.columns,
            F.lit("insert").alias("_change_type"),
            F.lit(version).cast("bigint").alias("_commit_version"),
            F.timestamp_millis(F.lit(commit.timestamp_ms)).alias("_commit_timestamp"),
        )

    def _at(self, start: str, end: StreamPosition | None = None) -> StreamPosition:
        """Return a position at which this stream can continue."""
        position = StreamPosition.parse(start or self._start)
        self._newest = self._newest.update()
        if self._tracked is not None:
            definition, position = self._tracked.known(self._newest, position, end)
            self._hold(definition, position)
        if position.version > self._table.version():
            self._update()
        check_position(position, self._newest)
        if position.index != -1 and not position.is_initial_snapshot:
            raise InvalidArgumentError(
                f"The position {position.to_json()} is within the files of a version: it belongs to a stream of rows, "
                "and the changes of a version are never divided. Begin again with another checkpoint.",
                version=position.version,
            )
        return position

    def _hold(self, definition: VersionDefinition, position: StreamPosition) -> None:
        """Move to the last version with the schema that the source has."""
        if self._is_held:
            return
        stream = _held(self._newest, self._options, position, definition)
        self._table.adopt(stream.reader)
        self._schema_of, self._changed = stream.reader, stream.changed_version
        if _types(_schema(self._spark, self._table, self._options)) != _types(self._schema):
            raise StreamRestartError(
                "The schema changed after read_changes_stream was called, or the stream continues at a place with "
                "another one. Call it again, and start the query with the same checkpoint, to continue at "
                f"{position.to_json()}.",
                version=position.version,
                position=position,
            )
        self._is_held = True

    def _update(self) -> None:
        """Take the commits that are new, up to one that changes the schema."""
        known = self._table.snapshot()
        latest = known.update()
        if latest.metadata.id != known.metadata.id:
            raise StreamError(
                f"The table at {known.uri} was dropped and made again: its id is {latest.metadata.id}, and that of the "
                f"table that was read is {known.metadata.id}. Begin a stream of the new table, with a new checkpoint."
            )
        if latest.version > known.version and self._changed is None:
            changes = latest.definition_changes(known.version + 1)
            self._changed = next((v for v in changes if why_different(known, known.at(v)) is not None), None)
            self._table.adopt(latest if self._changed is None else known.at(self._changed - 1))

    def _schema_error(self, version: int, position: StreamPosition) -> StreamSchemaError:
        known = self._table.snapshot()
        return StreamSchemaError(
            f"Version {version} of {known.uri} changes the schema: {why_different(known, known.at(version))}. All "
            "changes of earlier versions were read. Call read_changes_stream again, and start the query with the same "
            f"checkpoint, to continue at {position.to_json()} with the new schema.",
            version=version,
            position=position,
        )
