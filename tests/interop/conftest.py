"""A session with Delta's own Spark library, and tables that it makes."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from delta_core.kernel.snapshot import Snapshot, open_snapshot


@pytest.fixture(scope="module")
def spark(java: Path) -> Iterator[Any]:
    """A local session with Delta's extension, or a skip that specifies what is missing."""
    del java
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    delta = pytest.importorskip("delta", reason="delta-spark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": "/nowhere",
        "spark.log.level": "ERROR",
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = delta.configure_spark_with_delta_pip(builder).getOrCreate()
        session.sql("SELECT 1").collect()
    except Exception as e:  # noqa: BLE001 (whatever kept the jars away)
        pytest.skip(f"Spark with Delta's jars can't be started: {str(e).splitlines()[0][:200]}")
    yield session
    session.stop()


class Made:
    """A table that Spark makes by SQL, ``{t}`` being for it."""

    def __init__(self, spark: Any, path: Path) -> None:
        self.spark = spark
        self.path = path
        self.name = f"delta.`{path}`"

    def run(self, *statements: str) -> Made:
        for statement in statements:
            self.spark.sql(statement.replace("{t}", self.name))
        return self

    def create(self, columns: str, *properties: str, tail: str = "") -> Made:
        listed = f" TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        return self.run(f"CREATE TABLE {{t}} ({columns}) USING delta {tail}{listed}")

    def rows(self, query: str = "SELECT * FROM {t}", **options: Any) -> list[str]:
        if options:
            return plain(self.spark.read.format("delta").options(**options).load(str(self.path)).toArrow())
        return plain(self.spark.sql(query.replace("{t}", self.name)).toArrow())

    def latest(self) -> Snapshot:
        return open_snapshot(str(self.path))


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Made:
    return Made(spark, tmp_path / "t")


def plain(table: Any, names: list[str] | None = None) -> list[str]:
    """Return rows as sorted texts, whatever Arrow types carry them."""

    def text(value: Any) -> Any:
        if isinstance(value, float) and math.isnan(value):
            return "NaN"
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        if isinstance(value, dict):
            return {k: text(v) for k, v in value.items()}
        if isinstance(value, list):
            return [text(v) for v in value]
        return value

    chosen = table.select(names) if names is not None else table
    return sorted(repr({k: text(v) for k, v in row.items()}) for row in chosen.to_pylist())
