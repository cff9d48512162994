"""The face for PySpark: Delta tables as DataFrames, read by Spark's own Parquet reader."""

from __future__ import annotations

from delta_core.spark.reading import read, read_changes

__all__ = ["read", "read_changes"]
