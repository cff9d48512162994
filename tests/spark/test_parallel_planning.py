"""A log replayed by a Spark job returns the files, and the rows, that it returns when this process replays it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.spark.plan import replay, replay_cache
from delta_core.engines.spark.plan.checkpoint_frame import canonical_path
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.plan.replay import SETTING, plan_replay
from delta_core.errors import CheckpointError, InvalidArgumentError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernels.dedup import KeySet
from delta_core.spark import read
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import path_of, present
from tests.example_counts import chosen
from tests.spark.conftest import plain
from tests.spark.test_planning import PYTHON, optimized_size, plan

pytestmark = pytest.mark.spark

TABLES = present(
    "spark/checkpoint_v2_parquet_sidecars_json",
    "spark/checkpoint_v2_json_sidecars_struct",
    "spark/checkpoint_multipart_struct",
    "spark/checkpoint_multipart_json",
    "spark/checkpoint_classic_both",
    "spark/checkpoint_classic_none",
    "spark/vectors_checkpoint",
    "spark/column_mapping_checkpoint",
    "spark/checkpoint_with_domains",
    "kernel-rs/v2-checkpoints-parquet-with-sidecars",
    "kernel-rs/v2-checkpoints-json-with-sidecars",
    "kernel-rs/v1-multi-part-struct-stats-only",
    "delta/kernel__basic-dv-with-checkpoint",
    "golden/multi-part-checkpoint",
    "trino/deltalake__partition_values_parsed",
    "golden/dv-with-columnmapping",
    "dremio/columnMappingConvertedIceberg",
    "dat/stats_as_struct",
    "dat/no_stats",
)
#: Whose data files are not in the corpus.
FILES_ONLY = present(
    "delta-rs/checkpoint_with_partitions",
    "trino/databricks154__clone_v2_checkpoint__shallow_cloned_table",
    "trino/statistics__parquet_struct_statistics_nan",
)
#: The forms of checkpoints that hold file actions as Parquet.
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "multipart-json": {"kind": "v1-multipart", "parts": 3},
    "single-struct": {"kind": "v1", "statistics": "struct"},
    "sidecars-both": {"kind": "v2-parquet", "sidecars": 3, "statistics": "both"},
    "json-sidecars": {"kind": "v2-json", "sidecars": 2},
    "without": {"kind": "v1", "statistics": "none"},
}


@pytest.fixture(autouse=True)
def nothing_held() -> Iterator[None]:
    drop_held()
    yield
    drop_held()


def drop_held() -> None:
    for key in list(replay_cache._cached):
        replay_cache.forget(key)


def is_parallel(spark: Any, uri: str) -> bool:
    return plan_replay(spark, open_snapshot(uri).scan(), 0) is not None


def assert_same(spark: Any, uri: str, *wheres: str, **options: Any) -> None:
    """Both ways return the same rows of the same files, for each filter."""
    here, there = read(spark, uri, **options), read(spark, uri, parallel_from=0, **options)
    for where in wheres or ("true",):
        wanted, found = here.where(where), there.where(where)
        assert sorted(found.inputFiles()) == sorted(wanted.inputFiles()), where
        assert_same_rows(plain(found.toArrow()), plain(wanted.toArrow()))


# --- whole tables --------------------------------------------------------------------------


@pytest.mark.golden
@pytest.mark.parametrize("name", TABLES)
def test_golden_table_has_the_same_files_and_rows(spark: Any, name: str) -> None:
    uri = str(path_of(name))
    assert is_parallel(spark, uri)
    assert_same(spark, uri, metadata=["_file_path"])


@pytest.mark.golden
@pytest.mark.parametrize("name", FILES_ONLY)
def test_golden_table_without_data_has_the_same_files(spark: Any, name: str) -> None:
    uri = str(path_of(name))
    assert is_parallel(spark, uri)
    found, wanted = read(spark, uri, parallel_from=0), read(spark, uri)
    assert wanted.inputFiles()
    assert sorted(found.inputFiles()) == sorted(wanted.inputFiles())


@pytest.fixture(scope="module", params=CHECKPOINTS)
def table(request: Any, tmp_path_factory: Any) -> TableBuilder:
    """Ten files of ten rows below a checkpoint, a vector on either side, two files added and one removed above."""
    schema = {"id": "long", "t": "timestamp", "s": "string", "p": "integer"}
    made = TableBuilder(tmp_path_factory.mktemp("replay") / "t%20 [x]").create(
        schema, partition_by=["p"], features=["deletionVectors", "v2Checkpoint"], column_mapping="name"
    )
    for i in range(10):
        day = datetime(2024, 1, 1 + i, tzinfo=UTC)
        made.append([{"id": n, "t": day, "s": f"{i:02}-{n:03}", "p": i % 3} for n in range(i * 10, i * 10 + 10)])
    made.delete_rows(lambda r: r["id"] in (42, 63))
    made.checkpoint(**CHECKPOINTS[request.param])
    made.append([{"id": 100, "t": None, "s": None, "p": None}]).append([{"id": 101, "t": None, "s": "07-101", "p": 1}])
    made.delete_rows(lambda r: r["id"] in (7, 43))
    return made.remove(made.paths()[3])


WHERES = (
    "true", "id = 37", "id = 42", "ID between 35 and 44", "id in (3, 95, 100)", "s like '07%'", "p = 1",
    "p = 1 and id < 20",
    "t >= timestamp'2024-01-09 00:00:00'", "not (id < 90)", "id = 5 or id = 15", "p is null", "id is null",
    "abs(id) = 5",
    "p = 2 or id > 80", "p <=> null and s is null", "p > 5",
)  # fmt: skip
#: The forms of checkpoints that every filter is tried on: statistics as text and as columns. Others have every third.
FILTERED = chosen(CHECKPOINTS, ["multipart-json", "single-struct"])


def test_every_filter_leaves_the_same_files(spark: Any, table: TableBuilder, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["table"]
    wheres = WHERES if name in FILTERED else WHERES[list(CHECKPOINTS).index(name) % 3 :: 3]
    assert is_parallel(spark, table.uri)
    assert_same(spark, table.uri, *wheres, metadata=["_file_path", "_file_row_index"])
    assert_same_rows(plain(read(spark, table.uri, parallel_from=0).toArrow()), plain(table.expected()))


def test_early_predicate_and_older_versions_are_replayed_alike(spark: Any, table: TableBuilder) -> None:
    for version in (open_snapshot(table.uri).version - 2, None):
        wanted = read(spark, table.uri, version, predicate="id > 35 and p = 1", columns=["s"])
        found = read(spark, table.uri, version, predicate="id > 35 and p = 1", columns=["s"], parallel_from=0)
        assert sorted(found.inputFiles()) == sorted(wanted.inputFiles())
        assert_same_rows(plain(found.toArrow()), plain(wanted.toArrow()))


def test_plans_hold_no_python_and_joins_are_planned_with_what_is_left(spark: Any, table: TableBuilder) -> None:
    frame = read(spark, table.uri, parallel_from=0)
    assert not PYTHON.search(plan(frame.where("id > 5")))
    assert "PushedFilters: [IsNotNull" in plan(frame.where("id > 5"))
    small = frame.where("id = 37 and p = 0")
    assert optimized_size(small) * 2 < optimized_size(frame)
    joined = frame.where("id >= 80").alias("a").join(small.alias("b"), "p", "left")
    assert joined.count() == 22
    same = frame.where("id < 5").unionAll(frame.where("id < 5")).groupBy("p").count()
    assert {r["p"]: r["count"] for r in same.collect()} == {0: 10}


def test_partition_values_are_typed_and_odd_paths_found(spark: Any, tmp_path: Path) -> None:
    values = {
        "b": True,
        "y": 1,
        "l": 4,
        "f": 1.5,
        "d": 2.5,
        "s": "a b=c/%ä+",
        "bi": b"\x01z",
        "da": date(2024, 2, 29),
        "t": datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
        "n": datetime(2024, 1, 1, 12),
        "de": Decimal("1.50"),
    }
    types = (
        "boolean",
        "byte",
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
    made = TableBuilder(tmp_path / "t").create(schema, partition_by=list(values), features=["timestampNtz"])
    made.append([{"v": 1, **values}]).append([{"v": 2, **dict.fromkeys(values)}])
    rows = [{**values, "v": 3, "s": "+ %20"}]
    made.checkpoint().append(rows)
    wheres = (
        "s = 'a b=c/%ä+'",
        "da = date'2024-02-29'",
        "de = 1.5",
        "n = timestamp_ntz'2024-01-01 12:00:00'",
        "f > 1",
        "t is null",
        "b",
        "bi = X'017A'",
        "t = timestamp'2024-01-01 12:00:00.000005'",
    )
    assert_same(spark, made.uri, "true", *wheres, metadata=["_file_path"])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("statistics", ["json", "struct"])
def test_statistics_of_every_type_skip_alike_in_any_zone(
    spark: Any, tmp_path: Path, statistics: Any, zone: str
) -> None:
    types = {
        "i": "integer",
        "f": "float",
        "d": "double",
        "de": "decimal(20,3)",
        "da": "date",
        "t": "timestamp",
        "n": "timestamp_ntz",
        "s": "string",
        "p": "timestamp",
    }
    made = TableBuilder(tmp_path / "t").create(types, partition_by=["p"], features=["timestampNtz"])
    for k in (1, 2):
        rows = [
            {
                "i": k,
                "f": float("nan") if k == 2 else 0.1,
                "d": k / 3,
                "de": Decimal(k) / 8,
                "da": date(1500 + k, 1, 1),
                "t": datetime(2024, 1, k, 1, tzinfo=UTC),
                "n": datetime(2024, 1, k, 1),
                "s": "é" * k,
                "p": datetime(2024, 1, k, 3, tzinfo=UTC),
            }
        ]
        made.append(rows)
    made.checkpoint(statistics=statistics)
    spark.conf.set("spark.sql.session.timeZone", zone)
    wheres = (
        "i = 1",
        "f > 1",
        "f <= 0.1",
        "d > 0.5",
        "de = 0.125",
        "de > 0.2",
        "da < date'1501-06-01'",
        "t > timestamp'2024-01-02 00:30:00Z'",
        "n < timestamp_ntz'2024-01-01 12:00:00'",
        "s = 'éé'",
        "p = timestamp'2024-01-01 03:00:00Z'",
    )
    try:
        for where in wheres:
            wanted, found = (read(spark, made.uri, timezone="UTC", parallel_from=n).where(where) for n in (None, 0))
            if not (zone != "UTC" and where.startswith("p")):  # left to the driver's test
                assert sorted(found.inputFiles()) == sorted(wanted.inputFiles()), where
            assert found.count() == wanted.count()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_paths_are_one_where_the_kernel_takes_them_for_one(spark: Any) -> None:
    paths = [
        "a b", "a%20b", "a+b", "a%2Bb", "a%2bb", "%61", "a", "%zz", "%25zz", "%", "%2", "%C3%A4", "ä", "%41%zz", "A%zz",
        "/x/y", "file:/x/y", "file:///x/y", "FILE://localhost/x/y", "file://LocalHost/x%2Fy", "file://host/x/y",
        "x/file:/y",
        "s3://b/a%20b", "s3://b/a b", "file:/x/%2520", "/x/%20", "/x/%2520", "",
    ]  # fmt: skip
    frame = spark.createDataFrame(pa.table({"path": paths}))
    found = [r["c"] for r in frame.select(canonical_path(frame["path"]).alias("c")).collect()]
    for i, path in enumerate(paths):
        keys = KeySet()
        keys.insert(pa.array([path]))
        same = keys.contains(pa.array(paths)).tolist()
        assert [f == found[i] for f in found] == same, path


def test_removes_that_spell_paths_otherwise_hide_the_checkpoints_files(spark: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "string"}, partition_by=["p"])
    made.append([{"id": 1, "p": "a b"}]).append([{"id": 2, "p": "c"}]).checkpoint()
    path = next(p for p in made.paths() if "a" in p.partition("/")[0].partition("=")[2])
    other = path.replace("a%20b", "a%20%62") if "a%20b" in path else path.replace("p=", "%70=")
    assert other != path
    made.commit({"remove": {"path": other, "deletionTimestamp": 1, "dataChange": True}})
    assert [r["id"] for r in read(spark, made.uri, parallel_from=0).collect()] == [2]
    assert_same(spark, made.uri)


# --- when ----------------------------------------------------------------------------------


def test_size_and_setting_choose_who_replays(spark: Any, table: TableBuilder) -> None:
    scan = open_snapshot(table.uri).scan()
    actions = sum(h.group_rows[g] for h, g in (p.chunk.place for p in scan.source.files.parts if p.chunk.place))
    assert plan_replay(spark, scan, None) is None
    assert plan_replay(spark, scan, actions) is not None
    assert plan_replay(spark, scan, actions + 1) is None
    spark.conf.set(SETTING, "1")
    try:
        assert plan_replay(spark, scan, None) is not None
        assert plan_replay(spark, scan, actions + 1) is None
        spark.conf.set(SETTING, "many")
        with pytest.raises(InvalidArgumentError, match="many"):
            read(spark, table.uri)
    finally:
        spark.conf.unset(SETTING)


# --- what is held --------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "cores", "chosen"), [(3, 2, True), (3, 32, False), (1000, 1, False)])
def test_job_is_chosen_where_actions_and_cores_make_it_pay(
    spark: Any, small: TableBuilder, monkeypatch: pytest.MonkeyPatch, least: int, cores: int, chosen: bool
) -> None:
    """The session has two cores: so many times as many actions are needed as it has fewer."""
    monkeypatch.setattr(replay, "LEAST_ACTIONS", least)
    monkeypatch.setattr(replay, "MOST_CORES", cores)
    assert (plan_replay(spark, open_snapshot(small.uri).scan(), None) is not None) == chosen


def spoil(table: TableBuilder) -> None:
    """Overwrite the pages of the checkpoint's adds, and nothing else of it, so that it looks the same from outside."""
    for file in (Path(table.uri) / "_delta_log").glob("*.checkpoint*.parquet"):
        groups, times = pq.read_metadata(file), file.stat()
        with file.open("r+b") as out:
            for g in range(groups.num_row_groups):
                for c in range(groups.num_columns):
                    column = groups.row_group(g).column(c)
                    if column.path_in_schema.startswith("add."):
                        out.seek(column.dictionary_page_offset or column.data_page_offset)
                        out.write(b"\xff" * column.total_compressed_size)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def small(tmp_path: Path) -> TableBuilder:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "string"}, partition_by=["p"])
    for i in range(4):
        made.append([{"id": i, "p": "ab"[i % 2]}])
    return made.checkpoint().cleanup_before(4)


def test_refresh_reads_the_new_commits_and_nothing_of_the_checkpoint(spark: Any, small: TableBuilder) -> None:
    assert read(spark, small.uri, parallel_from=0).where("id >= 2 and p = 'a'").count() == 1
    spoil(small)
    with pytest.raises(CheckpointError):
        read(spark, small.uri)
    small.append([{"id": 4, "p": "a"}]).remove(small.paths()[0])
    gone = ({0, 1, 2, 3} - {r["id"] for r in small.expected().to_pylist()}).pop()
    frame = read(spark, small.uri, parallel_from=0)
    assert {r["id"] for r in frame.collect()} == {0, 1, 2, 3, 4} - {gone}
    assert {r["id"] for r in frame.where("id >= 2").collect()} == {2, 3, 4} - {gone}
    assert {r["id"] for r in frame.where("p = 'a'").collect()} == {0, 2, 4} - {gone}


def test_versions_of_a_table_share_one_checkpoint_and_tables_are_bounded(spark: Any, tmp_path: Path) -> None:
    stored = spark.sparkContext._jsc.getPersistentRDDs
    before = stored().size()
    for i in range(replay_cache.MOST_CHECKPOINTS + 2):
        made = TableBuilder(tmp_path / f"t{i}").create({"id": "long", "x": "string"})
        made.append([{"id": i, "x": "a"}]).checkpoint()
        for where in ("true", f"id = {i}", "x = 'a'"):
            assert read(spark, made.uri, parallel_from=0).where(where).count() == 1
        made.append([{"id": i, "x": "b"}])
        assert read(spark, made.uri, parallel_from=0).where(f"id = {i} and x > ' '").count() == 2
        assert len(replay_cache._cached) == min(i + 1, replay_cache.MOST_CHECKPOINTS)
        assert stored().size() - before <= replay_cache.MOST_CHECKPOINTS
    assert {Path(k.uri).name for k in replay_cache._cached} == {f"t{i}" for i in range(2, 6)}


def test_a_table_made_again_at_the_same_place_is_another(spark: Any, tmp_path: Path) -> None:
    import shutil

    for value in (1, 2):
        made = TableBuilder(tmp_path / "t", seed=value).create({"id": "long"}).append([{"id": value}]).checkpoint()
        assert [r["id"] for r in read(spark, made.uri, parallel_from=0).collect()] == [value]
        shutil.rmtree(made.uri)


# --- what is broken ------------------------------------------------------------------------


def test_checkpoint_that_cant_be_read_is_named_as_on_the_driver(spark: Any, small: TableBuilder) -> None:
    spoil(small)
    for least in (None, 0):
        with pytest.raises(CheckpointError, match=r"checkpoint\.parquet can't be read") as caught:
            read(spark, small.uri, parallel_from=least)
        assert str(caught.value.facts["path"]).endswith(".checkpoint.parquet")
    assert not replay_cache._cached


def test_checkpoint_that_vanishes_is_missing(spark: Any, small: TableBuilder) -> None:
    scan = open_snapshot(small.uri).scan()
    assert scan.source.files.parts
    for file in (Path(small.uri) / "_delta_log").glob("*.checkpoint.parquet"):
        file.unlink()
    with pytest.raises(CheckpointError, match=r"checkpoint\.parquet is missing"):
        frame(spark, scan, parallel_from=0)


def test_checkpoint_that_is_replaced_is_read_again(spark: Any, small: TableBuilder) -> None:
    """Spark reads columns when a query needs them: by then another writer may have written the checkpoint again."""
    small.append([{"id": 4, "p": "a"}])
    (file,) = (Path(small.uri) / "_delta_log").glob("*.checkpoint.parquet")
    found = read(spark, small.uri, parallel_from=0)
    for turn in range(3):
        actions = pq.read_table(file)
        order = list(range(actions.num_rows))[::-1]
        pq.write_table(actions.take(order), f"{file}.new", row_group_size=1 + turn, use_dictionary=bool(turn % 2))
        Path(f"{file}.new").replace(file)
        assert {r["id"] for r in found.where(f"id >= {turn}").collect()} == set(range(turn, 5))
        assert {r["id"] for r in found.where("p = 'b'").collect()} == {1, 3}


def test_partition_value_of_another_type_is_rejected_by_name(spark: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "integer"}, partition_by=["p"])
    made.append([{"id": 1, "p": 1}])
    add = {"path": "x.parquet", "partitionValues": {"p": "one"}, "size": 5, "modificationTime": 1, "dataChange": True}
    made.commit({"add": add}).checkpoint()
    frame = read(spark, made.uri, parallel_from=0)
    for where in ("true", "p = 1"):
        with pytest.raises(Exception, match=re.escape("Partition column 'p' has the value 'one'")):
            frame.where(where).count()


def test_missing_vector_files_fail_only_what_reads_them(spark: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": 1}, {"id": 2}]).append([{"id": 11}, {"id": 12}]).delete_rows(lambda r: r["id"] == 11)
    made.checkpoint()
    for vector in Path(made.uri).glob("deletion_vector*"):
        vector.unlink()
    frame = read(spark, made.uri, parallel_from=0)
    assert frame.where("id < 5").count() == 2
    with pytest.raises(Exception, match="holds deleted rows"):
        frame.count()
