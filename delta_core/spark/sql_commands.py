"""Statements about a whole table, which Spark's own grammar lacks: OPTIMIZE, VACUUM, RESTORE and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from delta_core import interop
from delta_core.errors import UnsupportedOperationError
from delta_core.spark.sql_text import Reader, TablePlace
from delta_core.spark.table import SparkTable

__all__ = ["Command", "empty", "target_table", "parse_command"]

#: Runs a statement, with the arguments of `SparkTable` for the table.
Command: TypeAlias = Callable[[SparkSession, Mapping[str, Any]], DataFrame]


def parse_command(reader: Reader) -> Command | None:
    """Return what runs a statement, None for statements of other kinds.

    Raises
    ------
    InvalidArgumentError
        The statement is not complete, or goes on after its end.
    """
    for words, parse in _STATEMENTS:
        if reader.take(*words):
            found = parse(reader)
            if found is not None:
                reader.end()
            return found
    return None


def target_table(spark: SparkSession, table: TablePlace | str, options: Mapping[str, Any]) -> SparkTable:
    """Return a table that a statement changes or describes.

    Raises
    ------
    UnsupportedOperationError
        The statement names an older version of it.
    TableNotFoundError
        There is no such Delta table.
    """
    if isinstance(table, str):
        return SparkTable.forName(spark, table, **options)
    if table.version is not None or table.timestamp is not None:
        raise UnsupportedOperationError(
            "An older version of a table can't be changed or described. Leave VERSION or TIMESTAMP AS OF out.",
            path=table.uri,
        )
    return SparkTable(spark, table.uri, **options)


def empty(spark: SparkSession) -> DataFrame:
    """Return what statements without a result return."""
    return spark.createDataFrame([], T.StructType([]))


# --- files ---------------------------------------------------------------------------------


def _optimize(reader: Reader) -> Command:
    reader.take("TABLE")
    table, is_full = reader.table(), reader.take("FULL")
    where = reader.until("ZORDER", "BY") if reader.take("WHERE") else None
    columns = reader.names() if reader.take("ZORDER", "BY") else []

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        optimizer = target_table(spark, table, options).optimize()
        if where is not None:
            optimizer = optimizer.where(where)
        if is_full:
            if columns:
                raise UnsupportedOperationError("OPTIMIZE takes FULL or ZORDER BY, not both.", operation="OPTIMIZE")
            optimizer = optimizer.full()
        return optimizer.executeZOrderBy(*columns) if columns else optimizer.executeCompaction()

    return run


def _reorg(reader: Reader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    where = reader.until("APPLY", "(") if reader.take("WHERE") else None
    reader.expect("APPLY", "(", "PURGE", ")")
    return lambda spark, options: target_table(spark, table, options).purge(where)


def _vacuum(reader: Reader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    is_lite = reader.take("LITE")
    if not is_lite:
        reader.take("FULL")
    hours = None
    if reader.take("RETAIN"):
        hours = reader.number()
        reader.expect("HOURS")
    is_dry = reader.take("DRY", "RUN")

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        opened = target_table(spark, table, options)
        found = opened.vacuum_files(hours, dry_run=is_dry, full=not is_lite)
        snapshot = opened.table.snapshot()
        root = interop.root_uri(snapshot).rstrip("/")
        rows = [(f"{root}/{path}",) for path in found] if is_dry else [(root,)]
        return spark.createDataFrame(rows, "path string")

    return run


def _restore(reader: Reader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    if isinstance(table, TablePlace) and (table.version is not None or table.timestamp is not None):
        to: int | str | None = table.version if table.version is not None else table.timestamp  # without TO
        table = TablePlace(table.uri)
    else:
        to = _point(reader)

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        opened = target_table(spark, table, options)
        return opened.restoreToVersion(to) if isinstance(to, int) else opened.restoreToTimestamp(str(to))

    return run


def _point(reader: Reader) -> int | str:
    reader.take("TO")
    reader.take("FOR")
    if any(reader.take(word, "AS", "OF") for word in ("VERSION", "SYSTEM_VERSION")):
        found = reader.number()
        if found != int(found):
            raise reader.unexpected("a version before it")
        return int(found)
    if any(reader.take(word, "AS", "OF") for word in ("TIMESTAMP", "SYSTEM_TIME")):
        return reader.text()
    raise reader.unexpected("VERSION AS OF or TIMESTAMP AS OF")


def _generate(reader: Reader) -> Command:
    mode = reader.label()
    reader.expect("FOR", "TABLE")
    table = reader.table()

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        target_table(spark, table, options).generate(mode)
        return empty(spark)

    return run


# --- descriptions --------------------------------------------------------------------------


def _history(reader: Reader) -> Command:
    table = reader.table()
    limit = int(reader.number()) if reader.take("LIMIT") else None
    return lambda spark, options: target_table(spark, table, options).history(limit)


def _detail(reader: Reader) -> Command:
    table = reader.table()
    return lambda spark, options: target_table(spark, table, options).detail()


# --- definition ----------------------------------------------------------------------------


def _alter(reader: Reader) -> Command | None:
    """Read what Spark's grammar lacks, and clustering columns."""
    table = reader.table()
    change: Callable[[SparkTable], Any]
    if reader.take("CLUSTER", "BY"):
        columns = [] if reader.take("NONE") else reader.names()
        change = lambda found: found.table.alter.cluster_by(columns)  # noqa: E731
    elif reader.take("DROP", "FEATURE"):
        feature = reader.label()
        truncate = reader.take("TRUNCATE", "HISTORY")
        change = lambda found: found.dropFeatureSupport(feature, truncate)  # noqa: E731
    elif reader.take("ALTER", "COLUMN") or reader.take("CHANGE", "COLUMN"):
        column = ".".join(reader.name())
        if not reader.take("SYNC", "IDENTITY"):
            return None
        change = lambda found: found.table.alter.sync_identity(column)  # noqa: E731
    else:
        return None

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        change(target_table(spark, table, options))
        return empty(spark)

    return run


_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Reader], Command | None]], ...] = (
    (("OPTIMIZE",), _optimize),
    (("REORG",), _reorg),
    (("VACUUM",), _vacuum),
    (("RESTORE",), _restore),
    (("DESCRIBE", "HISTORY"), _history),
    (("DESC", "HISTORY"), _history),
    (("DESCRIBE", "DETAIL"), _detail),
    (("DESC", "DETAIL"), _detail),
    (("GENERATE",), _generate),
    (("ALTER", "TABLE"), _alter),
)
