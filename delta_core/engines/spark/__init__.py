"""The public API for PySpark: Delta tables as DataFrames, read and written by Spark's own Parquet reader and writer."""

from __future__ import annotations

from delta_core.errors import MissingDependencyError

try:
    from delta_core.engines.spark.builder import IdentityGenerator
    from delta_core.engines.spark.drop_in import configure, save_jar
    from delta_core.engines.spark.read import read, read_changes
    from delta_core.engines.spark.save import write
    from delta_core.engines.spark.sql import register, sql
    from delta_core.engines.spark.stream_changes import read_changes_stream
    from delta_core.engines.spark.stream_read import read_stream
    from delta_core.engines.spark.stream_write import write_stream
    from delta_core.engines.spark.table import SparkTable as DeltaTable
except ModuleNotFoundError as e:
    if (e.name or "").partition(".")[0] != "pyspark":
        raise
    raise MissingDependencyError(
        "delta_core.spark needs PySpark, which is not installed. Run: pip install 'delta-core-lake[spark]'",
        package="pyspark",
    ) from e

__all__ = [
    "DeltaTable",
    "IdentityGenerator",
    "configure",
    "read",
    "read_changes",
    "read_changes_stream",
    "read_stream",
    "register",
    "save_jar",
    "sql",
    "write",
    "write_stream",
]
