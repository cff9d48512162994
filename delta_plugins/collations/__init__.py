"""collations: string columns that compare by a collation; statistics by collation are beside the usual ones.

Comparisons here are by bytes: constraints, replaced rows and statistics of a collated column would be wrong, so that
tables are written only while no column has a collation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from delta_core.api import (
    FeatureStep,
    FeatureUse,
    Metadata,
    Path,
    Schema,
    StructType,
    TableFeature,
    TableState,
    UnsupportedFeatureError,
    format_path,
    hookimpl,
    walk,
)

__all__ = ["FEATURE", "Schema"]

KEY = "__COLLATIONS"


def _collated(schema: StructType) -> list[Path]:
    return [path for path, f in walk(schema) if KEY in f.metadata]


def _is_active(table: TableState) -> bool:
    return bool(_collated(table.schema))


FEATURE = TableFeature(
    "collations",
    "writer",
    "String columns compare by a named collation.",
    aliases=("collations-preview",),
    requires=("domainMetadata",),
    active=_is_active,
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if _collated(metadata.schema) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    _check(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[NoReturn]:
    _check(table)
    return ()


def _check(table: TableState) -> None:
    found = _collated(table.schema)
    if found:
        raise UnsupportedFeatureError(
            f"Column {format_path(found[0])} has a collation, and delta_core compares strings by their bytes only: the "
            "table can be read, not written. Write it with an engine that has feature collations.",
            feature=FEATURE.name,
            column=format_path(found[0]),
        )


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = tuple(f"column {format_path(p)}" for p in _collated(table.schema)) if change == "drop" else ()
    return [FeatureUse(FEATURE.name, users, "Overwrite the schema without collations first.")] if users else []
