"""Loaded on first use (`runtime.lazy`): readers of data and of checkpoints, and the evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.engines.arrow.checkpoint_files import ParquetCheckpoint
    from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
    from delta_core.engines.arrow.log_writer import write_lines, write_parquet
    from delta_core.engines.arrow.relations import ArrowRelations
    from delta_core.parquet.data_files import ArrowDataFiles

__all__ = ["ArrowDataFiles", "ArrowEvaluator", "ArrowRelations", "ParquetCheckpoint", "write_lines", "write_parquet"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.engines.arrow.checkpoint_files": "ParquetCheckpoint",
        "delta_core.engines.arrow.log_writer": "write_lines write_parquet",
        "delta_core.engines.arrow.evaluate.evaluator": "ArrowEvaluator",
        "delta_core.parquet.data_files": "ArrowDataFiles",
        "delta_core.engines.arrow.relations": "ArrowRelations",
    },
)
