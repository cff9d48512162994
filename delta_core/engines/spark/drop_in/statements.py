"""Statements of ``spark.sql``, and rows that are written into tables by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs
from pyspark.sql import DataFrame, types as T

from delta_core.engines.spark.catalog import is_path_name, table_path
from delta_core.engines.spark.drop_in.options import Options, write_arguments
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.statements import Insert, Merge, read_statement
from delta_core.engines.spark.sql import sql
from delta_core.engines.spark.sql_changes import run_statement
from delta_core.engines.spark.sql_commands import parse_command
from delta_core.engines.spark.sql_definitions import empty, shared_table
from delta_core.engines.spark.sql_text import Reader, find_tables, tokenize
from delta_core.engines.spark.table import SparkTable
from delta_core.errors import InvalidArgumentError
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
    """Return the place of a table: of ``delta.`path```, or of a name in the session's catalog."""
    if is_path_name(target):
        return private.local_place(target[1])
    return table_path(spark, ".".join(map(quote_name, target)))


def change(spark: Any, node: Any, target: Sequence[str], query: Any) -> DataFrame | None:
    """Run a node of Spark that changes the rows of a table, with those of an analysed query; return what it returns."""
    statement, options = read_statement(spark, node, tuple(target))
    table = SparkTable(spark, place_of(spark, target))
    if isinstance(statement, Insert):
        statement = structs.replace(statement, query=query, arguments=write_arguments(Options.of(options)))
    elif isinstance(statement, Merge):
        statement = structs.replace(statement, source=query)
    return run_statement(spark, statement, table, lambda: empty(spark), {})
