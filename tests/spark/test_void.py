"""Columns of type void on Spark: no value is stored in one, so rows that have values are rejected or widen it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import DeltaError, SchemaMismatchError, UnsupportedOperationError

pytestmark = pytest.mark.spark


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(spark: Any, uri: str, *columns: str) -> list[Any]:
    found = ds.read(spark, uri).orderBy("id")
    return [tuple(r) for r in (found.selectExpr(*columns) if columns else found).collect()]


def _one(spark: Any, value: str) -> Any:
    return spark.range(7, 8).selectExpr("id", f"{value} AS v")


def _stream(spark: Any, uri: str, value: str) -> None:
    source = f"{uri}-source"
    ds.write(spark.range(7, 8), source)
    found = ds.read_stream(spark, source).selectExpr("id", f"{value} AS v")
    ds.write_stream(found, uri, checkpoint=f"{uri}-checkpoint", trigger={"availableNow": True}).awaitTermination()


WRITES: dict[str, Callable[[Any, str, str], Any]] = {
    "append": lambda spark, uri, v: ds.write(_one(spark, v), uri, "append"),
    "overwrite": lambda spark, uri, v: ds.write(_one(spark, v), uri, "overwrite"),
    "replace_where": lambda spark, uri, v: ds.write(_one(spark, v), uri, "overwrite", replace_where="id = 7"),
    "replace_using": lambda spark, uri, v: ds.write(_one(spark, v), uri, "overwrite", replace_using=["id"]),
    "plain": lambda spark, uri, v: ds.write(_one(spark, v), uri, "append", route="plain"),
    "insert": lambda spark, uri, v: ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES (7, {v})"),
    "by_name": lambda spark, uri, v: ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT {v} AS v, 7L AS id"),
    "insert_overwrite": lambda spark, uri, v: ds.sql(spark, f"INSERT OVERWRITE delta.`{uri}` VALUES (7, {v})"),
    "update": lambda spark, uri, v: ds.sql(spark, f"UPDATE delta.`{uri}` SET v = {v}"),
    "merge": lambda spark, uri, v: ds.sql(
        spark,
        f"MERGE INTO delta.`{uri}` t USING (SELECT 7L AS id, {v} AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ),
    "stream": _stream,
}


@pytest.mark.parametrize("how", WRITES)
def test_write_of_values_into_void_column_is_rejected_and_nothing_changes(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.range(2).selectExpr("id", "NULL AS v"), uri)
    with pytest.raises(DeltaError, match=r"(?i)void"):
        WRITES[how](spark, uri, "5")
    assert DeltaTable(uri).version() == 0


@pytest.mark.parametrize("value", ["'x'", "CAST(NULL AS INT)", "array(1)", "named_struct('a', 1)"])
def test_other_types_than_void_are_rejected_for_a_void_column(spark: Any, uri: str, value: str) -> None:
    ds.write(spark.range(2).selectExpr("id", "NULL AS v"), uri)
    with pytest.raises(SchemaMismatchError, match="mergeSchema") as found:
        ds.write(_one(spark, value), uri, "append")
    assert found.value.facts["column"] == "v"
    ds.write(_one(spark, value), uri, "append", schema_mode="merge")
    assert rows(spark, uri, "id", "v IS NOT NULL")[:2] == [(0, False), (1, False)]
    assert rows(spark, uri, f"v <=> {value}")[-1] == (True,)


def test_void_columns_of_rows_are_null_in_columns_of_any_type(spark: Any, uri: str) -> None:
    ds.write(spark.range(1).selectExpr("id", "1 AS a", "named_struct('x', 1, 'y', 2) AS s", "NULL AS v"), uri)
    more = spark.range(1, 2).selectExpr("id", "NULL AS a", "named_struct('x', NULL, 'y', 3) AS s", "NULL AS v")
    ds.write(more, uri, "append")
    assert rows(spark, uri) == [(0, 1, (1, 2), None), (1, None, (None, 3), None)]


@pytest.mark.parametrize("route", ["auto", "join"])
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_struct_with_a_void_field_is_written_read_and_changed(spark: Any, uri: str, route: Any, mode: str) -> None:
    made = spark.range(3).selectExpr(
        "id", "CASE WHEN id > 0 THEN named_struct('a', id, 'b', NULL, 'c', named_struct('d', 'x', 'e', NULL)) END AS v"
    )
    ds.write(made, uri, properties={"delta.columnMapping.mode": mode})
    whole = [(0, None), (1, (1, None, ("x", None))), (2, (2, None, ("x", None)))]
    found = ds.read(spark, uri, route=route).orderBy("id")
    assert [tuple(r) for r in found.collect()] == whole
    assert found.where("v.a = 2").select("v.c.d").collect() == [("x",)]
    # the struct is known to be there though Spark reads none of its fields
    assert found.where("v IS NOT NULL").select("id", "v.b", "v.c.e").collect() == [(1, None, None), (2, None, None)]
    assert ds.read(spark, uri, columns=["v.b"], route=route).where("v IS NULL").count() == 1
    ds.sql(spark, f"UPDATE delta.`{uri}` SET v.a = 9 WHERE id = 1")
    ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE v.a = 2")
    assert rows(spark, uri) == [(0, None), (1, (9, None, ("x", None)))]
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2


def test_value_for_a_void_field_is_rejected_or_widens_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(1).selectExpr("id", "named_struct('a', 1, 'b', NULL) AS v"), uri)
    given = _one(spark, "named_struct('a', 1, 'b', 2)")
    with pytest.raises(SchemaMismatchError) as found:
        ds.write(given, uri, "append")
    assert found.value.facts["column"] == "v.b"
    ds.write(given, uri, "append", schema_mode="merge")
    assert rows(spark, uri) == [(0, (1, None)), (7, (1, 2))]


NOWHERE = ["ARRAY<VOID>", "MAP<STRING, VOID>", "STRUCT<b: VOID>", "STRUCT<a: INT, x: ARRAY<VOID>>"]


@pytest.mark.parametrize("kind", NOWHERE)
def test_columns_that_no_file_contains_read_as_null(spark: Any, uri: str, kind: str) -> None:
    ds.write(spark.range(2), uri)
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` ADD COLUMNS (v {kind})")
    assert rows(spark, uri) == [(0, None), (1, None)]
    assert rows(spark, uri, "v IS NULL") == [(True,), (True,)]


@pytest.mark.parametrize("value", ["array(NULL)", "map('a', NULL)", "array(named_struct('a', 1, 'b', NULL))"])
def test_voids_within_lists_and_maps_are_rejected(spark: Any, uri: str, value: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="void"):
        ds.write(_one(spark, value), uri)
    assert not DeltaTable.is_deltatable(uri)
