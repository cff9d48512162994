"""The public API. Names are resolved on first use: the modules below compute nothing, they call operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.operations.merge.builder import TableMerger
    from delta_core.table.alterer import TableAlterer
    from delta_core.table.delta_table import (
        DeltaTable,
        DeltaTableConfig,
        Metadata,
        ProtocolVersions,
        TableMetadata,
        open_table,
    )
    from delta_core.table.optimizer import TableOptimizer

__all__ = [
    "DeltaTable",
    "DeltaTableConfig",
    "Metadata",
    "ProtocolVersions",
    "TableAlterer",
    "TableMerger",
    "TableMetadata",
    "TableOptimizer",
    "open_table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.operations.merge.builder": "TableMerger",
        "delta_core.table.alterer": "TableAlterer",
        "delta_core.table.delta_table": (
            "DeltaTable DeltaTableConfig Metadata ProtocolVersions TableMetadata open_table"
        ),
        "delta_core.table.optimizer": "TableOptimizer",
    },
)
