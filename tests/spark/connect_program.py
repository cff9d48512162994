"""What `test_connect` runs in a process of its own: reads and writes through a Connect server.

What it read and wrote is compared with the Arrow engine; each step that found the same reports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_core import DeltaTable, open_table, write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConstraintViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_core.kernel.snapshot import open_snapshot
from delta_core.spark import DeltaTable as SparkTable, read, read_changes, sql, write
from delta_core.testing.comparison import assert_same_rows
from tests.spark.conftest import plain


def same(frame: Any, expected: pa.Table) -> None:
    assert_same_rows(plain(frame.toArrow()), plain(expected))


def reads(spark: Any, uri: str) -> None:
    snapshot = open_snapshot(uri)
    names = ["_file_path", "_file_row_index"]
    same(read(spark, uri, metadata=names), snapshot.scan(None, names).to_table())
    first = snapshot.schema.names[0]
    some, others = f"`{first}` is not null", f"`{first}` is null"
    same(read(spark, uri, predicate=some), snapshot.scan(predicate=some).to_table())
    found = sql(spark, f"SELECT * FROM delta_core.`{uri}` WHERE {others}")
    same(found, snapshot.scan(predicate=others).to_table())
    same(read(spark, uri, vector_bytes=0), snapshot.scan().to_table())
    if snapshot.state.is_active("changeDataFeed"):
        same(read_changes(spark, uri, 1), DeltaTable(uri).operation("changes")(1).to_table())


def reads_lance(spark: Any) -> None:
    place = str(Path(__file__).parents[1] / "lance" / "fixtures" / "plain")
    scan = open_table(place).scan
    assert sorted(r.id for r in read(spark, place).collect()) == sorted(scan(["id"]).to_table()["id"].to_pylist())
    some = read(spark, place, columns=["id"], predicate="id > 5", metadata=["_rowid"])
    found = sorted((r.id, int(r._rowid)) for r in some.collect())
    expected = scan(["id"], "id > 5", metadata=["_rowid"]).to_table()
    assert found == sorted(zip(*(c.to_pylist() for c in expected.columns), strict=True))
    assert read(spark, place, columns=[]).count() == scan().count()
    with pytest.raises(UnsupportedOperationError, match="route"):
        read(spark, place, route="join")


def rows(path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(r.values()) for r in DeltaTable(str(path)).snapshot().scan().to_table().to_pylist())


def writes(spark: Any, root: Path) -> None:
    made = spark.sql("SELECT id, concat('a/b ', id % 2) AS p FROM range(6)")
    properties = {"delta.columnMapping.mode": "name", "delta.constraints.small": "id < 100"}
    write(made, root / "t", partition_by="p", properties=properties)
    write(spark.sql("SELECT 9 AS id, 'a/b 1' AS p"), root / "t", "overwrite", replace_where="id >= 4")
    assert rows(root / "t") == [(0, "a/b 0"), (1, "a/b 1"), (2, "a/b 0"), (3, "a/b 1"), (9, "a/b 1")]
    write(spark.sql("SELECT 9L AS id, 'x' AS p"), root / "t", "overwrite", replace_using="id")
    assert rows(root / "t")[-1] == (9, "x")
    before = rows(root / "t")
    for query, error in [
        ("SELECT 100L AS id, 'x' AS p", ConstraintViolationError),
        ("SELECT 1.5D AS id, 'x' AS p", SchemaMismatchError),
    ]:
        try:
            write(spark.sql(query), root / "t", "append")
        except error:
            assert rows(root / "t") == before
        else:
            raise AssertionError(query)


def replaces_by_vectors(spark: Any, path: Path) -> None:
    write(spark.sql("SELECT id FROM range(6)").coalesce(1), path, properties={"delta.enableDeletionVectors": "true"})
    before = DeltaTable(path).file_uris()
    write(spark.sql("SELECT 9L AS id"), path, "overwrite", replace_where="id >= 4")
    assert rows(path) == [(0,), (1,), (2,), (3,), (9,)]
    assert set(before) < set(DeltaTable(path).file_uris())


def keeps_rows_of_other_writers(spark: Any, path: Path) -> None:
    """Write rows back to their table that are of an older version of it: another writer's rows stay."""
    write(spark.range(3).toDF("id"), path)
    makers: list[Callable[[Any], Any]] = [
        lambda frame: frame,
        lambda frame: frame.where("id >= 0").select((frame.id + 0).alias("id")),
        lambda frame: spark.range(1).toDF("id").union(frame),
        lambda frame: frame.join(spark.range(9).toDF("id"), "id"),
        lambda frame: spark.range(9).toDF("id").where(spark.range(1).toDF("n").join(frame).exists()),
    ]
    for number, make in enumerate(makers):
        for found in (read(spark, path), SparkTable.forPath(spark, path).toDF()):
            made = make(found)
            write_deltalake(path, pa.table({"id": [100 + number]}), mode="append")
            before, version = rows(path), DeltaTable(path).version()
            with pytest.raises(ConcurrentAppendError, match="read them again"):
                write(made, path, "overwrite")
            assert (rows(path), DeltaTable(path).version()) == (before, version)
    write(read(spark, path).where("id < 2"), path, "overwrite")
    assert rows(path) == [(0,), (1,)]
    first = read(spark, path, version=0)
    write_deltalake(path, pa.table({"id": [7]}), mode="append")
    write(first, path, "overwrite")  # a version that was requested
    assert rows(path) == [(0,), (1,), (2,)]
    found = read(spark, path)
    DeltaTable(path).delete("id = 1")
    with pytest.raises(ConcurrentDeleteReadError):
        write(found, path, "append")
    write(found, f"{path}-copy")
    assert rows(Path(f"{path}-copy")) == [(0,), (1,), (2,)]


def runs_statements(spark: Any, path: Path) -> None:
    """Run what needs no classic session."""
    name, clone = f"delta.`{path}`", f"delta.`{path}-clone`"
    for text in (
        f"ALTER TABLE {name} ADD COLUMNS (more INT COMMENT 'text')",
        f"ALTER TABLE {name} SET TBLPROPERTIES (own.key = 'v')",
        f"COMMENT ON TABLE {name} IS 'words'",
        f"CREATE TABLE {clone} SHALLOW CLONE {name} VERSION AS OF 0",
        f"RESTORE TABLE {clone} TO VERSION AS OF 0",
        f"VACUUM {clone} DRY RUN",
    ):
        sql(spark, text)
    assert sql(spark, f"DESCRIBE HISTORY {name}").first().operation == "SET TBLPROPERTIES"
    assert sql(spark, f"DESCRIBE DETAIL {clone}").first().numFiles == 1
    assert rows(Path(f"{path}-clone")) == [(i,) for i in range(6)]


def rejects_the_others(spark: Any, path: Path) -> None:
    """Try what needs a classic session: one error, and the table stays as it was."""
    table, version = SparkTable.forPath(spark, path), DeltaTable(path).version()
    name = f"delta.`{path}`"
    calls: list[Callable[[], Any]] = [
        lambda: table.delete("id = 1"),
        lambda: table.update("id = 1", {"id": "2"}),
        lambda: table.merge(spark.range(1), "target.id = source.id"),
        table.optimize,
        lambda: SparkTable.forName(spark, "orders"),
        lambda: SparkTable.create(spark).tableName("orders").addColumn("id", "bigint").execute(),
    ]
    calls += [
        lambda text=text: sql(spark, text)
        for text in (
            f"DELETE FROM {name} WHERE id = 1",
            f"UPDATE {name} SET id = 2",
            f"MERGE INTO {name} AS t USING {name} AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
            f"INSERT INTO {name} (id) VALUES (7)",
            f"TRUNCATE TABLE {name}",
            f"OPTIMIZE {name}",
            f"REORG TABLE {name} APPLY (PURGE)",
            f"CREATE TABLE orders SHALLOW CLONE {name}",
            "DESCRIBE HISTORY orders",
        )
    ]
    for call in calls:
        with pytest.raises(UnsupportedOperationError, match=r"\A[^\n]+\Z"):
            call()
    assert DeltaTable(path).version() == version


def main(root: Path, tables: list[str]) -> None:
    try:
        spark = (
            SparkSession.builder.remote("local[2]")
            .config("spark.driver.memory", "1g")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
    except ImportError as e:
        print(f"NO SERVER {type(e).__name__}: {str(e)[:300]}")
        return
    try:
        assert "connect" in type(spark).__module__
        for uri in tables:
            reads(spark, uri)
        print("READ")
        reads_lance(spark)
        print("LANCE")
        writes(spark, root / "written")
        print("WRITTEN")
        keeps_rows_of_other_writers(spark, root / "stale")
        print("KEPT")
        replaces_by_vectors(spark, root / "vectors")
        runs_statements(spark, root / "vectors")
        print("RUN")
        rejects_the_others(spark, root / "vectors")
        print("REJECTED")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
