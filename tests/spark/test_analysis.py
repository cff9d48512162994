"""Conditions and values that only Spark understands, in sessions of any zone and mode."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark.analysis import analyzed_condition
from delta_core.engines.spark.conditions import empty_rows
from delta_core.engines.spark.relations import spark_engine
from delta_core.errors import EngineError, UnsupportedExpressionError
from delta_core.kernel.snapshot import open_snapshot
from tests.example_counts import chosen

pytestmark = pytest.mark.spark

SESSIONS = {
    "UTC": {},
    "zone": {"spark.sql.session.timeZone": "America/New_York"},
    "legacy": {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Kolkata"},
}
CONDITIONS = [
    "split(s, 'n')[1] = '3'", "size(filter(a, q -> q > 5)) > 0", "t < '2024-01-05'", "hour(t) % 5 = 0 AND i < 3",
    "t BETWEEN timestamp'2024-01-02' AND timestamp'2024-01-03 12:00:00'", "i + 1 = 5 OR abs(i) = 7",
    "st = named_struct('u', 4L, 'v', '4')", "s LIKE ANY ('n1', 'n2')", "to_json(st) LIKE '%4%'", "d > '2024-01-06'",
    "s COLLATE UTF8_LCASE = 'N4'", "exists(a, z -> z = i)", "conv(string(i), 10, 2) = '101'",
    "i IN (1, 2) AND format_number(x, 1) <> '0.5'", "current_timestamp() > t AND i > 4", "m['k'] = 3",
    "transform(a, z -> z + 1)[0] = 4", "to_date(t) = date'2024-01-04'", "date_format(t, 'HH') <> '06' AND i <> 2",
    "from_unixtime(i * 86400) LIKE '1970-01-0%'", "months_between(d, date'2023-01-01') > 12.1",
    "t - INTERVAL 1 DAY > timestamp'2024-01-04'", "NOT (split(s, 'n')[1] <=> '3')",
    "get_json_object(to_json(st), '$.u') = '2'",
]  # fmt: skip
VALUES = {
    "s": [
        "split(concat(s, '-z'), '-')[1]", "string(t)", "date_format(t, 'yyyy-MM-dd HH')", "i + 1", "to_json(st)",
        "aggregate(a, '', (m, v) -> concat(m, v))", "format_number(x, 3)", "CAST(d AS TIMESTAMP)",
    ],
    "i": ["'12'", "conv('11', 2, 10)", "x * 2", "hour(t)"],
    "t": ["'2024-05-01 10:00:00'", "date_trunc('day', t)", "d", "to_timestamp('2024-06-01')"],
    "d": ["t", "to_date(t)", "'2024-02-03'"],
    "a": ["array_sort(array(9L, 3L))", "transform(a, v -> v * 2)"],
    "st.v": ["format_number(x, 3)", "upper(s)"],
}  # fmt: skip


def of_session(cases: Sequence[Any], session: Any) -> Sequence[Any]:
    """Return those cases that a run of all tests tries in a session: one of the three tries each; the long form all."""
    zone, is_ansi = session.conf.get("spark.sql.session.timeZone"), session.conf.get("spark.sql.ansi.enabled")
    first = 2 if is_ansi == "false" else 0 if zone == "UTC" else 1
    return chosen(cases, cases[first :: len(SESSIONS)])


@pytest.fixture(params=list(SESSIONS))
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    before = {name: spark.conf.get(name) for name in SESSIONS[request.param]}
    for name, value in SESSIONS[request.param].items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def made(place: Path, **options: Any) -> None:
    start = dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)
    numbers = range(10)
    rows = pa.table(
        {
            "i": pa.array(numbers, pa.int32()),
            "s": [f"n{n}" for n in numbers],
            "x": [n / 2 for n in numbers],
            "t": pa.array([start + dt.timedelta(days=n) for n in numbers], pa.timestamp("us", "UTC")),
            "d": [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in numbers],
            "a": [[n, n + 1] for n in numbers],
            "st": [{"u": n, "v": str(n)} for n in numbers],
            "m": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )
    write_deltalake(place, rows, **options)


def test_conditions_of_every_kind_select_the_rows_that_a_query_selects(session: Any, tmp_path: Path) -> None:
    made(tmp_path, configuration={"delta.enableDeletionVectors": "true"})
    table = ds.DeltaTable.forPath(session, tmp_path)
    frame = ds.read(session, tmp_path)
    kept = frame.where(f"NOT coalesce({CONDITIONS[0]}, false)").count()
    assert kept == 9
    for condition in of_session(CONDITIONS, session):
        selected = {r["i"] for r in frame.where(condition).select("i").collect()}
        table.update(condition, {"x": "-1.0"})
        found = {r["i"] for r in DeltaTable(tmp_path).to_pyarrow_table(filters="x = -1").to_pylist()}
        table.restoreToVersion(0)
        assert found == selected, condition
        assert selected, condition


def test_values_of_every_kind_are_those_of_a_query(session: Any, tmp_path: Path) -> None:
    made(tmp_path)
    table = ds.DeltaTable.forPath(session, tmp_path)
    frame = ds.read(session, tmp_path)
    types = {**dict(frame.dtypes), "st.v": "string"}
    for name, value in of_session([(name, value) for name, values in VALUES.items() for value in values], session):
        cast = f"CAST({value} AS {types[name]})"
        wanted = [r[0] for r in frame.orderBy("i").selectExpr(cast).collect()]
        table.update("i >= 0", {name: value})
        found = [r[0] for r in ds.read(session, tmp_path).orderBy("i").selectExpr(name).collect()]
        table.restoreToVersion(0)
        if name == "i":  # the rows are ordered by it
            wanted = sorted(wanted)
        assert found == wanted, (name, value)


def test_merge_takes_expressions_that_only_spark_understands(session: Any, tmp_path: Path) -> None:
    made(tmp_path)
    columns = "CAST(id AS INT) AS i, concat('N', id) AS s, timestamp'2024-01-06 00:00:00' AS t"
    source = session.sql(f"SELECT {columns} FROM range(5, 14)")
    table = ds.DeltaTable.forPath(session, tmp_path).alias("t")
    merge = table.merge(source.alias("q"), "conv(string(t.i), 10, 2) = conv(string(q.i), 10, 2) AND t.t < '2024-01-09'")
    merge = merge.whenMatchedDelete("upper(t.s) RLIKE 'N[6]' AND array_contains(transform(t.a, z -> z + 1), 7)")
    merge = merge.whenMatchedUpdate(set={"s": "concat_ws('-', split(q.s, 'N'))", "d": "q.t"})
    merge = merge.whenNotMatchedInsert("q.i % 2 = 1", {"i": "q.i", "s": "format_number(q.i, 1)", "t": "q.t"})
    merge.whenNotMatchedBySourceUpdate("size(t.a) = 2", {"s": "to_json(t.st)"}).execute()
    before = {r["i"]: r["s"] for r in ds.read(session, tmp_path, version=0).where("t < '2024-01-09'").collect()}
    found = {r["i"]: r["s"] for r in ds.read(session, tmp_path).orderBy("i").select("i", "s").collect() if r["i"] < 10}
    assert {found[n] for n in (0, 4)} == {'{"u":0,"v":"0"}', '{"u":4,"v":"4"}'}
    assert (found[5], found.get(6), found[7]) == ("-5", None, "-7")
    assert (8 in before) == (found[8] == "-8")
    added = {r["i"]: r["s"] for r in ds.read(session, tmp_path).where("i > 9").collect()}
    assert added == {11: "11.0", 13: "13.0"}


def test_source_of_other_types_is_cast_or_fails_in_every_session(session: Any, tmp_path: Path) -> None:
    made(tmp_path)
    table = ds.DeltaTable.forPath(session, tmp_path)
    columns = "'2024-07-01 00:00:00' AS t, 7 AS s"
    values = {name: f"source.{name}" for name in ("i", "t", "s")}
    good = session.sql(f"SELECT 3L AS i, {columns}")
    table.merge(good, "target.i = source.i").whenMatchedUpdate(set=values).execute()
    row = ds.read(session, tmp_path).where("i = 3").collect()[0]
    assert (row["s"], row["t"]) == ("7", session.sql("SELECT timestamp'2024-07-01 00:00:00'").collect()[0][0])
    version = table.history(1).collect()[0]["version"]
    for bad in (f"SELECT 1L << 40 AS i, {columns}", "SELECT 77 AS i, 'no time' AS t, 's' AS s"):
        with pytest.raises(EngineError, match="CAST_"):
            table.merge(session.sql(bad), "target.i = source.i").whenNotMatchedInsert(values=values).execute()
    assert table.history(1).collect()[0]["version"] == version


def test_expressions_are_those_of_the_tables_session_beside_another(spark: Any, tmp_path: Path) -> None:
    made(tmp_path)
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    other.conf.set("spark.sql.ansi.enabled", "false")
    spark.sql("SELECT 1").collect()  # the session that PySpark last used is not the table's
    table = ds.DeltaTable.forPath(other, tmp_path)
    table.update("i = 1", {"t": "concat('2024-05-01 ', '10:00:00')"})
    table.update("t = '2024-01-03 14:00:00'", {"t": "'2024-05-01 10:00:00'"})
    source = other.sql("SELECT 3 AS i, '2024-05-01 10:00:00' AS t")
    table.merge(source, "target.i = source.i").whenMatchedUpdate(set={"t": "source.t"}).execute()
    found = {r["i"]: r["t"] for r in DeltaTable(tmp_path).to_pyarrow_table(filters="i in (1, 2, 3)").to_pylist()}
    assert found == dict.fromkeys((1, 2, 3), dt.datetime(2024, 5, 1, 1, tzinfo=dt.UTC))
    merge = table.merge(other.sql("SELECT 4 AS i, 1L << 40 AS j"), "target.i = source.i")
    with pytest.raises(EngineError, match="CAST_"):
        merge.whenMatchedUpdate(set={"i": "source.j"}).execute()


def test_users_functions_run_in_conditions_and_values(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    made(tmp_path)
    table = ds.DeltaTable.forPath(spark, tmp_path)
    shout = F.udf(lambda text: f"{text}!", "string")
    table.update(shout(F.col("s")) == "n4!", {"s": shout(F.col("s")), "x": F.length(shout(F.col("s"))) + F.col("x")})
    table.delete(shout("s").isin("n1!", "n2!"))
    found = {r["i"]: (r["s"], r["x"]) for r in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()}
    assert (found[4], sorted(found)) == (("n4!", 5.0), [0, 3, 4, 5, 6, 7, 8, 9])


def test_change_feed_has_the_values_that_were_written(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    table = ds.DeltaTable.forPath(spark, tmp_path)
    merge = table.merge(spark.range(5), "target.i = source.id")
    merge.whenMatchedUpdate(set={"x": "rand() + 100", "s": "uuid()"}).execute()
    written = {r["i"]: (r["x"], r["s"]) for r in DeltaTable(tmp_path).to_pyarrow_table(filters="i < 5").to_pylist()}
    changes = pa.table(DeltaTable(tmp_path).load_cdf(starting_version=1)).to_pylist()
    after = {r["i"]: (r["x"], r["s"]) for r in changes if r["_change_type"] == "update_postimage"}
    assert after == written
    assert len({x for x, _ in written.values()}) == 5


def test_condition_of_a_time_skips_files_in_every_zone(session: Any, tmp_path: Path) -> None:
    for day in range(1, 9):
        rows = {"t": pa.array([dt.datetime(2024, 1, day, 12, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")), "n": [day]}
        write_deltalake(tmp_path, pa.table(rows), mode="append")
    base = open_snapshot(tmp_path)
    rows = empty_rows(session, base.schema, base.state.types)
    for condition in ("t < '2024-01-04' AND split(string(n), '')[0] <> 'x'", "to_date(t) < '2024-01-04' AND n > -1"):
        found = analyzed_condition(condition, rows, [("t",), ("n",)])
        assert found is not None
        assert 3 <= base.scan(predicate=found).file_set.count <= 4


def test_partitions_are_selected_by_a_function_that_only_spark_has(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    write_deltalake(tmp_path, pa.table({"p": ["a", "b", None], "n": [1, 2, 3]}), partition_by=["p"])
    table = ds.DeltaTable.forPath(spark, tmp_path)
    table.delete("format_string('%s!', p) = 'a!'")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["n"].to_pylist()) == [2, 3]
    new = spark.sql("SELECT 'b' AS p, 20L AS n")
    where = "format_string('%s!', p) = 'b!'"
    for condition in (where, F.expr(where)):
        ds.write(new, tmp_path, "overwrite", replace_where=condition)
        assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["n"].to_pylist()) == [3, 20]


def test_generated_column_of_a_time_is_calculated_in_the_zone_of_the_session(session: Any, tmp_path: Path) -> None:
    ds.DeltaTable.create(session).location(str(tmp_path)).addColumn("t", "TIMESTAMP").addColumn(
        "day", "DATE", generatedAlwaysAs="CAST(t AS DATE)"
    ).execute()
    rows = session.sql("SELECT timestamp_seconds(86400 * id + 43200 * (id % 2) + 20000) AS t FROM range(6)")
    ds.write(rows, tmp_path, "append")
    found = ds.read(session, tmp_path).where("day <> to_date(t) OR day IS NULL").count()
    assert (found, ds.read(session, tmp_path).count()) == (0, 6)


def test_date_of_today_is_that_of_the_zone_of_the_session(spark: Any, tmp_path: Path) -> None:
    made(tmp_path)
    table = ds.DeltaTable.forPath(spark, tmp_path)
    try:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):  # 25 hours apart: never the same date
            spark.conf.set("spark.sql.session.timeZone", zone)
            before = spark.sql("SELECT current_date()").collect()[0][0]
            table.update("i = 1 OR current_date() < date'2020-01-01'", {"d": "current_date"})
            table.update("i = 2 AND curdate() > date'2020-01-01'", {"d": "curdate()"})
            after = spark.sql("SELECT current_date()").collect()[0][0]
            found = {r["i"]: r["d"] for r in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()}
            assert found[1] in (before, after)
            assert found[2] in (before, after)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_query_and_value_that_changes_are_rejected_as_conditions(spark: Any, tmp_path: Path) -> None:
    made(tmp_path)
    table = ds.DeltaTable.forPath(spark, tmp_path)
    with pytest.raises(UnsupportedExpressionError, match="not the same each time"):
        table.delete("rand() > 0.5")
    with pytest.raises(UnsupportedExpressionError, match="contains a query"):
        table.delete("i IN (SELECT id FROM range(3))")
    with pytest.raises(UnsupportedExpressionError, match="not the same each time"):
        table.update("i = 1", {"s": "uuid()"})
    table.update("i = 1", {"i": "(SELECT max(id) FROM range(50))"})
    assert DeltaTable(tmp_path).version() == 1
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="i = 49").num_rows == 1


def test_aggregates_are_rejected_with_the_conditions_of_delta_spark(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    made(tmp_path)
    table = ds.DeltaTable.forPath(spark, tmp_path)
    merge = table.merge(spark.range(3), "target.i = source.id")
    largest = F.max("target.i") > 1
    for condition, change in {
        "UNSUPPORTED_EXPR_FOR_OPERATOR": [
            lambda: table.delete("max(i) > 1"),
            lambda: table.delete((F.max("i") > 1) & (F.col("i") < 5)),
            lambda: table.delete("row_number() OVER (ORDER BY i) = 1"),
            lambda: table.update(set={"i": F.max("i")}),
            lambda: merge.whenMatchedUpdate(set={"i": "max(target.i)"}).execute(),
        ],
        "DELTA_AGGREGATION_NOT_SUPPORTED": [
            lambda: merge.whenMatchedDelete(largest).execute(),
            lambda: table.merge(spark.range(3), largest).whenMatchedDelete().execute(),
        ],
    }.items():
        for each in change:
            with pytest.raises(UnsupportedExpressionError, match="not calculated from one row") as caught:
                each()
            assert caught.value.getCondition() == condition  # type: ignore[attr-defined]
    assert DeltaTable(tmp_path).version() == 0


def test_change_by_a_function_of_spark_has_no_python_in_its_plans(spark: Any, tmp_path: Path) -> None:
    made(tmp_path)
    base = open_snapshot(tmp_path)
    rows = empty_rows(spark, base.schema, base.state.types)
    found = analyzed_condition("size(filter(a, q -> q > 5)) > 0", rows, [(f.name,) for f in base.schema.fields])
    relations: Any = spark_engine(spark, str(tmp_path)).relations
    relation = relations.scan(base.scan(["i"], predicate=found))
    plan = relation.frame._jdf.queryExecution().toString()
    assert not [part for part in ("Python", "InArrow", "ArrowEval") if part in plan]
    assert "lambda" in plan
