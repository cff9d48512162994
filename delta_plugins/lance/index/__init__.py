"""Scalar indices: which rows may pass a condition, or pass it, without reading data files."""

from __future__ import annotations

from delta_plugins.lance.index.plan import IndexPlan, plan_indices

__all__ = ["IndexPlan", "plan_indices"]
