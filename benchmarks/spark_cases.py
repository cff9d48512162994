"""What is measured on Spark: each case, its table, what it is queried to reach."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.questions import DAY, PARTITION
from benchmarks.tpch_queries import QUERIES

__all__ = ["DAY", "PARTITION", "SPARK_CASES", "SparkCase"]


@dataclass(frozen=True)
class SparkCase:
    """One row of the report.

    Parameters
    ----------
    name : str
        The function of `benchmarks.spark_work` that does the work.
    table : str
        Key of `benchmarks.spark_tables.SPARK_GENERATORS` or `benchmarks.tables.GENERATORS`.
    warm, cold : float or None
        How many times faster than delta-spark: the median of the runs but the first in a JVM, and the first.
    plain : bool
        Whether Spark's own Parquet source does the same work on the plain files.
    plain_most : float or None
        At most how many times as long as that it may take, warm.
    peer : bool
        Whether delta-spark can do the work.
    """

    key: str
    title: str
    name: str
    table: str
    warm: float | None = None
    cold: float | None = None
    plain: bool = False
    plain_most: float | None = None
    peer: bool = True


SPARK_CASES = (
    SparkCase("thin", "thin scan: count, sum of two columns", "thin", "spark-rows", 2, plain=True),
    SparkCase("wide", "wide scan: hash of all columns", "wide", "spark-rows", 1.4, plain=True),
    SparkCase("lance-thin", "Lance, thin", "lance_thin", "spark-lance", plain=True, peer=False),
    SparkCase("lance-wide", "Lance, wide", "lance_wide", "spark-lance", plain=True, peer=False),
    SparkCase("lance-point", "Lance, one row by its id", "lance_point", "spark-lance", plain=True, peer=False),
    SparkCase("thin-1", "thin, 1 % deleted by vectors", "thin", "spark-rows-1", 3),
    SparkCase("wide-1", "wide, 1 % deleted by vectors", "wide", "spark-rows-1", 1.7),
    SparkCase("thin-10", "thin, 10 % deleted by vectors", "thin", "spark-rows-10", 2.5),
    SparkCase("wide-10", "wide, 10 % deleted by vectors", "wide", "spark-rows-10", 1.5),
    SparkCase("point", "where id = x, 10,000 files", "point", "spark-small-files", 1),
    SparkCase("input-files", "inputFiles() of 10,000 files", "input_files", "spark-small-files", 5),
    SparkCase("partition", "one partition's files of 1,000,000", "partition_files", "million-json", 2, 10),
    SparkCase(
        "count-partition", "plan 100,000 files, count one partition", "count_partition", "hundred-thousand", 2, 2
    ),
    SparkCase("write", "write 10M rows with statistics", "write", "spark-rows", 1.2, plain=True),
    SparkCase("delete", "delete 1 % of 10M rows", "delete", "spark-rows"),
    SparkCase("delete-vectors", "delete 1 % of 10M rows, with vectors", "delete", "spark-rows-vectors", 2),
    SparkCase("update", "update 1 % of 10M rows", "update", "spark-rows"),
    SparkCase("update-vectors", "update 1 % of 10M rows, with vectors", "update", "spark-rows-vectors", 2),
    SparkCase("delete-functions", "delete 1 % by functions that only Spark has", "delete_functions", "spark-rows", 1),
    SparkCase(
        "delete-functions-vectors",
        "delete 1 % by functions that only Spark has, with vectors",
        "delete_functions",
        "spark-rows-vectors",
        1,
    ),
    SparkCase("update-functions", "update 1 % by functions that only Spark has", "update_functions", "spark-rows", 1),
    SparkCase("merge", "merge 110,000 rows into 10M", "merge", "spark-rows", 2),
    SparkCase("merge-vectors", "merge 110,000 rows into 10M, with vectors", "merge", "spark-rows-vectors", 2),
    SparkCase("optimize", "optimize 10,000 small files", "optimize", "spark-small-files", 1.5),
    SparkCase("z-order", "Z-order 10M rows by two columns", "z_order", "spark-rows"),
    SparkCase("stream", "stream 1,000 commits into a table, 100 files a batch", "stream", "spark-commits", 1),
    SparkCase("snapshot", "4,000,000 adds: the snapshot's bytes", "snapshot", "four-million", cold=2),
    *(SparkCase(f"tpch-{q}", f"TPC-H-like {q}", f"tpch_{q}", "tpch", plain=True, plain_most=1.1) for q in QUERIES),
)
