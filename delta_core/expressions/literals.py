"""Constants: the type of a Python value, Spark's reading of text, and casts of single values.

The same readers serve ``DATE '...'`` in SQL text, a literal that meets a column of another type, and the odd
forms of ``cast(string column as ...)`` that Arrow's own parsers do not support.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Cast, Expression, Literal
from delta_core.expressions.coercion import as_decimal, canonical, decimal_type, is_open
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.logical import MOST_DIGITS, LogicalType, facts, open_type
from delta_core.schema.types import DataType, PrimitiveType, spark_name

__all__ = [
    "INTEGRAL_RANGES",
    "TRIMMED",
    "as_constant_of",
    "cast_literal",
    "literal_type",
    "negated_number",
    "parse_boolean",
    "parse_date",
    "parse_decimal_text",
    "parse_double",
    "parse_integer",
    "parse_timestamp",
    "parse_units",
    "stored_units",
    "to_microseconds",
    "typed",
]

#: The least and greatest values of Delta's whole numbers.
INTEGRAL_RANGES = {name: facts(PrimitiveType(name)).limits for name in ("byte", "short", "integer", "long")}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a timestamp without a zone)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_US = 86_400_000_000
#: The first and the last microsecond of the years 1 to 9999.
_FIRST_US = (dt.date.min.toordinal() - _EPOCH.toordinal()) * _DAY_US
_LAST_US = (dt.date.max.toordinal() + 1 - _EPOCH.toordinal()) * _DAY_US - 1
#: The bounds of whole numbers of 32 and 64 bits.
_STORED = {32: INTEGRAL_RANGES["integer"], 64: INTEGRAL_RANGES["long"]}
#: The characters that Spark's casts trim: ASCII control characters and the blank.
TRIMMED = "".join(map(chr, (*range(0x21), 0x7F)))
_EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?"
_DATE = lazy_pattern(
    r"(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_TIMESTAMP = lazy_pattern(
    rf"(?P<year>[+-]?\d{{4,6}})(?:-(?P<month>\d{{1,2}})(?:-(?P<day>\d{{1,2}})"
    rf"(?:[ T]{_CLOCK}\s*(?P<zone>[A-Za-z+-].*)?)?)?)?",
    re.ASCII,
)
_TIME = lazy_pattern(_CLOCK, re.ASCII)
_OFFSET = lazy_pattern(r"(?:UTC|GMT|UT)?(?:([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?)?", re.ASCII)
_NUMBER = lazy_pattern(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NAMED_DOUBLES = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_TRUE, _FALSE = frozenset(("t", "true", "y", "yes", "1")), frozenset(("f", "false", "n", "no", "0"))


_PYTHON_TYPES: tuple[tuple[Any, DataType], ...] = (
    (float, PrimitiveType("double")),
    (str, PrimitiveType("string")),
    ((bytes, bytearray, memoryview), PrimitiveType("binary")),
    (dt.date, PrimitiveType("date")),
    (dt.time, open_type(pa.time64("us"))),
    (dt.timedelta, open_type(pa.duration("us"))),
)


def literal_type(value: Any) -> DataType:
    """Return the type that a Python value has on its own.

    Raises
    ------
    ExpressionError
        For a value of a Python type that is not known.
    """
    if value is None:
        return PrimitiveType("void")
    if isinstance(value, bool):
        return PrimitiveType("boolean")
    if isinstance(value, int):
        if _fits(value, "integer") or _fits(value, "long"):
            return PrimitiveType("integer" if _fits(value, "integer") else "long")
        return _decimal_literal_type(decimal.Decimal(value))
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return _decimal_literal_type(value)
    if isinstance(value, dt.datetime):
        return PrimitiveType("timestamp_ntz" if value.tzinfo is None else "timestamp")
    for kind, found in _PYTHON_TYPES:
        if isinstance(value, kind):
            return found
    raise ExpressionError(
        f"Found a constant of Python type {type(value).__name__}; expected a number, text, bytes, bool, date, "
        "datetime, time, timedelta, Decimal or None.",
        value=value,
    )


def negated_number(value: float | decimal.Decimal) -> float | decimal.Decimal:
    """Return the negative of a constant, with all digits: ``-`` rounds decimals to the 28 of Python's context."""
    return value.copy_negate() if isinstance(value, decimal.Decimal) and value else -value


def _decimal_literal_type(value: decimal.Decimal) -> DataType:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision, scale = max(len(digits) + max(exponent, 0), -exponent, 1), max(-exponent, 0)
    if precision > MOST_DIGITS:
        raise ExpressionError(
            f"The number {value} needs {precision} digits; a decimal has at most {MOST_DIGITS}.", value=value
        )
    return decimal_type(precision, scale, MOST_DIGITS)


def typed(value: Literal) -> Literal:
    """Return the constant with its type set, its value a plain Python one.

    A time, a duration, and a timestamp whose unit is not the microsecond are whole numbers of their units.
    """
    if value.type is not None:
        kind = canonical(value.type)
        if is_open(kind) and not isinstance(value.value, int):
            return _of_open_type(value.value, kind)
        return value if value.type == kind else Literal(value.value, kind)
    plain = value.value
    if hasattr(plain, "as_py"):
        if _is_time(plain.type):
            return _of_units(plain)
        plain = plain.as_py()
    elif hasattr(plain, "item") and hasattr(plain, "dtype"):
        if plain.dtype.kind in "mM":
            return typed(Literal(pa.scalar(plain)))
        plain = plain.item()
    if isinstance(plain, (bytearray, memoryview)):
        plain = bytes(plain)
    kind = literal_type(plain)
    return _of_open_type(plain, kind) if is_open(kind) else Literal(plain, kind)


def _is_time(t: pa.DataType) -> bool:
    """Return whether Python can't hold every value of an Arrow type of times."""
    return bool(pa.types.is_timestamp(t) or pa.types.is_time(t) or pa.types.is_duration(t))


def _of_units(scalar: Any) -> Literal:
    """Return an Arrow scalar of times as a whole number of its units, or as a datetime if that holds it."""
    kind = canonical(open_type(scalar.type))
    found = Literal(scalar.value if scalar.is_valid else None, kind)
    of = facts(kind)
    if of.family != "timestamp" or found.value is None:
        return found
    plain = _as_datetime(found.value, of)
    return found if plain is None else Literal(plain, literal_type(plain))


def _as_datetime(units: int, of: LogicalType) -> dt.datetime | None:
    """Return a timestamp as a datetime; None if that has no such year, or it has too few digits."""
    us = _rescaled(units, of.per_day, _DAY_US)
    if us is None or not _FIRST_US <= us <= _LAST_US:
        return None
    local = _EPOCH + us * _MICROSECOND
    return local.replace(tzinfo=dt.UTC) if of.is_zoned else local


def _rescaled(units: int, per_day: int, into: int) -> int | None:
    """Return a time in other units; None if it is no whole number of them."""
    whole, rest = divmod(units * into, per_day)
    return None if rest else whole


def _of_open_type(value: Any, kind: DataType) -> Literal:
    """Return a Python value as a constant of a type that Delta does not have; ExpressionError if it is none."""
    of = facts(kind)
    if value is None or of.family == "decimal":
        return Literal(value, kind)
    us = _python_us(value, of.family)
    found = None if us is None else _rescaled(us, _DAY_US, of.per_day)
    if found is None:
        raise ExpressionError(f"Found the constant {value!r}; expected a value of {spark_name(kind)}.", value=value)
    return Literal(found, kind)


def _python_us(value: Any, family: str) -> int | None:
    """Return a Python value of a family of times in microseconds; None for a value of another kind."""
    if isinstance(value, dt.datetime) and family == "timestamp":
        return to_microseconds(value)
    if isinstance(value, dt.time) and family == "time" and value.tzinfo is None:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return value // _MICROSECOND if isinstance(value, dt.timedelta) and family == "duration" else None


def as_constant_of(value: Literal, target: DataType) -> Literal | None:
    """Return a typed constant as one of a type that Delta does not have; None if that type does not hold it exactly.

    Whole numbers become unsigned ones, and times, durations and timestamps those of another unit.
    """
    if not is_open(target) or value.value is None or value.type is None:
        return None
    source, into = facts(value.type), facts(target)
    if (source.family, into.family) == ("integer", "integer"):
        found: int | None = value.value
    elif source.family == "interval" and into.family == "duration" and source.arrow == pa.duration("us"):
        found = _rescaled(value.value, _DAY_US, into.per_day)
    elif into.per_day and source.per_day and _has_instants(source, into):
        found = _rescaled(stored_units(value, source), source.per_day, into.per_day)
    else:
        return None
    low, high = into.limits if into.family == "integer" else _STORED[into.arrow.bit_width]
    return Literal(found, target) if found is not None and low <= found <= high else None


def _has_instants(a: LogicalType, b: LogicalType) -> bool:
    return a.family == b.family or {a.family, b.family} == {"date", "timestamp"}


def stored_units(value: Literal, of: LogicalType) -> int:
    """Return a constant date, time, timestamp or duration as a whole number of the units of its type."""
    if of.family == "date" and isinstance(value.value, dt.date):
        return value.value.toordinal() - _EPOCH.toordinal()
    return to_microseconds(value.value)


def cast_literal(value: Literal, target: DataType) -> Expression:
    """Cast a typed constant, at once if the cast is one of Spark's usual ones, else as a `Cast`.

    Raises
    ------
    ExpressionError
        For text that does not read as the target type, and for a number that overflows it.
    """
    source = value.type
    assert source is not None
    if value.value is None or source == target:
        return Literal(value.value, target)
    exact = as_constant_of(value, target)
    if exact is not None:
        return exact
    into = facts(target)
    if source == PrimitiveType("string") and into.family in _READERS:
        return Literal(_READERS[into.family](value.value, target), target)
    converted = _convert(value.value, facts(source), target)
    return Cast(value, target) if converted is NotImplemented else Literal(converted, target)


def _convert(value: Any, source: LogicalType, target: DataType) -> Any:
    into = facts(target)
    pair = source.family, into.family
    if pair == ("integer", "integer"):
        return _in_range(value, target)
    if pair in (("integer", "decimal"), ("decimal", "decimal")):
        return _fit_decimal(decimal.Decimal(value), target)
    if into.family == "floating":
        return _to_double(value, source) if into.bits == 64 else NotImplemented
    is_plain = not is_open(target) and isinstance(value, dt.date)
    return _to_timestamp(value, target) if is_plain and into.family == "timestamp" else NotImplemented


def _to_double(value: Any, source: LogicalType) -> Any:
    if source.family == "decimal" or (source.family == "integer" and abs(value) <= 2**53):
        return float(value)
    if source.family == "floating":
        import numpy as np

        return float(np.float32(value))
    return NotImplemented


def _to_timestamp(value: dt.date, target: DataType) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    utc = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return utc if facts(target).is_zoned else utc.replace(tzinfo=None)


def _overflow(value: Any, target: DataType) -> ExpressionError:
    return ExpressionError(f"The number {value} does not fit {spark_name(target)}.", condition="CAST_OVERFLOW")


def _fits(value: int, name: str) -> bool:
    low, high = INTEGRAL_RANGES[name]
    return low <= value <= high


def _in_range(value: int, target: DataType) -> int:
    low, high = facts(target).limits
    if not low <= value <= high:
        raise _overflow(value, target)
    return value


def _fit_decimal(value: decimal.Decimal, target: DataType) -> decimal.Decimal:
    precision, scale = as_decimal(target) or (38, 0)
    rounded = value.quantize(decimal.Decimal(1).scaleb(-scale), decimal.ROUND_HALF_UP, _EXACT)
    if len(rounded.as_tuple().digits) > precision and rounded:
        raise _overflow(value, target)
    return rounded


# --- text to values ------------------------------------------------------------------------


def _invalid(text: str, target: str) -> ExpressionError:
    return ExpressionError(
        f"The text {text[:100]!r} can't be cast to {target}. Correct it, or use try_cast to get null instead.",
        condition="CAST_INVALID_INPUT",
        value=text,
        type=target,
    )


def parse_integer(text: str, target: DataType) -> int:
    """Read an integer as ANSI casts do: blanks around it, a sign, digits.

    Raises
    ------
    ExpressionError
        If the text is no integer, or one that the type can't hold.
    """
    trimmed = text.strip(TRIMMED)
    if not re.fullmatch(r"[+-]?[0-9]+", trimmed):
        raise _invalid(text, spark_name(target))
    return _in_range(int(trimmed), target)


def parse_double(text: str, target: DataType) -> float:
    """Read a double: a number with optional exponent and d or f at its end, ``inf``, ``infinity`` or ``nan``.

    Raises
    ------
    ExpressionError
        If the text is no number.
    """
    trimmed = text.strip(TRIMMED)
    named = _NAMED_DOUBLES.get(trimmed.lower())
    if named is not None:
        return named
    number = trimmed[:-1] if trimmed[-1:] in ("d", "D", "f", "F") else trimmed
    if not _NUMBER.fullmatch(number):
        raise _invalid(text, spark_name(target))
    return float(number)


def parse_decimal_text(text: str, target: DataType) -> decimal.Decimal:
    """Read a decimal and round it half up to the target's scale.

    Raises
    ------
    ExpressionError
        If the text is no number, or one with more digits than the type has.
    """
    trimmed = text.strip(TRIMMED)
    if not _NUMBER.fullmatch(trimmed):
        raise _invalid(text, spark_name(target))
    number = decimal.Decimal(trimmed)
    if number and abs(number.adjusted()) > 100:
        if number.adjusted() > 0:
            raise _overflow(trimmed[:60], target)
        number = decimal.Decimal(0)
    return _fit_decimal(number, target)


def parse_boolean(text: str, target: DataType) -> bool:
    """Read t, true, y, yes, 1 or f, false, n, no, 0, in any case.

    Raises
    ------
    ExpressionError
        For any other text.
    """
    trimmed = text.strip(TRIMMED).lower()
    if trimmed in _TRUE or trimmed in _FALSE:
        return trimmed in _TRUE
    raise _invalid(text, spark_name(target))


def parse_date(text: str, target: DataType) -> dt.date:
    """Read ``yyyy[-m[m][-d[d]]]``, what follows a blank or T ignored; years 1 to 9999.

    Raises
    ------
    ExpressionError
        If the text is no date of these years.
    """
    match = _DATE.fullmatch(text.strip(TRIMMED))
    try:
        if match is None:
            raise _invalid(text, spark_name(target))
        return dt.date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    except ValueError as e:
        raise _invalid(text, spark_name(target)) from e


def parse_timestamp(text: str, target: DataType) -> dt.datetime:
    """Read ``yyyy[-m[m][-d[d][( |T)h[h][:m[m][:s[s][.fraction]]][zone]]]]``; digits below microseconds are cut.

    Without a zone the time is UTC's. For TIMESTAMP_NTZ the zone is passed over and the result has none.

    Raises
    ------
    ExpressionError
        If the text is no timestamp of the years 1 to 9999, or its zone does not exist.
    """
    match = _TIMESTAMP.fullmatch(text.strip(TRIMMED))
    try:
        if match is None:
            raise _invalid(text, spark_name(target))
        found = match.groupdict()
        local = dt.datetime(  # noqa: DTZ001 (wall clock, until its zone is known)
            int(found["year"]),
            int(found["month"] or 1),
            int(found["day"] or 1),
            int(found["hour"] or 0),
            int(found["minute"] or 0),
            int(found["second"] or 0),
            int(((found["fraction"] or "") + "000000")[:6]),
        )
        zone = _zone(found["zone"])
        if not facts(target).is_zoned:
            return local
        return local.replace(tzinfo=zone).astimezone(dt.UTC)
    except (ValueError, OverflowError, KeyError) as e:  # KeyError: a zone that is not known
        raise e if isinstance(e, ExpressionError) else _invalid(text, spark_name(target)) from e


def _zone(text: str | None) -> dt.tzinfo:
    if text is None or text == "Z":
        return dt.UTC
    match = _OFFSET.fullmatch(text.strip())
    if match is None:
        # most literals name no zone, and its import takes as long as a table takes to open
        from zoneinfo import ZoneInfo

        return ZoneInfo(text.strip())
    sign, hours, minutes, seconds = match.groups()
    if sign is None:
        return dt.UTC
    offset = dt.timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if offset > dt.timedelta(hours=18):
        raise ValueError(text)
    return dt.timezone(-offset if sign == "-" else offset)


def to_microseconds(value: Any) -> int:
    """Return a timestamp constant as microseconds since the epoch."""
    if isinstance(value, dt.datetime):
        naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (naive - _EPOCH) // _MICROSECOND
    return int(value)


def parse_units(text: str, target: DataType) -> int:
    """Read a timestamp or a time of day as a whole number of its type's units, rounded down.

    Raises
    ------
    ExpressionError
        If the text is no such time, or one that the type can't hold.
    """
    of = facts(target)
    if of.family == "time":
        match = _TIME.fullmatch(text.strip(TRIMMED))
        parts = [] if match is None else [int(match[name] or 0) for name in ("hour", "minute", "second")]
        if match is None or match["minute"] is None or parts[0] > 23 or max(parts[1:]) > 59:
            raise _invalid(text, spark_name(target))
        seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2]
    else:
        match = _TIMESTAMP.fullmatch(text.strip(TRIMMED))
        zoned = PrimitiveType("timestamp" if of.is_zoned else "timestamp_ntz")
        seconds = to_microseconds(parse_timestamp(text, zoned)) // 10**6
        assert match is not None  # or it would not have been read
    units = (seconds * 10**9 + int(((match["fraction"] or "") + "0" * 9)[:9])) * of.per_day // (_DAY_US * 1000)
    if not _STORED[64][0] <= units <= _STORED[64][1]:
        raise _overflow(text[:60], target)
    return units


def _read_timestamp(text: str, target: DataType) -> Any:
    return parse_units(text, target) if is_open(target) else parse_timestamp(text, target)


#: By the family of a type, how a text is read as a value of it.
_READERS: dict[str, Any] = {
    "integer": parse_integer,
    "floating": parse_double,
    "decimal": parse_decimal_text,
    "boolean": parse_boolean,
    "date": parse_date,
    "timestamp": _read_timestamp,
    "time": parse_units,
    "binary": lambda text, _: text.encode(),
}
