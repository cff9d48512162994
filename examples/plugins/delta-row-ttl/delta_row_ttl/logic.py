"""From table properties to the filter that hides what is too old."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from delta_core.api import (
    Call,
    Column,
    Expression,
    FileStatistic,
    InvalidArgumentError,
    Literal,
    PartitionValue,
    PrimitiveType,
    RowFilter,
    SchemaError,
    TableState,
    any_of,
    find,
)

__all__ = ["COLUMN", "INTERVAL", "TimeToLive", "all_expired", "parse_interval", "row_filter", "time_to_live"]

NAME = "example.rowTtl"
COLUMN = "example.ttl.column"
INTERVAL = "example.ttl.interval"
_TEXT = re.compile(r"(?:interval\s+)?(\d+)\s+(second|minute|hour|day|week)s?\Z", re.IGNORECASE)
_TYPES = ("timestamp", "timestamp_ntz", "date")


@dataclass(frozen=True)
class TimeToLive:
    """The column that specifies when a row was born, its type, and how long a row lives."""

    column: tuple[str, ...]
    type: str
    interval: timedelta


def parse_interval(text: str) -> timedelta:
    """Parse ``30 days`` or ``interval 12 hours``.

    Raises
    ------
    InvalidArgumentError
        If the text is no number and unit of time.
    """
    match = _TEXT.match(text.strip())
    if match is None:
        raise InvalidArgumentError(
            f"Table property {INTERVAL} is {text!r}, expected a number and a unit such as 30 days."
        )
    return timedelta(**{f"{match[2].lower()}s": int(match[1])})


def time_to_live(table: TableState) -> TimeToLive | None:
    """Return what the properties declare, None without them.

    Raises
    ------
    ColumnNotFoundError
        If the table lacks the column.
    SchemaError
        If the column holds no time.
    InvalidArgumentError
        If one of the two properties is missing, or the interval can't be read.
    """
    name, text = table.property(COLUMN), table.property(INTERVAL)
    if name is None and text is None:
        return None
    if name is None or text is None:
        raise InvalidArgumentError(f"Only one of the table properties {COLUMN} and {INTERVAL} is set, expected both.")
    path, field = find(table.schema, (name,))
    kind = field.type.type
    if kind not in _TYPES:
        raise SchemaError(
            f"Column {name} of {COLUMN} has type {kind}, expected one of {', '.join(_TYPES)}.", column=name
        )
    return TimeToLive(path, kind, parse_interval(text))


def row_filter(ttl: TimeToLive, now_us: int) -> RowFilter:
    """Return the filter that keeps the rows that are not too old, and those without a time.

    A row of a date column lives until its whole day is too old. ``now_us`` is in microseconds since the epoch, UTC.
    """
    column = Column(ttl.column)
    alive = Call(">=", (column, _oldest(ttl, now_us)))
    keep = any_of([Call("isnull", (column,)), alive])
    assert keep is not None
    return RowFilter(NAME, keep)


def all_expired(table: TableState, ttl: TimeToLive, now_us: int) -> Expression:
    """Return the condition on files under which each of their rows is too old at a time; false if that is not known."""
    physical = table.column_map.physical_path(table.schema, ttl.column)
    kind, bound = PrimitiveType(ttl.type), _oldest(ttl, now_us)
    if ttl.column[0] in table.partition_columns:
        return _known(Call("<", (PartitionValue(physical[0], kind), bound)))
    # the log holds times in milliseconds, cut off
    cut = 0 if ttl.type == "date" else 1000
    last = FileStatistic("max", physical, kind)
    nulls = FileStatistic("nullCount", physical, PrimitiveType("long"))
    old = Call("<", (last, _oldest(ttl, now_us - cut)))
    return _known(Call("and", (old, Call("=", (nulls, Literal(0, PrimitiveType("long")))))))


def _known(condition: Expression) -> Expression:
    return Call("coalesce", (condition, Literal(False, PrimitiveType("boolean"))))


def _oldest(ttl: TimeToLive, now_us: int) -> Literal:
    """Return the birth of the oldest rows that are alive at a time."""
    oldest = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=now_us) - ttl.interval
    bound = {"timestamp": oldest, "timestamp_ntz": oldest.replace(tzinfo=None), "date": oldest.date()}[ttl.type]
    return Literal(bound, PrimitiveType(ttl.type))
