"""Results of statements as DataFrames that no job computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, types as T

from delta_core.engines.spark.plan import private
from delta_core.kernel.write.layout import arrow_type
from delta_core.schema.types import KNOWN_TYPES, StructType

__all__ = ["result_frame"]


def result_frame(spark: Any, rows: Sequence[Mapping[str, Any]], schema: T.StructType) -> DataFrame:
    """Return rows as a constant of the plan.

    Spark makes an RDD of a list of Python's objects: each action then runs a stage that unpickles them.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    rows : sequence of Mapping
        The values by the names of the columns; structs are mappings too.
    schema : StructType
        The columns.
    """
    if not rows and private.is_available(spark):
        return private.empty_frame(spark, schema)
    fields = StructType.from_json(schema.json()).members
    arrow = pa.schema([pa.field(f.name, arrow_type(f.type, KNOWN_TYPES)) for f in fields])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=arrow), schema)
