"""Tables that other libraries wrote are read as they read them themselves."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.kernel.snapshot import open_snapshot

deltalake = pytest.importorskip("deltalake")
pytestmark = pytest.mark.peer

TABLE = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "i8": pa.array([1, -128, 127, None, 0, 5], pa.int8()),
        "f": pa.array([0.5, math.nan, math.inf, -math.inf, None, -0.0], pa.float64()),
        "s": pa.array(["a", "", None, "ü" * 50, "z" * 100, "'\"\\"], pa.string()),
        "b": pa.array([b"\x00\xff", b"", None, b"x", b"y", b"z"], pa.binary()),
        "d": pa.array([dt.date(1582, 10, 4), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1), dt.date(1, 1, 1), None]),
        "t": pa.array([-1, 0, None, 1, 10**15, -(10**15)], pa.timestamp("us", "UTC")),
        "n": pa.array([-1, 0, None, 1, 10**15, -(10**15)], pa.timestamp("us")),
        "c": pa.array([Decimal(x) for x in ("1.50", "-99999999.99", "0", "0.01", "7")] + [None], pa.decimal128(10, 2)),
        "flag": pa.array([True, False, None, True, False, None]),
        "l": pa.array([[1, None], [], None, [2], [3], [4]], pa.list_(pa.int32())),
        "st": pa.array(
            [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 2, "y": ""}, {"x": 3, "y": None}, None],
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ),
        "m": pa.array([[("a", 1)], [], None, [("b", None)], [("c", 3)], [("d", 4)]], pa.map_(pa.string(), pa.int64())),
        "p": pa.array(["x", "y", "x", "y z/%", "x", "y"]),
    }
)


def peer_rows(path: Path, version: int | None = None) -> list[str]:
    table = deltalake.DeltaTable(str(path), version=version)
    reader = deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all()
    return sorted(map(repr, pa.table(reader).to_pylist()))


def our_rows(path: Path, version: int | None = None) -> list[str]:
    return sorted(map(repr, open_snapshot(path, version).scan().to_table().to_pylist()))


def assert_every_version_equal(path: Path) -> None:
    for version in range(deltalake.DeltaTable(str(path)).version() + 1):
        assert our_rows(path, version) == peer_rows(path, version), version


@pytest.mark.parametrize("partition_by", [None, ["p"], ["flag"], ["d"], ["t"], ["i8", "p"]], ids=str)
def test_every_type_and_partition_is_read_equal(tmp_path: Path, partition_by: Any) -> None:
    deltalake.write_deltalake(tmp_path, TABLE, partition_by=partition_by)
    deltalake.write_deltalake(tmp_path, TABLE.slice(2, 2), mode="append")
    assert_every_version_equal(tmp_path)


def test_life_of_a_table_is_read_equal_at_every_version(tmp_path: Path) -> None:
    plain = TABLE.drop_columns(["m"])
    deltalake.write_deltalake(tmp_path, plain, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    table = deltalake.DeltaTable(str(tmp_path))
    table.delete("id = 2")
    table.update(updates={"s": "'new'"}, predicate="id > 3")
    deltalake.write_deltalake(tmp_path, plain.slice(0, 3), mode="append")
    table.update_incremental()
    source = plain.slice(0, 2).set_column(0, "id", pa.array([1, 50], pa.int64()))
    (
        table.merge(source, "target.id = source.id", source_alias="source", target_alias="target")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    table.create_checkpoint()
    table.optimize.compact()
    deltalake.write_deltalake(tmp_path, plain.slice(0, 1), mode="overwrite")
    deltalake.DeltaTable(str(tmp_path)).restore(3)
    assert_every_version_equal(tmp_path)


def test_change_feed_is_read_equal(tmp_path: Path) -> None:
    plain = TABLE.select(["id", "s", "flag"])
    deltalake.write_deltalake(
        tmp_path, plain, partition_by=["flag"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    table = deltalake.DeltaTable(str(tmp_path))
    table.delete("id = 2")
    table.update(updates={"s": "'new'"}, predicate="id > 3")
    deltalake.write_deltalake(tmp_path, plain.slice(0, 3), mode="append")
    table.update_incremental()
    columns = ["id", "s", "flag", "_change_type", "_commit_version"]
    theirs = pa.table(table.load_cdf(starting_version=0).read_all()).select(columns)
    ours = pa.table(DeltaTable(str(tmp_path)).load_cdf(0)).select(columns)
    assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))


def test_merged_schema_and_checkpoints_are_read_equal(tmp_path: Path) -> None:
    for number in range(12):
        batch = pa.table({"id": [number], f"c{number % 4}": [str(number)]})
        deltalake.write_deltalake(tmp_path, batch, mode="append", schema_mode="merge")
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    deltalake.DeltaTable(str(tmp_path)).cleanup_metadata()
    assert our_rows(tmp_path) == peer_rows(tmp_path)


def test_column_mapped_table_is_no_table_of_nulls(tmp_path: Path) -> None:
    fields = [deltalake.Field("a b", "long"), deltalake.Field("c", "string")]
    deltalake.DeltaTable.create(
        str(tmp_path), deltalake.Schema(fields), configuration={"delta.columnMapping.mode": "name"}
    )
    deltalake.write_deltalake(tmp_path, pa.table({"a b": [1, 2], "c": ["x", None]}), mode="append")
    found = open_snapshot(tmp_path).scan().to_table().sort_by("a b").to_pylist()
    assert found == [{"a b": 1, "c": "x"}, {"a b": 2, "c": None}]


def test_adds_and_metadata_are_reported_alike(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, TABLE.select(["id", "s", "p"]), partition_by=["p"], name="n", description="d")
    theirs, ours = deltalake.DeltaTable(str(tmp_path)), DeltaTable(str(tmp_path))
    assert sorted(ours.file_uris()) == sorted(theirs.file_uris())
    assert ours.metadata().partition_columns == theirs.metadata().partition_columns
    assert (ours.metadata().name, ours.metadata().description) == ("n", "d")
    assert ours.schema().to_json() == theirs.schema().to_json()
    assert ours.version() == theirs.version()


def test_polars_tables_are_read_equal(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(TABLE.drop_columns(["m"]))
    frame.write_delta(str(tmp_path), delta_write_options={"partition_by": ["p"]})
    frame.head(2).write_delta(str(tmp_path), mode="append")
    theirs = polars.read_delta(str(tmp_path)).to_arrow().to_pylist()
    assert our_rows(tmp_path) == sorted(map(repr, theirs))
