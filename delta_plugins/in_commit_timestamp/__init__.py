"""inCommitTimestamp: commits carry their own time. Protocol: In-Commit Timestamps."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING, NoReturn

from delta_core.api import (
    ChecksumField,
    CommitCheck,
    CommitInfoField,
    CommitSummary,
    CommitTimestamp,
    FeatureStep,
    Metadata,
    RemoveProperties,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.in_commit_timestamp import logic

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "inCommitTimestamp",
    "writer",
    "Commits carry their own time, so that copying files does not change history.",
    aliases=("inCommitTimestamp-preview",),
    # which switches it on in new tables
    after=("catalogManaged",),
    properties={
        logic.SWITCH: "true switches it on",
        logic.ENABLEMENT_VERSION: "the first version with such a time, if not the table's first",
        logic.ENABLEMENT_TIMESTAMP: "that version's time, ms since the epoch",
    },
    reserved=(logic.ENABLEMENT_VERSION, logic.ENABLEMENT_TIMESTAMP),
    log_properties=(logic.ENABLEMENT_VERSION, logic.ENABLEMENT_TIMESTAMP),
    active=methodcaller("flag", logic.SWITCH),
    is_layout=True,
)


@hookimpl
def commit_timestamps(table: TableState) -> CommitTimestamp | None:
    return logic.commit_timestamps(table.configuration) if table.is_active(FEATURE.name) else None


@hookimpl
def checksum_fields(table: TableState, commit: CommitSummary) -> Iterable[ChecksumField]:
    return logic.checksum_fields(table, commit) if table.is_active(FEATURE.name) else ()


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if metadata.configuration.get(logic.SWITCH, "").strip().lower() == "true" else []


@hookimpl
def prepare_metadata(table: TableState, metadata: Metadata, previous: TableState | None) -> Metadata:
    return logic.with_enablement(table, metadata, previous)


@hookimpl
def write_rules(table: TableState) -> Iterable[NoReturn]:
    logic.check_no_preview(table)
    return ()


@hookimpl
def check_table(table: TableState) -> Iterable[CommitCheck]:
    return [logic.commit_check(table)] if table.is_active(FEATURE.name) else []


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[CommitInfoField]:
    if attempt.table.is_active(FEATURE.name):
        yield CommitInfoField(FEATURE.name, logic.FIELD, logic.timestamp_of(attempt), first=True)


@hookimpl
def finish_metadata(attempt: AttemptView, metadata: Metadata) -> Metadata:
    return logic.with_start(attempt, metadata)


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    names = (logic.SWITCH, logic.ENABLEMENT_VERSION, logic.ENABLEMENT_TIMESTAMP)
    return [RemoveProperties(FEATURE.name, names)] if change == "drop" else []
