"""Functions over dates and timestamps, on the proleptic Gregorian calendar, in UTC."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import CallInfo, Kernel, Maker, by_value, on_arrays, plain, to_numpy
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions.coercion import name_of
from delta_core.schema.logical import facts, open_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAKERS", "shift_months"]

_DAY_US = 86_400_000_000
_UNITS = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mm": "month",
    "mon": "month",
    "week": "week",
    "day": "day",
    "dd": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
}
_DATE_UNITS = ("year", "quarter", "month", "week")


def _as_days(x: Any) -> Any:
    return pc.cast(x, pa.int32())


def _part(name: str, **options: Any) -> Maker:
    return plain(lambda x: pc.cast(getattr(pc, name)(x, **options), pa.int32()))


def _add_days(sign: int) -> Maker:
    def kernel(date: Any, days: Any) -> Any:
        step = pc.add_checked if sign > 0 else pc.subtract_checked
        return pc.cast(step(_as_days(date), days), pa.date32())

    return plain(kernel)


def _date_diff(end: Any, start: Any) -> Any:
    return pc.subtract_checked(_as_days(end), _as_days(start))


def shift_months(time: pa.Array, months: pa.Array, sign: int = 1) -> pa.Array:
    """Add months to dates or timestamps; a day past the month's end becomes its last.

    Raises
    ------
    OverflowError
        For a timestamp that its unit does not hold.
    """
    (values, nulls), (steps, step_nulls) = to_numpy(time), to_numpy(months)
    mask = nulls if step_nulls is None else step_nulls if nulls is None else nulls | step_nulls
    per_day = facts(open_type(time.type)).per_day
    days, rest = np.divmod(values.astype(np.int64), per_day)
    dates = days.astype("M8[D]")
    month = dates.astype("M8[M]")
    day = dates - month.astype("M8[D]")
    target = month + (sign * steps.astype(np.int64)).astype("m8[M]")
    last = _ends_of(target)
    moved_days = np.minimum(target.astype("M8[D]") + day, last).astype(np.int64)
    if np.any(np.abs(moved_days) >= np.iinfo(np.int64).max // per_day):
        raise OverflowError("overflow: a timestamp is beyond what its unit holds")
    moved = moved_days * per_day + rest
    if per_day == 1:
        return pa.array(moved, pa.int64(), mask=mask).cast(pa.int32()).cast(time.type)
    return pa.array(moved, pa.int64(), mask=mask).cast(time.type)


def _ends_of(months: NDArray[Any]) -> NDArray[Any]:
    """Return the last day of each month."""
    return (months + np.timedelta64(1, "M")).astype("M8[D]") + np.timedelta64(-1, "D")


def _last_day(dates: pa.Array) -> pa.Array:
    values, nulls = to_numpy(dates)
    last = _ends_of(values.astype("M8[D]").astype("M8[M]"))
    return pa.array(last.astype(np.int64), pa.int64(), mask=nulls).cast(pa.int32()).cast(pa.date32())


def _nothing(into: pa.DataType) -> Kernel:
    return on_arrays(lambda *arrays: pa.nulls(len(arrays[0]), into))


def _trunc(call: CallInfo) -> Kernel:
    unit = _UNITS.get(str(call.constant(1)).lower())
    if unit not in _DATE_UNITS:
        return _nothing(pa.date32())
    return lambda date, _: pc.floor_temporal(date, unit=unit)


def _date_trunc(call: CallInfo) -> Kernel:
    unit = _UNITS.get(str(call.constant(0)).lower())
    if unit is None:
        return _nothing(pa.timestamp("us", "UTC"))
    return lambda _, time: pc.cast(pc.floor_temporal(time, unit=unit), pa.timestamp("us", "UTC"))


def _per(unit_us: int) -> Maker:
    """Return whole units since the epoch, floored."""

    def kernel(time: pa.Array) -> pa.Array:
        values, nulls = to_numpy(time)
        return pa.array(np.floor_divide(values, unit_us), mask=nulls)

    return plain(on_arrays(kernel))


def _from_units(unit_us: int) -> Maker:
    return plain(lambda x: pc.cast(pc.multiply_checked(x, unit_us), pa.timestamp("us", "UTC")))


def _make_date(year: int, month: int, day: int) -> dt.date:
    try:
        return dt.date(year, month, day)
    except ValueError as e:
        raise ExpressionError(
            f"make_date got {year}-{month}-{day}, which is no date.", condition="DATETIME_FIELD_OUT_OF_BOUNDS"
        ) from e


# --- patterns ------------------------------------------------------------------------------

_LETTERS = {
    "yyyy": ("%Y", r"(?P<Y>\d{4})"),
    "MM": ("%m", r"(?P<m>\d{2})"),
    "dd": ("%d", r"(?P<d>\d{2})"),
    "HH": ("%H", r"(?P<H>\d{2})"),
    "mm": ("%M", r"(?P<M>\d{2})"),
    "ss": ("%S", r"(?P<S>\d{2})"),
}


def _parse_pattern(call: CallInfo, pattern: Any) -> list[tuple[str, bool]]:
    """Split a datetime pattern into (text, whether it is a field); other letters are rejected by name."""
    out = []
    for quoted, letters, other in re.findall(r"'((?:[^']|'')*)'|([A-Za-z]+)|([^A-Za-z']+)", str(pattern)):
        if letters and letters not in _LETTERS:
            split = re.fullmatch("(?:yyyy|MM|dd|HH|mm|ss)+", letters)
            if split is None:
                raise UnsupportedExpressionError(
                    f"The datetime pattern {pattern!r} of {call.name!r} holds {letters!r}; known: "
                    f"{', '.join(_LETTERS)}.",
                    function=call.name,
                    pattern=pattern,
                )
            out += [(part, True) for part in re.findall("yyyy|MM|dd|HH|mm|ss", letters)]
        elif letters:
            out.append((letters, True))
        else:
            out.append((other or quoted.replace("''", "'") or "'", False))
    return out


def _date_format(call: CallInfo) -> Kernel:
    if call.constant(1) is None:
        return _nothing(pa.string())
    parts = _parse_pattern(call, call.constant(1))
    pattern = "".join(_LETTERS[text][0] if is_field else text.replace("%", "%%") for text, is_field in parts)

    def kernel(time: Any, _: Any) -> Any:
        # Whole seconds, because %S prints a fraction otherwise.
        return pc.strftime(pc.cast(pc.floor_temporal(time, unit="second"), pa.timestamp("s")), format=pattern)

    return kernel


def _parse_text(call: CallInfo) -> Kernel:
    """Read text by a pattern of fixed-width fields."""
    into = pc.evaluated_type(call.result)
    if call.constant(1) is None:
        return _nothing(into)
    parts = _parse_pattern(call, call.constant(1))
    regex = re.compile(
        "".join(_LETTERS[text][1] if is_field else re.escape(text) for text, is_field in parts), re.ASCII
    )

    def read(text: str) -> Any:
        match = regex.fullmatch(text)
        found = {k: int(v) for k, v in match.groupdict().items()} if match else {}
        try:
            if match is None:
                raise ValueError(text)
            time = dt.datetime(
                found.get("Y", 1970),
                found.get("m", 1),
                found.get("d", 1),
                found.get("H", 0),
                found.get("M", 0),
                found.get("S", 0),
                tzinfo=dt.UTC,
            )
        except ValueError as e:
            raise ExpressionError(
                f"The text {text[:60]!r} does not read by the pattern {call.constant(1)!r}.",
                condition="CANNOT_PARSE_TIMESTAMP",
            ) from e
        return time.date() if name_of(call.result) == "date" else time

    return by_value(lambda text, _: read(text), into)


MAKERS: Mapping[str, Maker] = {
    "year": _part("year"), "quarter": _part("quarter"), "month": _part("month"), "day": _part("day"),
    "dayofweek": _part("day_of_week", count_from_zero=False, week_start=7), "weekday": _part("day_of_week"),
    "dayofyear": _part("day_of_year"), "weekofyear": _part("iso_week"),
    "hour": _part("hour"), "minute": _part("minute"), "second": _part("second"),
    "date_add": _add_days(1), "date_sub": _add_days(-1), "datediff": plain(_date_diff),
    "add_months": plain(on_arrays(shift_months)), "last_day": plain(on_arrays(_last_day)),
    "trunc": _trunc, "date_trunc": _date_trunc, "date_format": _date_format,
    "to_date": _parse_text, "to_timestamp": _parse_text,
    "unix_timestamp": _per(1_000_000), "unix_seconds": _per(1_000_000), "unix_millis": _per(1_000),
    "unix_micros": _per(1),
    "timestamp_seconds": _from_units(1_000_000), "timestamp_millis": _from_units(1_000),
    "timestamp_micros": _from_units(1),
    "unix_date": plain(_as_days), "date_from_unix_date": plain(lambda x: pc.cast(x, pa.date32())),
    "make_date": plain(by_value(_make_date, pa.date32())),
}  # fmt: skip
