"""The change feed: change files alone if a commit has one, else adds and removes, vectors compared."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.errors import DeltaError
from delta_core.testing.table_builder import TableBuilder

ON = {"delta.enableChangeDataFeed": "true"}


def tracked(path: Path, schema: Any = None, **options: Any) -> TableBuilder:
    properties = {**ON, **options.pop("properties", {})}
    features = ["changeDataFeed", "deletionVectors", *options.pop("features", [])]
    return TableBuilder(path).create(schema or {"id": "long"}, features=features, properties=properties, **options)


def feed(table: TableBuilder, *args: Any, **options: Any) -> pa.Table:
    return pa.table(DeltaTable(table.uri).load_cdf(*args, **options))


def changes(table: TableBuilder, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    found = feed(table, *args, **options)
    rows = zip(*(found.column(n).to_pylist() for n in ("_commit_version", "_change_type", "id")), strict=True)
    return sorted(rows)


def test_appends_are_inserts_and_removes_deletes(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1, 2]}).append({"id": [3]}).remove()
    assert changes(table) == [
        (1, "insert", 1),
        (1, "insert", 2),
        (2, "insert", 3),
        (3, "delete", 1),
        (3, "delete", 2),
        (3, "delete", 3),
    ]
    assert changes(table, 2, 2) == [(2, "insert", 3)]


def test_columns_and_types_of_the_feed(tmp_path: Path) -> None:
    found = feed(tracked(tmp_path).append({"id": [1]}))
    assert found.column_names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert found.schema.field("_commit_version").type == pa.int64()
    assert pa.types.is_timestamp(found.schema.field("_commit_timestamp").type)


def test_change_files_hide_the_adds_and_removes_of_their_commit(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1, 2]})
    change = {"id": [1, 1, 9], "_change_type": ["update_preimage", "update_postimage", "insert"]}
    table.commit(*table.remove_actions(), *table.add_actions({"id": [1, 2, 9]}), *table.change_actions(change))
    assert changes(table, 2) == [(2, "insert", 9), (2, "update_postimage", 1), (2, "update_preimage", 1)]


def test_rewrites_without_data_change_are_no_changes(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1]}).append({"id": [2]})
    table.commit(*table.remove_actions(data_change=False), *table.add_actions({"id": [1, 2]}, dataChange=False))
    assert changes(table, 3) == []


def test_changed_vector_returns_the_rows_between_old_and_new(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": range(6)})
    table.delete_rows(lambda row: row["id"] in (1, 2)).delete_rows(lambda row: row["id"] == 4)
    assert changes(table, 2) == [(2, "delete", 1), (2, "delete", 2), (3, "delete", 4)]


def test_restored_vector_returns_inserts(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": range(6)})
    (path,) = table.paths()
    before = {"add": dict(next(iter(table.state.files.values())))}
    table.delete_rows(lambda row: row["id"] in (1, 2))
    table.commit(*table.remove_actions(), before)
    assert changes(table, 3) == [(3, "insert", 1), (3, "insert", 2)]
    table.delete_rows({path: [0, 1]})
    table.commit(*table.vector_actions({path: [1, 5]}))
    assert changes(table, 5) == [(5, "delete", 5), (5, "insert", 0)]


def test_removed_file_returns_only_rows_that_were_live(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": range(4)}).delete_rows(lambda row: row["id"] < 2).remove()
    assert changes(table, 3) == [(3, "delete", 2), (3, "delete", 3)]


def test_partition_values_and_column_mapping_hold_in_the_feed(tmp_path: Path) -> None:
    table = tracked(tmp_path, {"id": "long", "p": "string"}, partition_by=["p"], column_mapping="name")
    table.append([{"id": 1, "p": "a"}, {"id": 2, "p": None}])
    change = [{"id": 1, "p": "a", "_change_type": "delete"}]
    table.commit(*table.remove_actions(table.paths()[0]), *table.change_actions(change))
    found = feed(table).select(["id", "p", "_change_type"]).to_pylist()
    assert sorted(found, key=str) == [
        {"id": 1, "p": "a", "_change_type": "delete"},
        {"id": 1, "p": "a", "_change_type": "insert"},
        {"id": 2, "p": None, "_change_type": "insert"},
    ]


def test_change_type_column_in_a_data_file_is_ignored(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    stored = pa.table({"id": pa.array([1], pa.int64()), "_change_type": ["delete"]})
    table.append(stored, statistics=False)
    assert pa.table(DeltaTable(table.uri).scan()).to_pylist() == [{"id": 1}]
    assert changes(table) == [(1, "insert", 1)]


def test_feed_must_be_on_at_every_version(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["changeDataFeed"]).append({"id": [1]})
    table.alter(properties=ON).append({"id": [2]})
    with pytest.raises(DeltaError):
        feed(table, 0)
    assert changes(table, 2) == [(3, "insert", 2)]
    table.alter(properties={"delta.enableChangeDataFeed": "false"}).append({"id": [3]}).alter(properties=ON)
    with pytest.raises(DeltaError):
        feed(table, 2)


def test_commit_timestamp_is_the_in_commit_one_where_switched_on(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, start_ms=1000, step_ms=1000).create(
        {"id": "long"},
        features=["changeDataFeed", "inCommitTimestamp"],
        properties={**ON, "delta.enableInCommitTimestamps": "true"},
    )
    table.append({"id": [1]}, commit={"mtime_ms": 77_000})
    (stamp,) = feed(table).column("_commit_timestamp").to_pylist()
    assert stamp.replace(tzinfo=dt.UTC) == dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)


def test_commit_timestamp_is_the_file_time_outside_the_table(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1]}, commit={"mtime_ms": 1_800_000_000_000})
    (stamp,) = feed(table).column("_commit_timestamp").to_pylist()
    assert stamp.replace(tzinfo=dt.UTC).timestamp() == 1_800_000_000


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_commit_timestamp"])
def test_users_column_of_a_feeds_name_bars_the_feed_but_not_the_table(tmp_path: Path, name: str) -> None:
    table = tracked(tmp_path, {"id": "long", name: "string"}).append([{"id": 1, name: "mine"}])
    assert pa.table(DeltaTable(table.uri).scan()).to_pylist() == [{"id": 1, name: "mine"}]
    with pytest.raises(DeltaError, match=name):
        feed(table)


def test_cleaned_up_commits_are_rejected(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1]}).append({"id": [2]}).checkpoint().cleanup_before(2)
    with pytest.raises(DeltaError):
        feed(table, 1)
    assert changes(table, 2) == [(2, "insert", 2)]


def test_range_turned_around_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DeltaError):
        feed(tracked(tmp_path).append({"id": [1]}), 1, 0)


def test_added_column_is_null_in_older_changes(tmp_path: Path) -> None:
    table = tracked(tmp_path).append({"id": [1]}).alter({"id": "long", "b": "string"}).append([{"id": 2, "b": "x"}])
    found = feed(table).select(["id", "b"]).to_pylist()
    assert sorted(found, key=str) == [{"id": 1, "b": None}, {"id": 2, "b": "x"}]
