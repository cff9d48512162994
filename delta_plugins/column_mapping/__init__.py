"""columnMapping: columns keep their physical name or id in files when they are renamed. Protocol: Column Mapping."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import (
    NOT_IN_NAMES,
    ChangeSchema,
    ColumnMap,
    FeatureStep,
    FeatureUse,
    FileRequirement,
    Metadata,
    RemoveProperties,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.column_mapping import assign, logic

__all__ = ["FEATURE", "RemoveProperties"]


def _is_active(table: TableState) -> bool:
    return logic.mapping_mode(table.configuration) != "none"


FEATURE = TableFeature(
    "columnMapping",
    "reader+writer",
    "Columns can be renamed and dropped without a rewrite: files know them by physical names or ids.",
    # they choose the mode and how columns are named before ids and names are given
    after=(
        "columnMappingUsageTracking",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "icebergWriterCompatV1",
        "icebergWriterCompatV3",
    ),
    properties={
        logic.MODE: "none, name or id: how columns are found in files",
        logic.MAX_ID: "the highest id that was ever given to a column",
    },
    reserved=(logic.MAX_ID,),
    active=_is_active,
    remedies={"column_names": f"set the table property {logic.MODE}=name"},
    is_layout=True,
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.column_map(table.schema, table.configuration)


@hookimpl
def column_map(table: TableState) -> ColumnMap | None:
    return logic.column_map(table.schema, table.configuration)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [] if logic.mapping_mode(metadata.configuration) == "none" else [FEATURE.name]


@hookimpl
def prepare_metadata(table: TableState, metadata: Metadata, previous: TableState | None) -> Metadata:
    return assign.with_ids(table, metadata, previous)


@hookimpl
def check_metadata(table: TableState, previous: TableState | None, is_new: bool) -> None:
    assign.check_change(table, previous, is_new=is_new)


@hookimpl
def write_rules(table: TableState) -> Iterable[FileRequirement]:
    # directories would report physical names, which contain nothing, or logical ones, which may change
    return [FileRequirement(FEATURE.name, random_prefix=True, field_ids=True)] if table.is_active(FEATURE.name) else []


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    if change == "drop":
        if table.is_active("clustering"):
            # the domain names columns as files do
            yield FeatureUse(
                FEATURE.name, ("clustering columns",), "End clustering first, and set the columns again then."
            )
        special = assign.special_names(table.schema) if table.is_active(FEATURE.name) else ()
        advice = f"Rename them: not allowed are empty names and any of {NOT_IN_NAMES!r}."
        yield FeatureUse(FEATURE.name, special, advice)
        # a file has the physical names or the logical ones: all change in one commit
        yield ChangeSchema(
            FEATURE.name,
            assign.without_names,
            "REMOVE COLUMN MAPPING",
            (logic.MODE, logic.MAX_ID),
            rewrite=table.is_active(FEATURE.name),
        )
