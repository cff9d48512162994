"""The tables that delta-spark writes."""

from __future__ import annotations

from tests.corpus import spark_features, spark_logs, spark_rows, spark_types

__all__ = ["TABLES"]

TABLES = [*spark_types.TABLES, *spark_rows.TABLES, *spark_features.TABLES, *spark_logs.TABLES]
