"""Loaded on first use (`runtime.lazy`): compaction, which few tables have after each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.operations.optimize import OptimizeOptions, optimize_table

__all__ = ["OptimizeOptions", "optimize_table"]

__getattr__, __dir__ = lazy_names(__name__, {"delta_core.operations.optimize": "OptimizeOptions optimize_table"})
