"""Feature typeWidening, written: which changes of a type are allowed, and what the schema remembers of them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.errors import TypeChangeError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, StructType
from delta_core.testing.feature_contract import table_state
from delta_plugins.type_widening.record import with_changes
from tests.plugins.written import append, begin, create, field_metadata, overwrite, rows

SWITCH = "delta.enableTypeWidening"
ON = {SWITCH: "true"}
CHANGES = "delta.typeChanges"


def table(path: Path, type_: Any, **options: Any) -> str:
    return create(path / "t", [{"name": "a", "type": type_}], **{"properties": ON, **options})


def change_type(uri: str, type_: Any, name: str = "a") -> None:
    transaction = begin(uri, "CHANGE COLUMN")
    metadata = transaction.table.metadata
    made = Schema.from_json(StructType([Field(name, "void")]).to_json().replace('"void"', type_))
    old = transaction.table.schema.get("a")
    assert old is not None
    schema = StructType([Field(name, made.fields[0].type, old.nullable, old.metadata)])
    transaction.set_metadata(replace(metadata, schema_string=schema.to_json()))
    transaction.commit()


def array_of(type_: str) -> dict[str, Any]:
    return {"type": "array", "elementType": type_, "containsNull": True}


@pytest.mark.parametrize(
    ("old", "new", "narrow", "wide"),
    [
        ("byte", "short", 1, 300),
        ("short", "integer", 1, 70_000),
        ("integer", "long", 1, 1 << 40),
        ("float", "double", 0.5, 1e300),
        ("integer", "double", 3, 0.25),
        ("byte", "decimal(12,2)", 7, decimal.Decimal("1.25")),
        ("decimal(5,2)", "decimal(8,3)", decimal.Decimal("1.25"), decimal.Decimal("12345.678")),
        ("date", "timestamp_ntz", dt.date(2020, 1, 2), dt.datetime(2021, 3, 4, 5, 6)),
    ],
)
def test_column_is_widened_and_reads_old_and_new_files(
    tmp_path: Path, old: str, new: str, narrow: Any, wide: Any
) -> None:
    uri = table(tmp_path, old, features=["timestampNtz"])
    arrow = open_snapshot(uri).scan().schema.field("a").type
    append(uri, pa.table({"a": pa.array([narrow], arrow)}))
    change_type(uri, f'"{new}"')
    arrow = open_snapshot(uri).scan().schema.field("a").type
    append(uri, pa.table({"a": pa.array([wide], arrow)}))
    expected = pa.array([narrow, wide] if old != "date" else [dt.datetime(2020, 1, 2), wide], arrow)
    assert sorted(rows(uri)) == sorted(expected.to_pylist())
    assert field_metadata(uri, "a")[CHANGES] == [{"fromType": old, "toType": new}]


def test_changes_are_kept_in_order(tmp_path: Path) -> None:
    uri = table(tmp_path, "byte")
    for new in ("short", "integer", "long"):
        change_type(uri, f'"{new}"')
    steps = [("byte", "short"), ("short", "integer"), ("integer", "long")]
    assert field_metadata(uri, "a")[CHANGES] == [{"fromType": a, "toType": b} for a, b in steps]


def test_change_within_a_list_names_the_part(tmp_path: Path) -> None:
    uri = table(tmp_path, array_of("integer"))
    append(uri, pa.table({"a": pa.array([[1]], pa.list_(pa.int32()))}))
    change_type(uri, '{"type":"array","elementType":"long","containsNull":true}')
    append(uri, pa.table({"a": [[1 << 40]]}))
    assert field_metadata(uri, "a")[CHANGES] == [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    assert sorted(rows(uri)) == [[1], [1 << 40]]


def test_change_within_maps_and_structs_is_at_the_nearest_field() -> None:
    def schema(key: str, inner: str) -> list[dict[str, Any]]:
        struct = {"type": "struct", "fields": [{"name": "x", "type": inner, "nullable": True, "metadata": {}}]}
        value = {"type": "array", "elementType": struct, "containsNull": True}
        return [{"name": "m", "type": {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}}]

    old = table_state(["typeWidening"], fields=schema("byte", "float"), properties=ON)
    new = table_state(["typeWidening"], fields=schema("short", "double"), properties=ON)
    (m,) = Schema.from_json(with_changes(new.metadata, old).schema_string).fields
    assert m.metadata[CHANGES] == [{"fromType": "byte", "toType": "short", "fieldPath": "key"}]
    x = m.type.value_type.element_type.fields[0]  # type: ignore[union-attr]
    assert x.metadata[CHANGES] == [{"fromType": "float", "toType": "double"}]


@pytest.mark.parametrize("properties", [{}, {SWITCH: "false"}])
def test_table_where_it_is_off_keeps_its_types(tmp_path: Path, properties: dict[str, str]) -> None:
    uri = table(tmp_path, "integer", properties=properties, features=["typeWidening"])
    with pytest.raises(TypeChangeError, match="enableTypeWidening"):
        change_type(uri, '"long"')


@pytest.mark.parametrize("new", ['"string"', '"short"', '{"type":"array","elementType":"integer","containsNull":true}'])
def test_other_changes_are_rejected(tmp_path: Path, new: str) -> None:
    uri = table(tmp_path, "integer")
    with pytest.raises(TypeChangeError, match="Column a is"):
        change_type(uri, new)


def test_void_may_become_anything_and_leaves_no_trace(tmp_path: Path) -> None:
    uri = table(tmp_path, "void", properties={})
    change_type(uri, '"long"')
    append(uri, {"a": [1]})
    assert rows(uri) == [1]
    assert CHANGES not in field_metadata(uri, "a")


def test_renamed_column_is_widened_under_mapping(tmp_path: Path) -> None:
    uri = table(tmp_path, "integer", properties={**ON, "delta.columnMapping.mode": "name"})
    append(uri, pa.table({"a": pa.array([1], pa.int32())}))
    change_type(uri, '"long"', name="b")
    assert field_metadata(uri, "b")[CHANGES] == [{"fromType": "integer", "toType": "long"}]
    assert rows(uri) == [1]


def test_merged_schema_widens_columns(tmp_path: Path) -> None:
    uri = table(tmp_path, "integer")
    append(uri, pa.table({"a": pa.array([1], pa.int32())}))
    append(uri, {"a": [1 << 40]}, schema_mode="merge")
    assert sorted(rows(uri)) == [1, 1 << 40]
    assert field_metadata(uri, "a")[CHANGES] == [{"fromType": "integer", "toType": "long"}]


def test_overwritten_schema_takes_any_type_and_forgets_the_changes(tmp_path: Path) -> None:
    uri = table(tmp_path, "integer")
    change_type(uri, '"long"')
    overwrite(uri, {"a": ["text"]}, schema_mode="overwrite")
    assert CHANGES not in field_metadata(uri, "a")
    assert rows(uri) == ["text"]


def test_schema_that_lost_its_changes_gets_them_back(tmp_path: Path) -> None:
    uri = table(tmp_path, "integer")
    change_type(uri, '"long"')
    transaction = begin(uri, "ALTER TABLE")
    bare = StructType([Field("a", "long"), Field("b", "string")]).to_json()
    transaction.set_metadata(replace(transaction.table.metadata, schema_string=bare))
    transaction.commit()
    assert field_metadata(uri, "a")[CHANGES] == [{"fromType": "integer", "toType": "long"}]
