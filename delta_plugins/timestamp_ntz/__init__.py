"""timestampNtz: the type of timestamps without a time zone. Protocol: Timestamp without timezone."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.api import (
    TIMESTAMP_NTZ,
    FeatureStep,
    FeatureUse,
    Metadata,
    PrimitiveType,
    Schema,
    StructType,
    TableFeature,
    TableState,
    TypeDef,
    format_path,
    hookimpl,
    walk,
)

__all__ = ["FEATURE", "Schema"]

_NAMES = frozenset((TIMESTAMP_NTZ.name, *TIMESTAMP_NTZ.aliases))


def _uses_type(schema: StructType) -> bool:
    return any(isinstance(f.type, PrimitiveType) and f.type.type in _NAMES for _, f in walk(schema))


def _is_active(table: TableState) -> bool:
    return _uses_type(table.schema)


FEATURE = TableFeature(
    "timestampNtz",
    "reader+writer",
    "Columns may hold timestamps without a time zone.",
    active=_is_active,
    is_layout=True,
)


@hookimpl
def primitive_types() -> Iterable[TypeDef]:
    return (TIMESTAMP_NTZ,)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if _uses_type(metadata.schema) else []


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = (
        tuple(
            f"column {format_path(p)}"
            for p, f in walk(table.schema)
            if isinstance(f.type, PrimitiveType) and f.type.type in _NAMES
        )
        if change == "drop"
        else ()
    )
    return [FeatureUse(FEATURE.name, users, "Drop these columns first.")] if users else []
