"""Partition values: from the log's text, never from directories, whatever their type, name or zone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CorruptTableError, ExpressionError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import write_deltalake
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

VALUES: dict[str, Any] = {
    "boolean": True,
    "byte": -5,
    "short": 300,
    "integer": 2**30,
    "long": -(2**62),
    "float": 1.5,
    "double": -0.25,
    "string": "a b/c%=ü'\"",
    "date": dt.date(1582, 10, 4),
    "timestamp": dt.datetime(2024, 1, 1, 5, 6, 7, 8, tzinfo=dt.UTC),
    "timestamp_ntz": dt.datetime.fromisoformat("2024-03-31T02:30:00.123456"),
    "decimal(10,2)": Decimal("-12.30"),
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "binary": "raw ü \x01".encode(),
}


def partitioned(path: Path, kind: str, *, features: Any = ("timestampNtz",), **options: Any) -> TableBuilder:
    return TableBuilder(path).create({"id": "long", "p": kind}, partition_by=["p"], features=list(features), **options)


def values(table: TableBuilder, **options: Any) -> list[Any]:
    rows = open_snapshot(table.uri, **options).scan().to_table().sort_by("id")
    return rows.column("p").to_pylist()


@pytest.mark.parametrize("kind", VALUES)
def test_value_of_each_type_is_read_and_found(tmp_path: Path, kind: str) -> None:
    table = partitioned(tmp_path, kind).append([{"id": 1, "p": VALUES[kind]}, {"id": 2, "p": None}])
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())
    scan = open_snapshot(tmp_path).scan(predicate="p is null")
    assert scan.files().num_rows == 1
    assert scan.to_table().column("id").to_pylist() == [2]
    if kind != "binary":
        equal = open_snapshot(tmp_path).scan(predicate=[("p", "=", VALUES[kind])])
        assert equal.files().num_rows == 1
        assert equal.to_table().column("id").to_pylist() == [1]


@pytest.mark.parametrize("kind", VALUES)
def test_empty_text_means_null_for_every_type(tmp_path: Path, kind: str) -> None:
    table = partitioned(tmp_path, kind)
    table.commit(*table.add_actions([{"id": 1, "p": None}], partitionValues={"p": ""}))
    assert values(table) == [None]
    assert open_snapshot(tmp_path).scan(predicate="p is null").to_table().num_rows == 1


@pytest.mark.parametrize("kind", ["integer", "date", "timestamp", "decimal(5,2)", "boolean", "double"])
def test_text_that_is_no_value_of_the_type_is_rejected(tmp_path: Path, kind: str) -> None:
    table = partitioned(tmp_path, kind)
    table.commit(*table.add_actions([{"id": 1, "p": None}], partitionValues={"p": "no such value"}))
    with pytest.raises(CorruptTableError, match="no such value"):
        values(table)


def test_directories_mean_nothing(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "string")
    (add,) = table.add_actions([{"id": 1, "p": "right"}], path="p=wrong/q=other/f.parquet")
    table.commit(add).commit(*table.add_actions([{"id": 2, "p": "flat"}], path="f.parquet"))
    assert values(table) == ["right", "flat"]


def test_hive_null_directory_with_null_value_is_null_and_as_value_is_text(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "string").append([{"id": 1, "p": None}])
    assert "__HIVE_DEFAULT_PARTITION__" in table.paths()[0]
    table.commit(*table.add_actions([{"id": 2, "p": "__HIVE_DEFAULT_PARTITION__"}]))
    assert values(table)[0] is None


@pytest.mark.parametrize("text", ["a b", "a/b", "50%", "%20", "a=b", "a+b", "ü", "a\nb", "'\"", "x" * 200, " "])
def test_special_characters_survive_hive_and_uri_escapes(tmp_path: Path, text: str) -> None:
    table = partitioned(tmp_path, "string").append([{"id": 1, "p": text}])
    assert values(table) == [text]
    assert open_snapshot(tmp_path).scan(predicate=[("p", "=", text)]).to_table().num_rows == 1


@pytest.mark.parametrize("form", ["commit", "checkpoint"])
def test_missing_key_is_null(tmp_path: Path, form: str) -> None:
    table = partitioned(tmp_path, "string")
    table.commit(*table.add_actions([{"id": 1, "p": "x"}], partitionValues={}))
    if form == "checkpoint":
        table.checkpoint().cleanup_before(table.version)
    assert values(table) == [None]
    assert open_snapshot(tmp_path).scan(predicate="p is null").files().num_rows == 1


@pytest.mark.parametrize("form", ["commit", "checkpoint"])
@pytest.mark.parametrize("predicate", [None, "p = 'x'", "p is null"])
def test_file_without_partition_values_is_rejected_on_a_partitioned_table(
    tmp_path: Path, form: str, predicate: str | None
) -> None:
    table = partitioned(tmp_path, "string")
    table.commit(*table.add_actions([{"id": 1, "p": "x"}], partitionValues=None))
    if form == "checkpoint":
        table.checkpoint().cleanup_before(table.version)
    with pytest.raises(CorruptTableError, match="'partitionValues'"):
        open_snapshot(tmp_path).scan(predicate=predicate).to_table()


@pytest.mark.parametrize("form", ["commit", "checkpoint"])
def test_file_without_partition_values_is_read_where_nothing_is_partitioned(tmp_path: Path, form: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    table.commit(*table.add_actions([{"id": 1}], partitionValues=None))
    if form == "checkpoint":
        table.checkpoint().cleanup_before(table.version)
    assert open_snapshot(tmp_path).scan().to_table().column("id").to_pylist() == [1]


# --- zones ---------------------------------------------------------------------------------


def test_zone_less_text_means_the_zone_requested(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "timestamp")
    table.commit(*table.add_actions([{"id": 1, "p": None}], partitionValues={"p": "2024-01-01 00:00:00"}))
    assert values(table) == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
    assert values(table, timezone="America/Los_Angeles") == [dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)]
    late = open_snapshot(tmp_path, timezone="America/Los_Angeles")
    predicate = [("p", "=", dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC))]
    assert late.scan(predicate=predicate).to_table().num_rows == 1
    assert open_snapshot(tmp_path).scan(predicate=predicate).to_table().num_rows == 0


@pytest.mark.parametrize(
    "text", ["2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01 00:00:00Z"]
)
def test_text_with_a_zone_keeps_it_in_every_zone(tmp_path: Path, text: str) -> None:
    table = partitioned(tmp_path, "timestamp")
    table.commit(*table.add_actions([{"id": 1, "p": None}], partitionValues={"p": text}))
    for zone in ("UTC", "Asia/Tokyo"):
        assert values(table, timezone=zone) == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]


def test_zone_less_type_ignores_the_zone(tmp_path: Path) -> None:
    value = dt.datetime.fromisoformat("2024-01-01T00:00:00")
    table = partitioned(tmp_path, "timestamp_ntz").append([{"id": 1, "p": value}])
    assert values(table, timezone="Asia/Tokyo") == [value]


# --- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["none", "json", "struct", "both"])
@pytest.mark.parametrize("mapping", ["name", "id"])
def test_partition_columns_are_logical_and_partition_values_physical(tmp_path: Path, mapping: Any, form: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", "day": "date"}, partition_by=["day"], column_mapping=mapping)
    table.append([{"id": i, "day": dt.date(2024, 1, 1 + i % 3)} for i in range(9)])
    if form != "none":
        table.checkpoint(statistics=form).cleanup_before(1)  # type: ignore[arg-type]
    snapshot = open_snapshot(tmp_path)
    assert list(next(iter(table.state.files.values()))["partitionValues"]) == ["col-2"]
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    assert snapshot.scan(predicate="day = date '2024-01-02'").files().num_rows == 1
    assert snapshot.scan(["day"]).to_table().column("day").null_count == 0


def test_partition_columns_spelled_in_another_case_are_found(tmp_path: Path) -> None:
    table = (
        TableBuilder(tmp_path).create({"id": "long", "P": "string"}, partition_by=["P"]).append([{"id": 1, "P": "x"}])
    )
    metadata = {**table.state.metadata, "partitionColumns": ["p"]}
    table.commit({"metaData": metadata})
    assert open_snapshot(tmp_path).scan().to_table().column_names == ["id", "P"]
    assert open_snapshot(tmp_path).scan().to_table().column("P").to_pylist() == ["x"]


def test_values_in_data_files_yield_to_the_log(tmp_path: Path) -> None:
    """materializePartitionColumns and some converters leave the columns in the files."""
    table = partitioned(tmp_path, "string").append([{"id": 1, "p": "x"}], materialize_partitions=True)
    (add,) = table.state.files.values()
    table.commit(*table.remove_actions(), {"add": {**add, "partitionValues": {"p": "log"}}})
    assert values(table) == ["log"]


def test_partition_column_between_others_keeps_its_place(tmp_path: Path) -> None:
    table = (
        TableBuilder(tmp_path)
        .create(pa.schema([("a", pa.int64()), ("p", pa.string()), ("b", pa.int64())]), partition_by=["p"])
        .append([{"a": 1, "p": "x", "b": 2}])
    )
    assert open_snapshot(tmp_path).scan().to_table().column_names == ["a", "p", "b"]
    assert_same_rows(open_snapshot(tmp_path).scan(["b", "p"]).to_table(), table.expected().select(["b", "p"]))


def test_scan_of_partition_columns_alone_counts_rows(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "string").append([{"id": i, "p": "ab"[i % 2]} for i in range(10)])
    assert_same_rows(open_snapshot(tmp_path).scan(["p"]).to_table(), table.expected().select(["p"]))


# --- values of files that are gone, or that no row of the predicate reaches -----------------


@pytest.fixture(params=["commits", "checkpoint"])
def retyped(request: Any, tmp_path: Path) -> DeltaTable:
    """A table whose partition column was text and is a number now; the log still names the files of then."""
    texts = pa.table({"id": [1, 2, 3], "p": ["abc", "x", "2"]})
    write_deltalake(tmp_path, texts, partition_by=["p"])
    if request.param == "checkpoint":
        DeltaTable(tmp_path).create_checkpoint()
    numbers = pa.table({"id": [4, 5], "p": pa.array([2, 3], pa.int32())})
    write_deltalake(tmp_path, numbers, partition_by=["p"], mode="overwrite", schema_mode="overwrite")
    return DeltaTable(tmp_path)


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        ("p = 2", [4]),
        ("p > 1", [4, 5]),
        ("p is null", []),
        ("p + 0 = 3 and id = 5", [5]),
        ("p < id", [4, 5]),
        ("p = 2 and id = 4 or p = 3 and id = 5", [4, 5]),
    ],
)
def test_filter_looks_at_no_partition_value_of_a_removed_file(
    retyped: DeltaTable, predicate: str, ids: list[int]
) -> None:
    found = open_snapshot(retyped.table_uri).scan(predicate=predicate).to_table()
    assert sorted(found.column("id").to_pylist()) == ids


def test_checkpoint_and_predicate_overwrite_look_at_no_partition_value_of_a_removed_file(retyped: DeltaTable) -> None:
    retyped.create_checkpoint()
    new = pa.table({"id": [9], "p": pa.array([2], pa.int32())})
    write_deltalake(retyped, new, mode="overwrite", predicate="p = 2")
    DeltaTable(retyped.table_uri).create_checkpoint()
    rows = open_snapshot(retyped.table_uri).scan().to_table()
    assert sorted(rows.column("id").to_pylist()) == [5, 9]


def test_cast_fails_on_the_partition_values_of_live_files_only(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "p": ["abc", "2", "3"]}), partition_by=["p"])
    with pytest.raises(ExpressionError, match="'abc'"):
        open_snapshot(tmp_path).scan(predicate="cast(p as int) = 2").to_table()
    write_deltalake(tmp_path, pa.table({"id": [4], "p": ["2"]}), mode="overwrite")
    found = open_snapshot(tmp_path).scan(predicate="cast(p as int) = 2").to_table()
    assert found.column("id").to_pylist() == [4]


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        ("p <> 'abc' and cast(p as int) = 2", [2]),
        ("p = 'abc' or cast(p as int) = 2", [1, 2]),
        ("case when p = 'abc' then false else cast(p as int) = 2 end", [2]),
        ("(id = 2 and cast(p as int) = 2) or p = 'abc'", [1, 2]),
        ("p <> 'abc' and id < cast(p as int) + 1", [2, 3]),
        ("not (p = 'abc' or cast(p as int) = 2)", [3]),
    ],
)
def test_guard_keeps_a_cast_from_the_partition_values_that_it_excludes(
    tmp_path: Path, predicate: str, ids: list[int]
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "p": ["abc", "2", "3"]}), partition_by=["p"])
    found = open_snapshot(tmp_path).scan(predicate=predicate).to_table()
    assert sorted(found.column("id").to_pylist()) == ids
