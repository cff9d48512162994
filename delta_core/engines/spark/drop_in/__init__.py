"""The format "delta" of a Spark session, and its tables in the session's catalog.

Spark's readers, writers, streams and statements use them by calls of `read`, `write` and `SparkTable`. The
Java classes of this folder put plans and commands of this process in place of Spark's own.
"""

from __future__ import annotations

from delta_core.engines.spark.drop_in.session import configure, save_jar

__all__ = ["configure", "save_jar"]
