"""The Spark engine: a scan's plan on Spark's own Parquet reader, no Python in the path of rows."""

from __future__ import annotations

from delta_core.engines.spark.frame import Route, frame, is_indexed

__all__ = ["Route", "frame", "is_indexed"]
