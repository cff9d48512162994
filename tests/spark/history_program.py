"""The history of each way in which programs of delta-spark change a table.

It prints, by way, the operation, its parameters and the names of its metrics as JSON. With ``peer`` as its second
argument the session is one of delta-spark: so the answers that `test_history` expects were recorded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.spark.latest_program import Tables, run

#: A statement on ``{t}``, a table of 4 rows with the columns ``id``, ``p`` and ``v``; ``{n}`` is a name that is free.
STATEMENTS = {
    "ctas": "CREATE TABLE {n} USING delta AS SELECT 1 AS x, 2 AS y",
    "ctas_with_clauses": "CREATE TABLE {n} USING delta PARTITIONED BY (y) COMMENT 'c' TBLPROPERTIES ('own' = 'v') "
    "AS SELECT 1 AS x, 2 AS y",
    "ctas_clustered": "CREATE TABLE {n} USING delta CLUSTER BY (x) AS SELECT 1 AS x, 2 AS y",
    "ctas_at_a_place": "CREATE TABLE {n} USING delta LOCATION '{place}' AS SELECT 1 AS x",
    "ctas_at_a_path": "CREATE TABLE delta.`{place}` USING delta AS SELECT 1 AS x",
    "ctas_if_not_exists": "CREATE TABLE IF NOT EXISTS {n} USING delta AS SELECT 1 AS x",
    "create_or_replace_new_as": "CREATE OR REPLACE TABLE {n} USING delta AS SELECT 1 AS x",
    "create_or_replace_as": "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS x",
    "replace_as": "REPLACE TABLE {t} USING delta AS SELECT 1 AS x",
    "replace_partitioned_as": "REPLACE TABLE {t} USING delta PARTITIONED BY (x) COMMENT 'c' AS SELECT 1 AS x, 2 AS y",
    "create": "CREATE TABLE {n} (x INT) USING delta",
    "create_with_clauses": "CREATE TABLE {n} (x INT, y INT) USING delta PARTITIONED BY (y) COMMENT 'c' "
    "TBLPROPERTIES ('own' = 'v')",
    "create_clustered": "CREATE TABLE {n} (x INT, y INT) USING delta CLUSTER BY (x, y)",
    "create_at_a_place": "CREATE TABLE {n} (x INT) USING delta LOCATION '{place}'",
    "create_at_a_path": "CREATE TABLE delta.`{place}` (x INT) USING delta",
    "create_or_replace_new": "CREATE OR REPLACE TABLE {n} (x INT) USING delta",
    "create_or_replace": "CREATE OR REPLACE TABLE {t} (x INT) USING delta",
    "replace": "REPLACE TABLE {t} (x INT) USING delta TBLPROPERTIES ('own' = 'v')",
    "create_like": "CREATE TABLE {n} LIKE {t}",
    "insert": "INSERT INTO {t} VALUES (9, 9, 'n')",
    "insert_by_name": "INSERT INTO {t} BY NAME SELECT 9L AS id",
    "insert_overwrite": "INSERT OVERWRITE {t} VALUES (9, 9, 'n')",
    "insert_overwrite_partition": "INSERT OVERWRITE {parted} PARTITION (p = 1) SELECT 9L, 'n'",
    "insert_replace_where": "INSERT INTO {t} REPLACE WHERE p = 1 VALUES (9, 1, 'n')",
    "delete": "DELETE FROM {t} WHERE id = 1",
    "delete_all": "DELETE FROM {t}",
    "delete_partition": "DELETE FROM {parted} WHERE p = 1",
    "delete_nothing": "DELETE FROM {t} WHERE id = 77",
    "delete_by_two": "DELETE FROM {t} WHERE id > 1 AND v = 'v'",
    "delete_with_vectors": "DELETE FROM {vectors} WHERE id = 1",
    "update": "UPDATE {t} SET v = 'u' WHERE id = 1",
    "update_all": "UPDATE {t} SET v = 'u'",
    "update_with_vectors": "UPDATE {vectors} SET v = 'u' WHERE id = 1",
    "merge": "MERGE INTO {t} t USING (SELECT 1L AS id UNION ALL SELECT 9L) s ON t.id = s.id "
    "WHEN MATCHED AND t.p = 1 THEN UPDATE SET v = 'm' WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN DELETE",
    "merge_with_vectors": "MERGE INTO {vectors} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "merge_insert_only": "MERGE INTO {t} t USING (SELECT 9L AS id, 9L AS p, 'n' AS v) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
    "optimize": "OPTIMIZE {t}",
    "optimize_where": "OPTIMIZE {parted} WHERE p = 1",
    "optimize_zorder": "OPTIMIZE {t} ZORDER BY (id, p)",
    "optimize_clustered": "OPTIMIZE {clustered}",
    "optimize_full": "OPTIMIZE {clustered} FULL",
    "reorg_purge": "REORG TABLE {purged} APPLY (PURGE)",
    "vacuum": "VACUUM {t}",
    "vacuum_hours": "VACUUM {t} RETAIN 200 HOURS",
    "vacuum_dry": "VACUUM {t} DRY RUN",
    "vacuum_lite": "VACUUM {t} LITE",
    "restore_version": "RESTORE TABLE {t} TO VERSION AS OF 1",
    "analyze": "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "analyze_delta": "ANALYZE TABLE {t} COMPUTE DELTA STATISTICS",
    "set_properties": "ALTER TABLE {t} SET TBLPROPERTIES ('own' = 'v', 'delta.appendOnly' = 'true')",
    "unset_properties": "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('own')",
    "add_columns": "ALTER TABLE {t} ADD COLUMNS (w INT COMMENT 'c' FIRST, x STRING AFTER id)",
    "add_nested_column": "ALTER TABLE {nested} ADD COLUMN s.z INT",
    "comment_column": "ALTER TABLE {t} ALTER COLUMN v COMMENT 'c'",
    "move_column": "ALTER TABLE {t} ALTER COLUMN v FIRST",
    "drop_not_null": "ALTER TABLE {strict} ALTER COLUMN id DROP NOT NULL",
    "set_default": "ALTER TABLE {defaults} ALTER COLUMN v SET DEFAULT 'd'",
    "drop_default": "ALTER TABLE {defaults} ALTER COLUMN v DROP DEFAULT",
    "widen": "ALTER TABLE {narrow} ALTER COLUMN i TYPE BIGINT",
    "replace_columns": "ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, p BIGINT, v STRING COMMENT 'c')",
    "rename_column": "ALTER TABLE {mapped} RENAME COLUMN v TO w",
    "drop_column": "ALTER TABLE {mapped} DROP COLUMN v",
    "drop_columns": "ALTER TABLE {mapped} DROP COLUMNS (v, p)",
    "add_constraint": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id >= 0)",
    "drop_constraint": "ALTER TABLE {checked} DROP CONSTRAINT c",
    "cluster_by": "ALTER TABLE {clustered} CLUSTER BY (p)",
    "cluster_by_none": "ALTER TABLE {clustered} CLUSTER BY NONE",
    "cluster_by_new": "ALTER TABLE {t} CLUSTER BY (id)",
    "drop_feature": "ALTER TABLE {emptied} DROP FEATURE deletionVectors",
    "comment_table": "COMMENT ON TABLE {t} IS 'c'",
    "comment_table_none": "COMMENT ON TABLE {t} IS NULL",
    "sync_identity": "ALTER TABLE {identity} ALTER COLUMN k SYNC IDENTITY",
    "shallow_clone": "CREATE TABLE {n} SHALLOW CLONE {t}",
    "shallow_clone_version": "CREATE TABLE {n} SHALLOW CLONE {t} VERSION AS OF 1 TBLPROPERTIES ('own' = 'v')",
    "shallow_clone_replaces": "CREATE OR REPLACE TABLE {emptyone} SHALLOW CLONE {t}",
    "convert": "CONVERT TO DELTA parquet.`{parquet}`",
    "convert_partitioned": "CONVERT TO DELTA parquet.`{parquet_by}` PARTITIONED BY (p BIGINT)",
    "truncate": "TRUNCATE TABLE {t}",
    "reorg_upgrade": "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
}  # fmt: skip

Way = Callable[[Tables, str], Any]


def _rows(t: Tables, columns: str = "id, id % 2 AS p, 'n' AS v", num_rows: int = 2) -> Any:
    return t.spark.range(num_rows).selectExpr(*columns.split(", ")).coalesce(1).write.format("delta")


def _new(t: Tables, columns: str = "id, id % 2 AS p, 'n' AS v") -> Any:
    return t.spark.range(2).selectExpr(*columns.split(", ")).coalesce(1)


def _place(t: Tables, name: str) -> str:
    return f"{t.folder}/places/{name}"


#: A call with a table as in `STATEMENTS`, by its name; it may make another one of the name and ``_new``.
CALLS: dict[str, Way] = {
    "save": lambda t, n: _rows(t).save(_place(t, n)),
    "save_partitioned": lambda t, n: _rows(t).partitionBy("p").option("own", "v").save(_place(t, n)),
    "save_as_table": lambda t, n: _rows(t).saveAsTable(f"{n}_new"),
    "save_as_table_partitioned": lambda t, n: _rows(t).partitionBy("p").saveAsTable(f"{n}_new"),
    "save_as_table_clustered": lambda t, n: _rows(t).clusterBy("p").saveAsTable(f"{n}_new"),
    "save_as_table_at_a_path": lambda t, n: _rows(t).option("path", _place(t, n)).saveAsTable(f"{n}_new"),
    "save_as_table_overwrites_nothing": lambda t, n: _rows(t).mode("overwrite").saveAsTable(f"{n}_new"),
    "save_as_table_appends_to_nothing": lambda t, n: _rows(t).mode("append").saveAsTable(f"{n}_new"),
    "save_as_table_ignore": lambda t, n: _rows(t).mode("ignore").saveAsTable(f"{n}_new"),
    "save_as_table_appends": lambda t, n: _rows(t).mode("append").saveAsTable(n),
    "save_as_table_appends_column": lambda t, n: (
        _rows(t, "id, 1 AS z").mode("append").option("mergeSchema", "true").saveAsTable(n)
    ),
    "save_as_table_overwrites": lambda t, n: _rows(t).mode("overwrite").saveAsTable(n),
    "save_as_table_overwrites_schema": lambda t, n: (
        _rows(t, "id, 1 AS z").mode("overwrite").option("overwriteSchema", "true").saveAsTable(n)
    ),
    "save_as_table_overwrites_partitioning": lambda t, n: (
        _rows(t).mode("overwrite").partitionBy("p").option("overwriteSchema", "true").saveAsTable(n)
    ),
    "save_as_table_merges_schema": lambda t, n: (
        _rows(t, "id, 1 AS z").mode("overwrite").option("mergeSchema", "true").saveAsTable(n)
    ),
    "save_as_table_replace_where": lambda t, n: (
        _rows(t, "id, 1L AS p, 'n' AS v").mode("overwrite").option("replaceWhere", "p = 1").saveAsTable(n)
    ),
    "save_as_table_dynamic": lambda t, n: (
        _rows(t).mode("overwrite").option("partitionOverwriteMode", "dynamic").saveAsTable(_parted(t, n))
    ),
    "insert_into_call": lambda t, n: _rows(t).insertInto(n),
    "insert_into_overwrites": lambda t, n: _rows(t).mode("overwrite").insertInto(n),
    "append_path": lambda t, n: _rows(t).mode("append").save(_path(t, n)),
    "append_path_merge": lambda t, n: (
        _rows(t, "id, 1 AS z").mode("append").option("mergeSchema", "true").save(_path(t, n))
    ),
    "overwrite_path": lambda t, n: _rows(t).mode("overwrite").save(_path(t, n)),
    "overwrite_path_schema": lambda t, n: (
        _rows(t, "id, 1 AS z").mode("overwrite").option("overwriteSchema", "true").save(_path(t, n))
    ),
    "overwrite_path_where": lambda t, n: (
        _rows(t, "id, 1L AS p, 'n' AS v").mode("overwrite").option("replaceWhere", "p = 1").save(_path(t, n))
    ),
    "overwrite_path_dynamic": lambda t, n: (
        _rows(t).mode("overwrite").option("partitionOverwriteMode", "dynamic").save(_path(t, _parted(t, n)))
    ),
    "rearrange": lambda t, n: _rows(t).mode("overwrite").option("dataChange", "false").save(_path(t, n)),
    "write_to_create": lambda t, n: _new(t).writeTo(f"{n}_new").using("delta").create(),
    "write_to_create_with_clauses": lambda t, n: (
        _new(t).writeTo(f"{n}_new").using("delta").partitionedBy("p").tableProperty("own", "v").create()
    ),
    "write_to_replace": lambda t, n: _new(t).writeTo(n).using("delta").replace(),
    "write_to_create_or_replace": lambda t, n: _new(t).writeTo(n).using("delta").createOrReplace(),
    "write_to_append": lambda t, n: _new(t).writeTo(n).append(),
    "write_to_overwrite": lambda t, n: _new(t, "id, 1L AS p, 'n' AS v").writeTo(n).overwrite(_column("p = 1")),
    "write_to_overwrite_all": lambda t, n: _new(t).writeTo(n).overwrite(_column("true")),
    "write_to_overwrite_partitions": lambda t, n: _new(t).writeTo(_parted(t, n)).overwritePartitions(),
    "builder_create": lambda t, n: t.table.create(t.spark).tableName(f"{n}_new").addColumn("x", "INT").execute(),
    "builder_create_with_clauses": lambda t, n: (
        t.table.create(t.spark)
        .tableName(f"{n}_new")
        .addColumn("x", "INT")
        .addColumn("y", "INT")
        .partitionedBy("y")
        .comment("c")
        .property("own", "v")
        .execute()
    ),
    "builder_create_at_a_path": lambda t, n: (
        t.table.create(t.spark).location(_place(t, n)).addColumn("x", "INT").clusterBy("x").execute()
    ),
    "builder_create_if_not_exists": lambda t, n: (
        t.table.createIfNotExists(t.spark).tableName(f"{n}_new").addColumn("x", "INT").execute()
    ),
    "builder_replace": lambda t, n: t.table.replace(t.spark).tableName(n).addColumn("x", "INT").execute(),
    "builder_replace_path": lambda t, n: t.table.replace(t.spark).location(_path(t, n)).addColumn("x", "INT").execute(),
    "builder_create_or_replace": lambda t, n: (
        t.table.createOrReplace(t.spark).tableName(n).addColumn("x", "INT").execute()
    ),
    "delete_call": lambda t, n: t.table.forName(t.spark, n).delete("id = 1"),
    "update_call": lambda t, n: t.table.forName(t.spark, n).update("id = 1", {"v": "'u'"}),
    "merge_call": lambda t, n: (
        t.table.forName(t.spark, n)
        .alias("t")
        .merge(_new(t).alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    ),
    "vacuum_call": lambda t, n: t.table.forName(t.spark, n).vacuum(),
    "optimize_call": lambda t, n: t.table.forName(t.spark, n).optimize().executeCompaction(),
    "zorder_call": lambda t, n: t.table.forName(t.spark, n).optimize().executeZOrderBy("id"),
    "restore_call": lambda t, n: t.table.forName(t.spark, n).restoreToVersion(1),
    "restore_time_call": lambda t, n: t.table.forName(t.spark, n).restoreToTimestamp(_time(t, n)),
    "upgrade_call": lambda t, n: t.table.forName(t.spark, n).upgradeTableProtocol(1, 3),
    "feature_call": lambda t, n: t.table.forName(t.spark, n).addFeatureSupport("appendOnly"),
    "drop_feature_call": lambda t, n: t.table.forName(t.spark, _emptied(t, n)).dropFeatureSupport("deletionVectors"),
    "clone_call": lambda t, n: t.table.forName(t.spark, n).clone(_place(t, n), True, False, {"own": "v"}),
    "convert_call": lambda t, n: t.table.convertToDelta(t.spark, f"parquet.`{_parquet(t, n)}`"),
    "stream": lambda t, n: _stream(t, n, "append"),
    "stream_to_a_table": lambda t, n: _stream_to_table(t, n),
}


def _column(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def _path(t: Tables, name: str) -> str:
    return str(t.spark.sql(f"DESCRIBE DETAIL {name}").first().location)


def _made(t: Tables, name: str, columns: str, clauses: str, values: str = "") -> str:
    t.spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {clauses}")
    if values:
        for place in range(2):
            t.spark.sql(f"INSERT INTO {name} {values.replace('#', str(place * 2))}")
    return name


_COLUMNS = "id BIGINT, p BIGINT, v STRING"
_VALUES = "SELECT /*+ COALESCE(1) */ id + # AS id, id % 2 AS p, 'v' AS v FROM range(2)"


def _table(t: Tables, name: str) -> str:
    return _made(t, name, _COLUMNS, "", _VALUES)


def _parted(t: Tables, name: str) -> str:
    return _made(t, f"{name}_parted", _COLUMNS, "PARTITIONED BY (p)", _VALUES)


def _with(t: Tables, name: str, kind: str, *properties: str, columns: str = _COLUMNS) -> str:
    given = ", ".join(f"'delta.{p}" for p in properties)
    return _made(t, f"{name}_{kind}", columns, f"TBLPROPERTIES ({given})", _VALUES if columns == _COLUMNS else "")


def _vectors(t: Tables, name: str) -> str:
    return _with(t, name, "vectors", "enableDeletionVectors' = 'true'")


def _purged(t: Tables, name: str) -> str:
    purged = _with(t, name, "purged", "enableDeletionVectors' = 'true'")
    t.spark.sql(f"DELETE FROM {purged} WHERE id = 1")
    return purged


def _emptied(t: Tables, name: str) -> str:
    emptied = _with(t, name, "emptied", "enableDeletionVectors' = 'true'")
    t.spark.sql(f"ALTER TABLE {emptied} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    return emptied


def _checked(t: Tables, name: str) -> str:
    checked = _made(t, f"{name}_checked", _COLUMNS, "", _VALUES)
    t.spark.sql(f"ALTER TABLE {checked} ADD CONSTRAINT c CHECK (id >= 0)")
    return checked


def _parquet(t: Tables, name: str, *by: str) -> str:
    path = f"{t.folder}/parquet/{name}"
    _new(t).write.partitionBy(*by).parquet(path)
    return path


def _time(t: Tables, name: str) -> str:
    return str(t.spark.sql(f"DESCRIBE HISTORY {name}").where("version = 1").first().timestamp)


def _stream(t: Tables, name: str, mode: str) -> Any:
    rows = t.spark.readStream.format("delta").load(_path(t, name))
    writer = rows.writeStream.format("delta").outputMode(mode).option("checkpointLocation", f"{_place(t, name)}-c")
    writer.trigger(availableNow=True).start(_place(t, name)).awaitTermination()


def _stream_to_table(t: Tables, name: str) -> Any:
    rows = t.spark.readStream.table(name).writeStream.format("delta")
    rows.option("checkpointLocation", f"{_place(t, name)}-c").trigger(availableNow=True).toTable(
        f"{name}_new"
    ).awaitTermination()


#: The tables that a statement may be on.
KINDS: dict[str, Way] = {
    "t": _table,
    "parted": _parted,
    "vectors": _vectors,
    "purged": _purged,
    "emptied": _emptied,
    "checked": _checked,
    "nested": lambda t, n: _made(t, f"{n}_nested", "id INT, s STRUCT<x: INT>", ""),
    "clustered": lambda t, n: _made(t, f"{n}_clustered", _COLUMNS, "CLUSTER BY (id)", _VALUES),
    "strict": lambda t, n: _made(t, f"{n}_strict", "id INT NOT NULL", ""),
    "defaults": lambda t, n: _with(
        t, n, "defaults", "feature.allowColumnDefaults' = 'supported'", columns="id INT, v STRING"
    ),
    "narrow": lambda t, n: _with(t, n, "narrow", "enableTypeWidening' = 'true'", columns="i INT"),
    "mapped": lambda t, n: _with(t, n, "mapped", "columnMapping.mode' = 'name'"),
    "identity": lambda t, n: _made(t, f"{n}_identity", "k BIGINT GENERATED BY DEFAULT AS IDENTITY, x INT", ""),
    "emptyone": lambda t, n: _made(t, f"{n}_emptyone", "x INT", ""),
    "parquet": _parquet,
    "parquet_by": lambda t, n: _parquet(t, n, "p"),
}


def _last(t: Tables, name: str, label: str, before: int | None) -> Any:
    """Return the operation, parameters and metrics of a table's newest commit, None if it is the version ``before``."""
    entry = t.spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()
    if entry.version == before:
        return None
    parameters = {k: _stable(t, v, label) for k, v in entry.operationParameters.items()}
    return [entry.operation, dict(sorted(parameters.items())), sorted(entry.operationMetrics or {})]


def _stable(t: Tables, text: str | None, label: str) -> str | None:
    """Return a parameter's text without what differs each time: places, numbers of columns in plans, ids, times."""
    if text is None:
        return None
    text = text.replace(str(t.folder), "<folder>").replace(label, "<name>")
    text = re.sub(r"#\d+L?", "#", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?|\b1[78]\d{11}\b", "<time>", text)


def _version(t: Tables, name: str) -> int:
    return int(t.spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first().version)


def _answer(t: Tables, label: str, call: Callable[[], Any], tables: dict[str, str], made: list[str]) -> Any:
    known = {name: _version(t, name) for name in tables.values()}
    call()
    found = {}
    for kind, name in tables.items():
        entry = _last(t, name, label, known[name])
        found |= {} if entry is None else {kind: entry}
    for name in made:
        if _is_table(t, name):
            found["new"] = _last(t, name, label, None)
    return found


def _is_table(t: Tables, name: str) -> bool:
    try:
        t.spark.sql(f"DESCRIBE DETAIL {name}").first()
    except Exception:  # noqa: BLE001 (no table)
        return False
    return True


def _by_statement(label: str, text: str, t: Tables) -> Any:
    kinds = {kind: KINDS[kind](t, label) for kind in re.findall(r"{(\w+)}", text) if kind in KINDS}
    sources = {kind for kind in kinds if kind.startswith("parquet")}
    place = _place(t, label)
    made = [f"{label}_new", f"delta.`{place}`", *(f"delta.`{kinds[kind]}`" for kind in sources)]
    tables = {kind: name for kind, name in kinds.items() if kind not in sources}
    statement = text.format(n=f"{label}_new", place=place, **kinds)
    return _answer(t, label, lambda: t.spark.sql(statement).collect(), tables, made)


def _by_call(label: str, call: Way, t: Tables) -> Any:
    name = _table(t, label)
    parted, emptied, parquet = f"{label}_parted", f"{label}_emptied", f"{t.folder}/parquet/{label}"
    made = [f"{label}_new", f"delta.`{_place(t, label)}`", parted, emptied, f"delta.`{parquet}`"]
    return _answer(t, label, lambda: call(t, name), {"t": name}, made)


def _tried(make: Callable[[Tables], Any], t: Tables) -> Any:
    try:
        return make(t)
    except Exception as e:  # noqa: BLE001 (the test shows it)
        return str(e.getCondition() if hasattr(e, "getCondition") else type(e).__name__)


#: Parameters with the text of conditions: delta-spark shows those of its plans, which name columns by numbers.
_CONDITIONS = ("predicate", "matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates")
#: Parameters that only this library has.
_OWN_PARAMETERS = frozenset(("order", "orderBy", "isShallow"))


def comparable(answer: Any) -> Any:
    """Return the operations and parameters of an answer; of conditions, whether there are any."""
    if not isinstance(answer, dict):
        return answer
    return {
        table: [
            operation,
            {
                name: bool(text.strip("[]")) if name in _CONDITIONS else text
                for name, text in parameters.items()
                if name not in _OWN_PARAMETERS
            },
        ]
        for table, (operation, parameters, _) in answer.items()
    }


CASES: dict[str, Callable[[Tables], Any]] = {
    **{n: partial(_tried, partial(_by_statement, f"s_{n}", text)) for n, text in STATEMENTS.items()},
    **{n: partial(_tried, partial(_by_call, f"c_{n}", call)) for n, call in CALLS.items()},
}

if __name__ == "__main__":
    run(CASES, Path(sys.argv[1]), sys.argv[2:3] == ["peer"], sys.argv[3:])
