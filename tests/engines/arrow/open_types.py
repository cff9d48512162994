"""Columns of types that Delta lacks, with the exact numbers that their values are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from delta_core.engines.arrow.evaluate.evaluator import compile_expression
from delta_core.expressions.ast import Column, Expression
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.sql import parse_sql
from delta_core.schema.logical import schema_of_arrow

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Kind(NamedTuple):
    """A type, values at its bounds and beside zero, and what a stored whole number is multiplied by."""

    type: pa.DataType
    values: list[Any]
    unit: Fraction = Fraction(1)


def _integers(t: pa.DataType) -> Kind:
    bits = t.bit_width
    low, high = (0, 2**bits - 1) if pa.types.is_unsigned_integer(t) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Kind(t, [low, low + 1, 5, high - 1, high])


def decimal_of(number: int, scale: int) -> Decimal:
    """Return ``number / 10**scale`` with all its digits."""
    return Decimal(f"{number}E{-scale}")


def _decimals(t: Any) -> Kind:
    return Kind(t, [decimal_of(n, t.scale) for n in (0, 1, -1, 10**t.precision - 1)])


def _floats(t: pa.DataType, *more: float) -> Kind:
    return Kind(t, [0.0, -0.0, 5.0, -1.5, math.nan, math.inf, -math.inf, *more])


#: Numbers that are compared by their exact values.
NUMBERS = {
    str(t): _integers(t)
    for t in (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
} | {
    str(t): _decimals(t)
    for t in (
        pa.decimal128(10, 2), pa.decimal128(38, 38), pa.decimal128(10, -2), pa.decimal64(12, 3), pa.decimal256(50, 10),
        pa.decimal256(76, 0), pa.decimal256(76, 76),
    )
}  # fmt: skip
FLOATS = {
    "halffloat": _floats(pa.float16(), 65504.0, 6e-8),
    "float": _floats(pa.float32(), 3.4e38),
    "double": _floats(pa.float64(), 0.1, 1e308),
}


def _times(t: Any, values: list[int]) -> Kind:
    return Kind(t, values, Fraction(1, PER_SECOND[t.unit]))


_LAST = 2**63 - 1
_UNITS = {u: [0, 1, -1, 86_400 * n, _LAST, -_LAST - 1] for u, n in PER_SECOND.items()}
#: Dates and timestamps, of any zone: instants in seconds.
INSTANTS = {
    str(t): _times(t, _UNITS[t.unit]) for u in PER_SECOND for t in (pa.timestamp(u), pa.timestamp(u, "Asia/Tokyo"))
}
#: Delta's timestamps do not reach the last dates.
DATES = {"date32[day]": Kind(pa.date32(), [0, 1, -1, 106_751_990, -106_751_991], Fraction(86_400))}
DURATIONS = {str(t): _times(t, _UNITS[t.unit]) for t in map(pa.duration, PER_SECOND)}
TIMES = {
    str(t): _times(t, [0, 1, PER_SECOND[t.unit], 86_400 * PER_SECOND[t.unit] - 1])
    for t in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
}


def array_of_kind(kind: Kind, values: Sequence[Any]) -> pa.Array:
    """Return values as an array; times are whole numbers of their units."""
    if not pa.types.is_temporal(kind.type):
        return pa.array(values, kind.type)
    return pa.array(values, pa.int32() if kind.type.bit_width == 32 else pa.int64()).view(kind.type)


def exact(value: Any, kind: Kind) -> tuple[int, Any] | None:
    """Return what a value is ordered by: NaN after everything else."""
    if value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return (1, 0) if math.isnan(value) else (0, value)
    return 0, Fraction(value) * kind.unit


def evaluated(expression: str | Expression, columns: dict[str, pa.Array]) -> pa.Array:
    """Bind an expression to columns of any Arrow types, and evaluate it."""
    schema = schema_of_arrow(pa.schema([(name, a.type) for name, a in columns.items()]))
    parsed = parse_sql(expression, "name") if isinstance(expression, str) else expression
    bound = bind_typed(parsed, schema).expression
    compiled = compile_expression(bound, {Column((name,)): a.type for name, a in columns.items()})
    inputs = [columns[leaf.path[0]] for leaf in compiled.leaves if isinstance(leaf, Column)]
    return compiled(inputs, max(map(len, columns.values())))
