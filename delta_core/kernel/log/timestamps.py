"""Points in time as users write them: times to milliseconds since the epoch, versions to whole numbers."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import SupportsIndex

from delta_core.errors import ArgumentRangeError, ArgumentTypeError, InvalidArgumentError
from delta_core.kernel.log.partition_values import time_zone

__all__ = ["format_ms", "parse_ms", "parse_version"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_version(value: SupportsIndex, what: str = "version", least: int = 0) -> int:
    """Return a version, given as any kind of whole number (numpy's too).

    Parameters
    ----------
    value : int, or an object with ``__index__``
        The number.
    what : str
        The name of the argument, for errors.
    least : int
        The least number that is accepted.

    Raises
    ------
    InvalidArgumentError, ArgumentTypeError
        For anything else, booleans included, and below ``least``; the message contains ``what``.
    """
    kind: type[InvalidArgumentError] = InvalidArgumentError
    try:
        found = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        kind, found = ArgumentTypeError, -1
    if isinstance(value, bool) or found < least:
        kind = (
            ArgumentRangeError if kind is InvalidArgumentError and found < 0 and not isinstance(value, bool) else kind
        )
        raise kind(f"Found {what} {value!r}, expected a whole number from {least} on.", value=value)
    return found


def parse_ms(value: str | datetime, timezone: str = "UTC") -> int:
    """Return ms since the epoch of an ISO 8601 text or a datetime, rounded down.

    Parameters
    ----------
    value : str or datetime
        The point in time.
    timezone : str
        The zone of a value that names none.

    Raises
    ------
    InvalidArgumentError, ArgumentTypeError
        For a value that is not a timestamp.
    """
    if not isinstance(value, (str, datetime)):
        raise ArgumentTypeError(f"Found {value!r} as a timestamp, expected a text or a datetime.")
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidArgumentError(
                f"Found {value!r}, expected a timestamp in ISO 8601 such as 2024-05-01T12:30:00Z.", value=value
            ) from None
    else:
        parsed = value
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=time_zone(timezone))
    return (parsed - _EPOCH) // timedelta(milliseconds=1)


def format_ms(value: int | None, timezone: str = "UTC") -> str | None:
    """Return ISO 8601 text of ms since the epoch, None for None; what a date can't hold stays a number.

    Parameters
    ----------
    value : int or None
        Milliseconds since the epoch, UTC.
    timezone : str
        The zone of the text.
    """
    if value is None:
        return None
    try:
        moment = (_EPOCH + timedelta(milliseconds=value)).astimezone(time_zone(timezone))
    except OverflowError:
        return str(value)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
