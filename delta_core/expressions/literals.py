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

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Cast, Expression, Literal
from delta_core.expressions.coercion import as_decimal, canonical, name_of, spark_name
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.types import DataType, PrimitiveType

__all__ = [
    "INTEGRAL_RANGES",
    "TRIMMED",
    "cast_literal",
    "literal_type",
    "negated_number",
    "parse_boolean",
    "parse_date",
    "parse_decimal_text",
    "parse_double",
    "parse_integer",
    "parse_timestamp",
    "to_microseconds",
    "typed",
]

INTEGRAL_RANGES = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a timestamp without a zone)
_MICROSECOND = dt.timedelta(microseconds=1)
#: What Spark's casts trim: ASCII control characters and the blank.
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
    for kind, name in ((float, "double"), (str, "string"), ((bytes, bytearray, memoryview), "binary")):
        if isinstance(value, kind):
            return PrimitiveType(name)
    if isinstance(value, dt.datetime):
        return PrimitiveType("timestamp_ntz" if value.tzinfo is None else "timestamp")
    if isinstance(value, dt.date):
        return PrimitiveType("date")
    raise ExpressionError(
        f"Found a constant of Python type {type(value).__name__}; expected a number, text, bytes, bool, date, "
        "datetime, Decimal or None.",
        value=value,
    )


def negated_number(value: float | decimal.Decimal) -> float | decimal.Decimal:
    """Return the negative of a constant, with all digits: ``-`` rounds decimals to the 28 of Python's context."""
    return value.copy_negate() if isinstance(value, decimal.Decimal) and value else -value


def _decimal_literal_type(value: decimal.Decimal) -> DataType:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision, scale = max(len(digits) + max(exponent, 0), -exponent, 1), max(-exponent, 0)
    if precision > 38:
        raise ExpressionError(f"The number {value} needs {precision} digits; a decimal has at most 38.", value=value)
    return PrimitiveType(f"decimal({precision},{scale})")


def typed(value: Literal) -> Literal:
    """Return the constant with its type set, its value a plain Python one."""
    if value.type is not None:
        return value if value.type == canonical(value.type) else Literal(value.value, canonical(value.type))
    plain = value.value
    if hasattr(plain, "as_py"):
        plain = plain.as_py()
    elif hasattr(plain, "item") and hasattr(plain, "dtype"):
        plain = plain.item()
    if isinstance(plain, (bytearray, memoryview)):
        plain = bytes(plain)
    return Literal(plain, literal_type(plain))


def cast_literal(value: Literal, target: DataType) -> Expression:
    """Cast a typed constant, at once if the cast is one of Spark's usual ones, else as a `Cast`.

    Raises
    ------
    ExpressionError
        For text that does not read as the target type, and for a number that overflows it.
    """
    source, name = value.type, name_of(target)
    assert source is not None
    if value.value is None or source == target:
        return Literal(value.value, target)
    if source == PrimitiveType("string") and name in _READERS:
        return Literal(_READERS[name](value.value, target), target)
    converted = _convert(value.value, name_of(source), target)
    return Cast(value, target) if converted is NotImplemented else Literal(converted, target)


def _convert(value: Any, source: str, target: DataType) -> Any:
    name = name_of(target)
    integral = source in INTEGRAL_RANGES
    if integral and name in INTEGRAL_RANGES:
        return _in_range(value, target)
    if (integral or source == "decimal") and name == "decimal":
        return _fit_decimal(decimal.Decimal(value), target)
    if integral and name == "double" and abs(value) <= 2**53:
        return float(value)
    if source == "decimal" and name == "double":
        return float(value)
    if source == "float" and name == "double":
        import numpy as np

        return float(np.float32(value))
    if source == "date" and name in ("timestamp", "timestamp_ntz") and isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC if name == "timestamp" else None)
    if source in ("timestamp", "timestamp_ntz") and isinstance(value, dt.datetime):
        utc = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        if name == "timestamp":
            return utc
        if name == "timestamp_ntz":
            return utc.replace(tzinfo=None)
    return NotImplemented


def _overflow(value: Any, target: DataType) -> ExpressionError:
    return ExpressionError(f"The number {value} does not fit {spark_name(target)}.", condition="CAST_OVERFLOW")


def _fits(value: int, name: str) -> bool:
    low, high = INTEGRAL_RANGES[name]
    return low <= value <= high


def _in_range(value: int, target: DataType) -> int:
    if not _fits(value, name_of(target)):
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
        if name_of(target) == "timestamp_ntz":
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


_READERS: dict[str, Any] = {
    **dict.fromkeys(INTEGRAL_RANGES, parse_integer),
    "double": parse_double,
    "float": parse_double,
    "decimal": parse_decimal_text,
    "boolean": parse_boolean,
    "date": parse_date,
    "timestamp": parse_timestamp,
    "timestamp_ntz": parse_timestamp,
    "binary": lambda text, _: text.encode(),
}
