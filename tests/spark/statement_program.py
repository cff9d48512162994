"""Statements and calls in a session that has the format delta, each with its answer: rows, a schema, or an error.

It prints the answers as JSON. With ``peer`` as its second argument the session is one of delta-spark: so the answers
in ``statement_recorded.json`` were recorded. Further arguments choose cells: patterns of names.

A cell of statements begins with ``--`` and its name; its statements end with semicolons, and the answer is that of the
last one. ``{n}`` is a name of a table of the cell, and ``{p}`` a path of it; ``{m}`` and ``{q}`` are others. ``{t}`` is
``delta.`{p}` ``. ``SCHEMA`` before a query returns its schema. Calls are functions with the decorator `cell`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from tests.spark import statement_functions, statement_settings
from tests.spark.error_program import outcome, session

#: A setting with which delta-spark answers the same, sooner.
FASTER = "spark.databricks.delta.snapshotPartitions"
#: Classes of Python that programs catch.
BUILTIN = (TypeError, ValueError, AttributeError, NotImplementedError)
TEXT = Path(__file__).with_name("statement_cells.sql")


class Cell:
    """The session, and the names and paths of one cell."""

    def __init__(self, spark: Any, table: Any, folder: Path, number: int) -> None:
        self.spark, self.table, self.folder = spark, table, folder
        self.n, self.m, self.v = f"n{number}", f"m{number}", f"v{number}"
        self.p, self.q = str(folder / f"p{number}"), str(folder / f"q{number}")

    def sql(self, text: str) -> Any:
        for name in "nmvpq":
            text = text.replace(f"{{{name}}}", getattr(self, name))
        return self.spark.sql(text.replace("{t}", f"delta.`{self.p}`"))

    def run(self, text: str) -> Any:
        """Run statements, and return the DataFrame of the last one."""
        found = None
        for statement in filter(None, map(str.strip, text.split(";"))):
            found = self.sql(statement)
        return found

    def load(self, path: str, **options: Any) -> Any:
        return self.spark.read.format("delta").options(**options).load(path)

    def plain(self, value: Any) -> Any:
        """Return a value as JSON has it, without what differs between sessions."""
        if isinstance(value, dict):
            return {str(k): self.plain(v) for k, v in value.items() if k != "delta.identity.highWaterMark"}
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in value]
        if value is None or isinstance(value, (bool, int)):
            return value
        return re.sub(f"(file:/*)?{re.escape(str(self.folder))}", "", str(value)).replace(self.n, "n")

    def outcome(self, call: Callable[[], Any]) -> Any:
        """Return the error that a call raises, or None."""
        found = _outcome(call)
        return None if found == "no error" else {"error": found}

    def answer(self, found: Any) -> Any:
        """Return the sorted rows of a DataFrame with its columns; other values as they are."""
        if not hasattr(found, "collect"):
            return self.plain(found)
        rows = [self.plain(list(row)) for row in found.collect()]
        return [found.columns, sorted(rows, key=json.dumps)]


CALLS: dict[str, Callable[[Cell], Any]] = {}


def cell(function: Callable[[Cell], Any]) -> Callable[[Cell], Any]:
    CALLS[function.__name__] = function
    return function


def statements(text: str) -> Iterator[tuple[str, Callable[[Cell], Any]]]:
    for part in re.split(r"^-- ", text, flags=re.MULTILINE)[1:]:
        name, _, lines = part.partition("\n")
        yield name.strip(), lambda c, lines=lines: _statements(c, lines)  # type: ignore[misc]


def _statements(c: Cell, lines: str) -> Any:
    *before, last = filter(None, map(str.strip, lines.split(";")))
    c.run(";".join(before))
    if not last.startswith("SCHEMA "):
        return c.sql(last)
    return [[f.name, f.dataType.simpleString(), f.nullable, f.metadata] for f in c.sql(last[7:]).schema]


def cells() -> dict[str, Callable[[Cell], Any]]:
    own = dict(statements(TEXT.read_text()))
    return {**own, **CALLS, **statement_functions.cells(), **dict(statement_settings.cells())}


# --- options ---


def _made(c: Cell, columns: str = "id BIGINT, p BIGINT", by: str = "", **properties: str) -> str:
    given = ", ".join(f"'delta.{n}' = '{v}'" for n, v in properties.items())
    c.run(f"CREATE TABLE {{t}} ({columns}) USING delta {by} " + (f"TBLPROPERTIES ({given})" if given else ""))
    c.run("INSERT INTO {t} VALUES (0, 0), (1, 1), (2, 0)")
    return c.p


@cell
def read_schema_equal(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("id BIGINT, p BIGINT").load(c.p)


@cell
def read_schema_of_fewer_columns(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("id BIGINT").load(c.p)


@cell
def read_schema_in_another_order(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("p BIGINT, id BIGINT").load(c.p)


@cell
def read_schema_of_another_type(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("id STRING, p BIGINT").load(c.p)


@cell
def read_schema_of_another_name(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("id BIGINT, x BIGINT").load(c.p)


@cell
def read_schema_not_null(c: Cell) -> Any:
    _made(c)
    return c.spark.read.format("delta").schema("id BIGINT NOT NULL, p BIGINT").load(c.p)


@cell
def read_schema_of_a_stream(c: Cell) -> Any:
    _made(c)
    return c.spark.readStream.format("delta").schema("id BIGINT, p BIGINT").load(c.p).columns


@cell
def read_schema_of_a_stream_of_another_type(c: Cell) -> Any:
    _made(c)
    return c.spark.readStream.format("delta").schema("id STRING, p BIGINT").load(c.p).columns


@cell
def load_of_a_partition(c: Cell) -> Any:
    return c.load(_made(c, by="PARTITIONED BY (p)") + "/p=1")


@cell
def load_of_a_partition_of_no_row(c: Cell) -> Any:
    return c.load(_made(c, by="PARTITIONED BY (p)") + "/p=7")


@cell
def load_of_a_folder_that_is_no_partition(c: Cell) -> Any:
    return c.load(_made(c, by="PARTITIONED BY (p)") + "/q=1")


@cell
def load_of_a_folder_in_a_table(c: Cell) -> Any:
    return c.load(_made(c) + "/x")


@cell
def load_of_a_version_in_the_path(c: Cell) -> Any:
    return c.load(_made(c) + "@v0")


@cell
def load_of_a_version_in_the_path_and_the_option(c: Cell) -> Any:
    return c.load(_made(c) + "@v0", versionAsOf=1)


@cell
def load_of_a_missing_version_in_the_path(c: Cell) -> Any:
    return c.load(_made(c) + "@v9")


@cell
def load_of_a_time_in_the_path(c: Cell) -> Any:
    return c.load(_made(c) + "@20000101000000000")


@cell
def load_of_a_partition_of_a_version(c: Cell) -> Any:
    return c.load(_made(c, by="PARTITIONED BY (p)") + "/p=1@v1")


@cell
def write_to_a_version_in_the_path(c: Cell) -> Any:
    _made(c)
    c.spark.range(1).write.format("delta").mode("append").save(c.p + "@v0")
    return c.load(c.p).count()


@cell
def builder_of_a_version_in_the_path(c: Cell) -> Any:
    return c.table.forPath(c.spark, _made(c) + "@v0").toDF()


@cell
def metadata_row_id(c: Cell) -> Any:
    return c.load(_made(c, enableRowTracking="true")).select("id", "_metadata.row_id")


@cell
def metadata_row_commit_version(c: Cell) -> Any:
    return c.load(_made(c, enableRowTracking="true")).select("id", "_metadata.row_commit_version")


@cell
def metadata_base_row_id(c: Cell) -> Any:
    _made(c, enableRowTracking="true")
    return c.load(c.p).select("id", "_metadata.base_row_id", "_metadata.default_row_commit_version")


@cell
def metadata_row_id_in_a_condition(c: Cell) -> Any:
    _made(c, enableRowTracking="true")
    return c.load(c.p).where("_metadata.row_id = 1").select("id")


@cell
def metadata_row_id_after_an_update(c: Cell) -> Any:
    _made(c, enableRowTracking="true")
    c.run("UPDATE {t} SET p = 7 WHERE id = 1")
    return c.sql("SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {t}")


@cell
def metadata_row_id_without_row_tracking(c: Cell) -> Any:
    return c.load(_made(c)).select("id", "_metadata.row_id")


@cell
def metadata_fields(c: Cell) -> Any:
    return c.load(_made(c)).select("_metadata").schema["_metadata"].dataType.names


@cell
def metadata_fields_with_row_tracking(c: Cell) -> Any:
    return c.load(_made(c, enableRowTracking="true")).select("_metadata").schema["_metadata"].dataType.names


@cell
def metadata_row_index(c: Cell) -> Any:
    return c.load(_made(c)).selectExpr("id", "_metadata.row_index IS NOT NULL")


@cell
def metadata_file_name(c: Cell) -> Any:
    return c.load(_made(c)).selectExpr("id", "endswith(_metadata.file_name, '.parquet')")


@cell
def hadoop_conf_of_for_path(c: Cell) -> Any:
    return c.table.forPath(c.spark, _made(c), {"fs.a": "b"}).toDF()


@cell
def hadoop_conf_that_is_no_dict(c: Cell) -> Any:
    return c.table.forPath(c.spark, _made(c), 1).toDF()


@cell
def hadoop_conf_with_a_value_that_is_no_string(c: Cell) -> Any:
    return c.table.forPath(c.spark, _made(c), {"fs.a": 1}).toDF()


@cell
def hadoop_conf_by_name(c: Cell) -> Any:
    return c.table.forPath(c.spark, _made(c), hadoopConf={"fs.a": "b"}).toDF()


@cell
def time_after_the_latest(c: Cell) -> Any:
    return c.load(_made(c), timestampAsOf="2100-01-01")


@cell
def time_after_the_latest_in_sql(c: Cell) -> Any:
    _made(c)
    return c.sql("SELECT * FROM {t} TIMESTAMP AS OF '2100-01-01'")


@cell
def time_after_the_latest_permitted_by_the_session(c: Cell) -> Any:
    _made(c)
    c.spark.conf.set("spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled", "true")
    return c.load(c.p, versionAsOf=1)


def _stream(c: Cell, rows: Any, **options: str) -> Any:
    run = rows.writeStream.format("memory").queryName(c.v).trigger(availableNow=True).start()
    run.awaitTermination()
    return c.spark.table(c.v)


@cell
def stream_skips_change_commits(c: Cell) -> Any:
    _made(c)
    c.run("UPDATE {t} SET p = 7 WHERE id = 1; INSERT INTO {t} VALUES (9, 9)")
    return _stream(c, c.spark.readStream.format("delta").option("skipChangeCommits", "true").load(c.p))


@cell
def stream_of_changes_skips_change_commits(c: Cell) -> Any:
    _made(c, enableChangeDataFeed="true")
    c.run("UPDATE {t} SET p = 7 WHERE id = 1; INSERT INTO {t} VALUES (9, 9)")
    rows = c.spark.readStream.format("delta").option("skipChangeCommits", "true").option("readChangeFeed", "true")
    return _stream(c, rows.option("startingVersion", 0).load(c.p).drop("_commit_timestamp"))


@cell
def stream_ignores_deleted_files(c: Cell) -> Any:
    _made(c)
    return _stream(c, c.spark.readStream.format("delta").option("ignoreFileDeletion", "true").load(c.p))


@cell
def stream_to_an_existing_table(c: Cell) -> Any:
    _made(c)
    c.run("CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (5, 5)")
    rows = c.spark.readStream.format("delta").load(c.p)
    rows.writeStream.option("checkpointLocation", c.q).trigger(availableNow=True).toTable(c.n).awaitTermination()
    return c.spark.table(c.n)


@cell
def stream_to_an_existing_table_with_its_format(c: Cell) -> Any:
    _made(c)
    c.run("CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p); INSERT INTO {n} VALUES (5, 5)")
    rows = c.spark.readStream.format("delta").load(c.p).writeStream.format("delta").outputMode("append")
    rows = rows.option("checkpointLocation", c.q).partitionBy("p").trigger(availableNow=True)
    rows.toTable(c.n).awaitTermination()
    return c.spark.table(c.n)


@cell
def stream_to_a_new_table(c: Cell) -> Any:
    _made(c)
    rows = c.spark.readStream.format("delta").load(c.p)
    rows.writeStream.option("checkpointLocation", c.q).trigger(availableNow=True).toTable(
        c.n, format="delta"
    ).awaitTermination()
    return c.spark.table(c.n)


@cell
def stream_to_a_table_of_other_columns(c: Cell) -> Any:
    _made(c)
    c.run("CREATE TABLE {n} (id BIGINT) USING delta")
    rows = c.spark.readStream.format("delta").load(c.p)
    rows.writeStream.option("checkpointLocation", c.q).trigger(availableNow=True).toTable(c.n).awaitTermination()
    return c.spark.table(c.n)


@cell
def stream_to_a_path_of_a_table(c: Cell) -> Any:
    _made(c)
    c.run("CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta")
    rows = c.spark.readStream.table(f"delta.`{c.p}`")
    rows.writeStream.option("checkpointLocation", c.q).trigger(availableNow=True).toTable(c.n).awaitTermination()
    return c.spark.table(c.n)


@cell
def insert_into_with_more_fields_in_a_map(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (m MAP<STRING, STRUCT<a: INT>>) USING delta; INSERT INTO {n} SELECT map('k', struct(1))")
    rows = c.spark.sql("SELECT map('k', named_struct('a', 2, 'b', 3)) AS m")
    rows.write.option("mergeSchema", "true").insertInto(c.n)
    return c.spark.table(c.n)


@cell
def insert_into_with_more_fields_in_a_map_of_the_session(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (m MAP<STRING, STRUCT<a: INT>>) USING delta; INSERT INTO {n} SELECT map('k', struct(1))")
    c.spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    rows = c.spark.sql("SELECT map('k', named_struct('a', 2, 'b', 3)) AS m")
    rows.write.insertInto(c.n)
    return c.spark.table(c.n)


@cell
def insert_into_with_more_fields_in_an_array(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (m ARRAY<STRUCT<a: INT>>) USING delta; INSERT INTO {n} SELECT array(struct(1))")
    rows = c.spark.sql("SELECT array(named_struct('a', 2, 'b', 3)) AS m")
    rows.write.option("mergeSchema", "true").insertInto(c.n)
    return c.spark.table(c.n)


@cell
def append_with_more_fields_in_a_map(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (m MAP<STRING, STRUCT<a: INT>>) USING delta; INSERT INTO {n} SELECT map('k', struct(1))")
    rows = c.spark.sql("SELECT map('k', named_struct('a', 2, 'b', 3)) AS m")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(c.n)
    return c.spark.table(c.n)


def _history_of_a_stream(c: Cell, mode: str) -> Any:
    """Write two batches, the second one after a new start."""
    _made(c)
    for _ in range(2):
        rows = c.spark.readStream.format("delta").option("skipChangeCommits", "true").load(c.p)
        rows = rows.groupBy("p").count() if mode == "complete" else rows
        writer = rows.writeStream.format("delta").option("checkpointLocation", c.q).outputMode(mode)
        query = writer.trigger(availableNow=True).toTable(c.n)
        query.awaitTermination()
        c.run("INSERT INTO {t} VALUES (7, 7)")
    history = c.spark.sql(f"DESCRIBE HISTORY {c.n}").where("version > 0")  # after CREATE TABLE
    history = history.selectExpr(
        "version",
        "operation",
        "operationParameters['outputMode']",
        "operationParameters['epochId']",
        f"operationParameters['queryId'] = '{query.id}' AS is_the_query",
        "isBlindAppend",
    )
    return [c.answer(history), c.answer(c.spark.table(c.n))]


@cell
def history_of_an_appending_stream(c: Cell) -> Any:
    return _history_of_a_stream(c, "append")


@cell
def history_of_a_complete_stream(c: Cell) -> Any:
    return _history_of_a_stream(c, "complete")


# --- names ---


@cell
def change_feed_of_a_name(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    c.run("INSERT INTO {n} VALUES (1)")
    rows = c.spark.read.option("readChangeFeed", "true").option("startingVersion", 0).table(c.n)
    return rows.drop("_commit_timestamp")


@cell
def change_feed_up_to_a_version_before_a_new_column(c: Cell) -> Any:
    c.run("CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    c.run("INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD COLUMN b INT")
    return c.load(c.p, readChangeFeed="true", startingVersion=0, endingVersion=1).drop("_commit_timestamp")


@cell
def change_feed_of_a_name_with_the_format(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    c.run("INSERT INTO {n} VALUES (1)")
    rows = c.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).table(c.n)
    return rows.drop("_commit_timestamp")


@cell
def change_feed_of_a_stream_of_a_name(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    c.run("INSERT INTO {n} VALUES (1)")
    rows = c.spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0).table(c.n)
    return _stream(c, rows.drop("_commit_timestamp"))


@cell
def list_columns_of_the_catalog(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', p STRING, v VARCHAR(3)) USING delta PARTITIONED BY (p)")
    return [[f.name, f.description, f.dataType, f.nullable, f.isPartition] for f in c.spark.catalog.listColumns(c.n)]


@cell
def get_table_of_the_catalog(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT) USING delta COMMENT 'words'")
    found = c.spark.catalog.getTable(c.n)
    return [found.name, found.catalog, found.namespace, found.description, found.tableType, found.isTemporary]


@cell
def schema_with_metadata_of_a_column(c: Cell) -> Any:
    rows = c.spark.range(1).select(F.col("id").alias("id", metadata={"a": "b"}))
    rows.write.format("delta").save(c.p)
    return c.load(c.p).schema.jsonValue()["fields"]


@cell
def schema_of_builder(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', s STRUCT<a: INT NOT NULL COMMENT 'x'>) USING delta")
    return c.table.forName(c.spark, c.n).toDF().schema.jsonValue()["fields"]


@cell
def schema_of_load(c: Cell) -> Any:
    c.run("CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key', s STRUCT<a: INT NOT NULL COMMENT 'x'>) USING delta")
    return c.load(c.p).schema.jsonValue()["fields"]


@cell
def schema_of_load_with_column_mapping(c: Cell) -> Any:
    c.run(
        "CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key') USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    return c.load(c.p).schema.jsonValue()["fields"]


@cell
def schema_of_a_stream(c: Cell) -> Any:
    c.run("CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key') USING delta")
    return c.spark.readStream.format("delta").load(c.p).schema.jsonValue()["fields"]


@cell
def schema_of_the_change_feed(c: Cell) -> Any:
    c.run(
        "CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key') USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    return c.load(c.p, readChangeFeed="true", startingVersion=0).schema.jsonValue()["fields"]


@cell
def schema_of_columns_that_are_not_null_written(c: Cell) -> Any:
    c.spark.range(1).write.format("delta").save(c.p)
    return c.load(c.p).schema.jsonValue()["fields"]


@cell
def schema_with_metadata_written_again(c: Cell) -> Any:
    c.run(
        "CREATE TABLE {n} (id BIGINT GENERATED ALWAYS AS IDENTITY, d INT DEFAULT 3, g INT GENERATED ALWAYS AS (d + 1), "
        "c CHAR(3) NOT NULL COMMENT 'x') USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    c.spark.table(c.n).write.format("delta").save(c.p)
    return c.sql("SHOW CREATE TABLE {t}")


# --- arguments of builders ---


def _arguments(name: str, call: Callable[[Any, Any, Any], Any]) -> None:
    def run(c: Cell) -> Any:
        table = c.table.forPath(c.spark, _made(c))
        return call(table, c.spark.range(3).alias("s"), c)

    CALLS[f"argument_{name}"] = run


for _name, _call in {
    "delete_number": lambda t, s, c: t.delete(1),
    "delete_column": lambda t, s, c: t.delete(F.col("id") == 1),
    "delete_bool": lambda t, s, c: t.delete(True),
    "update_condition_number": lambda t, s, c: t.update(1, {"p": "1"}),
    "update_without_set": lambda t, s, c: t.update("id = 1"),
    "update_set_alone": lambda t, s, c: t.update({"p": "1"}),
    "update_set_list": lambda t, s, c: t.update("id = 1", ["p"]),
    "update_set_number": lambda t, s, c: t.update("id = 1", {"p": 1}),
    "update_set_key": lambda t, s, c: t.update("id = 1", {1: "1"}),
    "update_set_key_column": lambda t, s, c: t.update("id = 1", {F.col("p"): "1"}),
    "update_set_by_name": lambda t, s, c: t.update(set={"p": "1"}),
    "update_set_twice": lambda t, s, c: t.update({"p": "1"}, {"p": "1"}),
    "merge_source_text": lambda t, s, c: t.merge("s", "s.id = id"),
    "merge_condition_number": lambda t, s, c: t.merge(s, 1),
    "merge_condition_none": lambda t, s, c: t.merge(s, None),
    "merge_matched_update_condition": lambda t, s, c: t.merge(s, "false").whenMatchedUpdate(1, {"p": "1"}),
    "merge_matched_update_nothing": lambda t, s, c: t.merge(s, "false").whenMatchedUpdate(),
    "merge_matched_update_set": lambda t, s, c: t.merge(s, "false").whenMatchedUpdate(set="p = 1"),
    "merge_matched_update_value": lambda t, s, c: t.merge(s, "false").whenMatchedUpdate(set={"p": 1}),
    "merge_matched_update_all_condition": lambda t, s, c: t.merge(s, "false").whenMatchedUpdateAll(1),
    "merge_matched_delete_condition": lambda t, s, c: t.merge(s, "false").whenMatchedDelete(1),
    "merge_insert_values": lambda t, s, c: t.merge(s, "false").whenNotMatchedInsert(values="*"),
    "merge_insert_values_key": lambda t, s, c: t.merge(s, "false").whenNotMatchedInsert(values={1: "1"}),
    "merge_insert_nothing": lambda t, s, c: t.merge(s, "false").whenNotMatchedInsert(),
    "merge_insert_all_condition": lambda t, s, c: t.merge(s, "false").whenNotMatchedInsertAll(1),
    "merge_by_source_update": lambda t, s, c: t.merge(s, "false").whenNotMatchedBySourceUpdate(),
    "merge_by_source_delete": lambda t, s, c: t.merge(s, "false").whenNotMatchedBySourceDelete(1),
    "merge_with_schema_evolution": lambda t, s, c: t.merge(s, "false").withSchemaEvolution(1),
    "alias_number": lambda t, s, c: t.alias(1),
    "history_text": lambda t, s, c: t.history("1"),
    "history_none": lambda t, s, c: t.history(None).count(),
    "history_float": lambda t, s, c: t.history(1.5),
    "vacuum_text": lambda t, s, c: t.vacuum("1"),
    "vacuum_none": lambda t, s, c: t.vacuum(None).count(),
    "restore_version_text": lambda t, s, c: t.restoreToVersion("0"),
    "restore_version_float": lambda t, s, c: t.restoreToVersion(0.0),
    "restore_version_bool": lambda t, s, c: t.restoreToVersion(False),
    "restore_timestamp_number": lambda t, s, c: t.restoreToTimestamp(1),
    "generate_number": lambda t, s, c: t.generate(1),
    "generate_mode": lambda t, s, c: t.generate("x"),
    "upgrade_text": lambda t, s, c: t.upgradeTableProtocol("1", 2),
    "upgrade_writer_text": lambda t, s, c: t.upgradeTableProtocol(1, "2"),
    "feature_number": lambda t, s, c: t.addFeatureSupport(1),
    "feature_unknown": lambda t, s, c: t.addFeatureSupport("x"),
    "drop_feature_number": lambda t, s, c: t.dropFeatureSupport(1),
    "drop_feature_truncate": lambda t, s, c: t.dropFeatureSupport("x", 1),
    "optimize_where_number": lambda t, s, c: t.optimize().where(1),
    "optimize_zorder_number": lambda t, s, c: t.optimize().executeZOrderBy(1),
    "optimize_zorder_list": lambda t, s, c: t.optimize().executeZOrderBy(["id"]).count(),
    "optimize_zorder_nothing": lambda t, s, c: t.optimize().executeZOrderBy().count(),
    "clone_target_number": lambda t, s, c: t.clone(1),
    "clone_shallow_text": lambda t, s, c: t.clone(c.q, "x"),
    "clone_replace_text": lambda t, s, c: t.clone(c.q, True, "x"),
    "clone_properties_list": lambda t, s, c: t.clone(c.q, True, False, []),
    "clone_at_version_text": lambda t, s, c: t.cloneAtVersion("0", c.q, True),
    "clone_at_timestamp_number": lambda t, s, c: t.cloneAtTimestamp(0, c.q, True),
    "for_path_number": lambda t, s, c: c.table.forPath(c.spark, 1),
    "for_path_without_session": lambda t, s, c: c.table.forPath(None, c.p),
    "for_name_number": lambda t, s, c: c.table.forName(c.spark, 1),
    "is_delta_table_number": lambda t, s, c: c.table.isDeltaTable(c.spark, 1),
    "convert_number": lambda t, s, c: c.table.convertToDelta(c.spark, 1),
    "convert_schema": lambda t, s, c: c.table.convertToDelta(c.spark, f"parquet.`{c.q}`", 1),
    "create_name_number": lambda t, s, c: c.table.create(c.spark).tableName(1),
    "create_location_number": lambda t, s, c: c.table.create(c.spark).location(1),
    "create_comment_number": lambda t, s, c: c.table.create(c.spark).comment(1),
    "create_column_number": lambda t, s, c: c.table.create(c.spark).addColumn(1, "INT"),
    "create_column_type": lambda t, s, c: c.table.create(c.spark).addColumn("a", 1),
    "create_column_without_type": lambda t, s, c: c.table.create(c.spark).addColumn("a"),
    "create_column_nullable": lambda t, s, c: c.table.create(c.spark).addColumn("a", "INT", nullable=1),
    "create_column_comment": lambda t, s, c: c.table.create(c.spark).addColumn("a", "INT", comment=1),
    "create_column_generated": lambda t, s, c: c.table.create(c.spark).addColumn("a", "INT", generatedAlwaysAs=1),
    "create_column_default_and_always": lambda t, s, c: c.table.create(c.spark).addColumn(
        "a", "INT", generatedAlwaysAs="1", generatedByDefaultAs="1"
    ),
    "create_columns_text": lambda t, s, c: c.table.create(c.spark).addColumns("a INT"),
    "create_columns_mixed": lambda t, s, c: c.table.create(c.spark).addColumns([1]),
    "create_partition_number": lambda t, s, c: c.table.create(c.spark).partitionedBy(1),
    "create_partition_mixed": lambda t, s, c: c.table.create(c.spark).partitionedBy("a", 1),
    "create_cluster_number": lambda t, s, c: c.table.create(c.spark).clusterBy(1),
    "create_property_key": lambda t, s, c: c.table.create(c.spark).property(1, "a"),
    "create_property_value": lambda t, s, c: c.table.create(c.spark).property("a", 1),
    "create_without_a_name": lambda t, s, c: c.table.create(c.spark).addColumn("a", "INT").execute(),
}.items():
    _arguments(_name, _call)


# --- settings that permit casts, nulls, and columns of no type ---


def _off(c: Cell, name: str) -> None:
    c.spark.conf.set(f"spark.databricks.delta.{name}", "false")


@cell
def overwrite_of_another_type_without_implicit_casts(c: Cell) -> Any:
    _made(c)
    _off(c, "dml.insert.dfByName.allowImplicitCasts")
    c.spark.sql("SELECT '12' AS id, 0L AS p").write.format("delta").mode("overwrite").save(c.p)
    return c.load(c.p)


@cell
def append_of_nulls_without_implicit_casts(c: Cell) -> Any:
    _made(c)
    _off(c, "dml.insert.dfByName.allowImplicitCasts")
    c.spark.sql("SELECT NULL AS id, 5L AS p").write.format("delta").mode("append").save(c.p)
    return c.load(c.p)


@cell
def insert_into_of_another_type_without_implicit_casts(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (id BIGINT) USING delta")
    _off(c, "dml.insert.dfByName.allowImplicitCasts")
    c.spark.sql("SELECT '12' AS id").write.insertInto(c.n)
    return c.spark.table(c.n)


@cell
def insert_by_name_of_other_fields_without_implicit_casts(c: Cell) -> Any:
    c.run("CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta")
    _off(c, "dml.insert.dfByName.allowImplicitCasts")
    c.run("INSERT INTO {n} BY NAME SELECT named_struct('b', 2L, 'a', 1L) AS s")
    return c.spark.table(c.n)


@cell
def columns_that_are_replaced_without_nullable_ingest(c: Cell) -> Any:
    c.run("CREATE TABLE {t} (a INT, b INT, g INT GENERATED ALWAYS AS (a + 1)) USING delta")
    _off(c, "generatedColumn.allowNullableIngest.enabled")
    rows = c.spark.sql("SELECT 3 AS a").write.format("delta").mode("overwrite")
    rows.option("overwriteSchema", "true").save(c.p)
    return c.load(c.p)


def _void(c: Cell, name: str) -> None:
    c.spark.sql("SELECT 1 AS id, NULL AS v, named_struct('a', 1, 'b', NULL) AS s").write.format("delta").save(c.p)
    c.spark.conf.set(f"spark.databricks.delta.{name}", "true")


@cell
def void_columns_that_are_dropped(c: Cell) -> Any:
    _void(c, "createDataFrame.dropNullColumns")
    return [c.load(c.p).schema.simpleString(), c.answer(c.sql("SELECT * FROM {t}"))]


@cell
def void_columns_of_a_builder_that_are_dropped(c: Cell) -> Any:
    _void(c, "createDataFrame.dropNullColumns")
    table = c.table.forPath(c.spark, c.p)
    table.update(set={"id": "id + 1"})
    return [table.toDF().schema.simpleString(), c.answer(c.load(c.p))]


@cell
def void_columns_of_a_stream_that_are_dropped(c: Cell) -> Any:
    c.spark.sql("SELECT 1 AS id, NULL AS v").write.format("delta").save(c.p)
    c.spark.conf.set("spark.databricks.delta.streaming.createDataFrame.dropNullColumns", "true")
    rows = c.spark.readStream.format("delta").load(c.p)
    seen: list[Any] = []
    run = rows.writeStream.foreachBatch(lambda batch, _: seen.append(c.answer(batch)))
    run.option("checkpointLocation", c.q).trigger(availableNow=True).start().awaitTermination()
    return seen


# --- merges ---


@cell
def merge_update_all_without_a_column(c: Cell) -> Any:
    table = c.table.forPath(c.spark, _made(c)).alias("t")
    table.merge(c.spark.range(2).alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()
    return c.load(c.p)


@cell
def merge_insert_all_without_a_column(c: Cell) -> Any:
    table = c.table.forPath(c.spark, _made(c)).alias("t")
    table.merge(c.spark.range(7, 9).alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    return c.load(c.p)


@cell
def merge_evolving_without_a_column(c: Cell) -> Any:
    table = c.table.forPath(c.spark, _made(c)).alias("t")
    rows = c.spark.range(2, 9, 5).selectExpr("id", "id AS x").alias("s")
    merge = table.merge(rows, "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    return c.load(c.p)


@cell
def merge_into_a_view_by_name(c: Cell) -> Any:
    _made(c)
    c.load(c.p).createOrReplaceTempView(c.v)
    return c.table.forName(c.spark, c.v).toDF()


@cell
def builder_of_a_path_as_name(c: Cell) -> Any:
    return c.table.forName(c.spark, f"delta.`{_made(c)}`").toDF()


@cell
def cached_view_is_changed(c: Cell) -> Any:
    _made(c)
    c.load(c.p).createOrReplaceTempView(c.v)
    c.spark.table(c.v).cache().count()
    c.run("DELETE FROM {v} WHERE id = 1")
    return c.load(c.p)


@cell
def view_of_a_dataframe_with_a_filter_is_changed(c: Cell) -> Any:
    _made(c)
    c.load(c.p).where("p = 0").createOrReplaceTempView(c.v)
    c.run("DELETE FROM {v} WHERE id < 2")
    return c.load(c.p)


@cell
def view_of_a_dataframe_of_a_version_is_changed(c: Cell) -> Any:
    _made(c)
    c.load(c.p, versionAsOf=1).createOrReplaceTempView(c.v)
    c.run("DELETE FROM {v} WHERE id < 2")
    return c.load(c.p)


@cell
def view_of_a_builder_is_changed(c: Cell) -> Any:
    c.table.forPath(c.spark, _made(c)).toDF().createOrReplaceTempView(c.v)
    c.run("UPDATE {v} SET p = 7 WHERE id < 2")
    return c.load(c.p)


def _outcome(call: Callable[[], Any]) -> Any:
    """Return an error as `outcome` does, with the classes of Python that catch it."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as e:
            raised.append(e)
            print(f"{type(e).__name__}: {str(e)[:600]}", file=sys.stderr)
            raise

    found = outcome(run)
    if not raised:
        return found
    return [[*found[0], *(k.__name__ for k in BUILTIN if isinstance(raised[0], k))], found[1]]


def main() -> None:
    folder, is_peer = Path(sys.argv[1]), "peer" in sys.argv[2:3]
    spark, table = session(folder, is_peer)
    if is_peer:
        spark.conf.set(FASTER, "1")
    before = dict(spark.sql("SET").collect())
    wanted = sys.argv[3 if is_peer else 2 :]
    for number, (name, run) in enumerate(cells().items()):
        if wanted and not any(fnmatchcase(name, each) for each in wanted):
            continue
        place = Cell(spark, table, folder, number)
        found: list[Any] = []
        error = _outcome(lambda run=run, found=found, place=place: found.append(place.answer(run(place))))  # type: ignore[misc]
        print(json.dumps([name, found[0] if found else {"error": error}]), flush=True)
        for key, text in spark.sql("SET").collect():
            if key not in before:
                spark.conf.unset(key)
            elif text != before[key]:
                spark.conf.set(key, before[key])
    spark.stop()


if __name__ == "__main__":
    main()
