"""Rows that Spark reads are those that the Arrow engine reads, on either route."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.engines.spark.plan import private
from delta_core.errors import (
    ColumnNotFoundError,
    DataFileNotFoundError,
    EngineError,
    InvalidArgumentError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.kernel.snapshot import open_snapshot
from delta_core.spark import read
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import named, path_of, present
from tests.spark.conftest import plain, skip_variants_that_this_spark_rejects
from tests.spark.threads_program import READS, THREADS

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]

ROUTES = ("index", "join")
TABLES = present(
    "spark/vectors_in_one_file",
    "spark/vector_in_the_log",
    "spark/vectors_column_mapping_id",
    "spark/vectors_column_mapping_name",
    "spark/column_mapping_id_nested",
    "spark/column_mapping_name_renamed_and_dropped",
    "spark/widened_nested",
    "spark/widened_partition_column",
    "spark/void_column",
    "spark/nested_types",
    "spark/primitive_types",
    "spark/partition_string",
    "spark/partition_timestamp_ntz",
    "spark/random_prefixes",
    "spark/no_rows",
    "deltalake/partition_string",
    "trino/databricks122__deletion_vectors",
    "golden/dv-with-columnmapping",
    "kernel-rs/table-with-dv-small",
    "delta/kernel__column-mapping-id",
    "dremio/columnMappingConvertedIceberg",
    "golden/data-reader-timestamp_ntz-id-mode",
    "kernel-rs/partition_cm__name",
    "delta-rs/delta-2.2.0-partitioned-types",
    "trino/databricks153__type_widening",
    "golden-delta/type-widening-nested",
    "kernel-rs/void-column",
    "dat/nested_types",
    "dat/with_schema_change",
    "trino/databricks154__clone_v2_checkpoint__deep_cloned_table",
    "delta-rs/delta-0.8.0-special-partition",
    "golden/parquet-all-types",
    "trino/deltalake__deletion_vector_random_prefix",
    "dask-deltatable/empty2",
)
VARIANTS = present(
    "spark/variants",
    "spark/variants_shredded",
    "kernel-rs/unshredded-variant",
    "delta-rs/spark-shredded-variant-preview-delta",
)


@pytest.mark.golden
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", TABLES)
def test_golden_table_has_the_rows_of_the_arrow_engine(spark: Any, name: str, route: Any) -> None:
    uri = str(path_of(name))
    found = read(spark, uri, route=route).toArrow()
    assert_same_rows(plain(found), plain(open_snapshot(uri).scan().to_table()))


@pytest.mark.golden
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_hold_what_the_corpus_records(spark: Any, name: str) -> None:
    skip_variants_that_this_spark_rejects(name)
    record = named(name)
    uri = str(path_of(name))
    schema = open_snapshot(uri).schema
    columns = [f.name for f in schema if getattr(f.type, "type", "") in ("variant", "long", "integer", "string")]
    variants = [f.name for f in schema if getattr(f.type, "type", "") == "variant"]
    assert variants
    from pyspark.sql import functions as F

    rows = read(spark, uri, columns=columns)
    texts = rows.select([F.to_json(c).alias(c) if c in variants else F.col(c) for c in columns]).toArrow().to_pylist()
    wanted = open_snapshot(uri).scan(columns).to_table()
    from delta_plugins.variant_type.logic import variant_to_json

    def key(text: str | None) -> tuple[bool, str]:
        return text is not None, json.dumps(json.loads(text), sort_keys=True) if text else ""

    for c in variants:
        ours = variant_to_json(wanted.column(c).combine_chunks()).to_pylist()
        assert sorted(key(r[c]) for r in texts) == sorted(map(key, ours))
    assert len(texts) == record["versions"][str(record["latest_version"])]["rows"]


# --- made tables ---------------------------------------------------------------------------


NESTED = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "a.b", "type": "string", "nullable": True, "metadata": {}},
        {"name": "s", "nullable": True, "metadata": {}, "type": {"type": "struct", "fields": [
            {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "y", "type": "string", "nullable": True, "metadata": {}}]}},
        {"name": "l", "nullable": True, "metadata": {}, "type": {"type": "array", "containsNull": True, "elementType": {
            "type": "struct", "fields": [{"name": "k", "type": "long", "nullable": True, "metadata": {}},
                                         {"name": "v", "type": "string", "nullable": True, "metadata": {}}]}}},
    ],
}  # fmt: skip


def nested_rows(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": i, "a.b": f"t{i}", "s": None if i % 5 == 0 else {"x": i, "y": str(i)}, "l": [{"k": i, "v": "v"}, None]}
        for i in range(start, start + count)
    ]


@pytest.fixture(scope="module", params=[None, "name", "id"])
def nested(request: Any, tmp_path_factory: Any) -> TableBuilder:
    table = TableBuilder(tmp_path_factory.mktemp("nested") / "t%20 [x]")
    features = ["deletionVectors"]
    table.create(NESTED, column_mapping=request.param, features=features, partition_by=[])
    return table.append(nested_rows(0, 20), files=2).append(nested_rows(20, 10)).delete_rows(lambda r: r["id"] % 7 == 3)


@pytest.mark.parametrize("route", ROUTES)
def test_nested_columns_keep_their_logical_names(spark: Any, nested: TableBuilder, route: Any) -> None:
    assert_same_rows(plain(read(spark, nested.uri, route=route).toArrow()), plain(nested.expected()))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("columns", "predicate"),
    [
        (["s.y", "ID"], None),
        (["s.y", "id"], "s.x > 21 and `a.b` <> 't22'"),
        (["l", "`a.b`"], [("id", "<", 4)]),
        (["id"], "s is null"),
    ],
)
def test_columns_and_predicate_return_what_the_arrow_engine_returns(
    spark: Any, nested: TableBuilder, columns: list[str], predicate: Any, route: Any
) -> None:
    found = read(spark, nested.uri, columns=columns, predicate=predicate, route=route).toArrow()
    expected = open_snapshot(nested.uri).scan(columns, predicate=predicate).to_table()
    assert expected.num_rows
    assert_same_rows(plain(found), plain(expected))


@pytest.mark.parametrize("route", ROUTES)
def test_metadata_columns_state_file_and_position(spark: Any, nested: TableBuilder, route: Any) -> None:
    names = ["_file_path", "_file_row_index"]
    found = read(spark, nested.uri, columns=["id"], metadata=names, route=route).toArrow()
    assert_same_rows(plain(found), plain(open_snapshot(nested.uri).scan(["id"], names).to_table()))


@pytest.mark.parametrize("route", ROUTES)
def test_names_of_any_characters_are_those_of_the_table(spark: Any, tmp_path: Path, route: Any) -> None:
    names = ["a+b %&=`~ü😀\n", "*", "a.*", "`", "%41", " ", "x.y", "", "é&", "last&"]
    uri = str(tmp_path / "t")
    table = pa.table({name: [i] for i, name in enumerate(names)})
    write_deltalake(uri, table, configuration={"delta.columnMapping.mode": "name"})
    for columns in (table, table.select(names[:8])):  # an empty name is last, too
        found = read(spark, uri, columns=[f"`{n.replace('`', '``')}`" for n in columns.column_names], route=route)
        assert found.columns == columns.column_names
        assert list(found.collect()[0]) == [c[0].as_py() for c in columns.columns]


def test_threads_that_read_first_share_the_drivers_classes(java: Path, tmp_path: Path) -> None:
    del java
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.threads_program", table.uri]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {"good": THREADS * READS, "errors": []}


def test_plain_route_needs_no_class_of_ours(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])

    def broken(session: Any) -> Any:
        raise EngineError("this Spark can't compile it")

    monkeypatch.setattr(private, "class_loader", broken)
    monkeypatch.setattr(private, "_made", {})
    assert [r.id for r in read(spark, table.uri, route="join").collect()] == [1]
    with pytest.raises(EngineError, match="can't compile"):
        read(spark, table.uri)


@pytest.mark.parametrize("route", ROUTES)
def test_row_ids_and_versions_follow_files_and_materialised_columns(spark: Any, tmp_path: Path, route: Any) -> None:
    properties = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row_id_m",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_version_m",
    }
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long"}, features=["rowTracking", "domainMetadata"], properties=properties
    )
    given, versions = pa.array([1000, None], pa.int64()), pa.array([None, 1], pa.int64())
    table.append([{"id": i} for i in range(5)])
    table.append(pa.table({"id": [5, 6], "_row_id_m": given, "_version_m": versions}))
    names = ["_row_id", "_row_commit_version"]
    found = read(spark, table.uri, metadata=names, route=route).toArrow()
    assert_same_rows(plain(found), plain(open_snapshot(table.uri).scan(None, names).to_table()))
    assert 1000 in found.column("_row_id").to_pylist()


def test_older_file_without_the_column_returns_null_and_never_the_default(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    default = {"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7"}
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "n", "type": "integer", "nullable": True, "metadata": default},
    ]
    table.alter({"type": "struct", "fields": fields})
    assert read(spark, table.uri).toArrow().to_pylist() == [{"id": 1, "n": None}]


def test_versions_and_times_are_travelled(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}]).append([{"id": 2}])
    assert read(spark, table.uri, 1).count() == 1
    assert read(spark, table.uri, 0).count() == 0
    with pytest.raises(VersionNotFoundError):
        read(spark, table.uri, 9)


def test_swapped_physical_names_find_rows_by_id(spark: Any, tmp_path: Path) -> None:
    """As in a table converted from one whose columns were renamed into each other: file names specify the opposite."""

    def field(name: str, physical: str, number: int) -> dict[str, Any]:
        meta = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return {"name": name, "type": "long", "nullable": True, "metadata": meta}

    fields = [field("a", "a", 1), field("b", "b", 2)]
    properties = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "2"}
    schema = {"type": "struct", "fields": fields}
    table = TableBuilder(tmp_path / "t").create(schema, properties=properties, features=["columnMapping"])
    import pyarrow.parquet as pq

    def stored(name: str, number: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})

    file = Path(table.uri) / "f.parquet"
    rows = pa.table([pa.array([1]), pa.array([5])], schema=pa.schema([stored("b", 1), stored("a", 2)]))
    pq.write_table(rows, file)
    size = file.stat().st_size
    add = {"path": "f.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    table.commit({"add": add})
    for route in ROUTES:
        frame = read(spark, table.uri, route=route)  # type: ignore[arg-type]
        assert frame.where("b = 5").toArrow().to_pylist() == [{"a": 1, "b": 5}]
        assert frame.where("a = 5").count() == 0


def test_session_that_switches_field_ids_off_is_rejected_not_misread(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}, column_mapping="id").append([{"id": 1}])
    frame = read(spark, table.uri)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    with pytest.raises(Exception, match=r"fieldId\.read\.enabled"):
        frame.collect()
    assert read(spark, table.uri).count() == 1


# --- rejections ------------------------------------------------------------------------------


def test_what_is_not_there_is_rejected_by_name(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"})
    with pytest.raises(TableNotFoundError):
        read(spark, tmp_path / "nothing")
    with pytest.raises(ColumnNotFoundError, match="gone"):
        read(spark, table.uri, columns=["gone"])
    with pytest.raises(ColumnNotFoundError, match="_row_id"):
        read(spark, table.uri, metadata=["_row_id"])
    with pytest.raises(InvalidArgumentError, match="route"):
        read(spark, table.uri, route="other")  # type: ignore[arg-type]


def test_missing_data_file_fails_even_where_the_session_ignores_such(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    (Path(table.uri) / table.paths()[0]).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(DataFileNotFoundError, match="is not there"):
            read(spark, table.uri).collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
