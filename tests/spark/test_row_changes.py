"""Rows changed on Spark: the same rows, feed and row ids as on Arrow, with no row in the driver's Python."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark import relations
from delta_core.engines.spark.relations import row_sets, spark_engine
from delta_core.engines.spark.write import modes
from delta_core.errors import (
    ColumnNotFoundError,
    ConcurrentDeleteDeleteError,
    ConstraintViolationError,
    EngineError,
    ExpressionError,
    InvalidArgumentError,
    MultipleMatchesError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.kernel.scan.scan import Scan
from delta_core.kernels.row_set import RowSets
from delta_core.operations import ChangeOptions, UpdateOptions, delete_rows, update_rows
from delta_core.operations.row_changes import RowChanges
from tests.example_counts import chosen

pytestmark = pytest.mark.spark

VECTORS = {"delta.enableDeletionVectors": "true"}
ALL = {
    **VECTORS,
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}
FEED = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
PREDICATES = ["id % 3 = 0", "p = 'a'", "x > 0.5 OR x IS NULL", "s.n IN (2, 5) AND p <=> NULL"]


def made(path: Path, properties: dict[str, str], partition_by: list[str]) -> Path:
    rows = [
        {"id": i, "p": [None, "a", "b"][i % 3], "x": [0.25, None, 1.0, 0.75][i % 4], "s": {"n": i}} for i in range(16)
    ]
    for start in (0, 8):
        table = pa.Table.from_pylist(rows[start : start + 8])
        write_deltalake(
            path, table, mode="append", partition_by=partition_by, configuration=properties if start == 0 else None
        )
    return path


def rows_of(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    table = DeltaTable(path, version=version)
    has_ids = table.metadata().configuration.get("delta.enableRowTracking") == "true"
    scan = table.scan(metadata=("_row_id",)) if has_ids else table.scan()
    return sorted(scan.to_table().to_pylist(), key=lambda r: (r["id"] is None, r["id"]))


def feed_of(path: Path) -> list[Any]:
    rows = DeltaTable(path).load_cdf(2).read_all().drop_columns(["_commit_timestamp"]).to_pylist()
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [({}, []), (VECTORS, []), (FEED, ["p"]), (ALL, ["p"])],
    ids=["copy", "vectors", "feed", "all"],
)
def test_deletes_and_updates_equal_those_of_the_arrow_engine(
    spark: Any, tmp_path: Path, properties: dict[str, str], partition_by: list[str]
) -> None:
    ours, arrow = (made(tmp_path / n, properties, partition_by) for n in ("spark", "arrow"))
    choose, table, other = random.Random(3), ds.DeltaTable.forPath(spark, ours), DeltaTable(arrow)
    first, second = choose.sample(PREDICATES, 2)
    sets = {"x": "x + id", "s.n": "s.n * 10", "p": "CASE WHEN id = 4 THEN 'm' ELSE p END"}
    table.update(first, sets)
    other.update(sets, predicate=first)
    assert rows_of(ours) == rows_of(arrow)
    table.delete(second)
    other.delete(second)
    assert rows_of(ours) == rows_of(arrow)
    if "delta.enableChangeDataFeed" in properties:
        assert feed_of(ours) == feed_of(arrow)
    ours_done, arrow_done = (DeltaTable(p).history(1)[0]["operationMetrics"] for p in (ours, arrow))
    assert ours_done["numDeletedRows"] == arrow_done["numDeletedRows"]
    assert sorted(r["id"] for r in table.toDF().collect()) == [r["id"] for r in rows_of(arrow)]


def test_columns_and_aliases_select_and_assign(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    made(tmp_path, VECTORS, [])
    table = ds.DeltaTable.forPath(spark, tmp_path).alias("t")
    table.update(
        F.col("t.id").between(3, 4) & F.upper("p").eqNullSafe("A"),
        {"t.p": F.concat("p", F.lit("'\\z")), "x": F.lit(None)},
    )
    table.delete((F.col("id") > 9) | ~F.col("x").isNotNull())
    assert [(r["id"], r["p"]) for r in rows_of(tmp_path)] == [
        (0, None),
        (2, "b"),
        (3, None),
        (6, None),
        (7, "a"),
        (8, "b"),
    ]
    table.delete("t.id < 5")
    table.delete()
    table.delete("id = 1")
    assert rows_of(tmp_path) == []
    assert DeltaTable(tmp_path).version() == 5  # a delete of no row makes no commit


def test_rows_that_other_writers_dropped_meanwhile_stay_dropped(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, VECTORS, [])
    stale = DeltaTable(tmp_path, engine=spark_engine(spark, str(tmp_path))).snapshot()

    class Stale:
        def latest(self) -> Any:
            return stale

    delete_rows(Stale(), ChangeOptions(predicate="id = 1"))  # type: ignore[arg-type]  # a snapshot that sees no newer one
    update_rows(Stale(), UpdateOptions(predicate="id = 2", updates={"x": "9"}))  # type: ignore[arg-type]
    with pytest.raises(ConcurrentDeleteDeleteError):
        delete_rows(Stale(), ChangeOptions(predicate="id IN (1, 3)"))  # type: ignore[arg-type]
    found = {r["id"]: r["x"] for r in rows_of(tmp_path)}
    assert 1 not in found
    assert (found[2], found[3]) == (9.0, 0.75)


def _merge(spark: Any, path: Path) -> None:
    source = spark.range(10, 20).selectExpr("id", "2.5D AS x")
    merge = ds.DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("t.id = 10").whenMatchedUpdate(set={"x": "s.x + t.x"})
    merge.whenNotMatchedInsert(values={"id": "s.id"}).whenNotMatchedBySourceDelete("t.id = 1").execute()


def _convert(spark: Any, path: Path) -> None:
    folder = Path(f"{path}-folder")
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), folder / "part.parquet")
    ds.DeltaTable.convertToDelta(spark, f"parquet.`{folder}`")


def _reject_nulls(spark: Any, path: Path) -> None:
    with pytest.raises(ConstraintViolationError):
        ds.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN x SET NOT NULL")


#: Changes, and how many plans they have in a table with vectors, row ids and a change feed, and in a plain one.
CHANGES: dict[str, tuple[Any, int, int]] = {
    # the search, the updated rows, the change feed or the rows that remain
    "update": (lambda spark, path: ds.DeltaTable.forPath(spark, path).update("id > 3", {"x": "x * 2"}), 3, 3),
    "delete": (lambda spark, path: ds.DeltaTable.forPath(spark, path).delete("id > 3"), 2, 2),
    # facts about the source, the pairs and the rows without one, the updated rows (with those that remain), the
    # inserted ones, the change feed
    "merge": (_merge, 6, 5),
    "replace_where": (
        lambda spark, path: ds.write(spark.range(4, 6), path, "overwrite", replace_where="id > 3"), 3, 2
    ),
    # the new rows, those that they replace, the change feed or the rows that remain
    "replace_using": (lambda spark, path: ds.write(spark.range(4, 6), path, "overwrite", replace_using="id"), 3, 3),
    "replace_on": (
        lambda spark, path: ds.write(spark.range(4, 6), path, "overwrite", replace_on="t.id = s.id"), 3, 3
    ),
    "optimize": (lambda spark, path: ds.DeltaTable.forPath(spark, path).optimize().executeCompaction(), 1, 1),
    "z_order": (lambda spark, path: ds.DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id", "x"), 1, 1),
    # rows are counted that break a condition
    "add_constraint": (
        lambda spark, path: ds.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 100)"), 1, 1
    ),
    "set_not_null": (_reject_nulls, 1, 1),
    # files are copied, and footers read: no rows
    "clone": (lambda spark, path: ds.DeltaTable.forPath(spark, path).clone(f"{path}-clone"), 0, 0),
    "convert": (_convert, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("properties", [ALL, {}], ids=["all", "plain"])
@pytest.mark.parametrize("name", CHANGES)
def test_no_row_passes_through_python(
    spark: Any, tmp_path: Path, name: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, properties, [])
    plans: list[str] = []

    def noted(function: Any, place: int) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            plans.append(args[place]._jdf.queryExecution().executedPlan().toString())
            return function(*args, **options)

        return call

    for module in (relations, modes):
        monkeypatch.setattr(module, "write_frame", noted(module.write_frame, 3))
    frames = type(spark.range(1))
    for name_of_call in ("toArrow", "collect"):
        monkeypatch.setattr(frames, name_of_call, noted(getattr(frames, name_of_call), 0))
    change, with_all, plain = CHANGES[name]
    change(spark, tmp_path)
    assert len(plans) == (with_all if properties else plain)
    assert not [p for p in plans if "Python" in p or "InArrow" in p or "ArrowEval" in p]
    assert not plans or any("FileScan" in p or "Scan parquet" in p for p in plans)


@pytest.mark.parametrize("condition", ["id < 14", "x > 0.5 OR s.n IS NULL"])
def test_rows_that_break_a_new_rule_are_reported_as_by_the_arrow_engine(
    spark: Any, tmp_path: Path, condition: str
) -> None:
    made(tmp_path, VECTORS, ["p"])
    DeltaTable(tmp_path).delete("id = 14")
    ours, arrow = ds.DeltaTable.forPath(spark, tmp_path).table, DeltaTable(tmp_path)
    found: list[list[ConstraintViolationError]] = []
    for table in (ours, arrow):
        found.append([])
        with pytest.raises(ConstraintViolationError) as caught:
            table.alter.add_constraint({"c": condition})
        found[-1].append(caught.value)
        with pytest.raises(ConstraintViolationError) as caught:
            table.alter.set_column_not_null("x")
        found[-1].append(caught.value)
    for one, other in zip(*found, strict=True):
        rows = [e.facts.get("row") for e in (one, other)]
        if rows[0] is not None:
            kept = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
            assert set(rows[0]) == set(rows[1])
            assert rows[0] in kept
        assert {**one.facts, "row": None} == {**other.facts, "row": None}
    assert DeltaTable(tmp_path).version() == 2


@pytest.mark.parametrize("step", [1, -2])
def test_executors_find_the_last_number_of_an_identity_column(
    spark: Any, tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ds.IdentityGenerator(start=0, step=step)
    builder = ds.DeltaTable.create(spark).location(str(tmp_path)).addColumn("a", "bigint")
    builder.addColumn("n", "bigint", generatedByDefaultAs=numbers).execute()
    ds.write(spark.sql("SELECT id AS a, id * 10 AS n FROM range(-3, 4)"), tmp_path, "append")
    monkeypatch.setattr(Scan, "batches", lambda _: pytest.fail("rows are read in Python"))
    ds.sql(spark, f"ALTER TABLE delta.`{tmp_path}` ALTER COLUMN n SYNC IDENTITY")
    (field,) = [f for f in DeltaTable(tmp_path).schema().fields if f.name == "n"]
    assert field.metadata["delta.identity.highWaterMark"] == 30 * (1 if step > 0 else -1)


def test_what_cannot_be_changed_is_rejected_and_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, {**VECTORS, "delta.constraints.small": "id < 100"}, [])
    table, files = ds.DeltaTable.forPath(spark, tmp_path), {p.name for p in tmp_path.rglob("*.parquet")}
    cases: list[tuple[type[Exception], Any]] = [
        (ColumnNotFoundError, lambda: table.delete("nope = 1")),
        (ExpressionError, lambda: table.delete("sentences(p) = 1")),
        (InvalidArgumentError, lambda: table.delete(3)),
        (InvalidArgumentError, lambda: table.update("id = 1", {})),
        (InvalidArgumentError, lambda: table.update(set=None)),
        (InvalidArgumentError, lambda: table.update(set={"id": 3})),
        (ConstraintViolationError, lambda: table.update("id = 7", {"id": "id + 100"})),
        (InvalidArgumentError, lambda: table.merge(spark.range(1), "target.id = source.id").execute()),
        (ExpressionError, lambda: table.merge(spark.range(1), "id = id").whenMatchedDelete().execute()),
        (InvalidArgumentError, lambda: table.merge([1], "id = id")),
        (InvalidArgumentError, lambda: table.merge(spark.range(1), "true").whenMatchedUpdate("true")),
        (ColumnNotFoundError, lambda: table.optimize().executeZOrderBy("nope")),
        (UnsupportedOperationError, lambda: table.optimize().full().executeCompaction()),
        (InvalidArgumentError, lambda: table.optimize().where("id = 1").executeCompaction()),
        (InvalidArgumentError, lambda: table.generate("manifest")),
        (InvalidArgumentError, lambda: ds.DeltaTable.forPath(spark, tmp_path, {"fs.x": 1})),
        (TableNotFoundError, lambda: ds.DeltaTable.forPath(spark, tmp_path / "nothing")),
        (TableNotFoundError, lambda: ds.DeltaTable.forName(spark, "nothing")),
    ]
    for kind, call in cases:
        with pytest.raises(kind):
            call()
    assert DeltaTable(tmp_path).version() == 1
    assert {p.name for p in tmp_path.rglob("*.parquet")} == files


def test_texts_of_times_are_in_the_zone_of_the_session(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"t": pa.array([0], pa.timestamp("us", "UTC")), "n": [1]}))
    table = ds.DeltaTable.forPath(spark, tmp_path)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for condition in ("t > '1970-01-01 01:00:00'", "t = TIMESTAMP '1970-01-01 00:00:00'"):
            table.delete(condition)
        table.update("t = '1970-01-01 01:00:00'", {"t": "'1970-01-01 01:30:00'"})
        table.update("n = 1 AND t IS NOT NULL", {"n": "2"})
        table.delete("t > '1970-01-01 01:30:00'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert DeltaTable(tmp_path).to_pyarrow_table()["t"].cast("int64").to_pylist() == [30 * 60 * 10**6]
    table.delete("t > '1970-01-01 00:30:00'")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist()[0]["n"] == 2


def test_calls_that_touch_the_log_return_what_delta_spark_returns(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, VECTORS, ["p"])
    table = ds.DeltaTable.forName(spark, f"delta.`{tmp_path}`")
    table.delete("id = 3")
    newest, *older = table.history().collect()
    assert (newest.version, newest.operation, newest.operationParameters["predicate"]) == (2, "DELETE", '["id = 3"]')
    assert (len(older), len(table.history(1).columns)) == (2, 15)
    detail = table.detail().collect()[0]
    assert (detail.format, detail.partitionColumns, detail.clusteringColumns) == ("delta", ["p"], [])
    assert detail.tableFeatures == ["deletionVectors"] or "deletionVectors" in detail.tableFeatures
    restored = table.restoreToVersion(1).collect()[0]
    assert (restored.num_restored_files, restored.num_removed_files) == (1, 1)
    assert len(rows_of(tmp_path)) == 16
    table.delete("id = 5")
    table.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in (DeltaTable(tmp_path).protocol().reader_features or [])
    assert [r["id"] for r in rows_of(tmp_path)] == [i for i in range(16) if i != 5]
    table.addFeatureSupport("deletionVectors")
    assert table.vacuum().collect() == []
    assert table.vacuum("168").collect() == []
    assert ds.DeltaTable.isDeltaTable(spark, str(tmp_path))
    assert ds.DeltaTable.isDeltaTable(spark, str(tmp_path / "p=a"))  # within the table
    assert not ds.DeltaTable.isDeltaTable(spark, str(tmp_path.parent))


SOURCE = [
    (1, "n", 10.0, {"n": 100}), (2, "o", None, None), (4, "q", 1.5, None), (11, "r", 2.5, None),
    (40, "a", 4.0, {"n": 400}), (50, None, 5.0, {"n": 500}),
    (None, "z", 6.0, None),
]  # fmt: skip
#: Clauses: the name that both APIs have, the condition, the values.
UPSERT = [
    ("MatchedUpdate", "s.id = 1", {"x": "s.x + t.x", "s.n": "s.id * 7"}),
    ("MatchedUpdateAll", None, None),
    ("NotMatchedInsertAll", None, None),
]
SYNC = [
    ("MatchedDelete", "t.id = 2", None),
    ("NotMatchedInsert", "s.id > 40", {"id": "s.id", "p": "'new'"}),
    ("NotMatchedBySourceUpdate", "t.id % 5 = 0", {"x": "-1"}),
    ("NotMatchedBySourceDelete", "t.id > 9", None),
]

SIMPLE = [
    ("MatchedUpdate", "t.id = 1", {"x": "s.x + coalesce(t.x, 1)", "p": "s.p"}),
    ("MatchedDelete", "s.x IS NULL", None),
    ("MatchedUpdate", "t.id > 3 AND t.id < 6", {"p": "concat(s.p, t.p)"}),
    ("MatchedUpdate", "t.id > 6", {"x": "0", "p": "null"}),
    ("NotMatchedInsertAll", None, None),
]


CLAUSES = {"upsert": UPSERT, "sync": SYNC, "simple": SIMPLE}
MERGED: dict[str, tuple[dict[str, str], list[str], str]] = {
    "copy": ({}, [], "t.id <=> s.id AND t.x IS NOT NULL OR t.id = 2 AND s.id = 2"),
    "vectors": (VECTORS, ["p"], "t.id = s.id"),
    "all": (ALL, ["p"], "t.id = s.id"),
}
#: All clauses on tables without vectors and on those with everything; between them, one. All pairs in the long form.
MERGES = chosen(product(MERGED, CLAUSES), [*product(["copy", "all"], CLAUSES), ("vectors", "sync")])


@pytest.mark.parametrize(("kind", "name"), MERGES)
def test_merges_equal_those_of_the_arrow_engine(spark: Any, tmp_path: Path, kind: str, name: str) -> None:
    clauses, (properties, partition_by, condition) = CLAUSES[name], MERGED[kind]
    ours, arrow = (made(tmp_path / n, properties, partition_by) for n in ("spark", "arrow"))
    source = spark.createDataFrame(SOURCE, "id bigint, p string, x double, s struct<n bigint>")
    merge: Any = ds.DeltaTable.forPath(spark, ours).alias("t").merge(source.alias("s"), condition)
    other: Any = DeltaTable(arrow).merge(source.toArrow(), condition, source_alias="s", target_alias="t")
    for clause, when, values in clauses:
        given = [when] if values is None else [when, values]
        merge = getattr(merge, f"when{clause}")(*given)
        other = getattr(other, "when" + re.sub("([A-Z])", r"_\1", clause).lower())(*reversed(given))
    done, expected = merge.execute().collect()[0], other.execute()
    names = ("num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    assert [done[n] for n in names] == [
        expected[n.replace("num_", "num_target_rows_").removesuffix("_rows")] for n in names
    ]
    assert done["num_affected_rows"] == sum(done[n] for n in names)

    found, wanted = ([_plain_ids(r) for r in rows_of(p)] for p in (ours, arrow))
    assert found == wanted
    if "delta.enableChangeDataFeed" in properties:
        assert feed_of(ours) == feed_of(arrow)


def test_merge_without_vectors_rewrites_files_and_updates_rows_in_one_pass(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, VECTORS, [])
    table = ds.DeltaTable.forPath(spark, tmp_path)
    table.delete("id IN (2, 3)")
    table.table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    monkeypatch.delattr(RowChanges, "write_updated")
    source = spark.sql("SELECT id, 'new' AS p FROM range(0, 40, 2) WHERE id < 6 OR id > 30")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("t.id = 4")
    merge.whenMatchedUpdate(set={"p": "s.p"}).whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"}).execute()
    found = {r["id"]: (r["p"], r["x"]) for r in rows_of(tmp_path)}
    expected = {i: ([None, "a", "b"][i % 3], [0.25, None, 1.0, 0.75][i % 4]) for i in range(16) if i not in (2, 3, 4)}
    assert found == {**expected, 0: ("new", 0.25), **{i: ("new", None) for i in (2, 32, 34, 36, 38)}}
    metrics = DeltaTable(tmp_path).history(1)[0]["operationMetrics"]
    names = ("numTargetRowsCopied", "numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsInserted")
    assert [int(metrics[n]) for n in names] == [4, 1, 1, 5]
    assert metrics["numTargetFilesRemoved"] == "1"


def _plain_ids(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the ids that it had before; those of inserted rows depend on the order of writing."""
    return {k: None if k == "_row_id" and v > 15 else v for k, v in row.items()}


def test_merge_takes_columns_and_evolves_the_schema(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    made(tmp_path, VECTORS, [])
    source = spark.sql("SELECT 3L AS id, 'more' AS extra UNION ALL SELECT 70L, 'new'")
    table = ds.DeltaTable.forPath(spark, tmp_path)
    merge = table.alias("t").merge(source.alias("s"), F.col("t.id") == F.col("s.id")).withSchemaEvolution()
    merge = merge.whenMatchedUpdate(F.col("t.id") > 2, {"extra": F.upper("s.extra"), "t.x": F.lit(8.5)})
    merge.whenNotMatchedInsertAll().execute()
    rows = {r["id"]: (r["x"], r["extra"]) for r in rows_of(tmp_path)}
    assert (rows[3], rows[70], rows[4]) == ((8.5, "MORE"), (None, "new"), (0.25, None))
    assert (
        table.merge(spark.range(0).toDF("id"), "target.id = source.id").whenMatchedDelete().execute().collect()[0][0]
        == 0
    )
    assert DeltaTable(tmp_path).version() == 2


def test_several_matches_of_a_row_are_an_error_unless_it_is_only_deleted(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, VECTORS, [])
    source = spark.sql("SELECT * FROM VALUES (3L, 1), (3L, 2), (4L, 1) AS s(id, n)")
    table = ds.DeltaTable.forPath(spark, tmp_path)
    merge = table.merge(source, "target.id = source.id")
    with pytest.raises(MultipleMatchesError, match="'id': 3"):
        merge.whenMatchedUpdate("n = 1", {"x": "n"}).execute()
    assert DeltaTable(tmp_path).version() == 1
    assert merge.whenMatchedDelete().execute().collect()[0].num_deleted_rows == 2
    assert not {3, 4} & {r["id"] for r in rows_of(tmp_path)}


def test_source_of_a_merge_is_computed_once(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    made(tmp_path, VECTORS, [])
    source = spark.range(0, 40, 1, 4).select(
        (F.col("id") + (F.rand() * 20).cast("long") * 100).alias("id"), F.rand().alias("x")
    )
    merge = ds.DeltaTable.forPath(spark, tmp_path).merge(source, "target.id = source.id % 100 AND source.id < 600")
    done = (
        merge.whenMatchedUpdate(set={"x": "source.x"})
        .whenNotMatchedInsert(values={"id": "source.id"})
        .execute()
        .collect()[0]
    )
    assert done.num_updated_rows + done.num_inserted_rows == 40
    assert len(rows_of(tmp_path)) == 16 + done.num_inserted_rows


def test_compaction_joins_files_and_keeps_rows_and_their_ids(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, ALL, ["p"])
    table = ds.DeltaTable.forPath(spark, tmp_path)
    before = rows_of(tmp_path)
    found = table.optimize().where("p = 'a'").executeCompaction().collect()[0]
    assert (found.metrics.numFilesAdded, found.metrics.numFilesRemoved, found.metrics.filesAdded.totalFiles) == (
        1,
        2,
        1,
    )
    assert (rows_of(tmp_path), feed_of(tmp_path)) == (before, [])
    monkeypatch.setattr(relations, "_MANY_FILES", 1)  # read by several tasks
    table.optimize().executeCompaction()
    assert rows_of(tmp_path) == before
    assert table.optimize().executeCompaction().collect()[0].metrics.numFilesAdded == 0
    assert len(DeltaTable(tmp_path).file_uris()) == 3


@pytest.mark.parametrize(
    "how", [{"replace_using": "id"}, {"replace_on": "t.id <=> s.id"}, {"replace_where": "id IN (1, 2)"}], ids=str
)
def test_overwrite_drops_matching_rows_by_vectors(spark: Any, tmp_path: Path, how: dict[str, str]) -> None:
    made(tmp_path, ALL, [])
    before = set(DeltaTable(tmp_path).file_uris())
    new = spark.createDataFrame(SOURCE, "id bigint, p string, x double, s struct<n bigint>").where("id < 3")
    ds.write(new.coalesce(1), tmp_path, "overwrite", **how)
    assert before < set(DeltaTable(tmp_path).file_uris())
    assert [(r["id"], r["p"]) for r in rows_of(tmp_path)][:4] == [(0, None), (1, "n"), (2, "o"), (3, None)]
    kinds = [kind for row in feed_of(tmp_path) for kind in ("delete", "insert") if f"'{kind}'" in row]
    assert sorted(kinds) == ["delete", "delete", "insert", "insert"]
    found = DeltaTable(tmp_path).history(1)[0]["operationMetrics"]
    assert {n: found[n] for n in ("numOutputRows", "numDeletedRows", "numCopiedRows", "numRemovedFiles")} == {
        "numOutputRows": "2", "numDeletedRows": "2", "numCopiedRows": "0", "numRemovedFiles": "0",
    }  # fmt: skip


def test_builders_make_and_replace_tables(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    def columns(builder: Any) -> Any:
        builder = builder.tableName(f"delta.`{tmp_path / 'a'}`").comment("visits").property("delta.appendOnly", "false")
        builder = builder.addColumn("n", "bigint", generatedByDefaultAs=ds.IdentityGenerator(5, 2))
        builder = builder.addColumn("d", T.DateType(), nullable=False, comment="a day").clusterBy("d")
        return builder.addColumn("y", "int", generatedAlwaysAs="year(d)")

    with pytest.raises(TableNotFoundError):
        columns(ds.DeltaTable.replace(spark)).execute()
    table = columns(ds.DeltaTable.create(spark)).execute()
    with pytest.raises(TableExistsError):
        columns(ds.DeltaTable.create(spark)).execute()
    ds.write(spark.sql("SELECT DATE'2024-05-01' AS d").coalesce(1), tmp_path / "a", "append")
    assert [tuple(r) for r in table.toDF().select("n", "y").collect()] == [(5, 2024)]
    assert columns(ds.DeltaTable.createIfNotExists(spark)).execute().toDF().count() == 1
    detail = table.detail().collect()[0]
    assert (detail.description, detail.clusteringColumns, detail.properties["delta.appendOnly"]) == (
        "visits",
        ["d"],
        "false",
    )
    field = DeltaTable(tmp_path / "a").schema().get("d")
    assert (field.nullable, field.metadata["comment"]) == (False, "a day")
    fields = T.StructType([T.StructField("k", T.StringType(), False), T.StructField("v", T.DecimalType(9, 2))])
    builder = ds.DeltaTable.createOrReplace().location(str(tmp_path / "a")).addColumns(fields).partitionedBy(["k"])
    assert builder.execute().toDF().columns == ["k", "v"]
    assert (DeltaTable(tmp_path / "a").version(), DeltaTable(tmp_path / "a").metadata().partition_columns) == (2, ["k"])
    for call in (
        lambda: builder.addColumn("x", "int", generatedAlwaysAs="1", generatedByDefaultAs=ds.IdentityGenerator()),
        lambda: builder.addColumn("x", "int", generatedAlwaysAs=ds.IdentityGenerator(step=0)),
        lambda: builder.addColumn("x", "int", generatedByDefaultAs="k"),
        lambda: builder.addColumn("x", 3),
        lambda: ds.DeltaTable.create(spark).addColumns(fields).execute(),
        lambda: ds.DeltaTable.create(spark).location(str(tmp_path / "b")).execute(),
    ):
        with pytest.raises(InvalidArgumentError):
            call()


def test_builders_register_tables_in_the_catalog(spark: Any, tmp_path: Path) -> None:
    def made(mode: str, name: str, location: Path | None = None) -> Any:
        builder = getattr(ds.DeltaTable, mode)(spark).tableName(name).addColumn("n", "int")
        return (builder if location is None else builder.location(str(location))).execute()

    spark.sql("CREATE OR REPLACE TEMP VIEW a_view AS SELECT 1 AS n")
    try:
        assert made("create", "visits", tmp_path / "v s").path == str(tmp_path / "v s")
        for mode in ("createIfNotExists", "createOrReplace", "replace"):
            assert made(mode, "default.visits").path == str(tmp_path / "v s")
        assert DeltaTable(tmp_path / "v s").version() == 2
        assert ds.DeltaTable.forName(spark, "visits").toDF().columns == ["n"]
        with pytest.raises(TableExistsError):
            made("create", "visits")
        with pytest.raises(InvalidArgumentError, match="another location"):
            made("replace", "visits", tmp_path / "b")
        with pytest.raises(TableExistsError, match="another kind"):
            made("createOrReplace", "a_view", tmp_path / "b")
        with pytest.raises(TableNotFoundError):
            made("replace", "nothing", tmp_path / "b")
        assert not (tmp_path / "b").exists()
    finally:
        catalog = spark._jsparkSession.sessionState().catalog()
        catalog.dropTable(spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier("visits"), True, False)


def test_folders_are_converted_and_versions_raised(spark: Any, tmp_path: Path) -> None:
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(str(tmp_path / "c"))
    table = ds.DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'c'}`", "p bigint")
    table.upgradeTableProtocol(1, 4)
    table.upgradeTableProtocol(1, 2)
    assert DeltaTable(tmp_path / "c").protocol()[:2] == (1, 4)
    with pytest.raises(InvalidArgumentError, match="writer version 7"):
        table.upgradeTableProtocol(3, 4)
    before = set(DeltaTable(tmp_path / "c").snapshot().state.features)
    for versions, reader in (((1, 7), 1), ((3, 7), 3), ((1, 2), 3)):
        table.upgradeTableProtocol(*versions)
        found = DeltaTable(tmp_path / "c").protocol()
        assert set(found.writer_features or ()) == before
        assert (found.min_writer_version, found.min_reader_version) == (7, reader)
    with pytest.raises(TableNotFoundError, match="no table visits in the session's catalog"):
        ds.DeltaTable.convertToDelta(spark, "visits")
    assert sorted(r.id for r in table.toDF().where("p = 1").collect()) == [1, 3]


def test_spark_and_arrow_drop_rows_of_the_same_files_at_the_same_time(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": list(range(40)), "x": [0] * 40}), configuration=VECTORS)
    failed: list[BaseException] = []

    def on_arrow() -> None:
        try:
            for i in range(0, 40, 8):
                DeltaTable(tmp_path).delete(f"id = {i}")
        except BaseException as e:  # noqa: BLE001 (reported by the test)
            failed.append(e)

    other = threading.Thread(target=on_arrow)
    other.start()
    for i in (1, 2):
        ds.DeltaTable.forPath(spark, tmp_path).delete(f"id % 8 = {i}")
    ds.DeltaTable.forPath(spark, tmp_path).update("id % 8 = 3", {"x": "1"})
    other.join()
    assert not failed
    assert [(r["id"], r["x"]) for r in rows_of(tmp_path)] == [(i, int(i % 8 == 3)) for i in range(40) if i % 8 > 2]


@pytest.mark.parametrize("kind", ["zorder", "cluster"])
def test_ordered_files_have_narrow_ranges_and_the_same_rows(
    spark: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"delta.targetFileSize": "4kb", "delta.enableRowTracking": "true"}
    place = [(i * 7919) % 4096 for i in range(4096)]
    rows = pa.table(
        {
            "a": [n % 64 for n in place],
            "b": [None if n // 64 == 5 else f"{'same ' * 4}{n // 64:02}" for n in place],
            "id": place,
        }
    )
    clusters = {"cluster_by": ["a", "b"]} if kind == "cluster" else {}
    for part in (rows.slice(0, 2000), rows.slice(2000)):
        write_deltalake(tmp_path, part, mode="append", configuration=properties, **clusters)
    before = rows_of(tmp_path)
    plans: list[str] = []
    write_frame = relations.write_frame

    def noted(*args: Any, **options: Any) -> Any:
        plans.append(args[3]._jdf.queryExecution().executedPlan().toString())
        return write_frame(*args, **options)

    monkeypatch.setattr(relations, "write_frame", noted)
    optimizer = ds.DeltaTable.forPath(spark, tmp_path).optimize()
    done = optimizer.executeCompaction() if kind == "cluster" else optimizer.executeZOrderBy("a", "b")
    metrics = done.collect()[0].metrics
    table = DeltaTable(tmp_path)
    assert metrics.numFilesAdded == len(table.file_uris()) >= 4
    assert rows_of(tmp_path) == before
    for condition in ("a = 3", f"b = '{'same ' * 4}40'"):
        assert table.scan(predicate=condition).files().num_rows <= 0.75 * metrics.numFilesAdded
    assert "Exchange rangepartitioning" in plans[0]
    assert not [p for p in plans if "Python" in p or "InArrow" in p or "ArrowEval" in p]
    tags = table.snapshot().files.columns(["tags", "clusteringProvider", "dataChange"]).to_pylist()
    assert not any(t["dataChange"] for t in tags)
    assert all((t["clusteringProvider"] == "liquid") == (kind == "cluster") for t in tags)


def test_bitmaps_become_the_positions_that_are_set() -> None:
    bits = bytearray(4096)
    bits[0], bits[4095] = 0b101, 0b10000000
    table = pa.table({"f": [1, 1, 0], "p": [0, 2, 0], "b": [bytes(bits), bytes(bits), bytes(4096)]})
    expected = RowSets.from_positions(3, [1] * 6, [0, 2, 32767, 65536, 65538, 98303])
    assert row_sets(table, 3) == expected


@pytest.fixture
def without_ansi(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield
    spark.conf.set("spark.sql.ansi.enabled", "true")


@pytest.mark.usefixtures("without_ansi")
@pytest.mark.parametrize(
    "sets", [{"small": "id"}, {"small": "p"}, {"small": "id DIV 2"}, {"small": "concat(small, 'x')"}], ids=str
)
def test_assigned_values_that_do_not_fit_fail_without_ansi_mode(
    spark: Any, tmp_path: Path, sets: dict[str, str]
) -> None:
    rows = pa.table({"id": [2**40], "small": pa.array([1], pa.int32()), "p": ["abc"]})
    write_deltalake(tmp_path, rows)
    table = ds.DeltaTable.forPath(spark, tmp_path)
    source = spark.createDataFrame([(2**40 + 5, "zz")], "small bigint, p string")
    merge = table.merge(source, "target.p = source.p").whenNotMatchedInsert(values={"small": "source.small"})
    for call in (lambda: table.update(set=sets), merge.execute):
        with pytest.raises(EngineError, match="CAST_"):
            call()
    assert (DeltaTable(tmp_path).version(), DeltaTable(tmp_path).to_pyarrow_table()) == (0, rows)


@pytest.mark.usefixtures("without_ansi")
def test_operators_are_those_of_the_mode_without_ansi_mode(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [2**40, 7], "small": pa.array([0, 1], pa.int32())}))
    table = ds.DeltaTable.forPath(spark, tmp_path)
    table.update("1 DIV small IS NULL", {"id": "id * id * id + 3"})
    table.update("small = 1", {"small": "1 DIV (small - small)"})
    table.delete("CAST('x' AS INT) IS NOT NULL OR 1 / small > 5")
    assert sorted(rows_of(tmp_path), key=lambda r: r["id"]) == [{"id": 3, "small": 0}, {"id": 7, "small": None}]


@pytest.mark.usefixtures("without_ansi")
def test_what_means_the_same_without_ansi_mode_runs_there(spark: Any, tmp_path: Path) -> None:
    made(tmp_path, ALL, ["p"])
    table = ds.DeltaTable.forPath(spark, tmp_path)
    table.delete("id IN (1, 2) OR p <=> NULL AND x > 0.5")
    table.update("s.n = 4", {"p": "upper(coalesce(p, 'z'))", "s.n": "id"})
    source = spark.createDataFrame([(5, "n"), (99, "o")], "id bigint, p string")
    values = {name: f"source.{name}" for name in source.columns}
    merge = table.merge(source, "target.id = source.id").whenMatchedUpdate(set=values)
    merge.whenNotMatchedInsert(values=values).execute()
    found = {r["id"]: r["p"] for r in rows_of(tmp_path)}
    assert (found[4], found[5], found[99]) == ("A", "n", "o")
    assert not {1, 2} & set(found)


@pytest.mark.parametrize("is_raw", ["false", "true"])
def test_texts_with_backslashes_and_quotes_mean_the_same_in_every_session(
    spark: Any, tmp_path: Path, is_raw: str
) -> None:
    from pyspark.sql import functions as F

    texts = ["a\\b", "it's", 'a"b', "line\nend", "tab\there", "\\", "plain", "é\\"]
    write_deltalake(tmp_path, pa.table({"s": texts, "n": range(len(texts))}))
    table = ds.DeltaTable.forPath(spark, tmp_path)
    spark.conf.set("spark.sql.parser.escapedStringLiterals", is_raw)
    try:
        number = F.col("n")
        twice = F.col("s")
        for i, text in enumerate(texts):
            twice = F.when(number == i, F.concat(F.col("s"), F.lit(text))).otherwise(twice)
        table.update(F.col("s").isin(*texts), {"s": twice})
        for i, part in ((0, texts[:4]), (56, texts[4:])):  # long lists are printed in another way
            many = [*(text + text for text in part), *(f"no'{k}" for k in range(i))]
            table.update(F.col("s").isin(*many), {"n": "n + 100"})
        table.delete(F.col("s") == F.lit("\\\\"))
        # two backslashes where texts are raw, and one where they begin an escape
        table.update(r"s = 'a\\ba\\b'", {"n": "-1"})
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    found = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    numbers = {t + t: i + 100 for i, t in enumerate(texts) if t != "\\"}
    assert {r["s"]: r["n"] for r in found} == numbers | ({} if is_raw == "true" else {"a\\ba\\b": -1})


NANS = ["x > 1", "x >= 2", "x = double('NaN')", "NOT x <= 1", "x > 1 OR id = 77", "x IN (double('NaN'), 5)",
        "x <=> double('NaN')", "s.y > 3", "f > 5", "x <> 1", "x < 1", "x = 1"]  # fmt: skip


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_nan_is_found_although_statistics_of_files_leave_it_out(
    spark: Any, tmp_path: Path, properties: dict[str, str]
) -> None:
    nan = float("nan")
    rows = {"x": [nan, -0.5, 1.0, None], "f": pa.array([nan, 1, 2, 3], pa.float32()), "id": [1, 2, 3, 4]}
    write_deltalake(tmp_path, pa.table({**rows, "s": [{"y": nan}, {"y": 1.0}, None, None]}), configuration=properties)
    for condition in NANS if not properties else NANS[::4]:
        selected = {r.id for r in ds.read(spark, tmp_path).where(condition).collect()}
        ds.DeltaTable.forPath(spark, tmp_path).delete(condition)
        left = set(DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist())
        DeltaTable(tmp_path).restore(0)
        DeltaTable(tmp_path).delete(condition)
        expected = set(DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist())
        DeltaTable(tmp_path).restore(0)
        assert (condition, left) == (condition, expected)
        assert (condition, selected) == (condition, {1, 2, 3, 4} - expected)


def test_clones_and_manifests_are_those_of_the_arrow_engine(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3]}))
    table = ds.DeltaTable.forPath(spark, tmp_path / "t")
    table.generate("symlink_format_manifest")
    assert (tmp_path / "t" / "_symlink_format_manifest" / "manifest").read_text().count("\n") == 1
    table.delete("id = 1")
    places = str(tmp_path / "a"), f"delta.`{tmp_path / 'b'}`"
    for clone in (table.clone(places[0], isShallow=True), table.clone(places[1], properties={"custom.x": "1"})):
        assert sorted(r.id for r in clone.toDF().collect()) == [2, 3]
        clone.delete("id = 2")
    again = table.cloneAtVersion(0, places[0], isShallow=True, replace=True)
    assert sorted(r.id for r in again.toDF().collect()) == [1, 2, 3]
    assert DeltaTable(tmp_path / "b").metadata().configuration == {"custom.x": "1"}
    assert sorted(r.id for r in table.toDF().collect()) == [2, 3]
