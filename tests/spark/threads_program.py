"""What `test_read` runs in a process of its own: threads that read at once, before any other read of their driver.

Prints how many reads succeeded, and the distinct errors of the others, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from delta_core.engines.spark.plan import private
from delta_core.spark import read

THREADS, READS = 4, 5


def main(uri: str) -> None:
    """Read a table in several threads."""
    builder = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    )
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()
    calls = itertools.count()
    load = private.class_loader

    def slow(session: Any) -> Any:
        time.sleep(0.2 * next(calls))  # each thread that comes in here leaves later than the one before
        return load(session)

    private.class_loader = slow
    errors: set[str] = set()

    def work(_: int) -> int:
        good = 0
        for _ in range(READS):
            try:
                good += read(spark, uri).columns == ["id"]
            except Exception as e:  # noqa: BLE001  (what it is, is for the test to say)
                errors.add(str(e)[:300])
        return good

    with ThreadPoolExecutor(THREADS) as pool:
        good = sum(pool.map(work, range(THREADS)))
    spark.stop()
    print(json.dumps({"good": good, "errors": sorted(errors)}))


if __name__ == "__main__":
    main(sys.argv[1])
