"""Types of what hooks return that no read needs, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.plugins.checkpoint_plan import CheckpointPlan
    from delta_core.kernel.plugins.checks import TableCheck
    from delta_core.kernel.plugins.steps import FeatureStep

__all__ = ["CheckpointPlan", "FeatureStep", "TableCheck"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.plugins.checkpoint_plan": "CheckpointPlan",
        "delta_core.kernel.plugins.checks": "TableCheck",
        "delta_core.kernel.plugins.steps": "FeatureStep",
    },
)
