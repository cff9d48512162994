"""Feature changeDataFeed: which rows a range of versions inserted, deleted and updated."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable
from delta_core.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    LogError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import ChangeCapture
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.schema_history import why_unreadable
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.schema.fields import Schema
from delta_core.testing.data_files import as_schema
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, attempt_view, table_state
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.change_data_feed.changes import changes
from tests.plugins.written import append, begin, create, overwrite

ON = {"delta.enableChangeDataFeed": "true"}
WITH_VECTORS: dict[str, Any] = {"features": ["deletionVectors", "changeDataFeed"], "properties": ON}
Change = tuple[int, str, Any]


class TestChangeDataFeed(FeatureContract):
    name = "changeDataFeed"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties=ON)]

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=ON)]

    def test_property_switches_it_on(self) -> None:
        off, on = self.states()
        assert on.is_active(self.name)
        assert not off.is_active(self.name)

    @pytest.mark.parametrize(("value", "wanted"), [("true", ["changeDataFeed"]), ("false", [])])
    def test_property_requires_the_feature(self, value: str, wanted: list[str]) -> None:
        metadata = Metadata("a", "", configuration={"delta.enableChangeDataFeed": value})
        assert self.alone().collect("required_features", metadata=metadata) == wanted

    @pytest.mark.parametrize("name", ["_change_type", "_COMMIT_version", "_commit_timestamp"])
    def test_column_of_a_name_of_its_own_bars_it(self, name: str) -> None:
        fields = [{"name": name, "type": "long"}]
        self.check_metadata(table_state([self.name], fields=fields))
        with pytest.raises(SchemaError, match=name):
            self.check_metadata(table_state([self.name], fields=fields, properties=ON))

    def test_changes_are_captured_while_it_is_on(self) -> None:
        off, on = (self.alone().collect("write_rules", table=s, operation="DELETE") for s in self.states())
        assert off == []
        assert on == [ChangeCapture("changeDataFeed", "_change_type")]

    @pytest.mark.parametrize(
        ("properties", "changes_data", "marked", "match"),
        [
            ({}, True, False, "does not record changes"),
            (ON, True, True, "dataChange=true"),
            (ON, False, False, "neither adds"),
        ],
    )
    def test_change_files_that_readers_would_take_amiss_are_rejected(
        self, properties: dict[str, str], changes_data: bool, marked: bool, match: str
    ) -> None:
        files = pa.table({"path": ["_change_data/c"], "dataChange": [marked]})
        attempt = attempt_view(table_state([self.name], properties=properties), cdcs=files, data_change=changes_data)
        with pytest.raises(UnsupportedOperationError, match=match):
            self.alone().check("check_commit", attempt=attempt)

    def test_its_columns_are_offered_to_change_feeds_only(self) -> None:
        state = table_state([self.name])
        found = {
            purpose: [
                r.name for r in self.alone().collect("read_rules", table=state, request=ReadRequest(purpose=purpose))
            ]
            for purpose in ("rows", "changes")
        }
        assert found == {"rows": [], "changes": ["_change_type", "_commit_version", "_commit_timestamp"]}


def feed(source: Any, start: int | None = 0, end: int | None = None, **options: Any) -> list[Change]:
    """Return (version, kind, id) of each change, sorted."""
    snapshot = open_snapshot(source.uri) if isinstance(source, TableBuilder) else source
    rows = changes(snapshot, start, end, **options).to_table().to_pylist()
    return sorted((r["_commit_version"], r["_change_type"], r["id"]) for r in rows)


def ids(*values: int) -> list[dict[str, Any]]:
    return [{"id": v} for v in values]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t")


# --- what changes are ---


def test_adds_insert_and_removes_delete(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1, 2)).append(ids(3))
    table.remove(table.paths()[0])
    assert feed(table) == [(1, "insert", 1), (1, "insert", 2), (2, "insert", 3), (3, "delete", 1), (3, "delete", 2)]
    assert feed(table, 2, 2) == [(2, "insert", 3)]


def test_actions_that_change_no_data_change_nothing(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1, 2))
    rewritten = table.add_actions(ids(1, 2), dataChange=False)
    table.commit(*table.remove_actions(data_change=False), *rewritten, operation="OPTIMIZE")
    assert feed(table, 2) == []


def test_change_files_alone_report_a_commit_that_has_them(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1, 2))
    rows = [{"id": 1, "_change_type": "update_preimage"}, {"id": 9, "_change_type": "update_postimage"}]
    table.commit(
        *table.remove_actions(), *table.add_actions(ids(9, 2)), *table.change_actions(rows), operation="UPDATE"
    )
    assert feed(table, 2) == [(2, "update_postimage", 9), (2, "update_preimage", 1)]


def test_change_type_of_a_data_file_states_nothing(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4))
    table.append([{"id": 1, "_change_type": "delete"}, {"id": 2, "_change_type": None}])
    assert feed(table) == [(1, "insert", 1), (1, "insert", 2)]


def test_merge_that_states_it_changed_no_row_is_skipped(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1))
    metrics = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}
    for counts in (metrics, {**metrics, "numTargetRowsDeleted": "1"}):
        table.commit(
            *table.remove_actions(), *table.add_actions(ids(1)), operation="MERGE", info={"operationMetrics": counts}
        )
    assert feed(table, 2) == [(3, "delete", 1), (3, "insert", 1)]


@pytest.mark.parametrize("storage", ["u", "i", "p"])
def test_rows_that_a_vector_came_to_drop_are_deleted_and_restored_ones_inserted(
    table: TableBuilder, storage: Any
) -> None:
    table.create({"id": "long"}, **WITH_VECTORS).append(ids(*range(10))).append(ids(20, 21))
    first, second = table.paths()
    table.delete_rows({first: [0, 9]}, storage=storage)
    table.delete_rows({first: [4], second: [1]}, storage=storage)
    table.commit(*table.vector_actions({first: [0, 5]}, storage=storage), operation="RESTORE")
    assert feed(table, 3) == [
        (3, "delete", 0),
        (3, "delete", 9),
        (4, "delete", 4),
        (4, "delete", 21),
        (5, "delete", 5),
        (5, "insert", 4),
        (5, "insert", 9),
    ]


def test_vector_that_goes_away_provides_its_rows_back(table: TableBuilder) -> None:
    table.create({"id": "long"}, **WITH_VECTORS).append(ids(1, 2, 3)).delete_rows(lambda row: row["id"] != 2)
    (add,) = (dict(a) for a in table.state.files.values())
    add.pop("deletionVector")
    table.commit(*table.remove_actions(), {"add": add}, operation="RESTORE")
    assert feed(table, 3) == [(3, "insert", 1), (3, "insert", 3)]


def test_file_with_a_vector_is_inserted_and_deleted_without_its_dropped_rows(table: TableBuilder) -> None:
    table.create({"id": "long"}, **WITH_VECTORS).append(ids(1, 2, 3)).delete_rows(lambda row: row["id"] == 2)
    live = dict(next(iter(table.state.files.values())))
    table.remove().commit({"add": live}, operation="CLONE")
    assert feed(table, 3) == [(3, "delete", 1), (3, "delete", 3), (4, "insert", 1), (4, "insert", 3)]


def test_commit_that_changes_only_statistics_changes_nothing(table: TableBuilder) -> None:
    table.create({"id": "long"}, **WITH_VECTORS).append(ids(1, 2)).delete_rows(lambda row: row["id"] == 2)
    again = [{"add": dict(a)} for a in table.state.files.values()]
    table.commit(*table.remove_actions(), *again, operation="COMPUTE STATS")
    assert feed(table, 3) == []


@pytest.mark.parametrize("mode", [None, "name", "id"])
def test_partitioned_and_mapped_tables_report_logical_columns(table: TableBuilder, mode: Any) -> None:
    features = ["changeDataFeed", "deletionVectors"]
    table.create(
        {"id": "long", "p": "string"}, partition_by=["p"], properties=ON, features=features, column_mapping=mode
    )
    table.append([{"id": 1, "p": "a"}, {"id": 2, "p": None}]).delete_rows(lambda row: row["id"] == 2)
    gone = table.change_actions([{"id": 1, "p": "a", "_change_type": "delete"}])
    table.commit(*gone, *table.remove_actions(table.paths()[0]))
    found = changes(open_snapshot(table.uri), 0).to_table()
    assert found.schema.names == ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted((r["_commit_version"], r["id"], r["p"], r["_change_type"]) for r in found.to_pylist()) == [
        (1, 1, "a", "insert"),
        (1, 2, None, "insert"),
        (2, 2, None, "delete"),
        (3, 1, "a", "delete"),
    ]


# --- which columns and rows of them ---


def test_commit_time_and_version_are_beside_each_row(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1))
    found = changes(open_snapshot(table.uri), 0).to_table()
    assert found.schema.field("_commit_version").type == pa.int64()
    assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    (row,) = found.to_pylist()
    assert row["_commit_timestamp"] == datetime.fromtimestamp(table.timestamp_ms(1) / 1000, UTC)


def test_projection_predicate_and_limit_are_those_of_scans(table: TableBuilder) -> None:
    table.create({"id": "long", "x": "long"}, **WITH_VECTORS).append([{"id": i, "x": -i} for i in range(5)])
    table.delete_rows(lambda row: row["id"] in (1, 4))
    snapshot = open_snapshot(table.uri)
    assert changes(snapshot, 0, columns=["x"]).schema.names == [
        "x",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]
    assert feed(snapshot, predicate="x < -2") == [(1, "insert", 3), (1, "insert", 4), (2, "delete", 4)]
    assert changes(snapshot, 0, limit=3).to_table().num_rows == 3
    assert changes(snapshot, 0).count() == 7


def test_source_may_be_anything_that_returns_a_snapshot(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1))

    class Face:
        def snapshot(self) -> Snapshot:
            return open_snapshot(table.uri)

    assert feed(Face()) == [(1, "insert", 1)]


# --- which versions ---


@pytest.fixture
def five(table: TableBuilder) -> TableBuilder:
    """Versions 0 to 4, one insert in each but the first."""
    table.create({"id": "long"}, properties=ON, protocol=(1, 4))
    for i in range(1, 5):
        table.append(ids(i))
    return table


def test_times_choose_the_versions_between_them(five: TableBuilder) -> None:
    at = [datetime.fromtimestamp(five.timestamp_ms(v) / 1000, UTC) for v in range(5)]
    between = datetime.fromtimestamp(five.timestamp_ms(2) / 1000 - 0.25, UTC)
    versions = [v for v, _, _ in feed(five, None, None, start_timestamp=at[2], end_timestamp=at[3].isoformat())]
    assert versions == [2, 3]
    late = between.replace(year=2090)
    assert [v for v, _, _ in feed(five, None, None, start_timestamp=between, end_timestamp=late)] == [2, 3, 4]
    assert [v for v, _, _ in feed(five, None, 2, start_timestamp="2001-01-01")] == [1, 2]


def test_ends_of_the_range_may_be_any_kind_of_whole_number(five: TableBuilder) -> None:
    snapshot = open_snapshot(five.uri)
    assert changes(snapshot, np.int64(1), np.int32(2)).to_table() == changes(snapshot, 1, 2).to_table()
    for ends in ((True, 2), (0, 2.0)):
        with pytest.raises(InvalidArgumentError, match="a whole number from 0 on"):
            changes(snapshot, *ends)


def test_changes_of_files_whose_path_matches_are_left_out(five: TableBuilder) -> None:
    paths = changes(open_snapshot(five.uri), 1, 4).files().column("path").to_pylist()
    assert len(paths) == 4
    assert feed(five, 1, 4, exclude_regex=f"^{re.escape(paths[1])}$") == [(v, "insert", v) for v in (1, 3, 4)]


@pytest.mark.parametrize(("start", "end"), [(3, 2), (-1, 2)])
def test_range_that_is_none_is_rejected(five: TableBuilder, start: int, end: int) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected 0 <= start <= end|start_version -1, expected"):
        feed(five, start, end)


def test_version_and_time_at_once_are_rejected(five: TableBuilder) -> None:
    with pytest.raises(InvalidArgumentError, match="start_version and start_timestamp"):
        feed(five, 1, start_timestamp="2024-01-01")
    with pytest.raises(InvalidArgumentError, match="end_version and end_timestamp"):
        feed(five, 0, 1, end_timestamp="2024-01-01")


def test_range_beyond_the_table_is_rejected_unless_it_may_be_cut(five: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError, match="up to version 9, the table is at version 4"):
        feed(five, 3, 9)
    assert feed(five, 3, 9, allow_out_of_range=True) == [(3, "insert", 3), (4, "insert", 4)]
    assert feed(five, 7, 9, allow_out_of_range=True) == []


def test_commits_that_are_gone_are_named(five: TableBuilder) -> None:
    five.checkpoint("v1").cleanup_before(4)
    with pytest.raises(VersionNotFoundError, match="version 2"):
        feed(five, 2)


# --- whether it can be reported ---


def test_version_at_which_the_feed_was_off_is_named(table: TableBuilder) -> None:
    table.create({"id": "long"}, protocol=(1, 4)).append(ids(1)).alter(properties=ON).append(ids(2))
    table.alter(properties={"delta.enableChangeDataFeed": "false"}).append(ids(3)).alter(properties=ON).append(ids(4))
    assert feed(table, 2, 3) == [(3, "insert", 2)]
    assert feed(table, 6) == [(7, "insert", 4)]
    for start, end, version in ((1, 3, 1), (3, 7, 4), (5, 5, 5)):
        with pytest.raises(UnsupportedOperationError, match=f"off at version {version} ") as caught:
            feed(table, start, end)
        assert caught.value.version == version


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_Commit_Timestamp"])
def test_columns_of_these_names_bar_the_feed(table: TableBuilder, name: str) -> None:
    table.create({"id": "long", name: "string"}, properties=ON, protocol=(1, 4))
    with pytest.raises(UnsupportedOperationError, match=f"column '{name}' of its own"):
        feed(table)


def test_older_rows_are_read_with_the_schema_of_the_end(table: TableBuilder) -> None:
    table.create({"id": "long"}, properties=ON, protocol=(1, 4)).append(ids(1))
    table.alter({"id": "long", "extra": "string"}).append([{"id": 2, "extra": "x"}])
    rows = changes(open_snapshot(table.uri), 0).to_table().to_pylist()
    assert [(r["id"], r["extra"]) for r in rows] == [(1, None), (2, "x")]
    assert changes(open_snapshot(table.uri), 0, 1).schema.names[:2] == ["id", "_change_type"]


def test_schema_that_older_rows_do_not_fit_is_rejected_by_version(table: TableBuilder) -> None:
    table.create({"id": "long", "x": "string"}, properties=ON, protocol=(1, 4)).append([{"id": 1, "x": "a"}])
    table.alter({"id": "long"}).append(ids(2))
    with pytest.raises(
        SchemaError, match=r"version 0 can't be read with the schema of version 3.*column x was dropped"
    ):
        feed(table)
    assert feed(table, 2) == [(3, "insert", 2)]


def test_feature_that_was_dropped_within_the_range_is_rejected(table: TableBuilder) -> None:
    table.create({"id": "long"}, **WITH_VECTORS).append(ids(1, 2)).delete_rows(lambda row: row["id"] == 2)
    table.commit(*table.remove_actions(), *table.add_actions(ids(1), dataChange=False))
    table.alter(protocol=(1, 4))
    with pytest.raises(UnsupportedOperationError, match="Version 0 needs the reader feature deletionVectors"):
        feed(table)
    assert feed(table, 0, 2) == [(1, "insert", 1), (1, "insert", 2), (2, "delete", 2)]


def test_remove_without_partition_values_is_rejected_where_they_matter(table: TableBuilder) -> None:
    def forget(action: dict[str, Any]) -> dict[str, Any]:
        return {
            "remove": {k: v for k, v in action["remove"].items() if k in ("path", "dataChange", "deletionTimestamp")}
        }

    table.create({"id": "long", "p": "string"}, partition_by=["p"], properties=ON, protocol=(1, 4))
    table.append([{"id": 1, "p": "a"}])
    table.commit(*(forget(a) for a in table.remove_actions()), operation="DELETE")
    with pytest.raises(LogError, match="removed at version 2 without its partition values"):
        feed(table)


OLD = {
    "a": "integer",
    "s": {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}}]},
}


def schema(**columns: Any) -> Schema:
    return as_schema(columns)


def with_b(**b: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}} | b]}


def unreadable(old: Schema, new: Schema, widened: bool) -> str | None:
    before, after = (Metadata("t", schema_string=each.to_json()) for each in (old, new))
    return why_unreadable(before, after, widened, "delta.columnMapping.physicalName")


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (OLD, None),
        ({**OLD, "c": "string"}, None),
        ({**OLD, "a": "string"}, "a changed its type"),
        ({"s": OLD["s"]}, "a was dropped"),
        ({**OLD, "s": with_b(type="string")}, "s.b changed its type"),
        ({**OLD, "s": with_b(name="c")}, "s.b was dropped"),
        ({**OLD, "s": with_b(nullable=False)}, "s.b became NOT NULL"),
        ({**OLD, "s": "long"}, "s changed its type"),
        ({"A": "integer", "s": OLD["s"]}, "a was dropped"),
    ],
)
def test_readable_schema_changes(new: dict[str, Any], why: str | None) -> None:
    found = unreadable(schema(**OLD), schema(**new), widened=False)
    assert (found is None) if why is None else (found is not None and why in found)


def test_types_may_widen_where_the_table_has_widening() -> None:
    old, new = schema(a="integer"), schema(a="long")
    assert unreadable(old, new, widened=True) is None
    assert unreadable(old, new, widened=False) == "column a changed its type from integer to long"
    assert unreadable(schema(a="void"), schema(a="long"), widened=False) is None


# --- tables that record them ---


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """Versions 1 and 2 append two rows each."""
    uri = create(tmp_path / "r", [{"name": "id", "type": "long"}, {"name": "x", "type": "string"}], properties=ON)
    append(uri, {"id": [1, 2], "x": ["a", "b"]})
    append(uri, {"id": [3, 4], "x": ["c", None]})
    return uri


def peer_feed(uri: str, start: int) -> list[Change]:
    rows = pa.table(PeerTable(uri).load_cdf(starting_version=start).read_all()).to_pylist()
    return sorted((r["_commit_version"], r["_change_type"], r["id"]) for r in rows)


def test_appends_and_overwrites_need_no_change_files(recorded: str) -> None:
    overwrite(recorded, {"id": [9], "x": ["z"]})
    wanted = [(3, "delete", i) for i in (1, 2, 3, 4)] + [(3, "insert", 9)]
    assert feed(open_snapshot(recorded), 3) == wanted
    assert peer_feed(recorded, 3) == wanted
    assert not (Path(recorded) / "_change_data").exists()


def test_replaced_rows_are_reported_without_those_that_moved(recorded: str) -> None:
    overwrite(recorded, {"id": [2], "x": ["new"]}, replace_where="id = 2")
    wanted = [(3, "delete", 2), (3, "insert", 2)]
    assert feed(open_snapshot(recorded), 3) == wanted
    assert peer_feed(recorded, 3) == wanted
    assert sorted(open_snapshot(recorded).scan(["id"]).to_table().column("id").to_pylist()) == [1, 2, 3, 4]


def test_rows_that_do_not_fit_leave_neither_data_nor_change_files(recorded: str) -> None:
    before = sorted(p.name for p in Path(recorded).rglob("*.parquet"))
    with pytest.raises(ConstraintViolationError):
        overwrite(recorded, {"id": [5], "x": ["new"]}, replace_where="id = 2")
    assert sorted(p.name for p in Path(recorded).rglob("*.parquet")) == before


def test_change_files_of_a_table_without_the_feature_are_rejected(tmp_path: Path) -> None:
    transaction = begin(create(tmp_path / "t", [{"name": "id", "type": "long"}]))
    none = pa.array([[]], pa.map_(pa.string(), pa.string()))
    files = {"path": ["_change_data/c"], "partitionValues": none, "size": [1], "dataChange": [False]}
    transaction.add_change_files(pa.table(files))
    with pytest.raises(UnsupportedFeatureError, match="cdc"):
        transaction.commit()


def test_feed_that_only_a_property_claims_is_rejected_by_feature(tmp_path: Path) -> None:
    """Writer version 2 has no change files: changes of rows rewrite whole files, and nothing reports which.

    deltalake 1.6.6 and delta-spark look at the property alone, and return rows that stayed as deleted and inserted.
    """
    table = TableBuilder(tmp_path).create({"id": "long"}, properties=ON, protocol=(1, 2)).append({"id": [1, 2]})
    (old,) = table.state.files.values()
    gone = {"path": old["path"], "deletionTimestamp": 1, "dataChange": True, "partitionValues": {}, "size": old["size"]}
    (add,) = table.add_actions({"id": [1, 3]})  # 2 becomes 3, and 1 stays
    table.commit({"remove": {**gone, "extendedFileMetadata": True}}, add, operation="UPDATE")
    with pytest.raises(UnsupportedOperationError, match="needs the table feature changeDataFeed"):
        DeltaTable(table.uri).load_cdf(0)
    told = pa.table(PeerTable(table.uri).load_cdf(2).read_all())
    assert sorted(told.column("id").to_pylist()) == [1, 1, 2, 3]
