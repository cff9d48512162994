"""Polars and DuckDB read plain files by themselves, all others through this library, and the rows are the same."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    DataFileNotFoundError,
    DeltaError,
    ExternalPathError,
    InvalidArgumentError,
    MissingDependencyError,
)
from delta_core.schema.fields import Schema
from delta_core.table.interop import plain_files
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import path_of, records
from tests.example_counts import examples
from tests.properties.test_pruning import SCHEMA, VALUES

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

NAN = float("nan")


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of any size be read by the libraries."""
    monkeypatch.setattr(plain_files, "LEAST_BYTES", 1)


@pytest.fixture
def duck() -> Iterator[Any]:
    """Return a DuckDB connection."""
    connection = duckdb.connect()
    yield connection
    connection.close()


def _is_native(frame: Any) -> bool:
    return "Parquet SCAN" in frame.explain()


def _readers(relation: Any) -> set[str]:
    plan = relation.explain()
    return {name for name in ("READ_PARQUET", "PYTHON_ARROW_SCAN") if name in plan}


def _rows(relation: Any) -> list[str]:
    return sorted(map(repr, relation.fetchall()))


def _of_frame(frame: Any) -> list[str]:
    # times beyond those of Python are compared by their numbers
    return sorted(map(repr, frame.with_columns(pl.selectors.temporal().to_physical()).to_arrow().to_pylist()))


def _assert_same(table: DeltaTable, connection: Any) -> None:
    """Compare all rows and their types in both libraries with those of this one."""
    arrow = table.to_pyarrow_table()
    expected, found = pl.DataFrame(arrow), table.to_polars()
    assert found.collect_schema() == expected.schema
    for engine in ("in-memory", "streaming"):
        collected = found.collect(engine=engine)
        assert collected.schema == expected.schema
        assert _of_frame(collected) == _of_frame(expected)
    relation, loaded = table.to_duckdb(connection), connection.from_arrow(arrow)
    assert (relation.columns, relation.types) == (loaded.columns, loaded.types)
    assert _rows(relation) == _rows(loaded)


def _table(place: Path, schema: pa.Schema, files: Mapping[str, pa.Table], **options: Any) -> DeltaTable:
    """Make a table of files that are written as they are, without statistics."""
    made = TableBuilder(place).create(Schema.from_arrow(schema), features=["timestampNtz"])
    adds = []
    for name, rows in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file, **options)
        facts = {"size": file.stat().st_size, "modificationTime": 1, "dataChange": True, "partitionValues": {}}
        adds.append({"add": {"path": quote(name), **facts}})
    made.commit(*adds)
    return DeltaTable(place)


# --- files that are plain --------------------------------------------------------------------

EVERY_TYPE = pa.schema(
    {
        "b": pa.bool_(), "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "f": pa.float32(),
        "d": pa.float64(), "s": pa.string(), "bin": pa.binary(), "day": pa.date32(), "t": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"), "c9": pa.decimal128(9, 2), "c18": pa.decimal128(18, 0), "c38": pa.decimal128(38, 10),
        "list": pa.list_(pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())})),
        "map": pa.map_(pa.string(), pa.float64()), "struct": pa.struct({"a": pa.date32(), "b": pa.decimal128(5, 1)}),
        "filename": pa.string(), "rowid": pa.int64(), 'a "quoted"': pa.int64(), "file_row_number": pa.int32(),
    }
)  # fmt: skip
_MICROS = dt.datetime.fromisoformat("0001-01-01T00:00:00.000001")
_LAST = dt.datetime.fromisoformat("9999-12-31T23:59:59.999999")
EVERY_ROW: list[dict[str, Any]] = [
    {
        "b": True, "i8": -128, "i16": 32767, "i32": -(2**31), "i64": 2**63 - 1, "f": NAN, "d": -0.0, "s": "ü🎉\0x",
        "bin": b"\xff\0", "day": dt.date(1, 1, 1), "t": _MICROS.replace(tzinfo=dt.UTC), "n": _LAST,
        "c9": Decimal("-1.50"), "c18": Decimal(10**17),
        "c38": Decimal("1234567890123456789012345678.0123456789"),
        "list": [{"x": None, "y": ["", None]}, None], "map": [("k", NAN), ("l", None)],
        "struct": {"a": dt.date(9999, 12, 31), "b": None}, "filename": "own", "rowid": 7, 'a "quoted"': 1,
        "file_row_number": 5,
    },
    dict.fromkeys(EVERY_TYPE.names),
    dict.fromkeys(EVERY_TYPE.names) | {"s": "", "list": [], "map": [], "struct": {"a": None, "b": None}},
]  # fmt: skip


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli"])
def test_every_plain_type_reads_alike_in_both_libraries(
    tmp_path: Path, duck: Any, version: str, compression: str
) -> None:
    rows = pa.Table.from_pylist(EVERY_ROW, EVERY_TYPE)
    options = {"compression": compression, "data_page_version": version, "row_group_size": 2}
    table = _table(tmp_path, EVERY_TYPE, {"a.parquet": rows, "b.parquet": rows.slice(1)}, **options)
    assert _is_native(table.to_polars())
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET"}
    _assert_same(table, duck)


def test_plain_files_of_several_encodings_read_alike(tmp_path: Path, duck: Any) -> None:
    rows = pa.table({"i": [3, 1, None], "f": [0.5, NAN, None], "s": ["ab", "abc", None]})
    encodings = {"i": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT", "s": "DELTA_BYTE_ARRAY"}
    table = _table(tmp_path, rows.schema, {"a.parquet": rows}, use_dictionary=False, column_encoding=encodings)
    assert _is_native(table.to_polars())
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET"}
    _assert_same(table, duck)


@pytest.mark.parametrize("name", ["a b%20c", "x=1", 'it\'s, "quoted"', "é🎉", "part=1/y", "#frag", "&;$"])
def test_names_of_files_are_no_patterns_and_no_partitions(tmp_path: Path, duck: Any, name: str) -> None:
    rows = pa.table({"id": [1, 2], "s": ["a", None]})
    table = _table(tmp_path, rows.schema, {f"{name}.parquet": rows})
    assert _is_native(table.to_polars())
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET"}
    _assert_same(table, duck)


@pytest.mark.parametrize("name", ["a*", "a?", "[ab]", "{a,b}", "back\\slash"])
def test_file_whose_name_is_a_pattern_is_read_by_this_library(tmp_path: Path, duck: Any, name: str) -> None:
    rows = pa.table({"id": [1, 2]})
    files = {f"{name}.parquet": rows, "ab.parquet": rows, "a.parquet": rows}
    table = _table(tmp_path / "t", rows.schema, files)
    pq.write_table(pa.table({"id": [99]}), tmp_path / "t" / "aa.parquet")  # matches some of the names
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET", "PYTHON_ARROW_SCAN"}
    _assert_same(table, duck)
    inside = _table(tmp_path / name / "t", rows.schema, {"a.parquet": rows})
    assert not _is_native(inside.to_polars())
    _assert_same(inside, duck)


# --- files that are not ----------------------------------------------------------------------


def _time(unit: str, zone: str | None = None) -> pa.Array:
    return pa.array([dt.datetime(2024, 5, 1, 12), None]).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))


UTC = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
OTHERS: dict[str, tuple[pa.DataType, pa.Array, dict[str, Any]]] = {
    "INT96": (UTC, _time("us", "UTC"), {"use_deprecated_int96_timestamps": True}),
    "INT96 without a zone": (NTZ, _time("us"), {"use_deprecated_int96_timestamps": True}),
    "milliseconds": (UTC, _time("ms", "UTC"), {}),
    "nanoseconds": (NTZ, _time("ns"), {}),
    "another zone": (UTC, _time("us", "Europe/Berlin"), {}),
    "no zone in place of UTC": (UTC, _time("us"), {}),
    "a narrower integer": (pa.int64(), pa.array([1, None], pa.int32()), {}),
    "a narrower float": (pa.float64(), pa.array([0.1, None], pa.float32()), {}),
    "a narrower decimal": (pa.decimal128(12, 2), pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), {}),
    "unsigned": (pa.int64(), pa.array([1, None], pa.uint32()), {}),
    "bytes for text": (pa.string(), pa.array([b"x", None], pa.binary()), {}),
    "text for bytes": (pa.binary(), pa.array(["x", None], pa.string()), {}),
    "a dictionary": (pa.string(), pa.array(["x", None]).dictionary_encode(), {}),
    "bytes of a fixed length": (pa.binary(), pa.array([b"xyz", None], pa.binary(3)), {}),
    "a list of two levels": (pa.list_(pa.int64()), pa.array([[1], None]), {"use_compliant_nested_type": False}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_file_that_stores_another_type_has_the_rows_of_this_library(tmp_path: Path, duck: Any, kind: str) -> None:
    wanted, values, options = OTHERS[kind]
    schema = pa.schema({"id": pa.int64(), "x": wanted})
    rows = pa.table({"id": [1, 2], "x": values})
    table = _table(tmp_path, schema, {"a.parquet": rows}, **options)
    try:
        table.to_pyarrow_table()
    except DeltaError as e:
        with pytest.raises(type(e)):
            table.to_polars().collect()
        return
    _assert_same(table, duck)
    if kind != "a list of two levels":  # those that are called item are as plain
        assert not _is_native(table.to_polars())
        assert _readers(table.to_duckdb(duck)) == {"PYTHON_ARROW_SCAN"}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": [1, 2]}),
        pa.table({"x": ["a", None], "id": [1, 2]}),
        pa.table({"id": [1, 2], "x": ["a", None], "more": [5, 6]}),
        pa.table({"id": [1, 2], "X": ["a", None]}),
        pa.table({"id": [1, 2], "x": ["a", None], "X": ["wrong", "wrong"]}),
    ],
    ids=["missing", "another order", "one more", "another case", "twice"],
)
def test_file_with_other_columns_has_the_rows_of_this_library(tmp_path: Path, duck: Any, rows: pa.Table) -> None:
    schema = pa.schema({"id": pa.int64(), "x": pa.string()})
    plain = pa.table({"id": [3], "x": ["plain"]})
    table = _table(tmp_path, schema, {"a.parquet": rows, "b.parquet": plain})
    _assert_same(table, duck)
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET", "PYTHON_ARROW_SCAN"}


def test_dates_of_the_julian_calendar_are_rebased(tmp_path: Path, duck: Any) -> None:
    rows = pa.table({"day": pa.array([dt.date(1000, 1, 6), dt.date(2020, 1, 1)])})
    legacy = rows.replace_schema_metadata({"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyDateTime": ""})
    table = _table(tmp_path, rows.schema, {"old.parquet": legacy, "new.parquet": rows})
    assert len(set(table.to_pyarrow_table()["day"].to_pylist())) == 3
    _assert_same(table, duck)


def test_null_in_a_column_that_is_not_null_is_an_error(tmp_path: Path, duck: Any) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    table = _table(tmp_path, schema, {"a.parquet": pa.table({"id": pa.array([1, None], pa.int64())})})
    with pytest.raises(DeltaError, match="id"):
        table.to_polars().collect()
    with pytest.raises(duckdb.Error, match="id"):
        table.to_duckdb(duck).fetchall()


def test_partitioned_and_empty_tables_have_the_rows_of_this_library(tmp_path: Path, duck: Any) -> None:
    rows = [{"id": i, "p": i % 2} for i in range(5)]
    kinds: list[dict[str, Any]] = [{"partition_by": ["p"]}, {}]
    for number, options in enumerate(kinds):
        made = TableBuilder(tmp_path / str(number)).create({"id": "long", "p": "integer"}, **options)
        _assert_same(DeltaTable(made.append(rows).uri) if options else DeltaTable(made.uri), duck)


def test_path_outside_the_table_that_is_not_followed_stays_an_error(tmp_path: Path, duck: Any) -> None:
    rows = pa.table({"id": [1]})
    table = _table(tmp_path / "t", rows.schema, {"a.parquet": rows})
    pq.write_table(rows, tmp_path / "other.parquet")
    add = {"path": f"file://{tmp_path}/other.parquet", "size": 100, "partitionValues": {}, "modificationTime": 1}
    log = tmp_path / "t/_delta_log/00000000000000000002.json"
    log.write_text(json.dumps({"add": {**add, "dataChange": True}}))
    table = DeltaTable(tmp_path / "t", allow_external=False)
    with pytest.raises(ExternalPathError):
        table.to_polars().collect()
    with pytest.raises((ExternalPathError, duckdb.Error), match="other"):
        table.to_duckdb(duck).fetchall()


# --- column mapping --------------------------------------------------------------------------


def _mapped(place: Path, names: str = "name") -> DeltaTable:
    made = TableBuilder(place).create({"id": "long", "s": "string", "x": "double"}, column_mapping=names)
    for start in (0, 100, 200):
        made.append(
            [{"id": i, "s": f"v{i % 10}", "x": None if i % 7 == 0 else i / 2} for i in range(start, start + 100)]
        )
    return DeltaTable(made.uri)


def test_columns_of_other_names_in_files_are_read_by_both_libraries(tmp_path: Path, duck: Any) -> None:
    table = _mapped(tmp_path / "t")
    assert not {"id", "s", "x"} & set(pq.read_schema(table.file_uris()[0]).names)
    assert _is_native(table.to_polars())
    assert _readers(table.to_duckdb(duck)) == {"READ_PARQUET"}
    _assert_same(table, duck)
    table.alter.rename_column("s", "text")
    again = DeltaTable(tmp_path / "t")
    assert _is_native(again.to_polars())
    assert _readers(again.to_duckdb(duck)) == {"READ_PARQUET"}
    _assert_same(again, duck)
    frame = again.to_polars().filter(pl.col("text") == "v3").select("text", "id")
    assert frame.collect().sort("id").rows() == [("v3", i) for i in range(3, 300, 10)]
    assert again.to_polars().select("x").head(2).collect().columns == ["x"]
    assert pickle.loads(pickle.dumps(frame)).collect().height == 30


@pytest.mark.parametrize("stored", [["a", "A"], ["A", "a"], ["b", "a"], ["dup_1", "DUP", "dup"], ['say "x"', "it's"]])
def test_columns_whose_names_in_files_look_alike_are_not_taken_for_each_other(
    tmp_path: Path, duck: Any, stored: list[str]
) -> None:
    logical = ["a", "b", "c"][: len(stored)]
    number = {"type": "long", "nullable": True}
    metadata = [
        {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": n} for i, n in enumerate(stored, start=1)
    ]
    fields = [{"name": n, **number, "metadata": m} for n, m in zip(logical, metadata, strict=True)]
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(stored))}
    made = TableBuilder(tmp_path / "t").create(
        {"type": "struct", "fields": fields}, properties=mapping, protocol=(2, 5)
    )
    rows = pa.table(
        [pa.array([i, i * 10]) for i in range(len(stored))], schema=pa.schema({n: pa.int64() for n in stored})
    )
    pq.write_table(rows, tmp_path / "t" / "f.parquet")
    size = (tmp_path / "t" / "f.parquet").stat().st_size
    facts = {"size": size, "modificationTime": 1, "dataChange": True, "partitionValues": {}}
    made.commit({"add": {"path": "f.parquet", **facts}})
    table = DeltaTable(tmp_path / "t")
    assert table.to_pyarrow_table() == rows.rename_columns(logical)
    _assert_same(table, duck)


def test_conditions_on_columns_of_other_names_choose_files(tmp_path: Path, duck: Any) -> None:
    table = _mapped(tmp_path / "t")
    Path(next(iter(table.file_uris([("id", "=", 150)])))).unlink()
    frame = table.to_polars()
    few, many = frame.filter(pl.col("id") == 7), frame.filter(pl.col("id") < 100)
    assert [_is_native(few), _is_native(many)] == [False, True]
    assert few.collect().rows() == [(7, "v7", None)]
    assert many.select(pl.col("x").count(), pl.col("id").max()).collect().rows() == [(85, 99)]
    relation = table.to_duckdb(duck, file_pruning_predicate="id >= 250")
    assert relation.aggregate("count(*), min(id)").fetchall() == [(100, 200)]


def test_columns_matched_by_id_and_fields_of_other_names_are_read_by_this_library(tmp_path: Path, duck: Any) -> None:
    by_id = _mapped(tmp_path / "id", "id")
    made = TableBuilder(tmp_path / "nested").create(
        Schema.from_arrow(pa.schema({"id": pa.int64(), "in": pa.struct({"x": pa.int64()})})), column_mapping="name"
    )
    nested = DeltaTable(made.append([{"id": 1, "in": {"x": 2}}]).uri)
    for table in (by_id, nested):
        assert not _is_native(table.to_polars())
        assert _readers(table.to_duckdb(duck)) == {"PYTHON_ARROW_SCAN"}
        _assert_same(table, duck)


def test_file_with_a_dropped_column_and_one_without_a_new_one_have_the_rows_of_this_library(
    tmp_path: Path, duck: Any
) -> None:
    table = _mapped(tmp_path / "t")
    table.alter.drop_column("x")
    table = DeltaTable(tmp_path / "t")
    assert not _is_native(table.to_polars())
    _assert_same(table, duck)
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "s": ["a"]}), mode="append")
    mixed = DeltaTable(tmp_path / "t")
    assert _readers(mixed.to_duckdb(duck)) == {"READ_PARQUET", "PYTHON_ARROW_SCAN"}
    _assert_same(mixed, duck)
    assert mixed.to_polars().filter(pl.col("id") == 1).collect().height == 2


# --- conditions ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_nan_is_greater_than_the_bounds_of_a_file(tmp_path: Path, duck: Any, kind: pa.DataType) -> None:
    rows = pa.table({"id": range(6), "x": pa.array([1.0, 2.0, NAN, None, -0.0, 0.0], kind)})
    table = _table(tmp_path, rows.schema, {"a.parquet": rows, "b.parquet": rows.slice(0, 2)})
    memory, frame, relation = pl.DataFrame(table.to_pyarrow_table()), table.to_polars(), table.to_duckdb(duck)
    assert _readers(relation) == {"READ_PARQUET"}
    duck.register("memory", table.to_pyarrow_table())
    x = pl.col("x")
    for test in (
        x > 3,
        x >= 2,
        x == NAN,
        x != 1,
        ~(x <= 2),
        x.is_nan(),
        x.is_in([7.0, NAN]),
        x.is_between(5, NAN),
        x < 0,
    ):
        found, expected = frame.filter(test).collect(), memory.filter(test)
        assert sorted(found["id"]) == sorted(expected["id"]), test
    assert np.isnan(frame.select(x.max()).collect().item()) == np.isnan(memory.select(x.max()).item())
    for where in ("x > 3", "x = 'nan'", "x <> 1", "NOT x <= 2", "isnan(x)", "x IN (7, 'nan')", "x BETWEEN 5 AND 'nan'"):
        query = f"SELECT id FROM {{}} WHERE {where} ORDER BY id"
        assert duck.sql(query.format("relation")).fetchall() == duck.sql(query.format("memory")).fetchall(), where
    assert np.isnan(duck.sql("SELECT max(x) FROM relation").fetchall()[0][0])


def test_files_without_a_match_are_not_opened(tmp_path: Path, duck: Any) -> None:
    place = tmp_path / "t"
    for start in (0, 100, 200):
        write_deltalake(place, pa.table({"id": range(start, start + 100), "s": ["x"] * 100}), mode="append")
    table = DeltaTable(place)
    gone = next(Path(uri) for uri in table.file_uris([("id", "=", 150)]))
    gone.unlink()
    frame = table.to_polars()
    few, many = frame.filter(pl.col("id") == 7), frame.filter(pl.col("id") < 100)
    assert [_is_native(few), _is_native(many)] == [False, True]
    assert few.collect().height == 1
    assert many.collect().height == 100
    relation = table.to_duckdb(duck, file_pruning_predicate="id >= 250")
    assert _readers(relation) == {"READ_PARQUET"}
    assert relation.aggregate("count(*), min(id)").fetchall() == [(100, 200)]
    with pytest.raises(DataFileNotFoundError):
        frame.collect()
    with pytest.raises(duckdb.Error, match=gone.name):
        table.to_duckdb(duck).fetchall()


def test_file_that_is_deleted_later_is_an_error_of_the_library(tmp_path: Path, duck: Any) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": range(100)}))
    table = DeltaTable(tmp_path / "t")
    frame, relation = table.to_polars(), table.to_duckdb(duck)
    assert frame.collect().height == 100
    gone = Path(table.file_uris()[0])
    gone.unlink()
    with pytest.raises((pl.exceptions.PolarsError, OSError), match=gone.name):
        frame.collect()
    with pytest.raises(duckdb.Error, match=gone.name):
        relation.fetchall()


def test_queries_of_one_frame_do_not_share_their_conditions(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": range(1_000), "s": [f"v{i % 10}" for i in range(1_000)]}))
    frame = DeltaTable(tmp_path / "t").to_polars()
    queries = [frame.filter(pl.col("id") < n) for n in (3, 400, 999)] + [frame.head(5), frame.filter(s="v3"), frame]
    heights = [3, 400, 999, 5, 100, 1_000]
    assert [f.height for f in pl.collect_all(queries)] == heights
    with ThreadPoolExecutor(4) as pool:
        assert [f.height for f in pool.map(lambda q: q.collect(), queries * 10)] == heights * 10
    both = queries[0].join(queries[1], on="id", how="right").select(pl.len())
    assert both.collect().item() == 400


def test_version_that_was_loaded_stays(tmp_path: Path, duck: Any) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    table = DeltaTable(tmp_path / "t")
    frame, relation = table.to_polars(), table.to_duckdb(duck)
    write_deltalake(table, pa.table({"id": [2]}), mode="append")
    assert frame.collect()["id"].to_list() == relation.fetchnumpy()["id"].tolist() == [1]
    assert sorted(table.to_polars().collect()["id"]) == [1, 2]


# --- the objects of both libraries -----------------------------------------------------------


def test_view_of_a_relation_outlives_the_table(tmp_path: Path, duck: Any) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": 1}, {"id": 2}]).append([{"id": 3}]).delete_rows(lambda row: row["id"] == 1)
    relation = DeltaTable(made.uri).to_duckdb(duck)
    assert _readers(relation) == {"READ_PARQUET", "PYTHON_ARROW_SCAN"}
    relation.create_view("kept")
    del relation
    assert sorted(duck.sql("SELECT id FROM kept WHERE id < 9").fetchall()) == [(2,), (3,)]


def test_connection_that_may_not_open_files_gets_rows_of_this_library(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}))
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        relation = DeltaTable(tmp_path / "t").to_duckdb(connection)
        assert relation.fetchall() == [(1,), (2,)]


def test_object_that_is_no_connection_is_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}))
    with pytest.raises(InvalidArgumentError, match="of type str"):
        DeltaTable(tmp_path / "t").to_duckdb("memory")
    assert DeltaTable(tmp_path / "t").to_duckdb().fetchall() == [(1,), (2,)]


def test_pickled_frame_has_the_rows(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": 1}, {"id": 2}]).append([{"id": 3}]).delete_rows(lambda row: row["id"] == 1)
    frame = pickle.loads(pickle.dumps(DeltaTable(made.uri).to_polars().filter(pl.col("id") > 1)))
    assert sorted(frame.collect()["id"]) == [2, 3]


def test_pickled_frame_of_a_checkpoint_and_of_files_that_are_not_plain_has_the_rows(tmp_path: Path) -> None:
    table = _mapped(tmp_path / "t")
    table.alter.drop_column("x")
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "s": ["a"]}), mode="append")
    DeltaTable(tmp_path / "t").create_checkpoint()
    frame = DeltaTable(tmp_path / "t").to_polars().filter(pl.col("id") < 3)
    again = pickle.loads(pickle.dumps(frame)).collect()
    assert sorted(again.rows()) == [(0, "v0"), (1, "a"), (1, "v1"), (2, "v2")]


@pytest.mark.parametrize("version", ["1.32.0", "not a number"])
def test_other_versions_of_polars_scan_through_this_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}))
    monkeypatch.setattr(pl, "__version__", version)
    frame = DeltaTable(tmp_path / "t").to_polars()
    assert not _is_native(frame)
    assert frame.collect()["id"].to_list() == [1, 2]


def test_rows_are_counted_without_columns(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "long"}, partition_by=["p"])
    frame = DeltaTable(made.append([{"id": 1, "p": 1}, {"id": 2, "p": 2}]).uri).to_polars()
    for engine in ("in-memory", "streaming"):
        assert frame.with_row_index().select("index").collect(engine=engine)["index"].to_list() == [0, 1]
        assert frame.select(pl.len()).collect(engine=engine).item() == 2


# --- mixed tables ----------------------------------------------------------------------------

_FIELDS = {n: t for n, t in SCHEMA.items() if n not in ("p", "q")}
_row = st.fixed_dictionaries({name: st.sampled_from([None, *VALUES[name]]) for name in _FIELDS})
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


@st.composite
def _condition(draw: st.DrawFn) -> tuple[Any, str, list[Any]]:
    """Return a condition of both libraries, the second with parameters."""
    name = draw(st.sampled_from(sorted(_FIELDS)))
    column = pl.col(name)
    shape = draw(st.sampled_from(["compare", "compare", "in", "null", "and", "or", "not"]))
    if shape == "null":
        return (column.is_null(), f"{name} IS NULL", [])
    if shape in ("and", "or"):
        (a, left, p), (b, right, q) = draw(_condition()), draw(_condition())
        return (a & b if shape == "and" else a | b), f"({left}) {shape} ({right})", [*p, *q]
    if shape == "not":
        inner, text, parameters = draw(_condition())
        return ~inner, f"NOT ({text})", parameters
    values = draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3, unique_by=repr))
    kind = {"f": "DOUBLE", "g": "REAL", "c": "DECIMAL(12,3)"}.get(name)
    mark = f"CAST(? AS {kind})" if kind else "?"
    typed = [pl.lit(v, dtype=pl.Float32) if name == "g" else v for v in values]
    if shape == "in" and name not in ("g", "c"):
        return column.is_in(values), f"{name} IN ({', '.join([mark] * len(values))})", values
    operator = draw(st.sampled_from(sorted(_COMPARE)))
    return _COMPARE[operator](column, typed[0]), f"{name} {operator} {mark}", values[:1]


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    older=st.lists(st.lists(_row, min_size=1, max_size=8), max_size=2),
    newer=st.lists(st.lists(_row, min_size=1, max_size=8), min_size=1, max_size=4),
    dropped=st.sets(st.integers(0, 5), max_size=3),
    statistics=st.booleans(),
    groups=st.sampled_from([2, 100]),
    conditions=st.lists(_condition(), min_size=2, max_size=4),
    least_bytes=st.sampled_from([1, 2_500]),
)
def test_queries_of_mixed_tables_have_the_rows_of_this_library(
    older: list[Any],
    newer: list[Any],
    dropped: set[int],
    statistics: bool,
    groups: int,
    conditions: list[tuple[Any, str, list[Any]]],
    least_bytes: int,
) -> None:
    with pytest.MonkeyPatch.context() as sizes, tempfile.TemporaryDirectory() as place, duckdb.connect() as duck:
        sizes.setattr(plain_files, "LEAST_BYTES", least_bytes)
        first = {n: t for n, t in _FIELDS.items() if n != "s"}
        made = TableBuilder(place).create(first, features=["deletionVectors", "timestampNtz"])
        options: dict[str, Any] = {"statistics": statistics, "parquet": {"row_group_size": groups}}
        for rows in older:
            made.append([{n: v for n, v in row.items() if n != "s"} for row in rows], **options)
        made.alter({**first, "s": "string"})
        for rows in newer:
            made.append(rows, **options)
        hits = {path: [0] for number, path in enumerate(made.paths()) if number in dropped}
        table = DeltaTable((made.delete_rows(hits) if hits else made).uri)
        _assert_same(table, duck)
        memory, frame = pl.DataFrame(table.to_pyarrow_table()), table.to_polars()
        relation = table.to_duckdb(duck)
        duck.register("memory", table.to_pyarrow_table())
        for test, text, parameters in conditions:
            found, expected = frame.filter(test).collect(), memory.filter(test)
            assert _of_frame(found) == _of_frame(expected), test
            some = frame.filter(test).select("s", "i").collect()
            assert _of_frame(some) == _of_frame(expected.select("s", "i")), test
            assert frame.filter(test).select(pl.len()).collect().item() == expected.height
            assert frame.filter(test).head(2).collect().height == min(2, expected.height)
            by = (pl.len(), pl.col("l").max())
            assert (
                frame.filter(test)
                .group_by("b")
                .agg(by)
                .sort("b")
                .collect()
                .equals(memory.filter(test).group_by("b").agg(by).sort("b"))
            )
            relation.create_view("seen", replace=True)
            both = [duck.execute(f"SELECT * FROM {n} WHERE {text}", parameters).fetchall() for n in ("seen", "memory")]
            assert sorted(map(repr, both[0])) == sorted(map(repr, both[1])), (text, parameters)
        assert frame.select(pl.len()).collect().item() == memory.height
        for engine in ("in-memory", "streaming"):
            assert frame.head(3).collect(engine=engine).height == min(3, memory.height)
            assert frame.head(3).select(pl.len()).collect(engine=engine).item() == min(3, memory.height)
            assert frame.slice(1, 2).select("s").collect(engine=engine).height == max(min(2, memory.height - 1), 0)
            assert frame.select(n=1).collect(engine=engine).equals(memory.select(n=1))
            assert frame.with_row_index().select("index").collect(engine=engine).height == memory.height


def test_recorded_tables_have_the_rows_of_this_library(duck: Any) -> None:
    native = 0
    for record in records():
        try:
            table = DeltaTable(str(path_of(record)))
            rows = table.to_pyarrow_table()
        except DeltaError:
            continue
        if rows.num_rows > 20_000:
            continue
        _assert_same(table, duck)
        native += _readers(table.to_duckdb(duck)) != {"PYTHON_ARROW_SCAN"}
    assert native > 10


def test_older_polars_is_rejected_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    monkeypatch.setattr("delta_core.scan.interop._version", lambda _: "1.44.2rc1")
    with pytest.raises(MissingDependencyError, match=r"needs polars 2\.1 or later, found 1\.44\.2rc1\. Run: pip"):
        DeltaTable(str(tmp_path)).to_polars()
