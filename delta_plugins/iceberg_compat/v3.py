"""icebergCompatV3: files that Iceberg 3 can take over, vectors and row ids included.

rowTracking returns the hidden columns the field ids that Iceberg has them by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from delta_core.api import (
    Call,
    Cast,
    Expression,
    FeatureRequirementError,
    FeatureStep,
    FileRequirement,
    Literal,
    Metadata,
    RemainingFilesCheck,
    RemoveProperties,
    SchemaError,
    TableState,
    format_path,
    hookimpl,
    parse_sql,
    walk,
)
from delta_plugins.iceberg_compat.logic import Version, switched_on

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

_ROW_IDS = "delta.enableRowTracking"
_VERSION = Version("icebergCompatV3", vectors="supported", types=frozenset({"variant"}))
FEATURE = _VERSION.feature(
    "Data files and metadata are written so that they convert to Iceberg (3, with deletion vectors and row tracking).",
    requires=("columnMapping", "rowTracking"),
    # which switches it on in new tables
    after=("icebergWriterCompatV3",),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if switched_on(metadata, _VERSION.switch) else []


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    found = _VERSION.prepared(metadata, previous)
    if previous is None and switched_on(found, _VERSION.switch) and _ROW_IDS not in found.configuration:
        found = replace(found, configuration={**found.configuration, _ROW_IDS: "true"})
    return found


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    _VERSION.check(table, previous)
    if table.is_active(FEATURE.name):
        _check_row_ids(table)
        _check_defaults(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[FileRequirement]:
    return _VERSION.requirements(table)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[RemainingFilesCheck]:
    return _VERSION.commit_rules(attempt)


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    _VERSION.check_commit(attempt)


def _check_row_ids(table: TableState) -> None:
    if not table.is_active("rowTracking"):
        raise FeatureRequirementError(f"{_VERSION.switch}=true needs {_ROW_IDS}=true.", feature=FEATURE.name)


def _check_defaults(table: TableState) -> None:
    for path, f in walk(table.schema):
        text = f.metadata.get("CURRENT_DEFAULT")
        if text is not None and not _is_constant(parse_sql(str(text))):
            raise SchemaError(
                f"Column {format_path(path)} has the default {text}; {FEATURE.name} allows plain values only.",
                column=format_path(path),
            )


def _is_constant(expression: Expression) -> bool:
    if isinstance(expression, Cast):
        return _is_constant(expression.arg)
    if isinstance(expression, Call):
        return expression.function == "-" and len(expression.args) == 1 and _is_constant(expression.args[0])
    return isinstance(expression, Literal)


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveProperties(FEATURE.name, (_VERSION.switch,))] if change == "drop" else []
