"""What `test_connect` runs in a process of its own: reads through a Connect server and compares with the Arrow engine."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_core import DeltaTable
from delta_core.snapshot import open_snapshot
from delta_core.spark import read, read_changes, sql
from delta_core.testing.comparison import assert_same_rows
from tests.spark.conftest import plain


def same(frame: Any, expected: pa.Table) -> None:
    assert_same_rows(plain(frame.toArrow()), plain(expected))


def main(tables: list[str]) -> None:
    try:
        spark = (
            SparkSession.builder.remote("local[2]").config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2").getOrCreate()
        )  # fmt: skip
    except ImportError as e:
        print(f"NO SERVER {type(e).__name__}: {str(e)[:300]}")
        return
    try:
        assert "connect" in type(spark).__module__
        for uri in tables:
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
                same(read_changes(spark, uri, 1), DeltaTable(uri).verb("changes")(1).to_table())
        print("SAME")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
