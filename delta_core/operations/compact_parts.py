"""Loaded on first use (`runtime.lazy`): compaction, which few tables have after each commit."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.operations.optimize import OptimizeOptions as OptimizeOptions, optimize_table as optimize_table
