"""What `test_write_peer` runs in a process of its own: writes through a Connect server."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from delta_core import DeltaTable
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.spark import write


def rows(path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(r.values()) for r in DeltaTable(str(path)).snapshot().scan().to_table().to_pylist())


def main(root: Path) -> None:
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
        made = spark.sql("SELECT id, concat('a/b ', id % 2) AS p FROM range(6)")
        properties = {"delta.columnMapping.mode": "name", "delta.constraints.small": "id < 100"}
        write(made, root / "t", partition_by="p", properties=properties)
        write(spark.sql("SELECT 9 AS id, 'a/b 1' AS p"), root / "t", "overwrite", replace_where="id >= 4")
        assert rows(root / "t") == [(0, "a/b 0"), (1, "a/b 1"), (2, "a/b 0"), (3, "a/b 1"), (9, "a/b 1")]
        write(spark.sql("SELECT 9L AS id, 'x' AS p"), root / "t", "overwrite", replace_using="id")
        assert rows(root / "t")[-1] == (9, "x")
        before = rows(root / "t")
        for query, error in [
            ("SELECT 100L AS id, 'x' AS p", ConstraintViolationError), ("SELECT 1.5D AS id, 'x' AS p", SchemaMismatchError),
        ]:  # fmt: skip
            try:
                write(spark.sql(query), root / "t", "append")
            except error:
                assert rows(root / "t") == before
            else:
                raise AssertionError(query)
        print("SAME")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
