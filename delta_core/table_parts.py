"""What the methods of `DeltaTable` return to change a table, loaded on first use: a read needs none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.alterer import TableAlterer
    from delta_core.operations.merger import MergeClause, TableMerger
    from delta_core.optimizer import TableOptimizer

__all__ = ["MergeClause", "TableAlterer", "TableMerger", "TableOptimizer"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.alterer": "TableAlterer",
        "delta_core.operations.merger": "MergeClause TableMerger",
        "delta_core.optimizer": "TableOptimizer",
    },
)
