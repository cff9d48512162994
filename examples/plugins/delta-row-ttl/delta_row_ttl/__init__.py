"""example.rowTtl: rows older than the table's time to live are hidden from every reader."""

import time
from collections.abc import Iterable

from delta_core.api import FeatureStep, FeatureUse, Metadata, ReadRule, TableFeature, TableState, hookimpl
from delta_row_ttl import logic

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return logic.COLUMN in table.configuration


FEATURE = TableFeature(
    "example.rowTtl",
    "reader+writer",
    "Rows older than the table's time to live are hidden.",
    properties={
        logic.COLUMN: "a timestamp or date column: when a row was born",
        logic.INTERVAL: "how long it lives, such as 30 days or 12 hours",
    },
    active=_is_active,
    operations={"expire": "delta_row_ttl.expiry:expire"},
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.time_to_live(table)


@hookimpl
def read_rules(table: TableState) -> Iterable[ReadRule]:
    ttl = logic.time_to_live(table)
    # the scan's own now: every row is judged by the same moment
    return () if ttl is None else (logic.row_filter(ttl, time.time_ns() // 1000),)


# --- writing ---


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if {logic.COLUMN, logic.INTERVAL} & set(metadata.configuration) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    logic.time_to_live(table)


# --- dropping the feature ---


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = tuple(f"property {p}" for p in (logic.COLUMN, logic.INTERVAL) if p in table.configuration)
    # rows that are too old, and still in files, would return: that is for users to decide
    advice = "Expire the rows that are too old, and remove the properties."
    return [FeatureUse(FEATURE.name, users, advice)] if change == "drop" else []
