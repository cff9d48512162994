"""One local Spark session for all tests here."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install delta-core-lake[spark]")


#: Tables whose files mark columns as variants; so do all of our own corpus with variants.
_MARKED_VARIANTS = (
    "delta/spark__variant-stats-state-reconstruction",
    "delta/spark__variant-stats-with-struct-no-checkpoint",
)


def skip_variants_that_this_spark_rejects(name: str) -> None:
    """Skip a test that reads a table of the corpora whose files the Parquet library of this Spark rejects."""
    marked = name in _MARKED_VARIANTS or name.startswith("spark/variants")
    if marked and importlib.metadata.version("pyspark").startswith("4.0."):
        pytest.skip("the Parquet library of Spark 4.0 rejects files with columns marked as variants")


@pytest.fixture(scope="package")
def spark(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    del java
    from pyspark.sql import SparkSession

    # workers run what PATH has unless specified
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local[2]").appName("delta_core tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def plain(table: pa.Table) -> pa.Table:
    """Return a table in the types and nullability that both engines share."""
    return table.cast(pa.schema([pa.field(f.name, _plain(f.type)) for f in table.schema]))


def _plain(t: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(t):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in t])
    if pa.types.is_list(t):
        return pa.list_(pa.field("element", _plain(t.value_type)))
    if pa.types.is_map(t):
        return pa.map_(pa.field("key", _plain(t.key_type), False), pa.field("value", _plain(t.item_type)))
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(t) and t.tz else t
