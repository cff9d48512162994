"""Scalar indices: which rows may pass a condition, or pass it, without reading data files."""

from __future__ import annotations

from delta_core.api import lazy_imports

# loaded with the first condition
with lazy_imports(__name__):
    from delta_plugins.lance.index.plan import IndexPlan as IndexPlan, plan_indices as plan_indices
