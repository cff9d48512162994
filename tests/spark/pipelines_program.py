"""Pipelines as users of delta-spark write them, in a session that has the format delta.

It prints the answers as JSON. With ``peer`` as its second argument the session is one of delta-spark: so the answers
that `test_pipelines` expects were recorded. Only the set-up of the session differs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Row, Window, functions as F

from tests.spark.latest_program import Tables, run

CASES: dict[str, Callable[[Tables], Any]] = {}


def case(function: Callable[[Tables], Any]) -> Callable[[Tables], Any]:
    CASES[function.__name__] = function
    return function


def found(frame: Any) -> list[list[Any]]:
    return sorted(([str(v) if v is not None else None for v in r] for r in frame.collect()), key=repr)


def place(t: Tables, name: str) -> str:
    t.count += 1
    return str(t.folder / f"{name}{t.count}")


def operations(table: Any) -> list[str]:
    return [r.operation for r in table.history().orderBy("version").collect()]


@case
def quickstart(t: Tables) -> Any:
    path = place(t, "numbers")
    t.spark.range(0, 5).write.format("delta").save(path)
    t.spark.range(5, 10).write.format("delta").mode("overwrite").save(path)
    table = t.table.forPath(t.spark, path)
    table.update(condition=F.expr("id % 2 == 0"), set={"id": F.expr("id + 100")})
    table.delete(condition=F.expr("id % 2 == 0"))
    new = t.spark.range(0, 20)
    merge = table.alias("old").merge(new.alias("new"), "old.id = new.id")
    merge.whenMatchedUpdate(set={"id": F.col("new.id")}).whenNotMatchedInsert(values={"id": F.col("new.id")}).execute()
    first = t.spark.read.format("delta").option("versionAsOf", 0).load(path)
    return found(table.toDF()), found(first), operations(table)


@case
def upsert_of_daily_orders(t: Tables) -> Any:
    t.spark.sql("CREATE TABLE orders (id BIGINT, status STRING, amount DECIMAL(10,2), day DATE) USING delta "
                "PARTITIONED BY (day)")  # fmt: skip
    t.spark.sql("INSERT INTO orders VALUES (1, 'new', 10.00, DATE'2024-05-01'), (2, 'new', 20.50, DATE'2024-05-01')")
    rows = [(1, "paid", "10.00", "2024-05-01"), (3, "new", "7.25", "2024-05-02"), (2, "void", None, "2024-05-01")]
    t.spark.createDataFrame(rows, "id BIGINT, status STRING, amount STRING, day STRING").createOrReplaceTempView(
        "daily"
    )
    result = t.spark.sql(
        """
        MERGE INTO orders o
        USING (SELECT id, status, CAST(amount AS DECIMAL(10,2)) amount, to_date(day) day FROM daily) d
        ON o.id = d.id AND o.day = d.day
        WHEN MATCHED AND d.status = 'void' THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
        """
    )
    totals = t.spark.sql("SELECT day, sum(amount) FROM orders GROUP BY day")
    return found(result), found(t.spark.table("orders")), found(totals), found(t.spark.sql("SHOW PARTITIONS orders"))


@case
def slowly_changing_dimension(t: Tables) -> Any:
    path = place(t, "customers")
    schema = "id INT, city STRING, since DATE, until DATE, current BOOLEAN"
    known = t.spark.createDataFrame([(1, "Oslo"), (2, "Rome")], "id INT, city STRING").selectExpr(
        "*", "DATE'2020-01-01' since", "CAST(NULL AS DATE) until", "true current"
    )
    t.spark.createDataFrame([], schema).write.format("delta").save(path)
    known.write.format("delta").mode("append").save(path)
    table = t.table.forPath(t.spark, path)
    updates = t.spark.createDataFrame([(1, "Bergen"), (3, "Paris")], "id INT, city STRING")
    changed = updates.alias("u").join(table.toDF().alias("c"), F.expr("u.id = c.id AND c.current AND u.city <> c.city"))
    again = changed.selectExpr("CAST(NULL AS INT) AS key", "u.*")
    staged = again.unionByName(updates.selectExpr("id AS key", "*"))
    (
        table.alias("c")
        .merge(staged.alias("s"), "c.id = s.key")
        .whenMatchedUpdate("c.current = true AND c.city <> s.city", {"current": "false", "until": "DATE'2024-01-01'"})
        .whenNotMatchedInsert(
            values={"id": "s.id", "city": "s.city", "since": "DATE'2024-01-01'", "until": "null", "current": "true"}
        )
        .execute()
    )
    return found(table.toDF())


@case
def duplicates_are_dropped_before_a_merge(t: Tables) -> Any:
    path = place(t, "events")
    t.spark.createDataFrame([(1, "a", 1)], "id INT, v STRING, ts INT").write.format("delta").save(path)
    raw = t.spark.createDataFrame([(1, "b", 2), (1, "c", 3), (2, "x", 1), (2, "x", 1)], "id INT, v STRING, ts INT")
    newest = raw.withColumn("n", F.row_number().over(Window.partitionBy("id").orderBy(F.desc("ts")))).where("n = 1")
    table = t.table.forPath(t.spark, path)
    merge = table.alias("t").merge(newest.drop("n").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll("s.ts > t.ts").whenNotMatchedInsertAll().execute()
    try:
        table.alias("t").merge(raw.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()
        error = ""
    except Exception as e:  # noqa: BLE001 (the test shows it)
        error = e.getCondition()  # type: ignore[attr-defined]
    return found(table.toDF()), error


@case
def medallion_by_streams(t: Tables) -> Any:
    bronze, silver, gold = (place(t, n) for n in ("bronze", "silver", "gold"))
    for n in range(3):
        rows = t.spark.range(n * 4, n * 4 + 4).selectExpr("id", "id % 3 AS device", "CAST(id * 1.5 AS DOUBLE) AS value")
        rows.write.format("delta").mode("append").save(bronze)
    read = t.spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(bronze)
    clean = read.where("value > 1").withColumn("value", F.round("value", 1))
    query = clean.writeStream.format("delta").option("checkpointLocation", f"{silver}/_c").trigger(availableNow=True)
    query.start(silver).awaitTermination()
    totals = t.spark.readStream.format("delta").load(silver).groupBy("device").agg(F.sum("value").alias("total"))
    writer = totals.writeStream.format("delta").outputMode("complete").option("checkpointLocation", f"{gold}/_c")
    writer.trigger(availableNow=True).start(gold).awaitTermination()
    t.spark.range(12, 14).selectExpr("id", "id % 3 AS device", "2.0D AS value").write.format("delta").mode(
        "append"
    ).save(bronze)
    query.start(silver).awaitTermination()
    writer.trigger(availableNow=True).start(gold).awaitTermination()
    versions = t.table.forPath(t.spark, silver).history().count()
    return found(t.load(silver)), found(t.load(gold)), versions


@case
def upsert_by_foreach_batch(t: Tables) -> Any:
    source, target = place(t, "source"), place(t, "target")
    t.spark.createDataFrame([(0, 0)], "k INT, n INT").write.format("delta").save(target)

    def upsert(batch: Any, number: int) -> None:
        latest = batch.groupBy("k").agg(F.max("n").alias("n"))
        into = t.table.forPath(batch.sparkSession, target).alias("t")
        merge = into.merge(latest.alias("s"), "t.k = s.k")
        merge.whenMatchedUpdate(set={"n": "greatest(t.n, s.n)"}).whenNotMatchedInsertAll().execute()

    t.spark.createDataFrame([(0, 5), (1, 1), (1, 4)], "k INT, n INT").write.format("delta").save(source)
    stream = t.spark.readStream.format("delta").load(source).writeStream.foreachBatch(upsert)
    stream = stream.option("checkpointLocation", f"{target}-c").trigger(availableNow=True)
    stream.start().awaitTermination()
    t.spark.createDataFrame([(1, 2), (2, 9)], "k INT, n INT").write.format("delta").mode("append").save(source)
    stream.start().awaitTermination()
    return found(t.load(target)), operations(t.table.forPath(t.spark, target))


@case
def change_feed_feeds_another_table(t: Tables) -> Any:
    t.spark.sql("CREATE TABLE accounts (id INT, balance INT) USING delta "
                "TBLPROPERTIES (delta.enableChangeDataFeed = true)")  # fmt: skip
    t.spark.sql("INSERT INTO accounts VALUES (1, 10), (2, 20), (3, 30)")
    t.spark.sql("UPDATE accounts SET balance = balance + 1 WHERE id > 1")
    t.spark.sql("DELETE FROM accounts WHERE id = 3")
    feed = t.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).table("accounts")
    seen = found(feed.drop("_commit_timestamp"))
    window = Window.partitionBy("id").orderBy(F.desc("_commit_version"), F.desc("_change_type"))
    last = feed.where("_change_type <> 'update_preimage'").withColumn("n", F.row_number().over(window)).where("n = 1")
    t.spark.sql("CREATE TABLE copies (id INT, balance INT) USING delta")
    copies = t.table.forName(t.spark, "copies")
    merge = copies.alias("c").merge(last.alias("l"), "c.id = l.id").whenMatchedDelete("l._change_type = 'delete'")
    merge = merge.whenNotMatchedInsert("l._change_type <> 'delete'", {"id": "l.id", "balance": "l.balance"})
    merge.execute()
    changes = t.spark.sql("SELECT _change_type, count(*) FROM table_changes('accounts', 2) GROUP BY ALL")
    return seen, found(copies.toDF()), found(changes)


@case
def mistakes_are_undone(t: Tables) -> Any:
    path = place(t, "undone")
    t.spark.range(6).write.format("delta").save(path)
    table = t.table.forPath(t.spark, path)
    table.delete("id > 2")
    lost = t.spark.read.format("delta").option("versionAsOf", 0).load(path).exceptAll(table.toDF())
    before = found(lost)
    lost.where("id = 5").write.format("delta").mode("append").save(path)
    middle = found(t.load(path))
    restored = table.restoreToVersion(0).select("num_restored_files", "num_removed_files")
    counts = found(restored)
    t.spark.sql(f"INSERT INTO delta.`{path}` SELECT id + 10 FROM delta.`{path}` VERSION AS OF 1")
    return before, middle, counts, found(t.load(path)), operations(table)


@case
def schemas_evolve(t: Tables) -> Any:
    path = place(t, "evolving")
    t.spark.createDataFrame([(1, "a")], "id INT, name STRING").write.format("delta").save(path)
    more = t.spark.createDataFrame([(2, "b", 1.5)], "id INT, name STRING, score DOUBLE")
    try:
        more.write.format("delta").mode("append").save(path)
        error = False
    except Exception as e:  # noqa: BLE001 (the test shows it)
        error = isinstance(e, AnalysisException)
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    t.spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (tags ARRAY<STRING> COMMENT 'labels' AFTER id)")
    t.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    t.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN score TO points")
    t.spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN name")
    t.spark.sql(f"INSERT INTO delta.`{path}` (id, points) VALUES (3, 2.5)")
    final = t.load(path)
    final.select("id").write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    return error, found(t.spark.read.format("delta").option("versionAsOf", 6).load(path)), t.load(path).columns


@case
def tables_are_maintained(t: Tables) -> Any:
    path = place(t, "kept")
    for n in range(6):
        rows = t.spark.range(n * 10, n * 10 + 10).selectExpr("id", "id % 2 AS p").coalesce(1)
        rows.write.format("delta").partitionBy("p").mode("append").save(path)
    table = t.table.forPath(t.spark, path)
    metrics = (
        table.optimize().where("p = 0").executeCompaction().select("metrics.numFilesAdded", "metrics.numFilesRemoved")
    )
    compacted = found(metrics)
    ordered = found(table.optimize().executeZOrderBy("id").select("metrics.numFilesAdded", "metrics.numFilesRemoved"))
    t.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # by default delta-spark lists folders by ten thousand tasks
    t.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "4")
    dry = t.spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS DRY RUN").count()
    table.vacuum(0)
    t.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "true")
    files = len(list(Path(path).rglob("*.parquet")))
    detail = table.detail().select("format", "numFiles", "partitionColumns").first()
    return compacted, ordered, dry, files, list(detail), table.toDF().count(), operations(table)


@case
def constraints_and_generated_columns_guard_rows(t: Tables) -> Any:
    (
        t.table.create(t.spark)
        .tableName("readings")
        .addColumn("id", "BIGINT", nullable=False)
        .addColumn("at", "TIMESTAMP")
        .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        .addColumn("v", "DOUBLE", comment="degrees")
        .partitionedBy("day")
        .property("description", "of sensors")
        .execute()
    )
    t.spark.sql("ALTER TABLE readings ADD CONSTRAINT warm CHECK (v > -273.15)")
    rows = t.spark.sql("SELECT 1L AS id, TIMESTAMP'2024-05-06 07:08:09' AS at, 20.5D AS v")
    rows.write.format("delta").mode("append").saveAsTable("readings")
    errors = []
    for text in ("(2, TIMESTAMP'2024-05-06 00:00:00', -300)", "(NULL, TIMESTAMP'2024-05-06 00:00:00', 0)"):
        try:
            t.spark.sql(f"INSERT INTO readings (id, at, v) VALUES {text}")
        except Exception as e:  # noqa: BLE001 (the test shows it)
            errors.append("warm" in str(e) or "NOT NULL" in str(e).upper())
    plan = t.spark.table("readings").where("at >= '2024-05-06' AND at < '2024-05-07'")
    return errors, found(plan), t.spark.table("readings").schema.jsonValue()["fields"][3]["metadata"]


@case
def tables_are_cloned_and_converted(t: Tables) -> Any:
    source, path = place(t, "parquet"), place(t, "clone")
    t.spark.range(10).selectExpr("id", "CAST(id % 2 AS INT) AS p").write.partitionBy("p").parquet(source)
    t.spark.sql(f"CONVERT TO DELTA parquet.`{source}` PARTITIONED BY (p INT)")
    isdelta = t.table.isDeltaTable(t.spark, source), t.table.isDeltaTable(t.spark, path)
    t.spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{source}`")
    t.table.forPath(t.spark, path).update("p = 1", {"id": "-id"})
    return isdelta, found(t.load(path)), found(t.load(source)), t.load(source).rdd.getNumPartitions() > 0


@case
def partitions_are_replaced(t: Tables) -> Any:
    path = place(t, "facts")
    rows = [(1, "2024-01-01", 1), (2, "2024-01-01", 2), (3, "2024-02-01", 3), (4, "2024-03-01", 4)]
    frame = t.spark.createDataFrame(rows, "id INT, day STRING, n INT")
    frame.write.format("delta").partitionBy("day").save(path)
    fixed = t.spark.createDataFrame([(3, "2024-02-01", 30), (5, "2024-02-01", 50)], "id INT, day STRING, n INT")
    fixed.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2024-02-01'").save(path)
    try:
        fixed.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2024-01-01'").save(path)
        error = False
    except Exception as e:  # noqa: BLE001 (the test shows it)
        error = isinstance(e, AnalysisException)
    late = t.spark.createDataFrame([(6, "2024-03-01", 6)], "id INT, day STRING, n INT")
    late.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    return error, found(t.load(path))


@case
def frames_of_rows_and_pandas(t: Tables) -> Any:
    path = place(t, "mixed")
    rows = [Row(id=1, tags=["a", "b"], at={"x": 1}), Row(id=2, tags=[], at={})]
    t.spark.createDataFrame(rows).write.format("delta").save(path)
    table = t.table.forPath(t.spark, path)
    table.update(F.size("tags") == 0, {"tags": F.array(F.lit("none"))})
    exploded = t.load(path).select("id", F.explode("tags").alias("tag"), F.col("at")["x"].alias("x"))
    t.spark.sql(f"SELECT id, tags FROM delta.`{path}` WHERE array_contains(tags, 'b')").createOrReplaceTempView(
        "with_b"
    )
    joined = t.spark.sql(f"SELECT b.id, size(a.tags) FROM with_b b JOIN delta.`{path}` a USING (id)")
    pandas = t.load(path).orderBy("id").select("id").toPandas()
    return found(exploded), found(joined), pandas["id"].tolist()


@case
def writes_are_repeated_safely(t: Tables) -> Any:
    path = place(t, "repeated")
    for version in (1, 1, 2, 1):
        frame = t.spark.range(version * 10, version * 10 + 2)
        options = {"txnAppId": "nightly", "txnVersion": version}
        frame.write.format("delta").options(**options).mode("append").save(path)
    history = t.table.forPath(t.spark, path).history().select("version", "operation", "operationMetrics.numOutputRows")
    t.spark.sql(f"COMMENT ON TABLE delta.`{path}` IS 'nightly'")
    return found(t.load(path)), found(history), t.table.forPath(t.spark, path).detail().first().description


if __name__ == "__main__":
    run(CASES, Path(sys.argv[1]), sys.argv[2:3] == ["peer"], sys.argv[3:])
