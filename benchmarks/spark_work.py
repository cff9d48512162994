"""The work of each case on Spark, the same lines for every side; `Side` is what they differ in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.spark_cases import PARTITION
from benchmarks.tpch_queries import QUERIES, TABLES

__all__ = ["SIDES", "Work"]

#: The files of a stream's batch.
BATCH_FILES = 100
#: A condition of functions that the library leaves to Spark; it chooses the rows of `delete` and `update`.
_OF_SPARK = "get_json_object(to_json(struct(id % 100 AS k)), '$.k') = '7'"


@dataclass(frozen=True)
class Work:
    """What is timed, and what is requested of its result when the clock has stopped."""

    action: Callable[[], Any]
    answer: Callable[[Any], Any] = lambda result: result
    #: Done before the clock starts, each time.
    prepare: Callable[[], Any] = lambda: None


class Side:
    """Who reads and writes; this one is Spark's own Parquet source on the plain files."""

    settings: Mapping[str, str] = MappingProxyType({})
    #: Which folder of the rows that are stored in two formats it reads.
    folder = "parquet"

    def build(self, builder: Any) -> Any:
        """Return the session."""
        return builder.getOrCreate()

    def read(self, spark: Any, table: Path) -> Any:
        """Return the table's rows."""
        return spark.read.parquet(str(table))

    def write(self, rows: Any, table: Path) -> None:
        """Write rows as a new table."""
        rows.write.parquet(str(table))

    def snapshot(self, spark: Any, table: Path) -> int:
        """Return how many bytes a table's live files have."""
        raise NotImplementedError

    def table(self, spark: Any, table: Path) -> Any:
        """Return the table with the calls of delta-spark."""
        raise NotImplementedError

    def stream(self, spark: Any, source: Path, target: Path, checkpoint: Path) -> Any:
        """Start a query that appends all rows of a table's commits to another, 100 files a batch, and ends."""
        raise NotImplementedError

    @staticmethod
    def version() -> str:
        """Name the side."""
        import pyspark

        return f"pyspark {pyspark.__version__}"


class Ours(Side):
    """delta_core."""

    folder = "lance"

    def read(self, spark: Any, table: Path) -> Any:
        """Read by delta_core."""
        from delta_core.spark import read

        return read(spark, table)

    def write(self, rows: Any, table: Path) -> None:
        """Write by delta_core."""
        from delta_core.spark import write

        write(rows, table)

    def snapshot(self, spark: Any, table: Path) -> int:
        """Request the plan of all rows for its size, as Spark's planner does: the sum over the live files."""
        return int(str(self.read(spark, table)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    def table(self, spark: Any, table: Path) -> Any:
        """Open by delta_core."""
        from delta_core.spark import DeltaTable

        return DeltaTable.forPath(spark, str(table))

    def stream(self, spark: Any, source: Path, target: Path, checkpoint: Path) -> Any:
        """Stream by delta_core."""
        from delta_core.spark import read_stream, write_stream

        rows = read_stream(spark, str(source), start=0, max_files=BATCH_FILES)
        return write_stream(rows, str(target), checkpoint=str(checkpoint), trigger={"availableNow": True})

    @staticmethod
    def version() -> str:
        """Name the side."""
        from importlib.metadata import version

        return f"delta_core {version('delta-core-lake')}"


class Peer(Side):
    """Delta's own library."""

    settings = MappingProxyType(
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    )

    def build(self, builder: Any) -> Any:
        """Return a session with the library's jars, fetched when first used."""
        import delta

        return delta.configure_spark_with_delta_pip(builder).getOrCreate()

    def read(self, spark: Any, table: Path) -> Any:
        """Read by delta-spark."""
        return spark.read.format("delta").load(str(table))

    def write(self, rows: Any, table: Path) -> None:
        """Write by delta-spark."""
        rows.write.format("delta").save(str(table))

    def snapshot(self, spark: Any, table: Path) -> int:
        """Request the table's state."""
        return int(spark.sql(f"DESCRIBE DETAIL delta.`{table}`").select("sizeInBytes").collect()[0][0])

    def table(self, spark: Any, table: Path) -> Any:
        """Open by delta-spark."""
        from delta.tables import DeltaTable

        return DeltaTable.forPath(spark, str(table))

    def stream(self, spark: Any, source: Path, target: Path, checkpoint: Path) -> Any:
        """Stream by delta-spark."""
        reader = spark.readStream.format("delta").option("startingVersion", 0)
        rows = reader.option("maxFilesPerTrigger", BATCH_FILES).load(str(source))
        writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
        return writer.trigger(availableNow=True).start(str(target))

    @staticmethod
    def version() -> str:
        """Name the side."""
        from importlib.metadata import version

        return f"delta-spark {version('delta-spark')}"


SIDES: dict[str, Side] = {"ours": Ours(), "peer": Peer(), "plain": Side()}


# --- the works -----------------------------------------------------------------------------


def thin(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Count, and sum two columns."""
    del scratch
    from pyspark.sql import functions as F

    sums = (F.count(F.lit(1)), F.sum("id"), F.sum("quantity"))
    return Work(lambda: tuple(side.read(spark, table).agg(*sums).collect()[0]))


def wide(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Sum the upper half of a hash of all columns: whole hashes would overflow."""
    del scratch
    from pyspark.sql import functions as F

    def action() -> int:
        rows = side.read(spark, table)
        return int(rows.agg(F.sum(F.shiftright(F.xxhash64(*rows.columns), 32))).collect()[0][0])

    return Work(action)


def lance_thin(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Do the same on a Lance dataset."""
    return thin(side, spark, table / side.folder, scratch)


def lance_wide(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Hash all columns of a Lance dataset."""
    return wide(side, spark, table / side.folder, scratch)


def lance_point(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Find one row of a Lance dataset without an index."""
    del scratch
    return Work(lambda: tuple(side.read(spark, table / side.folder).where("id = 12345").select("name").collect()[0]))


def point(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Find one row by statistics; the answer holds how many files were read, by Spark's metric."""
    del scratch

    def frame() -> Any:
        return side.read(spark, table).where("id = 1234").select("id", "amount")

    return Work(
        lambda: [tuple(r) for r in frame().collect()], lambda rows: [*rows[0], len(rows), _files_read(spark, frame())]
    )


def _files_read(spark: Any, frame: Any) -> int:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    executed = frame._jdf.queryExecution().executedPlan()
    executed.execute().count()
    spark.conf.unset("spark.sql.adaptive.enabled")
    leaves = executed.collectLeaves()
    return sum(leaves.apply(i).metrics().apply("numFiles").value() for i in range(leaves.size()))


def input_files(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """List all files."""
    del scratch
    return Work(lambda: side.read(spark, table).inputFiles(), len)


def partition_files(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """List one partition's files."""
    del scratch
    return Work(lambda: side.read(spark, table).where(PARTITION).inputFiles(), len)


def count_partition(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Count one partition's rows, and sum a column so that statistics can't answer."""
    del scratch
    from pyspark.sql import functions as F

    sums = (F.count(F.lit(1)), F.sum("id"))
    return Work(lambda: tuple(side.read(spark, table).where(PARTITION).agg(*sums).collect()[0]))


def write(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Write rows that Spark reads from Parquet, as a new table; the answer is how many lie there."""
    target = scratch / "written"

    def action() -> None:
        side.write(spark.read.parquet(*sorted(map(str, table.glob("*.parquet")))), target)

    def answer(result: None) -> int:
        del result
        count = side.read(spark, target).count()
        shutil.rmtree(target)
        return int(count)

    return Work(action, answer)


def snapshot(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Sum the bytes of the live files."""
    del scratch
    return Work(lambda: side.snapshot(spark, table))


def _changing(side: Side, spark: Any, table: Path, scratch: Path, change: Callable[[Any], Any]) -> Work:
    """Change a copy of the table, made of hard links; the answer is the count of the rows, and sums over them."""
    from pyspark.sql import functions as F

    target = scratch / "changed"

    def prepare() -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(table, target, copy_function=os.link)

    def answer(result: Any) -> tuple[Any, ...]:
        del result
        sums = (F.count(F.lit(1)), F.sum("id"), F.round(F.sum(F.col("amount").cast("decimal(20,4)")), 4))
        return tuple(side.read(spark, target).agg(*sums).collect()[0])

    return Work(lambda: change(side.table(spark, target)), answer, prepare)


def delete(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Delete 1 % of the rows, some in every file."""
    return _changing(side, spark, table, scratch, lambda t: t.delete("id % 100 = 7"))


def update(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Update 1 % of the rows, some in every file."""
    return _changing(
        side, spark, table, scratch, lambda t: t.update(condition="id % 100 = 7", set={"amount": "amount + 1"})
    )


def delete_functions(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Delete 1 % of the rows by a condition that only Spark evaluates."""
    return _changing(side, spark, table, scratch, lambda t: t.delete(_OF_SPARK))


def update_functions(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Change a column of 1 % of the rows, with a condition and a value that only Spark evaluates."""
    value = "amount + element_at(split('1,2', ','), 1)"
    return _changing(side, spark, table, scratch, lambda t: t.update(condition=_OF_SPARK, set={"amount": value}))


def merge(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Merge a row for each 100 rows of the table, and a tenth as many new ones."""
    count = side.read(spark, table).count()

    def change(target: Any) -> None:
        old = spark.range(0, count, 100).selectExpr("id", "2.5D AS amount", "7 AS quantity")
        new = spark.range(count, count + count // 1000).selectExpr("id", "3.5D AS amount", "8 AS quantity")
        merger = target.alias("t").merge(old.union(new).alias("s"), "t.id = s.id")
        merger = merger.whenMatchedUpdate(set={"amount": "s.amount", "quantity": "s.quantity"})
        values = {"id": "s.id", "amount": "s.amount", "quantity": "s.quantity"}
        merger.whenNotMatchedInsert(values=values).execute()

    return _changing(side, spark, table, scratch, change)


def optimize(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Join small files."""
    return _changing(side, spark, table, scratch, lambda t: t.optimize().executeCompaction())


def z_order(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Order all rows along a curve through two columns."""
    return _changing(side, spark, table, scratch, lambda t: t.optimize().executeZOrderBy("quantity", "amount"))


def stream(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
    """Stream all commits of a table into a new one; the answer is the count of its rows, and a sum."""
    from pyspark.sql import functions as F

    target, checkpoint = scratch / "streamed", scratch / "checkpoint"

    def prepare() -> None:
        for folder in (target, checkpoint):
            shutil.rmtree(folder, ignore_errors=True)

    def answer(result: Any) -> tuple[Any, ...]:
        del result
        return tuple(side.read(spark, target).agg(F.count(F.lit(1)), F.sum("id")).collect()[0])

    return Work(lambda: side.stream(spark, table, target, checkpoint).awaitTermination(), answer, prepare)


def _tpch(query: str) -> Callable[[Side, Any, Path, Path], Work]:
    def work(side: Side, spark: Any, table: Path, scratch: Path) -> Work:
        del scratch
        used = [t for t in TABLES if t in QUERIES[query]]

        def action() -> list[tuple[Any, ...]]:
            for name in used:
                side.read(spark, table / name).createOrReplaceTempView(name)
            return [tuple(row) for row in spark.sql(QUERIES[query]).collect()]

        return Work(action, lambda rows: (len(rows), rows[:2]))

    return work


globals().update({f"tpch_{query}": _tpch(query) for query in QUERIES})
