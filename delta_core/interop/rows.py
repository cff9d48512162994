"""Rows in memory, for any filter that a scan takes, without `pyarrow.dataset`, which imports an installed pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from delta_core.interop.predicates import all_filters, file_filter
from delta_core.snapshot import Snapshot

__all__ = ["read_rows", "with_repeated"]


def read_rows(snapshot: Snapshot, partitions: Any, columns: Sequence[str] | None, filters: Any) -> pa.Table:
    """Return the rows for which the filters on partitions and the others are true."""
    predicate = all_filters(snapshot, file_filter(snapshot, partitions), filters)
    return with_repeated(columns, lambda names: snapshot.scan(names, predicate=predicate).to_table())


def with_repeated(columns: Sequence[str] | None, read: Callable[[list[str] | None], pa.Table]) -> pa.Table:
    """Call ``read`` with each column once, and return the columns as often as they are named."""
    names = None if columns is None else list(dict.fromkeys(columns))
    table = read(names)
    if columns is None or names is None or len(names) == len(columns):
        return table
    return table.select([names.index(c) for c in columns])
