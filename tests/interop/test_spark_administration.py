"""Clones and changes of the definition beside delta-spark: each library reads, writes and clones what the other made.

They run if `test_spark_tables` does.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, Field, convert_to_deltalake
from delta_core.errors import UnsupportedOperationError
from tests.interop.conftest import Made, plain

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

COLUMNS = "id bigint, p string, s struct<a: int, b: array<struct<c: int>>>, n int NOT NULL, x int"
ROW = "named_struct('a', 1, 'b', array(named_struct('c', 2))), 3, 4"
DV, MAPPED = "'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"
WIDENING = "'delta.enableTypeWidening' = 'true'"


def filled(made: Made, *properties: str) -> Made:
    made.create(COLUMNS, *properties)
    return made.run(f"INSERT INTO {{t}} SELECT id, 'a', {ROW} FROM range(10)", "DELETE FROM {t} WHERE id = 3")


@pytest.mark.parametrize("properties", [(), (DV, MAPPED)], ids=["plain", "vectors and mapping"])
def test_clones_are_read_written_and_cloned_by_both(spark: Any, tmp_path: Path, properties: tuple[str, ...]) -> None:
    source = filled(Made(spark, tmp_path / "a b"), *properties)
    for deep in (False, True):
        clone = Made(spark, tmp_path / f"ours {deep}")
        DeltaTable(source.path).clone(clone.path, deep=deep)
        assert clone.rows() == source.rows()
        clone.run("DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} SELECT * FROM {t} WHERE id = 2")
        assert plain(DeltaTable(clone.path).to_pyarrow_table()) == clone.rows()
        report = DeltaTable(clone.path).verify(deep="rows")
        assert report.ok, report.to_text()
    theirs = Made(spark, tmp_path / "theirs")
    spark.sql(f"CREATE TABLE {theirs.name} SHALLOW CLONE {source.name}")
    assert plain(DeltaTable(theirs.path).to_pyarrow_table()) == source.rows()
    again = Made(spark, tmp_path / "again")
    DeltaTable(theirs.path).clone(again.path)
    assert again.rows() == source.rows()
    DeltaTable(theirs.path).delete("id = 6")
    assert plain(DeltaTable(theirs.path).to_pyarrow_table()) == theirs.rows()


Change = tuple[tuple[str, ...], str, Callable[[DeltaTable], Any]]
CHANGES: dict[str, Change] = {
    "add columns": (
        (),
        "ADD COLUMNS (y double COMMENT 'why', z date)",
        lambda t: t.alter.add_columns([Field("y", "double", metadata={"comment": "why"}), Field("z", "date")]),
    ),
    "add a field": ((), "ADD COLUMNS (s.d string)", lambda t: t.alter.add_column("s.d", "string")),
    "add a mapped column": ((MAPPED,), "ADD COLUMNS (y double)", lambda t: t.alter.add_column("y", "double")),
    "rename": ((MAPPED,), "RENAME COLUMN x TO y", lambda t: t.alter.rename_column("x", "y")),
    "rename a field": ((MAPPED,), "RENAME COLUMN s.a TO y", lambda t: t.alter.rename_column("s.a", "y")),
    "drop": ((MAPPED,), "DROP COLUMN x", lambda t: t.alter.drop_column("x")),
    "drop a field": ((MAPPED,), "DROP COLUMN s.a", lambda t: t.alter.drop_column("s.a")),
    "move": ((), "ALTER COLUMN id AFTER p", lambda t: t.alter.move_column("id", after="p")),
    "comment": ((), "ALTER COLUMN x COMMENT 'c'", lambda t: t.alter.set_column_comment("x", "c")),
    "widen": ((WIDENING,), "ALTER COLUMN x TYPE bigint", lambda t: t.alter.widen_type("x", "bigint")),
    "widen an element": (
        (WIDENING,),
        "ALTER COLUMN s.b.element.c TYPE bigint",
        lambda t: t.alter.widen_type("s.b.element.c", "bigint"),
    ),
    "add a constraint": (
        (),
        "ADD CONSTRAINT small CHECK (id < 100)",
        lambda t: t.alter.add_constraint({"small": "id < 100"}),
    ),
    "set properties": (
        (),
        "SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'a.b' = 'c')",
        lambda t: t.alter.set_table_properties({"delta.appendOnly": "true", "a.b": "c"}),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_the_definition_are_committed_alike(spark: Any, tmp_path: Path, name: str) -> None:
    properties, statement, change = CHANGES[name]
    theirs, ours = Made(spark, tmp_path / "theirs"), Made(spark, tmp_path / "ours")
    theirs.create(COLUMNS, *properties).run(f"INSERT INTO {{t}} SELECT 1L, 'a', {ROW}")
    shutil.copytree(theirs.path, ours.path)
    theirs.run(f"ALTER TABLE {{t}} {statement}")
    change(DeltaTable(ours.path))
    expected = committed(theirs.path)
    if name == "add columns":
        # the method is deltalake's, and so is the name of its operation
        assert expected["commitInfo"]["operation"] == "ADD COLUMNS"
        expected["commitInfo"]["operation"] = "ADD COLUMN"
    assert committed(ours.path) == expected
    assert ours.rows() == theirs.rows() == plain(DeltaTable(theirs.path).to_pyarrow_table())


DROPPED = {
    "deletionVectors": (DV,),
    "columnMapping": (MAPPED,),
    "typeWidening": (WIDENING,),
    "rowTracking": ("'delta.enableRowTracking' = 'true'",),
    "inCommitTimestamp": ("'delta.enableInCommitTimestamps' = 'true'",),
    "v2Checkpoint": ("'delta.checkpointPolicy' = 'v2'",),
}


@pytest.mark.parametrize("feature", DROPPED)
def test_dropped_features_leave_the_same_table(spark: Any, tmp_path: Path, feature: str) -> None:
    theirs, ours = filled(Made(spark, tmp_path / "theirs"), *DROPPED[feature]), Made(spark, tmp_path / "ours")
    shutil.copytree(theirs.path, ours.path)
    theirs.run(f"ALTER TABLE {{t}} DROP FEATURE {feature}")
    DeltaTable(ours.path).alter.drop_feature(feature)
    assert names_of(ours) == names_of(theirs)
    assert ours.rows() == theirs.rows()
    # each library goes on with what the other left, and enables the feature again
    ours.run(
        "INSERT INTO {t} SELECT * FROM {t} WHERE id = 1", f"ALTER TABLE {{t}} SET TBLPROPERTIES ({DROPPED[feature][0]})"
    )
    left = DeltaTable(theirs.path)
    left.update({"n": "n + 1"}, predicate="id = 4")
    name, value = DROPPED[feature][0].replace("'", "").split(" = ")
    left.alter.set_table_properties({name: value})
    assert names_of(ours) == names_of(theirs)
    for made in (ours, theirs):
        assert plain(DeltaTable(made.path).to_pyarrow_table()) == made.rows()


def names_of(made: Made) -> set[str]:
    protocol = DeltaTable(made.path).protocol()
    return {*(protocol.reader_features or ()), *(protocol.writer_features or ())}


def test_restored_versions_are_read_written_and_restored_by_both(spark: Any, tmp_path: Path) -> None:
    made = filled(Made(spark, tmp_path / "t"), DV)
    first = made.rows(versionAsOf=1)
    DeltaTable(made.path).restore(1)
    assert made.rows() == first
    made.run("DELETE FROM {t} WHERE id = 7", "RESTORE TABLE {t} TO VERSION AS OF 2")
    assert plain(DeltaTable(made.path).to_pyarrow_table()) == made.rows() == made.rows(versionAsOf=2)
    DeltaTable(made.path).delete("id = 8")
    made.run("RESTORE TABLE {t} TO VERSION AS OF 1")
    assert plain(DeltaTable(made.path).to_pyarrow_table()) == first


@pytest.mark.parametrize("partitioned", [False, True])
def test_converted_folders_are_the_same_tables(spark: Any, tmp_path: Path, partitioned: bool) -> None:
    folders = Made(spark, tmp_path / "theirs"), Made(spark, tmp_path / "ours")
    rows = spark.range(20).selectExpr("id", "concat('ä ', id % 3) p", "cast(id / 3 as decimal(9, 2)) d", "null x")
    rows = rows.withColumn("x", rows.x.cast("int")).repartition(3)
    (rows.write.partitionBy("p") if partitioned else rows.write).parquet(str(folders[0].path))
    shutil.copytree(folders[0].path, folders[1].path)
    theirs, ours = folders
    tail = " PARTITIONED BY (p string)" if partitioned else ""
    spark.sql(f"CONVERT TO DELTA parquet.`{theirs.path}`{tail}")
    options = {"partition_by": pa.schema([("p", pa.string())]), "partition_strategy": "hive"} if partitioned else {}
    convert_to_deltalake(ours.path, **options)
    assert ours.rows() == theirs.rows() == plain(DeltaTable(theirs.path).to_pyarrow_table())
    assert facts_of_files(ours) == facts_of_files(theirs)
    ours.run("DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} SELECT * FROM {t} WHERE id = 2")
    DeltaTable(theirs.path).delete("id = 5")
    assert plain(DeltaTable(ours.path).to_pyarrow_table()) == ours.rows()
    assert plain(DeltaTable(theirs.path).to_pyarrow_table()) == theirs.rows()
    assert DeltaTable(ours.path).verify(deep="rows").ok


def facts_of_files(made: Made) -> list[dict[str, Any]]:
    """Return sizes, partition values, row counts and bounds of live files, without names."""
    adds = pa.table(DeltaTable(made.path).get_add_actions(flatten=True))
    names = [n for n in adds.column_names if n not in ("path", "modification_time")]
    return sorted(adds.select(sorted(names)).to_pylist(), key=repr)


@pytest.mark.parametrize("properties", [(), (DV,)], ids=["plain", "vectors"])
def test_both_find_the_same_garbage(spark: Any, tmp_path: Path, properties: tuple[str, ...]) -> None:
    made = filled(Made(spark, tmp_path / "t"), *properties)
    made.run("DELETE FROM {t} WHERE id = 4", "OPTIMIZE {t}")
    DeltaTable(made.path).delete("id = 5")
    (made.path / "orphan.parquet").write_bytes(b"")
    (made.path / "_hidden.parquet").write_bytes(b"")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    found = spark.sql(f"VACUUM {made.name} RETAIN 0 HOURS DRY RUN").collect()
    theirs = {row[0].rpartition("/")[2] for row in found}
    ours = DeltaTable(made.path).vacuum(0, full=True, enforce_retention_duration=False)
    assert {name.rpartition("/")[2] for name in ours if not name.endswith("/")} == theirs
    assert "orphan.parquet" in theirs
    before = made.rows()
    DeltaTable(made.path).vacuum(0, full=True, enforce_retention_duration=False, dry_run=False)
    assert made.rows() == before
    made.run("INSERT INTO {t} SELECT * FROM {t} WHERE id = 2", "DELETE FROM {t} WHERE id = 6")
    spark.sql(f"VACUUM {made.name} RETAIN 0 HOURS")
    assert plain(DeltaTable(made.path).to_pyarrow_table()) == made.rows()


def committed(table: Path) -> dict[str, Any]:
    """Return the last commit without what differs from run to run."""
    last = max((table / "_delta_log").glob("0*.json"))
    found: dict[str, Any] = {}
    for line in last.read_text().splitlines():
        ((kind, value),) = json.loads(line).items()
        if kind == "commitInfo":
            value = {n: value[n] for n in ("operation", "operationParameters")}
        elif kind == "metaData":
            value = {n: v for n, v in value.items() if n not in ("id", "createdTime")}
        elif kind == "protocol":
            value = {n: sorted(v) if isinstance(v, list) else v for n, v in value.items()}
        found[kind] = parsed(value)
    return found


def parsed(value: Any) -> Any:
    """Return a value with the JSON texts in it parsed, and without the random part of physical names."""
    if isinstance(value, dict):
        return {k: parsed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [parsed(v) for v in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return parsed(json.loads(value))
    return re.sub(r"col-[0-9a-f-]{36}", "col", value) if isinstance(value, str) else value


def types(fields: Any) -> list[Any]:
    """Return names and types of columns; delta-spark's numbers are not nullable."""
    return [(f.name, types(f.dataType) if hasattr(f.dataType, "fields") else f.dataType.simpleString()) for f in fields]


@pytest.mark.parametrize("statement", ["OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)", "REORG TABLE {t} APPLY (PURGE)"])
def test_results_of_optimize_and_detail_have_the_same_columns_and_values(
    spark: Any, tmp_path: Path, statement: str
) -> None:
    theirs, ours = Made(spark, tmp_path / "theirs"), Made(spark, tmp_path / "ours")
    filled(theirs, DV, "'delta.dataSkippingNumIndexedCols' = '3'").run(
        f"INSERT INTO {{t}} SELECT id, 'b', {ROW} FROM range(10, 12)"
    )
    shutil.copytree(theirs.path, ours.path)
    metrics = []
    for made, run in ((theirs, spark.sql), (ours, lambda text: ds.sql(spark, text))):
        for _ in range(2):  # the second has nothing to do, but to order rows
            done = run(statement.replace("{t}", made.name))
            found = done.collect()[0].metrics.asDict(recursive=True)
            assert abs(found.pop("startTimeMs") / 1000 - time.time()) < 600
            del found["endTimeMs"]  # 0 in delta-spark
            added = found.pop("filesAdded")
            metrics.append((types(done.schema.fields), added["totalFiles"], found))
        if "ZORDER" in statement:  # sizes of files that each library wrote
            metrics.pop()
    half = len(metrics) // 2
    assert metrics[half:] == metrics[:half]
    own = {"id", "location", "lastModified", "sizeInBytes", "createdAt"}
    details = [
        run(f"DESCRIBE DETAIL {made.name}")
        for made, run in ((theirs, spark.sql), (ours, lambda text: ds.sql(spark, text)))
    ]
    assert types(details[0].schema.fields) == types(details[1].schema.fields)
    rows = [{n: v for n, v in d.collect()[0].asDict().items() if n not in own} for d in details]
    assert rows[0] == rows[1]


def test_session_that_has_delta_spark_gets_no_second_format_of_its_name(spark: Any) -> None:
    with pytest.raises(UnsupportedOperationError, match="Found delta-spark in the session"):
        ds.configure(type(spark).builder).getOrCreate()
