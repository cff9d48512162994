"""Loaded on first use (`runtime.lazy`): what an append does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.operations.rewrite import (
        carried_columns,
        not_selected,
        rewrite_rows,
        selects_partitions,
        write_change_rows,
    )
    from delta_core.operations.row_changes import RowChanges

__all__ = ["RowChanges", "carried_columns", "not_selected", "rewrite_rows", "selects_partitions", "write_change_rows"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.operations.rewrite": (
            "carried_columns not_selected rewrite_rows selects_partitions write_change_rows"
        ),
        "delta_core.operations.row_changes": "RowChanges",
    },
)
