"""Reads a table in ways that need Python workers, if nobody reported Spark which interpreter those are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

import delta_core.spark as ds


def main(arguments: Sequence[str]) -> None:
    """Print the rows' sum by ``format``, and by vectors that executors decode."""
    uri, warehouse = arguments
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", warehouse).getOrCreate()
    ds.register(spark)
    by_format = spark.read.format("delta_core").load(uri)
    by_workers = ds.read(spark, uri, route="join", vector_bytes=0)
    print(*(frame.selectExpr("sum(id)").first()[0] for frame in (by_format, by_workers)))
    print(spark.sparkContext.pythonExec)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
