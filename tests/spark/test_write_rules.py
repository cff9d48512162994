"""What features require of written rows, done by Spark's write job; tables equal to the Arrow engine's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.schema.types import Field, PrimitiveType, StructType
from tests.corpus.records import path_of

pytestmark = pytest.mark.spark

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def create(path: Path, *fields: Field, **properties: str) -> None:
    names = {"delta." + k.replace("_", "."): v for k, v in properties.items()}
    DeltaTable.create(str(path), StructType(fields), configuration=names)


def rows(path: Path, *columns: str, metadata: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(path)).snapshot().scan(list(columns) or None, metadata).to_table()
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def parquet_files(path: Path) -> list[str]:
    return [f for _, _, fs in os.walk(path) for f in fs if f.endswith(".parquet") and "checkpoint" not in f]


# --- filled columns ------------------------------------------------------------------------


def test_generated_and_default_columns_are_filled(spark: Any, tmp_path: Path) -> None:
    create(
        tmp_path,
        Field("id", LONG),
        Field("twice", LONG, metadata={"delta.generationExpression": "id * 2"}),
        Field("kind", TEXT, metadata={"CURRENT_DEFAULT": "'new'"}),
    )
    ds.write(spark.range(3), tmp_path, "append")
    ds.write(spark.sql("SELECT 9L AS id, 18L AS twice, CAST(NULL AS STRING) AS kind"), tmp_path, "append")
    assert rows(tmp_path) == [(0, 0, "new"), (1, 2, "new"), (2, 4, "new"), (9, 18, None)]
    with pytest.raises(ConstraintViolationError, match="twice"):
        ds.write(spark.sql("SELECT 9L AS id, 19L AS twice"), tmp_path, "append")
    assert len(rows(tmp_path)) == 4


def test_generated_partition_column_makes_the_directories(spark: Any, tmp_path: Path) -> None:
    fields = (
        Field("t", PrimitiveType("timestamp")),
        Field("day", PrimitiveType("date"), metadata={"delta.generationExpression": "CAST(t AS DATE)"}),
    )
    DeltaTable.create(str(tmp_path), StructType(fields), partition_by=["day"])
    made = spark.sql("SELECT timestamp_seconds(id * 86400 - 1) AS t FROM range(3)")
    ds.write(made, tmp_path, "append")
    assert [str(r[0]) for r in rows(tmp_path, "day")] == ["1969-12-31", "1970-01-01", "1970-01-02"]


def test_rule_on_times_follows_the_zone_of_the_session(spark: Any, tmp_path: Path) -> None:
    fields = (
        Field("t", PrimitiveType("timestamp")),
        Field("day", PrimitiveType("date"), metadata={"delta.generationExpression": "CAST(t AS DATE)"}),
    )
    create(tmp_path, *fields)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        ds.write(spark.sql("SELECT timestamp'2024-05-06 01:00:00' AS t"), tmp_path, "append")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [str(r[0]) for r in rows(tmp_path, "day")] == ["2024-05-06"]


@pytest.mark.parametrize("route", ["auto", "plain"])
@pytest.mark.parametrize(("start", "step"), [(1, 1), (10, 5), (0, -3)])
def test_identity_values_are_unique_and_go_on_behind_the_mark(
    spark: Any, tmp_path: Path, start: int, step: int, route: Any
) -> None:
    numbered = {"delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": False}
    create(tmp_path, Field("n", LONG, metadata=numbered), Field("id", LONG))
    ds.write(spark.range(0, 20, 1, 3), tmp_path, "append", route=route)
    first = [r[0] for r in rows(tmp_path, "n")]
    ds.write(spark.range(20, 30, 1, 2), tmp_path, "append", route=route)
    every = [r[0] for r in rows(tmp_path, "n")]
    later = set(every) - set(first)
    assert len(every) == len(set(every)) == 30
    assert all((n - start) % step == 0 and (n - start) // step >= 0 for n in every)
    assert min(later) > max(first) if step > 0 else max(later) < min(first)
    # tasks take turns: a gap is no longer than their rows differ
    assert (max(every) - min(every)) // abs(step) < 40
    mark = DeltaTable(str(tmp_path)).snapshot().schema.fields[0].metadata["delta.identity.highWaterMark"]
    assert mark == (max(every) if step > 0 else min(every))
    with pytest.raises(SchemaMismatchError, match="come from the table alone"):
        ds.write(spark.sql("SELECT 1L AS n, 1L AS id"), tmp_path, "append")


# --- checks --------------------------------------------------------------------------------


def test_broken_constraint_names_itself_and_a_row(spark: Any, tmp_path: Path) -> None:
    create(tmp_path, Field("id", LONG), Field("s", TEXT), constraints_small="id < 100")
    ds.write(spark.sql("SELECT 1L AS id, 'a' AS s"), tmp_path, "append")
    with pytest.raises(ConstraintViolationError, match="small") as caught:
        ds.write(spark.sql("SELECT id, 'b' AS s FROM range(95, 101)"), tmp_path, "append")
    assert caught.value.facts["row"] == {"id": 100, "s": "b"}
    assert caught.value.facts["name"] == "small"
    with pytest.raises(ConstraintViolationError):
        ds.write(spark.sql("SELECT CAST(NULL AS BIGINT) AS id, 'b' AS s"), tmp_path, "append")
    assert len(parquet_files(tmp_path)) == 1


def test_checks_see_only_rows_that_are_written(spark: Any, tmp_path: Path) -> None:
    """A check that ran below the query's own join or limit would reject rows that never reach the table."""
    create(tmp_path, Field("id", LONG), constraints_small="id < 3")
    few = spark.range(3).withColumnRenamed("id", "other")
    many = spark.range(1000)
    ds.write(many.join(few, few.other == many.id).select("id"), tmp_path, "append")
    ds.write(spark.range(1000).limit(2), tmp_path, "append")
    assert len(rows(tmp_path)) == 5


NESTED = StructType([Field("x", LONG, False), Field("y", TEXT)])


@pytest.mark.parametrize(
    ("field", "good", "bad", "name"),
    [
        (Field("v", LONG, False), "1L", "CAST(NULL AS BIGINT)", "NOT NULL v"),
        (Field("v", NESTED), "named_struct('x', 1L, 'y', NULL)", "named_struct('x', NULL, 'y', 'a')", r"NOT NULL v\.x"),
        (Field("v", NESTED), "NULL", "named_struct('y', 'a')", r"NOT NULL v\.x"),
        (Field("v", TEXT, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}), "'äöü'", "'abcd'", "at most 3"),
    ],
)
def test_schema_is_enforced_at_every_depth(
    spark: Any, tmp_path: Path, field: Field, good: str, bad: str, name: str
) -> None:
    create(tmp_path, Field("id", LONG), field)
    ds.write(spark.sql(f"SELECT 1L AS id, {good} AS v"), tmp_path, "append")
    with pytest.raises(ConstraintViolationError, match=name):
        ds.write(spark.sql(f"SELECT 2L AS id, {bad} AS v"), tmp_path, "append")
    assert rows(tmp_path, "id") == [(1,)]


def test_elements_and_values_are_checked(spark: Any, tmp_path: Path) -> None:
    from delta_core.schema.types import ArrayType, MapType

    create(tmp_path, Field("a", ArrayType(LONG, False)), Field("m", MapType(TEXT, NESTED, False)))
    good = "SELECT array(1L) AS a, map('k', named_struct('x', 1L, 'y', 'z')) AS m UNION ALL SELECT NULL, NULL"
    ds.write(spark.sql(good), tmp_path, "append")
    for a, m, name in [
        ("array(1L, NULL)", "NULL", r"a\.element"),
        ("NULL", "map('k', NULL)", r"m\.value"),
        ("NULL", "map('k', named_struct('x', NULL, 'y', 'z'))", r"m\.value\.x"),
    ]:
        with pytest.raises(ConstraintViolationError, match=f"NOT NULL {name}"):
            ds.write(spark.sql(f"SELECT {a} AS a, {m} AS m"), tmp_path, "append")
    assert len(rows(tmp_path)) == 2


# --- what the log keeps --------------------------------------------------------------------


def test_change_feed_of_a_partial_overwrite_holds_what_changed_alone(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(5).coalesce(1), tmp_path, properties={"delta.enableChangeDataFeed": "true"})
    ds.write(spark.range(8, 9), tmp_path, "overwrite", replace_where="id >= 3")
    ds.write(spark.sql("SELECT 1L AS id"), tmp_path, "overwrite", replace_using="id")
    found = ds.read_changes(spark, tmp_path, 1).select("_commit_version", "_change_type", "id").collect()
    assert sorted(map(tuple, found)) == [
        (1, "delete", 3),
        (1, "delete", 4),
        (1, "insert", 8),
        (2, "delete", 1),
        (2, "insert", 1),
    ]
    assert rows(tmp_path) == [(0,), (1,), (2,), (8,)]


def test_rows_keep_their_ids_when_neighbours_are_replaced(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.range(6).coalesce(1), tmp_path, properties={"delta.enableRowTracking": "true"})
    before = dict(rows(tmp_path, metadata=("_row_id",)))
    ds.write(spark.range(40, 41), tmp_path, "overwrite", replace_where="id >= 4")
    ds.write(spark.range(0, 1), tmp_path, "overwrite", replace_using="id")
    after = dict(rows(tmp_path, metadata=("_row_id",)))
    assert {k: after[k] for k in (1, 2, 3)} == {k: before[k] for k in (1, 2, 3)}
    assert len(set(after.values())) == len(after) == 5
    assert not set(before.values()) & {after[0], after[40]}


def test_kept_rows_are_not_filled_or_checked_again(spark: Any, tmp_path: Path) -> None:
    create(tmp_path, Field("id", LONG), Field("r", PrimitiveType("double"), metadata={"CURRENT_DEFAULT": "1.5"}))
    ds.write(spark.sql("SELECT id, CAST(NULL AS DOUBLE) AS r FROM range(3)").coalesce(1), tmp_path, "append")
    ds.write(spark.range(7, 8), tmp_path, "overwrite", replace_where="id >= 2")
    assert rows(tmp_path) == [(0, None), (1, None), (7, 1.5)]


def test_deleted_rows_stay_deleted_when_their_file_is_rewritten(spark: Any, tmp_path: Path) -> None:
    uri = shutil.copytree(path_of("spark/vectors_in_one_file"), tmp_path / "t")
    kept = sorted(((n, f"v{n}") for n in range(40) if n % 5 and n % 7), key=repr)
    assert rows(uri) == kept, "vectors of four files hide the multiples of 5 and 7"
    before = set(DeltaTable(str(uri)).file_uris())
    ds.write(spark.sql("SELECT 1 AS id, '' AS v LIMIT 0"), uri, "overwrite", replace_where="id = 3")
    assert rows(uri) == [row for row in kept if row[0] != 3]
    assert before <= set(DeltaTable(str(uri)).file_uris()), "the file of 3 has a vector with one row more"
    DeltaTable(str(uri)).optimize.purge()
    assert rows(uri) == [row for row in kept if row[0] != 3]
    assert not before & set(DeltaTable(str(uri)).file_uris())


# --- interop -------------------------------------------------------------------------------


def test_other_readers_read_the_same_rows(spark: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    made = spark.sql("""SELECT id, concat('p/', id % 3) AS p, CAST(id AS DECIMAL(12, 2)) AS c, array(id, NULL) AS a,
        named_struct('x', id, 'y', timestamp_seconds(id)) AS o FROM range(10)""")
    ds.write(made, tmp_path, partition_by="p")
    theirs = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("id").to_pylist()
    ours = DeltaTable(str(tmp_path)).snapshot().scan().to_table().sort_by("id").to_pylist()
    assert theirs == ours
    assert [r.asDict(recursive=True)["id"] for r in ds.read(spark, tmp_path).sort("id").collect()] == list(range(10))


def test_both_engines_append_to_one_table(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    write_deltalake(str(tmp_path), pa.table({"id": [1], "p": ["x"]}), partition_by=["p"])
    ds.write(spark.sql("SELECT 2L AS id, 'y z' AS p"), tmp_path, "append")
    write_deltalake(str(tmp_path), pa.table({"id": [3], "p": ["y z"]}), mode="append")
    ds.write(spark.sql("SELECT 4L AS id, 'y z' AS p"), tmp_path, "overwrite", partition_overwrite_mode="dynamic")
    assert rows(tmp_path) == [(1, "x"), (4, "y z")]


def test_conversions_see_only_rows_that_are_written(spark: Any, tmp_path: Path) -> None:
    twice = Field("twice", LONG, metadata={"delta.generationExpression": "CAST(id * 2 AS BIGINT)"})
    create(tmp_path, Field("id", PrimitiveType("byte")), twice)
    ds.write(spark.range(0, 100_000, 1, 1).limit(3), tmp_path, "append")
    assert rows(tmp_path, "id") == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("options", "check"),
    [({}, "NOT NULL p"), ({"delta.constraints.c": "p is not null"}, "check 'c'"), ({}, "replaceWhere")],
    ids=["not-null", "check", "predicate"],
)
def test_empty_partition_value_is_null_to_checks(
    spark: Any, tmp_path: Path, options: dict[str, str], check: str
) -> None:
    schema = pa.schema([("id", pa.int64()), pa.field("p", pa.string(), check != "NOT NULL p")])
    DeltaTable.create(tmp_path, schema, partition_by=["p"], configuration=options)
    how = {"mode": "overwrite", "replace_where": "p = ''"} if check == "replaceWhere" else {"mode": "append"}
    with pytest.raises(ConstraintViolationError, match=check):
        ds.write(spark.sql("SELECT 1L AS id, '' AS p"), tmp_path, **how)
    assert DeltaTable(tmp_path).version() == 0


def test_empty_partition_value_is_null_to_what_is_computed(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("b", pa.binary()),
            pa.field("q", pa.string(), metadata={"delta.generationExpression": "coalesce(p, 'none')"}),
            pa.field("r", pa.string(), metadata={"delta.generationExpression": "substring(cast(id as string), 1, 0)"}),
        ]
    )
    DeltaTable.create(tmp_path, schema, partition_by=["p", "b", "r"])
    ds.write(spark.sql("SELECT 1L AS id, '' AS p, X'' AS b"), tmp_path, "append")
    found = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    assert found == [{"id": 1, "p": None, "b": None, "q": "none", "r": None}]
