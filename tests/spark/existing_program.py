"""What `test_existing_sessions` runs in processes of their own: sessions that exist before the program uses delta_core.

With the jar of an earlier run as its second argument, the session is started with the settings that clusters have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, functions as F


def session(folder: Path, **settings: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for name, value in {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(r) for r in frame.collect())


def uses_it_as_it_is(spark: Any, folder: Path) -> None:
    """Use a session without the format: functions work, and names that need a restart are rejected."""
    import delta_core.spark as ds
    from delta_core.errors import UnsupportedOperationError

    path = str(folder / "t")
    ds.write(spark.range(4).withColumn("p", F.col("id") % 2), path)
    table = ds.DeltaTable.forPath(spark, path)
    frame = table.toDF()
    assert table.delete("id = 0").first().num_affected_rows == 1
    is_two = F.udf(lambda found: found == 2, "boolean")
    assert table.update(is_two("id"), {"p": F.lit(9)}).first().num_affected_rows == 1
    source = spark.createDataFrame([(3, 7), (5, 5)], "id bigint, p bigint").alias("s")
    merger = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert merger.execute().first().num_affected_rows == 2
    assert rows(frame) == [(1, 1), (2, 9), (3, 7), (5, 5)]
    ds.DeltaTable.create(spark).tableName("named").addColumn("id", "BIGINT").execute()
    ds.sql(spark, "INSERT INTO named VALUES (1)")
    assert rows(ds.sql(spark, "SELECT * FROM named")) == [(1,)]
    assert rows(ds.sql(spark, f"SELECT id FROM delta.`{path}` VERSION AS OF 0 WHERE id = 0")) == [(0,)]
    query = ds.write_stream(
        ds.read_stream(spark, path), folder / "copy", checkpoint=folder / "checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert rows(ds.read(spark, folder / "copy")) == rows(frame)

    made = spark.range(1)
    calls: list[Callable[[], Any]] = [
        lambda: spark.read.format("delta").load(path),
        lambda: made.write.format("delta").save(f"{path}-new"),
        lambda: made.write.format("delta").saveAsTable("other"),
        lambda: spark.readStream.format("delta").load(path),
        lambda: spark.table("named").collect(),
        lambda: ds.configure(SparkSession.builder).getOrCreate(),
        *(
            lambda text=text: spark.sql(text)
            for text in (
                f"SELECT * FROM delta.`{path}`",
                f"DELETE FROM delta.`{path}` WHERE id = 1",
                "INSERT INTO named VALUES (2)",
                "CREATE TABLE other (id INT) USING delta",
                f"OPTIMIZE delta.`{path}`",
                f"VACUUM delta.`{path}`",
                f"DESCRIBE HISTORY delta.`{path}`",
                f"CREATE TABLE other SHALLOW CLONE delta.`{path}`",
            )
        ),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(AnalysisException) as caught:
            call()
        assert isinstance(caught.value, UnsupportedOperationError), (number, caught.value)
        text = caught.value.message
        assert "delta_core.spark.configure(SparkSession.builder).getOrCreate()" in text, (number, text)
        assert "spark.sql.extensions=delta.Extensions" in text
        assert "\n" not in text, (number, text)
    # errors about anything else stay Spark's own
    for text in ("SELECT * FROM missing", "SELEKT 1"):
        with pytest.raises(AnalysisException) as other:
            spark.sql(text)
        assert not isinstance(other.value, UnsupportedOperationError)
    assert rows(frame) == [(1, 1), (2, 9), (3, 7), (5, 5)]
    ds.save_jar(spark, folder / "delta.jar")


def uses_it_with_the_jar(spark: Any, folder: Path) -> None:
    """Use a session that was started with the jar and the settings of the format."""
    with pytest.raises(Exception, match=r"Call delta_core\.spark\.configure"):
        spark.read.format("delta").load(str(folder / "t"))
    import delta_core.spark as ds

    assert ds.configure(SparkSession.builder).getOrCreate() is spark
    path = str(folder / "t")
    assert spark.read.format("delta").load(path).count() == 4
    assert spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 5").first().num_affected_rows == 1
    spark.sql("CREATE TABLE in_catalog USING delta AS SELECT 1 AS id")
    spark.range(2, 3).selectExpr("CAST(id AS INT) AS id").write.insertInto("in_catalog")
    assert rows(spark.table("in_catalog")) == [(1,), (2,)]
    with pytest.raises(AnalysisException, match="missing"):
        spark.table("missing")


def main(folder: Path, jar: str) -> None:
    settings = {"spark.jars": jar, "spark.sql.extensions": "delta.Extensions"} if jar else {}
    if jar:
        settings |= {"spark.sql.catalog.spark_catalog": "delta.Catalog"}
    spark = session(folder, **settings)
    try:
        (uses_it_with_the_jar if jar else uses_it_as_it_is)(spark, folder)
        print("same rows")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
