"""SQL statements that change or describe tables: what they do to rows and return, and which are rejected."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, Field, Schema, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedExpressionError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.spark

#: Earlier versions lack some forms of INSERT.
SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
VECTORS = {"delta.enableDeletionVectors": "true"}


def made(path: Path, partition_by: list[str] | None = None, properties: dict[str, str] | None = None) -> str:
    """Make a table of 12 rows in two files and return its name in SQL."""
    rows = [{"id": i, "p": "ab"[i % 2], "x": i / 4, "s": {"n": i, "m": "z"}} for i in range(12)]
    for start in (0, 6):
        part = pa.Table.from_pylist(rows[start : start + 6])
        write_deltalake(path, part, mode="append", partition_by=partition_by or [], configuration=properties)
    return f"delta.`{path}`"


def rows_of(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(path).to_pyarrow_table(columns=list(columns)).to_pylist()
    return sorted(tuple(r.values()) for r in found)


def place(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


@pytest.fixture
def registered(spark: Any, tmp_path: Path) -> Iterator[str]:
    """Return the name of a table that the session's catalog has."""
    made(tmp_path / "registered", properties=VECTORS)
    spark.catalog.dropTempView("orders")  # of another module's tests
    ds.DeltaTable.createIfNotExists(spark).tableName("orders").location(str(tmp_path / "registered")).addColumn(
        "id", "bigint"
    ).execute()
    yield "orders"
    for name in ("orders", "copied"):
        identifier = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
        spark._jsparkSession.sessionState().catalog().dropTable(identifier, True, False)


def test_delete_and_update_change_the_rows_of_their_conditions(spark: Any, tmp_path: Path) -> None:
    name = made(tmp_path / "it's `a` t", properties=VECTORS).replace("`a`", "``a``")
    path = tmp_path / "it's `a` t"
    assert ds.sql(spark, f"DELETE FROM {name} WHERE id BETWEEN 3 AND 4 OR p IN ('x', 'it''s');").collect() == [(2,)]
    done = ds.sql(
        spark, f"UPDATE {name} AS t SET t.x = x + 0.5, s.n = t.s.n * 10 -- text\n WHERE t.p <=> 'a' AND NOT x > 1"
    )
    assert [tuple(r) for r in done.collect()] == [(2,)]
    expected = [(i, i / 4 + 0.5 * (i in (0, 2)), i * (10 if i in (0, 2) else 1)) for i in range(12) if i not in (3, 4)]
    assert [(i, x, s["n"]) for i, x, s in rows_of(path, "id", "x", "s")] == expected
    assert ds.sql(spark, f"delete /* all */ from {name}").collect()[0][0] == 10
    assert rows_of(path, "id") == []


def test_merge_has_all_clauses_and_reads_tables_by_path(spark: Any, tmp_path: Path) -> None:
    target, source = made(tmp_path / "t"), made(tmp_path / "s")
    spark.sql("SELECT 100L AS id, 'n' AS p, 1.0D AS x, named_struct('n', 1L, 'm', 'y') AS s").createOrReplaceTempView(
        "one"
    )
    done = ds.sql(
        spark,
        f"""MERGE INTO {target} AS t
        USING (SELECT * FROM {source} VERSION AS OF 0 WHERE id < 4 UNION ALL SELECT * FROM one) AS new
        ON t.id = new.id
        WHEN MATCHED AND new.id = 0 THEN DELETE
        WHEN MATCHED AND t.id BETWEEN 1 AND 1 THEN UPDATE SET t.x = new.x - 7, `p` = 'q'
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT (id, p) VALUES (new.id, concat(new.p, '!'))
        WHEN NOT MATCHED BY SOURCE AND t.id > 10 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id = 10 THEN UPDATE SET x = -1""",
    )
    assert done.columns == ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
    assert tuple(done.collect()[0]) == (7, 4, 2, 1)
    found = {i: (p, x) for i, p, x in rows_of(tmp_path / "t", "id", "p", "x")}
    assert found[1] == ("q", 1 / 4 - 7)
    assert found[10] == ("a", -1.0)
    assert found[100] == ("n!", None)
    assert not {0, 11} & found.keys()


def test_insert_takes_columns_by_place_or_name(spark: Any, tmp_path: Path) -> None:
    name = made(tmp_path, ["p"])
    ds.sql(spark, f"INSERT INTO {name} VALUES (20, 'c', 1.5, named_struct('n', 1L, 'm', 'y'))")
    ds.sql(spark, f"INSERT INTO {name} (x, id, p) SELECT 2.5D, 21, 'c'")
    ds.sql(spark, f"WITH w AS (SELECT 'c' AS p, 22 AS id) INSERT INTO {name} BY NAME SELECT * FROM w")
    ds.sql(spark, f"INSERT INTO {name} PARTITION (p = 'd') (id) VALUES (23L)")
    with pytest.raises(SchemaMismatchError, match="both have 'P'"):
        ds.sql(spark, f"INSERT INTO {name} PARTITION (p = 'd') BY NAME SELECT 'e' AS P, 23L AS id")
    evolving = "INSERT WITH SCHEMA EVOLUTION" if SPARK >= (4, 2) else "INSERT"
    more = ", true AS more" if SPARK >= (4, 2) else ""
    ds.sql(spark, f"{evolving} INTO {name} BY NAME SELECT 24L AS id, 'c' AS p{more}")
    assert rows_of(tmp_path, "id", "p", "x")[12:] == [
        (20, "c", 1.5), (21, "c", 2.5), (22, "c", None), (23, "d", None), (24, "c", None),
    ]  # fmt: skip


def test_insert_replaces_the_rows_that_it_names(spark: Any, tmp_path: Path) -> None:
    name = made(tmp_path, ["p"])
    path = tmp_path
    ds.sql(spark, f"INSERT OVERWRITE {name} PARTITION (p = 'a') SELECT id + 100, x, s FROM {name} WHERE p = 'a'")
    assert [i for i, _ in rows_of(path, "id", "p")] == [1, 3, 5, 7, 9, 11, 100, 102, 104, 106, 108, 110]
    ds.sql(spark, f"INSERT INTO {name} REPLACE WHERE id > 99 AND p = 'a' SELECT 200L, 'a', null, null")
    assert [i for i, _ in rows_of(path, "id", "p")] == [1, 3, 5, 7, 9, 11, 200]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        ds.sql(spark, f"INSERT OVERWRITE TABLE {name} SELECT 300L, 'a', null, null")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert [i for i, _ in rows_of(path, "id", "p")] == [1, 3, 5, 7, 9, 11, 300]
    ds.sql(spark, f"INSERT OVERWRITE {name} VALUES (1, 'z', null, null)")
    assert rows_of(path, "id", "p") == [(1, "z")]


def test_statements_about_files_and_log_return_what_delta_spark_returns(spark: Any, tmp_path: Path) -> None:
    name = made(tmp_path, ["p"], VECTORS)
    ds.sql(spark, f"DELETE FROM {name} WHERE id = 0")
    purged = ds.sql(spark, f"REORG TABLE {name} WHERE p = 'a' APPLY (PURGE)").collect()[0]
    assert (purged.metrics.numFilesRemoved, purged.metrics.numFilesAdded) == (1, 1)
    done = ds.sql(spark, f"OPTIMIZE {name} WHERE p = 'b'").collect()[0]
    assert (done.path, done.metrics.numFilesRemoved, done.metrics.numFilesAdded) == (f"file://{tmp_path}", 2, 1)
    history = ds.sql(spark, f"DESCRIBE HISTORY {name} LIMIT 3")
    assert [r.operation for r in history.collect()] == ["OPTIMIZE", "REORG", "DELETE"]
    assert ds.sql(spark, f"DESC DETAIL '{tmp_path}'").collect()[0].partitionColumns == ["p"]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        listed = ds.sql(spark, f"VACUUM {name} DRY RUN RETAIN 0 HOURS").collect()
        assert len([r for r in listed if r.path.endswith(".parquet")]) == 3
        assert all(place(r.path).exists() for r in listed)
        assert ds.sql(spark, f"VACUUM {name} LITE RETAIN 0 HOURS").collect() == [(f"file://{tmp_path}",)]
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert not [r for r in listed if place(r.path).suffix and place(r.path).exists()]
    before = DeltaTable(tmp_path).version()
    restored = ds.sql(spark, f"RESTORE TABLE {name} TO VERSION AS OF {before}")
    assert restored.columns[:2] == ["table_size_after_restore", "num_of_files_after_restore"]
    ds.sql(spark, f"GENERATE symlink_format_manifest FOR TABLE {name}")
    assert (tmp_path / "_symlink_format_manifest" / "p=a" / "manifest").exists()
    ds.sql(spark, f"ALTER TABLE {name} DROP FEATURE deletionVectors")
    assert "deletionVectors" not in (DeltaTable(tmp_path).protocol().reader_features or [])


def test_restore_takes_a_version_or_a_time(spark: Any, tmp_path: Path) -> None:
    name = made(tmp_path)
    ds.sql(spark, f"RESTORE {name} TO VERSION AS OF 0")
    assert len(rows_of(tmp_path, "id")) == 6
    ds.sql(spark, f"RESTORE {name} VERSION AS OF 1")
    assert len(rows_of(tmp_path, "id")) == 12
    made_at = dt.datetime.fromtimestamp(DeltaTable(tmp_path).history()[-2]["timestamp"] / 1000, dt.UTC)
    ds.sql(spark, f"RESTORE TABLE {name} TO TIMESTAMP AS OF '{made_at.isoformat()}'")
    assert DeltaTable(tmp_path).history(1)[0]["operation"] == "RESTORE"


def test_clustering_and_identity_are_altered(spark: Any, tmp_path: Path) -> None:
    builder = ds.DeltaTable.create(spark).location(str(tmp_path)).addColumn("a", "bigint").addColumn("b", "string")
    builder.addColumn("n", "bigint", generatedByDefaultAs=ds.IdentityGenerator()).clusterBy("a").execute()
    name = f"delta.`{tmp_path}`"
    ds.sql(spark, f"INSERT INTO {name} VALUES (1, 'x', 50)")
    ds.sql(spark, f"ALTER TABLE {name} ALTER COLUMN n SYNC IDENTITY")
    ds.sql(spark, f"INSERT INTO {name} (a, b) VALUES (2, 'y')")
    assert rows_of(tmp_path, "n") == [(50,), (51,)]
    ds.sql(spark, f"ALTER TABLE {name} CLUSTER BY (a, b)")
    assert ds.sql(spark, f"DESCRIBE DETAIL {name}").collect()[0].clusteringColumns == ["a", "b"]
    assert ds.sql(spark, f"OPTIMIZE {name}").collect()[0].metrics.numFilesAdded == 1
    ds.sql(spark, f"ALTER TABLE {name} CLUSTER BY (b)")
    assert ds.sql(spark, f"OPTIMIZE {name}").collect()[0].metrics.numFilesAdded == 0
    assert ds.sql(spark, f"OPTIMIZE {name} FULL").collect()[0].metrics.numFilesAdded == 1
    ds.sql(spark, f"ALTER TABLE {name} CLUSTER BY NONE")
    assert ds.sql(spark, f"DESCRIBE DETAIL {name}").collect()[0].clusteringColumns == []


def test_statements_find_tables_of_the_catalog(spark: Any, registered: str, tmp_path: Path) -> None:
    path = tmp_path / "registered"
    assert ds.sql(spark, "DELETE FROM orders WHERE orders.id < 3").collect() == [(3,)]
    ds.sql(spark, "UPDATE spark_catalog.default.orders SET orders.x = 0 WHERE id = 3")
    ds.sql(
        spark, f"MERGE INTO orders USING delta.`{path}` AS s ON orders.id = s.id WHEN MATCHED AND s.id > 4 THEN DELETE"
    )
    assert rows_of(path, "id", "x") == [(3, 0.0), (4, 1.0)]
    assert ds.sql(spark, "DESCRIBE HISTORY default.orders").count() == 5


def test_queries_read_tables_of_the_catalog(spark: Any, registered: str, tmp_path: Path) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW mine AS SELECT 3L AS id")
    other = made(tmp_path / "other")

    def answer(text: str, *args: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in ds.sql(spark, text, *args).collect()]

    assert answer("SELECT count(*), max(orders.id) FROM orders VERSION AS OF 0 WHERE orders.id > 3") == [(2, 5)]
    assert answer(
        "SELECT count(*) FROM default.orders TIMESTAMP AS OF '2099-01-01' AS o WHERE o.id > :n", {"n": 3}
    ) == [(8,)]
    joined = "FROM spark_catalog.default.orders JOIN orders b ON orders.id = b.id - 1 JOIN mine ON mine.id = orders.id"
    assert answer(f"SELECT orders.id, b.id {joined}") == [(3, 4)]
    assert answer("WITH orders AS (SELECT 7 AS id) SELECT * FROM orders") == [(7,)]
    assert answer("WITH w AS (TABLE orders) SELECT count(*) FROM w") == [(12,)]
    assert answer("FROM orders SELECT count(*) WHERE id IN (SELECT id FROM orders WHERE orders.x > 2)") == [(3,)]
    assert answer("SELECT count(*) FROM orders TABLESAMPLE (5 ROWS)") == [(5,)]
    assert answer("(SELECT count(*) FROM orders) UNION ALL (SELECT count(*) FROM mine)") == [(12,), (1,)]
    ds.sql(spark, f"DELETE FROM {other} WHERE id < 6")
    merge = f"MERGE INTO {other} AS t USING orders ON t.id = orders.id WHEN NOT MATCHED AND orders.id < 2 THEN INSERT *"
    assert answer(merge) == [(2, 0, 0, 2)]
    ds.sql(spark, f"INSERT INTO {other} WITH w AS (SELECT * FROM orders) SELECT * FROM w WHERE id = 3")
    assert [i for (i,) in rows_of(tmp_path / "other", "id")] == [0, 1, 3, 6, 7, 8, 9, 10, 11]
    ds.sql(spark, "INSERT OVERWRITE orders SELECT * FROM orders WHERE orders.id = 2")
    assert rows_of(tmp_path / "registered", "id") == [(2,)]


def test_tables_are_cloned_and_folders_converted(spark: Any, registered: str, tmp_path: Path) -> None:
    name = made(tmp_path / "t")
    shallow, deep = f"delta.`{tmp_path / 'shallow'}`", f"delta.`{tmp_path / 'deep'}`"
    done = ds.sql(spark, f"CREATE TABLE {shallow} SHALLOW CLONE {name} VERSION AS OF 0").collect()[0].asDict()
    assert (done["source_num_of_files"], done["num_copied_files"]) == (1, 0)
    assert len(rows_of(tmp_path / "shallow", "id")) == 6
    ds.sql(spark, f"CREATE TABLE IF NOT EXISTS {shallow} SHALLOW CLONE {name}")
    assert DeltaTable(tmp_path / "shallow").version() == 0
    with pytest.raises(TableExistsError):
        ds.sql(spark, f"CREATE TABLE {shallow} SHALLOW CLONE {name}")
    ds.sql(spark, f"CREATE OR REPLACE TABLE {shallow} SHALLOW CLONE {name} TBLPROPERTIES ('a.b' = 'c', own.n = 3)")
    assert len(rows_of(tmp_path / "shallow", "id")) == 12
    assert {"a.b": "c", "own.n": "3"}.items() <= DeltaTable(tmp_path / "shallow").metadata().configuration.items()
    with pytest.raises(TableNotFoundError):
        ds.sql(spark, f"REPLACE TABLE {deep} CLONE {name}")
    assert ds.sql(spark, f"CREATE TABLE {deep} CLONE orders").collect()[0].num_copied_files == 2
    ds.sql(spark, f"REPLACE TABLE {deep} DEEP CLONE orders TIMESTAMP AS OF '2099-01-01'")
    ds.sql(spark, f"CREATE TABLE copied DEEP CLONE orders VERSION AS OF 0 LOCATION '{tmp_path / 'copied'}'")
    assert ds.sql(spark, "SELECT count(*) FROM copied").collect() == [(6,)]
    with pytest.raises(InvalidArgumentError):
        ds.sql(spark, f"CREATE TABLE {deep} CLONE {name} LOCATION '/other'")

    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(str(tmp_path / "c"))
    ds.sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path / 'c'}` NO STATISTICS PARTITIONED BY (p BIGINT)")
    assert rows_of(tmp_path / "c", "id", "p") == [(0, 0), (1, 1), (2, 0), (3, 1)]
    with pytest.raises(TableNotFoundError, match="no table some_table in the session's catalog"):
        ds.sql(spark, "CONVERT TO DELTA some_table")


def test_definitions_are_altered_as_delta_spark_does(spark: Any, registered: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    name = made(path)

    def alter(text: str, table: str = name) -> None:
        assert ds.sql(spark, f"ALTER TABLE {table} {text}").collect() == []

    alter("ADD CONSTRAINT small CHECK (id < 100 AND (x >= 0))")
    with pytest.raises(ConstraintViolationError):
        alter("ADD CONSTRAINT none CHECK (id > 100)")
    alter("DROP CONSTRAINT IF EXISTS nothing")
    alter("DROP CONSTRAINT small")
    alter("ADD COLUMNS (y INT COMMENT 'it''s', z ARRAY<STRUCT<a: DECIMAL(5, 2), b: MAP<STRING, ARRAY<INT>>>>)")
    alter("ADD COLUMN q TIMESTAMP FIRST")
    alter("ADD COLUMN s.k BIGINT COMMENT 'in a struct' AFTER m")
    types = {f.name: f for f in DeltaTable(path).schema().fields}
    assert list(types) == ["q", "id", "p", "x", "s", "y", "z"]
    assert types["y"].metadata["comment"] == "it's"
    assert [f.name for f in types["s"].type.fields] == ["n", "m", "k"]
    alter("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', own.key = 'v', 'delta.enableTypeWidening' = true)")
    alter("UNSET TBLPROPERTIES IF EXISTS ('own.key', nothing)")
    alter("RENAME COLUMN y TO `new y`")
    alter("DROP COLUMNS (q, z)")
    alter("ALTER COLUMN `new y` TYPE BIGINT")
    alter("ALTER COLUMN `new y` FIRST")
    alter("CHANGE COLUMN s.k COMMENT 'other'")
    alter("ALTER id SET NOT NULL")
    alter("ALTER id DROP NOT NULL")
    alter("ALTER id DROP NOT NULL")  # as in delta-spark, no error
    alter("SET TBLPROPERTIES (delta.feature.allowColumnDefaults = supported)")
    alter("ALTER COLUMN p SET DEFAULT concat('a', 'b')")
    ds.sql(spark, f"INSERT INTO {name} (id) VALUES (50)")
    alter("ALTER COLUMN p DROP DEFAULT")
    ds.sql(spark, f"COMMENT ON TABLE {name} IS 'words'")
    metadata = DeltaTable(path).metadata()
    assert (metadata.description, "own.key" in metadata.configuration) == ("words", False)
    assert (50, "ab") in rows_of(path, "id", "p")
    ds.sql(spark, f"TRUNCATE TABLE {name}")
    assert rows_of(path, "id") == []
    alter("ADD COLUMN more INT", "default.orders")
    assert "more" in DeltaTable(tmp_path / "registered").schema().to_arrow().names
    before = DeltaTable(path).version()
    for text in (
        "ADD COLUMN n INT NOT NULL", "ADD COLUMN n INT AFTER nothing", "ADD COLUMNS (n INT FIRST, m INT AFTER nothing)",
        "ADD COLUMN n ARRAY<INT", "RENAME COLUMN id TO a.b", "SET TBLPROPERTIES ('delta.nothing' = '1')",
        "SET TBLPROPERTIES (a = )", "REPLACE COLUMNS (id BIGINT, id BIGINT)", "RENAME TO other", "DROP COLUMN nothing",
        "ALTER COLUMN id TYPE INT", "ADD CONSTRAINT c CHECK (id", "ADD CONSTRAINT c CHECK ()",
    ):  # fmt: skip
        with pytest.raises(DeltaError):
            alter(text)
    assert DeltaTable(path).version() == before
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    try:
        alter("ADD COLUMNS (more INT)", "plain")  # by Spark
        assert spark.table("plain").columns == ["id", "more"]
    finally:
        spark.sql("DROP TABLE plain")


def test_default_is_a_keyword_unless_the_query_has_such_a_column(spark: Any, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    columns = [Field("i", "long"), Field("x", "long", metadata={"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7"})]
    DeltaTable.create(str(tmp_path / "t"), Schema(columns), features=["allowColumnDefaults"])
    ds.sql(spark, f"INSERT INTO {name} VALUES (1L, DEFAULT), (2L, 20L)")
    ds.sql(spark, f"INSERT INTO {name} SELECT 3L, DEFAULT")
    ds.sql(spark, f"INSERT INTO {name} SELECT 4L, default FROM (SELECT 40L AS `default`)")
    assert rows_of(tmp_path / "t", "i", "x") == [(1, 7), (2, 20), (3, 7), (4, 40)]
    ds.sql(spark, f"UPDATE {name} SET x = DEFAULT WHERE i = 4")
    merge = f"MERGE INTO {name} t USING (SELECT 5L AS i) s ON t.i = s.i"
    ds.sql(spark, f"{merge} WHEN NOT MATCHED THEN INSERT (i, x) VALUES (s.i, DEFAULT)")
    assert rows_of(tmp_path / "t", "i", "x") == [(1, 7), (2, 20), (3, 7), (4, 7), (5, 7)]


def test_default_of_values_that_the_table_makes_is_rejected(spark: Any, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    ds.DeltaTable.create(spark).location(str(tmp_path / "t")).addColumn("x", "INT").addColumn(
        "id", "BIGINT", generatedByDefaultAs=ds.IdentityGenerator()
    ).addColumn("g", "INT", generatedAlwaysAs="x * 2").execute()
    for columns, row in (("x, id", "1, DEFAULT"), ("x, g", "1, DEFAULT")):
        with pytest.raises(InvalidArgumentError, match=r"whose values the table makes\. Leave it out"):
            ds.sql(spark, f"INSERT INTO {name} ({columns}) VALUES ({row})")
    assert DeltaTable(tmp_path / "t").version() == 0


def test_what_a_statement_cannot_do_is_rejected_and_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import ParseException

    name = made(tmp_path)
    cases: list[tuple[type[Exception], str]] = [
        (UnsupportedExpressionError, f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name})"),
        (UnsupportedExpressionError, f"UPDATE {name} SET x = ?"),
        (InvalidArgumentError, f"UPDATE {name} SET x = 1, X = 2"),
        (InvalidArgumentError, f"UPDATE {name} AS t SET x = 1, t.x = 2"),
        (ColumnNotFoundError, f"DELETE FROM {name} WHERE nothing = 1"),
        (UnsupportedOperationError, f"DELETE FROM {name} VERSION AS OF 0"),
        (UnsupportedOperationError, f"WITH w AS (SELECT 1) DELETE FROM {name}"),
        (SchemaMismatchError, f"INSERT INTO {name} SELECT 1L"),
        (EngineError, f"INSERT INTO {name} SELECT 1L, 'a', 1.5D, named_struct('m', 'z', 'n', 1L)"),
        (ColumnNotFoundError, f"INSERT INTO {name} (id, nothing, x) VALUES (1, 2, 3)"),
        (ColumnNotFoundError, f"INSERT INTO {name} PARTITION (id = 1) SELECT 1"),
        (
            UnsupportedOperationError if SPARK >= (4, 2) else ParseException,
            f"INSERT INTO {name} REPLACE ON t.id = s.id SELECT 1L, 'a', 1D, null",
        ),
        (ParseException, f"MERGE INTO {name} USING {name} WHEN MATCHED THEN DELETE"),
        (UnsupportedOperationError, f"OPTIMIZE {name} FULL"),
        (UnsupportedOperationError, f"OPTIMIZE {name} VERSION AS OF 0"),
        (InvalidArgumentError, f"OPTIMIZE {name} WHERE id = 1"),
        (InvalidArgumentError, f"OPTIMIZE {name} WHERE"),
        (InvalidArgumentError, f"OPTIMIZE {name} ZORDER BY"),
        (InvalidArgumentError, f"VACUUM {name} RETAIN x HOURS"),
        (InvalidArgumentError, f"VACUUM {name} RETAIN 5 DAYS"),
        (UnsupportedOperationError, f"VACUUM {name} USING INVENTORY (SELECT 1)"),
        (InvalidArgumentError, f"REORG TABLE {name} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"),
        (InvalidArgumentError, f"RESTORE {name}"),
        (InvalidArgumentError, f"DESCRIBE HISTORY {name} 3"),
        (InvalidArgumentError, f"SELECT 'unfinished FROM {name}"),
        (DeltaError, f"ALTER TABLE {name} ALTER COLUMN id SYNC IDENTITY"),
        (TableNotFoundError, f"VACUUM delta.`{tmp_path}/nothing`"),
        (TableNotFoundError, "OPTIMIZE no_such_table"),
    ]
    for kind, text in cases:
        with pytest.raises(kind):
            ds.sql(spark, text)
    with pytest.raises(InvalidArgumentError, match="only queries"):
        ds.sql(spark, f"DELETE FROM {name} WHERE id = :n", {"n": 1})
    assert DeltaTable(tmp_path).version() == 1
