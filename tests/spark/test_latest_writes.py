"""Rows of a table that are written back to it, while others change it: nothing is lost, nothing is there twice."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitConflictError, ConcurrentAppendError, ConcurrentDeleteReadError, SchemaMismatchError
from delta_core.schema.types import Field, PrimitiveType
from delta_core.spark import DeltaTable as SparkTable, read, write

pytestmark = pytest.mark.spark


def made(folder: Path, name: str = "t") -> str:
    path = str(folder / name)
    write_deltalake(path, pa.table({"id": pa.array([0, 1, 2], pa.int64())}))
    return path


def append(path: str, number: int) -> None:
    write_deltalake(path, pa.table({"id": pa.array([number], pa.int64())}), mode="append")


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def before(patch: pytest.MonkeyPatch, module: str, name: str, change: Any) -> None:
    """Have another writer change a table once, just before a function is called."""
    home = importlib.import_module(f"delta_core.engines.spark.{module}")
    call, left = getattr(home, name), [change]

    def changed(*args: Any, **options: Any) -> Any:
        while left:
            left.pop()()
        return call(*args, **options)

    patch.setattr(home, name, changed)


@pytest.mark.parametrize("function", ["fixed_rows", "write_frame"])
def test_overwrite_by_own_rows_keeps_a_row_that_is_appended_meanwhile(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = made(tmp_path)
    rows = SparkTable.forPath(spark, path).toDF()
    append(path, 7)
    before(monkeypatch, "write.modes", function, lambda: append(path, 8))
    write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2, 7, 8]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_write_of_own_rows_conflicts_with_their_deletion(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    path = made(tmp_path)
    rows = SparkTable.forPath(spark, path).toDF()
    before(monkeypatch, "write.modes", "write_frame", lambda: DeltaTable(path).delete("id = 1"))
    with pytest.raises(CommitConflictError):
        write(rows, path, mode)
    assert ids(path) == [0, 2]


def test_merge_of_own_rows_conflicts_with_their_deletion(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path)
    table = SparkTable.forPath(spark, path)
    source = table.toDF().selectExpr("id + 100 AS id")
    before(monkeypatch, "merge", "_cached", lambda: DeltaTable(path).delete("id = 1"))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id AND t.id < 0").whenNotMatchedInsertAll()
    with pytest.raises(CommitConflictError):
        merge.execute()
    assert ids(path) == [0, 2]


def test_parts_of_one_write_read_one_version_of_another_table(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = made(tmp_path), str(tmp_path / "target")
    rows = SparkTable.forPath(spark, path).toDF()
    before(monkeypatch, "write.modes", "write_frame", lambda: append(path, 9))
    write(rows.join(rows.withColumnRenamed("id", "other"), rows.id == 9, "left").select("id").distinct(), target)
    assert ids(target) == [0, 1, 2]


def test_query_rejects_a_table_without_its_columns(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = SparkTable.forPath(spark, path).toDF()
    write_deltalake(path, pa.table({"other": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="Make the DataFrame again"):
        rows.count()
    write_deltalake(path, pa.table({"id": pa.array([5], pa.int64())}), mode="overwrite", schema_mode="overwrite")
    assert [r.id for r in rows.select("id").collect()] == [5]


def test_query_of_several_occurrences_has_columns_of_its_own_for_each(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = SparkTable.forPath(spark, path).toDF()
    append(path, 3)
    twice = rows.union(rows)
    assert sorted(r.id for r in twice.collect()) == [0, 0, 1, 1, 2, 2, 3, 3]
    pairs = rows.alias("a").crossJoin(rows.alias("b")).where("a.id < b.id")
    assert pairs.count() == 6
    assert rows.where(rows.id.isin([1, 3])).join(rows.selectExpr("id AS x"), rows.id > 2).count() == 4


def test_commit_drops_cached_rows_of_the_latest_version_only(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    latest, requested = SparkTable.forPath(spark, path).toDF().cache(), read(spark, path, 0).cache()
    assert (latest.count(), requested.count()) == (3, 3)
    files = [Path(f) for f in DeltaTable(path).file_uris()]
    write(spark.range(7, 8), path, "append")
    assert latest.count() == 4
    for file in files:  # what is cached needs them no more
        file.unlink()
    assert requested.count() == 3
    latest.unpersist()
    requested.unpersist()


def test_rows_have_their_places_in_files_of_the_latest_version(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = SparkTable.forPath(spark, path).toDF().select("id", "_metadata.file_name", "_metadata.row_index")
    append(path, 7)
    found = {(r[0], r[2]) for r in rows.collect()}
    assert found == {(0, 0), (1, 1), (2, 2), (7, 0)}
    assert {r[1] for r in rows.collect()} == {Path(f).name for f in DeltaTable(path).file_uris()}


def test_query_rejects_another_column_of_the_same_name(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "mapped")
    rows = pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([2], pa.int64())})
    write_deltalake(path, rows, configuration={"delta.columnMapping.mode": "name"})
    table = SparkTable.forPath(spark, path)
    both, one = table.toDF(), table.toDF().select("id")
    DeltaTable(path).alter.drop_column("p")
    DeltaTable(path).alter.add_columns([Field("p", PrimitiveType("long"))])
    for query in (both, one):
        with pytest.raises(SchemaMismatchError, match="another column has the name p now"):
            query.count()
    assert [tuple(r) for r in table.toDF().collect()] == [(1, None)]


# --- rows of `read`, whose version is the one of their creation ---


def merge_all(rows: Any, path: str) -> None:
    table = SparkTable.forPath(rows.sparkSession, path).alias("t")
    table.merge(rows.alias("s"), "t.id = s.id").whenNotMatchedBySourceDelete().execute()


def replace_where(condition: str) -> Any:
    return lambda rows, path: write(rows, path, "overwrite", replace_where=condition)


WRITES: dict[str, Any] = {
    "overwrite": lambda rows, path: write(rows, path, "overwrite"),
    "overwrite of the definition": lambda rows, path: write(rows, path, "overwrite", schema_mode="overwrite"),
    "replacing by a predicate": replace_where("id >= 0"),
    "replacing equal rows": lambda rows, path: write(rows, path, "overwrite", replace_using="id"),
    "merge": merge_all,
}
SHAPES: dict[str, Any] = {
    "rows": lambda rows: rows,
    "filtered": lambda rows: rows.where("id >= 0").select("id"),
    "joined with itself": lambda rows: rows.join(rows.selectExpr("id AS other"), rows.id == F.col("other")).select(
        "id"
    ),
    "view": lambda rows: rows.createOrReplaceTempView("pinned") or rows.sparkSession.table("pinned"),
    "in a subquery": lambda rows: (
        rows.createOrReplaceTempView("inner")
        or rows.sparkSession.sql("SELECT id FROM range(9) WHERE id IN (SELECT id FROM inner)")
    ),
    "cached": lambda rows: rows.cache(),
    "with its place in files": lambda rows: rows.where("_metadata.row_index >= 0"),
}


@pytest.mark.parametrize("how", WRITES)
def test_write_of_rows_that_were_read_before_an_append_conflicts(spark: Any, tmp_path: Path, how: str) -> None:
    path = made(tmp_path)
    rows = read(spark, path)
    append(path, 7)
    with pytest.raises(ConcurrentAppendError, match="read them again"):
        WRITES[how](rows, path)
    assert ids(path) == [0, 1, 2, 7]
    WRITES[how](read(spark, path), path)
    assert ids(path) == [0, 1, 2, 7]


@pytest.mark.parametrize("shape", SHAPES)
def test_overwrite_by_what_is_made_of_rows_that_were_read_conflicts(spark: Any, tmp_path: Path, shape: str) -> None:
    path = made(tmp_path)
    rows = SHAPES[shape](read(spark, path))
    append(path, 7)
    with pytest.raises(ConcurrentAppendError):
        write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2, 7]


@pytest.mark.parametrize("route", ["index", "join"])
def test_overwrite_by_rows_of_each_route_conflicts(spark: Any, tmp_path: Path, route: Any) -> None:
    path = made(tmp_path)
    rows = read(spark, path, predicate="id < 100", columns=["id"], route=route)
    append(path, 7)
    with pytest.raises(ConcurrentAppendError):
        write(rows, path, "overwrite")


def test_append_of_rows_that_were_read_conflicts_with_their_deletion_only(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = read(spark, path).selectExpr("id + 100 AS id")
    append(path, 7)
    write(rows, path, "append")
    assert ids(path) == [0, 1, 2, 7, 100, 101, 102]
    DeltaTable(path).delete("id = 1")
    with pytest.raises(ConcurrentDeleteReadError):
        write(rows, path, "append")
    assert ids(path) == [0, 2, 7, 100, 101, 102]


def test_overwrite_by_rows_that_were_read_keeps_a_row_that_is_appended_meanwhile(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path)
    rows = read(spark, path)
    before(monkeypatch, "write.modes", "write_frame", lambda: append(path, 8))
    write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2, 8]


def test_overwrite_by_rows_that_were_read_ignores_commits_that_change_no_rows(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    append(path, 3)
    rows = read(spark, path)
    DeltaTable(path).optimize.compact()
    write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2, 3]


def test_replacing_by_a_predicate_ignores_appended_rows_that_it_keeps(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = read(spark, path).where("id < 3")
    append(path, 7)
    write(rows, path, "overwrite", replace_where="id < 3")
    assert ids(path) == [0, 1, 2, 7]


def test_overwrite_by_rows_of_a_requested_version_replaces_later_ones(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = read(spark, path, 0)
    append(path, 7)
    write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2]


def test_overwrite_by_rows_of_another_table_does_not_depend_on_their_version(spark: Any, tmp_path: Path) -> None:
    path, other = made(tmp_path), made(tmp_path, "other")
    rows = read(spark, other)
    append(path, 7)
    append(other, 8)
    write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2]


def test_overwrite_by_rows_of_a_table_that_was_made_again_conflicts(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = read(spark, path)
    shutil.rmtree(path)
    made(tmp_path)
    with pytest.raises(CommitConflictError, match="made again"):
        write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2]


def test_overwrite_by_rows_conflicts_if_the_commits_since_were_cleaned_up(spark: Any, tmp_path: Path) -> None:
    path = made(tmp_path)
    rows = read(spark, path)
    append(path, 7)
    append(path, 8)
    DeltaTable(path).create_checkpoint()
    for version in (0, 1):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(CommitConflictError, match="cleaned up"):
        write(rows, path, "overwrite")
    assert ids(path) == [0, 1, 2, 7, 8]
