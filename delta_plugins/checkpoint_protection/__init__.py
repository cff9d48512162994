"""checkpointProtection: checkpoints that bridge dropped features are kept."""

from delta_core.api import TableFeature, TableState

__all__ = ["FEATURE", "PROPERTY"]

PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


def _is_active(table: TableState) -> bool:
    return (table.property(PROPERTY) or "0").strip() != "0"


FEATURE = TableFeature(
    "checkpointProtection",
    "writer",
    "Checkpoints and commits below a version are cleaned up all together or not at all.",
    properties={PROPERTY: "the version below which history is kept or cleaned up as one"},
    active=_is_active,
)
