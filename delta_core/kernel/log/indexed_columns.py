"""Which columns have statistics in each file. Protocol: Per-file Statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernels.stats import StatField, has_bounds
from delta_core.schema.fields import Path, leaf_fields
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["statistics_fields", "statistics_leaves"]

_VOID = PrimitiveType("void")


def statistics_leaves(table: TableState, required: Sequence[Path] = ()) -> Iterator[tuple[Path, DataType]]:
    """Yield the physical leaves that have statistics, and their types.

    ``delta.dataSkippingStatsColumns`` names them (a struct represents its leaves), else the first
    ``delta.dataSkippingNumIndexedCols`` leaves; ``required`` ones (logical or physical) always.

    Parameters
    ----------
    table : TableState
        The definition.
    required : sequence of Path
        Logical or physical paths of columns that have statistics whatever the properties specify.
    """
    named = read_property(table.configuration, "delta.dataSkippingStatsColumns")
    count = read_property(table.configuration, "delta.dataSkippingNumIndexedCols")
    stored = list(_stored_leaves(table))
    listed, always = _lower(named or ()), _lower(required)
    for number, (logical, physical, found) in enumerate(stored):
        first = count < 0 or number < count
        is_indexed = first if named is None else _covers(listed, logical)
        if is_indexed or _covers(always, logical) or _covers(always, physical):
            yield physical, found


def statistics_fields(table: TableState) -> dict[StatField, Path]:
    """Return the fields that statistics of any file of the table may have, and the logical path of each one's column.

    Parameters
    ----------
    table : TableState
        The definition.
    """
    found = {}
    for logical, physical, of_type in _stored_leaves(table):
        found[StatField(("nullCount", *physical), "long")] = logical
        if isinstance(of_type, PrimitiveType) and has_bounds(of_type.type):
            for top in ("minValues", "maxValues"):
                found[StatField((top, *physical), of_type.type)] = logical
    return found


def _stored_leaves(table: TableState) -> Iterator[tuple[Path, Path, DataType]]:
    """Yield the logical and the physical path of each leaf that data files store, and its type."""
    partitions = {name.lower() for name in table.partition_columns}
    both = zip(leaf_fields(table.schema), leaf_fields(table.column_map.physical), strict=True)
    for (logical, f), (physical, _) in both:
        if logical[0].lower() not in partitions and f.type != _VOID:
            yield logical, physical, f.type


def _lower(paths: Iterable[Sequence[str]]) -> frozenset[Path]:
    return frozenset(tuple(p.lower() for p in path) for path in paths)


def _covers(paths: frozenset[Path], leaf: Path) -> bool:
    """Return whether a leaf, or a struct that it is a part of, is among the paths, which are in lower case."""
    if not paths:
        return False
    lower = tuple(p.lower() for p in leaf)
    return any(lower[:end] in paths for end in range(len(lower) + 1))
