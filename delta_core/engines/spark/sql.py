"""Delta tables in Spark SQL: queries, and statements that change or describe a table."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_core.engines.spark.catalog import is_path_name
from delta_core.engines.spark.connect import has_format
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.statements import named_relations, parse_statement
from delta_core.engines.spark.read import read
from delta_core.engines.spark.source import DeltaSource
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.sql_changes import run_statement
from delta_core.engines.spark.sql_commands import parse_command
from delta_core.engines.spark.sql_definitions import changed_table, empty
from delta_core.engines.spark.sql_text import (
    TABLE_FUNCTION,
    NamedTable,
    Reader,
    TablePlace,
    Token,
    find_tables,
    tokenize,
)
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.schema.fields import Path

__all__ = ["register", "sql"]

#: Words before the table that a statement changes or describes.
_TARGET = re.compile(
    r"\b(?P<statement>DELETE FROM|UPDATE|MERGE (?:WITH SCHEMA EVOLUTION )?INTO|COPY INTO"
    r"|INSERT (?:WITH SCHEMA EVOLUTION )?(?:INTO|OVERWRITE)(?: TABLE)?|TRUNCATE TABLE|ALTER TABLE"
    r"|DROP TABLE(?: IF EXISTS)?|CREATE (?:OR REPLACE )?TABLE(?: IF NOT EXISTS)?|REPLACE TABLE"
    r"|ANALYZE TABLE|FSCK REPAIR TABLE)\Z"
)
_REPLACE = "delta_core.spark.write(rows, {uri}, 'overwrite', "
_LATER = "This library has no such call yet: use another Delta writer for it."
#: The alternative, by the statement's beginning.
_ADVICE = (
    ("DELETE", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).delete('<condition>')."),
    (
        "UPDATE",
        "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).update('<condition>', {{'<column>': '<value>'}}).",
    ),
    (
        "MERGE",
        "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).alias('t').merge(rows.alias('s'), '<condition>').",
    ),
    ("INSERT", "Write the query's DataFrame: delta_core.spark.write(rows, {uri}, 'append')."),
    ("COPY", "Append the files' rows: delta_core.spark.write(spark.read.parquet(...), {uri}, 'append')."),
    ("TRUNCATE", "Delete its rows: DELETE FROM delta.`path`."),
    ("DROP", "Delete its directory."),
    ("CREATE", "Create it with delta_core.DeltaTable.create({uri}, ...) or delta_core.spark.write(rows, {uri})."),
    ("REPLACE", f"Overwrite it: {_REPLACE}schema_mode='overwrite')."),
    ("ALTER", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).table.alter, which has such changes."),
    ("", _LATER),
)
#: Words that statements begin with in which tables of the catalog are read.
_QUERIES = frozenset(("SELECT", "WITH", "FROM", "TABLE", "(", "DELETE", "UPDATE", "MERGE", "INSERT"))
#: Words that statements about rows begin with, on sessions whose parser is available.
_CHANGES = frozenset(("DELETE", "UPDATE", "MERGE", "INSERT"))


@raises_spark_errors
def register(spark: SparkSession, name: str = TABLE_FUNCTION) -> None:
    """Make tables known to a session's SQL: ``SELECT * FROM delta_scan('uri')`` or ``delta_scan('uri', 3)``.

    Registers the Python data source ``format("delta_core")`` too, through which rows pass Python: use `read` wherever
    the code can be changed. On Spark Connect, and on versions of Spark that are not known here, the function works
    within `sql` alone.

    Raises
    ------
    InvalidArgumentError
        For a name that is not a plain identifier.
    """
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        raise InvalidArgumentError(f"Found the name {name!r} for a table function, expected a plain identifier.")
    with private.own_python(spark):
        spark.dataSource.register(DeltaSource)
    if private.is_available(spark):
        convert_failures()
        private.register_table_function(spark, name, lambda *given: _scan(spark, name, given))


def _scan(spark: SparkSession, name: str, given: tuple[str | int, ...]) -> DataFrame:
    kinds = tuple(map(type, given))
    if kinds not in ((str,), (str, int)):
        found = ", ".join(map(repr, given))
        raise InvalidArgumentError(f"Found {name}({found}), expected {name}('uri') or {name}('uri', version).")
    return read(spark, *given)  # type: ignore[arg-type]  # checked above


@raises_spark_errors
def sql(spark: SparkSession, text: str, args: Any = None, **options: Any) -> DataFrame:
    """Run SQL in which ``delta.`path``` and ``delta_scan('uri'[, version])`` are tables.

    ``delta.`path` VERSION AS OF 3`` and ``TIMESTAMP AS OF '2024-01-01'`` travel in time. ``delta_core.`uri``` is the
    same for any URI; the path behind ``delta`` contains a slash.

    DELETE, UPDATE, MERGE and INSERT (in classic sessions), OPTIMIZE, REORG, VACUUM, RESTORE, DESCRIBE HISTORY, DESCRIBE
    DETAIL and some forms of ALTER TABLE take a Delta table of the session's catalog too: see docs/spark-sql.md.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect. If the server of the latter has the format ``delta``
        (`configure`), the statement is that of ``spark.sql``, unless there are options.
    text : str
        A statement in Spark SQL.
    args : dict or list, optional
        As for ``spark.sql``; of queries alone.
    options
        As for `read`: ``storage_options``, ``timezone`` ...; of statements that change or describe a table, those of
        `SparkTable`.

    Raises
    ------
    UnsupportedOperationError
        The statement is not possible on a Delta table; the message names a call that does the same, if there is one.
    InvalidArgumentError
        The statement is not complete, or has arguments that only queries have.
    DeltaError
        As for the call that the statement becomes.
    """
    if not options and has_format(spark):
        return spark.sql(text, args)
    tokens = tokenize(text)
    tables = find_tables(tokens)
    command = parse_command(Reader(text, tokens, tables))
    if command is not None:
        given = _table_options(args, options)
        return command.run(spark, given) if command.is_for(spark) else spark.sql(text)
    if tokens and tokens[0].word in _QUERIES and private.is_available(spark):
        text = _with_paths(spark, text)
        tokens = tokenize(text)
        tables = find_tables(tokens)
    views = [f"delta_core_{uuid.uuid4().hex}" for _ in tables]
    named = _with_names(text, tokens, tables, views)
    places = {view: table.place for view, table in zip(views, tables, strict=True)}
    words = {t.word for t in tokens}
    is_change = bool(words & _CHANGES) and private.is_available(spark)
    parsed = parse_statement(spark, named) if is_change and tokens[0].word in {*_CHANGES, "WITH"} else None
    target = None if parsed is None else _target(spark, parsed.target, places)
    if parsed is None or target is None:
        _check_reads(tokens, tables)
        return _with_views(spark, places, options, lambda: spark.sql(named, args))
    given = _table_options(args, options)
    statement = parsed.read()
    table = changed_table(spark, target, given)
    places.pop(statement.target[0], None)
    return _with_views(
        spark, places, options, lambda: run_statement(spark, statement, table, lambda: empty(spark), given)
    )


def _table_options(args: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a statement that is no query."""
    other = sorted(options.keys() - {"storage_options", "plugins", "allow_external"})
    if args or other:
        found = "args" if args else ", ".join(other)
        raise InvalidArgumentError(
            f"Found {found}, which only queries take; this statement takes storage_options, plugins and allow_external."
        )
    return options


def _with_paths(spark: Any, text: str) -> str:
    """Return a text that names Delta tables of the session's catalog, where it reads them, by their places."""
    pieces, end = [], 0
    for relation in named_relations(spark, text):
        name = ".".join(map(quote_name, relation.parts))
        if not private.is_delta_table(spark, name):
            continue
        place = quote_name(private.table_location(spark, name)[0])
        alias = "" if relation.has_alias else f" AS {quote_name(relation.parts[-1])}"
        pieces += [text[end : relation.start], f"delta_core.{place}", text[relation.stop : relation.end], alias]
        end = relation.end
    return "".join([*pieces, text[end:]])


def _with_names(text: str, tokens: Sequence[Token], tables: Sequence[NamedTable], views: Sequence[str]) -> str:
    """Return a text with the names of views in the places of tables."""
    pieces, end = [], 0
    for table, view in zip(tables, views, strict=True):
        pieces += [text[end : tokens[table.start].start], view]
        end = tokens[table.stop - 1].stop
    return "".join([*pieces, text[end:]])


def _with_views(
    spark: SparkSession, places: Mapping[str, TablePlace], options: Mapping[str, Any], run: Callable[[], DataFrame]
) -> DataFrame:
    """Run something while tables are known to the session as views."""
    frames: dict[TablePlace, DataFrame] = {}
    try:
        for view, place in places.items():
            if place not in frames:
                frames[place] = read(spark, place.uri, place.version, place.timestamp, **options)
            frames[place].createOrReplaceTempView(view)
        return run()
    finally:
        if private.is_available(spark):  # the plan holds what it needs; Connect looks views up when it runs
            for view in places:
                spark.catalog.dropTempView(view)


def _target(spark: SparkSession, name: Path, places: Mapping[str, TablePlace]) -> TablePlace | str | None:
    """Return the table that a statement changes; None if it is none of Delta, and left to Spark."""
    if len(name) == 1 and name[0] in places:
        return places[name[0]]
    if is_path_name(name):
        return TablePlace(name[1])
    text = ".".join(quote_name(part) for part in name)
    return text if private.is_delta_table(spark, text) else None


def _check_reads(tokens: Sequence[Token], tables: Sequence[NamedTable]) -> None:
    """Reject statements whose target is one of our tables."""
    for table in tables:
        found = _TARGET.search(" ".join(t.word for t in tokens[max(0, table.start - 8) : table.start]))
        if found is None:
            continue
        statement, uri = found["statement"], table.place.uri
        advice = next(how for start, how in _ADVICE if statement.startswith(start))
        raise UnsupportedOperationError(
            f"{statement} is not possible on a Delta table in SQL here. {advice.format(uri=repr(uri))}",
            statement=statement,
            path=uri,
        )
