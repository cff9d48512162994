"""User-defined types on Spark: values of their classes are written, read and changed; other types are rejected."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyspark
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import DeltaError, ExpressionError, SchemaError, SchemaMismatchError, UnsupportedFeatureError
from tests.example_counts import chosen
from tests.spark.points import frames

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

KINDS = chosen(
    ["vector", "matrix", "list", "text", "in a struct", "in an array", "in a map"], ["vector", "in a struct"]
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(spark: Any, uri: str, **options: Any) -> list[Any]:
    return [tuple(r) for r in ds.read(spark, uri, **options).orderBy("id").collect()]


def values(frame: Any) -> list[Any]:
    return [tuple(r) for r in frame.orderBy("id").collect()]


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_written_read_and_kept(spark: Any, uri: str, kind: str) -> None:
    given = frames(spark)[kind]
    before = values(given)
    ds.write(given, uri)
    assert DeltaTable(uri).schema() == given_schema(given)
    for route in ("auto", "join"):
        found = ds.read(spark, uri, route=route)  # type: ignore[arg-type]
        assert found.schema == given.schema
        assert values(found) == before
    assert rows(spark, uri, predicate="x IS NULL") == before[2:]
    ds.write(given.where("id = 1"), uri, "append")
    table = ds.DeltaTable.forPath(spark, uri)
    table.delete("id = 2 OR x IS NULL")
    table.update("id = 1", {"id": "id + 6"})
    assert rows(spark, uri) == [(7, before[0][1])] * 2
    table.optimize().executeCompaction()
    changes = given.selectExpr("id + 6 AS id", "x")
    merger = table.alias("t").merge(changes.alias("s"), "t.id = s.id AND t.x IS NOT NULL AND s.id > 7")
    merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows(spark, uri) == [(7, before[0][1])] * 3 + [(8, before[1][1]), (9, None)]
    table.update(set={"x": "CASE WHEN id = 8 THEN x END"} if "in a" not in kind else {"x": "NULL"})
    assert {r[1] is None for r in rows(spark, uri) if r[0] != 8} == {True}
    ds.write(given, uri, "overwrite")
    assert rows(spark, uri) == before
    ds.write(given.where("id < 3"), uri, "overwrite", replace_where="id < 3")
    assert rows(spark, uri) == before


def test_column_is_added_by_rows_and_by_a_merge(spark: Any, uri: str) -> None:
    given = frames(spark)["vector"]
    ds.write(given.select("id"), uri)
    ds.write(given, uri, "append", schema_mode="merge")
    assert sum(r[1] is not None for r in rows(spark, uri)) == 2
    more = frames(spark)["text"].withColumnRenamed("x", "y")
    merger = ds.DeltaTable.forPath(spark, uri).alias("t").merge(more.alias("s"), "t.id = s.id")
    merger.withSchemaEvolution().whenMatchedUpdateAll().execute()
    found = ds.read(spark, uri)
    assert found.schema["y"].dataType == more.schema["y"].dataType
    assert found.where("y IS NOT NULL").count() == 4


def test_streams_carry_the_values(spark: Any, uri: str) -> None:
    given = frames(spark)["in a struct"]
    ds.write(given, uri)
    query = ds.write_stream(
        ds.read_stream(spark, uri), f"{uri}-copy", checkpoint=f"{uri}-checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert rows(spark, f"{uri}-copy") == values(given)
    assert DeltaTable(f"{uri}-copy").schema().to_json() == DeltaTable(uri).schema().to_json()


@pytest.mark.parametrize(
    ("kind", "mode"),
    chosen(product(["vector", "in a struct", "in a map"], ["name", "id"]), [("vector", "name"), ("in a map", "id")]),
)
def test_parts_of_values_are_found_by_name_under_mapped_columns(spark: Any, uri: str, mode: str, kind: str) -> None:
    given = frames(spark)[kind]
    properties = {
        "delta.columnMapping.mode": mode,
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
    }
    DeltaTable.create(uri, schema=given_schema(given), configuration=properties)
    ds.write(given, uri, "append")
    ds.DeltaTable.forPath(spark, uri).delete("id = 2")
    assert rows(spark, uri) == [r for r in values(given) if r[0] != 2]
    changed = ds.read_changes(spark, uri, 0).where("_change_type = 'delete'").select("id", "x")
    assert values(changed) == values(given)[1:2]


def test_both_engines_read_the_same_values(spark: Any, uri: str) -> None:
    ds.write(frames(spark)["vector"], uri)
    found = DeltaTable(uri).to_pyarrow_table().sort_by("id")
    assert found.column("x").to_pylist() == [
        {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0]},
        {"type": 0, "size": 3, "indices": [1], "values": [5.0]},
        None,
    ]
    DeltaTable(uri).update({"id": "id + 1"})
    DeltaTable(uri).optimize.compact()
    assert [r[1] for r in rows(spark, uri)] == [r[1] for r in values(frames(spark)["vector"])]


#: The type in the table, and the column that rows have.
OTHERS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "stored text": ("text", lambda f: f["text"].selectExpr("id", "CAST(id AS STRING) AS x")),
    "stored list": ("list", lambda f: f["text"].selectExpr("id", "array(1.0D) AS x")),
    "stored struct": (
        "vector",
        lambda f: f["text"].selectExpr(
            "id", "named_struct('type', 1Y, 'size', CAST(NULL AS INT), 'indices', array(1), 'values', array(1.0D)) AS x"
        ),
    ),
    "another class": ("vector", lambda f: f["list"]),
    "another class of the same form": ("vector", lambda f: f["matrix"]),
    "in an array": ("in an array", lambda f: f["text"].selectExpr("id", "array(array(1.0D)) AS x")),
}


@pytest.mark.parametrize("name", chosen(OTHERS, ["stored list", "another class of the same form", "in an array"]))
def test_values_of_another_type_are_rejected(spark: Any, uri: str, name: str) -> None:
    kind, make = OTHERS[name]
    given = frames(spark)
    other = make(given)
    ds.write(given[kind], uri)
    before = rows(spark, uri)
    for mode in (None, "merge"):
        with pytest.raises(SchemaMismatchError, match="x"):
            ds.write(other, uri, "append", schema_mode=mode)  # type: ignore[arg-type]
    merger = ds.DeltaTable.forPath(spark, uri).alias("t").merge(other.alias("s"), "t.id = s.id")
    with pytest.raises(DeltaError):
        merger.whenMatchedUpdateAll().execute()
    with pytest.raises(DeltaError):
        merger.whenNotMatchedInsertAll().whenMatchedDelete().execute()
    assert rows(spark, uri) == before
    ds.write(other, f"{uri}-other")
    with pytest.raises(SchemaMismatchError, match="x"):
        ds.write(given[kind], f"{uri}-other", "append")


def test_fields_and_text_of_values_are_rejected(spark: Any, uri: str) -> None:
    ds.write(frames(spark)["vector"], uri)
    table = ds.DeltaTable.forPath(spark, uri)
    with pytest.raises(DeltaError, match="size"):
        table.delete("x.size = 3")
    with pytest.raises((SchemaMismatchError, ExpressionError)):
        table.update(set={"x": "named_struct('type', 1Y)"})
    with pytest.raises(SchemaError, match="x"):
        ds.write(frames(spark)["text"], f"{uri}-parted", partition_by=["x"])
    assert len(rows(spark, uri)) == 3


def _edited(uri: str, old: str, new: str) -> str:
    """Return a copy of a table whose log has another text."""
    shutil.copytree(uri, f"{uri}-edited")
    (checksum,) = Path(f"{uri}-edited/_delta_log").glob("*.crc")
    checksum.unlink()
    commit = Path(f"{uri}-edited/_delta_log") / f"{0:020}.json"
    assert old in commit.read_text()
    commit.write_text(commit.read_text().replace(old, new))
    return f"{uri}-edited"


def test_table_is_changed_without_the_class_of_python(spark: Any, uri: str) -> None:
    from pyspark.errors import PySparkValueError

    ds.write(frames(spark)["list"], uri)
    place = _edited(uri, "tests.spark.points.", "tests.spark.missing.")
    assert sorted(r.id for r in ds.read(spark, place).select("id").collect()) == [1, 2, 3]
    table = ds.DeltaTable.forPath(spark, place)
    table.delete("id = 2")
    table.update("id = 1", {"id": "id + 6"})
    merger = table.alias("t").merge(spark.range(3, 5).alias("s"), "t.id = s.id")
    merger.whenMatchedUpdate(set={"id": "s.id + 5"}).whenNotMatchedInsert(values={"id": "s.id"}).execute()
    found = DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()
    assert found == [{"id": 4, "x": None}, {"id": 7, "x": [1.0, 2.0]}, {"id": 8, "x": None}]
    with pytest.raises((PySparkValueError, ImportError), match="missing"):
        ds.read(spark, place).collect()


#: The error of Spark for a class that is missing.
MISSING_CLASS = "UDT_CLASS_NOT_FOUND" if pyspark.__version__.startswith("4.3.") else "ClassNotFound"
#: The class that Spark states as expected of another one: 4.0 and 4.1 name the parent of UserDefinedType.
EXPECTED_CLASS = "types.DataType" if pyspark.__version__.startswith(("4.0.", "4.1.")) else "UserDefinedType"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("org.apache.spark.ml.linalg.VectorUDT", "com.none.VectorUDT", MISSING_CLASS),
        ("org.apache.spark.ml.linalg.VectorUDT", "java.lang.String", EXPECTED_CLASS),
        ('\\"pyClass\\":\\"pyspark.ml.linalg.VectorUDT\\",', "", "JSON"),
    ],
    ids=["missing", "another", "no Python"],
)
def test_class_that_the_driver_lacks_is_rejected_by_name(spark: Any, uri: str, old: str, new: str, why: str) -> None:
    ds.write(frames(spark)["vector"], uri)
    place = _edited(uri, old, new)
    table = ds.DeltaTable.forPath(spark, place)
    for run in (
        lambda: ds.read(spark, place),
        lambda: table.delete("id = 1"),
        lambda: table.update("id = 1", {"id": "id + 1"}),
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"(?s)column x.*{why}"):
            run()
    assert rows(spark, place, columns=["id"]) == [(1,), (2,), (3,)]
    assert DeltaTable(place).to_pyarrow_table().num_rows == 3
