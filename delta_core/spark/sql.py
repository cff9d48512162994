"""Delta tables in Spark SQL, by their place."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_core.engines.spark import private
from delta_core.errors import InvalidArgumentError
from delta_core.spark.reading import read
from delta_core.spark.source import DeltaSource

__all__ = ["register", "sql"]

TABLE_FUNCTION = "delta_scan"
_TEXT = r"'(?:[^'\\]|\\.|'')*'"
#: What stands in SQL besides tables: comments, texts, and names in backticks that belong to nothing of ours.
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


def register(spark: SparkSession, name: str = TABLE_FUNCTION) -> None:
    """Make tables known to a session's SQL: ``SELECT * FROM delta_scan('uri')`` or ``delta_scan('uri', 3)``.

    Registers the Python data source ``format("delta_core")`` too, through which rows pass Python: use `read` wherever
    the code can be changed. On Spark Connect, and on versions of Spark that are not known here, the function works
    within `sql` alone.
    """
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        raise InvalidArgumentError(f"Found the name {name!r} for a table function, expected a plain identifier.")
    spark.dataSource.register(DeltaSource)
    if private.is_available(spark):
        private.register_table_function(spark, name, lambda uri, version=None: read(spark, uri, version))


def sql(spark: SparkSession, text: str, args: Any = None, **options: Any) -> DataFrame:
    """Run SQL in which ``delta_core.`uri``` and ``delta_scan('uri'[, version])`` are tables.

    ``delta_core.`uri` VERSION AS OF 3`` and ``TIMESTAMP AS OF '2024-01-01'`` travel in time.

    Parameters
    ----------
    args : dict or list, optional
        As for ``spark.sql``.
    options
        As for `read`: ``storage_options``, ``timezone`` ...
    """
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
