"""Lance datasets on Spark: the rows of the Arrow scan, columns and filters pushed down; versions, types, errors."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import delta_core.spark as ds
from delta_core import open_table
from delta_core.engines.spark import format_read
from delta_core.engines.spark.format_table import NOT_OFFERED
from delta_core.engines.spark.table import SparkTable
from delta_core.errors import (
    ColumnNotFoundError,
    DataFileError,
    DataFileNotFoundError,
    EngineError,
    InvalidArgumentError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedExpressionError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.expressions.printing import format_sql
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.lance import write_lance
from delta_plugins.lance.format import LanceFormat
from tests.example_counts import IS_LONG
from tests.lance.recorded_files import FOLDER, datasets

pytestmark = pytest.mark.spark

FIXTURES = Path(__file__).parents[1] / "lance" / "fixtures"
PLAIN = str(FIXTURES / "plain")
#: Each kind of content and file version once.
RECORDED = [n for n in datasets() if isinstance(n, str) and n.startswith(("14.0.2--", "0.10.18--")) and "blob" not in n]


def normal(value: Any) -> Any:
    """Return a value in the form that both libraries' objects for it have."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    return [normal(v) for v in value] if isinstance(value, (list, tuple)) else value


def values(table: pa.Table) -> list[str]:
    return sorted(repr(normal(row)) for row in table.to_pylist())


def same(frame: Any, expected: pa.Table) -> None:
    found = frame.toArrow()
    assert found.column_names == expected.column_names
    assert values(found) == values(expected)


@pytest.fixture(scope="module")
def lance() -> Any:
    return pytest.importorskip("lance", reason="pylance is not installed")


@pytest.fixture(scope="module")
def typed(lance: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset with a column of each type that Spark lacks or spells in another way, in two fragments."""
    place = str(tmp_path_factory.mktemp("lance") / "typed")
    n = 60
    every = range(n)
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i) for i in every]
    rows = pa.table(
        {
            "id": pa.array(every, pa.int32()),
            "u8": pa.array([None if i % 7 == 0 else i + 190 for i in every], pa.uint8()),
            "u16": pa.array([i + 65_000 for i in every], pa.uint16()),
            "u32": pa.array([i + 2**32 - 100 for i in every], pa.uint32()),
            "u64": pa.array([i + 2**64 - 100 for i in every], pa.uint64()),
            "half": pa.array([float("nan") if i % 9 == 0 else i / 4 for i in every], pa.float32()).cast(pa.float16()),
            "x": pa.array([float("nan") if i % 9 == 0 else -0.0 if i % 9 == 1 else i / 3 for i in every]),
            "flag": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in every]),
            "day": pa.array([19_000 + i for i in every], pa.date32()),
            "s": pa.array(moments, pa.timestamp("s")),
            "ns": pa.array(moments, pa.timestamp("ns")),
            "zoned": pa.array(moments, pa.timestamp("ms", "America/New_York")),
            "wait": pa.array([dt.timedelta(milliseconds=i) for i in every], pa.duration("ms")),
            "money": pa.array([Decimal(i) / 4 for i in every], pa.decimal128(10, 2)),
            "word": pa.DictionaryArray.from_arrays(
                pa.array([None if i % 11 == 0 else i % 3 for i in every], pa.int8()), pa.array(["ä", "b", "c"])
            ),
            "text": pa.array([f"t{i % 13}" for i in every], pa.large_string()),
            "key": pa.array([bytes([i, 255 - i]) for i in every], pa.binary(2)),
            "point": pa.array([[i, -i] for i in every], pa.list_(pa.float32(), 2)),
            "st": pa.array([None if i % 4 == 0 else {"a": i, "b": str(i)} for i in every],
                           pa.struct([("a", pa.uint64()), ("b", pa.string())])),
        }
    )  # fmt: skip
    lance.write_dataset(rows, place, max_rows_per_file=40)
    return place


# --- rows ---


@pytest.mark.parametrize("name", ["plain", "stable"])
def test_fixtures_read_equal_to_arrow(spark: Any, name: str) -> None:
    place = str(FIXTURES / name)
    same(ds.read(spark, place), open_table(place).scan().to_table())
    metadata = ["_rowid", "_rowaddr", "_row_last_updated_at_version"]
    same(ds.read(spark, place, metadata=metadata), open_table(place).scan(metadata=metadata).to_table())


@pytest.mark.golden
@pytest.mark.parametrize("name", RECORDED if IS_LONG else RECORDED[::4])
def test_recorded_datasets_read_equal_to_arrow(spark: Any, name: str) -> None:
    place = str(FOLDER / name)  # type: ignore[operator]
    table = open_table(place)
    if any("time" in str(f.type) and "timestamp" not in str(f.type) for f in table.schema()):
        with pytest.raises(UnsupportedFeatureError):
            ds.read(spark, place)
        return
    frame = ds.read(spark, place)
    same(frame, table.scan().to_table())
    assert frame.count() == table.count()


def test_types_that_spark_lacks_are_read_exactly(spark: Any, typed: str) -> None:
    frame = ds.read(spark, typed)
    types = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
    assert [types[n] for n in ("u8", "u16", "u32", "u64", "half")] == [
        "smallint", "int", "bigint", "decimal(20,0)", "float",
    ]  # fmt: skip
    assert [types[n] for n in ("s", "ns", "zoned", "wait", "word", "key", "point")] == [
        "timestamp_ntz", "timestamp_ntz", "timestamp", "interval day to second", "string", "binary", "array<float>",
    ]  # fmt: skip
    same(frame, open_table(typed).scan().to_table())


@pytest.mark.parametrize(
    ("column", "t"), [("clock", pa.time64("us")), ("huge", pa.decimal256(50, 2))], ids=["time", "decimal"]
)
def test_type_without_equal_is_rejected_by_column_and_others_are_read(
    spark: Any, lance: Any, tmp_path: Path, column: str, t: Any
) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [1, 2], column: pa.nulls(2, t)}), place)
    with pytest.raises(UnsupportedFeatureError, match=f"(?s)'{column}'.*columns=") as e:
        ds.read(spark, place)
    assert e.value.facts["column"] == column
    assert ds.read(spark, place, columns=["id"]).count() == 2


@pytest.mark.parametrize("t", [pa.timestamp("ns"), pa.duration("ns")], ids=str)
def test_value_that_spark_cannot_hold_is_an_error_with_the_column(
    spark: Any, lance: Any, tmp_path: Path, t: Any
) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"fine": pa.array([1_000, 1_001], t)}), place)
    with pytest.raises(DataFileError, match="'fine'"):
        ds.read(spark, place).collect()


# --- what is read ---


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what executors are sent, scan by scan."""
    found: list[Any] = []
    before: Callable[[Any], Any] = format_read._reading
    monkeypatch.setattr(format_read, "_reading", lambda rows: (found.append(rows), before(rows))[1])
    return found


def test_columns_and_filters_reach_the_scan(spark: Any, typed: str, scans: list[Any]) -> None:
    frame = ds.read(spark, typed)
    assert not scans, "nothing is planned before a query"
    rows = frame.where("id > 50 and st.b <> '55' and length(text) > 1").select("u64").collect()
    assert [int(r.u64) - 2**64 + 100 for r in rows] == [51, 53, 54, 57, 58, 59]
    [scan] = scans
    assert {p[0] for p in scan.columns} == {"u64", "id", "st", "text"}
    pushed = format_sql(scan.predicate)
    assert "id > 50" in pushed
    assert "st.b" in pushed
    assert "length" not in pushed, "Spark tests what has no equal"


def test_rows_are_counted_without_columns(spark: Any, typed: str, scans: list[Any]) -> None:
    assert ds.read(spark, typed).count() == 60
    assert [list(s.columns) for s in scans] == [[]]


def test_columns_and_predicate_of_read_are_of_the_scan(spark: Any, typed: str, scans: list[Any]) -> None:
    frame = ds.read(spark, typed, columns=["st.b", "id"], predicate="u8 > 240")
    expected = open_table(typed).scan(["st.b", "id"], "u8 > 240").to_table()
    assert frame.columns == ["st", "id"]
    same(frame, expected)
    assert frame.where("id > 55").count() == sum(i > 55 for i in expected["id"].to_pylist())
    assert all("u8" in format_sql(s.predicate) and "u8" not in {p[0] for p in s.columns} for s in scans)


CONDITIONS = [
    "u8 > 200", "u8 is null or u16 = 65003", "u32 in (4294967200, 4294967210, 1)", "u64 >= 18446744073709551600",
    "not (u64 < 18446744073709551600)", "half > 3", "half = 2.5", "x = 0", "x > 5", "not (x > 5)",
    "x <=> double('nan')", "half <= float('nan')", "flag", "not flag", "flag <=> null", "day >= date'2022-02-01'",
    "s = timestamp_ntz'2024-01-01 00:00:07'", "ns < timestamp_ntz'2024-01-01 00:00:07.5'",
    "zoned > timestamp'2024-01-01 00:00:30Z'", "wait > interval '30' millisecond", "money > 3.25", "money in (1, 2.5)",
    "word = 'ä'", "word <> 'ä'", "word is null", "text like 't1%'", "text = 't3' or id = 5", "key = X'05FA'",
    "key > X'30'", "st.a > 50", "st is null", "not (st.b = '7')", "st.a is null and id > 2", "point[0] > 30",
    "id > 10 and (u8 > 230 or word = 'b') and length(text) = 2",
]  # fmt: skip


def test_filtered_rows_equal_those_of_spark_alone(spark: Any, typed: str) -> None:
    frame = ds.read(spark, typed)
    # the same rows in a plan that nothing is pushed into
    rows = frame.localCheckpoint()
    for condition in CONDITIONS:
        expected = sorted(r.id for r in rows.where(condition).select("id").collect())
        assert sorted(r.id for r in frame.where(condition).select("id").collect()) == expected, condition


def test_large_fragments_are_read_by_several_tasks(spark: Any, lance: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    n = 1_500_000
    lance.write_dataset(pa.table({"i": pa.array(range(n)), "s": [f"{i:07}" for i in range(n)]}), place)
    frame = ds.read(spark, place)
    assert frame.rdd.getNumPartitions() > 1
    assert tuple(frame.selectExpr("count(*)", "sum(i)", "max(s)").collect()[0]) == (n, n * (n - 1) // 2, f"{n - 1:07}")
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        spark.conf.set("spark.sql.files.maxPartitionBytes", "1m")
        assert ds.read(spark, place).rdd.getNumPartitions() > 8
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_dataset_without_rows_has_its_columns(spark: Any, lance: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.schema([("i", pa.int64())]).empty_table(), place)
    assert ds.read(spark, place).where("i > 1").collect() == []
    assert ds.read(spark, place).columns == ["i"]


# --- versions ---


@pytest.fixture(scope="module")
def versions(lance: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("lance") / "versions")
    lance.write_dataset(pa.table({"i": [1]}), place)
    lance.write_dataset(pa.table({"i": [2]}), place, mode="append")
    found = lance.dataset(place)
    found.tags.create("two", 2)
    found.create_branch("dev")
    lance.write_dataset(pa.table({"i": [3]}), lance.dataset(place).checkout_version(("dev", None)), mode="append")
    lance.write_dataset(pa.table({"i": [4]}), place, mode="append")
    return place


def numbers(frame: Any) -> list[int]:
    return sorted(r.i for r in frame.collect())


def test_version_tag_branch_and_timestamp_select_a_version(spark: Any, versions: str) -> None:
    assert numbers(ds.read(spark, versions)) == [1, 2, 4]
    assert numbers(ds.read(spark, versions, 1)) == [1]
    assert numbers(ds.read(spark, versions, tag="two")) == [1, 2]
    assert numbers(ds.read(spark, versions, branch="dev")) == [1, 2, 3]
    assert numbers(ds.read(spark, versions, timestamp="2100-01-01")) == [1, 2, 4]
    with pytest.raises(VersionNotFoundError):
        ds.read(spark, versions, 17)
    with pytest.raises(VersionNotFoundError, match="none-such"):
        ds.read(spark, versions, tag="none-such")


def test_version_is_fixed_when_it_is_read(spark: Any, lance: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"i": [1]}), place)
    frame = ds.read(spark, place)
    lance.write_dataset(pa.table({"i": [2]}), place, mode="append")
    assert numbers(frame) == [1]
    assert numbers(ds.read(spark, place)) == [1, 2]


# --- SQL, errors ---


def test_sql_joins_delta_and_lance(spark: Any, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "w": "string"})
    builder.append([{"id": 4, "w": "four"}, {"id": 10**9, "w": "none"}])
    text = f"SELECT d.w, l.id FROM delta_core.`{PLAIN}` l JOIN delta_scan('{tmp_path / 't'}') d ON l.id = d.id"
    assert [tuple(r) for r in ds.sql(spark, text).collect()] == [("four", 4)]


def copied(folder: Path) -> tuple[Path, Path]:
    """Return a copy of a dataset, and one of the data files of its latest version."""
    place = folder / "t"
    shutil.copytree(PLAIN, place)
    files = open_table(place).fragments()["files"][0].as_py()
    return place, place / "data" / files[0]["path"]


def test_missing_data_file_is_an_error_of_this_library(spark: Any, tmp_path: Path) -> None:
    place, file = copied(tmp_path)
    file.unlink()
    with pytest.raises(DataFileNotFoundError, match=file.name):
        ds.read(spark, place).collect()


def test_damaged_data_file_is_an_error_of_this_library(spark: Any, tmp_path: Path) -> None:
    place, file = copied(tmp_path)
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(DataFileError, match=file.name):
        ds.read(spark, place).collect()


def test_arguments_that_a_dataset_lacks_are_rejected_by_name(spark: Any, tmp_path: Path) -> None:
    for name, value in {"route": "join", "timezone": "UTC", "vector_bytes": 1, "parallel_from": 1}.items():
        with pytest.raises(UnsupportedOperationError, match=name):
            ds.read(spark, PLAIN, **{name: value})
    with pytest.raises(ColumnNotFoundError, match="no_such"):
        ds.read(spark, PLAIN, columns=["no_such"])
    with pytest.raises(TableNotFoundError):
        ds.read(spark, tmp_path / "nothing")
    TableBuilder(tmp_path / "delta").create({"id": "long"})
    for name in ("tag", "branch"):
        with pytest.raises(InvalidArgumentError, match="tag or branch"):
            ds.read(spark, tmp_path / "delta", **{name: "x"})


def test_secrets_are_not_in_plans(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    frame = ds.read(spark, PLAIN, storage_options={"secret_access_key": "hush-hush"})
    frame.explain(True)
    shown = capsys.readouterr().out + repr(frame)
    assert "hush-hush" not in shown
    assert f"lance {PLAIN}" in shown


def test_format_that_plans_no_splits_is_rejected(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LanceFormat, "split_options")
    with pytest.raises(UnsupportedOperationError, match=r"lance.*open_table"):
        ds.read(spark, PLAIN)


# --- changes ---


@pytest.fixture
def staff(tmp_path: Path) -> str:
    place = str(tmp_path / "staff")
    rows = pa.table(
        {"id": pa.array(range(6), pa.int32()), "name": [f"n{i}" for i in range(6)], "x": [i / 2 for i in range(6)]}
    )
    write_lance(place, rows, stable_row_ids=True, max_rows_per_file=4)
    return place


def contents(place: str) -> list[tuple[Any, ...]]:
    rows = open_table(place).scan(["id", "name", "x"], metadata=["_rowid"]).to_table()
    return sorted(tuple(r.values()) for r in rows.to_pylist())


def twin(place: str) -> str:
    return shutil.copytree(place, place + "-twin")


def counts(frame: Any) -> dict[str, int]:
    [row] = frame.collect()
    return row.asDict()  # type: ignore[no-any-return]


def test_delete_and_update_equal_those_of_the_dataset(spark: Any, staff: str) -> None:
    other = open_table(twin(staff))
    table = ds.DeltaTable.forPath(spark, staff).alias("t")
    assert counts(table.delete(F.col("t.id") == 1)) == {"num_affected_rows": 1}
    other.delete("id = 1")
    updates = {"t.name": "upper(t.name)", "x": F.col("id") + 0.5}
    assert counts(table.update("t.id >= 4 or name is null", updates)) == {"num_affected_rows": 2}
    other.update({"name": "upper(name)", "x": "id + 0.5"}, predicate="id >= 4")
    assert counts(table.delete("id > 100")) == {"num_affected_rows": 0}
    assert contents(staff) == contents(other.uri)
    assert open_table(staff).version == other.version == table.table.version
    assert sorted(r.id for r in table.toDF().where("t.id < 4").collect()) == [0, 2, 3]


def test_merge_of_a_frame_equals_that_of_the_dataset(spark: Any, staff: str) -> None:
    other = open_table(twin(staff))
    columns = "cast(id AS int) AS id", "concat('m', id) AS name", "cast(id AS double) AS x"
    source = spark.range(3, 9, 1, 3).selectExpr(*columns)
    merge = ds.DeltaTable.forPath(spark, staff).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.id = 4").whenMatchedUpdate(
        "s.x > 0", {"name": F.col("s.name"), "t.x": "t.x + s.x"}
    )
    merge = merge.whenNotMatchedInsertAll("s.id <> 8").whenNotMatchedBySourceUpdate("t.id = 0", {"x": "-1"})
    found = counts(merge.execute())
    assert found == {"num_affected_rows": 6, "num_updated_rows": 3, "num_deleted_rows": 1, "num_inserted_rows": 2}
    same = other.merge(source.toArrow(), "t.id = s.id", "s", "t").when_matched_delete("s.id = 4")
    same = same.when_matched_update({"name": "s.name", "x": "t.x + s.x"}, "s.x > 0")
    same = same.when_not_matched_insert_all("s.id <> 8").when_not_matched_by_source_update({"x": "-1"}, "t.id = 0")
    same.execute()
    assert contents(staff) == contents(other.uri)
    failing = spark.range(3).selectExpr("cast(if(id = 2, raise_error('stop'), id) AS int) AS id")
    with pytest.raises(EngineError, match="stop"):
        ds.DeltaTable.forPath(spark, staff).merge(failing, "target.id = source.id").whenMatchedDelete().execute()
    assert open_table(staff).version == other.version


def test_statements_by_path_change_a_dataset(spark: Any, staff: str) -> None:
    name = f"delta_core.`{staff}`"
    assert counts(ds.sql(spark, f"DELETE FROM {name} AS t WHERE t.id < 2")) == {"num_affected_rows": 2}
    assert counts(ds.sql(spark, f"UPDATE {name} SET x = x * 2, name = DEFAULT WHERE id = 3")) == {
        "num_affected_rows": 1
    }
    text = f"MERGE INTO {name} t USING (SELECT * FROM {name} WHERE id > 3) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert counts(ds.sql(spark, text))["num_deleted_rows"] == 2
    ds.sql(spark, f"INSERT INTO {name} (id, x) SELECT 7, 1.5")
    assert [r[:3] for r in contents(staff)] == [(2, "n2", 1.0), (3, None, 3.0), (7, None, 1.5)]
    rejected = f"INSERT OVERWRITE {name} SELECT 1, 'a', 2.0", f"OPTIMIZE {name}", f"ALTER TABLE {name} CLUSTER BY (id)"
    for text in rejected:
        with pytest.raises(UnsupportedOperationError, match="lance"):
            ds.sql(spark, text)
    assert len(contents(staff)) == 3
    ds.sql(spark, f"TRUNCATE TABLE {name}")
    assert contents(staff) == []


def test_calls_and_arguments_that_a_dataset_lacks_are_rejected_by_name(spark: Any, staff: str) -> None:
    table: Any = ds.DeltaTable.forPath(spark, staff)
    offered = {n for n in dir(SparkTable) if not n.startswith("_")}
    of_class = {n for n in offered if isinstance(vars(SparkTable).get(n), classmethod)}
    missing = {n for n in offered - of_class if n not in dir(type(table))}
    assert missing == NOT_OFFERED, "each call of a Delta table is offered or rejected by name"
    for name in missing:
        with pytest.raises(UnsupportedOperationError, match=f"{name}.*table"):
            getattr(table, name)
    assert not hasattr(table, "no_such")
    merge = table.merge(spark.range(2), "target.id = source.id").whenMatchedDelete()
    with pytest.raises(UnsupportedOperationError, match="adds no columns"):
        merge.withSchemaEvolution().execute()
    with pytest.raises(UnsupportedOperationError, match="plugins"):
        ds.DeltaTable.forPath(spark, staff, plugins=object())
    with pytest.raises(ColumnNotFoundError):
        table.delete("no_such = 1")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with pytest.raises(UnsupportedExpressionError, match="Asia/Tokyo"):
            table.update(set={"name": "cast(timestamp'2024-01-01' AS string)"})
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    for setting in ("txnAppId", "txnVersion"):
        spark.conf.set(f"spark.databricks.delta.write.{setting}", "1")
    try:
        with pytest.raises(UnsupportedOperationError, match="applications"):
            table.delete("id = 1")
    finally:
        for setting in ("txnAppId", "txnVersion"):
            spark.conf.unset(f"spark.databricks.delta.write.{setting}")
    assert open_table(staff).version == 1


def test_no_delta_table_is_written_into_a_dataset(spark: Any, staff: str) -> None:
    files = sorted(str(p) for p in Path(staff).rglob("*"))
    with pytest.raises(TableExistsError, match="lance"):
        ds.write(spark.range(3), staff)
    with pytest.raises(TableExistsError, match="lance"):
        ds.DeltaTable.createIfNotExists(spark).location(staff).addColumn("id", "int").execute()
    assert sorted(str(p) for p in Path(staff).rglob("*")) == files
