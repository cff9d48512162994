"""Tables as sources of streaming queries: this process plans which files a batch has, and Spark reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.plan.private import check_stream, stream_relation
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.spark_errors import raises_spark_errors, with_condition
from delta_core.engines.spark.stream_failures import rows_or_failure
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
    SchemaMismatchError,
    StreamRestartError,
    StreamSchemaError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.operations.follow import FollowOptions, TableStream, first_position
from delta_core.operations.stream_schema import column_changes

__all__ = ["read_stream"]


@raises_spark_errors
def read_stream(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    start: int | Literal["latest"] | None = None,
    start_timestamp: str | datetime | None = None,
    max_files: int | None = 1000,
    max_bytes: int | None = None,
    skip_change_commits: bool = False,
    ignore_deletes: bool = False,
    ignore_changes: bool = False,
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
    """Return a streaming DataFrame of the rows that a table has, and of those that commits append to it.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    uri : str or path
        A local path or the URI of any file system that fsspec and Hadoop support.
    columns : sequence of str, optional
        Names, dotted ones reach into structs; all unless given.
    start : int or "latest", optional
        The first version whose commit is read; ``latest``: the next one. None: first all rows that the table has.
    start_timestamp : str or datetime, optional
        Instead: begin with the first version committed at or after a time.
    max_files, max_bytes : int, optional
        The most that a batch reads; a single file may have more bytes.
    skip_change_commits, ignore_deletes, ignore_changes : bool
        Leave out commits that delete or change rows; ignore commits that only delete; read the rows that other commits
        write again. A commit that deletes or changes rows ends the query otherwise.
    fail_on_data_loss : bool
        Whether commits that were cleaned up before they were read are an error; otherwise the query goes on after
        them.
    exclude_regex : str, optional
        Leave out files whose path, as the log has it, contains a match of this regular expression (RE2's syntax).
    schema_tracking_location : str or path, optional
        A folder below the query's checkpoint, in which the schemas of the stream are kept: the stream then reads each
        version with its own schema, from the start on. The query ends with `StreamRestartError` at each change, and
        goes on when it is started again.
    source_tracking_id : str, optional
        Distinguishes the schemas of two streams of one table in one query.
    allow_source_column_drop, allow_source_column_rename, allow_source_column_type_change : "always" or int, optional
        Go on although columns were dropped, renamed, or have a wider type: always, or at the schema of one version.
    storage_options, commits, plugins, timezone, allow_external : optional
        As for `read`.

    Raises
    ------
    InvalidArgumentError, VersionNotFoundError, StreamSchemaError
        As `DeltaTable.follow` does.
    LogError
        If stored schemas can't be read.
    UnsupportedOperationError
        On Spark Connect, and on untested versions of PySpark.

    Notes
    -----
    The starts matter to a query without a checkpoint. One with a checkpoint continues at the position in it, which has
    the JSON form of delta-spark's source. The schema is that of this call, or the stored one: a query ends after the
    last version that has it, with `StreamSchemaError`. Call `read_stream` again, and start the query with the same
    checkpoint, to go on with the new schema.
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
    with with_condition(TableNotFoundError, "DELTA_SCHEMA_NOT_SET"):
        snapshot = open_snapshot(
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
        skip_change_commits=skip_change_commits,
        ignore_deletes=ignore_deletes,
        ignore_changes=ignore_changes,
        fail_on_data_loss=fail_on_data_loss,
        exclude_regex=exclude_regex,
    )
    return stream_of(spark, snapshot, options, tracking)


def stream_of(spark: SparkSession, snapshot: Snapshot, options: FollowOptions, tracking: Tracking | None) -> DataFrame:
    """Return a streaming DataFrame of the rows of a table; arguments as `read_stream` makes them."""
    check_tracking(options, tracking)
    base = snapshot.latest()
    tracked = None if tracking is None else TrackedSchema(spark, tracking, base)
    definition = schema_version(tracked, base, first_position(base, options))
    number = -1 if tracked is None else tracked.number
    stored = options if number < 0 or definition is None else _at_version(options, base, definition.version)
    stream = TableStream(base, stored, definition)
    first = frame(spark, stream.scan_until(stream.position), "index")
    rows = with_declared_types(first, base.schema, session_settings(spark)).schema
    schema = as_declared(rows, declared_schema(stream.reader.schema, stream.reader.state.types))

    def open_source() -> Any:
        return _Source(spark, snapshot, options, stream.schema, schema, tracking, number).answer

    return stream_relation(spark, schema, open_source)


def _at_version(options: FollowOptions, base: Snapshot, version: int) -> FollowOptions:
    position = StreamPosition(base.metadata.id, version)
    return replace(options, start=None, start_timestamp=None, position=position)


class _Source(TrackedSource):
    """The source of one query. Spark calls it from one thread at a time."""

    def __init__(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        options: FollowOptions,
        schema: Any,
        spark_schema: StructType,
        tracking: Tracking | None,
        number: int,
    ) -> None:
        super().__init__(spark, tracking, number)
        self._snapshot = snapshot
        self._options = options
        self._schema = schema
        self._spark_schema = spark_schema
        self._stream: TableStream | None = None
        #: Whether the types of the first rows were compared with those of the stream.
        self._is_checked = False

    def _first(self, folder: str, *offsets: str) -> str:
        return start_of(self._snapshot.latest(), self._options, folder, offsets).to_json()

    def _known(self) -> Snapshot:
        return self._snapshot

    def _available(self) -> None:
        self._options = replace(self._options, available_now=True)
        self._stream = None

    def _latest(self, start: str, unlimited: str) -> str | None:
        stream, position = self._at(start)
        self._check_types(start)
        try:
            found = stream.next_position(position, unlimited=bool(unlimited))
        except StreamSchemaError as e:
            if self._tracked is not None:
                self._tracked.evolve(e, stream.reader, stream.changed_version)
            raise
        return None if found is None else found.to_json()

    def _rows(self, start: str, end: str) -> Any:
        self._check_types(start)
        self._check_void()
        return rows_or_failure(self._spark, self._spark_schema, lambda: self._batch(start, end))._jdf

    def _check_types(self, start: str) -> None:
        """Reject rows of columns that got a wider type since, if the session does not let streams read these.

        Raises
        ------
        StreamSchemaError
            The first batch has such rows.
        """
        setting = None if self._tracked is not None or self._is_checked else self._stops()
        self._is_checked = True
        if setting is None:
            return
        version = StreamPosition.parse(start or self._start).version
        latest = self._snapshot.latest()
        with suppress(VersionNotFoundError):  # its commits are gone: nothing is known of its types
            changes = column_changes(latest.at(min(version, latest.version)), latest)
            if changes.widened:
                name, old, new = changes.widened[0]
                raise StreamSchemaError(
                    f"Column {name} was of type {old.type} at version {version}, where the stream goes on, and is of "
                    f"type {new.type} now, which the setting {setting} does not let streams read. Pass "
                    "schema_tracking_location=, or begin again with another checkpoint.",
                    version=version,
                )

    def _stops(self) -> str | None:
        return session_settings(self._spark).stops_at_wider_types

    def _check_void(self) -> None:
        """Reject batches of a table with columns of type void, if the session has streams read rows without them.

        Raises
        ------
        SchemaMismatchError
            The stream has such a column.
        """
        setting = "streaming.createDataFrame.dropNullColumns"
        found = [f.name for f in self._spark_schema.fields if f.dataType.typeName() == "void"]
        if found and session_settings(self._spark).requests(setting):
            raise SchemaMismatchError(
                f"The stream has the column {found[0]} of type void, and the setting spark.databricks.delta.{setting} "
                "is true, with which its rows lack it. Remove the setting.",
                column=found[0],
            )

    def _batch(self, start: str, end: str) -> DataFrame:
        stop = StreamPosition.parse(end)
        stream, position = self._at(start, stop)
        stream.position = position
        rows = frame(self._spark, stream.scan_until(stop), "index")
        return with_declared_types(rows, stream.reader.schema, session_settings(self._spark))

    def _at(self, start: str, end: StreamPosition | None = None) -> tuple[TableStream, StreamPosition]:
        """Return the stream and a position; the stream is made for the first position that is requested."""
        position = StreamPosition.parse(start or self._start)
        definition = None
        if self._tracked is not None:
            base = self._snapshot.latest() if self._stream is None else self._stream.reader
            definition, position = self._tracked.known(base, position, end)
        if self._stream is None:
            options = replace(self._options, start=None, start_timestamp=None, position=position)
            stream = TableStream(self._snapshot, options, definition)
            if stream.schema != self._schema:
                raise self._other_schema(position)
            self._stream = stream
        return self._stream, position

    def _other_schema(self, position: StreamPosition) -> StreamSchemaError:
        kind = StreamSchemaError if self._tracked is None else StreamRestartError
        return kind(
            "The schema changed after read_stream was called, or the stream continues at a place with another one. "
            f"Call it again, and start the query with the same checkpoint, to continue at {position.to_json()}.",
            version=position.version,
            position=position,
        )
