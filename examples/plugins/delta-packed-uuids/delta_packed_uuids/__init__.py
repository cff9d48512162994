"""example.packedUuids: files store texts of UUIDs as 16 bytes."""

from collections.abc import Iterable

from delta_core.api import (
    ChangeSchema,
    ColumnEncoding,
    FeatureStep,
    Function,
    Metadata,
    Path,
    RowCheck,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_packed_uuids import logic

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return logic.COLUMNS in table.configuration


FEATURE = TableFeature(
    "example.packedUuids",
    "reader+writer",
    "Files store texts of UUIDs as 16 bytes.",
    properties={logic.COLUMNS: "string columns that hold UUIDs in lower case, joined by commas"},
    active=_is_active,
    is_layout=True,
)


@hookimpl
def functions() -> Iterable[Function]:
    return logic.FUNCTIONS


@hookimpl
def column_encodings(table: TableState) -> Iterable[ColumnEncoding]:
    return logic.encodings(table)


# --- writing ---


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.COLUMNS in metadata.configuration else []


@hookimpl
def check_column_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    logic.check_kept(table, paths)


@hookimpl
def write_rules(table: TableState) -> Iterable[RowCheck]:
    return logic.checks(table)


# --- dropping the feature ---


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    if change != "drop":
        return []
    unpacked = ChangeSchema(FEATURE.name, logic.same_schema, "UNPACK UUIDS", (logic.COLUMNS,), rewrite=True)
    return [unpacked]
