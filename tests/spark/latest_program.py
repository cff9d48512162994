"""Queries of DataFrames whose table changed after they were made, in a session that has the format delta.

It prints the answers as JSON. With ``peer`` as its second argument the session is one of delta-spark: so the answers
that `test_latest_versions` expects were recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession, functions as F

import delta_core

CASES: dict[str, Callable[[Tables], Any]] = {}


def case(function: Callable[[Tables], Any]) -> Callable[[Tables], Any]:
    CASES[function.__name__] = function
    return function


class Tables:
    """Makes tables of the columns ``id`` and ``p``, and changes them."""

    def __init__(self, spark: Any, table: Any, folder: Path) -> None:
        self.spark, self.table, self.folder, self.count = spark, table, folder, 0

    def make(self, num_rows: int = 3, by: str = "", **properties: str) -> str:
        self.count += 1
        path = str(self.folder / f"t{self.count}")
        given = ", ".join(f"'delta.{n}' = '{v}'" for n, v in properties.items())
        self.spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, p BIGINT) USING delta {by} "
            + (f"TBLPROPERTIES ({given})" if given else "")
        )
        rows = self.spark.range(num_rows).withColumn("p", F.col("id") % 2).coalesce(1)
        rows.write.format("delta").mode("append").save(path)
        return path

    def load(self, path: str) -> Any:
        return self.spark.read.format("delta").load(path)

    def append(self, path: str, first: int = 100) -> None:
        """Append a row in this session."""
        rows = self.spark.range(first, first + 1).withColumn("p", F.col("id") % 2)
        rows.write.format("delta").mode("append").save(path)

    def append_outside(self, path: str) -> None:
        """Append a row without this session."""
        delta_core.write_deltalake(
            path, pa.table({"id": pa.array([200], pa.int64()), "p": pa.array([0], pa.int64())}), mode="append"
        )

    def sql(self, text: str, path: str = "") -> Any:
        return self.spark.sql(text.replace("{t}", f"delta.`{path}`"))


def ids(rows: Any) -> list[int]:
    return sorted(r[0] for r in rows.select("id").collect())


def failure(query: Callable[[], Any]) -> Any:
    """Return what a query returns, or that it fails."""
    try:
        return query()
    except Exception:  # noqa: BLE001 (of PySpark, of the driver, and of this library)
        return "error"


# --- rows that others append ---


@case
def every_action_sees_the_latest_version(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    before = rows.count()
    t.append(path)
    own = rows.count(), ids(rows), rows.where("id > 1").count(), len(rows.take(10))
    t.append_outside(path)
    return before, own, rows.count(), ids(rows), rows.agg(F.max("id")).collect()[0][0]


@case
def collected_rows_of_one_query_stay(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    before = len(rows.collect())
    t.append(path)
    return before, len(rows.collect()), rows.count(), len(rows.select("*").collect())


@case
def view_of_a_frame(t: Tables) -> Any:
    path = t.make()
    t.load(path).createOrReplaceTempView("of_frame")
    t.append_outside(path)
    return t.spark.table("of_frame").count(), t.sql("SELECT count(*) FROM of_frame").collect()[0][0]


@case
def view_in_sql(t: Tables) -> Any:
    path = t.make()
    t.sql("CREATE OR REPLACE TEMP VIEW in_sql AS SELECT id FROM {t} WHERE p = 0", path)
    rows = t.spark.table("in_sql")
    t.append_outside(path)
    return ids(rows), ids(t.spark.table("in_sql"))


@case
def names_of_the_catalog(t: Tables) -> Any:
    path = t.make()
    t.sql(f"CREATE TABLE named USING delta LOCATION '{path}'")
    frames = t.spark.table("named"), t.sql("SELECT * FROM named"), t.sql("SELECT * FROM {t}", path)
    t.append_outside(path)
    return [f.count() for f in frames]


@case
def frame_of_delta_table(t: Tables) -> Any:
    path = t.make()
    table = t.table.forPath(t.spark, path)
    rows, aliased = table.toDF(), table.alias("x").toDF()
    t.append_outside(path)
    return rows.count(), aliased.where("x.id > 1").count(), table.toDF().count()


@case
def requested_versions_stay(t: Tables) -> Any:
    path = t.make()
    t.sql(f"CREATE TABLE pinned USING delta LOCATION '{path}'")
    frames = [
        t.spark.read.format("delta").option("versionAsOf", 1).load(path),
        t.sql("SELECT * FROM {t} VERSION AS OF 1", path),
        t.sql("SELECT * FROM pinned VERSION AS OF 1"),
        t.spark.read.option("versionAsOf", 1).table("pinned"),
    ]
    t.append(path)
    t.append_outside(path)
    return [f.count() for f in frames]


@case
def one_query_reads_one_version(t: Tables) -> Any:
    path = t.make()
    rows, other = t.load(path), t.load(path)
    t.append(path)
    other.createOrReplaceTempView("other")
    joined = rows.alias("x").join(rows.alias("y"), F.col("x.id") == F.col("y.id"))
    most = t.sql("SELECT id FROM other WHERE id = (SELECT max(id) FROM {t})", path)
    common = t.sql("WITH c AS (SELECT * FROM other) SELECT a.id FROM c a JOIN c b ON a.id = b.id", path)
    return (
        rows.join(other, "id").count(), rows.union(other).count(), rows.union(rows).union(rows).count(), joined.count(),
        ids(most), ids(common), rows.join(other, "id", "left_anti").count(),
    )  # fmt: skip


@case
def partitions_and_filters(t: Tables) -> Any:
    path = t.make(by="PARTITIONED BY (p)")
    even, one = t.load(path).where("p = 0"), t.load(path).where("id = 200")
    t.append_outside(path)
    return ids(even), ids(one)


@case
def deletion_vectors_that_came_later(t: Tables) -> Any:
    path = t.make(10, enableDeletionVectors="true")
    rows = t.load(path)
    few = rows.where("id < 5")
    t.sql("DELETE FROM {t} WHERE id = 3", path)
    deleted = rows.count(), ids(few)
    t.sql("UPDATE {t} SET id = 50 WHERE id = 4", path)
    return deleted, ids(rows)


@case
def places_of_rows(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path).select("id", "_metadata.file_name", "_metadata.file_size")
    t.append_outside(path)
    found = rows.select("*").collect()
    return len(found), len({r[1] for r in found}), all(r[2] > 0 for r in found), len(t.load(path).inputFiles())


@case
def change_feed_without_an_end(t: Tables) -> Any:
    path = t.make(enableChangeDataFeed="true")
    feed = t.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    open_end, closed = feed.load(path), feed.option("endingVersion", 1).load(path)
    t.append(path)
    return open_end.count(), closed.count()


# --- rows that are written back ---


@case
def frame_that_overwrites_its_table(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    t.append_outside(path)
    rows.write.format("delta").mode("overwrite").save(path)
    history = t.table.forPath(t.spark, path).history(1).collect()[0]
    return ids(t.load(path)), history.version - history.readVersion, history.isBlindAppend


@case
def view_that_overwrites_its_table(t: Tables) -> Any:
    path = t.make()
    t.load(path).where("id > 0").createOrReplaceTempView("rest")
    t.append_outside(path)
    t.sql("INSERT OVERWRITE {t} SELECT * FROM rest", path)
    return ids(t.load(path))


@case
def frame_that_replaces_a_part_of_its_table(t: Tables) -> Any:
    path = t.make(by="PARTITIONED BY (p)")
    rows = t.load(path).where("p = 0")
    t.append_outside(path)
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "p = 0").save(path)
    return ids(t.load(path))


@case
def frame_that_is_appended_to_its_table(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    t.append_outside(path)
    rows.write.format("delta").mode("append").save(path)
    return ids(t.load(path)), t.table.forPath(t.spark, path).history(1).collect()[0].isBlindAppend


@case
def frame_that_is_merged_into_its_table(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path).where("id > 1")
    t.append_outside(path)
    t.table.forPath(t.spark, path).alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    return ids(t.load(path))


# --- cached rows ---


@case
def cached_frame_after_changes_of_this_session(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path).cache()
    found = [rows.count()]

    def changed(change: Callable[[], Any]) -> None:
        change()
        found.append(rows.count())

    changed(lambda: t.append(path))
    changed(lambda: t.sql("DELETE FROM {t} WHERE id = 0", path))
    changed(lambda: t.sql("INSERT INTO {t} VALUES (7, 7)", path))
    source = t.spark.range(60, 61).selectExpr("id", "id AS p").alias("s")
    merge = t.table.forPath(t.spark, path).alias("t").merge(source, "t.id = s.id")
    changed(lambda: merge.whenNotMatchedInsertAll().execute())
    changed(lambda: t.spark.range(2).selectExpr("id", "id AS p").write.format("delta").mode("overwrite").save(path))
    rows.unpersist()
    return found


@case
def cached_frame_after_changes_outside(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path).cache()
    before = rows.count()
    t.append_outside(path)
    found = before, rows.count(), t.load(path).count(), rows.where("id > 1").count()
    rows.unpersist()
    return found, rows.count()


@case
def cached_frame_of_a_version(t: Tables) -> Any:
    path = t.make()
    rows = t.spark.read.format("delta").option("versionAsOf", 1).load(path).cache()
    before = rows.count()
    t.append(path)
    found = before, rows.count(), t.load(path).count()
    rows.unpersist()
    return found


# --- tables whose definition changed ---


def after(t: Tables, *statements: str, **properties: str) -> Any:
    """Return the rows of a frame, of one of its columns, and of a view of it after statements."""
    path = t.make(**properties)
    rows = t.load(path)
    rows.createOrReplaceTempView("of_changed")
    some = rows.select("id").where("id >= 0")
    for statement in statements:
        t.sql(statement, path)
    view = t.sql("SELECT * FROM of_changed") if failure(lambda: t.sql("SELECT * FROM of_changed")) != "error" else None
    return (
        failure(lambda: sorted(map(list, rows.select("*").collect()))),
        failure(lambda: ids(some)),
        "error" if view is None else failure(lambda: [view.columns, sorted(map(list, view.collect()))]),
    )


@case
def column_that_was_added(t: Tables) -> Any:
    return after(t, "ALTER TABLE {t} ADD COLUMN (c INT)")


@case
def column_that_was_dropped(t: Tables) -> Any:
    return after(t, "ALTER TABLE {t} DROP COLUMN p", **{"columnMapping.mode": "name"})


@case
def column_that_was_renamed(t: Tables) -> Any:
    return after(t, "ALTER TABLE {t} RENAME COLUMN p TO q", **{"columnMapping.mode": "name"})


@case
def column_that_was_renamed_and_made_again(t: Tables) -> Any:
    again = ("ALTER TABLE {t} RENAME COLUMN p TO q", "ALTER TABLE {t} ADD COLUMN (p BIGINT)")
    return after(t, *again, **{"columnMapping.mode": "name"})


@case
def columns_in_another_order(t: Tables) -> Any:
    return after(t, "ALTER TABLE {t} ALTER COLUMN p FIRST")


@case
def column_with_a_comment(t: Tables) -> Any:
    return after(t, "ALTER TABLE {t} ALTER COLUMN p COMMENT 'x'")


@case
def table_replaced_with_other_columns(t: Tables) -> Any:
    return after(t, "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 'a' AS id, 1 AS q")


@case
def table_replaced_with_the_same_columns(t: Tables) -> Any:
    same = "CREATE OR REPLACE TABLE {t} USING delta AS SELECT CAST(7 AS BIGINT) AS id, CAST(8 AS BIGINT) AS p"
    return after(t, same)


@case
def type_that_was_widened(t: Tables) -> Any:
    t.count += 1
    path = str(t.folder / f"t{t.count}")
    t.sql("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')", path)
    t.sql("INSERT INTO {t} VALUES (1)", path)
    rows = t.load(path)
    t.sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", path)
    return failure(lambda: ids(rows)), ids(t.load(path))


@case
def table_that_was_deleted(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    shutil.rmtree(path)
    return failure(rows.count)


@case
def table_that_was_deleted_and_made_again(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    shutil.rmtree(path)
    t.spark.range(9).withColumn("p", F.col("id") % 2).write.format("delta").save(path)
    return failure(rows.count), failure(lambda: ids(rows))


def run(cases: Mapping[str, Callable[[Tables], Any]], folder: Path, is_peer: bool, wanted: Sequence[str]) -> None:
    """Print the answers of cases, or of those among them that are named."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if is_peer:
        from delta import DeltaTable, configure_spark_with_delta_pip  # type: ignore[import-not-found]

        builder = builder.config("spark.databricks.delta.snapshotPartitions", "2")
        builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        name = "spark.sql.catalog.spark_catalog"
        builder = builder.config(name, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        spark, table = configure_spark_with_delta_pip(builder).getOrCreate(), DeltaTable
    else:
        import delta_core.spark as ds

        spark, table = ds.configure(builder).getOrCreate(), ds.DeltaTable
    tables = Tables(spark, table, folder)
    for name, function in cases.items():
        if wanted and name not in wanted:
            continue
        try:
            found = function(tables)
        except Exception as e:  # noqa: BLE001 (the test shows it)
            found = f"{type(e).__name__}: {e}"[:600]
        print(json.dumps([name, found]), flush=True)
    spark.stop()


if __name__ == "__main__":
    run(CASES, Path(sys.argv[1]), sys.argv[2:3] == ["peer"], sys.argv[3:])
