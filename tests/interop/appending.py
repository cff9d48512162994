"""What `test_concurrent_commits` runs in processes of their own: one writer that appends, a row a commit.

``python -m tests.interop.appending arrow|spark URI FIRST COUNT`` specifies ``ready``, waits for a line, and prints the
version of each commit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake


def by_arrow(uri: str) -> Callable[[int], int | None]:
    """Return what appends one id by the Arrow engine and reports the version."""
    table = DeltaTable(uri)

    def append(number: int) -> int:
        write_deltalake(table, pa.table({"id": [number]}), mode="append")
        return table.version()

    return append


def by_spark(uri: str) -> Callable[[int], int | None]:
    """Return the same for Spark, in a session that has no jar of Delta's."""
    from pyspark.sql import SparkSession

    from delta_core.spark import write

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    assert "io.delta" not in str(spark.conf.get("spark.sql.extensions", ""))
    spark.range(1).count()
    return lambda number: write(spark.range(number, number + 1, 1, 1), uri, "append")


def main(kind: str, uri: str, first: int, count: int) -> None:
    append = {"arrow": by_arrow, "spark": by_spark}[kind](uri)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(first, first + count):
        print(append(number), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
