"""What `test_connect` runs in processes of their own: a Connect server with the format delta, and a client of it.

Without a port the program is the client, which starts the server: the same program with a port.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, functions as F

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import UnsupportedOperationError

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
}


def serve(folder: Path, port: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = ds.configure(builder.config("spark.connect.grpc.binding.port", port)).getOrCreate()
    print("UP", flush=True)
    sys.stdin.read()
    spark.stop()


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(r) for r in frame.collect())


def reads_and_writes(spark: Any, path: str) -> None:
    made = spark.range(4).withColumn("p", F.col("id") % 2)
    made.write.format("delta").partitionBy("p").save(path)
    frame = spark.read.format("delta").load(path)
    assert rows(frame) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    # each action reads the latest version, and rows of later commits are not lost
    spark.range(4, 5).withColumn("p", F.col("id") % 2).write.format("delta").mode("append").save(path)
    assert frame.count() == 5
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (5, 1)")
    frame.where("id > 0").write.format("delta").mode("overwrite").save(path)
    assert [r[0] for r in rows(frame)] == [1, 2, 3, 4, 5]
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 4
    assert DeltaTable(path).history(1)[0]["operation"] == "WRITE"
    stream = spark.readStream.format("delta").load(path).writeStream.format("delta")
    stream = stream.option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True)
    stream.start(f"{path}-copy").awaitTermination()
    assert rows(spark.read.format("delta").load(f"{path}-copy")) == rows(frame)


def runs_statements(spark: Any, path: str) -> None:
    spark.sql("CREATE TABLE named (id BIGINT NOT NULL, p BIGINT) USING delta")
    assert not spark.table("named").schema["id"].nullable
    spark.sql("INSERT INTO named VALUES (1, 1), (9, 9)")
    assert spark.sql("UPDATE named SET p = :value WHERE id = 9", {"value": 8}).first()[0] == 1
    merge = f"MERGE INTO named t USING delta.`{path}` s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    assert spark.sql(merge).first().num_inserted_rows == 4
    assert ds.sql(spark, "DELETE FROM named WHERE id = 2").first().num_affected_rows == 1
    assert rows(spark.table("named")) == [(1, 1), (3, 1), (4, 0), (5, 1), (9, 8)]
    spark.range(7, 8).selectExpr("id", "id AS p").write.insertInto("named")
    assert spark.sql("DESCRIBE HISTORY named").count() == 6
    assert spark.sql("OPTIMIZE named").count() == 1


def raises_errors_of_pyspark(spark: Any, path: str) -> None:
    for condition, call in {
        "DELTA_PATH_EXISTS": lambda: spark.range(1).write.format("delta").save(path),
        "PATH_NOT_FOUND": lambda: spark.read.format("delta").load(f"{path}-missing").collect(),
        "DELTA_METADATA_MISMATCH": lambda: spark.range(1).selectExpr("id AS q").write.insertInto("named"),
    }.items():
        with pytest.raises(AnalysisException) as caught:
            call()
        found = caught.value.getCondition()
        assert found is not None, caught.value
        assert found == condition or condition.endswith("MISMATCH"), caught.value
        assert "Traceback" not in str(caught.value).splitlines()[0]
    with pytest.raises(Exception, match=r"DELTA_NOT_NULL_CONSTRAINT_VIOLATED.*breaks the check 'NOT NULL id'"):
        spark.sql("INSERT INTO named VALUES (NULL, 1)")


def uses_functions(spark: Any, path: str) -> None:
    before = ds.read(spark, path).count()
    table = ds.DeltaTable.forName(spark, "named")
    frame = table.toDF()
    count = frame.count()
    spark.sql("INSERT INTO named VALUES (20, 1)")
    assert frame.count() == count + 1
    ds.write(spark.range(30, 31).selectExpr("id", "id AS p"), path, "append")
    assert ds.read(spark, path).count() == before + 1
    with pytest.raises(UnsupportedOperationError, match=r"Use spark\.sql, whose statements the server runs"):
        table.delete("id = 1")


def main(folder: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    command = [sys.executable, "-m", "tests.spark.server_program", str(folder), port]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "UP\n", (folder / "server.log").read_text()[-4000:]
        builder = SparkSession.builder.remote(f"sc://127.0.0.1:{port}")
        spark = ds.configure(builder).getOrCreate()
        path = str(folder / "t")
        for step in (reads_and_writes, runs_statements, raises_errors_of_pyspark, uses_functions):
            step(spark, path)
            print(step.__name__, flush=True)
        spark.stop()
    finally:
        server.communicate(timeout=60)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else main(Path(sys.argv[1]))
