"""Statements and calls that fail, in a session that has the format delta.

It prints the errors as JSON: the classes of PySpark that catch each, and its condition. With ``peer`` as its second
argument the session is one of delta-spark: so the answers that `test_error_classes` expects were recorded.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped, unused-ignore]
from pyspark import errors
from pyspark.sql import SparkSession

CASES: dict[str, Callable[[Tables], Any]] = {}
#: The classes that programs catch.
CAUGHT = (
    "AnalysisException",
    "ParseException",
    "IllegalArgumentException",
    "ArithmeticException",
    "SparkRuntimeException",
)


def case(function: Callable[[Tables], Any]) -> Callable[[Tables], Any]:
    CASES[function.__name__] = function
    return function


class Tables:
    """Makes tables of the columns ``id`` and ``p``."""

    def __init__(self, spark: Any, table: Any, folder: Path) -> None:
        self.spark, self.table, self.folder, self.count = spark, table, folder, 0

    def place(self) -> str:
        self.count += 1
        return str(self.folder / f"t{self.count}")

    def make(self, columns: str = "id BIGINT, p BIGINT", by: str = "", rows: bool = True, **properties: str) -> str:
        path = self.place()
        given = ", ".join(f"'delta.{n}' = '{v}'" for n, v in properties.items())
        self.sql(
            f"CREATE TABLE {{t}} ({columns}) USING delta {by} " + (f"TBLPROPERTIES ({given})" if given else ""), path
        )
        if rows:
            self.rows().write.format("delta").mode("append").save(path)
        return path

    def rows(self, *columns: str) -> Any:
        return self.spark.range(3).selectExpr(*(columns or ("id", "id % 2 AS p"))).coalesce(1)

    def load(self, path: str, **options: Any) -> Any:
        return self.spark.read.format("delta").options(**options).load(path)

    def save(self, rows: Any, path: str, mode: str = "append", **options: Any) -> Any:
        rows.write.format("delta").mode(mode).options(**options).save(path)

    def sql(self, text: str, path: str = "") -> Any:
        return self.spark.sql(text.replace("{t}", f"delta.`{path}`"))


def outcome(call: Callable[[], Any]) -> Any:
    """Return the classes and the condition of the error that a call raises."""
    try:
        call()
    except Exception as e:  # noqa: BLE001 (of PySpark, of the driver, and of this library)
        classes = [name for name in CAUGHT if isinstance(e, getattr(errors, name))]
        condition = getattr(e, "getCondition", lambda: None)() or None
        if isinstance(e, Py4JJavaError):  # of a class of Java that has none in PySpark
            found = re.search(r"\[([A-Z0-9_.]+)\]", str(e))
            condition = None if found is None else found[1]
        return [classes, condition]
    return "no error"


# --- what is not there ---


@case
def load_of_a_missing_path(t: Tables) -> Any:
    return t.load(t.place()).count()


@case
def load_of_a_folder_without_a_table(t: Tables) -> Any:
    path = t.place()
    t.spark.range(1).write.parquet(path)
    return t.load(path).count()


@case
def select_of_a_missing_path(t: Tables) -> Any:
    return t.sql("SELECT * FROM {t}", t.place()).collect()


@case
def select_of_a_folder_without_a_table(t: Tables) -> Any:
    path = t.place()
    t.spark.range(1).write.parquet(path)
    return t.sql("SELECT * FROM {t}", path).collect()


@case
def select_of_a_missing_name(t: Tables) -> Any:
    return t.sql("SELECT * FROM nothing_here").collect()


@case
def table_of_a_missing_name(t: Tables) -> Any:
    return t.spark.table("nothing_here").collect()


@case
def builder_of_a_missing_path(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.place())


@case
def builder_of_a_missing_name(t: Tables) -> Any:
    return t.table.forName(t.spark, "nothing_here")


@case
def builder_of_a_name_of_parquet(t: Tables) -> Any:
    t.sql("CREATE TABLE of_parquet (id BIGINT) USING parquet")
    return t.table.forName(t.spark, "of_parquet")


@case
def delete_of_a_missing_path(t: Tables) -> Any:
    return t.sql("DELETE FROM {t} WHERE id = 1", t.place())


@case
def update_of_a_missing_name(t: Tables) -> Any:
    return t.sql("UPDATE nothing_here SET id = 1")


@case
def history_of_a_missing_path(t: Tables) -> Any:
    return t.sql("DESCRIBE HISTORY {t}", t.place())


@case
def detail_of_a_missing_path(t: Tables) -> Any:
    return t.sql("DESCRIBE DETAIL {t}", t.place())


@case
def vacuum_of_a_missing_path(t: Tables) -> Any:
    return t.sql("VACUUM {t}", t.place())


@case
def optimize_of_a_missing_path(t: Tables) -> Any:
    return t.sql("OPTIMIZE {t}", t.place())


@case
def insert_into_a_missing_name(t: Tables) -> Any:
    return t.sql("INSERT INTO nothing_here VALUES (1)")


@case
def drop_of_a_missing_name(t: Tables) -> Any:
    return t.sql("DROP TABLE nothing_here")


@case
def version_after_the_latest(t: Tables) -> Any:
    return t.load(t.make(), versionAsOf=99).count()


@case
def time_after_the_latest(t: Tables) -> Any:
    return t.load(t.make(), timestampAsOf="2100-01-01").count()


@case
def time_before_the_first(t: Tables) -> Any:
    return t.load(t.make(), timestampAsOf="2000-01-01").count()


@case
def version_that_is_no_number(t: Tables) -> Any:
    return t.load(t.make(), versionAsOf="x").count()


@case
def version_and_time(t: Tables) -> Any:
    return t.load(t.make(), versionAsOf=0, timestampAsOf="2100-01-01").count()


@case
def restore_of_a_missing_version(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).restoreToVersion(99)


@case
def changes_of_a_table_without_them(t: Tables) -> Any:
    return t.load(t.make(), readChangeFeed="true", startingVersion=0).count()


@case
def stream_of_a_missing_path(t: Tables) -> Any:
    return t.spark.readStream.format("delta").load(t.place())


# --- what is there ---


@case
def save_of_a_path_that_exists(t: Tables) -> Any:
    return t.save(t.rows(), t.make(), "error")


@case
def table_of_a_name_that_exists(t: Tables) -> Any:
    t.sql("CREATE TABLE known (id BIGINT) USING delta")
    return t.sql("CREATE TABLE known (id BIGINT) USING delta")


@case
def save_as_a_name_that_exists(t: Tables) -> Any:
    t.sql("CREATE TABLE known_too (id BIGINT) USING delta")
    return t.spark.range(1).write.format("delta").saveAsTable("known_too")


@case
def builder_of_a_table_that_exists(t: Tables) -> Any:
    path = t.make()
    return t.table.create(t.spark).location(path).addColumn("id", "BIGINT").execute()


@case
def other_columns_at_a_place_that_has_a_table(t: Tables) -> Any:
    return t.sql(f"CREATE TABLE other_columns (x INT) USING delta LOCATION '{t.make()}'")


# --- columns ---


@case
def column_that_is_not_there_in_select(t: Tables) -> Any:
    return t.load(t.make()).select("nothing")


@case
def column_that_is_not_there_in_delete(t: Tables) -> Any:
    return t.sql("DELETE FROM {t} WHERE nothing = 1", t.make())


@case
def column_that_is_not_there_in_builder_delete(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).delete("nothing = 1")


@case
def column_that_is_not_there_in_update(t: Tables) -> Any:
    return t.sql("UPDATE {t} SET nothing = 1", t.make())


@case
def column_that_is_not_there_in_builder_update(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).update(set={"nothing": "1"})


@case
def value_that_is_not_there_in_builder_update(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).update(set={"p": "nothing + 1"})


def _merge(t: Tables, source: Any = None, on: str = "t.id = s.id", **properties: str) -> Any:
    table = t.table.forPath(t.spark, t.make(**properties)).alias("t")
    return table.merge((t.rows() if source is None else source).alias("s"), on)


@case
def column_that_is_not_there_in_merge_condition(t: Tables) -> Any:
    return _merge(t, on="t.nothing = s.id").whenMatchedDelete().execute()


@case
def column_that_is_not_there_in_merge_update(t: Tables) -> Any:
    return _merge(t).whenMatchedUpdate(set={"nothing": "s.p"}).execute()


@case
def column_that_is_not_there_in_merge_source(t: Tables) -> Any:
    return _merge(t, t.rows("id")).whenMatchedUpdateAll().execute()


@case
def column_that_is_not_there_in_merge_statement(t: Tables) -> Any:
    t.rows().createOrReplaceTempView("merged")
    return t.sql("MERGE INTO {t} t USING merged s ON t.id = s.nothing WHEN MATCHED THEN DELETE", t.make())


@case
def column_that_is_not_there_in_replace_where(t: Tables) -> Any:
    return t.save(t.rows(), t.make(), "overwrite", replaceWhere="nothing = 1")


@case
def column_that_is_not_there_in_partitions(t: Tables) -> Any:
    return t.rows().write.format("delta").partitionBy("nothing").save(t.place())


@case
def column_that_is_not_there_in_zorder(t: Tables) -> Any:
    return t.sql("OPTIMIZE {t} ZORDER BY (nothing)", t.make())


@case
def column_that_is_not_there_in_drop(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} DROP COLUMN nothing", t.make(**{"columnMapping.mode": "name"}))


@case
def column_that_is_not_there_in_change(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} ALTER COLUMN nothing COMMENT 'x'", t.make())


@case
def column_that_is_there_in_add(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} ADD COLUMN (p INT)", t.make())


@case
def drop_of_a_column_without_mapping(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} DROP COLUMN p", t.make())


@case
def rename_of_a_column_without_mapping(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} RENAME COLUMN p TO q", t.make())


@case
def zorder_by_a_partition_column(t: Tables) -> Any:
    return t.sql("OPTIMIZE {t} ZORDER BY (p)", t.make(by="PARTITIONED BY (p)"))


@case
def same_column_twice_in_a_save(t: Tables) -> Any:
    return t.save(t.rows("id AS x", "id AS X"), t.place())


@case
def invalid_characters_in_a_name(t: Tables) -> Any:
    return t.save(t.rows("id AS `a b`"), t.place())


# --- schemas ---


@case
def further_column_in_append(t: Tables) -> Any:
    return t.save(t.rows("id", "id AS p", "id AS x"), t.make())


@case
def other_type_in_append(t: Tables) -> Any:
    return t.save(t.rows("'a' AS id", "id AS p"), t.make())


@case
def other_type_in_append_that_merges(t: Tables) -> Any:
    return t.save(t.rows("array(id) AS id", "id AS p"), t.make(), mergeSchema="true")


@case
def other_type_in_overwrite(t: Tables) -> Any:
    return t.save(t.rows("array(id) AS id"), t.make(), "overwrite")


@case
def other_partitions_in_append(t: Tables) -> Any:
    return t.rows().write.format("delta").mode("append").partitionBy("id").save(t.make(by="PARTITIONED BY (p)"))


@case
def fewer_values_in_insert(t: Tables) -> Any:
    return t.sql("INSERT INTO {t} VALUES (1)", t.make())


@case
def more_values_in_insert(t: Tables) -> Any:
    return t.sql("INSERT INTO {t} VALUES (1, 2, 3)", t.make())


@case
def unknown_column_in_insert(t: Tables) -> Any:
    return t.sql("INSERT INTO {t} (id, nothing) VALUES (1, 2)", t.make())


@case
def read_schema_of_other_columns(t: Tables) -> Any:
    path = t.make()
    return t.spark.read.format("delta").schema("x INT").load(path).collect()


@case
def columns_that_changed_since_the_frame(t: Tables) -> Any:
    path = t.make()
    rows = t.load(path)
    t.save(t.spark.range(1).selectExpr("'a' AS id"), path, "overwrite", overwriteSchema="true")
    return rows.collect()


@case
def narrower_type_in_change(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} ALTER COLUMN p TYPE INT", t.make())


# --- rules ---


@case
def null_in_a_column_without_nulls(t: Tables) -> Any:
    path = t.make("id BIGINT NOT NULL, p BIGINT", rows=False)
    return t.save(t.spark.createDataFrame([(None, 1)], "id BIGINT, p BIGINT"), path)


@case
def insert_of_null_in_a_column_without_nulls(t: Tables) -> Any:
    return t.sql("INSERT INTO {t} VALUES (NULL, 1)", t.make("id BIGINT NOT NULL, p BIGINT", rows=False))


@case
def row_that_breaks_a_check(t: Tables) -> Any:
    path = t.make()
    t.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", path)
    return t.sql("INSERT INTO {t} VALUES (-1, 1)", path)


@case
def update_that_breaks_a_check(t: Tables) -> Any:
    path = t.make()
    t.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", path)
    return t.sql("UPDATE {t} SET id = -1", path)


@case
def check_that_rows_break(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} ADD CONSTRAINT large CHECK (id > 1)", t.make())


@case
def check_that_is_there(t: Tables) -> Any:
    path = t.make()
    t.sql("ALTER TABLE {t} ADD CONSTRAINT twice CHECK (id >= 0)", path)
    return t.sql("ALTER TABLE {t} ADD CONSTRAINT twice CHECK (id >= 0)", path)


@case
def check_that_is_not_there(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} DROP CONSTRAINT nothing", t.make())


@case
def row_outside_replace_where(t: Tables) -> Any:
    return t.save(t.rows(), t.make(), "overwrite", replaceWhere="p = 1")


@case
def generated_value_that_differs(t: Tables) -> Any:
    table = t.table.create(t.spark).location(path := t.place()).addColumn("id", "BIGINT")
    table.addColumn("p", "BIGINT", generatedAlwaysAs="id + 1").execute()
    return t.save(t.rows("id", "id AS p"), path)


@case
def value_for_an_identity_column(t: Tables) -> Any:
    path = t.make("id BIGINT GENERATED ALWAYS AS IDENTITY, p BIGINT", rows=False)
    return t.sql("INSERT INTO {t} (id, p) VALUES (1, 1)", path)


@case
def text_that_is_too_long(t: Tables) -> Any:
    return t.sql("INSERT INTO {t} VALUES ('abc')", t.make("c VARCHAR(2)", rows=False))


@case
def delete_of_a_table_for_appends_only(t: Tables) -> Any:
    return t.sql("DELETE FROM {t} WHERE id = 1", t.make(appendOnly="true"))


@case
def several_rows_of_the_source_for_one_row(t: Tables) -> Any:
    source = t.rows("0L AS id", "id AS p")
    return _merge(t, source).whenMatchedUpdateAll().execute()


@case
def merge_without_a_clause(t: Tables) -> Any:
    return _merge(t).execute()


# --- definitions and settings ---


@case
def unknown_property(t: Tables) -> Any:
    return t.make(nothing="1")


@case
def property_with_a_wrong_value(t: Tables) -> Any:
    return t.make(appendOnly="x")


@case
def unset_of_a_property_that_is_not_there(t: Tables) -> Any:
    return t.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('nothing')", t.make())


@case
def vacuum_of_a_short_time(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).vacuum(1)


@case
def partition_by_all_columns(t: Tables) -> Any:
    return t.rows("id").write.format("delta").partitionBy("id").save(t.place())


@case
def statement_that_is_no_sql(t: Tables) -> Any:
    return t.sql("DELETE {t} WHERE", t.make())


@case
def condition_that_is_no_sql(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).delete("id = = 1")


@case
def condition_that_is_no_boolean(t: Tables) -> Any:
    return t.table.forPath(t.spark, t.make()).delete("id + 1")


@case
def column_of_a_type_that_is_not_known(t: Tables) -> Any:
    return t.sql("CREATE TABLE {t} (id NOTHING) USING delta", t.place())


@case
def division_by_zero_in_an_update(t: Tables) -> Any:
    return t.sql("UPDATE {t} SET p = 1 / (id - id)", t.make())


def session(folder: Path, peer: bool) -> tuple[Any, Any]:
    """Return a session and its class of tables."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "OFF")
    )
    if peer:
        from delta import DeltaTable, configure_spark_with_delta_pip  # type: ignore[import-not-found]

        builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        return configure_spark_with_delta_pip(builder).getOrCreate(), DeltaTable
    from delta_core.spark import DeltaTable, configure

    return configure(builder).getOrCreate(), DeltaTable


def main() -> None:
    folder = Path(sys.argv[1])
    spark, table = session(folder, "peer" in sys.argv[2:])
    tables = Tables(spark, table, folder)
    wanted = [a for a in sys.argv[2:] if a in CASES]
    for name in wanted or CASES:
        print(json.dumps([name, outcome(lambda name=name: CASES[name](tables))]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
