"""rowTracking: rows keep an id, and the version that last changed them. Protocol: Row Tracking."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.api import (
    ActionColumn,
    FeatureStep,
    HiddenColumn,
    Metadata,
    ReadRequest,
    ReadRule,
    TableCheck,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.row_tracking import logic, verify, write

if TYPE_CHECKING:
    from delta_core.api import AttemptView, CommitRule

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "rowTracking",
    "writer",
    "Every row keeps an id, and the version that last changed it.",
    requires=("domainMetadata",),
    # which switches it on in new tables
    after=("icebergCompatV3",),
    properties={
        write.SWITCH: "true once every row has an id",
        write.SUSPENDED: "true stops the assignment of ids",
        logic.ROW_ID_COLUMN: "physical column that holds ids which rows carry along",
        logic.COMMIT_VERSION_COLUMN: "physical column that holds versions which rows carry along",
    },
    flags=(write.SWITCH, write.SUSPENDED),
    reserved=(logic.ROW_ID_COLUMN, logic.COMMIT_VERSION_COLUMN),
    domains=(logic.DOMAIN,),
    growing_domains=(logic.DOMAIN,),
    permits=("add.baseRowId", "add.defaultRowCommitVersion"),
    remedies={"operations": f"set the table property {write.SWITCH}=true"},
    operations={"diff": "delta_plugins.row_tracking.diff:diff"},
    active=methodcaller("flag", write.SWITCH),
    requests={"row_ids": write.REQUEST},
)


@hookimpl
def read_rules(table: TableState, request: ReadRequest) -> Iterable[ReadRule]:
    # change files carry no row ids
    return logic.metadata_columns(table.configuration) if request.purpose == "rows" else ()


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    found = metadata.configuration
    is_on = write.REQUEST in found or found.get(write.SWITCH, "").strip().lower() == "true"
    return [FEATURE.name] if is_on else []


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    return write.with_column_names(metadata, previous)


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    write.check_metadata(table, previous)


@hookimpl
def write_rules(table: TableState) -> Iterable[HiddenColumn]:
    return write.hidden_columns(table) if table.is_active(FEATURE.name) else ()


@hookimpl
def check_table(table: TableState) -> Iterable[TableCheck]:
    return verify.checks(table)


@hookimpl
def rebase_files(adds: pa.Table, removes: pa.Table, winner: pa.Table) -> Iterable[ActionColumn]:
    return write.rebase_files(adds, removes, winner)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[CommitRule]:
    # supported is enough: ids are given before they are relied upon
    return write.commit_rules(attempt)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    return write.feature_steps(table, change)
