"""v2Checkpoint: checkpoints whose file actions may be in sidecars. Protocol: V2 Spec, Sidecar File Information."""

from collections.abc import Iterable

import pyarrow as pa

from delta_core.api import CheckpointPlan, FeatureStep, Metadata, SetProperties, TableFeature, TableState, hookimpl
from delta_plugins.v2_checkpoint import logic

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return (table.property("delta.checkpointPolicy") or "").lower() == "v2"


FEATURE = TableFeature(
    "v2Checkpoint",
    "reader+writer",
    "Checkpoints have unique names, and may keep file actions in sidecar files.",
    properties={"delta.checkpointPolicy": "v2 requires writers for such checkpoints"},
    active=_is_active,
    is_layout=True,
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    policy = metadata.configuration.get("delta.checkpointPolicy", "").strip().lower()
    return [FEATURE.name] if policy == "v2" else []


@hookimpl
def checkpoint_sidecars(checkpoint: str, actions: pa.Table) -> Iterable[str]:
    return logic.sidecar_names(checkpoint, actions["path"].to_pylist())


@hookimpl
def plan_checkpoint(table: TableState) -> CheckpointPlan | None:
    return logic.plan_checkpoint(table.version, table.configuration) if table.is_active("v2Checkpoint") else None


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    is_v2 = change == "drop" and table.is_active(FEATURE.name)
    return [SetProperties(FEATURE.name, {"delta.checkpointPolicy": "classic"})] if is_v2 else []
