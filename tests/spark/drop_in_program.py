"""What `test_drop_in` runs in a process of its own: a session whose format delta is delta_core's."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import ConstraintViolationError, DeltaError, TableExistsError, UnsupportedOperationError
from tests.docs.blocks import ROOT, blocks, run_python


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    return ds.configure(builder).config("spark.sql.session.timeZone", "UTC").getOrCreate()


def rows(frame: Any) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


def check(spark: Any, folder: Path) -> None:
    path = str(folder / "plain")
    made = spark.range(10).selectExpr("id", "id % 2 AS p")
    made.write.format("delta").partitionBy("p").save(path)
    assert DeltaTable(path).metadata().partition_columns == ["p"]
    with pytest.raises(TableExistsError):
        made.write.format("delta").save(path)
    made.write.format("delta").mode("ignore").save(path)
    made.write.format("delta").mode("append").save(path)
    made.where("p = 1").write.format("delta").mode("overwrite").option("replaceWhere", "p = 1").save(path)
    assert rows(spark.read.format("delta").load(path)) == sorted([*range(0, 10, 2)] * 2 + [*range(1, 10, 2)])
    assert rows(spark.read.format("delta").option("versionAsOf", 0).load(path)) == [*range(10)]
    assert rows(
        spark.sql(f"SELECT a.id FROM delta.`{path}` a JOIN delta.`{path}` b ON a.id = b.id WHERE a.id = 3")
    ) == [3]
    plan = (
        spark.read.format("delta").load(path).where("id = 3 AND p = 1")._jdf.queryExecution().executedPlan().toString()
    )
    assert "Python" not in plan
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,3)]" in plan, plan

    # features: vectors, column mapping, constraints
    path = str(folder / "features")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    ds.write(spark.range(10).selectExpr("id", "id AS v"), path, properties=properties)
    DeltaTable(path).delete("id < 3")
    assert rows(spark.read.format("delta").load(path)) == [*range(3, 10)]
    DeltaTable(path).alter.add_constraint({"small": "id < 100"})
    with pytest.raises(ConstraintViolationError):
        spark.range(200, 201).selectExpr("id", "id AS v").write.format("delta").mode("append").save(path)
    more = spark.range(10, 11).selectExpr("id", "id AS v", "id AS w")
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    assert spark.read.format("delta").load(path).where("w = 10").count() == 1

    before = DeltaTable(path).version()
    spark.read.format("delta").load(path).createOrReplaceTempView("seen")
    for statement in (
        "INSERT INTO seen VALUES (1, 1, 1)",
        f"INSERT INTO delta.`{path}` VALUES (1, 1, 1)",
        f"SELECT * FROM delta.`{path}` VERSION AS OF 0",
        f"DELETE FROM delta.`{path}`",
        f"UPDATE delta.`{path}` SET v = 1",
        f"MERGE INTO delta.`{path}` t USING seen s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"CREATE TABLE t USING delta LOCATION '{path}'",
        "CREATE TABLE t USING delta AS SELECT 1 AS id",
    ):
        # views and times are rejected by Spark itself
        expected = (
            AnalysisException if "seen VALUES" in statement or "AS OF" in statement else UnsupportedOperationError
        )
        with pytest.raises(expected):
            spark.sql(statement)
    assert rows(spark.sql(f"SELECT id FROM delta.`{path}` WITH (versionAsOf = 0)")) == [*range(10)]
    with pytest.raises(UnsupportedOperationError, match="CreateTable"):
        made.write.format("delta").saveAsTable("t")
    with pytest.raises(UnsupportedOperationError, match="readchangefeed"):
        spark.read.format("delta").option("readChangeFeed", "true").load(path)
    with pytest.raises(DeltaError):
        spark.read.format("delta").load(str(folder / "none"))
    assert DeltaTable(path).version() == before


def check_options(spark: Any, folder: Path) -> None:
    path = str(folder / "options")
    spark.range(10).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p").save(path)
    odd, more = [1, 3, 5, 7, 9], spark.range(100, 101).selectExpr("id", "0L AS p").write.format("delta")
    dynamic = more.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    dynamic.option("userMetadata", "a note").save(path)
    assert rows(spark.read.format("delta").load(path)) == [*odd, 100]
    latest, first = DeltaTable(path).history()
    assert latest["userMetadata"] == "a note"
    again = spark.range(200, 201).selectExpr("id", "0L AS p").write.format("delta").mode("append")
    for _ in range(2):
        again.option("txnAppId", "loader").option("txnVersion", 7).save(path)
    assert rows(spark.read.format("delta").load(path)) == [*odd, 100, 200]
    when = datetime.fromtimestamp(first["timestamp"] / 1000, UTC).isoformat()
    assert rows(spark.read.format("delta").option("timestampAsOf", when).load(path)) == [*range(10)]
    changed = spark.range(3).selectExpr("id", "id AS q").write.format("delta").partitionBy("q")
    changed.mode("overwrite").option("overwriteSchema", "true").save(path)
    other = spark.newSession().read.format("delta").load(path)
    assert other.columns == ["id", "q"]
    assert rows(other) == [0, 1, 2]


if __name__ == "__main__":
    spark = session()
    check(spark, Path(sys.argv[1]))
    check_options(spark, Path(sys.argv[1]))
    assert ds.configure(type(spark).builder).getOrCreate() is spark
    for block in blocks(ROOT / "docs/spark-drop-in.md"):
        if block.language == "python":
            run_python(block._replace(code=block.code.replace("/data/", f"{sys.argv[1]}/")), {})
    assert DeltaTable(f"{sys.argv[1]}/drop-in").count() == 10
    print("same rows")
