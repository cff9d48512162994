"""icebergWriterCompatV1: what Iceberg writers may also write. From a proposal to the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller

from msgspec.structs import replace

from delta_core.api import (
    FeatureRequirementError,
    FeatureStep,
    MapType,
    Metadata,
    PrimitiveType,
    RemoveProperties,
    SchemaError,
    StructType,
    TableFeature,
    TableState,
    format_path,
    hookimpl,
    walk,
)
from delta_plugins.iceberg_compat.logic import MODE, switched_on

__all__ = ["FEATURE"]

SWITCH = "delta.enableIcebergWriterCompatV1"
_COMPAT = "delta.enableIcebergCompatV2"
#: Features that tables may use, and those that they may support but not use.
_USED = frozenset(
    {
        "appendOnly",
        "columnMapping",
        "icebergWriterCompatV1",
        "icebergCompatV2",
        "domainMetadata",
        "vacuumProtocolCheck",
        "v2Checkpoint",
        "inCommitTimestamp",
        "clustering",
        "timestampNtz",
        "typeWidening",
        "catalogManaged",
    }
)
_IDLE = frozenset({"invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns"})
FEATURE = TableFeature(
    "icebergWriterCompatV1",
    "writer",
    "Iceberg writers may write the table too: id mapping, physical names col-<id>, no byte or short.",
    requires=("columnMapping", "icebergCompatV2"),
    properties={SWITCH: "true switches the requirements on"},
    active=methodcaller("flag", SWITCH),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if switched_on(metadata, SWITCH) else []


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    if previous is not None or not switched_on(metadata, SWITCH):
        return metadata
    return replace(metadata, configuration={MODE: "id", _COMPAT: "true", **metadata.configuration})


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    if table.is_active(FEATURE.name):
        _check_features(table)
        _check_columns(table)
        if previous is not None:
            _check_keys(table, previous)


def _check_features(table: TableState) -> None:
    if not table.is_active("icebergCompatV2"):
        _lacks(f"{_COMPAT}=true")
    if (table.property(MODE) or "").strip().lower() != "id":
        _lacks(f"{MODE}=id")
    unsupported = sorted(table.features - _USED - _IDLE)
    if unsupported:
        _lacks(f"a table without the feature {unsupported[0]}, which Iceberg writers would break")
    # NOT NULL is no invariant in the sense of the proposal
    used = [f for f in sorted(_IDLE - {"invariants"}) if table.is_active(f)]
    used += [f"invariants ({format_path(p)})" for p, f in walk(table.schema) if "delta.invariants" in f.metadata]
    if used:
        _lacks(f"that {used[0]} is not in use, which Iceberg writers would break")


def _lacks(what: str) -> None:
    raise FeatureRequirementError(f"{SWITCH}=true needs {what}.", feature=FEATURE.name)


def _check_columns(table: TableState) -> None:
    for path, f in walk(table.schema):
        column = format_path(path)
        if isinstance(f.type, PrimitiveType) and f.type.type in ("byte", "short"):
            raise SchemaError(f"Column {column} has type {f.type.type}, not allowed by {FEATURE.name}.", column=column)
        number, name = (f.metadata.get(f"delta.columnMapping.{k}") for k in ("id", "physicalName"))
        if number is not None and name != f"col-{number}":
            raise SchemaError(
                f"Column {column} is {name!r} in files; {FEATURE.name} expects 'col-{number}', by its id.",
                column=column,
            )


def _check_keys(table: TableState, previous: TableState) -> None:
    """Reject a change of a struct that is the key of a map."""
    old = {path: f.type.key_type for path, f in walk(previous.schema) if isinstance(f.type, MapType)}
    for path, f in walk(table.schema):
        keys = f.type.key_type if isinstance(f.type, MapType) else None
        if isinstance(keys, StructType) and old.get(path, keys) != keys:
            column = format_path(path)
            raise SchemaError(f"The keys of map {column} can't change under {FEATURE.name}.", column=column)


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (SWITCH,))] if change == "drop" else []
