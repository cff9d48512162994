"""Forms in which programs name and read tables, in a session that has the format delta.

It prints the answers as JSON. With ``peer`` as its second argument the session is one of delta-spark: so the answers
that `test_forms` expects were recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.spark.latest_program import Tables, run

CASES: dict[str, Callable[[Tables], Any]] = {}


def case(function: Callable[[Tables], Any]) -> Callable[[Tables], Any]:
    CASES[function.__name__] = function
    return function


def found(frame: Any) -> list[list[Any]]:
    return sorted(([*r] for r in frame.collect()), key=repr)


def condition(call: Callable[[], Any]) -> str:
    """Return the condition of the error that a call raises."""
    try:
        call()
    except Exception as e:  # noqa: BLE001 (the test shows it)
        return str(e.getCondition() if hasattr(e, "getCondition") else type(e).__name__)
    return ""


def schema(frame: Any) -> list[Any]:
    return [[f["name"], f["type"], f["nullable"], f["metadata"]] for f in frame.schema.jsonValue()["fields"]]


# --- schemas ---

DECLARED = (
    "CREATE TABLE delta.`{t}` (id INT NOT NULL COMMENT 'key', v VARCHAR(5), s STRUCT<x: INT NOT NULL, "
    "y: STRING COMMENT 'of y'>) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
)


def declared(t: Tables) -> str:
    t.count += 1
    path = str(t.folder / f"t{t.count}")
    t.spark.sql(DECLARED.format(t=path))
    t.spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a', named_struct('x', 1, 'y', 'b'))")
    return path


@case
def schemas_of_versions(t: Tables) -> Any:
    path = declared(t)
    name = f"of_versions{t.count}"
    t.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
    time = t.spark.sql(f"DESCRIBE HISTORY {name}").first().timestamp
    return [
        schema(frame)
        for frame in (
            t.spark.table(name),
            t.spark.sql(f"SELECT * FROM {name} VERSION AS OF 1"),
            t.spark.sql(f"SELECT * FROM {name} TIMESTAMP AS OF '{time}'"),
            t.spark.sql(f"SELECT * FROM delta.`{path}@v1`"),
            t.spark.read.format("delta").option("versionAsOf", 1).load(path),
            t.spark.read.option("versionAsOf", 1).table(name),
            t.spark.read.format("delta").load(f"{path}@v1"),
        )
    ]


@case
def schemas_of_changes(t: Tables) -> Any:
    path = declared(t)
    reader = t.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    return schema(reader.load(path)), schema(reader.option("endingVersion", 1).load(path))


@case
def schemas_of_streams(t: Tables) -> Any:
    path = declared(t)
    reader = t.spark.readStream.format("delta")
    return schema(reader.load(path)), schema(reader.option("readChangeFeed", "true").load(path))


@case
def stream_of_columns_that_are_not_null(t: Tables) -> Any:
    path = declared(t)
    rows = t.spark.readStream.format("delta").load(path).where("id IS NOT NULL").selectExpr("id", "s.x", "v")
    writer = rows.writeStream.format("memory").queryName("not_null").trigger(availableNow=True)
    writer.start().awaitTermination()
    return found(t.spark.table("not_null"))


@case
def version_beside_the_latest_one(t: Tables) -> Any:
    path = t.make()
    t.append(path)
    old = t.spark.read.format("delta").option("versionAsOf", 1).load(path)
    both = old.alias("a").join(t.load(path).alias("b"), "id", "full")
    t.append(path, 101)
    return old.count(), both.count(), old.union(t.load(path)).count()


@case
def version_that_was_cached(t: Tables) -> Any:
    path = t.make()
    old = t.spark.read.format("delta").option("versionAsOf", 1).load(path).cache()
    before = old.count()
    t.append(path)
    after = (
        old.count(),
        t.load(path).count(),
        "InMemoryTableScan" in old._jdf.queryExecution().executedPlan().toString(),
    )
    old.unpersist()
    return before, after


@case
def version_written_over_the_latest_one(t: Tables) -> Any:
    path = t.make()
    t.append(path)
    old = t.spark.read.format("delta").option("versionAsOf", 1).load(path)
    old.write.format("delta").mode("overwrite").save(path)
    return found(t.load(path))


# --- rows and their files ---


def tracked(t: Tables) -> str:
    path = t.make(3, enableRowTracking="true")
    t.append(path)
    t.spark.sql(f"UPDATE delta.`{path}` SET p = 7 WHERE id = 1")
    return path


@case
def row_ids(t: Tables) -> Any:
    path = tracked(t)
    columns = "id, _metadata.row_id, _metadata.row_commit_version"
    return (
        found(t.spark.sql(f"SELECT {columns} FROM delta.`{path}`")),
        found(t.spark.sql(f"SELECT {columns} FROM delta.`{path}` VERSION AS OF 2")),
        found(t.load(path).select("_metadata.row_id", "id").where("row_id > 1")),
        found(t.spark.sql(f"SELECT id FROM delta.`{path}` WHERE _metadata.row_id = 3")),
        found(
            t.spark.sql(
                f"SELECT a.id, b.p FROM delta.`{path}` a JOIN delta.`{path}` VERSION AS OF 1 b "
                "ON a._metadata.row_id = b._metadata.row_id"
            )
        ),
    )


@case
def row_ids_after_other_commits(t: Tables) -> Any:
    path = tracked(t)
    rows = t.load(path).select("id", "_metadata.row_id")
    before = found(rows)
    t.spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    t.append(path, 101)
    return before, found(rows)


@case
def row_ids_as_rows_of_a_write(t: Tables) -> Any:
    path = tracked(t)
    t.spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT id AS k, _metadata.row_id AS r FROM delta.`{path}`) s "
        "ON t.id = s.k WHEN MATCHED AND r > 0 THEN UPDATE SET p = 10 + r"
    )
    return found(t.load(path))


@case
def row_ids_of_a_table_without_them(t: Tables) -> Any:
    return condition(lambda: t.load(t.make()).select("_metadata.row_id").collect())


@case
def facts_of_files(t: Tables) -> Any:
    path = tracked(t)
    rows = t.load(path).selectExpr(
        "id",
        "_metadata.file_path LIKE 'file:/%.parquet'",
        "_metadata.file_name = substring_index(_metadata.file_path, '/', -1)",
        "_metadata.file_size > 100",
        "_metadata.file_modification_time > current_timestamp() - INTERVAL 1 HOUR",
        "_metadata.file_block_start",
        "_metadata.row_index >= 0",
    )
    return found(rows)


# --- temporary views ---


def view(t: Tables, name: str, path: str, *options: str) -> None:
    given = ", ".join((f"path '{path}'", *options))
    t.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING delta OPTIONS ({given})")


@case
def insert_into_a_view_of_a_path(t: Tables) -> Any:
    path = t.make()
    view(t, "of_path", path)
    t.spark.sql("INSERT INTO of_path VALUES (10, 0)")
    t.spark.sql("SELECT CAST(11 AS BIGINT), CAST(1 AS BIGINT)").write.insertInto("of_path")
    first = found(t.spark.table("of_path"))
    t.spark.sql("INSERT OVERWRITE of_path SELECT * FROM of_path WHERE id > 1")
    second = found(t.spark.table("of_path"))
    t.spark.sql("SELECT CAST(12 AS BIGINT), CAST(1 AS BIGINT)").write.insertInto("of_path", overwrite=True)
    return first, second, found(t.load(path))


@case
def insert_into_a_view_of_a_frame(t: Tables) -> Any:
    path = t.make()
    t.load(path).createOrReplaceTempView("of_frame")
    t.spark.sql("INSERT INTO of_frame VALUES (10, 0)")
    return found(t.load(path)), found(t.spark.table("of_frame"))


@case
def insert_into_some_columns_of_a_view(t: Tables) -> Any:
    path = t.make(1)
    view(t, "of_some", path)
    t.spark.sql("INSERT INTO of_some (id) VALUES (10)")
    t.spark.sql("INSERT INTO of_some BY NAME SELECT 4 AS p, 11 AS id")
    return found(t.load(path))


@case
def insert_into_a_view_of_a_version(t: Tables) -> Any:
    path = t.make(1)
    view(t, "of_version", path, "versionAsOf '1'")
    return condition(lambda: t.spark.sql("INSERT INTO of_version VALUES (10, 0)")), found(t.load(path))


@case
def insert_into_other_views(t: Tables) -> Any:
    path = t.make(1)
    t.spark.sql(f"CREATE OR REPLACE TEMP VIEW of_text AS SELECT * FROM delta.`{path}`")
    t.spark.range(1).write.mode("overwrite").parquet(f"{path}-parquet")
    t.spark.read.parquet(f"{path}-parquet").createOrReplaceTempView("of_parquet")
    t.spark.sql("INSERT INTO of_parquet VALUES (7)")
    return condition(lambda: t.spark.sql("INSERT INTO of_text VALUES (10, 0)")), found(
        t.spark.read.parquet(f"{path}-parquet")
    )


# --- maps ---


def with_map(t: Tables, values: str = "map('k', named_struct('a', 1))") -> tuple[str, Any]:
    t.count += 1
    name = f"maps{t.count}"
    t.spark.sql(f"CREATE TABLE {name} (id INT, m MAP<STRING, STRUCT<a: INT>>) USING delta")
    t.spark.sql(f"INSERT INTO {name} SELECT 1, {values}")
    return name, t.spark.sql("SELECT 2 AS id, map('k', named_struct('a', 2, 'b', 3)) AS m")


def shown(t: Tables, name: str) -> list[Any]:
    return [t.spark.table(name).schema.simpleString(), found(t.spark.sql(f"SELECT id, to_json(m) FROM {name}"))]


@case
def field_that_an_append_adds_in_a_map(t: Tables) -> Any:
    name, rows = with_map(t)
    rejected = condition(lambda: rows.write.format("delta").mode("append").saveAsTable(name))
    rows.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(name)
    return rejected, shown(t, name)


@case
def field_that_insert_adds_in_a_map(t: Tables) -> Any:
    name, rows = with_map(t)
    rejected = condition(lambda: rows.write.mode("append").insertInto(name))
    t.spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        rows.write.insertInto(name)
        t.spark.sql(f"INSERT INTO {name} BY NAME SELECT 3 AS id, map('k', named_struct('a', 2, 'b', 3, 'c', 4)) AS m")
        return rejected, shown(t, name)
    finally:
        t.spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")


# --- clones of Parquet ---


def parquet(t: Tables, by: Sequence[str] = ()) -> tuple[str, str]:
    t.count += 1
    path, name = str(t.folder / f"parquet{t.count}"), f"of_parquet{t.count}"
    rows = t.spark.range(5).selectExpr("id", "id % 2 AS p").coalesce(1)
    rows.write.partitionBy(*by).format("parquet").option("path", path).saveAsTable(name)
    return path, name


def files_of(path: str) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if "_delta_log" in p.parts)


@case
def clone_of_a_folder_of_parquet(t: Tables) -> Any:
    path, _ = parquet(t)
    clone = f"clone{t.count}"
    made = t.spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE parquet.`{path}`").first()
    first = found(t.spark.table(clone))
    t.spark.sql(f"UPDATE {clone} SET p = 9 WHERE id = 0")
    t.spark.sql(f"DELETE FROM {clone} WHERE id = 1")
    info = t.spark.sql(f"DESCRIBE HISTORY {clone}").collect()[-1]
    return (
        [made.source_num_of_files, made.num_copied_files, made.num_removed_files],
        first,
        found(t.spark.table(clone)),
        found(t.spark.read.parquet(path)),
        files_of(path),
        [info.operation, info.operationParameters["sourceVersion"]],
    )


@case
def clone_of_a_partitioned_parquet_table(t: Tables) -> Any:
    path, name = parquet(t, ["p"])
    clone, place = f"clone{t.count}", f"{path}-clone"
    t.spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {name} TBLPROPERTIES (own = 'v') LOCATION '{place}'")
    t.spark.sql(f"DELETE FROM {clone} WHERE p = 1")
    detail = t.spark.sql(f"DESCRIBE DETAIL {clone}").first()
    return (
        found(t.spark.table(clone)),
        detail.partitionColumns,
        detail.properties.get("own"),
        found(t.spark.table(name)),
    )


@case
def clone_of_parquet_at_a_path(t: Tables) -> Any:
    path, name = parquet(t)
    t.spark.sql(f"CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {name}")
    return found(t.load(f"{path}-clone"))


@case
def clone_of_parquet_under_a_name_that_exists(t: Tables) -> Any:
    _, name = parquet(t)
    clone = f"clone{t.count}"
    t.spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {name}")
    t.spark.sql(f"CREATE TABLE IF NOT EXISTS {clone} SHALLOW CLONE {name}")
    again = condition(lambda: t.spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {name}"))
    return found(t.spark.table(clone)), again != ""


@case
def clone_of_parquet_in_the_place_of_a_table(t: Tables) -> Any:
    _, name = parquet(t)
    place = t.make(2)
    t.spark.sql(f"DELETE FROM delta.`{place}`")
    t.spark.sql(f"CREATE OR REPLACE TABLE delta.`{place}` SHALLOW CLONE {name}")
    return found(t.load(place)), found(t.spark.read.format("delta").option("versionAsOf", 1).load(place))


@case
def clones_of_parquet_that_are_rejected(t: Tables) -> Any:
    path, name = parquet(t, ["p"])
    clone = f"delta.`{path}-clone`"
    return [
        condition(lambda text=text: t.spark.sql(text)) != ""
        for text in (
            f"CREATE TABLE {clone} SHALLOW CLONE parquet.`{path}`",
            f"CREATE TABLE {clone} CLONE {name}",
            f"CREATE TABLE {clone} SHALLOW CLONE {name} VERSION AS OF 0",
            f"CREATE TABLE {clone} SHALLOW CLONE parquet.`{path}-missing`",
        )
    ], Path(f"{path}-clone").exists()


# --- files of tables that are dropped ---


@case
def files_of_tables_that_are_dropped(t: Tables) -> Any:
    t.spark.sql("CREATE TABLE of_dropped (x INT) USING delta")
    ways: dict[str, Callable[[str, str], Any]] = {
        "sql": lambda n, place: t.spark.sql(f"CREATE TABLE {n} (x INT) USING delta"),
        "ctas": lambda n, place: t.spark.sql(f"CREATE TABLE {n} USING delta AS SELECT 1 AS x"),
        "like": lambda n, place: t.spark.sql(f"CREATE TABLE {n} LIKE of_dropped"),
        "clone": lambda n, place: t.spark.sql(f"CREATE TABLE {n} SHALLOW CLONE of_dropped"),
        "save": lambda n, place: t.spark.range(1).write.format("delta").saveAsTable(n),
        "write_to": lambda n, place: t.spark.range(1).writeTo(n).using("delta").create(),
        "builder": lambda n, place: t.table.create(t.spark).tableName(n).addColumn("x", "INT").execute(),
        "replaces": lambda n, place: t.table.createOrReplace(t.spark).tableName(n).addColumn("x", "INT").execute(),
        "sql_at": lambda n, place: t.spark.sql(f"CREATE TABLE {n} (x INT) USING delta LOCATION '{place}'"),
        "clone_at": lambda n, place: t.spark.sql(f"CREATE TABLE {n} SHALLOW CLONE of_dropped LOCATION '{place}'"),
        "save_at": lambda n, place: t.spark.range(1).write.format("delta").option("path", place).saveAsTable(n),
        "builder_at": lambda n, place: (
            t.table.create(t.spark).tableName(n).location(place).addColumn("x", "INT").execute()
        ),
    }
    found = {}
    for way, make in ways.items():
        name = f"dropped_{way}"
        places = [t.folder / "warehouse" / name, t.folder / name]
        make(name, str(places[1]))
        kinds = [r.data_type for r in t.spark.sql(f"DESCRIBE EXTENDED {name}").collect() if r.col_name == "Type"]
        before = [p.exists() for p in places]
        t.spark.sql(f"DROP TABLE {name}")
        found[way] = kinds, before, [p.exists() for p in places]
    return found


if __name__ == "__main__":
    run(CASES, Path(sys.argv[1]), sys.argv[2:3] == ["peer"], sys.argv[3:])
