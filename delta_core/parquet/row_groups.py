"""Statistics of a Parquet file's row groups as typed columns, and the groups that may have a row for a predicate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.expressions.ast import Expression, FileStatistic, Leaf, leaves
from delta_core.expressions.bound_tests import bound_test
from delta_core.kernels.arrow_buffers import array_of, number_array
from delta_core.parquet.opened_file import FileFooter
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from delta_core.engines.interface import Compiled, Evaluator

__all__ = ["GroupPruner", "group_bounds", "kept_groups"]

Stored = Mapping[Path, tuple[int, pa.DataType]]
#: Of more row groups in a file, bounds are compared by Arrow.
_FEW_GROUPS = 16


class GroupPruner:
    """Finds the row groups of files that may hold a row for which a predicate is true.

    Parameters
    ----------
    predicate : Expression
        Over FileStatistic leaves; false drops a group, null keeps it.
    evaluator : Evaluator
    """

    def __init__(self, predicate: Expression, evaluator: Evaluator) -> None:
        self._predicate = predicate
        self._evaluator = evaluator
        self._leaves = leaves(predicate)
        self._quick = bound_test(predicate)

    @cached_property
    def _compiled(self) -> Compiled:
        types = {leaf: leaf.type.to_arrow() for leaf in self._leaves}  # type: ignore[union-attr]  # all are typed
        return self._evaluator.compile(self._predicate, types)

    def kept(self, footer: FileFooter, stored: Stored) -> list[bool]:
        """Return for each row group of a file whether it may hold such a row."""
        num_groups = len(footer.group_rows)
        if self._quick is None or num_groups > _FEW_GROUPS:
            return kept_groups(footer, stored, self._compiled)
        columns = [_values(footer, leaf, stored) for leaf in self._leaves]
        rows = ({leaf: c[group] for leaf, c in zip(self._leaves, columns, strict=True)} for group in range(num_groups))
        return [self._quick(row) is not False for row in rows]


def kept_groups(footer: FileFooter, stored: Stored, prune: Compiled) -> list[bool]:
    """Return for each row group whether it may hold a row for which the predicate is true.

    Parameters
    ----------
    footer : FileFooter
        The file's footer, for its bounds.
    stored : Mapping
        Physical path to the Parquet column's number and its stored Arrow type. Other columns have no bounds.
    prune : Compiled
        Over FileStatistic leaves; false drops a group, null keeps it.
    """
    result = prune(group_bounds(footer, stored, prune.leaves), len(footer.group_rows))
    return [value is not False for value in result.to_pylist()]


def group_bounds(footer: FileFooter, stored: Stored, wanted: Sequence[Leaf]) -> list[pa.Array]:
    """Return statistics of the row groups, an array of one value a group for each leaf; null if not known."""
    return [_column(footer, leaf, stored) for leaf in wanted]


def _column(footer: FileFooter, leaf: Leaf, stored: Stored) -> pa.Array:
    t = leaf.type.to_arrow()  # type: ignore[union-attr]  # of files: typed
    numbers = _numbers(footer, leaf, stored, t)
    if numbers is not None:
        return numbers
    values = _values(footer, leaf, stored)
    try:
        return array_of(values, t)
    except (pa.ArrowInvalid, OverflowError):
        return pa.nulls(len(values), t)


def _numbers(footer: FileFooter, leaf: Leaf, stored: Stored, wanted: pa.DataType) -> pa.Array | None:
    """Return a statistic of each row group that is a number as it is stored; None for others, see `_values`."""
    if not isinstance(leaf, FileStatistic):
        return None
    if leaf.kind == "numRecords" and wanted == pa.int64():
        return number_array(np.array(footer.group_rows, np.int64))
    place = stored.get(leaf.path)
    if place is None:
        return None
    index, found = place
    if leaf.kind == "nullCount" and wanted == pa.int64():
        counts = footer.null_counts(index)
        return None if counts is None else number_array(counts, wanted, counts >= 0)
    t = pa.types
    is_float = bool(t.is_float64(wanted) and (t.is_float32(found) or t.is_float64(found)))
    is_whole = t.is_signed_integer(wanted) and t.is_signed_integer(found)
    is_day = t.is_date32(wanted) and t.is_date32(found)
    is_instant = t.is_timestamp(wanted) and t.is_timestamp(found) and (wanted.unit, found.unit) == ("us", "us")
    if leaf.kind not in ("min", "max") or not (is_float or is_whole or is_day or is_instant):
        return None
    numbers = footer.number_bounds(index, leaf.kind == "max", is_float)
    if numbers is None:
        return None
    values, known = numbers
    stored_as = np.dtype(f"{'f' if is_float else 'i'}{wanted.bit_width // 8}")
    fitting = values.astype(stored_as, copy=False)
    if (fitting != values)[known].any():
        return pa.nulls(len(values), wanted)
    return number_array(fitting, wanted, known)


def _values(footer: FileFooter, leaf: Leaf, stored: Stored) -> list[Any]:
    """Return a statistic of each row group, None if it is not known."""
    groups = footer.group_rows
    unknown = [None] * len(groups)
    if not isinstance(leaf, FileStatistic):  # a partition value was evaluated for the file already
        return unknown
    if leaf.kind == "numRecords":
        return list(groups)
    if leaf.kind == "tightBounds":
        return [True] * len(groups)
    place = stored.get(leaf.path)
    if place is None:
        return unknown
    index, found = place
    bounds = [footer.bounds(group, index) for group in range(len(groups))]
    if leaf.kind == "nullCount":
        return [None if b is None else b.null_count for b in bounds]
    wanted, types = leaf.type.to_arrow(), _raw_types(found)
    read_least, read_most = _reader(found, wanted, up=False), _reader(found, wanted, up=True)
    if read_least is None or read_most is None:
        return unknown
    values = []
    for b in bounds:
        # of a damaged footer a chunk may have another type than its column
        least = read_least(b.least) if b is not None and isinstance(b.least, types) else None
        most = read_most(b.most) if b is not None and isinstance(b.most, types) else None
        is_none = least is not None and most is not None and least > most  # one of both is damaged
        values.append(None if is_none else most if leaf.kind == "max" else least)
    return values


def _raw_types(found: pa.DataType) -> tuple[type, ...]:
    """Return the Python types of bounds as they are stored."""
    t = pa.types
    if t.is_string(found):
        return (bytes, str)
    if t.is_decimal(found):
        return (int, bytes)
    return (float,) if t.is_floating(found) else (int,)


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
        return lambda raw: _decimal(raw, found)
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


def _decimal(raw: Any, t: pa.DataType) -> Decimal | None:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    if abs(unscaled) >= 10**t.precision:
        return None
    # built from its digits: arithmetic would round to the context's precision
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -t.scale))
