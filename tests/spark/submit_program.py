"""What `test_existing_sessions` runs by ``spark-submit``, which starts the driver's Java before the program."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import delta_core.spark as ds


def main(path: str) -> None:
    spark = ds.configure(SparkSession.builder).getOrCreate()
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    spark.sql("CREATE TABLE named USING delta AS SELECT 1 AS id")
    assert sorted(r.id for r in spark.read.format("delta").load(path).collect()) == [0, 2]
    assert spark.table("named").count() == 1
    spark.stop()
    print("same rows")


if __name__ == "__main__":
    main(sys.argv[1])
