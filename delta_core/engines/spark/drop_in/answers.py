"""The functions that the driver's Java calls for tables of the format delta, and for statements about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession, functions as F, types as T

from delta_core.engines.spark.catalog import table_path
from delta_core.engines.spark.drop_in.definitions import create, create_like
from delta_core.engines.spark.drop_in.options import (
    Options,
    check_time,
    format_frame,
    read_frame,
    save_format,
    stream_frame,
    write_arguments,
)
from delta_core.engines.spark.drop_in.paths import TablePath, table_path_of
from delta_core.engines.spark.drop_in.statements import change, parse_text, place_of, run_text
from delta_core.engines.spark.drop_in.writes import save, save_batch
from delta_core.engines.spark.failures import described
from delta_core.engines.spark.latest import latest_rows, version_rows
from delta_core.engines.spark.plan.private import callback, local_place
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.snapshots import open_latest
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.types import declared_schema
from delta_core.engines.spark.void_columns import without_void_columns
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.operations.write import QueryBatch
from delta_core.table.delta_table import DeltaTable

__all__ = ["Answers"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MODES = ("append", "complete")
_CREATING = ("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect")


class Answers:
    """Answers the calls of one driver.

    Parameters
    ----------
    spark : SparkSession
        The first session; others are found by the object of Java that a call contains.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def answer(self, request: Any) -> Any:
        """Return what a call requests: its kind, then its arguments."""
        kind, *arguments = list(request)
        return getattr(self, f"_{kind}")(*arguments)

    def _session(self, session: Any) -> Any:
        same = session.equals(self._spark._jsparkSession)
        return self._spark if same else SparkSession(self._spark.sparkContext, session)

    def _reject(self, what: str) -> None:
        raise UnsupportedOperationError(
            f"Found {what}, for the format delta, which delta_core.spark.configure does not offer. Use "
            "delta_core.spark.sql, delta_core.spark.DeltaTable or delta_core.spark.write."
        )

    def _reject_schema(self) -> None:
        raise UnsupportedOperationError(
            "Found a schema for a stream, which has that of its table. Leave schema(...) out."
        )

    def _reject_view(self, what: str) -> None:
        raise UnsupportedOperationError(
            f"DELETE, UPDATE, MERGE and INSERT can't change this view, which {what}. Change its table; a "
            "temporary view of all rows of a table, with columns under their own names, can be changed."
        )

    def _changes(self, session: Any, kind: str, name: str, bounds: Any) -> Any:
        """Return the rows of table_changes: of a name or a path, between versions or times."""
        spark = self._session(session)
        options = {"path": name if kind == "table_changes_by_path" else table_path(spark, name)}
        options["readchangefeed"] = "true"
        for end, (is_version, text) in zip(("starting", "ending"), bounds, strict=False):
            options[f"{end}{'version' if is_version else 'timestamp'}"] = str(text)
        return read_frame(spark, Options(options))._jdf

    def _partitions(self, session: Any, target: Any, values: Any) -> Any:
        """Return the partitions that have rows, of SHOW PARTITIONS."""
        spark, name = self._session(session), [str(part) for part in target]
        place = place_of(spark, name)
        columns = DeltaTable(place).metadata().partition_columns
        if not columns:
            raise UnsupportedOperationError(f"SHOW PARTITIONS: the table at {place} is not partitioned.")
        rows = latest_rows(spark, place)
        for column, value in dict(values).items():
            if str(column).lower() not in (c.lower() for c in columns):
                raise ColumnNotFoundError(
                    f"Partition column {column} is not one of {', '.join(columns)}.", column=column
                )
            rows = rows.where(F.col(quote_name(str(column))) == F.lit(str(value)))
        return rows.select(*map(quote_name, columns)).distinct()._jdf

    def _failure(self, text: str) -> str:
        return described(str(text))

    # --- paths ---

    def _read(self, session: Any, options: Any) -> Any:
        return read_frame(self._session(session), Options.of(options))._jdf

    def _format(self, name: str, session: Any, options: Any) -> Any:
        return format_frame(self._session(session), str(name), Options.of(options))._jdf

    def _save(self, name: str, session: Any, options: Any, mode: str, rows: Any) -> None:
        save_format(DataFrame(rows, self._session(session)), str(name), Options.of(options), str(mode))

    def _write(self, session: Any, options: Any, mode: str, rows: Any) -> None:
        save(DataFrame(rows, self._session(session)), Options.of(options), mode)

    def _stream(self, session: Any, options: Any) -> Any:
        return stream_frame(self._session(session), Options.of(options))._jdf

    def _sink(self, options: Any, mode: str) -> None:
        given = Options.of(options)
        given.check_path()
        write_arguments(without_query(given))
        if mode.lower() not in _MODES:
            raise InvalidArgumentError(
                f"Found output mode {mode}, expected append or complete. To merge the changed rows of an aggregation, "
                "call DeltaTable.merge in a function of foreachBatch."
            )

    def _batch(
        self, session: Any, options: Any, partitions: Any, mode: str, query: str, number: int, rows: Any
    ) -> None:
        frame_ = DataFrame(rows, self._session(session))
        given = without_query(Options.of(options))
        save_batch(frame_, given, list(map(str, partitions)), QueryBatch(str(query), int(number), mode.lower()))

    # --- names ---

    def _exists(self, path: str) -> bool:
        return bool(DeltaTable.is_deltatable(path))

    def _table(self, session: Any, place: str, version: Any, micros: Any) -> Any:
        spark = self._session(session)
        path = table_path_of(spark, local_place(place))
        path.check_travel(version is not None or micros is not None)
        uri, travels = path.place, version is not None or micros is not None
        session_settings(spark)
        zone = str(spark.conf.get("spark.sql.session.timeZone"))
        if path.version is not None or path.timestamp is not None:
            snapshot, travels = open_snapshot(uri, path.version, path.timestamp, timezone=zone), True
        elif not travels:
            snapshot = open_latest(spark, uri, None, zone)
        elif version is not None:
            number = Options({"versionasof": str(version)}).number("versionAsOf")
            snapshot = open_snapshot(uri, number, timezone=zone)
        else:
            check_time(spark, uri, int(micros))
            snapshot = open_snapshot(uri, timestamp=_EPOCH + timedelta(microseconds=int(micros)), timezone=zone)
        return callback(self._spark, _Table(spark, snapshot, path, not travels).answer)

    # --- statements ---

    def _parse(self, session: Any, text: str) -> str | None:
        found = parse_text(self._session(session), text)
        return None if found is None else found.json()

    def _run(self, session: Any, kind: str, what: Any, target: Any, query: Any, saves: bool) -> Any:
        spark = self._session(session)
        if kind == "text":
            return raises_spark_errors(run_text, is_method=True)(spark, what)._jdf
        if str(what.getClass().getSimpleName()).startswith("CreateTableLike"):
            return create_like(spark, what, [None if part is None else str(part) for part in target], saves)
        name = [str(part) for part in target]
        if str(what.getClass().getSimpleName()) in _CREATING:
            return create(spark, what, name, query, saves)
        found = change(spark, what, name, query)
        return None if found is None else found._jdf


def without_query(options: Options) -> Options:
    """Return options of a stream's writer without those that are Spark's own."""
    own = ("checkpointlocation", "queryname")
    return Options({name: text for name, text in options.texts.items() if name not in own})


class _Table:
    """A table that a query names, at its latest version or at one that the query names too."""

    def __init__(self, spark: Any, snapshot: Snapshot, path: TablePath, is_latest: bool) -> None:
        self._spark, self._snapshot, self._path, self._is_latest = spark, snapshot, path, is_latest

    def answer(self, request: Any) -> Any:
        """Return a fact as escaped texts; or, for options, the rows."""
        if isinstance(request, str):
            facts: dict[str, Callable[[], list[str]]] = {
                "schema": lambda: [self._schema().json()],
                "partitions": lambda: list(self._snapshot.state.partition_columns),
                "properties": self._properties,
            }
            return "&".join(quote(text, safe="") for text in facts[request]())
        return self._rows(Options.of(request))

    def _schema(self) -> T.StructType:
        schema = self._snapshot.schema
        if session_settings(self._spark).drops_void_columns:
            schema = without_void_columns(schema)
        return declared_schema(schema, self._snapshot.state.types)

    def _properties(self) -> list[str]:
        metadata, protocol = self._snapshot.metadata, self._snapshot.protocol
        found = {
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
            **metadata.configuration,
        }
        if metadata.description is not None:
            found["comment"] = metadata.description
        return [text for pair in found.items() for text in pair]

    def _rows(self, options: Options) -> Any:
        travels = options.text("versionAsOf") is not None or options.text("timestampAsOf") is not None
        feed = any(options.text(n) is not None for n in ("readChangeFeed", "readChangeData"))
        if travels or feed:
            # a version that Spark did not look up, or changes, which have more columns than the relation
            return read_frame(self._spark, Options({**options.texts, "path": self._path.place}))._jdf
        options.check(frozenset({"path"}), "Use the arguments of delta_core.spark.read.")
        if self._is_latest:
            return self._path.chosen(latest_rows(self._spark, self._path.place, opened=self._snapshot))._jdf
        return self._path.chosen(version_rows(self._spark, self._snapshot))._jdf
