"""One side of one case in a JVM of its own: ``python -m benchmarks.spark_child SIDE WORK TABLE LOOPS CORES MEMORY``.

Runs under the peer's interpreter too: it imports nothing but the standard library, PySpark and the side.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import spark_work


def main() -> None:
    """Run the work once cold and LOOPS times warm; print seconds and the answer as JSON."""
    name, work_name, table, loops, cores, memory = sys.argv[1:]
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    side = spark_work.SIDES[name]
    with tempfile.TemporaryDirectory(dir=Path(table).parent, prefix="scratch-") as scratch:
        settings = {
            "spark.driver.memory": memory,
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.log.level": "ERROR",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            **side.settings,
        }
        builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = side.build(builder)
        spark.range(1).count()
        work = getattr(spark_work, work_name)(side, spark, Path(table), Path(scratch))
        seconds = []
        answer = None
        for _ in range(1 + int(loops)):
            work.prepare()
            start = time.perf_counter()
            result = work.action()
            seconds.append(time.perf_counter() - start)
            answer = work.answer(result)
        spark.stop()
    print(json.dumps({"cold": seconds[0], "warm": seconds[1:], "answer": str(answer), "version": side.version()}))


if __name__ == "__main__":
    main()
