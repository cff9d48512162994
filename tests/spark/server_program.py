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
from pyspark.sql import SparkSession, Window, functions as F

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import InvalidArgumentError, UnsupportedExpressionError, UnsupportedOperationError

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
        table.optimize()


def changes_rows(spark: Any, path: str) -> None:
    place = f"{path}-changed `x"
    made = spark.sql("SELECT id, concat('a\\\\', id) AS s, named_struct('a', id) AS r, array(id) AS l FROM range(8)")
    made.write.format("delta").save(place)
    table = ds.DeltaTable.forPath(spark, place).alias("t")

    def found() -> list[tuple[Any, ...]]:
        return [(r.id, r.s, r.r.a, r.l) for r in table.toDF().orderBy("id").collect()]

    assert table.delete("id = 0 -- the first one").first().num_affected_rows == 1
    assert table.delete((F.col("t.id") == 1) | (F.col("s") == "a\\2")).first().num_affected_rows == 2
    assert table.update(F.col("r")["a"].isin(3, 4), {"r.a": F.col("id") * 10, "s": "'it''s'"}).first()[0] == 2
    value = F.when(F.col("id") > 6, F.lit("it's")).otherwise(F.col("s").substr(1, 1))
    assert table.update(F.expr("id > 5"), {"s": value, "l": F.transform("l", lambda x: x + 1)}).first()[0] == 2
    assert found() == [
        (3, "it's", 30, [3]),
        (4, "it's", 40, [4]),
        (5, "a\\5", 5, [5]),
        (6, "a", 6, [7]),
        (7, "it's", 7, [8]),
    ]
    assert DeltaTable(place).history(1)[0]["operation"] == "UPDATE"
    source = (
        spark.range(3, 10).selectExpr("id", "'new' AS s", "named_struct('a', id) AS r", "array(0L) AS l").alias("u")
    )
    merge = table.merge(source, F.col("t.id") == F.col("u.id")).whenMatchedDelete("u.id = 3")
    merge = merge.whenMatchedUpdate(F.col("u.id") < 5, {"s": F.col("u.s")})
    merge = merge.whenNotMatchedInsert("u.id = 8", {"id": "u.id", "s": F.lit("8")}).whenNotMatchedInsertAll()
    done = merge.execute().first()
    assert (done.num_updated_rows, done.num_deleted_rows, done.num_inserted_rows) == (1, 1, 2)
    ids = [(r.id, r.s) for r in table.toDF().orderBy("id").collect()]
    assert ids == [(4, "new"), (5, "a\\5"), (6, "a"), (7, "it's"), (8, "8"), (9, "new")]
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("delta_core_")]
    evolving = table.merge(spark.range(1).selectExpr("9L AS id", "1 AS more").alias("u"), "t.id = u.id")
    evolving.withSchemaEvolution().whenMatchedUpdate(set={"more": "u.more"}).execute()
    assert spark.read.format("delta").load(place).where("more = 1").count() == 1

    version = DeltaTable(place).version()
    twice = F.udf(lambda x: x, "long")
    for call in (
        lambda: table.delete(twice("id") == 1),
        lambda: table.update(set={"id": F.sum("id").over(Window.partitionBy("s"))}),
        lambda: table.delete(table.toDF()["id"] == 1),
    ):
        with pytest.raises(UnsupportedExpressionError, match=r"\A[^\n]*Pass the condition or value as SQL text\.\Z"):
            call()
    with pytest.raises(InvalidArgumentError, match="expected an expression"):
        table.delete("id = 1) OR (id = 2")
    with pytest.raises(AnalysisException):
        table.delete("missing = 1")
    assert DeltaTable(place).version() == version


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
        for step in (reads_and_writes, runs_statements, raises_errors_of_pyspark, uses_functions, changes_rows):
            step(spark, path)
            print(step.__name__, flush=True)
        spark.stop()
    finally:
        server.communicate(timeout=60)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else main(Path(sys.argv[1]))
