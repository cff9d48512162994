"""SQL statements that change or describe tables: what they do to rows and return, and which are rejected."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedExpressionError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.spark

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
    state = spark._jsparkSession.sessionState()
    spark.sql(f"CREATE TABLE orders (id BIGINT) USING parquet LOCATION '{tmp_path / 'registered'}'")
    catalog = state.catalog()
    known = catalog.getTableMetadata(state.sqlParser().parseTableIdentifier("orders"))
    fields = [getattr(known, f"copy$default${i + 1}")() for i in range(known.productArity())]
    names = str(known.productElementNames().mkString(",")).split(",")
    fields[names.index("provider")] = spark._jvm.scala.Option.apply("delta")
    catalog.alterTable(known.copy(*fields))
    yield "orders"
    catalog.dropTable(known.identifier(), True, False)


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
        WHEN MATCHED AND t.id = 1 THEN UPDATE SET t.x = new.x - 7, `p` = 'q'
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
    ds.sql(spark, f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT 24L AS id, 'c' AS p, true AS more")
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
    assert [r.operation for r in history.collect()] == ["OPTIMIZE", "OPTIMIZE", "DELETE"]
    assert ds.sql(spark, f"DESC DETAIL '{tmp_path}'").collect()[0].partitionColumns == ["p"]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        listed = ds.sql(spark, f"VACUUM {name} RETAIN 0 HOURS DRY RUN").collect()
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


def test_what_a_statement_cannot_do_is_rejected_and_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import ParseException

    name = made(tmp_path)
    cases: list[tuple[type[Exception], str]] = [
        (UnsupportedExpressionError, f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name})"),
        (UnsupportedExpressionError, f"UPDATE {name} SET x = ?"),
        (ColumnNotFoundError, f"UPDATE {name} SET x = DEFAULT"),
        (InvalidArgumentError, f"UPDATE {name} SET x = 1, X = 2"),
        (InvalidArgumentError, f"UPDATE {name} AS t SET x = 1, t.x = 2"),
        (ColumnNotFoundError, f"DELETE FROM {name} WHERE nothing = 1"),
        (UnsupportedOperationError, f"DELETE FROM {name} VERSION AS OF 0"),
        (UnsupportedOperationError, f"WITH w AS (SELECT 1) DELETE FROM {name}"),
        (SchemaMismatchError, f"INSERT INTO {name} SELECT 1L"),
        (SchemaMismatchError, f"INSERT INTO {name} SELECT 1L, 'a', 1.5D, named_struct('m', 'z', 'n', 1L)"),
        (ColumnNotFoundError, f"INSERT INTO {name} (id, nothing, x) VALUES (1, 2, 3)"),
        (ColumnNotFoundError, f"INSERT INTO {name} PARTITION (id = 1) SELECT 1"),
        (UnsupportedOperationError, f"INSERT INTO {name} REPLACE ON t.id = s.id SELECT 1L, 'a', 1D, null"),
        (ParseException, f"MERGE INTO {name} USING {name} WHEN MATCHED THEN DELETE"),
        (UnsupportedOperationError, f"OPTIMIZE {name} FULL"),
        (UnsupportedOperationError, f"OPTIMIZE {name} VERSION AS OF 0"),
        (InvalidArgumentError, f"OPTIMIZE {name} WHERE id = 1"),
        (InvalidArgumentError, f"OPTIMIZE {name} WHERE"),
        (InvalidArgumentError, f"OPTIMIZE {name} ZORDER BY"),
        (InvalidArgumentError, f"VACUUM {name} RETAIN x HOURS"),
        (InvalidArgumentError, f"VACUUM {name} RETAIN 5 DAYS"),
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
