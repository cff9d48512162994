"""Statistics of a Parquet file's row groups as typed columns, and which groups a predicate keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_core.engines.arrow.parquet.opened_file import FileFooter
from delta_core.engines.interface import Compiled
from delta_core.expressions.ast import FileStatistic, Leaf
from delta_core.kernels.arrow_buffers import array_of
from delta_core.protocol.schema import Path

__all__ = ["group_bounds", "kept_groups"]

Stored = Mapping[Path, tuple[int, pa.DataType]]


def kept_groups(footer: FileFooter, stored: Stored, prune: Compiled) -> list[bool]:
    """Return for each row group whether it may hold a row that the predicate wants.

    Parameters
    ----------
    footer : FileFooter
        The file's footer, for its bounds.
    stored : Mapping
        Physical path to the Parquet column's number and its stored Arrow type. What is not here has no bounds.
    prune : Compiled
        Over FileStatistic leaves; false drops a group, null keeps it.
    """
    result = prune(group_bounds(footer, stored, prune.leaves), len(footer.group_rows))
    return [value is not False for value in result.to_pylist()]


def group_bounds(footer: FileFooter, stored: Stored, wanted: Sequence[Leaf]) -> list[pa.Array]:
    """Return statistics of the row groups, an array of one value a group for each leaf; null if not known."""
    return [_column(footer, leaf, stored) for leaf in wanted]


def _column(footer: FileFooter, leaf: Leaf, stored: Stored) -> pa.Array:
    groups = footer.group_rows
    t = leaf.type.to_arrow()  # type: ignore[union-attr]  # of files: typed
    if not isinstance(leaf, FileStatistic):  # a partition value was evaluated for the file already
        return pa.nulls(len(groups), t)
    if leaf.kind == "numRecords":
        return array_of(list(groups), t)
    if leaf.kind == "tightBounds":
        return array_of([True] * len(groups), t)
    place = stored.get(leaf.path)
    if place is None:
        return pa.nulls(len(groups), t)
    index, found = place
    bounds = [footer.bounds(group, index) for group in range(len(groups))]
    if leaf.kind == "nullCount":
        return array_of([None if b is None else b.null_count for b in bounds], t)
    read = _reader(found, t, up=leaf.kind == "max")
    if read is None:
        return pa.nulls(len(groups), t)
    values = []
    for b in bounds:
        raw = None if b is None else b.most if leaf.kind == "max" else b.least
        values.append(None if raw is None else read(raw))
    try:
        return array_of(values, t)
    except (pa.ArrowInvalid, OverflowError):
        return pa.nulls(len(groups), t)


def _reader(found: pa.DataType, wanted: pa.DataType, up: bool) -> Callable[[Any], Any] | None:
    """Return how a bound's raw value reads as the requested type; None if that is not sure to be a bound."""
    t = pa.types
    if (t.is_signed_integer(found) and t.is_signed_integer(wanted)) or (t.is_date32(found) and t.is_date32(wanted)):
        return lambda raw: raw
    if t.is_floating(found) and not t.is_float16(found) and t.is_floating(wanted):
        return lambda raw: None if math.isnan(raw) else raw
    if t.is_timestamp(found) and t.is_timestamp(wanted):
        return _timestamp_reader(found.unit, up)
    if t.is_boolean(found) and t.is_boolean(wanted):
        return bool
    if t.is_string(found) and t.is_string(wanted):
        return _text
    if t.is_decimal128(found) and t.is_decimal(wanted) and found.scale == wanted.scale:
        return lambda raw: _decimal(raw, found.scale)
    return None


def _timestamp_reader(unit: str, up: bool) -> Callable[[Any], Any] | None:
    if unit == "ns":
        return lambda raw: -(-raw // 1000) if up else raw // 1000
    factor = {"us": 1, "ms": 1000}.get(unit)
    return None if factor is None else lambda raw: raw * factor


def _text(raw: Any) -> str | None:
    try:
        return raw if isinstance(raw, str) else bytes(raw).decode()
    except UnicodeDecodeError:
        return None


def _decimal(raw: Any, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    # built from its digits: arithmetic would round to the context's precision
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
