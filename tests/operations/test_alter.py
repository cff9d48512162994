"""ALTER TABLE: what the table is afterwards, which rows it has, what is rejected, and what other writers meet."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, Field, Schema, TableFeatures, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InvalidArgumentError,
    MetadataChangedError,
    SchemaError,
    TypeChangeError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.options import AppTransaction
from delta_core.operations import alter
from delta_core.schema.type_text import parse_type_text
from delta_core.schema.types import ArrayType, MapType, PrimitiveType, StructType
from delta_core.table.alterer import TableAlterer

MAPPED = {"delta.columnMapping.mode": "name"}
WIDENING = {"delta.enableTypeWidening": "true"}
NESTED = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        pa.field("l", pa.list_(pa.struct([("x", pa.int16())]))),
        pa.field("m", pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
    ]
)
ROW = {"id": 1, "s": {"a": 2, "b": "b"}, "l": [{"x": 3}], "m": [("k", {"v": 4})]}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., DeltaTable]:
    def build(
        schema: pa.Schema = NESTED, rows: list[dict[str, Any]] | None = None, name: str = "t", **options: Any
    ) -> DeltaTable:
        uri = str(tmp_path / name)
        table = DeltaTable.create(uri, schema, **options)
        found = [ROW] if rows is None else rows
        if found:
            write_deltalake(table, pa.Table.from_pylist(found, schema), mode="append")
        return DeltaTable(uri)

    return build


def last(table: DeltaTable) -> dict[str, Any]:
    return table.history(1)[0]


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(table.table_uri).to_pyarrow_table().to_pylist()
    return found


# --- columns -------------------------------------------------------------------------------


@pytest.mark.parametrize("properties", [{}, MAPPED])
def test_added_columns_are_null_in_rows_that_are_there(make: Any, properties: dict[str, str]) -> None:
    table = make(configuration=properties)
    table.alter.add_columns(
        [
            Field("day", PrimitiveType("date"), metadata={"comment": "of sale"}),
            Field("s", StructType([Field("c", PrimitiveType("long"))])),
            Field("l", ArrayType(StructType([Field("y", PrimitiveType("string"))]))),
        ]
    )
    assert rows(table) == [{**ROW, "s": {"a": 2, "b": "b", "c": None}, "l": [{"x": 3, "y": None}], "day": None}]
    assert table.schema().get("day").metadata["comment"] == "of sale"
    said = last(table)
    assert said["operation"] == "ADD COLUMN"
    columns = [c["column"] for c in json.loads(said["operationParameters"]["columns"])]
    assert [(c["name"], c["type"]) for c in columns] == [
        ("day", "date"), ("s.c", "long"), ("l.element.y", "string"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("day", {**ROW, "day": None}),
        ("s.c", {**ROW, "s": {"a": 2, "b": "b", "c": None}}),
        ("L.element.y", {**ROW, "l": [{"x": 3, "y": None}]}),
        (("m", "value", "w"), {**ROW, "m": [("k", {"v": 4, "w": None})]}),
    ],
)
def test_one_column_is_added_by_its_path(make: Any, column: Any, expected: dict[str, Any]) -> None:
    table = make()
    table.alter.add_column(column, "decimal(5,2)", comment="new")
    assert rows(table) == [expected]
    with pytest.raises(SchemaError, match="already"):
        table.alter.add_column(column, "decimal(5,2)")
    path = column.split(".") if isinstance(column, str) else column
    assert alter.find(table.schema(), tuple(path))[1].metadata == {"comment": "new"}


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ("id.x", InvalidArgumentError),
        ("l.x", InvalidArgumentError),
        ("nope.x", ColumnNotFoundError),
        ("s.a", SchemaError),
    ],
)
def test_field_of_no_struct_is_not_added(make: Any, column: str, error: type) -> None:
    with pytest.raises(error):
        make().alter.add_column(column, "int")


@pytest.mark.parametrize(
    ("field", "error", "text"),
    [
        (Field("n", "long", nullable=False), SchemaError, "Column n is NOT NULL"),
        (Field("id", "long"), SchemaError, "in the table already, as integer"),
        (Field("ID", "long"), SchemaError, "in the table already, as integer"),
        (Field("s", "long"), SchemaError, "in the table already, as struct"),
        (Field("n", "long", metadata={"CURRENT_DEFAULT": "1"}), SchemaError, "feature allowColumnDefaults"),
        (Field("n", "long", metadata={"delta.generationExpression": "id"}), SchemaError, "feature generatedColumns"),
        (
            Field("n", "long", metadata={"delta.identity.start": 1, "delta.identity.step": 1}),
            SchemaError,
            "feature identityColumns",
        ),
        (Field("", "long"), SchemaError, "delta.columnMapping.mode"),
        ("n", InvalidArgumentError, "Found a field as str"),
    ],
)
def test_column_that_rows_could_not_have_is_not_added(make: Any, field: Any, error: type, text: str) -> None:
    table = make()
    with pytest.raises(error) as caught:
        table.alter.add_columns([field])
    assert text in str(caught.value)
    assert DeltaTable(table.table_uri).version() == 1


def test_add_of_columns_that_are_there_commits_nothing(make: Any) -> None:
    table = make()
    table.alter.add_columns(Field("id", "integer"))
    assert table.version() == 1


@pytest.mark.parametrize(
    ("column", "name", "expected"),
    [
        ("id", "Key of row", {"Key of row": 1, "s": ROW["s"], "l": ROW["l"], "m": ROW["m"]}),
        ("s.a", "b.c", {**ROW, "s": {"b.c": 2, "b": "b"}}),
        ("S.A", "A", {**ROW, "s": {"A": 2, "b": "b"}}),
        (("l", "element", "x"), "z", {**ROW, "l": [{"z": 3}]}),
        ("m.value.v", "w", {**ROW, "m": [("k", {"w": 4})]}),
    ],
)
def test_renamed_column_keeps_its_values(make: Any, column: Any, name: str, expected: dict[str, Any]) -> None:
    table = make(configuration=MAPPED)
    table.alter.rename_column(column, name)
    assert rows(table) == [expected]
    said = last(table)
    assert said["operation"] == "RENAME COLUMN"
    assert set(said["operationParameters"]) == {"oldColumnPath", "newColumnPath"}
    write_deltalake(table, DeltaTable(table.table_uri).to_pyarrow_table(), mode="append")
    assert rows(table) == [expected, expected]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("id", {"s": ROW["s"], "l": ROW["l"], "m": ROW["m"]}),
        (["id", "s.a"], {"s": {"b": "b"}, "l": ROW["l"], "m": ROW["m"]}),
        ([("s", "a"), "s"], {"id": 1, "l": ROW["l"], "m": ROW["m"]}),
    ],
)
def test_dropped_column_is_gone_and_its_values_do_not_come_back(make: Any, column: Any, expected: Any) -> None:
    table = make(configuration=MAPPED)
    table.alter.drop_column(column)
    assert rows(table) == [expected]
    assert last(table)["operation"] == "DROP COLUMNS"
    table.alter.add_columns([Field("id", "integer")] if "id" not in expected else [Field("s", "long")])
    added = "id" if "id" not in expected else "s"
    assert [r[added] for r in rows(table)] == [None]


@pytest.mark.parametrize("call", [lambda a: a.rename_column("id", "n"), lambda a: a.drop_column("id")])
def test_rename_and_drop_need_mapping_and_name_the_property_that_enables_it(make: Any, call: Any) -> None:
    table = make()
    with pytest.raises(
        UnsupportedOperationError, match=r"First set the table property delta\.columnMapping\.mode=name"
    ):
        call(table.alter)
    table.alter.set_table_properties(MAPPED)
    call(table.alter)
    assert [sorted(r) for r in rows(table)] in ([["l", "m", "n", "s"]], [["l", "m", "s"]])


@pytest.mark.parametrize(("column", "name"), [("id", "S"), ("s.a", "b"), ("s.a", "B")])
def test_rename_to_the_name_of_another_column_is_rejected(make: Any, column: str, name: str) -> None:
    table = make(configuration=MAPPED)
    with pytest.raises(SchemaError, match="there is a column"):
        table.alter.rename_column(column, name)


def test_last_field_of_a_struct_and_last_column_can_not_be_dropped(make: Any) -> None:
    table = make(configuration=MAPPED, partition_by=["id"])
    with pytest.raises(SchemaError, match="only field"):
        table.alter.drop_column("l.element.x")
    with pytest.raises(SchemaError, match="only field"):
        table.alter.drop_column(["s.a", "s.b"])
    with pytest.raises(SchemaError, match="at least one other column"):
        table.alter.drop_column(["s", "l", "m"])
    with pytest.raises(SchemaError, match="partitions the table"):
        table.alter.drop_column("id")


def test_renamed_partition_column_keeps_the_partitions(make: Any) -> None:
    table = make(configuration=MAPPED, partition_by=["id"])
    table.alter.rename_column("id", "key")
    assert table.metadata().partition_columns == ["key"]
    assert DeltaTable(table.table_uri).scan(predicate="key = 1").count() == 1
    assert DeltaTable(table.table_uri).partitions() == [{"key": "1"}]


def test_statistics_columns_follow_renames_and_drops(make: Any) -> None:
    key = "delta.dataSkippingStatsColumns"
    table = make(configuration={**MAPPED, key: "id,s.a,`l`"})
    table.alter.rename_column("s", "new name")
    assert table.metadata().configuration[key] == "id,`new name`.a,l"
    table.alter.drop_column(["new name.a", "l"])
    assert table.metadata().configuration[key] == "id"


NEEDED: dict[str, tuple[dict[str, Any], str, str]] = {
    "constraint": ({"configuration": {**MAPPED, "delta.constraints.c": "s.a > 0"}}, "s.a", "CHECK constraint c"),
    "constraint on a part": (
        {"configuration": {**MAPPED, "delta.constraints.c": "s.a > 0"}},
        "s",
        "CHECK constraint c",
    ),
}


@pytest.mark.parametrize("case", NEEDED)
@pytest.mark.parametrize("change", ["rename", "drop"])
def test_column_that_a_constraint_uses_is_neither_renamed_nor_dropped(make: Any, case: str, change: str) -> None:
    options, column, text = NEEDED[case]
    table = make(**options)
    with pytest.raises(SchemaError, match=text) as caught:
        table.alter.rename_column(column, "z") if change == "rename" else table.alter.drop_column(column)
    assert caught.value.facts["feature"] == "checkConstraints"
    table.alter.drop_constraint("C")
    table.alter.drop_column(column)
    assert last(table)["operation"] == "DROP COLUMNS"


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_column_that_a_generated_one_is_computed_from_is_neither_renamed_nor_dropped(make: Any, change: str) -> None:
    generated = pa.field("g", pa.int32(), metadata={"delta.generationExpression": "id"})
    table = make(pa.schema([("id", pa.int32()), generated]), rows=[], configuration=MAPPED)
    write_deltalake(table, pa.table({"id": pa.array([1], pa.int32())}), mode="append")
    with pytest.raises(SchemaError, match="generated column g is computed from it"):
        table.alter.rename_column("id", "n") if change == "rename" else table.alter.drop_column("id")
    table.alter.rename_column("g", "h")
    write_deltalake(table, pa.table({"id": pa.array([2], pa.int32())}), mode="append")
    assert rows(table) == [{"id": 1, "h": 1}, {"id": 2, "h": 2}]
    table.alter.drop_column("h")
    table.alter.rename_column("id", "n")
    assert sorted(r["n"] for r in rows(table)) == [1, 2]


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_column_that_an_invariant_uses_is_neither_renamed_nor_dropped(make: Any, change: str) -> None:
    text = json.dumps({"expression": {"expression": "id > 0"}})
    field = pa.field("id", pa.int32(), metadata={"delta.invariants": text})
    table = make(pa.schema([field, ("x", pa.int32())]), rows=[{"id": 1, "x": 1}], configuration=MAPPED)
    with pytest.raises(SchemaError, match="invariant of id"):
        table.alter.rename_column("id", "n") if change == "rename" else table.alter.drop_column("id")


def test_clustering_column_can_be_renamed_and_not_dropped(make: Any) -> None:
    table = make(configuration=MAPPED, cluster_by=["id"])
    table.alter.rename_column("id", "key")
    with pytest.raises(SchemaError, match="lustering column"):
        table.alter.drop_column("key")
    table.alter.cluster_by([])
    table.alter.drop_column("key")
    assert table.schema().names == ["s", "l", "m"]


def test_identity_column_numbers_rows_on_under_its_new_name_and_can_be_dropped(make: Any) -> None:
    numbered = pa.field("n", pa.int64(), metadata={"delta.identity.start": "5", "delta.identity.step": "1"})
    table = make(pa.schema([("id", pa.int32()), numbered]), rows=[], configuration=MAPPED)
    write_deltalake(table, pa.table({"id": pa.array([1, 2], pa.int32())}), mode="append")
    table.update_incremental()
    table.alter.rename_column("n", "number")
    write_deltalake(table, pa.table({"id": pa.array([3], pa.int32())}), mode="append")
    assert sorted((r["id"], r["number"]) for r in rows(table)) == [(1, 5), (2, 6), (3, 7)]
    with pytest.raises(DeltaError, match="identity"):
        table.alter.set_default("number", "1")
    table.alter.drop_column("number")
    assert sorted(r["id"] for r in rows(table)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("column", "where", "names"),
    [
        ("m", {"first": True}, ["m", "id", "s", "l"]),
        ("id", {"after": "S"}, ["s", "id", "l", "m"]),
        ("s.b", {"first": True}, ["b", "a"]),
    ],
)
def test_moved_column_is_in_its_new_place(make: Any, column: str, where: dict[str, Any], names: list[str]) -> None:
    table = make()
    table.alter.move_column(column, **where)
    found = table.schema() if "." not in column else table.schema().get("s").type
    assert found.names == names
    assert last(table)["operation"] == "CHANGE COLUMN"
    assert rows(table) == [ROW]
    before = table.version()
    table.alter.move_column(column, **where)
    assert table.version() == before


@pytest.mark.parametrize("where", [{}, {"first": True, "after": "s"}, {"after": "id"}, {"after": "nope"}])
def test_move_to_no_place_is_rejected(make: Any, where: dict[str, Any]) -> None:
    with pytest.raises((InvalidArgumentError, ColumnNotFoundError)):
        make().alter.move_column("id", **where)


@pytest.mark.parametrize(
    ("column", "new", "expected"),
    [("id", "bigint", ROW), ("s.a", "decimal(12,2)", None), ("l.element.x", "INT", ROW), ("m.value.v", "double", ROW)],
)
def test_widened_column_has_its_old_and_wider_values(make: Any, column: str, new: str, expected: Any) -> None:
    table = make(configuration=WIDENING)
    table.alter.widen_type(column, new)
    found = rows(table)
    assert expected is None or found == [expected]
    assert "delta.typeChanges" in json.dumps(json.loads(table.snapshot().metadata.schema_string))
    write_deltalake(table, DeltaTable(table.table_uri).to_pyarrow_table(), mode="append")
    assert rows(table) == found * 2


@pytest.mark.parametrize(("column", "new"), [("id", "short"), ("id", "string"), ("s", "bigint"), ("s.b", "int")])
def test_type_that_does_not_contain_the_old_values_is_rejected(make: Any, column: str, new: str) -> None:
    with pytest.raises(TypeChangeError):
        make(configuration=WIDENING).alter.widen_type(column, new)


def test_widening_without_the_feature_names_the_property_that_enables_it(make: Any) -> None:
    with pytest.raises(TypeChangeError, match=r"delta\.enableTypeWidening=true"):
        make().alter.widen_type("id", "bigint")


def test_column_that_a_constraint_uses_is_not_widened(make: Any) -> None:
    table = make(configuration={**WIDENING, "delta.constraints.c": "id > 0"})
    with pytest.raises(TypeChangeError, match="CHECK constraint c"):
        table.alter.widen_type("id", "bigint")


@pytest.mark.parametrize("column", ["id", "s", "s.a", "l.element.x"])
def test_comment_is_set_and_removed(make: Any, column: str) -> None:
    table = make()
    table.alter.set_column_comment(column, "why")
    table.alter.set_column_metadata(column, {"owner": "me"})
    path = tuple(column.split("."))
    assert alter.find(table.schema(), path)[1].metadata == {"comment": "why", "owner": "me"}
    table.alter.set_column_comment(column, None)
    assert alter.find(table.schema(), path)[1].metadata == {"owner": "me"}
    assert rows(table) == [ROW]


@pytest.mark.parametrize("metadata", [{"delta.generationExpression": "id"}, {"Delta.x": "1"}, {"comment": 3}])
def test_metadata_that_features_set_is_rejected(make: Any, metadata: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        make().alter.set_column_metadata("id", metadata)


@pytest.mark.parametrize("name", ["nope", "s.nope", "l.x", ("a", "b")])
def test_column_that_is_not_there_is_named(make: Any, name: Any) -> None:
    table = make(configuration=MAPPED)
    for call in (
        lambda: table.alter.rename_column(name, "z"),
        lambda: table.alter.drop_column([name]),
        lambda: table.alter.widen_type(name, "bigint"),
        lambda: table.alter.set_column_comment(name, "x"),
        lambda: table.alter.set_column_not_null(name),
    ):
        with pytest.raises(ColumnNotFoundError):
            call()


@pytest.mark.parametrize("column", ["l.element", "m.key", "m.value"])
def test_part_of_a_list_or_map_has_no_name_to_change(make: Any, column: str) -> None:
    table = make(configuration=MAPPED)
    with pytest.raises(InvalidArgumentError, match="part of a list or map"):
        table.alter.rename_column(column, "z")
    with pytest.raises(InvalidArgumentError, match="part of a list or map"):
        table.alter.drop_column(column)


# --- NOT NULL ------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["id", "s.a"])
def test_column_becomes_not_null_once_no_row_has_null(make: Any, column: str) -> None:
    missing = {**ROW, "id": None, "s": {"a": None, "b": None}}
    table = make(rows=[ROW, missing])
    with pytest.raises(ConstraintViolationError, match="1 row of the table has no value") as caught:
        table.alter.set_column_not_null(column)
    assert caught.value.facts["count"] == 1
    table.delete("id is null")
    table.alter.set_column_not_null(column)
    assert rows(table) == [ROW]
    with pytest.raises(DeltaError):
        write_deltalake(table, pa.Table.from_pylist([missing], NESTED), mode="append")
    table.update_incremental()
    table.alter.drop_column_not_null(column)
    write_deltalake(table, pa.Table.from_pylist([missing], NESTED), mode="append")
    assert len(rows(table)) == 2


def test_null_in_a_row_that_a_vector_deleted_does_not_hinder_not_null(make: Any) -> None:
    table = make(rows=[ROW, {**ROW, "id": None}], configuration={"delta.enableDeletionVectors": "true"})
    table.delete("id is null")
    table.alter.set_column_not_null("id")
    assert rows(table) == [ROW]


def test_column_that_is_nullable_already_is_an_error_unless_ignored(make: Any) -> None:
    table = make()
    with pytest.raises(SchemaError, match="nullable already") as caught:
        table.alter.drop_column_not_null("s.a")
    assert caught.value.facts["column"] == "s.a"
    table.alter.drop_column_not_null("s.a", raise_if_nullable=False)
    with pytest.raises(InvalidArgumentError, match="part of a list or map"):
        table.alter.drop_column_not_null("l.element", raise_if_nullable=False)
    assert DeltaTable(table.table_uri).version() == table.version()


def test_field_of_a_struct_that_is_null_needs_no_value(make: Any) -> None:
    table = make(rows=[ROW, {**ROW, "s": None}])
    table.alter.set_column_not_null("s.a")
    assert [r["s"] for r in rows(table)] == [ROW["s"], None]


def test_column_that_older_files_lack_does_not_become_not_null(make: Any) -> None:
    table = make()
    table.alter.add_columns(Field("n", "long"))
    with pytest.raises(ConstraintViolationError):
        table.alter.set_column_not_null("n")


def test_field_within_a_list_can_not_be_checked_and_stays_nullable(make: Any) -> None:
    with pytest.raises(UnsupportedOperationError, match="within a list or map"):
        make().alter.set_column_not_null("l.element.x")


def test_rows_that_land_during_the_check_for_null_are_a_conflict(make: Any, monkeypatch: Any) -> None:
    table = make()
    check = alter._check_no_null

    def slow(*arguments: Any) -> None:
        check(*arguments)
        write_deltalake(table.table_uri, pa.Table.from_pylist([{**ROW, "id": None}], NESTED), mode="append")

    monkeypatch.setattr(alter, "_check_no_null", slow)
    with pytest.raises(ConcurrentAppendError):
        table.alter.set_column_not_null("id")
    assert DeltaTable(table.table_uri).schema().get("id").nullable


# --- defaults and constraints --------------------------------------------------------------


def test_default_applies_to_later_writes_only_and_is_dropped(make: Any) -> None:
    table = make(pa.schema([("id", pa.int32()), ("kind", pa.string())]), rows=[{"id": 1, "kind": None}])
    some = pa.table({"id": pa.array([2], pa.int32())})
    table.alter.set_default("kind", "'new'")
    assert last(table)["operation"] == "CHANGE COLUMN"
    write_deltalake(table, some, mode="append")
    table.alter.drop_default("kind")
    write_deltalake(table, some, mode="append")
    assert [r["kind"] for r in rows(table)] == [None, "new", None]


@pytest.mark.parametrize(
    ("column", "text", "error"),
    [("id", "kind", ExpressionError), ("id", "'x'", ExpressionError), ("nope", "1", ColumnNotFoundError)],
)
def test_default_that_does_not_fit_is_rejected(make: Any, column: str, text: str, error: type) -> None:
    table = make(pa.schema([("id", pa.int32()), ("kind", pa.string())]), rows=[])
    with pytest.raises(error):
        table.alter.set_default(column, text)
    assert DeltaTable(table.table_uri).version() == 0


def test_constraint_is_added_once_rows_fulfil_it_and_dropped(make: Any) -> None:
    table = make()
    with pytest.raises(ConstraintViolationError):
        table.alter.add_constraint({"c": "id > 1"})
    table.alter.add_constraint({"C": "id > 0"})
    assert table.metadata().configuration["delta.constraints.c"] == "id > 0"
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, pa.Table.from_pylist([{**ROW, "id": 0}], NESTED), mode="append")
    with pytest.raises(InvalidArgumentError, match="no CHECK constraint 'd'; it has: c"):
        table.alter.drop_constraint("d")
    table.alter.drop_constraint("d", raise_if_not_exists=False)
    table.alter.drop_constraint("C")
    assert last(table)["operationParameters"] == {"name": "c", "expr": "id > 0", "existed": "true"}
    write_deltalake(table, pa.Table.from_pylist([{**ROW, "id": 0}], NESTED), mode="append")


def test_drop_of_a_constraint_of_a_table_with_feature_lists_and_none_is_an_error_unless_it_may_be(make: Any) -> None:
    table = make(configuration={"delta.feature.timestampNtz": "supported", **WIDENING})
    with pytest.raises((InvalidArgumentError, UnsupportedOperationError)):
        table.alter.drop_constraint("c")
    table.alter.drop_constraint("c", raise_if_not_exists=False)
    assert table.version() == 1


# --- the table -----------------------------------------------------------------------------


def test_properties_are_set_and_unset_in_the_protocols_spelling(make: Any) -> None:
    table = make()
    table.alter.set_table_properties({"delta.APPENDONLY": True, "owner": "me"})
    assert table.metadata().configuration == {"delta.appendOnly": "true", "owner": "me"}
    assert json.loads(last(table)["operationParameters"]["properties"]) == {"delta.appendOnly": "true", "owner": "me"}
    with pytest.raises(UnsupportedOperationError):
        table.delete("id = 1")
    table.alter.set_table_properties({"delta.appendonly": "false"})
    table.delete("id = 7")
    table.alter.unset_table_properties(["delta.appendonly", "owner"])
    assert table.metadata().configuration == {}
    assert last(table)["operation"] == "UNSET TBLPROPERTIES"


def test_property_adds_the_feature_that_it_needs(make: Any) -> None:
    table = make()
    table.alter.set_table_properties(
        {"delta.enableDeletionVectors": "true", "delta.feature.domainMetadata": "supported"}
    )
    assert {"deletionVectors", "domainMetadata", "appendOnly", "invariants"} <= set(table.protocol().writer_features)
    assert "delta.feature.domainMetadata" not in table.metadata().configuration


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"delta.apendOnly": "true"}, "Did you mean 'delta.appendOnly'"),
        ({"delta.appendOnly": "yes"}, "delta.appendOnly"),
        ({"delta.columnMapping.maxColumnId": "7"}, "kept by the feature"),
        ({"delta.columnMapping.mode": "id"}, "would change from none to id"),
        ({"delta.feature.nope": "supported"}, "nope"),
        ({}, "no table property"),
    ],
)
def test_property_that_can_not_be_set_is_rejected_by_name(make: Any, properties: dict[str, str], text: str) -> None:
    with pytest.raises(DeltaError) as caught:
        make().alter.set_table_properties(properties)
    assert text in str(caught.value)


def test_unknown_property_is_set_if_it_is_meant(make: Any) -> None:
    table = make()
    table.alter.set_table_properties({"delta.apendOnly": "true"}, raise_if_not_exists=False)
    assert table.metadata().configuration == {"delta.apendOnly": "true"}


@pytest.mark.parametrize("name", ["nope", "delta.columnMapping.maxColumnId"])
def test_property_that_can_not_be_removed_is_rejected_by_name(make: Any, name: str) -> None:
    table = make(configuration=MAPPED)
    with pytest.raises(InvalidArgumentError, match=name.replace(".", r"\.")):
        table.alter.unset_table_properties(name)
    table.alter.unset_table_properties("nope", raise_if_not_exists=False)
    assert table.version() == 1


def test_mapping_is_not_switched_off_by_unset(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="from name to none"):
        make(configuration=MAPPED).alter.unset_table_properties("delta.columnMapping.mode")


def test_name_and_description_are_set(make: Any) -> None:
    table = make()
    table.alter.set_table_name("sales")
    table.alter.set_table_description("All sales")
    assert (table.metadata().name, table.metadata().description) == ("sales", "All sales")
    with pytest.raises(InvalidArgumentError):
        table.alter.set_table_name(3)  # type: ignore[arg-type]


def test_added_feature_keeps_those_that_old_versions_implied(make: Any) -> None:
    table = make()
    with pytest.raises(InvalidArgumentError, match="allow_protocol_versions_increase=True"):
        table.alter.add_feature(TableFeatures.RowTracking)
    table.alter.add_feature([TableFeatures.RowTracking, TableFeatures.V2Checkpoint], True)
    found = set(table.protocol().writer_features)
    assert {"rowTracking", "domainMetadata", "v2Checkpoint", "appendOnly", "invariants"} <= found
    write_deltalake(table, pa.Table.from_pylist([ROW], NESTED), mode="append")
    assert rows(table) == [ROW, ROW]
    before = table.version()
    table.alter.add_feature("rowTracking")
    assert table.version() == before


def test_names_of_features_are_those_of_the_peer() -> None:
    deltalake = pytest.importorskip("deltalake")
    for name in (n for n in dir(deltalake.TableFeatures) if not n.startswith("_")):
        assert str(getattr(TableFeatures, name)) == str(getattr(deltalake.TableFeatures, name))
    assert TableFeatures.TimestampWithoutTimezone == "timestampNtz"


def test_calls_take_what_the_peers_take() -> None:
    deltalake = pytest.importorskip("deltalake")
    peer = deltalake.table.TableAlterer
    for name in (n for n in dir(peer) if not n.startswith("_")):
        theirs, ours = (inspect.signature(getattr(c, name)).parameters for c in (peer, TableAlterer))
        assert {n for n in theirs if n != "args"} <= set(ours), name
        positional = [n for n, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert [n for n, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(positional)] == positional, name


# --- commits -------------------------------------------------------------------------------


def test_commit_has_what_the_caller_passes(make: Any) -> None:
    table = make()
    commit = CommitProperties({"who": "me"}, app_transactions=[AppTransaction("app", 3)])
    table.alter.set_table_name("a", commit_properties=commit)
    assert last(table)["who"] == "me"
    assert table.transaction_version("app") == 3
    table.alter.add_constraint({"c": "id > 0"}, commit_properties=CommitProperties({"who": "you"}))
    assert last(table)["who"] == "you"


def test_writer_that_lost_against_a_renamed_column_must_look_again(make: Any) -> None:
    table = make(configuration=MAPPED)
    transaction = DeltaTable(table.table_uri).snapshot().begin("WRITE")
    table.alter.rename_column("id", "n")
    with pytest.raises(MetadataChangedError):
        transaction.commit()


def test_alter_that_lost_against_another_one_changes_nothing(make: Any, monkeypatch: Any) -> None:
    table = make(configuration=MAPPED)
    rival = DeltaTable(table.table_uri)
    check = alter._check_mapped

    def slow(*arguments: Any) -> None:
        check(*arguments)
        monkeypatch.setattr(alter, "_check_mapped", check)
        rival.alter.rename_column("s", "t")

    monkeypatch.setattr(alter, "_check_mapped", slow)
    with pytest.raises(MetadataChangedError):
        table.alter.rename_column("id", "n")
    assert DeltaTable(table.table_uri).schema().names == ["id", "t", "l", "m"]


def test_append_that_landed_before_an_alter_stays(make: Any, monkeypatch: Any) -> None:
    table = make(configuration=MAPPED)
    check = alter._check_mapped

    def slow(*arguments: Any) -> None:
        check(*arguments)
        write_deltalake(table.table_uri, pa.Table.from_pylist([ROW], NESTED), mode="append")

    monkeypatch.setattr(alter, "_check_mapped", slow)
    table.alter.rename_column("id", "n")
    assert [r["n"] for r in rows(table)] == [1, 1]


def test_alter_of_an_older_version_changes_the_latest(make: Any) -> None:
    table = make()
    old = DeltaTable(table.table_uri, version=0)
    old.alter.set_table_name("x")
    assert old.version() == 2
    assert rows(old) == [ROW]


# --- a model -------------------------------------------------------------------------------

_NAMES = ["a", "b", "c", "d e"]
_STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(_NAMES), st.none()),
    st.tuples(st.just("drop"), st.sampled_from(_NAMES), st.none()),
    st.tuples(st.just("rename"), st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
    st.tuples(st.just("move"), st.sampled_from(_NAMES), st.one_of(st.none(), st.sampled_from(_NAMES))),
    st.tuples(st.just("write"), st.integers(0, 99), st.none()),
    st.tuples(st.just("widen"), st.sampled_from(_NAMES), st.none()),
)


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(_STEPS, min_size=1, max_size=8))
def test_any_sequence_of_changes_leaves_the_rows_that_a_list_of_columns_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any, Any]]
) -> None:
    uri = str(tmp_path_factory.mktemp("model") / "t")
    table = DeltaTable.create(uri, pa.schema([("a", pa.int32())]), configuration={**MAPPED, **WIDENING})
    columns = {"a": "integer"}
    model: list[dict[str, Any]] = []
    for step, one, two in steps:
        names = list(columns)
        try:
            if step == "add":
                table.alter.add_columns(Field(one, columns.get(one, "integer")))
                if one not in columns:
                    columns[one] = "integer"
                    model = [{**r, one: None} for r in model]
            elif step == "drop":
                table.alter.drop_column(one)
                del columns[one]
                model = [{k: v for k, v in r.items() if k != one} for r in model]
            elif step == "rename":
                table.alter.rename_column(one, two)
                columns = {two if n == one else n: t for n, t in columns.items()}
                model = [{two if n == one else n: v for n, v in r.items()} for r in model]
            elif step == "move":
                table.alter.move_column(one, first=two is None, after=two)
                left = [n for n in names if n != one]
                at = 0 if two is None else left.index(two) + 1
                columns = {n: columns[n] for n in [*left[:at], one, *left[at:]]}
            elif step == "widen":
                table.alter.widen_type(one, "bigint")
                columns[one] = "long"
            else:
                schema = pa.schema([(n, pa.int64() if t == "long" else pa.int32()) for n, t in columns.items()])
                row = {n: one + i for i, n in enumerate(columns)}
                write_deltalake(table, pa.Table.from_pylist([row], schema), mode="append")
                table.update_incremental()
                model.append(row)
        except (SchemaError, ColumnNotFoundError, InvalidArgumentError):
            lacks = step != "write" and one not in columns
            assert lacks or (step == "drop" and len(columns) == 1) or step in ("rename", "move")
            if step == "rename" and not lacks:
                assert two in columns
            if step == "move" and not lacks:
                assert two == one or two not in columns
        opened = DeltaTable(uri)
        assert opened.schema().names == list(columns)
        assert [f.type.type for f in opened.schema()] == list(columns.values())
        key = lambda r: sorted((k, -1 if v is None else v) for k, v in r.items())  # noqa: E731
        assert sorted(opened.to_pyarrow_table().to_pylist(), key=key) == sorted(model, key=key)


# --- other writers -------------------------------------------------------------------------


def test_peer_reads_and_appends_after_alters_and_we_after_its(make: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    schema = pa.schema([("id", pa.int32()), ("x", pa.int32())])
    table = make(schema, rows=[{"id": 1, "x": 1}])
    table.alter.add_columns(Field("y", "string"))
    table.alter.add_constraint({"c": "id > 0"})
    table.alter.move_column("y", after="id")
    table.alter.set_table_properties({"owner": "me"})
    table.alter.set_column_comment("y", "text")
    table.alter.set_column_not_null("id")
    theirs = deltalake.DeltaTable(table.table_uri)
    assert [f.name for f in theirs.schema().fields] == ["id", "y", "x"]
    wider = pa.schema([pa.field("id", pa.int32(), False), ("y", pa.string()), ("x", pa.int32())])
    row = {"id": 2, "y": "b", "x": 2}
    deltalake.write_deltalake(theirs, pa.Table.from_pylist([row], wider), mode="append")
    assert sorted(rows(table), key=lambda r: r["id"]) == [{"id": 1, "y": None, "x": 1}, row]
    theirs = deltalake.DeltaTable(table.table_uri)
    theirs.alter.drop_constraint("c")
    theirs.alter.drop_column_not_null("id")
    theirs.alter.add_columns([deltalake.Field("z", deltalake.schema.PrimitiveType("long"))])
    table.alter.drop_constraint("c", raise_if_not_exists=False)
    table.update_incremental()
    assert table.schema().names == ["id", "y", "x", "z"]
    assert table.schema().get("id").nullable


# --- types as text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", PrimitiveType("long")),
        ("long", PrimitiveType("long")),
        ("decimal(5)", PrimitiveType("decimal(5,0)")),
        (" Decimal( 12 , 2 ) ", PrimitiveType("decimal(12,2)")),
        ("numeric", PrimitiveType("decimal(10,0)")),
        ("map<string, array<int>>", MapType(PrimitiveType("string"), ArrayType(PrimitiveType("integer")))),
        (
            "struct<a: int, `b c` date>",
            StructType([Field("a", PrimitiveType("integer")), Field("b c", PrimitiveType("date"))]),
        ),
    ],
)
def test_text_names_a_type(text: str, expected: Any) -> None:
    assert parse_type_text(text) == expected


@pytest.mark.parametrize(
    "text", ["", "nope", "int b", "array<>", "array<int", "struct<a:>", "map<int>", "array<" * 500]
)
def test_text_that_names_no_type_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Found the type"):
        parse_type_text(text)


def test_a_dropped_column_that_is_added_again_with_its_old_metadata_is_rejected(tmp_path):
    table = DeltaTable.create(
        tmp_path, Schema([Field("a", "long"), Field("b", "long")]), configuration={"delta.columnMapping.mode": "name"}
    )
    old = table.snapshot().schema.get("a")
    table.alter.drop_column("a")
    with pytest.raises(SchemaError, match="metadata that features set"):
        table.alter.add_columns(old)


def test_a_generated_column_is_not_added_to_a_table_that_has_one(tmp_path):
    generated = {"delta.generationExpression": "a * 2"}
    table = DeltaTable.create(tmp_path, Schema([Field("a", "long"), Field("g", "long", metadata=generated)]))
    with pytest.raises(SchemaError, match="generatedColumns"):
        table.alter.add_columns(Field("h", "long", metadata=generated))
