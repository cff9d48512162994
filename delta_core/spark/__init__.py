"""The face for PySpark: Delta tables as DataFrames, read and written by Spark's own Parquet reader and writer."""

from __future__ import annotations

from delta_core.spark.reading import read, read_changes
from delta_core.spark.sql import register, sql
from delta_core.spark.writing import write

__all__ = ["read", "read_changes", "register", "sql", "write"]
