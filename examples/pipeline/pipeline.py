"""Raw files to a bronze, a silver and a gold table, on Spark with delta_core alone: no Delta jar.

    python examples/pipeline/pipeline.py /tmp/lake

- **bronze** takes each batch of raw JSON files exactly once: the batch's number is the application's version.
- **silver** is clean: constraints, a generated day that partitions it, a number for every row, and row tracking. A
  stream from bronze merges new orders and corrected ones into it. What breaks a rule goes into a table of its own.
- **gold** is an aggregate. The days that are in a stream of silver's changes are computed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions as F

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.schema.fields import Field, PrimitiveType, StructType

RAW = "order_id STRING, customer STRING, amount DECIMAL(12, 2), ordered_at TIMESTAMP"
#: What a correction of an order may change.
VALUES = ("customer", "amount", "ordered_at")
VALID = "amount > 0 AND order_id IS NOT NULL AND ordered_at IS NOT NULL"


CORRECTED = '{{"order_id": "{}", "customer": "{}", "amount": {}, "ordered_at": "{}"}}'


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
            "delta.enableDeletionVectors": "true",
        },
    )


def to_bronze(spark: SparkSession, raw: str, bronze: str, batch: int) -> int | None:
    """Append a batch of raw files as they are; a batch that is there already is not written again."""
    rows = spark.read.schema(RAW).json(raw).withColumn("batch", F.lit(batch))
    return ds.write(rows, bronze, "append", txn=("bronze", batch), user_metadata=f"batch {batch}")


def to_silver(spark: SparkSession, bronze: str, silver: str, rejected: str, checkpoint: str) -> None:
    """Merge what bronze has since the last run into silver: new orders and corrected ones; the rest goes to a table."""

    def take(rows: DataFrame, number: int) -> None:
        newest = rows.where(VALID).groupBy("order_id").agg(F.max_by(F.struct(*VALUES), "batch").alias("o"))
        orders = newest.select("order_id", "o.*").alias("s")
        merge = ds.DeltaTable.forPath(spark, silver).alias("t").merge(orders, "t.order_id = s.order_id")
        is_same = " AND ".join(f"t.{c} <=> s.{c}" for c in VALUES)
        # a batch that is repeated changes nothing
        merge = merge.whenMatchedUpdate(f"NOT ({is_same})", {c: f"s.{c}" for c in VALUES})
        merge.whenNotMatchedInsert(values={c: f"s.{c}" for c in ("order_id", *VALUES)}).execute()
        broken = rows.where(f"NOT coalesce({VALID}, false)")
        ds.write(broken, rejected, "append", txn=("rejected", number))

    _run(ds.read_stream(spark, bronze), take, checkpoint)


def to_gold(spark: SparkSession, silver: str, gold: str, checkpoint: str) -> None:
    """Compute the days that changed in silver since the last run, and replace them in gold."""

    def take(changes: DataFrame, number: int) -> None:
        del number
        # an order that moved to another day is in the feed with both
        days = changes.select("day").distinct()
        sums = (
            ds.read(spark, silver)
            .groupBy("day")
            .agg(
                F.count(F.lit(1)).alias("orders"),
                F.sum("amount").cast("decimal(18,2)").alias("revenue"),
                F.countDistinct("customer").alias("customers"),
            )
        )
        # a day whose orders are all gone has 0 of them
        ds.write(days.join(sums, "day", "left").na.fill(0), gold, "overwrite", replace_using="day")

    _run(ds.read_changes_stream(spark, silver), take, checkpoint)


def _run(rows: DataFrame, take: Callable[[DataFrame, int], None], checkpoint: str) -> None:
    """Pass what is new to a function, batch by batch; the checkpoint keeps what it has had."""
    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start().awaitTermination()


def run_batch(spark: SparkSession, lake: Path, batch: int) -> None:
    """Take one batch of raw files through all three tables. Running it again changes nothing."""
    bronze, silver, rejected, gold = (str(lake / n) for n in ("bronze", "silver", "rejected", "gold"))
    if not DeltaTable.is_deltatable(silver):
        create_silver(silver)
    to_bronze(spark, str(lake / "raw" / str(batch)), bronze, batch)
    to_silver(spark, bronze, silver, rejected, str(lake / "checkpoints" / "silver"))
    to_gold(spark, silver, gold, str(lake / "checkpoints" / "gold"))


def make_raw(lake: Path, batch: int) -> None:
    """Write a batch of raw files, one bad order among them; the second corrects two orders of the first."""
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
        if batch == 2 and part == 0:
            lines.append(CORRECTED.format("1-0-0", "c0", 100.5, "2024-01-01T10:00:00Z"))
            lines.append(CORRECTED.format("1-1-0", "c9", 0.5, "2024-01-03T10:00:00Z"))
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
