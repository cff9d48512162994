"""Statistics of data files as the log's JSON. Protocol: Per-file Statistics.

Bounds always hold: a text's minimum is a prefix of it, its maximum a prefix and a character above all that follow; a
timestamp is rounded outwards to ms. A bound that JSON or its readers can't hold is left out, which never hides a row.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.records import ColumnsStatistics, ColumnStatistics, FilesStatistics
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, is_valid, nulls_of, number_array, scalar_of, strings_of
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PREFIX_LENGTH", "statistics_json", "statistics_texts", "truncate_max", "truncate_min"]

#: Characters that bounds of texts have at most, if the table does not specify otherwise.
PREFIX_LENGTH = 32
_LAST = "\U0010ffff"
#: Characters that JSON escapes.
_ESCAPES = r'["\\\x00-\x1f]'
_DAY_MS = 86_400_000
#: The first and the last day that texts of dates can hold, since the epoch.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_STRING = pa.string().id
_INTEGERS = frozenset(t.id for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_FLOATING = frozenset(t.id for t in (pa.float16(), pa.float32(), pa.float64()))
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
        The Arrow type of each leaf; null: its bounds are left out.
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


def statistics_texts(
    found: FilesStatistics, types: Mapping[Path, pa.DataType], prefix_length: int = PREFIX_LENGTH, columns: bool = True
) -> pa.Array:
    """Return the texts of the statistics of many files, each as `statistics_json` returns it.

    Parameters
    ----------
    found : FilesStatistics
        As an engine read them.
    types : Mapping
        The Arrow type of each leaf; null: its bounds are left out.
    prefix_length : int
        ``delta.dataSkippingStringPrefixLength``.
    columns : bool
        False for the number of rows alone.
    """
    rows = pc.cast(number_array(found.num_rows), pa.string())
    parts: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in found.columns:
        low, high = _bound_texts(column, types[column.path], prefix_length)
        nulls = pc.cast(column.null_counts, pa.string())
        for name, texts in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
            into = parts[name]
            for part in column.path[:-1]:
                into = into.setdefault(part, {})
            into[column.path[-1]] = texts
    fields = [pc.binary_join_element_wise('"numRecords":', rows, "")]
    for name, values in parts.items() if columns else ():
        objects = _object_texts(values)
        empty = pc.fill_null(objects, "{}") if objects is not None else "{}"
        fields.append(pc.binary_join_element_wise(f'"{name}":', empty, ""))
    return pc.binary_join_element_wise("{", pc.binary_join_element_wise(*fields, ","), ',"tightBounds":true}', "")


def _object_texts(values: Mapping[str, Any]) -> pa.Array | None:
    """Return JSON objects, null for files that have none of the values."""
    fields = []
    for name, value in values.items():
        texts = _object_texts(value) if isinstance(value, dict) else value
        fields.append(pc.fill_null(pc.binary_join_element_wise(f",{_quoted(name)}:", texts, ""), ""))
    if not fields:
        return None
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*fields, ""), 1)
    whole = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(pc.equal(joined, ""), scalar_of(None, pa.string()), whole)


def _put(into: dict[str, Any], path: Path, text: str | None) -> None:
    if text is not None:
        for name in path[:-1]:
            into = into.setdefault(name, {})
        into[path[-1]] = text


def _object(value: Mapping[str, Any]) -> str:
    inner = [f"{_quoted_name(n)}:{v if isinstance(v, str) else _object(v)}" for n, v in value.items()]
    return "{" + ",".join(inner) + "}"


_quoted = json.JSONEncoder(ensure_ascii=False).encode
#: The names of columns are the same in each file.
_quoted_name = lru_cache(maxsize=1024)(_quoted)


# --- one bound -----------------------------------------------------------------------------


def _bounds(column: ColumnStatistics, t: pa.DataType, prefix_length: int) -> tuple[str | None, str | None]:
    low, high = column.low, column.high
    kind, types = t.id, pa.types
    # the most common types first, without a function call each: many files have as many bounds
    if kind in _INTEGERS:
        return str(low), str(high)
    if kind == _STRING:
        return _texts(low, high, prefix_length)
    if types.is_null(t):
        return None, None
    if kind in _FLOATING:
        return _number(low), _number(high)
    if types.is_timestamp(t):
        zone = "Z" if t.tz else ""
        return _when(lambda: _millis(low // 1000, zone)), _when(lambda: _millis(-(-high // 1000), zone))
    if types.is_date(t):
        return _when(lambda: _day(low)), _when(lambda: _day(high))
    if types.is_decimal(t):
        return _decimal(low, t.scale), _decimal(high, t.scale)
    return str(low), str(high)


def _bound_texts(column: ColumnsStatistics, t: pa.DataType, prefix_length: int) -> tuple[pa.Array, pa.Array]:
    """Return the bounds of a column of many files as JSON, null for those that are left out; see `_bounds`."""
    types, lows, highs = pa.types, column.lows, column.highs
    if types.is_null(t):
        return nulls_of(len(lows), pa.string()), nulls_of(len(highs), pa.string())
    if types.is_integer(t):
        return pc.cast(lows, pa.string()), pc.cast(highs, pa.string())
    if types.is_date(t):
        return _day_texts(lows), _day_texts(highs)
    if types.is_timestamp(t):
        zone = "Z" if t.tz else ""
        return _millis_texts(lows, 1, zone), _millis_texts(highs, -1, zone)
    if types.is_string(t) and (plain := _plain_texts(lows, highs, prefix_length)) is not None:
        return plain
    pairs = [
        (None, None)
        if low is None or high is None
        else _bounds(ColumnStatistics(column.path, None, _value(low, t), _value(high, t)), t, prefix_length)
        for low, high in zip(lows.to_pylist(), highs.to_pylist(), strict=True)
    ]
    return strings_of([low for low, _ in pairs]), strings_of([high for _, high in pairs])


def _value(value: Any, t: pa.DataType) -> Any:
    is_stored = pa.types.is_decimal(t) and isinstance(value, bytes)
    return int.from_bytes(value, "big", signed=True) if is_stored else value


def _day_texts(days: pa.Array) -> pa.Array:
    values, known = _numbers(days)
    known &= (values >= _FIRST_DAY) & (values <= _LAST_DAY)
    dates = number_array(np.where(known, values, 0).astype(np.int32), pa.date32(), known)
    return pc.binary_join_element_wise('"', pc.cast(dates, pa.string()), '"', "")


def _millis_texts(micros: pa.Array, sign: int, zone: str) -> pa.Array:
    """Return texts of times, rounded down to ms, or up if ``sign`` is -1."""
    values, known = _numbers(micros)
    millis = sign * ((sign * values) // 1000)
    known &= (millis >= _FIRST_DAY * _DAY_MS) & (millis < (_LAST_DAY + 1) * _DAY_MS)
    times = number_array(np.where(known, millis, 0), pa.timestamp("ms"), known)
    return pc.binary_join_element_wise('"', pc.replace_substring(pc.cast(times, pa.string()), " ", "T"), f'{zone}"', "")


def _numbers(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return int64_values(pc.fill_null(values, 0)), is_valid(values)


def _plain_texts(lows: pa.Array, highs: pa.Array, prefix_length: int) -> tuple[pa.Array, pa.Array] | None:
    """Return bounds of texts that JSON spells as they are; None if there is a longer one, or one with escapes."""
    try:
        least, most = (pc.cast(pc.cast(v, pa.large_string()), pa.string()) for v in (lows, highs))
    except pa.ArrowInvalid:
        return None
    longest = pc.max(pc.utf8_length(most)).as_py() or 0
    if longest > prefix_length or any(pc.any(pc.match_substring_regex(v, _ESCAPES)).as_py() for v in (least, most)):
        return None
    least = pc.utf8_slice_codeunits(least, 0, prefix_length)
    low, high = (pc.binary_join_element_wise('"', v, '"', "") for v in (least, most))
    return low, high


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
