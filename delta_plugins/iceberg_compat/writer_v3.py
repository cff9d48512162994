"""icebergWriterCompatV3: what Iceberg 3 writers may also write.

No text specifies yet what that is: tables on which it is switched on can be read, and are not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import NoReturn

from delta_core.api import (
    FeatureStep,
    Metadata,
    RemoveProperties,
    TableFeature,
    TableState,
    UnsupportedFeatureError,
    hookimpl,
)
from delta_plugins.iceberg_compat.logic import switched_on

__all__ = ["FEATURE"]

SWITCH = "delta.enableIcebergWriterCompatV3"
FEATURE = TableFeature(
    "icebergWriterCompatV3",
    "writer",
    "Iceberg 3 writers may write the table too: id mapping, physical names col-<id>, no byte or short.",
    requires=("columnMapping", "icebergCompatV3"),
    properties={SWITCH: "true switches the requirements on"},
    active=methodcaller("flag", SWITCH),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if switched_on(metadata, SWITCH) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    _check(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[NoReturn]:
    _check(table)
    return ()


def _check(table: TableState) -> None:
    if table.is_active(FEATURE.name):
        raise UnsupportedFeatureError(
            f"Feature {FEATURE.name} is switched on ({SWITCH}=true): delta_core reads such tables and does not write "
            "them. Set the property to false with the engine that set it, or write with that engine.",
            feature=FEATURE.name,
        )


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (SWITCH,))] if change == "drop" else []
