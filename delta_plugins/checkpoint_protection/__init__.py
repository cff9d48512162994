"""checkpointProtection: checkpoints that bridge dropped features are kept."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import FeatureStep, InvalidArgumentError, RemoveProperties, TableFeature, TableState, hookimpl

__all__ = ["FEATURE", "PROPERTY"]

PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


def _protected_before(table: TableState) -> int:
    """Return the version below which history is one; 0 for none."""
    text = (table.property(PROPERTY) or "0").strip()
    if not text.isdecimal():
        raise InvalidArgumentError(f"Table property {PROPERTY} is {text!r}; expected a version.", property=PROPERTY)
    return int(text)


def _is_active(table: TableState) -> bool:
    return (table.property(PROPERTY) or "0").strip() != "0"


FEATURE = TableFeature(
    "checkpointProtection",
    "writer",
    "Checkpoints and commits below a version are cleaned up all together or not at all.",
    properties={PROPERTY: "the version below which history is kept or cleaned up as one"},
    log_properties=(PROPERTY,),
    active=_is_active,
    protects_history=PROPERTY,
    is_layout=True,
)


@hookimpl
def check_metadata(table: TableState) -> None:
    _protected_before(table)


@hookimpl
def retention_limits(table: TableState, cutoff: int) -> Iterable[int]:
    # a cleanup that does not reach beyond all of it removes nothing
    return [0] if cutoff < _protected_before(table) else []


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (PROPERTY,))] if change == "drop" else []
