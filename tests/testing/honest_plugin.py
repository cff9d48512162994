"""A plugin that keeps every rule, in parts that tests replace by mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.api import (
    ActionColumn,
    ActionField,
    ActionKind,
    Call,
    ChecksumField,
    Column,
    CommitInfoField,
    CommitSummary,
    ExtraAction,
    FileRequirement,
    FillColumn,
    Function,
    HiddenColumn,
    Literal,
    Metadata,
    MetadataColumn,
    PhysicalColumn,
    PrimitiveType,
    ReadCheck,
    RemoveRows,
    RowCheck,
    RowFilter,
    RowSelector,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.deletion_vectors.logic import decode, locate
from delta_plugins.deletion_vectors.write import encode

NAME = "acme.stamp"
ON, LIMIT = "acme.stamp.on", "acme.stamp.limit"
LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
ID = Column(("id",))
STAMP = Call("xxhash64", (ID,))
STORED = PhysicalColumn("_acme_stamp", LONG)


def is_on(table: TableState) -> bool:
    return table.configuration.get(ON) == "true"


FEATURE = TableFeature(
    NAME,
    "reader+writer",
    "Rows have a stamp.",
    properties={ON: "true switches it on", LIMIT: "the least id that is hidden"},
    fields=(ActionField("add", "stampedBy", pa.string()),),
    actions=(ActionKind("acmeNote", pa.struct([("text", pa.string())]), key=("text",)),),
    active=is_on,
)


def least(values: list[pa.DataType]) -> pa.DataType:
    return values[0]


def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def functions() -> list[Function]:
    return [Function(NAME, "acme_twice", least, twice, "({0} * 2L)")]


def required_features(metadata: Metadata) -> list[str]:
    return [NAME] if metadata.configuration.get(ON) == "true" else []


def prepare_metadata(metadata: Metadata) -> Metadata:
    return metadata


def check_read(table: TableState) -> None:
    assert table.configuration.get(ON) in (None, "true", "false")


READ = {
    "column": MetadataColumn(NAME, "_stamp", LONG, STORED),
    "check": ReadCheck(NAME, "stamp fits", Call("=", (STORED, STAMP)), "a row has another stamp"),
    "filter": RowFilter(NAME, Call("<", (ID, Literal(100, LONG)))),
    "selector": RowSelector(NAME, ("deletionVector",), locate, decode),
}
WRITE = {
    "hidden": HiddenColumn(NAME, "_acme_stamp", LONG, STAMP, on_rewrite="carry", carries="_stamp"),
    "check": RowCheck(NAME, "positive", Call(">", (ID, Literal(0, LONG)))),
    "fill": FillColumn(NAME, ("doubled",), Call("acme_twice", (ID,))),
    "remove": RemoveRows(NAME, encode),
    "files": FileRequirement(NAME, folder="acme/stamped"),
}


def read_rules(table: TableState) -> list[Any]:
    limit = table.configuration.get(LIMIT, "100")
    assert limit == "100"
    return list(READ.values()) if is_on(table) else []


def write_rules(table: TableState) -> list[Any]:
    return list(WRITE.values()) if is_on(table) else []


def commit(attempt: Any) -> dict[str, Any]:
    """Return the rules of a commit by name."""
    return {
        "field": ActionColumn(NAME, "add", "stampedBy", pa.array(["me"] * attempt.adds.num_rows, pa.string())),
        "note": ExtraAction(NAME, "acmeNote", {"text": f"version {attempt.version}"}),
        "info": CommitInfoField(NAME, "stamped", True),
    }


def commit_rules(attempt: Any) -> list[Any]:
    return list(commit(attempt).values()) if is_on(attempt.table) else []


def rebase_files(table: TableState, adds: pa.Table) -> list[ActionColumn]:
    return (
        [ActionColumn(NAME, "add", "stampedBy", pa.array(["me"] * adds.num_rows, pa.string()))] if is_on(table) else []
    )


def checksum_fields(table: TableState, commit: CommitSummary) -> list[ChecksumField]:
    return [ChecksumField(NAME, "acmeStamps", {"of": commit.info.get("operation")})] if is_on(table) else []


HOOKS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        functions,
        required_features,
        prepare_metadata,
        check_read,
        read_rules,
        write_rules,
        commit_rules,
        rebase_files,
        checksum_fields,
    )
}


class Plugin:
    """The plugin; each hook can be replaced, or left out by None."""

    def __init__(self, feature: TableFeature = FEATURE, **hooks: Callable[..., Any] | None) -> None:
        self.FEATURE = feature
        for name, function in {**HOOKS, **hooks}.items():
            if function is not None:
                setattr(self, name, hookimpl(function))
