"""Typed partition values to the log's text: the inverse of `delta_core.kernel.log.partition_values`.

Protocol: Partition Value Serialization. Null and the empty string are both null there.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from delta_core.errors import SchemaMismatchError, UnsupportedOperationError
from delta_core.kernel.plugins.state import TableState
from delta_core.schema.types import DataType, PrimitiveType, UserDefinedType, parse_decimal

__all__ = ["empty_is_null", "format_partition_values"]

_DAY_US = 86_400_000_000
_CYCLE_DAYS = 146_097


def empty_is_null(table: TableState) -> list[str]:
    """Return the partition columns in which an empty value is stored as null: texts and bytes."""
    types = {f.name.lower(): f.type.type for f in table.schema.members if isinstance(f.type, PrimitiveType)}
    return [n for n in table.partition_columns if types.get(n.lower()) in ("string", "binary")]


def format_partition_values(values: pa.Array, type: DataType, column: str = "") -> list[str | None]:
    """Return the text of each value; meant for distinct values.

    Parameters
    ----------
    values : pyarrow.Array
        Of the type's Arrow type; timestamps are instants and become UTC.
    type : DataType
        The column's type.
    column : str
        For the message only.

    Returns
    -------
    list of str or None
        None for null and for the empty string, which the protocol cannot distinguish from null.

    Raises
    ------
    SchemaMismatchError
        A binary value or a text that is no UTF-8: the log's text can't hold it.
    UnsupportedOperationError
        For a type that can't partition a table.
    """
    name = type.type
    if not isinstance(type, PrimitiveType) or isinstance(type, UserDefinedType) or name in ("void", "variant"):
        raise UnsupportedOperationError(
            f"Column {column!r} has type {name!r}, which can't partition a table.", column=column
        )
    if name in ("timestamp", "timestamp_ntz", "timestampNTZ", "timestampWithoutTimezone"):
        zoned = name == "timestamp"
        return [None if v is None else _timestamp(v, zoned) for v in values.cast(pa.int64()).to_pylist()]
    if name == "date":
        return [None if v is None else _date(v) for v in values.cast(pa.int32()).to_pylist()]
    if parse_decimal(name) is not None:
        return [None if v is None else format(v, "f") for v in values.to_pylist()]
    if name in ("float", "double"):
        kind = np.float32 if name == "float" else np.float64
        return [None if v is None else _float(kind(v)) for v in values.to_pylist()]
    if name == "boolean":
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    if name in ("binary", "string"):  # Arrow holds texts to nothing
        bytes_ = values.cast(pa.binary()).to_pylist()
        return [_utf8(v, column) or None if v is not None else None for v in bytes_]
    return [None if v is None else str(v) or None for v in values.to_pylist()]


def _date(days: int) -> str:
    """Return ISO 8601 text in the proleptic Gregorian calendar, any year."""
    cycle = 0
    while not -719_162 <= days <= 2_932_896:  # what datetime.date holds
        step = 1 if days > 0 else -1
        cycle, days = cycle + step, days - step * _CYCLE_DAYS
    found = dt.date.fromordinal(days + 719_163)
    year = found.year + 400 * cycle
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{found.month:02d}-{found.day:02d}"


def _timestamp(micros: int, zoned: bool) -> str:
    days, rest = divmod(micros, _DAY_US)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if zoned:
        return f"{_date(days)}T{clock}.{fraction:06d}Z"
    return f"{_date(days)} {clock}" + (f".{fraction:06d}" if fraction else "")


def _float(value: np.floating) -> str:
    """Return the shortest text that reads back as the value, in Java's form: ``1.0``, ``1.0E10``, ``NaN``."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"


def _utf8(value: bytes, column: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise SchemaMismatchError(
            f"Partition column {column!r} holds the bytes {value[:40]!r}, which are not UTF-8: the log keeps partition "
            "values as text. Partition by another column, or encode the bytes as text.",
            column=column,
        ) from None
