"""The command alter: each subcommand changes the table as the call of its name does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.bundled import skip_without

MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    rows = pa.table({"id": pa.array([1], pa.int32()), "day": ["x"]})
    write_deltalake(tmp_path / "t", rows, configuration=MAPPED)
    return str(tmp_path / "t")


CASES: dict[str, tuple[list[str], Any]] = {
    "add-column": (["s", "struct<a: int>", "--comment", "c"], lambda t: t.schema().names == ["id", "day", "s"]),
    "rename-column": (["id", "a key"], lambda t: t.schema().names == ["a key", "day"]),
    "drop-column": (["day"], lambda t: t.schema().names == ["id"]),
    "move-column": (["day", "--first"], lambda t: t.schema().names == ["day", "id"]),
    "widen-type": (["id", "bigint"], lambda t: t.schema().get("id").type.type == "long"),
    "set-comment": (["id", "why"], lambda t: t.schema().get("id").metadata["comment"] == "why"),
    "set-not-null": (["id"], lambda t: not t.schema().get("id").nullable),
    "drop-not-null": (["id"], lambda t: t.schema().get("id").nullable),
    "set-default": (["day", "'d'"], lambda t: t.schema().get("day").metadata["CURRENT_DEFAULT"] == "'d'"),
    "drop-default": (["day"], lambda t: "CURRENT_DEFAULT" not in t.schema().get("day").metadata),
    "add-constraint": (["c", "id > 0"], lambda t: t.metadata().configuration["delta.constraints.c"] == "id > 0"),
    "drop-constraint": (["c"], lambda t: "delta.constraints.c" not in t.metadata().configuration),
    "cluster-by": (["id"], lambda t: "clustering" in t.protocol().writer_features),
    "set-property": (["a=b=c", "d=e"], lambda t: t.metadata().configuration["a"] == "b=c"),
    "unset-property": (["a"], lambda t: "a" not in t.metadata().configuration),
    "set-name": (["n"], lambda t: t.metadata().name == "n"),
    "set-description": (["text"], lambda t: t.metadata().description == "text"),
    "add-feature": (["rowTracking"], lambda t: "rowTracking" in t.protocol().writer_features),
}
BEFORE = {
    "drop-not-null": ["set-not-null", "id"],
    "drop-default": ["set-default", "day", "'d'"],
    "drop-constraint": ["add-constraint", "c", "id > 0"],
    "unset-property": ["set-property", "a=b"],
}


@pytest.mark.parametrize("command", CASES)
def test_subcommand_changes_the_table(run: Any, uri: str, command: str) -> None:
    if command == "cluster-by":
        skip_without("clustering")
    if command in BEFORE:
        run("alter", uri, *BEFORE[command])
    arguments, holds = CASES[command]
    found = run("alter", uri, command, *arguments, "--json").json
    table = DeltaTable(uri)
    assert holds(table)
    assert found == {"version": table.version(), "operation": table.history(1)[0]["operation"]}


def test_every_subcommand_is_tried_and_documented(run: Any) -> None:
    listed = run("alter", "--help").out.partition("Commands:")[2]
    assert set(re.findall(r"^  ([a-z-]+)", listed, re.MULTILINE)) == set(CASES)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["rename-column", "nope", "x"], 1, "nope"),
        (["add-column", "x", "nope"], 2, "Found the type 'nope'"),
        (["move-column", "id"], 2, "first=True"),
        (["set-property", "delta.apendOnly=true"], 2, "Did you mean 'delta.appendOnly'"),
        (["set-property", "delta.nope=1"], 2, "--allow-unknown"),
        (["drop-constraint", "c"], 1, "'drop_constraint' needs the table feature checkConstraints"),
        (["add-constraint", "c", "id > 1"], 1, "breaks the CHECK constraint"),
    ],
)
def test_change_that_fails_is_explained_and_commits_nothing(
    run: Any, uri: str, arguments: list[str], code: int, text: str
) -> None:
    found = run("alter", uri, *arguments)
    assert (found.code, DeltaTable(uri).version()) == (code, 0)
    assert text in found.err


def test_unknown_property_is_set_if_that_is_allowed(run: Any, uri: str) -> None:
    assert run("alter", uri, "set-property", "delta.nope=1", "--allow-unknown").code == 0
    assert DeltaTable(uri).metadata().configuration["delta.nope"] == "1"
