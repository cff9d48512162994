"""Sessions that were started without the format delta: the errors of programs that use it, with the remedy."""

from __future__ import annotations

import re

from delta_core.errors import DeltaError, UnsupportedOperationError

__all__ = ["REMEDY", "explained", "note_format"]

#: The settings that the format needs, and the calls that need none.
REMEDY = (
    "Start the session with delta_core.spark.configure(SparkSession.builder).getOrCreate(). If it exists before the "
    "program, as in notebooks of clusters, set spark.jars to a file of delta_core.spark.save_jar, "
    "spark.sql.extensions=delta.Extensions and spark.sql.catalog.spark_catalog=delta.Catalog, and call configure in "
    "the program. Without a restart, use delta_core.spark.read, write, sql, read_stream, write_stream and DeltaTable."
)
#: The conditions of Spark's errors, and the parts of their messages that name Delta tables.
_OF_DELTA = {
    "DATA_SOURCE_NOT_FOUND": re.compile(r"data source: delta\b", re.IGNORECASE),
    "TABLE_OR_VIEW_NOT_FOUND": re.compile(r"view (`delta`\.`[^`]*/|`(?:HISTORY|DETAIL)`)", re.IGNORECASE),
    "PARSE_SYNTAX_ERROR": re.compile(
        r"at or near '?(?:OPTIMIZE|REORG|VACUUM|RESTORE|GENERATE|CONVERT|SHALLOW|DEEP|CLONE|HISTORY|DETAIL)\b",
        re.IGNORECASE,
    ),
    "INVALID_SQL_SYNTAX.UNSUPPORTED_SQL_STATEMENT": re.compile(r"\bdelta\b", re.IGNORECASE),
}
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_.]*)\]\s*")
_has_format = False


def note_format() -> None:
    """Remember that sessions of this process have the format: errors are those of statements then."""
    global _has_format
    _has_format = True


def explained(text: str) -> DeltaError | None:
    """Return the error for the message of one of Spark; None for others, and if a session has the format."""
    found = _CONDITION.match(text)
    pattern = None if found is None or _has_format else _OF_DELTA.get(found[1])
    if found is None or pattern is None or pattern.search(text) is None:
        return None
    what = text[found.end() :].strip().splitlines()[0].partition(" SQLSTATE")[0].rstrip(".")
    return UnsupportedOperationError(
        f"This session was started without the format delta ({what}). {REMEDY}", condition=found[1]
    )
