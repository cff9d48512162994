"""changeDataFeed: which rows each version inserted, deleted and updated. Protocol: Change Data Feed, Add CDC File."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING

from delta_core.api import (
    ChangeCapture,
    FeatureStep,
    Metadata,
    ReadRequest,
    ReadRule,
    RemoveProperties,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.change_data_feed import logic, recording

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "changeDataFeed",
    "writer",
    "The table reports which rows each version inserted, deleted and updated.",
    properties={logic.PROPERTY: "true makes writers record changes"},
    permits=("cdc",),
    active=methodcaller("flag", logic.PROPERTY),
    remedies={"operations": f"set the table property {logic.PROPERTY}=true, and later commits record what they change"},
    operations={name: f"delta_plugins.change_data_feed.changes:{name}" for name in ("changes", "plan_changes")},
)


@hookimpl
def read_rules(request: ReadRequest) -> Iterable[ReadRule]:
    return logic.METADATA_COLUMNS if request.purpose == "changes" else ()


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.is_enabled(metadata.configuration) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    recording.check_columns(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[ChangeCapture]:
    # commits that only add rows, or remove whole files, are determined by their adds and removes
    return [ChangeCapture(FEATURE.name, logic.CHANGE_TYPE)] if table.is_active(FEATURE.name) else []


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    recording.check_change_files(attempt)


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (logic.PROPERTY,))] if change == "drop" else []
