"""CHAR(n) and VARCHAR(n) on Spark: read, compared and checked as by delta-spark 4.4."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import ConstraintViolationError

pytestmark = pytest.mark.spark

PLAIN = {"spark.sql.legacy.charVarcharAsString": "true"}
UNPADDED = {"spark.sql.readSideCharPadding": "false"}


@contextmanager
def setting(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    for name, text in values.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


@pytest.fixture
def uri(spark: Any, tmp_path: Path) -> str:
    """A table with two rows: one that is stored with the spaces of its type, one without."""
    place = str(tmp_path / "t")
    made = ds.DeltaTable.create(spark).location(place).addColumn("id", "int")
    made.addColumn("c", "char(5)").addColumn("v", "varchar(5)").execute()
    ds.sql(spark, f"INSERT INTO delta.`{place}` VALUES (1, 'ab', 'ab'), (2, 'ab   ', 'ab'), (3, 'zz', 'zz')")
    return place


def rows(spark: Any, uri: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in ds.read(spark, uri).orderBy("id").collect()]


def stored(uri: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(uri).to_pyarrow_table().to_pylist()
    return sorted(tuple(r.values()) for r in found)


def test_declared_types_are_in_the_log_in_the_form_of_spark(spark: Any, uri: str) -> None:
    added = "STRUCT<c: CHAR(2), n: BIGINT>, m MAP<CHAR(2), VARCHAR(3)>"
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` ADD COLUMNS (s {added})")
    found = {f.name: f.metadata.get("__CHAR_VARCHAR_TYPE_STRING") for f in DeltaTable(uri).schema().fields}
    assert (found["c"], found["v"]) == ("char(5)", "varchar(5)")
    assert (found["s"], found["m"]) == ("struct<c:char(2),n:bigint>", "map<char(2),varchar(3)>")


def test_texts_are_stored_as_they_are_and_padded_where_they_are_read(spark: Any, uri: str) -> None:
    assert stored(uri) == [(1, "ab", "ab"), (2, "ab   ", "ab"), (3, "zz", "zz")]
    assert rows(spark, uri) == [(1, "ab   ", "ab"), (2, "ab   ", "ab"), (3, "zz   ", "zz")]
    for route in ("auto", "join"):
        found = ds.read(spark, uri, route=route, columns=["c"])  # type: ignore[arg-type]
        assert {r.c for r in found.collect()} == {"ab   ", "zz   "}
    assert {r.c for r in ds.read(spark, uri, 1).collect()} == {"ab   ", "zz   "}
    with setting(spark, UNPADDED):
        assert rows(spark, uri) == stored(uri)
    with setting(spark, PLAIN):
        assert rows(spark, uri) == stored(uri)


#: Conditions, and whether delta-spark's query finds the rows of ``ab``.
CONDITIONS = {
    "c = 'ab'": True, "'ab' = c": True, "c = 'ab   '": True, "c IN ('ab', 'q')": True, "c <=> 'ab'": True,
    "c < 'ab'": False, "c <= 'ab'": True, "c > 'ab' AND c < 'b'": False, "NOT c = 'ab'": False, "c LIKE 'ab'": False,
    "length(c) = 5 AND c < 'b'": True, "trim(c) = 'ab'": True, "c = v": False, "c = 'abcdefg'": False,
    "concat(c, 'x') = 'ab   x'": True,
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_statements_find_the_rows_that_queries_find(spark: Any, uri: str, condition: str) -> None:
    expected = 2 if CONDITIONS[condition] else 0
    if condition.startswith("NOT"):
        expected = 1
    assert ds.read(spark, uri).where(condition).count() == expected
    assert ds.read(spark, uri, predicate=condition).count() == expected
    assert ds.read(spark, uri, predicate=condition, route="join").count() == expected
    assert ds.sql(spark, f"SELECT * FROM delta.`{uri}` WHERE {condition}").count() == expected
    found = ds.sql(spark, f"UPDATE delta.`{uri}` SET v = 'hit' WHERE {condition}").first()
    assert found is not None
    assert found.num_affected_rows == expected
    assert ds.read(spark, uri).where("v = 'hit'").count() == expected
    if condition != "c = v":
        found = ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE {condition}").first()
        assert found is not None
        assert found.num_affected_rows == expected
        assert ds.read(spark, uri).count() == 3 - expected


@pytest.mark.parametrize("how", [{"replace_where": "c = 'ab'"}, {"replace_using": ["c"]}, {"replace_on": "t.c = s.c"}])
def test_overwrites_replace_the_rows_that_queries_find(spark: Any, uri: str, how: dict[str, Any]) -> None:
    new = spark.sql("SELECT 9 AS id, 'ab' AS c, 'q' AS v")
    ds.write(new, uri, "overwrite", **how)
    assert rows(spark, uri) == [(3, "zz   ", "zz"), (9, "ab   ", "q")]


def test_merges_compare_and_assign_as_queries_do(spark: Any, uri: str) -> None:
    source = "USING (SELECT 'ab   ' AS k, 'xy' AS c) s ON t.c = s.k"
    ds.sql(spark, f"MERGE INTO delta.`{uri}` t {source} WHEN MATCHED AND t.c = 'ab' THEN UPDATE SET c = s.c")
    assert rows(spark, uri) == [(1, "xy   ", "ab"), (2, "xy   ", "ab"), (3, "zz   ", "zz")]
    ds.sql(spark, f"UPDATE delta.`{uri}` SET v = c WHERE c = 'zz'")
    assert rows(spark, uri)[-1] == (3, "zz   ", "zz   ")


def test_streams_and_feeds_are_padded(spark: Any, uri: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    query = ds.write_stream(
        ds.read_stream(spark, uri), out, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert {r[1] for r in stored(out)} == {"ab   ", "zz   "}
    assert DeltaTable(out).schema().fields[1].metadata == {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES (4, 'q', 'q')")
    version = DeltaTable(uri).version()
    assert [r.c for r in ds.read_changes(spark, uri, version).where("c = 'q'").collect()] == ["q    "]


NESTED = "STRUCT<c: CHAR(3)>, a ARRAY<CHAR(3)>, m MAP<CHAR(3), VARCHAR(3)>"


@pytest.mark.parametrize("mode", ["none", "name"])
def test_nested_texts_are_padded_and_checked(spark: Any, tmp_path: Path, mode: str) -> None:
    uri = str(tmp_path / "n")
    ds.write(spark.range(0).selectExpr("CAST(id AS INT) AS id"), uri, properties={"delta.columnMapping.mode": mode})
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` ADD COLUMNS (s {NESTED})")
    given = "SELECT 1 AS id, named_struct('c', 'x') AS s, array('y', NULL) AS a, map('k', 'v') AS m"
    ds.sql(spark, f"INSERT INTO delta.`{uri}` {given}")
    assert rows(spark, uri) == [(1, ("x  ",), ["y  ", None], {"k  ": "v"})]
    assert ds.read(spark, uri, columns=["s.c"]).collect() == [(("x  ",),)]
    assert ds.read(spark, uri).where("s.c = 'x  '").count() == 1
    ds.sql(spark, f"UPDATE delta.`{uri}` SET id = 2 WHERE s.c = 'x  '")
    assert rows(spark, uri)[0][0] == 2
    long = ("named_struct('c', 'long') AS s", "array('long') AS a", "map('long', 'v') AS m", "map('k', 'long') AS m")
    for wrong in long:
        with pytest.raises(ConstraintViolationError):
            ds.write(spark.sql(f"SELECT 3 AS id, {wrong}"), uri, "append")
    ds.write(spark.sql("SELECT 4 AS id, CAST(NULL AS STRUCT<c: STRING>) AS s"), uri, "append")
    assert rows(spark, uri)[-1] == (4, None, None, None)


@pytest.mark.parametrize("column", ["c", "v"])
@pytest.mark.parametrize("value", ["abcdef", "ab       "])
def test_longer_texts_are_rejected_unless_lengths_are_disregarded(
    spark: Any, uri: str, column: str, value: str
) -> None:
    insert = f"INSERT INTO delta.`{uri}` ({column}) VALUES ('{value}')"
    for statement in (insert, f"UPDATE delta.`{uri}` SET {column} = '{value}'"):
        with pytest.raises(ConstraintViolationError, match=f"{column} has at most 5"):
            ds.sql(spark, statement)
        with setting(spark, PLAIN):
            ds.sql(spark, statement)
    assert value in {r[column] for r in ds.read(spark, uri).select(column).collect()}  # longer ones stay as they are


def test_partitions_of_texts_are_padded_and_found(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "p")
    made = ds.DeltaTable.create(spark).location(uri).addColumn("id", "int").addColumn("c", "char(5)")
    made.partitionedBy("c").execute()
    ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES (1, 'ab')")
    assert rows(spark, uri) == [(1, "ab   ")]
    assert ds.read(spark, uri).where("c = 'ab'").count() == 1
    ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE c = 'ab'")
    assert rows(spark, uri) == []


def test_copies_of_rows_keep_the_declared_types(spark: Any, uri: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    ds.write(ds.read(spark, uri), copy)
    found = json.loads(DeltaTable(copy).schema().to_json())["fields"]
    assert [f["metadata"] for f in found] == [
        {}, {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"},
    ]  # fmt: skip
