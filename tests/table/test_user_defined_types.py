"""User-defined types of Spark on the Arrow engine: rows have the stored type, and the schema keeps the class."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, Schema, write_deltalake
from delta_core.errors import DeltaError, SchemaError, SchemaMismatchError
from delta_core.schema.types import UserDefinedType

VECTOR = {
    "type": "udt",
    "class": "org.apache.spark.ml.linalg.VectorUDT",
    "pyClass": "pyspark.ml.linalg.VectorUDT",
    "sqlType": {
        "type": "struct",
        "fields": [
            {"name": "type", "type": "byte", "nullable": False, "metadata": {}},
            {"name": "size", "type": "integer", "nullable": True, "metadata": {}},
            {
                "name": "indices",
                "type": {"type": "array", "elementType": "integer", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "values",
                "type": {"type": "array", "elementType": "double", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    },
}
NAME = {"type": "udt", "pyClass": "my.Name", "serializedClass": "gAWVFQ==", "sqlType": "string"}
DAYS = {
    "type": "udt",
    "class": "my.Days",
    "pyClass": None,
    "sqlType": {"type": "array", "elementType": "date", "containsNull": True},
}
DENSE = {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0]}
SPARSE = {"type": 0, "size": 3, "indices": [1], "values": [5.0]}


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def schema_of(**kinds: Any) -> str:
    fields = [field("id", "long"), *(field(n, kind) for n, kind in kinds.items())]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


NESTED = {
    "s": {"type": "struct", "fields": [field("v", VECTOR), field("n", NAME)]},
    "a": {"type": "array", "elementType": NAME, "containsNull": True},
    "m": {"type": "map", "keyType": NAME, "valueType": VECTOR, "valueContainsNull": True},
}


def vectors(*rows: tuple[int, Any]) -> pa.Table:
    return pa.table({"id": pa.array([i for i, _ in rows], pa.int64()), "v": [v for _, v in rows]})


def rows_of(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=lambda r: r["id"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    DeltaTable.create(tmp_path / "t", schema=Schema.from_json(schema_of(v=VECTOR)))
    write_deltalake(tmp_path / "t", vectors((1, DENSE), (2, SPARSE), (3, None)), mode="append")
    return tmp_path / "t"


@pytest.mark.parametrize(
    "kinds", [{"v": VECTOR}, {"n": NAME}, {"d": DAYS}, NESTED], ids=["struct", "text", "list", "nested"]
)
def test_schema_keeps_the_type_as_it_is(tmp_path: Path, kinds: dict[str, Any]) -> None:
    text = schema_of(**kinds)
    table = DeltaTable.create(tmp_path / "t", schema=Schema.from_json(text))
    assert table.schema().to_json() == text
    assert DeltaTable(table.table_uri).schema().to_json() == text
    for made in (pickle.loads(pickle.dumps(table.schema())), copy.deepcopy(table.schema())):
        assert made == table.schema()
        assert made.to_json() == text
        assert hash(made) == hash(table.schema())


def test_types_are_equal_if_class_and_stored_type_are() -> None:
    def parsed(kind: dict[str, Any]) -> UserDefinedType:
        found = Schema.from_json(schema_of(x=kind)).fields[1].type
        assert isinstance(found, UserDefinedType)
        return found

    assert parsed(NAME) == parsed({**NAME, "serializedClass": "AAAA"})
    assert parsed(VECTOR) == parsed({**VECTOR, "pyClass": None})
    assert parsed(NAME) != parsed({**NAME, "pyClass": "my.Other"})
    assert parsed(NAME) != parsed({**NAME, "sqlType": "long"})
    assert parsed(NAME) != "string"


def test_rows_are_read_as_the_stored_type(path: Path) -> None:
    kind = DeltaTable(path).to_pyarrow_table().schema.field("v").type
    assert [f.name for f in kind] == ["type", "size", "indices", "values"]
    assert rows_of(path) == [{"id": 1, "v": DENSE}, {"id": 2, "v": SPARSE}, {"id": 3, "v": None}]
    assert DeltaTable(path).to_pyarrow_dataset().to_table().num_rows == 3


def test_nested_values_are_written_and_read(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "t", schema=Schema.from_json(schema_of(**NESTED)))
    row = {"id": 1, "s": {"v": SPARSE, "n": "a"}, "a": ["b", None], "m": [("k", DENSE), ("l", None)]}
    empty = {"id": 2, "s": {"v": None, "n": None}, "a": None, "m": []}
    rows = pa.Table.from_pylist([row, empty], DeltaTable(tmp_path / "t").schema().to_arrow())
    write_deltalake(tmp_path / "t", rows, mode="append")
    assert rows_of(tmp_path / "t") == [row, empty]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_parts_have_no_physical_names(tmp_path: Path, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode}
    table = DeltaTable.create(
        tmp_path / "t", schema=Schema.from_json(schema_of(v=VECTOR, **NESTED)), configuration=properties
    )
    assert json.loads(table.schema().to_json())["fields"][1]["type"] == VECTOR
    write_deltalake(tmp_path / "t", vectors((1, DENSE), (2, None)), mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path / "t")
    table.alter.rename_column("v", "w")
    assert [r["w"] for r in rows_of(tmp_path / "t")] == [DENSE, None]


def test_operations_keep_values_and_schema(path: Path, tmp_path: Path) -> None:
    before = DeltaTable(path).schema().to_json()
    write_deltalake(path, vectors((4, DENSE)), mode="append", schema_mode="merge")
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).update({"id": "id + 10"}, predicate="v IS NOT NULL")
    merger = DeltaTable(path).merge(vectors((3, SPARSE), (5, None)), "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    DeltaTable(path).optimize.compact()
    DeltaTable(path).create_checkpoint()
    expected = [{"id": 3, "v": SPARSE}, {"id": 5, "v": None}, {"id": 12, "v": SPARSE}, {"id": 14, "v": DENSE}]
    assert rows_of(path) == expected
    DeltaTable(path).clone(tmp_path / "clone")
    assert rows_of(tmp_path / "clone") == expected
    assert DeltaTable(tmp_path / "clone").schema().to_json() == before
    write_deltalake(path, vectors((9, None)), mode="overwrite", predicate="id > 3")
    DeltaTable(path).update({"v": "NULL"}, predicate="id = 3")
    assert rows_of(path) == [{"id": 3, "v": None}, {"id": 9, "v": None}]
    write_deltalake(path, vectors((1, DENSE)), mode="overwrite")
    assert rows_of(path) == [{"id": 1, "v": DENSE}]
    assert DeltaTable(path).schema().to_json() == before
    assert DeltaTable(path).verify(deep="rows").findings.num_rows == 0


def test_fields_of_the_stored_type_are_compared(path: Path) -> None:
    DeltaTable(path).delete("v.size = 3 OR size(v.values) = 7")
    assert [r["id"] for r in rows_of(path)] == [1, 3]


def test_bounds_of_the_stored_type_are_not_written(tmp_path: Path) -> None:
    """The order of stored values is not the order that their class defines."""
    DeltaTable.create(tmp_path / "t", schema=Schema.from_json(schema_of(n=NAME)))
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "n": ["a", "b"]})
    write_deltalake(tmp_path / "t", rows, mode="append")
    commit = (tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text()
    stats = next(json.loads(a["add"]["stats"]) for a in map(json.loads, commit.splitlines()) if "add" in a)
    assert stats["minValues"] == {"id": 1}
    assert DeltaTable(tmp_path / "t").delete("n = 'a'")["num_deleted_rows"] == 1


@pytest.mark.parametrize(
    "value",
    [{**DENSE, "type": None}, {**DENSE, "values": [1.0, None]}, {**DENSE, "further": 1}, "text", 7],
    ids=["null part", "null element", "further part", "text", "number"],
)
@pytest.mark.parametrize("schema_mode", [None, "merge"])
def test_rows_of_another_shape_are_rejected(path: Path, value: Any, schema_mode: Any) -> None:
    kind = DeltaTable(path).to_pyarrow_table().schema.field("v").type
    is_vector = isinstance(value, dict) and "further" not in value
    nullable = pa.struct([(f.name, pa.list_(f.type.value_type) if pa.types.is_list(f.type) else f.type) for f in kind])
    rows = pa.table({"id": pa.array([4], pa.int64()), "v": pa.array([value], nullable if is_vector else None)})
    with pytest.raises(SchemaMismatchError, match="v"):
        write_deltalake(path, rows, mode="append", schema_mode=schema_mode)
    assert len(rows_of(path)) == 3


@pytest.mark.parametrize("layout", ["partition_by", "cluster_by"])
@pytest.mark.parametrize("kind", [VECTOR, NAME], ids=["struct", "text"])
def test_column_lays_out_no_table(tmp_path: Path, layout: str, kind: Any) -> None:
    with pytest.raises(SchemaError, match="x"):
        DeltaTable.create(tmp_path / "t", schema=Schema.from_json(schema_of(x=kind)), **{layout: ["x"]})  # type: ignore[arg-type]


def test_iceberg_compatibility_is_rejected_by_name(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}
    with pytest.raises(DeltaError, match="VectorUDT"):
        DeltaTable.create(tmp_path / "t", schema=Schema.from_json(schema_of(v=VECTOR)), configuration=properties)


PRIMITIVES = [
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal(5,2)", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
]  # fmt: skip
INNER = {"type": "struct", "fields": [{"name": "z", "type": "long", "nullable": False, "metadata": {}}]}
COMPOSED = [
    {"type": "array", "elementType": "long", "containsNull": False},
    {"type": "map", "keyType": "string", "valueType": "boolean", "valueContainsNull": False},
    INNER,
    {"type": "udt", "class": "my.Inner", "pyClass": None, "sqlType": INNER},
]


@pytest.mark.parametrize("kind", [*PRIMITIVES, *COMPOSED], ids=str)
def test_null_has_no_parts_of_a_type_that_requires_them(tmp_path: Path, kind: Any) -> None:
    stored = {"type": "struct", "fields": [{"name": "p", "type": kind, "nullable": False, "metadata": {}}]}
    text = schema_of(x={"type": "udt", "class": "my.Type", "pyClass": None, "sqlType": stored})
    DeltaTable.create(tmp_path / "t", schema=Schema.from_json(text))
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "x": pa.nulls(2, pa.struct([]))}), mode="append")
    DeltaTable(tmp_path / "t").update({"id": "id + 1"})
    assert rows_of(tmp_path / "t") == [{"id": 2, "x": None}, {"id": 3, "x": None}]
    assert DeltaTable(tmp_path / "t").schema().to_json() == text
