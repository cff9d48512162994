"""variantType: values of any shape in one column. Protocol: Variant Data Type.

Files are written unshredded, which every reader of variants understands.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from delta_core.api import (
    VARIANT,
    FeatureStep,
    FeatureUse,
    Function,
    Metadata,
    PrimitiveType,
    Schema,
    TableFeature,
    TableState,
    TypeDef,
    format_path,
    hookimpl,
    walk,
)
from delta_plugins.variant_type import schema_rules
from delta_plugins.variant_type.logic import json_type, unshred, variant_to_json

__all__ = ["FEATURE", "Schema"]

#: Files may hold variants shredded, each in its own way.
_VARIANT = replace(VARIANT, decode=unshred, to_json=variant_to_json)
_VARIANT_JSON = Function("variantType", "variant_json", json_type, variant_to_json, spark="to_json({0})")


def _is_active(table: TableState) -> bool:
    return schema_rules.holds_variants(table.schema)


FEATURE = TableFeature(
    "variantType",
    "reader+writer",
    "Columns may hold values of any shape, in a binary form.",
    aliases=("variantType-preview",),
    active=_is_active,
    is_layout=True,
)


@hookimpl
def primitive_types() -> Iterable[TypeDef]:
    return (_VARIANT,)


@hookimpl
def functions() -> Iterable[Function]:
    return (_VARIANT_JSON,)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if schema_rules.holds_variants(metadata.schema) else []


@hookimpl
def check_metadata(table: TableState) -> None:
    schema_rules.check_columns(table)


@hookimpl
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    users = (
        tuple(f"column {format_path(p)}" for p, f in walk(table.schema) if f.type == PrimitiveType("variant"))
        if change == "drop"
        else ()
    )
    return [FeatureUse(FEATURE.name, users, "Drop these columns first.")] if users else []
