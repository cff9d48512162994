"""Tables as sources of streaming queries: this process plans which files a batch has, and Spark reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from delta_core.errors import StreamSchemaError
from delta_core.log.position import StreamPosition
from delta_core.operations.follow import FollowOptions, TableStream
from delta_core.snapshot import Snapshot, open_snapshot
from delta_core.spark.failures import convert_failures
from delta_core.spark.plan.frame import frame
from delta_core.spark.plan.private import check_stream, stream_relation

__all__ = ["read_stream"]


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
        What a batch reads at most; a single file may have more bytes.
    skip_change_commits, ignore_deletes, ignore_changes : bool
        Leave out commits that delete or change rows; ignore commits that only delete; read the rows that other commits
        write again. A commit that deletes or changes rows ends the query otherwise.
    fail_on_data_loss : bool
        Whether commits that were cleaned up before they were read are an error; otherwise the query goes on behind
        them.
    exclude_regex : str, optional
        Leave out files whose path, as the log has it, contains a match of this regular expression (RE2's syntax).
    storage_options, commits, plugins, timezone, allow_external : optional
        As for `read`.

    Raises
    ------
    InvalidArgumentError, VersionNotFoundError, StreamSchemaError
        As `DeltaTable.follow` does.
    UnsupportedOperationError
        On Spark Connect, and on untested versions of PySpark.

    Notes
    -----
    The starts matter to a query without a checkpoint. One with a checkpoint continues at the position in it, which has
    the JSON form of delta-spark's source. The schema is that of this call: a query ends behind the last version that
    has it, with `StreamSchemaError`. Call `read_stream` again, and start the query with the same checkpoint, to go on
    with the new schema.
    """
    check_stream(spark)
    convert_failures()
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
    stream = TableStream(snapshot, options)
    schema = frame(spark, stream.scan_until(stream.position), "index").schema
    return stream_relation(spark, schema, lambda: _Source(spark, snapshot, options, stream.schema).answer)


class _Source:
    """The source of one query. Spark calls it from one thread at a time."""

    def __init__(self, spark: SparkSession, snapshot: Snapshot, options: FollowOptions, schema: Any) -> None:
        self._spark = spark
        self._snapshot = snapshot
        self._options = options
        self._schema = schema
        self._start = ""
        self._stream: TableStream | None = None

    def answer(self, request: str) -> Any:
        """Return what the driver requests: a position as JSON, or the rows between two."""
        kind, *arguments = request.split("\n")
        return getattr(self, f"_{kind}")(*arguments)

    def _first(self) -> str:
        return TableStream(self._snapshot, self._options).position.to_json()

    def _begin(self, start: str) -> None:
        self._start = start

    def _available(self) -> None:
        self._options = replace(self._options, available_now=True)
        self._stream = None

    def _latest(self, start: str, unlimited: str) -> str | None:
        stream, position = self._at(start)
        found = stream.next_position(position, unlimited=bool(unlimited))
        return None if found is None else found.to_json()

    def _rows(self, start: str, end: str) -> Any:
        stream, position = self._at(start)
        stream.position = position
        return frame(self._spark, stream.scan_until(StreamPosition.parse(end)), "index")._jdf

    def _at(self, start: str) -> tuple[TableStream, StreamPosition]:
        """Return the stream and a position; the stream is made for the first position that is requested."""
        position = StreamPosition.parse(start or self._start)
        if self._stream is None:
            options = replace(self._options, start=None, start_timestamp=None, position=position)
            stream = TableStream(self._snapshot, options)
            if stream.schema != self._schema:
                raise StreamSchemaError(
                    "The table's schema changed after read_stream was called. Call it again, and start the query with "
                    f"the same checkpoint, to continue at {position.to_json()}.",
                    version=position.version,
                    position=position,
                )
            self._stream = stream
        return self._stream, position
