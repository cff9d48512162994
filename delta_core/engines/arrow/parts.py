"""Loaded on first use (`runtime.lazy`): the parts of the engine that read data and evaluate expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
    from delta_core.engines.arrow.parquet.data_files import ArrowDataFiles
    from delta_core.engines.arrow.relations import ArrowRelations

__all__ = ["ArrowDataFiles", "ArrowEvaluator", "ArrowRelations"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.engines.arrow.evaluate.evaluator": "ArrowEvaluator",
        "delta_core.engines.arrow.parquet.data_files": "ArrowDataFiles",
        "delta_core.engines.arrow.relations": "ArrowRelations",
    },
)
