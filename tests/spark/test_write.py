"""DataFrames into tables: modes, what is filled and checked, what the log specifies for the files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import (
    CommitConflictError,
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
)
from delta_core.kernel.snapshot import open_context

pytestmark = pytest.mark.spark


def rows(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(path)).snapshot().scan(list(columns) or None).to_table()
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def adds(path: Path) -> list[dict[str, Any]]:
    files = DeltaTable(str(path)).snapshot().files
    return files.columns(["path", "size", "stats", "partitionValues"]).to_pylist()


def data_files(path: Path) -> set[str]:
    found = {str(Path(d, f).relative_to(path)) for d, _, fs in os.walk(path) for f in fs}
    return {f for f in found if "_delta_log" not in f}


def frame(spark: Any, sql: str) -> Any:
    return spark.sql(sql)


# --- modes ---------------------------------------------------------------------------------


def test_write_creates_a_table_and_append_adds_to_it(spark: Any, tmp_path: Path) -> None:
    assert ds.write(spark.range(5), tmp_path) == 0
    assert ds.write(spark.range(5, 8), tmp_path, "append", user_metadata="more") == 1
    assert rows(tmp_path) == [(i,) for i in range(8)]
    assert DeltaTable(str(tmp_path)).snapshot().schema.fields[0].nullable
    assert DeltaTable(str(tmp_path)).snapshot().history(1)[0]["userMetadata"] == "more"


def test_mode_error_and_ignore_leave_a_table_alone(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(2), tmp_path)
    with pytest.raises(TableExistsError):
        ds.write(spark.range(9), tmp_path)
    assert ds.write(spark.range(9), tmp_path, "ignore") is None
    assert rows(tmp_path) == [(0,), (1,)]


def test_overwrite_replaces_every_row(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(5), tmp_path)
    ds.write(spark.range(50, 52), tmp_path, "overwrite")
    assert rows(tmp_path) == [(50,), (51,)]


def test_application_version_is_written_once(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(1), tmp_path, txn=("app", 1))
    assert ds.write(spark.range(1), tmp_path, "append", txn=("app", 1)) is None
    assert ds.write(spark.range(1), tmp_path, "append", txn=("app", 2)) == 1


def test_replace_where_on_a_partition_rewrites_no_file(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT id, id % 2 AS p FROM range(6)"), tmp_path, partition_by="p")
    before = {a["path"] for a in adds(tmp_path) if dict(a["partitionValues"])["p"] == "0"}
    ds.write(frame(spark, "SELECT 99L AS id, 1L AS p"), tmp_path, "overwrite", replace_where="p = 1")
    assert rows(tmp_path) == [(0, 0), (2, 0), (4, 0), (99, 1)]
    assert before <= {a["path"] for a in adds(tmp_path)}


def test_replace_where_on_data_keeps_the_other_rows_of_a_file(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT IF(id = 3, NULL, id) AS id, 'x' AS t FROM range(6)").coalesce(1), tmp_path)
    ds.write(frame(spark, "SELECT 100L AS id, 'y' AS t"), tmp_path, "overwrite", replace_where="id >= 4")
    assert rows(tmp_path) == [(0, "x"), (1, "x"), (100, "y"), (2, "x"), (None, "x")]


def test_rows_outside_the_predicate_are_rejected_and_nothing_is_left(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(6), tmp_path)
    before = data_files(tmp_path)
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        ds.write(spark.range(6), tmp_path, "overwrite", replace_where="id >= 4")
    assert data_files(tmp_path) == before
    assert rows(tmp_path) == [(i,) for i in range(6)]


def test_dynamic_overwrite_replaces_the_partitions_that_are_written(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT id, IF(id = 5, NULL, id % 2) AS p FROM range(6)"), tmp_path, partition_by="p")
    new = frame(spark, "SELECT 9L AS id, 1L AS p UNION ALL SELECT 10L, NULL")
    ds.write(new, tmp_path, "overwrite", partition_overwrite_mode="dynamic")
    assert rows(tmp_path) == [(0, 0), (10, None), (2, 0), (4, 0), (9, 1)]


def test_replace_using_replaces_rows_with_equal_columns_and_no_nulls(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT IF(id = 0, NULL, id % 3) AS k, id AS v FROM range(6)"), tmp_path)
    new = frame(spark, "SELECT 1L AS k, 70L AS v UNION ALL SELECT NULL, 71L UNION ALL SELECT 5L, 72L")
    ds.write(new, tmp_path, "overwrite", replace_using="k")
    assert rows(tmp_path) == [(0, 3), (1, 70), (2, 2), (2, 5), (5, 72), (None, 0), (None, 71)]


def test_replace_on_replaces_rows_for_which_the_condition_holds(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT IF(id = 0, NULL, id % 3) AS k, id AS v FROM range(6)"), tmp_path)
    new = frame(spark, "SELECT CAST(NULL AS BIGINT) AS k, 71L AS v UNION ALL SELECT 2L, 3L")
    ds.write(new, tmp_path, "overwrite", replace_on="t.k <=> s.k AND t.v < s.v")
    assert rows(tmp_path) == [(0, 3), (1, 1), (1, 4), (2, 3), (2, 5), (None, 71)]


def test_replacing_what_nothing_matches_appends(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(3), tmp_path)
    before = {a["path"] for a in adds(tmp_path)}
    ds.write(spark.range(7, 8), tmp_path, "overwrite", replace_using=["id"])
    assert rows(tmp_path) == [(0,), (1,), (2,), (7,)]
    assert before < {a["path"] for a in adds(tmp_path)}


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append", "replace_using": "id"},
        {"mode": "overwrite", "replace_using": "id", "replace_on": "true"},
        {"mode": "overwrite", "replace_on": "true", "replace_where": "id = 1"},
        {"mode": "append", "data_change": False},
    ],
)
def test_options_that_exclude_each_other_are_rejected(spark: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        ds.write(spark.range(1), tmp_path, **options)


def test_rows_arranged_again_change_no_data(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(8).repartition(4), tmp_path)
    ds.write(ds.read(spark, tmp_path).coalesce(1), tmp_path, "overwrite", data_change=False)
    assert rows(tmp_path) == [(i,) for i in range(8)]
    log = (tmp_path / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    actions = [next(iter(a.values())) for line in log if next(iter(a := json.loads(line))) in ("add", "remove")]
    assert len(adds(tmp_path)) == 1
    assert not any(a["dataChange"] for a in actions)


# --- schema --------------------------------------------------------------------------------


def test_schema_merge_adds_columns_behind(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT 1L AS a"), tmp_path)
    ds.write(frame(spark, "SELECT 'x' AS b, 2L AS a"), tmp_path, "append", schema_mode="merge")
    assert rows(tmp_path) == [(1, None), (2, "x")]
    with pytest.raises(SchemaMismatchError, match="column 'c'"):
        ds.write(frame(spark, "SELECT 1L AS a, 2 AS c"), tmp_path, "append")


def test_columns_that_spell_the_path_of_another_have_their_own_bounds(spark: Any, tmp_path: Path) -> None:
    row = "named_struct('b', 1L) AS a, 20L AS `a.b`, array(3L) AS z, 40L AS `z.list.element`"
    ds.write(frame(spark, f"SELECT {row}"), tmp_path)
    (add,) = adds(tmp_path)
    assert json.loads(add["stats"])["maxValues"] == {"a": {"b": 1}, "a.b": 20, "z.list.element": 40}
    for condition in ("a.b = 1", "`a.b` = 20", "`z.list.element` = 40"):
        assert ds.read(spark, tmp_path).where(condition).count() == 1


def test_schema_overwrite_takes_the_rows_schema(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT 1L AS a"), tmp_path)
    new = frame(spark, "SELECT 'x' AS b, DATE'2020-02-02' AS d")
    ds.write(new, tmp_path, "overwrite", schema_mode="overwrite", partition_by=["d"])
    assert DeltaTable(str(tmp_path)).snapshot().schema.names == ["b", "d"]
    assert DeltaTable(str(tmp_path)).snapshot().state.partition_columns == ("d",)


@pytest.mark.parametrize(
    ("table", "given", "out"),
    [
        ("1 AS x", "7L AS x", 7),
        ("1 AS x", "3.0D AS x", 3),
        ("CAST(1 AS DECIMAL(5,2)) AS x", "12.50BD AS x", "12.50"),
        ("1.0D AS x", "CAST(1.5 AS FLOAT) AS x", 1.5),
        ("DATE'2020-01-01' AS x", "TIMESTAMP_NTZ'2021-03-04 00:00:00' AS x", "2021-03-04"),
        (
            "TIMESTAMP'2020-01-01 00:00:00Z' AS x",
            "TIMESTAMP_NTZ'2021-03-04 05:06:07' AS x",
            "2021-03-04 05:06:07+00:00",
        ),
        ("named_struct('A', 1L, 'b', 'x') AS x", "named_struct('b', 'y', 'a', 2) AS x", {"A": 2, "b": "y"}),
        ("array(1L) AS x", "array(2, NULL) AS x", [2, None]),
        ("map('a', 1L) AS x", "map('b', 2) AS x", [("b", 2)]),
        ("named_struct('a', 1L) AS x", "NULL AS x", None),
    ],
)
def test_values_become_the_tables_type_without_loss(
    spark: Any, tmp_path: Path, table: str, given: str, out: Any
) -> None:
    ds.write(frame(spark, f"SELECT {table} WHERE false"), tmp_path)
    ds.write(frame(spark, f"SELECT {given}"), tmp_path, "append")
    ((found,),) = rows(tmp_path)
    assert found == out or str(found) == out


@pytest.mark.parametrize(
    ("table", "given"),
    [
        ("CAST(1 AS TINYINT) AS x", "700L AS x"),
        ("1 AS x", "3.5D AS x"),
        ("1 AS x", "CAST('NaN' AS DOUBLE) AS x"),
        ("CAST(1 AS DECIMAL(5,2)) AS x", "12.505BD AS x"),
        ("CAST(1 AS FLOAT) AS x", "1e300D AS x"),
        ("1D AS x", "9007199254740993L AS x"),
        ("DATE'2020-01-01' AS x", "TIMESTAMP_NTZ'2021-03-04 00:00:01' AS x"),
        ("array(1) AS x", "array(2, 30000000000L) AS x"),
    ],
)
def test_value_that_does_not_fit_fails_the_write(spark: Any, tmp_path: Path, table: str, given: str) -> None:
    ds.write(frame(spark, f"SELECT {table} WHERE false"), tmp_path)
    with pytest.raises(SchemaMismatchError, match="Column x"):
        ds.write(frame(spark, f"SELECT {given}"), tmp_path, "append")
    assert not data_files(tmp_path)


def test_type_that_does_not_fit_is_rejected_by_name(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT 1 AS x"), tmp_path)
    with pytest.raises(SchemaMismatchError, match="Column x comes as string"):
        ds.write(frame(spark, "SELECT '1' AS x"), tmp_path, "append")
    with pytest.raises(DeltaError, match="interval"):
        ds.write(frame(spark, "SELECT INTERVAL '1' DAY AS x"), tmp_path / "other")


# --- files and the log ---------------------------------------------------------------------


def test_statistics_are_those_of_the_arrow_engine(spark: Any, tmp_path: Path) -> None:
    made = frame(
        spark,
        """SELECT id, CAST(id AS DOUBLE) AS d, IF(id = 2, CAST('NaN' AS DOUBLE), 1D) AS n,
        repeat('ab', 30) AS s, IF(id = 1, NULL, DATE'2020-01-01') AS t, CAST(id AS DECIMAL(20, 3)) AS c,
        TIMESTAMP_NTZ'2020-01-01 00:00:00.123456' AS w, TIMESTAMP'2020-01-01 00:00:00.123456Z' AS z,
        named_struct('a', id, 'b', 'x') AS o, true AS f FROM range(4)""",
    ).coalesce(1)
    ds.write(made, tmp_path / "spark", properties={"delta.feature.timestampNtz": "supported"})
    from delta_core import write_deltalake

    whole = DeltaTable(str(tmp_path / "spark")).snapshot().scan().to_table()
    write_deltalake(str(tmp_path / "arrow"), whole)
    (a,), (b,) = adds(tmp_path / "spark"), adds(tmp_path / "arrow")
    assert json.loads(a["stats"]) == json.loads(b["stats"])


def test_no_rows_make_no_file(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(0), tmp_path)
    assert not adds(tmp_path)
    assert not [f for f in data_files(tmp_path) if f.endswith(".parquet")]


def test_odd_partition_values_come_back(spark: Any, tmp_path: Path) -> None:
    texts = ["a/b%c=d é", "x:y*?", " ", ".", "..", "{[#]}", "%2F", "", None, "a'\"\\b", "new\nline", "+"]
    made = spark.createDataFrame(list(enumerate(texts)), "id int, p string")
    ds.write(made, tmp_path, partition_by=["p"])
    assert rows(tmp_path) == sorted(((i, t or None) for i, t in enumerate(texts)), key=repr)


def test_partition_values_of_every_type_come_back(spark: Any, tmp_path: Path) -> None:
    made = frame(
        spark,
        """SELECT 1 AS id, DATE'2020-01-01' AS a, TIMESTAMP'2020-06-01 01:02:03.000004Z' AS b, 1.50BD AS c,
        CAST('NaN' AS DOUBLE) AS d, CAST(1e10 AS FLOAT) AS e, true AS f, X'6162' AS g, CAST(-3 AS TINYINT) AS h,
        TIMESTAMP_NTZ'2020-06-01 01:02:03' AS i UNION ALL
        SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL""",
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        ds.write(made, tmp_path, partition_by=list("abcdefghi"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    full = next(a for a in adds(tmp_path) if dict(a["partitionValues"])["a"])
    assert dict(full["partitionValues"]) == {
        "a": "2020-01-01",
        "b": "2020-06-01T01:02:03.000004Z",
        "c": "1.50",
        "d": "NaN",
        "e": "1.0E10",
        "f": "true",
        "g": "ab",
        "h": "-3",
        "i": "2020-06-01 01:02:03",
    }


@pytest.mark.parametrize("value", ["'__HIVE_DEFAULT_PARTITION__'", "X'FF'"])
def test_partition_value_that_no_directory_can_state_is_rejected(spark: Any, tmp_path: Path, value: str) -> None:
    with pytest.raises(ConstraintViolationError):
        ds.write(frame(spark, f"SELECT 1 AS id, {value} AS p"), tmp_path, partition_by="p")


def test_files_are_bounded_by_records(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(10).coalesce(1), tmp_path, max_records_per_file=4)
    assert sorted(json.loads(a["stats"])["numRecords"] for a in adds(tmp_path)) == [2, 4, 4]


def test_optimised_write_makes_few_files(spark: Any, tmp_path: Path) -> None:
    made = frame(spark, "SELECT id, id % 2 AS p FROM range(0, 1000, 1, 8)")
    ds.write(made, tmp_path, partition_by="p", properties={"delta.autoOptimize.optimizeWrite": "true"})
    assert len(adds(tmp_path)) == 2


def test_column_mapping_returns_physical_names_and_ids(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    made = frame(spark, "SELECT 1L AS `a b`, named_struct('x', 2, 'y', array(named_struct('z', 3))) AS o, 'p' AS part")
    ds.write(made, tmp_path, partition_by="part", properties={"delta.columnMapping.mode": "id"})
    assert rows(tmp_path) == [(1, {"x": 2, "y": [{"z": 3}]}, "p")]
    (file,) = [f for f in data_files(tmp_path) if f.endswith(".parquet")]
    assert not file.startswith("job-"), "the place of a file contains nothing but a random prefix"
    schema = pq.read_schema(tmp_path / file)
    assert all(n.startswith("col-") for n in schema.names)
    assert b"PARQUET:field_id" in schema.field(0).metadata
    assert b"PARQUET:field_id" in schema.field(1).type.field(0).metadata
    ds.write(made, tmp_path, "append")
    assert [tuple(r) for r in ds.read(spark, tmp_path, columns=["a b"]).collect()] == [(1,), (1,)]


def test_compression_is_the_tables(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ds.write(spark.range(3), tmp_path, properties={"delta.parquet.compression.codec": "zstd"})
    (file,) = {a["path"] for a in adds(tmp_path) if json.loads(a["stats"])["minValues"]["id"] == 0}
    assert pq.read_metadata(tmp_path / file).row_group(0).column(0).compression == "ZSTD"


def test_timestamps_are_never_int96_and_the_session_keeps_its_settings(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    ds.write(frame(spark, "SELECT TIMESTAMP'1500-01-01 00:00:00Z' AS t"), tmp_path)
    (file,) = adds(tmp_path)
    assert pq.read_metadata(tmp_path / file["path"]).schema.column(0).physical_type == "INT64"
    assert spark.conf.get(key) == before
    assert str(rows(tmp_path)[0][0]).startswith("1500-01-01 00:00:00")


def test_variants_are_written_whole(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, """SELECT id, parse_json('{"a": 1}') AS v FROM range(2)"""), tmp_path)
    assert [r[0] for r in ds.read(spark, tmp_path).selectExpr("to_json(v)").collect()] == ['{"a":1}'] * 2
    assert DeltaTable(str(tmp_path)).snapshot().scan(["v"]).count() == 2


@pytest.mark.parametrize("partition_by", [None, "p"])
def test_plain_data_frames_write_the_same(spark: Any, tmp_path: Path, partition_by: str | None) -> None:
    made = frame(spark, "SELECT id, concat('a/b ', id % 2) AS p, timestamp_seconds(id) AS t FROM range(6)")
    ds.write(made, tmp_path / "a", partition_by=partition_by)
    ds.write(made, tmp_path / "b", partition_by=partition_by, route="plain")
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        ds.write(made, tmp_path / "b", "overwrite", replace_where="id < 3", route="plain")
    with pytest.raises(SchemaMismatchError, match="Column id holds"):
        ds.write(frame(spark, "SELECT 1.5D AS id"), tmp_path / "b", "append", route="plain")


# --- failure -------------------------------------------------------------------------------


def test_failing_query_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(3), tmp_path)
    before = data_files(tmp_path)
    with pytest.raises(DeltaError, match="DIVIDE_BY_ZERO"):
        ds.write(frame(spark, "SELECT 1 div (id - 99) AS id FROM range(100)"), tmp_path, "append")
    assert data_files(tmp_path) == before
    assert DeltaTable(str(tmp_path)).snapshot().version == 0


def test_lost_race_deletes_what_was_written(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds.write(spark.range(3), tmp_path)
    from delta_core.engines.spark.write import modes as module

    original = module.write_frame

    def raced(*args: Any, **how: Any) -> Any:
        found = original(*args, **how)
        monkeypatch.setattr(module, "write_frame", original)
        ds.write(spark.range(70, 71), tmp_path, "overwrite")
        return found

    monkeypatch.setattr(module, "write_frame", raced)
    before = data_files(tmp_path)
    with pytest.raises(CommitConflictError):
        ds.write(spark.range(5), tmp_path, "overwrite")
    live = {a["path"] for a in adds(tmp_path)}
    assert {f for f in data_files(tmp_path) - before if f.endswith(".parquet")} == live
    assert rows(tmp_path) == [(70,)]


def test_user_query_runs_once_with_its_observation(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import Observation, functions as F

    seen = Observation("seen")
    ds.write(spark.range(7).observe(seen, F.count(F.lit(1)).alias("n")), tmp_path)
    assert seen.get == {"n": 7}


def test_rows_never_pass_through_python(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_core.engines.spark.write.job import Job

    plans = []
    original = Job.run

    def noted(self: Job, rows: Any, partition_columns: Any) -> Any:
        plans.append(rows._jdf.queryExecution().executedPlan().toString())
        return original(self, rows, partition_columns)

    monkeypatch.setattr(Job, "run", noted)
    ds.write(spark.range(9), tmp_path)
    ds.write(spark.range(9, 12), tmp_path, "overwrite", replace_where="id > 7")
    assert len(plans) == 3
    assert not any(n in p for p in plans for n in ("BatchEvalPython", "ArrowEvalPython", "MapInArrow", "PythonScan"))


def test_context_of_the_table_is_the_arrow_engines(tmp_path: Path) -> None:
    assert open_context(str(tmp_path)).log.engine.name == "arrow"


def metrics(path: Path) -> dict[str, int]:
    """The counts of the last commit, without bytes and times."""
    found = DeltaTable(str(path)).history(1)[0]["operationMetrics"]
    return {k: int(v) for k, v in found.items() if not k.endswith(("Bytes", "Ms"))}


@pytest.mark.parametrize("change_feed", ["false", "true"])
@pytest.mark.parametrize(
    ("options", "first", "last", "deleted"),
    [
        ({"replace_using": "id"}, 990, 1020, 10),
        ({"replace_on": "t.id = s.id"}, 990, 1020, 10),
        ({"replace_where": "id >= 500"}, 990, 1020, 500),
        ({"replace_using": "id"}, 5000, 5030, 0),
    ],
)
def test_history_counts_copied_and_deleted_rows(
    spark: Any, tmp_path: Path, options: dict[str, Any], first: int, last: int, deleted: int, change_feed: str
) -> None:
    """The counts are those of delta-spark's WRITE: copied rows are part of the output, change rows are not."""
    ds.write(spark.range(0, 1000, 1, 1), tmp_path, properties={"delta.enableChangeDataFeed": change_feed})
    ds.write(spark.range(first, last, 1, 1), tmp_path, "overwrite", **options)
    copied = 1000 - deleted if deleted else 0
    found = metrics(tmp_path)
    changes = found.pop("numAddedChangeFiles")
    assert (changes > 0) == (change_feed == "true" and deleted > 0)
    assert found == {
        "numFiles": 2 if deleted else 1,
        "numOutputRows": last - first + copied,
        "numCopiedRows": copied,
        "numDeletedRows": deleted,
        "numRemovedFiles": int(deleted > 0),
    }


def test_history_of_other_writes_has_no_copied_rows(spark: Any, tmp_path: Path) -> None:
    ds.write(frame(spark, "SELECT id, id % 4 AS p FROM range(1000)").coalesce(1), tmp_path, partition_by="p")
    assert metrics(tmp_path) == {"numFiles": 4, "numOutputRows": 1000}
    rows = frame(spark, "SELECT id, 1L AS p FROM range(10)").coalesce(1)
    ds.write(rows, tmp_path, "overwrite", replace_where="p = 1")
    assert metrics(tmp_path) == {
        "numFiles": 1,
        "numOutputRows": 10,
        "numRemovedFiles": 1,
        "numAddedChangeFiles": 0,
        "numCopiedRows": 0,
        "numDeletedRows": 250,
    }
    ds.write(rows, tmp_path, "overwrite", partition_overwrite_mode="dynamic")
    assert metrics(tmp_path) == {"numFiles": 1, "numOutputRows": 10, "numRemovedFiles": 1}
