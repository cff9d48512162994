"""The change data feeds of tables as sources of streaming queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_core.errors import InvalidArgumentError, StreamError, StreamSchemaError
from delta_core.log.position import StreamPosition
from delta_core.log.timestamps import parse_ms, parse_version
from delta_core.operations.follow import check_position, why_different
from delta_core.protocol.schema_history import why_unreadable
from delta_core.snapshot import Snapshot
from delta_core.spark.failures import convert_failures
from delta_core.spark.plan.frame import frame
from delta_core.spark.plan.private import check_stream, stream_relation
from delta_core.table import DeltaTable

__all__ = ["read_changes_stream"]


class _Options(Struct, frozen=True):
    columns: Sequence[str] | None
    start: int | Literal["latest"] | None
    start_timestamp: str | datetime | None
    max_files: int | None
    max_bytes: int | None


def read_changes_stream(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    start: int | Literal["latest"] | None = None,
    start_timestamp: str | datetime | None = None,
    max_files: int | None = 1000,
    max_bytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    commits: Any = None,
    plugins: Any = None,
    timezone: str | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that a table has, and of those that commits insert, delete and update.

    Behind the table's columns are those of `read_changes`. The rows that the table has come as inserted by its version.

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
        What a batch reads at most. The changes of a version are never divided, nor are the rows that the table has.
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
    convert_failures()
    table = DeltaTable(
        uri,
        storage_options=storage_options,
        commits=commits,
        plugins=plugins,
        timezone=timezone or str(spark.conf.get("spark.sql.session.timeZone")),
        allow_external=allow_external,
    )
    options = _Options(columns, start, start_timestamp, max_files, max_bytes)
    snapshot = table.snapshot()
    _first(snapshot, options)
    # the names and types of the columns, whatever the last version changed
    schema = _changes(spark, table, snapshot.version, snapshot.version, columns).schema
    return stream_relation(spark, schema, lambda: _Source(spark, table, options, _types(schema)).answer)


def _changes(spark: SparkSession, table: DeltaTable, first: int, last: int, columns: Sequence[str] | None) -> DataFrame:
    return frame(spark, table.operation("changes")(first, last, columns=columns), "index")


def _types(schema: Any) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in schema]


def _first(base: Snapshot, options: _Options) -> StreamPosition:
    """Return where a query without a checkpoint begins."""
    if options.start is not None and options.start_timestamp is not None:
        raise InvalidArgumentError("Found both start and start_timestamp, expected one of the two.")
    if options.start_timestamp is not None:
        version = base.version_since(parse_ms(options.start_timestamp, base.timezone))
    elif options.start is None:
        return StreamPosition(base.metadata.id, base.version, is_initial_snapshot=True)
    else:
        version = base.version + 1 if options.start == "latest" else parse_version(options.start, "start")
    return check_position(StreamPosition(base.metadata.id, version), base)


class _Source:
    """The source of one query. Spark calls it from one thread at a time.

    The table that it was made with stays at the last version with the schema of the query.
    """

    def __init__(self, spark: SparkSession, table: DeltaTable, options: _Options, types: list[tuple[str, str]]) -> None:
        self._spark = spark
        self._options = options
        self._table = table
        self._schema_of = self._newest = table.snapshot()
        self._types = types
        self._start = ""
        self._end: int | None = None
        self._changed: int | None = None

    def answer(self, request: str) -> Any:
        """Return what the driver requests: a position as JSON, or the rows between two."""
        kind, *arguments = request.split("\n")
        return getattr(self, f"_{kind}")(*arguments)

    def _first(self) -> str:
        return _first(self._schema_of, self._options).to_json()

    def _begin(self, start: str) -> None:
        self._start = start

    def _available(self) -> None:
        self._newest = self._newest.update()
        self._end = self._newest.version

    def _latest(self, start: str, unlimited: str) -> str | None:
        position = self._at(start)
        if position.is_initial_snapshot:
            return StreamPosition(position.table_id, position.version + 1).to_json()
        self._update()
        latest = self._table.version()
        last = latest if self._end is None else min(self._end, latest)
        if position.version > last:
            if self._changed is not None and (self._end is None or self._changed <= self._end):
                raise self._schema_error(self._changed, position)
            return None
        options = self._options
        most = (None, None) if unlimited else (options.max_files, options.max_bytes)
        step = self._table.changes(position.version, last, max_files=most[0], max_bytes=most[1])
        return step.position.to_json()

    def _rows(self, start: str, end: str) -> Any:
        position, stop = self._at(start), StreamPosition.parse(end)
        if self._table.version() < stop.version - 1:
            self._update()
        if position.is_initial_snapshot:
            rows, last = self._initial(position.version), position.version
        else:
            last = stop.version - 1
            rows = _changes(self._spark, self._table, position.version, last, self._options.columns)
        return self._checked(rows, last)._jdf

    def _checked(self, rows: DataFrame, last: int) -> DataFrame:
        """Return rows with the schema of a version, or ones that fail if it is not the query's.

        Spark takes the columns by their place. It also requests the last recorded batch when a query starts again, and
        does not execute it: so the rows fail, not the request.
        """
        known = self._schema_of
        why = None
        if last < known.version and known.definition_changes(last + 1):
            why = why_unreadable(known.at(last).metadata, known.metadata, False, "")
        if why is None and _types(rows.schema) != self._types:
            why = f"found the columns {_types(rows.schema)}, expected {self._types}"
        if why is None:
            return rows
        message = F.lit(
            f"StreamSchemaError: The changes of {known.uri} up to version {last} have another schema than version "
            f"{known.version}, which the query has: {why}. Begin again behind the change of the schema, with start= "
            "and another checkpoint; DeltaTable.changes reads the earlier versions."
        )
        failing = self._spark.range(1).where(F.raise_error(message).isNull())
        return failing.select(*(F.lit(None).cast(type_).alias(name) for name, type_ in self._types))

    def _initial(self, version: int) -> DataFrame:
        snapshot = self._table.snapshot().at(version)
        (commit,) = snapshot.commits(version, version)
        rows = frame(self._spark, snapshot.scan(self._options.columns), "index")
        return rows.select(
            *rows.columns,
            F.lit("insert").alias("_change_type"),
            F.lit(version).cast("bigint").alias("_commit_version"),
            F.timestamp_millis(F.lit(commit.timestamp_ms)).alias("_commit_timestamp"),
        )

    def _at(self, start: str) -> StreamPosition:
        """Return a position at which this stream can continue."""
        position = StreamPosition.parse(start or self._start)
        if position.version > self._table.version():
            self._update()
        self._newest = self._newest.update()
        check_position(position, self._newest)
        if position.index != -1:
            raise InvalidArgumentError(
                f"The position {position.to_json()} is within the files of a version: it belongs to a stream of rows, "
                "and the changes of a version are never divided. Begin again with another checkpoint.",
                version=position.version,
            )
        return position

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
