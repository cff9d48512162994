"""Folders of Parquet files become tables."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Schema, write_deltalake
from delta_core.errors import (
    DataFileError,
    InvalidArgumentError,
    IrregularFileError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedOperationError,
)
from delta_core.table.transaction import AddAction
from delta_core.table.writer import convert_to_deltalake

YEAR = Schema.from_arrow(pa.schema([("year", pa.int32())]))


def put(folder: Path, name: str, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)
    return path


def rows(folder: Path) -> list[dict[str, Any]]:
    found = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return sorted(found, key=str)


def adds(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def test_rows_of_all_files_are_those_of_the_table_and_of_the_peer(tmp_path: Path) -> None:
    put(tmp_path, "a b.parquet", {"id": [1, 2], "s": ["x", None]})
    put(tmp_path, "deep/er/c%20.PARQUET", {"id": [3], "more": [[1.5]]})
    put(tmp_path, "empty.parquet", {"id": pa.array([], pa.int64())})
    put(tmp_path, "_hidden/d.parquet", {"id": [9]})
    put(tmp_path, ".e.parquet", {"id": [9]})
    (tmp_path / "readme.txt").write_text("no data")
    convert_to_deltalake(tmp_path, name="n", description="d", configuration={"delta.appendOnly": "true"})
    expected = [
        {"id": 1, "s": "x", "more": None},
        {"id": 2, "s": None, "more": None},
        {"id": 3, "s": None, "more": [1.5]},
    ]
    assert rows(tmp_path) == expected
    peer = pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).to_pylist()
    assert sorted(peer, key=str) == expected
    table = DeltaTable(str(tmp_path))
    assert table.verify(deep="rows").ok
    assert (table.metadata().name, table.metadata().configuration) == ("n", {"delta.appendOnly": "true"})
    assert table.history()[0]["operation"] == "CONVERT"


def test_statistics_come_from_footers_and_skip_files(tmp_path: Path) -> None:
    for start in (0, 100):
        put(tmp_path, f"{start}.parquet", {"id": list(range(start, start + 10)), "s": [None] * 5 + ["v"] * 5})
    convert_to_deltalake(tmp_path)
    assert [json.loads(a["stats"])["minValues"]["id"] for a in adds(tmp_path)] == [0, 100]
    assert [json.loads(a["stats"])["nullCount"] for a in adds(tmp_path)] == [{"id": 0, "s": 5}] * 2
    table = DeltaTable(str(tmp_path))
    assert [
        u.rpartition("/")[2]
        for u in table.snapshot().scan(predicate="id > 50").file_set.columns(["path"]).column("path").to_pylist()
    ] == ["100.parquet"]


def test_without_statistics_only_rows_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1, 2]})
    convert_to_deltalake(tmp_path, collect_stats=False)
    assert [json.loads(a["stats"]) for a in adds(tmp_path)] == [{"numRecords": 2, "tightBounds": True}]


@pytest.mark.parametrize("strategy", ["hive", "directory"])
def test_folders_give_partition_values(tmp_path: Path, strategy: Any) -> None:
    by = Schema.from_arrow(pa.schema([("day", pa.date32()), ("_who", pa.string())]))
    names = ("day={}/_who={}", "{}/{}")[strategy == "directory"]
    put(tmp_path, names.format("2026-01-02", "a%2Fb") + "/f.parquet", {"id": [1]})
    put(tmp_path, names.format("2026-01-03", "__HIVE_DEFAULT_PARTITION__") + "/f.parquet", {"id": [2]})
    convert_to_deltalake(tmp_path, partition_by=by, partition_strategy=strategy)
    expected = [
        {"id": 1, "day": dt.date(2026, 1, 2), "_who": "a/b"},
        {"id": 2, "day": dt.date(2026, 1, 3), "_who": None},
    ]
    assert rows(tmp_path) == expected
    peer = pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).to_pylist()
    assert sorted(peer, key=str) == expected


@pytest.mark.parametrize(
    ("name", "by", "strategy"),
    [
        ("year=2026/f.parquet", None, None),
        ("f.parquet", YEAR, "hive"),
        ("year=2026/month=1/f.parquet", YEAR, "hive"),
        ("month=1/f.parquet", YEAR, "hive"),
        ("f.parquet", YEAR, "directory"),
        ("year=abc/f.parquet", YEAR, "hive"),
    ],
)
def test_folders_that_are_not_the_partition_columns_are_rejected(
    tmp_path: Path, name: str, by: Any, strategy: Any
) -> None:
    put(tmp_path, name, {"id": [1]})
    with pytest.raises(InvalidArgumentError, match=r"f\.parquet"):
        convert_to_deltalake(tmp_path, partition_by=by, partition_strategy=strategy)
    assert not (tmp_path / "_delta_log").exists()


def test_partition_column_in_the_files_too_is_that_of_the_folder(tmp_path: Path) -> None:
    put(tmp_path, "year=2026/f.parquet", {"id": [1], "year": [7]})
    convert_to_deltalake(tmp_path, partition_by=YEAR, partition_strategy="hive")
    assert rows(tmp_path) == [{"id": 1, "year": 2026}]


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ({"a": [1]}, {"a": ["x"]}, SchemaMismatchError),
        ({"a": [1]}, {"a": pa.array([1], pa.int32())}, SchemaMismatchError),
        ({"a": [1]}, {"A": [1]}, SchemaMismatchError),
        ({"a": [{"b": 1}]}, {"a": [{"b": "x"}]}, SchemaMismatchError),
        ({"a": [[1]]}, {"a": [["x"]]}, SchemaMismatchError),
        ({"a": [1]}, {"b": pa.array([1], pa.uint32())}, SchemaError),
        ({"a": [1]}, {"b": pa.array([1], pa.timestamp("ns"))}, SchemaError),
        ({"a": [1]}, {"b": pa.array([[1]], pa.list_(pa.uint8()))}, SchemaError),
        ({"a": [1]}, {"b": pa.array([1], pa.time64("us"))}, SchemaError),
    ],
)
def test_columns_that_no_table_can_have_are_rejected_with_their_file(
    tmp_path: Path, first: Any, second: Any, error: type[Exception]
) -> None:
    put(tmp_path, "1.parquet", first)
    put(tmp_path, "2.parquet", second)
    with pytest.raises(error, match=r"2\.parquet"):
        convert_to_deltalake(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_metadata_of_columns_is_not_taken_over(tmp_path: Path) -> None:
    field = pa.field("id", pa.int64(), nullable=False, metadata={"delta.identity.start": "1", "PARQUET:field_id": "7"})
    pq.write_table(pa.table([pa.array([1])], schema=pa.schema([field])), tmp_path / "a.parquet")
    convert_to_deltalake(tmp_path)
    (found,) = DeltaTable(str(tmp_path)).schema().fields
    assert (found.nullable, dict(found.metadata)) == (True, {})


def test_timestamps_of_int96_are_instants(tmp_path: Path) -> None:
    noon = dt.datetime(2026, 1, 1, 12)
    columns = {"l": [[noon]], "s": [{"t": noon, "n": 1}], "n": [noon]}
    put(tmp_path, "a.parquet", columns, use_deprecated_int96_timestamps=True)
    convert_to_deltalake(tmp_path)
    there = noon.replace(tzinfo=dt.UTC)
    assert rows(tmp_path) == [{"l": [there], "s": {"t": there, "n": 1}, "n": there}]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"text" * 100])
def test_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    (tmp_path / "torn.parquet").write_bytes(content)
    with pytest.raises(DataFileError, match=r"torn\.parquet"):
        convert_to_deltalake(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_folder_without_parquet_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no Parquet file"):
        convert_to_deltalake(tmp_path)


def test_folder_with_a_table_in_it_is_rejected(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    write_deltalake(tmp_path / "inner", pa.table({"id": [2]}))
    with pytest.raises(InvalidArgumentError, match="inner"):
        convert_to_deltalake(tmp_path)


def test_names_that_properties_change_are_rejected(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    with pytest.raises(InvalidArgumentError, match="'id' would have another name"):
        convert_to_deltalake(tmp_path, configuration={"delta.columnMapping.mode": "name"})


def test_second_conversion_adds_what_is_new(tmp_path: Path) -> None:
    put(tmp_path, "year=2025/a.parquet", {"id": [1]})
    convert_to_deltalake(tmp_path, partition_by=YEAR, partition_strategy="hive")
    with pytest.raises(TableExistsError, match="append"):
        convert_to_deltalake(tmp_path)
    convert_to_deltalake(tmp_path, mode="ignore")
    convert_to_deltalake(tmp_path, mode="append")
    assert DeltaTable(str(tmp_path)).version() == 0
    put(tmp_path, "year=2026/b.parquet", {"id": [2], "more": ["x"]})
    convert_to_deltalake(tmp_path, mode="append")
    assert rows(tmp_path) == [{"id": 1, "more": None, "year": 2025}, {"id": 2, "more": "x", "year": 2026}]
    put(tmp_path, "year=2026/c.parquet", {"id": ["text"]})
    with pytest.raises(SchemaMismatchError, match=r"id of year=2026/c\.parquet is STRING, and BIGINT in the table"):
        convert_to_deltalake(tmp_path, mode="append")


def test_second_conversion_after_a_write_is_rejected(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    convert_to_deltalake(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="overwrite")
    with pytest.raises(UnsupportedOperationError, match="version 1 is the operation WRITE"):
        convert_to_deltalake(tmp_path, mode="append")
    assert rows(tmp_path) == [{"id": 2}]


def test_table_takes_row_changes_after_its_conversion(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1, 2, 3]})
    convert_to_deltalake(
        tmp_path, configuration={"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    )
    DeltaTable(str(tmp_path)).delete("id = 2")
    assert rows(tmp_path) == [{"id": 1}, {"id": 3}]


def test_links_to_files_are_taken_as_spark_takes_them(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    put(folder, "a.parquet", {"id": [1]})
    put(tmp_path, "elsewhere/b.parquet", {"id": [2, 3]})
    (folder / "deep").mkdir()
    (folder / "deep" / "link.parquet").symlink_to(tmp_path / "elsewhere" / "b.parquet")
    (folder / "_hidden.parquet").symlink_to(tmp_path / "nothing")
    (folder / "readme.txt").symlink_to(tmp_path / "elsewhere" / "b.parquet")
    assert convert_to_deltalake(folder) is None
    assert rows(folder) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert {a["path"]: a["size"] for a in adds(folder)}["deep/link.parquet"] == (
        tmp_path / "elsewhere" / "b.parquet"
    ).stat().st_size
    DeltaTable(folder).vacuum(full=True, dry_run=False, retention_hours=0, enforce_retention_duration=False)
    assert rows(folder) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert DeltaTable(folder).verify(deep="rows").ok


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("b.parquet", "nothing", "not there"),
        ("b.parquet", "t/a.parquet", "twice"),
        ("k=1", "elsewhere", "link to a folder"),
        ("b.parquet", "elsewhere", "link to a folder"),
    ],
)
def test_links_that_can_not_be_taken_are_rejected_by_name(tmp_path: Path, name: str, target: str, message: str) -> None:
    folder = tmp_path / "t"
    put(folder, "a.parquet", {"id": [1]})
    put(tmp_path, "elsewhere/b.parquet", {"id": [2]})
    (folder / name).symlink_to(tmp_path / target)
    with pytest.raises(InvalidArgumentError, match=message):
        convert_to_deltalake(folder)
    assert not (folder / "_delta_log").exists()


def test_two_links_to_one_file_are_rejected(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/b.parquet", {"id": [2]})
    (tmp_path / "t").mkdir()
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / "t" / name).symlink_to(tmp_path / "elsewhere" / "b.parquet")
    with pytest.raises(InvalidArgumentError, match="twice"):
        convert_to_deltalake(tmp_path / "t")


@pytest.mark.parametrize("name", [b"b\xff.parquet", b"f\xff/b.parquet"])
def test_file_whose_name_is_no_utf_8_is_rejected(tmp_path: Path, name: bytes) -> None:
    path = put(tmp_path, "a.parquet", {"id": [1]})
    target = os.path.join(bytes(tmp_path), name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(path, target)
    with pytest.raises(InvalidArgumentError, match="no UTF-8"):
        convert_to_deltalake(tmp_path)


@pytest.mark.parametrize(
    ("kind", "folder", "text"),
    [
        (pa.int32(), " 4", "4"),
        (pa.int64(), "+007", "7"),
        (pa.bool_(), "1", "true"),
        (pa.bool_(), "FALSE", "false"),
        (pa.date32(), "2024-1-5", "2024-01-05"),
        (pa.decimal128(5, 2), "1.5", "1.50"),
        (pa.float64(), "1e3", "1000.0"),
        (pa.timestamp("us", "UTC"), "2024-01-05 01%3A00%3A00", "2024-01-05T01:00:00.000000Z"),
        (pa.string(), " 4", " 4"),
        (pa.int32(), "__HIVE_DEFAULT_PARTITION__", None),
        (pa.string(), "", None),
    ],
)
def test_partition_values_are_spelled_as_writers_spell_them(
    tmp_path: Path, kind: pa.DataType, folder: str, text: str | None
) -> None:
    put(tmp_path, f"k={folder}/a.parquet", {"id": [1]})
    convert_to_deltalake(tmp_path, partition_by=pa.schema([("k", kind)]), partition_strategy="hive")
    assert [a["partitionValues"] for a in adds(tmp_path)] == [{"k": text}]
    ours = rows(tmp_path)
    assert [r["id"] for r in ours] == [1]
    peer = pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).to_pylist()
    assert peer == ours


def test_values_of_files_that_are_registered_are_spelled_as_writers_spell_them(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.bool_())])
    table = DeltaTable.create(tmp_path, schema, partition_by=["k"])
    path = put(tmp_path, "a.parquet", {"id": [1]})
    action = AddAction("a.parquet", path.stat().st_size, {"k": "1"}, 1, True, "{}")
    table.create_write_transaction([action], "append", schema)
    text = (tmp_path / "_delta_log" / f"{1:020}.json").read_text()
    assert '"partitionValues":{"k":"true"}' in text


@pytest.mark.parametrize("columns", [{"a b": [1]}, {"s": [{"x,y": 1}]}])
@pytest.mark.parametrize("configuration", [None, {"delta.columnMapping.mode": "name"}])
def test_advice_for_names_that_need_column_mapping_can_be_followed(
    tmp_path: Path, columns: dict[str, Any], configuration: Any
) -> None:
    put(tmp_path / "f", "a.parquet", columns)
    with pytest.raises(SchemaError, match="Write their rows to a table of its own") as e:
        convert_to_deltalake(tmp_path / "f", configuration=configuration)
    assert "delta.columnMapping.mode=name" in str(e.value)
    data = pq.read_table(tmp_path / "f" / "a.parquet")
    write_deltalake(tmp_path / "t", data, configuration={"delta.columnMapping.mode": "name"})
    assert rows(tmp_path / "t") == data.to_pylist()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("make", [_pipe, _socket, _device])
@pytest.mark.parametrize("folder", ["", "p=1"])
def test_irregular_file_is_rejected_by_name(tmp_path: Path, make: Callable[[Path], None], folder: str) -> None:
    root = tmp_path / "t"
    (root / folder).mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), root / folder / "a.parquet")
    make(root / folder / "_b.parquet")
    make(root / folder / "c.txt")
    by = pa.schema([("p", pa.int64())]) if folder else None
    strategy: Any = "hive" if folder else None
    assert convert_to_deltalake(root, partition_by=by, partition_strategy=strategy, dry_run=True) == {"num_files": 1}
    make(root / folder / "d.parquet")
    with pytest.raises(IrregularFileError, match=r"d\.parquet is a pipe, a socket or a device"):
        convert_to_deltalake(root, partition_by=by, partition_strategy=strategy)
    assert not (root / "_delta_log").exists()
