"""Conditions that are ranges of one column's numbers: an engine can test those while it decodes the column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.expressions.ast import Call, Column, Expression, Leaf, Literal, PhysicalColumn, conjuncts
from delta_core.kernels.arrow_buffers import array_of, values_of
from delta_core.kernels.parquet_pages import ValueRange
from delta_core.scan.plan import PhysicalSource, Source

__all__ = ["value_range"]

#: Each comparison with its operands exchanged.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def value_range(
    condition: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType]
) -> ValueRange | None:
    """Return the range of values that a condition accepts, None if it is no comparison of one column with constants.

    Parameters
    ----------
    condition : Expression
        Bound. Several comparisons, and tests that the column is not null, may be joined with ``and``.
    sources : Mapping of Leaf to Source
        Where the values of its leaves come from.
    types : Mapping of Leaf to pyarrow.DataType
        Of its leaves.

    Notes
    -----
    NaN is greater than any number, and -0.0 equals 0.0, as in all comparisons.
    """
    found: ValueRange | None = None
    present = set[int | None]()
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function == "isnotnull":
            present.add(_column(part.args[0], sources))
            continue
        one = _of_comparison(part, sources, types)
        if one is None or (found is not None and found.column != one.column):
            return None
        found = one if found is None else _both(found, one)
    # a comparison is never true of null
    return found if found is None or present <= {found.column} else None


def _both(a: ValueRange, b: ValueRange) -> ValueRange:
    return ValueRange(a.column, max(a.least, b.least), min(a.most, b.most), a.with_nan and b.with_nan)


def _of_comparison(
    e: Expression, sources: Mapping[Leaf, Source], types: Mapping[Leaf, pa.DataType]
) -> ValueRange | None:
    if not isinstance(e, Call) or e.function not in _MIRRORED:
        return None
    (value, constant), function = e.args, e.function
    if isinstance(value, Literal):
        value, constant, function = constant, value, _MIRRORED[function]
    column = _column(value, sources)
    if column is None or not isinstance(value, (Column, PhysicalColumn)) or not isinstance(constant, Literal):
        return None
    if constant.value is None or constant.type is None or constant.type.to_arrow() != types[value]:
        return None
    bounds = _bounds(function, constant.value, types[value])
    return None if bounds is None else ValueRange(column, *bounds)


def _column(e: Expression, sources: Mapping[Leaf, Source]) -> int | None:
    """Return the number of the physical column that an expression is; None if it is none as a whole."""
    source = sources.get(e) if isinstance(e, (Column, PhysicalColumn)) else None
    return source.index if isinstance(source, PhysicalSource) and not source.path else None


def _bounds(function: str, constant: Any, t: pa.DataType) -> tuple[Any, Any, bool] | None:
    is_float = pa.types.is_float64(t) or pa.types.is_float32(t)
    is_time = pa.types.is_date32(t) or pa.types.is_timestamp(t) and t.unit == "us"
    if not (is_float or is_time or pa.types.is_int64(t) or pa.types.is_int32(t)):
        return None
    stored = values_of(array_of([constant], t))[0]
    if is_float:
        if not math.isfinite(stored):
            return None
        with np.errstate(all="ignore"):  # numpy warns of what is beyond the greatest number
            below, above = float(np.nextafter(stored, -np.inf)), float(np.nextafter(stored, np.inf))
        least, most = -math.inf, math.inf
    else:
        # one beyond what the type holds: a range without values
        below, above = int(stored) - 1, int(stored) + 1
        limits = np.iinfo(stored.dtype)
        least, most = int(limits.min), int(limits.max)
        if below < least or above > most:
            return None
    exact = float(stored) if is_float else int(stored)
    if function == "=":
        return exact, exact, False
    if function in ("<", "<="):
        return least, below if function == "<" else exact, False
    return above if function == ">" else exact, most, is_float
