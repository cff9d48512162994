"""Loaded on first use (`runtime.lazy`): readers of data and of checkpoints, and the evaluator."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.engines.arrow.checkpoint_files import ParquetCheckpoint as ParquetCheckpoint
    from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator as ArrowEvaluator
    from delta_core.engines.arrow.log_writer import write_lines as write_lines, write_parquet as write_parquet
    from delta_core.engines.arrow.relations import ArrowRelations as ArrowRelations
    from delta_core.parquet.data_files import ArrowDataFiles as ArrowDataFiles
