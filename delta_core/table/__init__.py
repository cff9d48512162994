"""The public API. Names are resolved on first use: the modules below compute nothing, they call operations."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.operations.merge.builder import TableMerger as TableMerger
    from delta_core.table.alterer import TableAlterer as TableAlterer
    from delta_core.table.any_format import open_table as open_table
    from delta_core.table.delta_table import (
        DeltaTable as DeltaTable,
        Metadata as Metadata,
        TableMetadata as TableMetadata,
    )
    from delta_core.table.named_tuples import DeltaTableConfig as DeltaTableConfig, ProtocolVersions as ProtocolVersions
    from delta_core.table.optimizer import TableOptimizer as TableOptimizer
