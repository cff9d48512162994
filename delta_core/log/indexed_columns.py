"""Which columns have statistics in each file. Protocol: Per-file Statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_core.properties import read_property
from delta_core.schema import Path, leaf_fields
from delta_core.state import TableState
from delta_core.types import DataType, PrimitiveType

__all__ = ["statistics_leaves"]

_VOID = PrimitiveType("void")


def statistics_leaves(table: TableState, required: Sequence[Path] = ()) -> Iterator[tuple[Path, DataType]]:
    """Yield the physical leaves that have statistics, and their types.

    ``delta.dataSkippingStatsColumns`` names them (a struct stands for its leaves), else the first
    ``delta.dataSkippingNumIndexedCols`` leaves; ``required`` ones (logical or physical) always.
    """
    named = read_property(table.configuration, "delta.dataSkippingStatsColumns")
    count = read_property(table.configuration, "delta.dataSkippingNumIndexedCols")
    partitions = {name.lower() for name in table.partition_columns}
    both = zip(leaf_fields(table.schema), leaf_fields(table.column_map.physical), strict=True)
    stored = [(p, s, f.type) for (p, f), (s, _) in both if p[0].lower() not in partitions and f.type != _VOID]
    for number, (logical, physical, found) in enumerate(stored):
        first = count < 0 or number < count
        wanted = first if named is None else any(_covers(path, logical) for path in named)
        if wanted or any(_covers(path, logical) or _covers(path, physical) for path in required):
            yield physical, found


def _covers(path: Sequence[str], leaf: Path) -> bool:
    return [p.lower() for p in path] == [p.lower() for p in leaf[: len(path)]]
