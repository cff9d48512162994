"""What `test_write_peer` runs in a process of its own: one session writes with delta_core and with delta-spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from delta_core import DeltaTable
from delta_core.spark import read, read_changes, write

NAMES = (
    "SELECT id, concat('p/ ', id % 3) AS p, IF(id = 2, NULL, CAST(id AS DECIMAL(12, 2))) AS c, array(id, NULL) AS a, "
)
MADE = NAMES + "named_struct('x', id, 'y', timestamp_seconds(id)) AS o, CAST(id AS DOUBLE) AS d FROM range({0}, {1})"
PROPERTIES = {
    "plain": {},
    "mapped": {"delta.columnMapping.mode": "name", "delta.checkpointPolicy": "v2"},
    "ids": {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
    "fed": {
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableInCommitTimestamps": "true",
    },
}


def session() -> Any:
    import delta
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.log.level": "ERROR",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": "/tmp/delta-spark-warehouse",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return delta.configure_spark_with_delta_pip(builder).getOrCreate()


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.select("id", "p", "c", "a", "o", "d").collect()))


def check(spark: Any, path: str, numbers: list[int]) -> None:
    """Both see the same rows, and the rows that are to be there."""
    theirs, ours = spark.read.format("delta").load(path), read(spark, path)
    assert rows(theirs) == rows(ours), path
    assert sorted(r.id for r in ours.select("id").collect()) == numbers, path
    arrow = DeltaTable(path).snapshot().scan(["id"]).to_table().column("id").to_pylist()
    assert sorted(arrow) == numbers, path
    found = [r.id for r in theirs.where("d >= 3 AND c < 6 AND o.x > 2").select("id").collect()]
    assert sorted(found) == [n for n in numbers if 3 <= n < 6], path


def taken_turns(spark: Any, path: str, properties: dict[str, str]) -> None:
    write(spark.sql(MADE.format(0, 6)), path, partition_by="p", properties=properties)
    check(spark, path, list(range(6)))
    spark.sql(MADE.format(6, 8)).write.format("delta").mode("append").save(path)
    write(spark.sql(MADE.format(8, 10)), path, "append")
    check(spark, path, list(range(10)))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 8)")
    check(spark, path, [0, 2, 3, 4, 5, 6, 7, 9])
    write(spark.sql(MADE.format(20, 21)), path, "overwrite", replace_where="id >= 5")
    check(spark, path, [0, 2, 3, 4, 20])
    write(spark.sql(MADE.format(3, 4)), path, "overwrite", replace_using=["id"])
    check(spark, path, [0, 2, 3, 4, 20])
    spark.sql(f"UPDATE delta.`{path}` SET d = d WHERE id = 4")
    check(spark, path, [0, 2, 3, 4, 20])


def same_changes(spark: Any, path: str) -> None:
    theirs = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    columns = ("_commit_version", "_change_type", "id")
    assert sorted(theirs.select(*columns).collect()) == sorted(read_changes(spark, path, 0).select(*columns).collect())


def ruled(spark: Any, path: str) -> None:
    """A table with their rules is written by us, and theirs go on if ours ended."""
    spark.sql(f"""CREATE TABLE delta.`{path}` (n BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT NOT NULL,
        twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta""")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 100)")
    spark.range(5).write.format("delta").mode("append").save(path)
    write(spark.range(5, 15, 1, 3), path, "append")
    spark.range(15, 20).write.format("delta").mode("append").save(path)
    found = [tuple(r) for r in read(spark, path).collect()]
    assert len({n for n, _, _ in found}) == 20
    assert sorted((i, t) for _, i, t in found) == [(i, 2 * i) for i in range(20)]


def main(root: Path) -> None:
    try:
        spark = session()
        spark.sql("SELECT 1").collect()
    except Exception as e:  # noqa: BLE001 - whatever keeps the library's jars away is the reason for a skip
        print(f"NO SESSION {type(e).__name__}: {str(e)[:300]}")
        return
    try:
        for name, properties in PROPERTIES.items():
            print("table", name, flush=True)
            taken_turns(spark, str(root / name), properties)
        same_changes(spark, str(root / "fed"))
        ruled(spark, str(root / "ruled"))
        print("SAME")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
