"""How the schemas of two versions differ, and the form in which a stream keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import LogError, StreamSchemaError
from delta_core.operations.stream_schema import (
    ColumnChanges,
    StoredDefinition,
    StoredSchema,
    column_changes,
    why_different,
)

PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
ROWS = pa.table({
    "id": pa.array([1], pa.int32()),
    "p": ["a"],
    "s": pa.array([{"a": 1, "b": {"c": 2}}], pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int32())]))])),
    "l": pa.array([[{"e": 1}]], pa.list_(pa.struct([("e", pa.int32())]))),
})  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS, partition_by=["p"], configuration=PROPERTIES)
    return DeltaTable(tmp_path / "t")


def changes_since(table: DeltaTable, version: int) -> ColumnChanges:
    return column_changes(DeltaTable(table.table_uri, version=version).snapshot(), table.snapshot())


def test_changes_of_columns_are_found_at_any_depth(table: DeltaTable) -> None:
    table.alter.rename_column("s", "t")
    table.alter.rename_column("t.a", "d")
    table.alter.drop_column("t.b")
    table.alter.widen_type("l.element.e", "long")
    table.alter.add_column("more", "string")
    found = changes_since(table, 0)
    assert found.renamed == (("s", "t"), ("s.a", "t.d"))
    assert found.dropped == ("s.b",)
    assert [name for name, _, _ in found.widened] == ["l.element.e"]
    assert str(found).startswith("column s.b was dropped, column s was renamed to t, column s.a was renamed to t.d")
    assert str(found).endswith("column l.element.e changed its type from integer to long")


def test_column_that_was_dropped_and_added_again_was_dropped(table: DeltaTable) -> None:
    table.alter.drop_column("id")
    table.alter.add_column("id", "string")
    assert changes_since(table, 0) == ColumnChanges(dropped=("id",))


def test_type_that_is_no_wider_one_is_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    write_deltalake(tmp_path / "t", pa.table({"id": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(StreamSchemaError, match="Column id changed its type from long to string"):
        changes_since(DeltaTable(tmp_path / "t"), 0)


def test_stored_schema_survives_its_text(table: DeltaTable) -> None:
    first = table.snapshot()
    stored = StoredSchema.of(first, "file:/cp/sources/0")
    text = stored.to_text()
    parsed = StoredSchema.parse(text, "here")
    assert parsed.to_text() == text
    assert parsed.metadata.partition_columns == ("p",)
    table.alter.rename_column("s", "t")
    definition = StoredDefinition.of(parsed, table.snapshot())
    assert why_different(definition, first) is None
    assert why_different(definition, table.snapshot()) == "column s was dropped or renamed"
    assert column_changes(definition, table.snapshot()).renamed == (("s", "t"),)


def test_entry_with_fewer_fields_has_the_protocol_of_the_table(table: DeltaTable) -> None:
    head, body = StoredSchema.of(table.snapshot(), "source").to_text().split("\n")
    value = json.loads(body)
    del value["protocolJson"]
    value["previousMetadataSeqNum"] = 4
    parsed = StoredSchema.parse(f"{head}\n{json.dumps(value)}", "here")
    assert parsed.protocol is None
    assert parsed.previous == 4
    assert why_different(StoredDefinition.of(parsed, table.snapshot()), table.snapshot()) is None


@pytest.mark.parametrize("text", ["", "v1", "v2\n{}", "v1\n{}", "v1\n[]", 'v1\n{"tableId":"a"', "v1\n7"])
def test_text_that_is_no_entry_is_rejected(text: str) -> None:
    with pytest.raises(LogError, match="The stored schema of a stream in cp/0 can't be read"):
        StoredSchema.parse(text, "cp/0")
