"""The plugin API's own side: hook specifications, features, rules, and the plugins that serve one table.

Types of what hooks return that no read needs, and what few tables need, are loaded on first use.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.plugins.checkpoint_plan import CheckpointPlan as CheckpointPlan
    from delta_core.kernel.plugins.checks import TableCheck as TableCheck
    from delta_core.kernel.plugins.encodings import bind_encodings as bind_encodings, checked_decode as checked_decode
    from delta_core.kernel.plugins.steps import FeatureStep as FeatureStep
