"""Statements about a whole table, which Spark's own grammar lacks: OPTIMIZE, VACUUM, RESTORE and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession, types as T

from delta_core.engines.spark.create_text import create_text
from delta_core.engines.spark.drop_in.paths import table_path_of
from delta_core.engines.spark.optimized import OPTIMIZED
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.results import result_frame
from delta_core.engines.spark.spark_errors import with_condition
from delta_core.engines.spark.sql_definitions import DEFINITIONS, Command, bigints, empty, target_table
from delta_core.engines.spark.sql_text import Reader, TablePlace
from delta_core.engines.spark.table import DETAIL, HISTORY, RESTORED
from delta_core.errors import TableNotFoundError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.table import interop

__all__ = ["Command", "parse_command"]

_CREATED = T.StructType([T.StructField("createtab_stmt", T.StringType(), False)])
_PATHS = T.StructType([T.StructField("path", T.StringType())])


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

    return Command(run, OPTIMIZED)


def _reorg(reader: Reader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    where = reader.until("APPLY", "(") if reader.take("WHERE") else None
    reader.expect("APPLY", "(", "PURGE", ")")
    return Command(lambda spark, options: target_table(spark, table, options).purge(where), OPTIMIZED)


def _vacuum(reader: Reader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    hours, is_lite, is_dry = None, False, False
    while not reader.is_done:  # in any order
        if reader.take("RETAIN"):
            hours = reader.number()
            reader.expect("HOURS")
        elif reader.take("DRY", "RUN"):
            is_dry = True
        elif reader.take("USING", "INVENTORY"):
            raise UnsupportedOperationError(
                "VACUUM lists the files itself. Leave USING INVENTORY out.", operation="VACUUM"
            )
        else:
            is_lite = reader.take("LITE")
            if not is_lite:
                reader.expect("FULL")

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        opened = target_table(spark, table, options)
        found = opened.vacuum_files(hours, dry_run=is_dry, full=not is_lite)
        snapshot = opened.table.snapshot()
        root = interop.root_uri(snapshot).rstrip("/")
        paths = [f"{root}/{path}" for path in found] if is_dry else [root]
        return result_frame(spark, [{_PATHS[0].name: path} for path in paths], _PATHS)

    return Command(run, _PATHS)


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

    return Command(run, bigints(RESTORED))


def _point(reader: Reader) -> int | str:
    reader.take("TO")
    reader.take("FOR")
    if any(reader.take(word, "AS", "OF") for word in ("VERSION", "SYSTEM_VERSION")):
        return reader.version()
    if any(reader.take(word, "AS", "OF") for word in ("TIMESTAMP", "SYSTEM_TIME")):
        return reader.text()
    raise reader.unexpected("VERSION AS OF or TIMESTAMP AS OF")


def _generate(reader: Reader) -> Command:
    mode = reader.label().lower()
    reader.expect("FOR", "TABLE")
    table = reader.table()

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        target_table(spark, table, options).generate(mode)
        return empty(spark)

    return Command(run)


# --- descriptions --------------------------------------------------------------------------


def _history(reader: Reader) -> Command:
    table = reader.table()
    limit = int(reader.number()) if reader.take("LIMIT") else None

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        if isinstance(table, str):
            return target_table(spark, table, options).history(limit)
        named = replace(table, uri=table_path_of(spark, table.uri).place)
        with with_condition(TableNotFoundError, "DELTA_TABLE_ONLY_OPERATION"):
            return target_table(spark, named, options).history(limit)

    return Command(run, HISTORY)


def _detail(reader: Reader) -> Command:
    table = reader.table()
    return Command(lambda spark, options: target_table(spark, table, options).detail(), DETAIL)


def _show_create(reader: Reader) -> Command:
    table = reader.table()
    is_of_hive = reader.take("AS", "SERDE")

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        opened = target_table(spark, table, options)
        if is_of_hive:
            raise UnsupportedOperationError(
                f"SHOW CREATE TABLE is not possible for {opened.path} AS SERDE: it is no table of Hive. Leave AS SERDE "
                "out.",
                statement="SHOW CREATE TABLE",
            )
        name, location = f"delta.{quote_name(opened.path)}", None
        if isinstance(table, str):
            name = ".".join(map(quote_name, private.qualified_name(spark, table)))
            location = None if private.is_managed(spark, table) else opened.path
        text = create_text(opened.table.snapshot(), name, location)
        return result_frame(spark, [{_CREATED[0].name: text}], _CREATED)

    return Command(run, _CREATED, shared=table)


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
    (("SHOW", "CREATE", "TABLE"), _show_create),
    *DEFINITIONS,
)
