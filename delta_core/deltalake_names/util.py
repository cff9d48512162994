"""Names of ``deltalake._util`` that libraries import."""

from __future__ import annotations

from datetime import date, datetime

__all__ = ["encode_partition_value"]


def encode_partition_value(val: str | bytes | float | bool | date | datetime) -> str:
    """Return a partition value as the text that filters compare.

    Parameters
    ----------
    val : str, bytes, int, float, bool, date or datetime
        The value.

    Raises
    ------
    ValueError
        For a value of another type.
    """
    match val:
        case bool():
            return "true" if val else "false"
        case datetime():
            return val.isoformat(sep=" ")
        case date():
            return val.isoformat()
        case bytes():
            return val.decode("unicode_escape", "backslashreplace")
        case str() | int() | float():
            return str(val)
    raise ValueError(f"Found a partition value of type {type(val).__name__}, which has no text.")
