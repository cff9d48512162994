"""What Spark's planner is reported: which files are read, how large they are, and that no Python touches rows."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from delta_core.kernels.row_set import RowSet
from delta_core.spark import read
from delta_core.testing.table_builder import TableBuilder

pytestmark = pytest.mark.spark

PYTHON = re.compile(r"BatchEvalPython|ArrowEvalPython|MapInArrow|MapInPandas|PythonDataSource")


def plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def files_read(frame: Any) -> int:
    """Return the number of files that the scans of a query read, by Spark's own metric."""
    execution = frame._jdf.queryExecution()
    frame._jdf.sparkSession().conf().set("spark.sql.adaptive.enabled", "false")
    executed = execution.executedPlan()
    executed.execute().count()
    frame._jdf.sparkSession().conf().unset("spark.sql.adaptive.enabled")
    total = 0
    leaves = executed.collectLeaves()
    for i in range(leaves.size()):
        metrics = leaves.apply(i).metrics()
        if metrics.contains("numFiles"):
            total += metrics.apply("numFiles").value()
    return total


def optimized_size(frame: Any) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().collectLeaves().head().computeStats().sizeInBytes()))


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> TableBuilder:
    """Ten files of ten rows: id i * 10 to i * 10 + 9, p = i % 3, the first half with mapped names elsewhere."""
    schema = {"id": "long", "t": "timestamp", "s": "string", "p": "integer"}
    made = TableBuilder(tmp_path_factory.mktemp("planning") / "t").create(
        schema, partition_by=["p"], features=["deletionVectors"], column_mapping="name"
    )
    for i in range(10):
        day = datetime(2024, 1, 1 + i, tzinfo=UTC)
        made.append([{"id": n, "t": day, "s": f"{i:02}-{n:03}", "p": i % 3} for n in range(i * 10, i * 10 + 10)])
    return made.delete_rows(lambda r: r["id"] == 42)


@pytest.mark.parametrize(
    ("where", "files", "rows"),
    [
        ("id = 37", 1, 1),
        ("id = 42", 1, 0),
        ("ID between 35 and 44", 2, 9),
        ("id in (3, 95)", 2, 2),
        ("s like '07%'", 1, 10),
        ("t >= timestamp'2024-01-09 00:00:00'", 2, 20),
        ("p = 1", 3, 29),
        ("p = 1 and id < 20", 1, 10),
        ("not (id < 90)", 1, 10),
        ("id = 5 or id = 15", 2, 2),
        ("abs(id) = 5", 10, 1),
        ("not (id < 90 and abs(id) < 95)", 10, 10),
        ("id is null", 0, 0),
        ("length(s) = 6 and id < 10", 1, 10),
        ("p is null", 0, 0),
    ],
)
def test_where_reads_only_files_that_may_hold_a_row(
    spark: Any, table: TableBuilder, where: str, files: int, rows: int
) -> None:
    frame = read(spark, table.uri).where(where)
    assert (files_read(frame), frame.count()) == (files, rows)


def test_join_side_is_skipped_too_and_is_planned_with_what_is_left(spark: Any, table: TableBuilder) -> None:
    frame = read(spark, table.uri)
    small = frame.where("id = 37")
    assert optimized_size(small) * 5 < optimized_size(frame)
    joined = frame.where("id >= 80").alias("a").join(small.alias("b"), "p", "left")
    assert files_read(joined) == 3


def test_self_join_of_one_read_reuses_and_counts_right(spark: Any, table: TableBuilder) -> None:
    frame = read(spark, table.uri)
    assert frame.where("id < 10").alias("a").join(frame.where("id < 20").alias("b"), "id").count() == 10


def test_no_python_in_the_path_of_rows_on_any_route(spark: Any, table: TableBuilder) -> None:
    routes: tuple[Any, ...] = ("index", "join")
    for route in routes:
        frame = read(spark, table.uri, metadata=["_file_path", "_file_row_index"], route=route).where("id > 5")
        assert not PYTHON.search(plan(frame))
    indexed = plan(read(spark, table.uri).where("id > 5"))
    assert "PushedFilters: [IsNotNull" in indexed
    assert "Batched: true" in indexed
    assert "Join" not in indexed


def test_partition_columns_of_every_type_come_typed_and_prune(spark: Any, tmp_path: Path) -> None:
    values = {
        "b": True,
        "y": 1,
        "sh": 2,
        "i": 3,
        "l": 4,
        "f": 1.5,
        "d": 2.5,
        "s": "a b=c/%",
        "bi": b"\x01z",
        "da": date(2024, 2, 29),
        "t": datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
        "n": datetime(2024, 1, 1, 12),
        "de": Decimal("1.50"),
    }
    types = (
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "decimal(10,2)",
    )
    schema = {"v": "long", **dict(zip(values, types, strict=True))}
    table = TableBuilder(tmp_path / "t").create(schema, partition_by=list(values), features=["timestampNtz"])
    table.append([{"v": 1, **values}]).append([{"v": 2, **dict.fromkeys(values)}])
    frame = read(spark, table.uri)
    rows = {r["v"]: r for r in frame.toArrow().to_pylist()}
    assert rows[1] == {"v": 1, **values}
    assert rows[2] == {"v": 2, **dict.fromkeys(values)}
    for where in (
        "s = 'a b=c/%'",
        "da = date'2024-02-29'",
        "de = 1.5",
        "n = timestamp_ntz'2024-01-01 12:00:00'",
        "f > 1",
    ):
        assert files_read(frame.where(where)) == 1
        assert frame.where(where).count() == 1


# --- vectors -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def marked(tmp_path_factory: Any) -> TableBuilder:
    made = TableBuilder(tmp_path_factory.mktemp("vectors") / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": i} for i in range(70_000)], files=2).append([{"id": i} for i in range(70_000, 70_100)])
    return made.delete_rows(lambda r: r["id"] % 3 == 0 and r["id"] < 69_000)


@pytest.mark.parametrize("form", ["bits", "roaring", "chunks", "executors"])
def test_every_form_of_vectors_drops_the_same_rows(
    spark: Any, marked: TableBuilder, form: str, monkeypatch: Any
) -> None:
    from delta_core.engines.spark.plan import indexed_route as indexed

    if form == "roaring":
        monkeypatch.setattr(indexed, "_SMALL", 0)
        monkeypatch.setattr(indexed, "_BITS_PER_STORED", 0)
    frame = read(
        spark, marked.uri, vector_bytes=0 if form == "executors" else None, route="join" if form == "chunks" else "auto"
    )
    text = plan(frame)
    assert not PYTHON.search(text)
    signs = {"bits": "BitSetMethods", "roaring": "ImmutableRoaringBitmap", "chunks": "bit_get", "executors": "bit_get"}
    assert {sign for sign in signs.values() if sign in text} == {signs[form]}
    left = {i for i in range(70_100) if not (i % 3 == 0 and i < 69_000)}
    assert {r["id"] for r in frame.toArrow().to_pylist()} == left


def test_tests_of_rows_stay_within_the_vector(spark: Any) -> None:
    from pyspark.sql import functions as F

    from delta_core.engines.spark.plan.private import bit_test, roaring_test

    rows = RowSet.from_positions([0, 5, 63])
    frame = spark.createDataFrame([(i,) for i in (-1, 0, 5, 63, 64, 6400, 2**31, 2**40)], "r bigint")
    bits, roaring = F.lit(bytearray(rows.bits(64).tobytes())), F.lit(bytearray(rows.to_roaring(32)))
    row = F.col("r")
    found = frame.select("r", bit_test(spark, bits, row).alias("b"), roaring_test(spark, roaring, row).alias("c"))
    assert {r.r for r in found.collect() if r.b} == {0, 5, 63} == {r.r for r in found.collect() if r.c}


def test_vectors_of_files_that_are_skipped_are_not_read(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    table.append([{"id": 1}, {"id": 2}]).append([{"id": 11}, {"id": 12}]).delete_rows(lambda r: r["id"] == 11)
    for vector in Path(table.uri).glob("deletion_vector*"):
        vector.unlink()
    frame = read(spark, table.uri)
    assert frame.where("id < 5").count() == 2
    with pytest.raises(Exception, match="holds deleted rows"):
        frame.count()
