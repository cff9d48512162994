"""Delta tables in Spark SQL, by their place."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.spark.failures import convert_failures
from delta_core.spark.plan import private
from delta_core.spark.read import read
from delta_core.spark.source import DeltaSource

__all__ = ["register", "sql"]

TABLE_FUNCTION = "delta_scan"
_TEXT = r"'(?:[^'\\]|\\.|'')*'"
#: What is in SQL besides tables: comments, texts, and names in backticks that belong to nothing of ours.
_OTHER = rf"--[^\n]*|/\*.*?\*/|{_TEXT}|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`"
_TIME_TRAVEL = (
    r"(?:\s+(?:FOR\s+)?(?:SYSTEM_)?"
    rf"(?:VERSION\s+AS\s+OF\s+(?P<version>\d+)|TIME(?:STAMP)?\s+AS\s+OF\s+(?P<time>{_TEXT})))?"
)
_TABLE = re.compile(
    rf"(?P<other>{_OTHER})"
    rf"|(?<![\w.`])delta_core\s*\.\s*`(?P<path>(?:[^`]|``)+)`{_TIME_TRAVEL}"
    rf"|(?<![\w.`]){TABLE_FUNCTION}\s*\(\s*(?P<uri>{_TEXT})\s*(?:,\s*(?P<number>\d+)\s*)?\)",
    re.IGNORECASE | re.DOTALL,
)

_COMMENT = re.compile(rf"(?P<kept>{_TEXT}|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/", re.DOTALL)
#: What makes the table behind it the one that a statement changes or describes.
_TARGET = re.compile(
    r"\b(?P<statement>DELETE\s+FROM|UPDATE|MERGE\s+(?:WITH\s+SCHEMA\s+EVOLUTION\s+)?INTO|COPY\s+INTO"
    r"|INSERT\s+(?:WITH\s+SCHEMA\s+EVOLUTION\s+)?(?:INTO|OVERWRITE)(?:\s+TABLE)?|TRUNCATE\s+TABLE|ALTER\s+TABLE"
    r"|DROP\s+TABLE(?:\s+IF\s+EXISTS)?|CREATE\s+(?:OR\s+REPLACE\s+)?TABLE(?:\s+IF\s+NOT\s+EXISTS)?|REPLACE\s+TABLE"
    r"|OPTIMIZE|VACUUM|RESTORE(?:\s+TABLE)?|REORG\s+TABLE|ANALYZE\s+TABLE|FSCK\s+REPAIR\s+TABLE"
    r"|DESC(?:RIBE)?\s+(?:HISTORY|DETAIL))\s*\Z",
    re.IGNORECASE,
)
_REPLACE = "delta_core.spark.write(rows, {uri}, 'overwrite', "
_LATER = "This library has no such call yet: use another Delta writer for it."
#: What works instead, by the statement's beginning.
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
    ("INSERT OVERWRITE", f"Write the query's DataFrame: {_REPLACE.removesuffix(', ')})."),
    ("INSERT", "Write the query's DataFrame: delta_core.spark.write(rows, {uri}, 'append')."),
    ("COPY", "Append the files' rows: delta_core.spark.write(spark.read.parquet(...), {uri}, 'append')."),
    ("TRUNCATE", f"Overwrite the table with none of its rows: {_REPLACE.removesuffix(', ')})."),
    ("DROP", "Delete its directory."),
    ("CREATE", "Create it with delta_core.DeltaTable.create({uri}, ...) or delta_core.spark.write(rows, {uri})."),
    ("REPLACE", f"Overwrite it: {_REPLACE}schema_mode='overwrite')."),
    ("ALTER", "Columns are added by delta_core.spark.write(rows, {uri}, 'append', schema_mode='merge')."),
    ("DESC", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).history() or .detail()."),
    ("RESTORE", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).restoreToVersion(<version>)."),
    ("VACUUM", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).vacuum()."),
    ("OPTIMIZE", "Call delta_core.spark.DeltaTable.forPath(spark, {uri}).optimize().executeCompaction()."),
    ("", _LATER),
)


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


def sql(spark: SparkSession, text: str, args: Any = None, **options: Any) -> DataFrame:
    """Run SQL in which ``delta_core.`uri``` and ``delta_scan('uri'[, version])`` are tables.

    ``delta_core.`uri` VERSION AS OF 3`` and ``TIMESTAMP AS OF '2024-01-01'`` travel in time.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    text : str
        A query in Spark SQL.
    args : dict or list, optional
        As for ``spark.sql``.
    options
        As for `read`: ``storage_options``, ``timezone`` ...

    Raises
    ------
    UnsupportedOperationError
        The statement changes a table, or requires what only other calls report; the message names the call.
    """
    _check_reads(text)
    views: dict[tuple[str, int | None, str | None], str] = {}
    pieces, end = [], 0
    for start, stop, place in _tables(text):
        if place not in views:
            views[place] = f"delta_core_{uuid.uuid4().hex}"
            read(spark, *place, **options).createOrReplaceTempView(views[place])
        pieces += [text[end:start], views[place]]
        end = stop
    found = spark.sql("".join([*pieces, text[end:]]), args)
    if private.is_available(spark):  # the plan holds what it needs; Connect looks views up when it runs
        for view in views.values():
            spark.catalog.dropTempView(view)
    return found


def _check_reads(text: str) -> None:
    """Reject statements whose target is one of our tables."""
    for start, _, (uri, _, _) in _tables(text):
        before = _COMMENT.sub(lambda m: m["kept"] or " ", text[:start])
        found = _TARGET.search(before)
        if found is None:
            continue
        statement = " ".join(found["statement"].upper().split())
        advice = next(how for start, how in _ADVICE if statement.startswith(start))
        raise UnsupportedOperationError(
            f"{statement} is not possible on a Delta table in SQL here. {advice.format(uri=repr(uri))}",
            statement=statement,
            path=uri,
        )


def _tables(text: str) -> Iterator[tuple[int, int, tuple[str, int | None, str | None]]]:
    """Yield where each table is named, and (uri, version, timestamp)."""
    for match in _TABLE.finditer(text):
        if match["other"] is not None:
            continue
        if match["path"] is not None:
            version = None if match["version"] is None else int(match["version"])
            time = None if match["time"] is None else _unquoted(match["time"])
            yield match.start(), match.end(), (match["path"].replace("``", "`"), version, time)
        else:
            number = None if match["number"] is None else int(match["number"])
            yield match.start(), match.end(), (_unquoted(match["uri"]), number, None)


def _unquoted(text: str) -> str:
    return re.sub(r"''|\\(.)", lambda m: "'" if m[0] == "''" else m[1], text[1:-1])
