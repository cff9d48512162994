"""typeWidening: columns may change to wider types without a rewrite. Protocol: Type Widening."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller

from delta_core.api import (
    ChangeSchema,
    FeatureStep,
    Metadata,
    PrimitiveType,
    RemoveProperties,
    RewriteFiles,
    SetProperties,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.type_widening import logic, record

__all__ = ["FEATURE"]

SWITCH = "delta.enableTypeWidening"
FEATURE = TableFeature(
    "typeWidening",
    "reader+writer",
    "Columns may change to wider types while older files keep the narrow ones.",
    aliases=("typeWidening-preview",),
    # by physical names a column is the same under another name
    after=("columnMapping",),
    properties={SWITCH: "true allows such changes"},
    active=methodcaller("flag", SWITCH),
    remedies={"type_change": f"widen it with the table property {SWITCH}=true"},
    is_layout=True,
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.check_type_changes(table.schema)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if metadata.configuration.get(SWITCH, "").strip().lower() == "true" else []


@hookimpl
def accept_type_change(table: TableState, old: PrimitiveType, new: PrimitiveType) -> bool | None:
    accepted = table.is_active(FEATURE.name) and logic.is_widening(old.type, new.type)
    return True if accepted else None


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    return metadata if previous is None else record.with_changes(metadata, previous)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    if change == "drop":
        columns = record.changed_columns(table.schema)
        if columns:
            # no column changes its type from then on
            yield SetProperties(FEATURE.name, {SWITCH: None})
            yield RewriteFiles(FEATURE.name, columns=columns)
            yield ChangeSchema(FEATURE.name, record.without_changes, "DROP FEATURE")
        yield RemoveProperties(FEATURE.name, (SWITCH,))
