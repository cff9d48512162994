"""icebergCompatV2: files that Iceberg can take over, lists and maps included. Protocol: Iceberg Compatibility V2.

The parts of lists and maps get ids from columnMapping.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.api import (
    FeatureStep,
    FileRequirement,
    Metadata,
    RemainingFilesCheck,
    RemoveProperties,
    TableState,
    hookimpl,
)
from delta_plugins.iceberg_compat.logic import Version, switched_on

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

_VERSION = Version("icebergCompatV2", vectors="inactive")
FEATURE = _VERSION.feature(
    "Data files and metadata are written so that they convert to Iceberg (2, with nested arrays and maps).",
    requires=("columnMapping",),
    # which switches it on in new tables
    after=("icebergWriterCompatV1",),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if switched_on(metadata, _VERSION.switch) else []


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    return _VERSION.prepared(metadata, previous)


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    _VERSION.check(table, previous)


@hookimpl
def write_rules(table: TableState) -> Iterable[FileRequirement]:
    return _VERSION.requirements(table)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[RemainingFilesCheck]:
    return _VERSION.commit_rules(attempt)


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    _VERSION.check_commit(attempt)


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (_VERSION.switch,))] if change == "drop" else []
