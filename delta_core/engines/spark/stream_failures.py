"""Batches that can't be read: their rows fail when Spark reads them, not when it requests them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from delta_core.engines.spark.failures import failing_text
from delta_core.errors import DeltaError

__all__ = ["no_rows", "rows_or_failure"]


def rows_or_failure(spark: SparkSession, schema: StructType, read: Callable[[], DataFrame]) -> DataFrame:
    """Return the rows of a batch; if they can't be read, rows that raise the reason.

    Spark also requests the last recorded batch when a query starts again, and does not read it. That batch may be one
    that the query can't read, since it came before a change of the schema, or since its commits were cleaned up.
    """
    try:
        return read()
    except DeltaError as e:
        return _failing_rows(spark, schema, e)


def _failing_rows(spark: SparkSession, schema: StructType, error: DeltaError) -> DataFrame:
    """Return rows whose query fails with an error of this library."""
    failing: Any = F.raise_error(F.lit(failing_text(error)))
    return _nulls(spark.range(1).where(failing.isNull()), schema)


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a batch without rows."""
    return _nulls(spark.range(0), schema)


def _nulls(rows: DataFrame, schema: StructType) -> DataFrame:
    return rows.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))
