"""What `test_connect` runs in a process of its own: reads and writes through a Connect server.

What it read and wrote is compared with the Arrow engine; each step that found the same reports it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_core import DeltaTable
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.snapshot import open_snapshot
from delta_core.spark import read, read_changes, sql, write
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
        writes(spark, root / "written")
        print("WRITTEN")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
