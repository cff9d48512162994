"""The face for PySpark: Delta tables as DataFrames, read by Spark's own Parquet reader."""

from __future__ import annotations

from delta_core.spark.reading import read, read_changes
from delta_core.spark.sql import register, sql

__all__ = ["read", "read_changes", "register", "sql"]
