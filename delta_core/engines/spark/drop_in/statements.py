"""Statements of ``spark.sql``, and rows that are written into tables by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs
from pyspark.sql import DataFrame, types as T

from delta_core.engines.spark.catalog import is_path_name, table_path
from delta_core.engines.spark.drop_in.options import Options, write_arguments
from delta_core.engines.spark.drop_in.paths import table_path_of
from delta_core.engines.spark.format_read import place_of as place_of_format, split_formats
from delta_core.engines.spark.format_table import SparkFormatTable
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.statements import Insert, Merge, read_statement
from delta_core.engines.spark.sql import sql
from delta_core.engines.spark.sql_changes import run_statement
from delta_core.engines.spark.sql_commands import parse_command
from delta_core.engines.spark.sql_definitions import empty, shared_table
from delta_core.engines.spark.sql_text import Reader, find_tables, tokenize
from delta_core.engines.spark.table import SparkTable
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name

__all__ = ["change", "parse_text", "place_of", "run_text"]


def parse_text(spark: Any, text: str) -> T.StructType | None:
    """Return the columns that a statement about a whole table returns; None for one that is left to Spark."""
    try:
        tokens = tokenize(text)
        tables = find_tables(tokens)
        shared = shared_table(Reader(text, tokens, tables))
    except InvalidArgumentError:
        return None  # Spark reports it
    if isinstance(shared, str) and not private.is_delta_table(spark, shared):
        return None
    command = parse_command(Reader(text, tokens, tables))
    return None if command is None else command.result


def run_text(spark: Any, text: str) -> DataFrame:
    """Run such a statement."""
    return sql(spark, text)


def place_of(spark: Any, target: Sequence[str]) -> str:
    """Return the place of a table: of ``delta.`path```, or of a name in the session's catalog.

    Raises
    ------
    UnsupportedOperationError
        The path names a version or a partition of a table.
    """
    if is_path_name(target):
        path = table_path_of(spark, private.local_place(target[1]))
        if path.version is not None or path.timestamp is not None:
            raise UnsupportedOperationError(
                f"The path names an older version of the table at {path.place}, which can't be changed. Name that.",
                path=path.place,
            )
        if path.partition:
            raise UnsupportedOperationError(
                f"The path names a partition of the table at {path.place}. Name the table, and the partition in WHERE "
                "or PARTITION.",
                path=path.place,
            )
        return path.place
    return table_path(spark, ".".join(map(quote_name, target)))


def _format_table(spark: Any, target: Sequence[str]) -> SparkFormatTable | None:
    """Return the table of another format than Delta, whose target is its format, its place and the options' names."""
    name, place = target[0].lower(), target[1] if len(target) > 1 else ""
    if "/" not in place or name == "delta" or name not in split_formats():
        return None
    if len(target) > 2:
        raise UnsupportedOperationError(
            f"The table at {place} has the options {', '.join(target[2:])} in the session's catalog, with which it is "
            "only read. Change it by its path, or make an entry without options."
        )
    return SparkFormatTable(spark, place_of_format(name, private.local_place(place)))


def change(spark: Any, node: Any, target: Sequence[str], query: Any) -> DataFrame | None:
    """Run a node of Spark that changes the rows of a table, with those of an analysed query; return what it returns."""
    statement, options = read_statement(spark, node, tuple(target))
    table = _format_table(spark, target) or SparkTable(spark, place_of(spark, target))
    if isinstance(statement, Insert):
        statement = structs.replace(statement, query=query, arguments=write_arguments(Options.of(options)))
    elif isinstance(statement, Merge):
        statement = structs.replace(statement, source=query)
    return run_statement(spark, statement, table, lambda: empty(spark), {})
