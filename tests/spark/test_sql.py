"""Tables in SQL."""

from __future__ import annotations

from typing import Any

import pytest

from delta_core.spark import read, register, sql
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import path_of
from tests.spark.conftest import plain

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> TableBuilder:
    made = TableBuilder(tmp_path_factory.mktemp("sql") / "it's a `t`")
    made.create({"id": "long", "p": "string"}, partition_by=["p"])
    return made.append([{"id": 1, "p": "a"}]).append([{"id": 2, "p": "b"}])


def text(uri: str) -> str:
    return "'" + uri.replace("'", "\\'") + "'"


def test_table_function_takes_place_and_version(spark: Any, table: TableBuilder) -> None:
    register(spark)
    place = text(table.uri)
    assert spark.sql(f"SELECT count(*) FROM delta_scan({place}) WHERE p = 'a'").collect()[0][0] == 1
    assert (
        spark.sql(f"WITH t AS (SELECT * FROM delta_scan({place}, 1)) SELECT * FROM t a JOIN t b USING (id)").count()
        == 1
    )


def test_sql_finds_tables_by_path_and_leaves_text_and_comments_alone(spark: Any, table: TableBuilder) -> None:
    path = "delta_core.`" + table.uri.replace("`", "``") + "`"
    query = f"SELECT id, 'delta_core.`x`' AS t, :n AS n FROM {path} -- delta_core.`nothing`\nORDER BY id"
    found = sql(spark, query, {"n": 5})
    assert [tuple(r) for r in found.collect()] == [(1, "delta_core.`x`", 5), (2, "delta_core.`x`", 5)]
    assert sql(spark, f"SELECT * FROM {path} VERSION AS OF 1").count() == 1
    assert sql(spark, f"SELECT * FROM delta_scan({text(table.uri)}, 1) a JOIN {path} b ON a.id = b.id").count() == 1
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("delta_core_")]


def test_temporary_view_serves_sql(spark: Any, table: TableBuilder) -> None:
    read(spark, table.uri).createOrReplaceTempView("rows_of_t")
    assert spark.sql("SELECT sum(id) FROM rows_of_t WHERE p = 'b'").collect()[0][0] == 2


@pytest.mark.parametrize("name", ["nested_types", "primitive_types", "timestamp_ntz", "partition_timestamp"])
def test_format_reads_the_same_rows_through_python(spark: Any, name: str) -> None:
    register(spark)
    uri = str(path_of(f"spark/{name}"))
    found = spark.read.format("delta_core").load(uri).toArrow()
    assert_same_rows(plain(found), plain(read(spark, uri).toArrow()))
