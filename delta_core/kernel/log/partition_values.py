"""Partition values: the log's text to typed Arrow columns.

Each distinct text is parsed once: by Arrow's own parsers if they take it, else one by one for the rarer
forms (offsets of a day, years beyond 9999, zone-less times in a zone with gaps). The empty string is null for
every type. Protocol: Partition Value Serialization.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError, LogError, SchemaError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, is_valid, one_array, scalar_of, strings_of, values_of
from delta_core.kernels.decimals import read_decimals
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.types import BASE_TYPES, TIMESTAMP_NTZ, DataType, PrimitiveType, TypeDef, parse_decimal

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["parse_dictionary", "parse_partition_values", "time_zone"]

_TYPES: Mapping[str, TypeDef] = {
    **BASE_TYPES,
    **dict.fromkeys((TIMESTAMP_NTZ.name, *TIMESTAMP_NTZ.aliases), TIMESTAMP_NTZ),
}
_DAY_US = 86_400_000_000
_YEAR_9999_US = 253_370_764_800_000_000
_DATE = lazy_pattern(r"([+-]?\d{4,6})-(\d{1,2})-(\d{1,2})(?:[T ].*)?\Z", re.ASCII)
_TIME = lazy_pattern(
    r"([+-]?\d{4,6})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?(?::?\d{2})?)?\Z",
    re.ASCII,
)
#: Text that ends in a zone: a time of day, then Z or an offset.
_ZONED = r"[0-9]:[0-9]{1,2}(:[0-9.]+)?\s*(Z|UTC|GMT|[+-][0-9:]+)$"


def parse_partition_values(
    text: pa.Array | pa.ChunkedArray,
    type: DataType,
    zone: str = "UTC",
    *,
    column: str = "",
    types: Mapping[str, TypeDef] = _TYPES,
) -> pa.Array:
    """Parse one partition column.

    Parameters
    ----------
    text : pyarrow string array, **length n**
        Plain or dictionary encoded, as the log specifies; null and the empty string are null.
    type : DataType
        The column's type; it must be primitive.
    zone : str
        The zone of timestamps without one: the writer's zone.
    column : str
        For the message only.
    types : Mapping of str to TypeDef
        The primitive types of the table, by name.

    Returns
    -------
    pyarrow.Array, **length n**
        Of the type's Arrow type; not dictionary encoded.

    Raises
    ------
    LogError
        A text that is no value of the type; ``column`` and ``value`` return which.
    SchemaError
        A type that can't partition a table.
    """
    flat = one_array(text)
    coded = flat if pa.types.is_dictionary(flat.type) else pc.dictionary_encode(flat)
    return pc.take(parse_dictionary(coded, type, zone, column=column, types=types), coded.indices)


def parse_dictionary(
    coded: pa.DictionaryArray,
    type: DataType,
    zone: str = "UTC",
    *,
    column: str = "",
    types: Mapping[str, TypeDef] = _TYPES,
    rows: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Parse the dictionary of a partition column; see `parse_partition_values`.

    Parameters
    ----------
    coded : pyarrow.DictionaryArray
        The column's texts.
    type, zone, column, types
        As of `parse_partition_values`.
    rows : bool[n], optional
        The rows that count: a removed file may have a value that the column's type of today can't hold.

    Returns
    -------
    pyarrow.Array, **as long as the dictionary**
        Null if no row that counts has the value: a dictionary may hold another column's texts.

    Raises
    ------
    LogError
        If a text is no value of the type; ``column`` and ``value`` return which.
    SchemaError
        If the type can't partition a table.
    """
    if not isinstance(type, PrimitiveType):
        raise _not_partitioning(type, column)
    parse, arrow = _codec(type, types, column)
    used = np.zeros(len(coded.dictionary), np.bool_)
    counts = is_valid(coded.indices)
    used[values_of(coded)[counts if rows is None else counts & rows]] = True
    distinct = pc.cast(coded.dictionary, pa.string())
    is_used = pc.and_(bool_array(used), pc.not_equal(distinct, scalar_of("", pa.string())))
    return parse(pc.if_else(is_used, distinct, pa.nulls(1, pa.string())[0]), arrow, zone, column)


def time_zone(name: str) -> tzinfo:
    """Return the zone of a name.

    Parameters
    ----------
    name : str
        A name of the IANA database, such as ``UTC``.

    Raises
    ------
    InvalidArgumentError
        For a name that is not known.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise InvalidArgumentError(
            f"Time zone {name!r} is not known; pass a name such as 'UTC' or 'Europe/Paris'."
        ) from e


_Codec = Callable[[pa.Array, pa.DataType, str, str], pa.Array]


def _codec(type: PrimitiveType, types: Mapping[str, TypeDef], column: str) -> tuple[_Codec, pa.DataType]:
    if parse_decimal(type.type) is not None:
        return _parse_decimals, type.to_arrow()
    found = types.get(type.type)
    codec = _CODECS.get(found.codec) if found is not None else None
    if found is None or codec is None:
        raise _not_partitioning(type, column)
    return codec, found.arrow


def _not_partitioning(type: DataType, column: str) -> SchemaError:
    return SchemaError(
        f"Partition column {column!r} has type {type.type!r}; only primitive types with an order partition a table.",
        column=column,
        type=type.type,
    )


def _each(distinct: pa.Array, arrow: pa.DataType, column: str, parse: Callable[[str], Any]) -> pa.Array:
    """Parse value by value; ``parse`` raises ValueError for a text that it can't read."""
    out = []
    for value in distinct.to_pylist():
        try:
            out.append(None if value is None else parse(value))
        except (ValueError, OverflowError) as e:
            raise LogError(
                f"Partition column {column!r} has the value {value!r}, which is not a value of its type. "
                "The commit that added the file is wrong.",
                column=column,
                value=value,
            ) from e
    return pa.array(out, arrow)


def _parse_cast(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    try:
        return pc.cast(distinct, arrow)
    except pa.ArrowInvalid:
        return _each(distinct, arrow, column, lambda v: _cast_one(v.strip(), arrow))


def _cast_one(value: str, arrow: pa.DataType) -> Any:
    if pa.types.is_integer(arrow) and value.startswith("+"):
        value = value[1:]
    try:
        return pc.cast(pa.scalar(value), arrow).as_py()
    except pa.ArrowInvalid as e:
        raise ValueError(str(e)) from e


def _parse_decimals(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    try:
        return read_decimals(distinct, arrow)
    except pa.ArrowInvalid:
        return _each(
            distinct, arrow, column, lambda v: read_decimals(strings_of([v.strip()], pa.string()), arrow)[0].as_py()
        )


def _parse_string(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    return pc.cast(distinct, arrow)


def _parse_void(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    return pa.nulls(len(distinct), arrow)


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar, any year."""
    cycle, short = divmod(year, 400)
    return datetime(short or 400, month, day).toordinal() - 719_163 + (cycle - (short == 0)) * 146_097  # noqa: DTZ001 (a date)


def _parse_date(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    try:
        return pc.cast(distinct, arrow)
    except pa.ArrowInvalid:
        return pc.cast(_each(distinct, pa.int32(), column, _date), arrow)


def _date(value: str) -> int:
    match = _DATE.match(value.strip())
    if match is None:
        raise ValueError(value)
    return _days(int(match[1]), int(match[2]), int(match[3]))


def _parse_timestamp(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    try:
        if zone == "UTC":
            return pc.cast(_parse_utc(distinct), arrow)
    except pa.ArrowInvalid:
        pass
    local = time_zone(zone)
    return pc.cast(
        pc.cast(_each(distinct, pa.int64(), column, lambda v: _instant(v, local)), pa.timestamp("us")), arrow
    )


def _parse_utc(distinct: pa.Array) -> pa.Array:

    zoned = pc.match_substring_regex(distinct, _ZONED)
    with_zone = pc.cast(pc.if_else(zoned, distinct, None), pa.timestamp("us", "UTC"))
    without = pc.cast(pc.cast(pc.if_else(zoned, None, distinct), pa.timestamp("us")), pa.timestamp("us", "UTC"))
    return pc.coalesce(with_zone, without)


def _parse_timestamp_ntz(distinct: pa.Array, arrow: pa.DataType, zone: str, column: str) -> pa.Array:
    try:
        return pc.cast(distinct, arrow)
    except pa.ArrowInvalid:
        return pc.cast(_each(distinct, pa.int64(), column, lambda v: _wall_clock(v)[0]), arrow)


def _wall_clock(value: str) -> tuple[int, str | None]:
    """Return the microseconds that the text's fields make, read as UTC, and its zone; more digits are cut."""
    match = _TIME.match(value.strip())
    if match is None:
        raise ValueError(value)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if int(hour or 0) > 23 or int(minute or 0) > 59 or int(second or 0) > 59:
        raise ValueError(value)
    seconds = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    return _days(int(year), int(month), int(day)) * _DAY_US + seconds * 1_000_000 + micros, zone


def _instant(value: str, local: tzinfo) -> int:
    micros, zone = _wall_clock(value)
    if zone is not None:
        return micros - _offset_seconds(zone) * 1_000_000
    # zoneinfo ends at year 9999; beyond, the rules repeat every 400 years.
    cycle = max(0, (micros - _YEAR_9999_US) // (146_097 * _DAY_US) + 1)
    shifted = datetime(1970, 1, 1) + timedelta(microseconds=micros - cycle * 146_097 * _DAY_US)  # noqa: DTZ001 (wall clock)
    offset = shifted.replace(tzinfo=local).utcoffset() or timedelta()
    return micros - offset // timedelta(microseconds=1)


def _offset_seconds(zone: str) -> int:
    if zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    digits = digits.rjust(2, "0") if len(digits) < 3 else digits
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:6] or 0)
    if hours > 18 or minutes > 59 or seconds > 59:
        raise ValueError(zone)
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)


#: By the names that `types.TypeDef.codec` uses.
_CODECS: Mapping[str, _Codec] = {
    "boolean": _parse_cast,
    "integer": _parse_cast,
    "floating": _parse_cast,
    "string": _parse_string,
    "binary": _parse_string,
    "date": _parse_date,
    "timestamp": _parse_timestamp,
    "timestamp_ntz": _parse_timestamp_ntz,
    "void": _parse_void,
}
