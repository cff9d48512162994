"""What `test_stream_killed` runs, in a process that is killed and in its own: a stream from one table to another."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import delta_core.spark as ds
from delta_core.errors import StreamRestartError


def copy(spark: Any, folder: Path, kind: str, trigger: dict[str, Any]) -> None:
    """Copy the rows or changes of a table, a file at a time, over every change of its schema."""
    checkpoint = folder / "checkpoint"
    read = ds.read_stream if kind == "rows" else ds.read_changes_stream
    while True:
        rows = read(
            spark,
            folder / "source",
            start=0,
            max_files=1,
            schema_tracking_location=checkpoint / "schemas",
            allow_source_column_rename="always",
        )
        query = ds.write_stream(rows, folder / "target", checkpoint=checkpoint, trigger=trigger, schema_mode="merge")
        try:
            query.awaitTermination()
            return
        except StreamRestartError:
            continue


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    copy(builder.getOrCreate(), Path(sys.argv[1]), sys.argv[2], {"processingTime": "0 seconds"})
