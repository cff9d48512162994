"""Rows of a Delta table for filters on partitions and others, without `pyarrow.dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from delta_core.kernel.snapshot import Snapshot
from delta_core.scan.interop.predicates import all_filters
from delta_core.scan.interop.rows import with_repeated
from delta_core.table.interop.predicates import file_filter, row_filter

__all__ = ["read_rows"]


def read_rows(snapshot: Snapshot, partitions: Any, columns: Sequence[str] | None, filters: Any) -> pa.Table:
    """Return the rows for which the filters on partitions and the others are true."""
    predicate = all_filters(snapshot, file_filter(snapshot, partitions), row_filter(snapshot, filters))
    return with_repeated(columns, lambda names: snapshot.scan(names, predicate=predicate).to_table())
