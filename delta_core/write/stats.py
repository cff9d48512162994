"""Statistics of data files as the log's JSON. Protocol: Per-file Statistics.

Bounds always hold: a text's minimum is a prefix of it, its maximum a prefix and a character above all that follow; a
timestamp is rounded outwards to ms. A bound that JSON or its readers can't hold is left out, which never hides a row.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_core.engines.interface import ColumnStatistics
from delta_core.protocol.schema import Path

__all__ = ["PREFIX_LENGTH", "statistics_json", "truncate_max", "truncate_min"]

#: Characters that bounds of texts have at most, if the table does not specify otherwise.
PREFIX_LENGTH = 32
_LAST = "\U0010ffff"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (wall clock in UTC)
_EPOCH_DATE = dt.date(1970, 1, 1)


def statistics_json(
    num_rows: int,
    columns: Sequence[ColumnStatistics],
    types: Mapping[Path, pa.DataType],
    prefix_length: int = PREFIX_LENGTH,
    tight: bool = True,
) -> str:
    """Return the text of a file's statistics.

    Parameters
    ----------
    num_rows : int
        Rows of the file, deleted ones included.
    columns : sequence of ColumnStatistics
        As an engine measured them; keys are physical names, nested as the schema is.
    types : Mapping
        The Arrow type of each leaf.
    prefix_length : int
        ``delta.dataSkippingStringPrefixLength``.
    tight : bool
        Whether every bound is the value of a row that is not deleted.
    """
    parts: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in columns:
        if column.null_count is not None:
            _put(parts["nullCount"], column.path, str(column.null_count))
        if column.low is not None and column.high is not None:
            low, high = _bounds(column, types[column.path], prefix_length)
            _put(parts["minValues"], column.path, low)
            _put(parts["maxValues"], column.path, high)
    fields = [f'"numRecords":{num_rows}']
    fields += [f'"{name}":{_object(value)}' for name, value in parts.items() if columns]
    fields.append(f'"tightBounds":{"true" if tight else "false"}')
    return "{" + ",".join(fields) + "}"


def _put(into: dict[str, Any], path: Path, text: str | None) -> None:
    if text is not None:
        for name in path[:-1]:
            into = into.setdefault(name, {})
        into[path[-1]] = text


def _object(value: Mapping[str, Any]) -> str:
    inner = (f"{_quoted(n)}:{v if isinstance(v, str) else _object(v)}" for n, v in value.items())
    return "{" + ",".join(inner) + "}"


_quoted = json.JSONEncoder(ensure_ascii=False).encode


# --- one bound -----------------------------------------------------------------------------


def _bounds(column: ColumnStatistics, t: pa.DataType, prefix_length: int) -> tuple[str | None, str | None]:
    low, high = column.low, column.high
    types = pa.types
    if types.is_string(t):
        return _texts(low, high, prefix_length)
    if types.is_floating(t):
        return _number(low), _number(high)
    if types.is_timestamp(t):
        zone = "Z" if t.tz else ""
        return _when(lambda: _millis(low // 1000, zone)), _when(lambda: _millis(-(-high // 1000), zone))
    if types.is_date(t):
        return _when(lambda: _day(low)), _when(lambda: _day(high))
    if types.is_decimal(t):
        return _decimal(low, t.scale), _decimal(high, t.scale)
    return str(low), str(high)


def _texts(low: bytes, high: bytes, prefix_length: int) -> tuple[str | None, str | None]:
    try:
        least, most = low.decode(), high.decode()
    except UnicodeDecodeError:
        return None, None
    cut = truncate_max(most, prefix_length)
    return _quoted(truncate_min(least, prefix_length)), None if cut is None else _quoted(cut)


def truncate_min(text: str, length: int = PREFIX_LENGTH) -> str:
    """Return a text of at most ``length`` characters that is not above ``text`` in UTF-8 byte order."""
    return text[:length]


def truncate_max(text: str, length: int = PREFIX_LENGTH) -> str | None:
    """Return a short text that is not below ``text`` in UTF-8 byte order; None if there is none.

    It has ``length`` characters and one more, which is above the first that was dropped; more, up to twice that many,
    if the last of all characters was dropped.
    """
    if len(text) <= length:
        return text
    for end in range(length, min(len(text), 2 * length)):
        if text[end] != _LAST:
            return text[:end] + ("\x7f" if text[end] < "\x7f" else _LAST)
    return text if len(text) <= 2 * length else None


def _number(value: float) -> str | None:
    return repr(float(value)) if math.isfinite(value) else None


def _decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole = digits[: len(digits) - scale] + ("." + digits[len(digits) - scale :] if scale else "")
    return f"-{whole}" if unscaled < 0 else whole


def _when(text: Callable[[], str]) -> str | None:
    """Return a time's text; None beyond the years that readers can hold."""
    try:
        return text()
    except OverflowError:
        return None


def _millis(value: int, zone: str) -> str:
    moment = _EPOCH + dt.timedelta(milliseconds=value)
    return f'"{moment.isoformat(timespec="milliseconds")}{zone}"'


def _day(value: int) -> str:
    return f'"{(_EPOCH_DATE + dt.timedelta(days=value)).isoformat()}"'
