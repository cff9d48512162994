"""Raw files to a bronze, a silver and a gold table, on Spark with delta_core alone: no Delta jar.

    python examples/pipeline/pipeline.py /tmp/lake

- **bronze** takes each batch of raw JSON files exactly once: the batch's number is the application's version.
- **silver** is clean: constraints, a generated day that partitions it, a number for every row, and row tracking. What
  breaks a rule goes into a table of its own, and never into silver.
- **gold** is an aggregate; only the days that a batch touched are computed again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.protocol.schema import Field, PrimitiveType, StructType

RAW = "order_id STRING, customer STRING, amount DECIMAL(12, 2), ordered_at TIMESTAMP"
VALID = "amount > 0 AND order_id IS NOT NULL AND ordered_at IS NOT NULL"


def create_silver(uri: str) -> None:
    """Create the table whose rules every writer keeps, whichever engine it is."""
    numbered = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    DeltaTable.create(
        uri,
        StructType(
            [
                Field("row", PrimitiveType("long"), metadata=numbered),
                Field("order_id", PrimitiveType("string"), nullable=False),
                Field("customer", PrimitiveType("string")),
                Field("amount", PrimitiveType("decimal(12,2)")),
                Field("ordered_at", PrimitiveType("timestamp"), nullable=False),
                Field(
                    "day", PrimitiveType("date"), metadata={"delta.generationExpression": "CAST(ordered_at AS DATE)"}
                ),
            ]
        ),
        partition_by=["day"],
        configuration={
            "delta.constraints.positive": "amount > 0",
            "delta.enableRowTracking": "true",
            "delta.enableChangeDataFeed": "true",
        },
    )


def to_bronze(spark: SparkSession, raw: str, bronze: str, batch: int) -> int | None:
    """Append a batch of raw files as they are; a batch that is there already is not written again."""
    rows = spark.read.schema(RAW).json(raw).withColumn("batch", F.lit(batch))
    return ds.write(rows, bronze, "append", txn=("bronze", batch), user_metadata=f"batch {batch}")


def to_silver(spark: SparkSession, bronze: str, silver: str, rejected: str, batch: int) -> DataFrame:
    """Append what is valid of a batch to silver, the rest to a table of its own; return the batch's days."""
    rows = ds.read(spark, bronze).where(F.col("batch") == batch).drop("batch")
    ds.write(rows.where(VALID), silver, "append", txn=("silver", batch))
    broken = rows.where(f"NOT coalesce({VALID}, false)").withColumn("batch", F.lit(batch))
    ds.write(broken, rejected, "append", txn=("rejected", batch))
    return rows.where(VALID).select(F.to_date("ordered_at").alias("day")).distinct()


def to_gold(spark: SparkSession, silver: str, gold: str, days: DataFrame) -> int | None:
    """Compute the days that a batch touched, and replace them in gold."""
    rows = ds.read(spark, silver).join(F.broadcast(days), "day")
    sums = rows.groupBy("day").agg(
        F.count(F.lit(1)).alias("orders"),
        F.sum("amount").cast("decimal(18,2)").alias("revenue"),
        F.countDistinct("customer").alias("customers"),
    )
    return ds.write(sums, gold, "overwrite", replace_using="day")


def run_batch(spark: SparkSession, lake: Path, batch: int) -> None:
    """Take one batch of raw files through all three tables. Running it again changes nothing."""
    bronze, silver, rejected, gold = (str(lake / n) for n in ("bronze", "silver", "rejected", "gold"))
    if not DeltaTable.is_deltatable(silver):
        create_silver(silver)
    to_bronze(spark, str(lake / "raw" / str(batch)), bronze, batch)
    days = to_silver(spark, bronze, silver, rejected, batch)
    to_gold(spark, silver, gold, days)


def make_raw(lake: Path, batch: int) -> None:
    """Write a batch of raw files, one bad order among them."""
    folder = lake / "raw" / str(batch)
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(2):
        lines = [
            f'{{"order_id": "{batch}-{part}-{n}", "customer": "c{n % 3}", "amount": {n + 0.5}, '
            f'"ordered_at": "2024-01-0{batch + n % 2}T10:00:00Z"}}'
            for n in range(5)
        ]
        lines += [f'{{"order_id": "{batch}-{part}-bad", "customer": "c0", "amount": -1, "ordered_at": null}}'] * (
            part == 0
        )
        (folder / f"{part}.json").write_text("\n".join(lines), encoding="utf-8")


def session() -> SparkSession:
    """Return a local session; rules over timestamps need UTC."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false")
    found: SparkSession = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    return found


def main(lake: Path) -> None:
    """Run two batches and show what came of them."""
    spark = session()
    for batch in (1, 2):
        make_raw(lake, batch)
        run_batch(spark, lake, batch)
    ds.read(spark, str(lake / "gold")).orderBy("day").show()
    ds.read(spark, str(lake / "silver"), metadata=["_row_id", "_row_commit_version"]).orderBy("row").show(5)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
