"""The plans that Spark makes of tables are those that it makes of the same rows in Parquet: as few, as small files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import write_deltalake
from delta_core.spark import read
from delta_core.testing.table_builder import TableBuilder

pytestmark = pytest.mark.spark

PARTITIONS = 20


def nodes(plan: Any) -> Iterator[Any]:
    """Yield the operators that ran, within the stages of an adaptive plan too."""
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        yield from nodes(plan.executedPlan())
        return
    yield plan
    children = plan.children()
    for i in range(children.size()):
        yield from nodes(children.apply(i))
    if name.endswith("QueryStageExec"):
        yield from nodes(plan.plan())


def scans(frame: Any) -> list[Any]:
    """Run a query and return its scans of files."""
    executed = frame._jdf.queryExecution().executedPlan()
    executed.executeCollect()
    return [n for n in nodes(executed) if n.getClass().getSimpleName() == "FileSourceScanExec"]


def metric(scan: Any, name: str) -> int:
    return int(scan.metrics().apply(name).value())


def operators(frame: Any) -> list[str]:
    executed = frame._jdf.queryExecution().executedPlan()
    executed.executeCollect()
    return [n.getClass().getSimpleName() for n in nodes(executed)]


@contextmanager
def setting(spark: Any, **values: Any) -> Iterator[None]:
    names = {n: n.replace("__", ".") for n in values}
    for n, name in names.items():
        spark.conf.set(name, str(values[n]))
    try:
        yield
    finally:
        for name in names.values():
            spark.conf.unset(name)


# --- dynamic partition pruning -------------------------------------------------------------


@pytest.fixture(scope="module")
def star(tmp_path_factory: Any) -> Path:
    """A fact table of one file a partition, dimensions of several kinds with a row for each partition."""
    root: Path = tmp_path_factory.mktemp("star")
    fact = TableBuilder(root / "fact").create({"v": "long", "p": "long"}, partition_by=["p"])
    fact.append([{"v": n, "p": n % PARTITIONS} for n in range(PARTITIONS * 5)])
    rows = [{"k": n, "name": f"name {n}", "more": "x" * 50} for n in range(PARTITIONS)]
    schema = {"k": "long", "name": "string", "more": "string"}
    TableBuilder(root / "dim").create(schema).append(rows)
    TableBuilder(root / "split").create(schema).append(rows, files=4)
    marked = TableBuilder(root / "marked").create(schema, features=["deletionVectors"], column_mapping="name")
    marked.append(rows, files=4).delete_rows(lambda r: r["k"] == 3)
    pq.write_table(pa.Table.from_pylist(rows), root / "dim.parquet")
    return root


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(
    ("name", "route"),
    [("dim", "index"), ("dim", "join"), ("dim.parquet", None), ("split", "index"), ("marked", "index")],
)
def test_join_with_a_filtered_dimension_reads_the_files_of_its_partitions_only(
    spark: Any, star: Path, name: str, route: Any, adaptive: bool
) -> None:
    fact = read(spark, star / "fact")
    dim = spark.read.parquet(str(star / name)) if route is None else read(spark, star / name, route=route)
    with setting(spark, spark__sql__adaptive__enabled=adaptive):
        joined = fact.join(dim.where("name = 'name 7'"), fact.p == dim.k)
        assert sorted(r.v for r in joined.select("v").collect()) == [7 + PARTITIONS * i for i in range(5)]
        assert [
            metric(s, "numFiles") for s in scans(joined) if "p" in str(s.toString()) and "fact" in str(s.toString())
        ] == [1]


def test_many_filters_of_one_read_do_not_part_a_join_from_its_filter(spark: Any, star: Path) -> None:
    fact, dim = read(spark, star / "fact"), read(spark, star / "split")
    parts = [fact.join(dim.where(f"name = 'name {i}'"), fact.p == dim.k).groupBy("name").count() for i in range(6)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    assert [metric(s, "numFiles") for s in scans(whole) if "fact" in str(s.toString())] == [1] * 6


# --- sizes ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(tmp_path_factory: Any) -> Path:
    """Tables of the same rows: plain, with vectors, partitioned with mapped names; each of several files."""
    root: Path = tmp_path_factory.mktemp("wide")
    schema = {"id": "long", "amount": "decimal(12,2)", "s": "string", "small": "integer", "p": "date"}
    rows = [{"id": n, "amount": None, "s": f"{n:050}", "small": n, "p": None} for n in range(4_000)]
    TableBuilder(root / "without_nullability").create(schema).append(rows, files=4)
    made = TableBuilder(root / "marked").create(schema, features=["deletionVectors"], column_mapping="name")
    made.append(rows, files=4).delete_rows(lambda r: r["id"] % 10 == 0)
    made = TableBuilder(root / "parts").create(schema, partition_by=["p"], features=["rowTracking", "domainMetadata"])
    made.append(rows)
    return root


def planned_bytes(frame: Any) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def stored_bytes(table: Path, first: str = "") -> int:
    files = sorted(table.rglob("*.parquet"))
    return sum(f.stat().st_size for f in files if f.name.startswith(first))


@pytest.mark.parametrize("name", ["without_nullability", "marked", "parts"])
def test_size_is_that_of_the_files_whatever_columns_spark_does_not_show(spark: Any, wide: Path, name: str) -> None:
    size = stored_bytes(wide / name)
    assert planned_bytes(read(spark, wide / name)) == pytest.approx(size, abs=1)
    assert planned_bytes(read(spark, wide / name, metadata=["_file_path", "_file_row_index"])) >= size
    assert planned_bytes(read(spark, wide / name).where("length(s) > 1")) == pytest.approx(size, abs=1)


@pytest.mark.parametrize("name", ["without_nullability", "marked", "parts"])
def test_size_is_scaled_by_the_columns_read_however_they_are_chosen(spark: Any, wide: Path, name: str) -> None:
    size, whole = stored_bytes(wide / name), 8 + 8 + 8 + 20 + 4 + 4
    expected = size * (8 + 4) / whole
    assert planned_bytes(read(spark, wide / name).select("small")) == pytest.approx(expected, abs=2)
    assert planned_bytes(read(spark, wide / name, columns=["small"])) == pytest.approx(expected, abs=2)
    assert planned_bytes(read(spark, wide / name, columns=["small"], predicate="id >= 0")) == pytest.approx(
        expected, abs=2
    )


@pytest.mark.parametrize("name", ["without_nullability", "marked"])
def test_size_is_that_of_the_files_that_a_filter_leaves(spark: Any, wide: Path, name: str) -> None:
    left = stored_bytes(wide / name, "part-00000")
    assert planned_bytes(read(spark, wide / name).where("id < 1000")) == pytest.approx(left, abs=1)


@pytest.mark.parametrize(("factor", "join"), [(0.9, "SortMergeJoinExec"), (1.1, "BroadcastHashJoinExec")])
@pytest.mark.parametrize("name", ["without_nullability", "marked", "parts"])
def test_tables_are_broadcast_by_the_size_of_their_files(
    spark: Any, wide: Path, name: str, factor: float, join: str
) -> None:
    limit = int(stored_bytes(wide / name) * factor)
    with setting(spark, spark__sql__autoBroadcastJoinThreshold=limit, spark__sql__adaptive__enabled=False):
        other = spark.range(10**12).withColumnRenamed("id", "other")
        frame = read(spark, wide / name)
        executed = other.join(frame, other.other == frame.id)._jdf.queryExecution().executedPlan()
        assert join in [n.getClass().getSimpleName() for n in nodes(executed)]


# --- nested columns ------------------------------------------------------------------------

POINT = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string()), ("more", pa.string())]))])
NESTED = pa.schema(
    [("id", pa.int64()), ("point", POINT), ("list", pa.list_(POINT)), ("map", pa.map_(pa.string(), POINT))]
)
Mode = Literal["none", "name", "id", "other ids"]


def points(first: int, count: int) -> pa.Table:
    def point(n: int) -> dict[str, Any] | None:
        return None if n % 7 == 0 else {"x": n, "y": {"z": f"{n:04}", "more": "m" * 10}}

    rows = [
        {"id": n, "point": point(n), "list": [point(n), point(n + 1)], "map": [("k", point(n)), ("n", None)]}
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=NESTED)


@pytest.fixture(scope="module", params=["none", "name", "id", "other ids"])
def nested(request: Any, tmp_path_factory: Any) -> tuple[Mode, str]:
    """Ten files of 100 rows, x rising: field names as they are, our own, by id, by ids of plain names."""
    place = tmp_path_factory.mktemp("nested") / "t"
    if request.param == "other ids":
        made = TableBuilder(place).create(NESTED, column_mapping="id")
        for i in range(10):
            made.append(points(i * 100, 100))
        return request.param, str(place)
    mapping = {} if request.param == "none" else {"delta.columnMapping.mode": request.param}
    for i in range(10):
        rows = points(i * 100, 100)
        write_deltalake(
            place, rows, mode="append", configuration=None if i else {"delta.columnMapping.mode": "none"} | mapping
        )
    return request.param, str(place)


@pytest.mark.parametrize(
    "where", ["point.x = 250", "point.y.z = '0250'", "point.y.z like '0250%'", "point.x in (250, 253)"]
)
def test_filters_on_fields_within_columns_skip_files_and_reach_parquet(
    spark: Any, nested: tuple[Mode, str], where: str
) -> None:
    _, uri = nested
    found = read(spark, uri).where(where)
    expected = {250, 253} if "253" in where else {250}
    assert {r.id for r in found.collect()} == expected
    scan = scans(found)[0]
    assert metric(scan, "numFiles") == 1
    assert where.split(maxsplit=1)[0].removeprefix("point") in str(scan.metadata().apply("PushedFilters"))


def test_filters_on_fields_within_columns_skip_row_groups(spark: Any, tmp_path: Path) -> None:
    for mode in ("none", "name", "id"):
        place = tmp_path / mode
        configuration = {"delta.columnMapping.mode": mode}
        write_deltalake(place, points(0, 0), configuration=configuration)
        _append_by_row_groups(place, points(0, 1_000))
        found = read(spark, place).where("point.x between 300 and 310")
        assert found.count() == 9
        assert metric(scans(found)[0], "numOutputRows") <= 200, mode


def _append_by_row_groups(place: Path, rows: pa.Table) -> None:
    from delta_core import WriterProperties

    write_deltalake(place, rows, mode="append", writer_properties=WriterProperties(max_row_group_size=100))


@pytest.mark.parametrize(
    ("select", "schema"),
    [
        ("point.y.z", "struct<A:struct<y:struct<z:string>>>"),
        ("list.x", "struct<L:array<struct<x:bigint>>>"),
        ("map['k'].y.z", "struct<M:map<string,struct<y:struct<z:string>>>>"),
        ("list[0].y.z", "struct<L:array<struct<y:struct<z:string>>>>"),
    ],
)
def test_only_the_fields_that_are_used_are_read(spark: Any, nested: tuple[Mode, str], select: str, schema: str) -> None:
    _, uri = nested
    whole = points(0, 1_000).to_pylist()
    found = read(spark, uri).selectExpr(f"{select} as found")
    pick: dict[str, Callable[[dict[str, Any]], Any]] = {
        "point.y.z": lambda r: _z(r["point"]),
        "list.x": lambda r: [None if e is None else e["x"] for e in r["list"]],
        "map['k'].y.z": lambda r: _z(dict(r["map"])["k"]),
        "list[0].y.z": lambda r: _z(r["list"][0]),
    }
    assert sorted(map(repr, (r.found for r in found.collect()))) == sorted(repr(pick[select](r)) for r in whole)
    read_schema = str(scans(found)[0].metadata().apply("ReadSchema"))
    assert read_schema.split(":", 1)[1] == schema.split(":", 1)[1]


def _z(point: dict[str, Any] | None) -> Any:
    return None if point is None else point["y"]["z"]


def test_nested_columns_read_whole_keep_nulls_and_names(spark: Any, nested: tuple[Mode, str]) -> None:
    _, uri = nested
    found = read(spark, uri).toArrow()
    assert sorted(found.to_pylist(), key=lambda r: r["id"]) == points(0, 1_000).to_pylist()


# --- the same relation ---------------------------------------------------------------------


@pytest.fixture
def two_versions(tmp_path: Path) -> TableBuilder:
    made = TableBuilder(tmp_path / "t").create(
        {"id": "long", "p": "string", "q": "string"}, partition_by=["p", "q"], features=["deletionVectors"]
    )
    made.append([{"id": n, "p": f"p{n % 2}", "q": f"q{n % 3}"} for n in range(12)])
    return made.delete_rows(lambda r: r["id"] == 5)


def same(a: Any, b: Any) -> bool:
    forward, back = a.sameSemantics(b), b.sameSemantics(a)
    assert forward == back
    assert not forward or a.semanticHash() == b.semanticHash()
    return bool(forward)


@pytest.mark.parametrize("options", [{}, {"version": 2}, {"columns": ["p", "id"]}, {"metadata": ["_file_path"]}])
def test_two_reads_of_one_version_are_the_same_relation(spark: Any, two_versions: TableBuilder, options: Any) -> None:
    assert same(read(spark, two_versions.uri, **options), read(spark, two_versions.uri, **options))
    with setting(spark, spark__delta_core__heldSnapshots__maxBytes=0):
        assert same(read(spark, two_versions.uri, **options), read(spark, two_versions.uri, **options))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"version": 1}),
        ({"columns": ["id", "p"]}, {"columns": ["id", "q"]}),
        ({"columns": ["p"]}, {"columns": ["q"]}),
        ({}, {"metadata": ["_file_path"]}),
        ({}, {"timezone": "Asia/Tokyo"}),
        ({}, {"storage_options": {"a": "b"}}),
    ],
)
def test_reads_of_other_versions_columns_or_options_are_other_relations(
    spark: Any, two_versions: TableBuilder, one: Any, other: Any
) -> None:
    assert not same(read(spark, two_versions.uri, **one), read(spark, two_versions.uri, **other))


def test_cached_rows_are_found_by_another_read_of_the_version_and_by_no_other(
    spark: Any, two_versions: TableBuilder
) -> None:
    first = read(spark, two_versions.uri).cache()
    try:
        assert first.count() == 11
        second = read(spark, two_versions.uri)
        assert "InMemoryTableScanExec" in operators(second.where("id > 3"))
        older = read(spark, two_versions.uri, version=1)
        assert "InMemoryTableScanExec" not in operators(older)
        assert older.count() == 12
        two_versions.append([{"id": 100, "p": "p0", "q": "q0"}])
        later = read(spark, two_versions.uri)
        assert "InMemoryTableScanExec" not in operators(later)
        assert (later.count(), read(spark, two_versions.uri, version=2).count()) == (12, 11)
    finally:
        first.unpersist()


def test_cached_rows_of_a_table_that_was_made_again_are_not_found(spark: Any, tmp_path: Path) -> None:
    """The builder returns the same id to a table in the same place."""
    first = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    cached = read(spark, first.uri).cache()
    try:
        assert [r.id for r in cached.collect()] == [1]
        shutil.rmtree(first.uri)
        TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 2}])
        assert [r.id for r in read(spark, first.uri).collect()] == [2]
    finally:
        cached.unpersist()


def test_exchanges_are_reused_between_two_reads(spark: Any, two_versions: TableBuilder) -> None:
    def counts(**options: Any) -> Any:
        return read(spark, two_versions.uri, **options).where("id > 1").groupBy("id").count()

    with setting(spark, spark__sql__adaptive__enabled=False):
        assert "ReusedExchangeExec" in operators(counts().unionAll(counts()))
        assert "ReusedExchangeExec" in operators(counts().unionAll(counts(version=2)))
        mixed = counts().unionAll(counts(version=1))
        assert "ReusedExchangeExec" not in operators(mixed)
        assert mixed.count() == 9 + 10


def test_filters_in_another_order_are_the_same_relation(spark: Any, two_versions: TableBuilder) -> None:
    frame = read(spark, two_versions.uri)
    with setting(spark, spark__sql__adaptive__enabled=False):
        one = frame.where("id > 3 and p = 'p0'").groupBy("id").count()
        other = read(spark, two_versions.uri).where("p = 'p0'").where("id > 3").groupBy("id").count()
        assert "ReusedExchangeExec" in operators(one.unionAll(other))
