"""DeltaTable: what it specifies for a table, and moving through its versions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import delta_core
from delta_core import DeltaTable, exceptions, open_table, write_deltalake
from delta_core.engines.arrow.log_files import ArrowLogFiles
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError, VersionNotFoundError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.table.interop import file_tables
from delta_core.table.transaction import CommitProperties, Transaction
from delta_core.testing.table_builder import TableBuilder


def _ids(table: DeltaTable) -> list[int]:
    return sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())


# --- opening -------------------------------------------------------------------------------


def test_path_object_and_uri_open_the_same_table(builder: TableBuilder) -> None:
    path = Path(builder.uri)
    assert DeltaTable(path).version() == DeltaTable(path.as_uri()).version() == 2
    assert DeltaTable(path).table_uri == DeltaTable(str(path)).table_uri == path.as_uri() + "/"


def test_relative_path_opens(builder: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(builder.uri).parent)
    assert DeltaTable("sales").file_uris() == DeltaTable(builder.uri).file_uris()


def test_missing_table_raises_the_error_of_both_families(tmp_path: Path) -> None:
    with pytest.raises(exceptions.TableNotFoundError, match="nothing"):
        DeltaTable(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        DeltaTable(tmp_path / "nothing")


def test_version_that_does_not_exist_is_rejected_with_the_latest(builder: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError, match="latest is 2"):
        DeltaTable(builder.uri, version=7)


def test_loading_options_of_the_peer_change_nothing(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri, without_files=True, log_buffer_size=4, skip_stats=True)
    assert len(table.file_uris()) == 4
    assert table.table_config == (True, 4, True)


def test_is_deltatable_reports_tables_from_other_places(builder: TableBuilder, tmp_path: Path) -> None:
    assert DeltaTable.is_deltatable(builder.uri)
    assert not DeltaTable.is_deltatable(tmp_path)
    assert not DeltaTable.is_deltatable(str(tmp_path / "nothing"))
    assert not DeltaTable.is_deltatable(__file__)


def test_table_whose_log_is_broken_counts_as_a_table(builder: TableBuilder) -> None:
    builder.write_log("00000000000000000003.json", "{broken")
    assert DeltaTable.is_deltatable(builder.uri)


def test_table_whose_first_commits_are_gone_counts_as_a_table(builder: TableBuilder) -> None:
    (Path(builder.uri) / "_delta_log" / f"{0:020d}.json").unlink()
    assert DeltaTable.is_deltatable(builder.uri)


def test_time_zone_that_nobody_has_is_rejected_at_once(builder: TableBuilder) -> None:
    with pytest.raises(InvalidArgumentError, match="Europe/Atlantis"):
        DeltaTable(builder.uri, timezone="Europe/Atlantis")


# --- what it specifies --------------------------------------------------------------------------


def test_metadata_protocol_and_schema_state_what_the_log_states(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    metadata = table.metadata()
    assert metadata.id == builder.state.metadata["id"]
    assert (metadata.name, metadata.description, metadata.configuration) == (None, None, {})
    assert metadata.partition_columns == ["kind"]
    assert metadata.created_time == builder.timestamp_ms(0)
    assert str(metadata).startswith(f"Metadata(id: {metadata.id}, name: None")
    assert table.protocol() == (1, 2, None, None)
    assert table.schema() == builder.schema
    assert pa.schema(table.schema()).names == ["id", "kind", "amount"]


def test_protocol_lists_features_writers_first(vectors: TableBuilder) -> None:
    protocol = DeltaTable(vectors.uri).protocol()
    assert protocol._fields == ("min_reader_version", "min_writer_version", "writer_features", "reader_features")
    assert protocol.reader_features == ["deletionVectors"]


def test_history_is_newest_first_and_cut_by_its_limit(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    assert [h["version"] for h in table.history()] == [2, 1, 0]
    newest = table.history(1)
    assert newest[0]["operation"] == "WRITE"
    assert newest[0]["timestamp"] == builder.timestamp_ms(2)
    assert table.history(0) == []
    with pytest.raises(InvalidArgumentError):
        table.history(-1)


def test_transaction_version_is_the_last_of_the_application(builder: TableBuilder) -> None:
    for version in (3, 7):
        builder.commit({"txn": {"appId": "etl", "version": version}})
    table = DeltaTable(builder.uri)
    assert table.transaction_version("etl") == 7
    assert table.transaction_version("other") is None


# --- versions ------------------------------------------------------------------------------


def test_version_argument_and_load_as_version_show_older_rows(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri, version=1)
    assert (table.version(), _ids(table)) == (1, [1, 2])
    table.load_as_version(2)
    assert _ids(table) == [1, 2, 3, 4]
    table.load_as_version(0)
    assert _ids(table) == []


def test_load_as_version_takes_text_and_datetimes(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    moment = datetime.fromtimestamp(builder.timestamp_ms(1) / 1000, UTC)
    for value in (moment, moment.replace(tzinfo=None), moment.isoformat(), moment.isoformat().replace("+00:00", "Z")):
        table.load_as_version(2)
        table.load_as_version(value)
        assert table.version() == 1


def test_time_without_a_zone_is_read_in_the_tables_zone(builder: TableBuilder) -> None:
    moment = datetime.fromtimestamp(builder.timestamp_ms(1) / 1000, UTC)
    table = DeltaTable(builder.uri, timezone="Asia/Tokyo")
    table.load_as_version(moment.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None))
    assert table.version() == 1


def test_time_after_the_last_commit_loads_the_latest(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri, version=0)
    table.load_as_version(datetime(2100, 1, 1, tzinfo=UTC))
    assert table.version() == 2


def test_time_before_the_first_commit_is_rejected(builder: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError):
        DeltaTable(builder.uri).load_as_version("2001-01-01T00:00:00Z")


@pytest.mark.parametrize("value", [1.5, None, True, b"1"])
def test_version_of_another_type_is_rejected(builder: TableBuilder, value: object) -> None:
    with pytest.raises(TypeError):
        DeltaTable(builder.uri).load_as_version(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_version_may_be_any_kind_of_whole_number(builder: TableBuilder, kind: Callable[[int], Any]) -> None:
    table = DeltaTable(builder.uri, version=kind(1))
    assert table.version() == 1
    assert type(table.version()) is int
    assert table.snapshot(kind(0)).version == open_snapshot(builder.uri, kind(0)).version == 0
    assert table.snapshot(kind(2)).at(kind(1)).version == 1
    table.load_as_version(kind(2))
    assert table.version() == 2
    properties = CommitProperties(app_transactions=[Transaction("job", kind(7))])
    write_deltalake(table, pa.table({"id": [1]}), mode="append", schema_mode="merge", commit_properties=properties)
    assert DeltaTable(builder.uri).transaction_version("job") == 7


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float64(1), -1, np.int64(-1), "1"])
def test_version_that_is_no_whole_number_is_rejected(builder: TableBuilder, value: Any) -> None:
    table = DeltaTable(builder.uri)
    for call in (lambda: DeltaTable(builder.uri, version=value), lambda: table.snapshot(value)):
        with pytest.raises(InvalidArgumentError, match="a whole number from 0 on"):
            call()


def test_text_that_is_no_time_is_rejected_as_the_peer_does(builder: TableBuilder) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        DeltaTable(builder.uri).load_as_version("1")


def test_update_incremental_moves_to_the_latest(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    builder.append([{"id": 5, "kind": "c", "amount": 0.0}])
    assert table.version() == 2
    table.update_incremental()
    assert (table.version(), _ids(table)) == (3, [1, 2, 3, 4, 5])


def test_snapshot_leaves_the_table_where_it_is(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    assert table.snapshot() is table.snapshot(2)
    assert table.snapshot(1).version == 1
    assert table.snapshot(timestamp=datetime.fromtimestamp(builder.timestamp_ms(1) / 1000, UTC)).version == 1
    assert table.version() == 2
    with pytest.raises(InvalidArgumentError):
        table.snapshot(1, "2024-01-01")


# --- files ---------------------------------------------------------------------------------


def test_file_uris_are_plain_paths_of_files_that_exist(builder: TableBuilder) -> None:
    uris = DeltaTable(builder.uri).file_uris()
    assert len(uris) == 4
    assert all(os.path.isabs(u) and os.path.exists(u) for u in uris)


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ([("kind", "=", "a")], 2),
        ("kind = 'a'", 2),
        ([("kind", "in", ["a", "b"])], 3),
        ([("kind", "!=", "a")], 1),
        ([("kind", "not in", ["a"])], 1),
        ([[("id", "=", 1)], [("id", ">", 3)]], 2),
        ([("id", ">", 2)], 2),
        ([("kind", "=", "")], 1),
        ("kind IS NULL", 1),
        ([("id", ">=", "3")], 2),
        ([], 4),
        (None, 4),
    ],
)
def test_file_uris_are_pruned_by_partitions_and_statistics(
    builder: TableBuilder, predicate: object, count: int
) -> None:
    table = DeltaTable(builder.uri)
    assert len(table.file_uris(file_pruning_predicate=predicate)) == count
    assert len(table.file_uris(predicate)) == count


def test_two_filters_or_a_mixed_one_are_rejected(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    with pytest.raises(ValueError, match="two filters"):
        table.file_uris([("kind", "=", "a")], file_pruning_predicate="kind = 'a'")
    with pytest.raises(ValueError, match="mix"):
        table.file_uris([("kind", "=", "a"), [("kind", "=", "b")]])


def test_filter_on_an_unknown_column_names_it(builder: TableBuilder) -> None:
    with pytest.raises(exceptions.DeltaError, match="nope"):
        DeltaTable(builder.uri).file_uris([("nope", "=", "a")])


def test_partitions_are_distinct_and_hold_the_logs_text(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    found = [p["kind"] for p in table.partitions()]
    assert sorted(found, key=str) == [None, "a", "b"]
    assert table.partitions(file_pruning_predicate="kind = 'a'") == [{"kind": "a"}]


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["many combinations", "few combinations"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_partitions_of_several_columns_are_distinct(
    tmp_path: Path, checkpoint: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tables, "_MOST_COMBINATIONS", most)
    table = TableBuilder(tmp_path).create({"id": "long", "a": "string", "b": "integer"}, partition_by=["a", "b"])
    rows = [{"id": i, "a": a, "b": b} for i in range(2) for a in ("x", "y", None) for b in (1, None, 2)]
    table.append(rows[:9]).append(rows[5:12])
    if checkpoint:
        table.checkpoint()
    table.append(rows[2:]).append([{"id": 9, "a": "z", "b": 1}])
    expected = {(r["a"], None if r["b"] is None else str(r["b"])) for r in rows} | {("z", "1")}
    found = [(p["a"], p["b"]) for p in DeltaTable(tmp_path).partitions()]
    assert len(found) == len(expected)
    assert set(found) == expected
    assert DeltaTable(tmp_path).partitions(file_pruning_predicate="b = 7") == []


def test_table_without_partitions_has_none(vectors: TableBuilder) -> None:
    assert DeltaTable(vectors.uri).partitions() == []


def test_count_is_that_of_the_rows(builder: TableBuilder, vectors: TableBuilder) -> None:
    assert DeltaTable(builder.uri).count() == 4
    assert DeltaTable(vectors.uri).count() == DeltaTable(vectors.uri).to_pyarrow_table().num_rows == 4
    builder.append([{"id": 9, "kind": "z", "amount": 1.0}], statistics=False)
    assert DeltaTable(builder.uri).count() == 5


@pytest.mark.parametrize(
    "stats", [None, "", "{}", '{"numRecords":null}', '{"minValues":{"id":1},"maxValues":{"id":3},"nullCount":{"id":0}}']
)
@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_files_whose_statistics_lack_their_rows_are_counted(tmp_path: Path, stats: Any, is_checkpoint: bool) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2, 3]}))
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (added,) = [a["add"] for a in actions if "add" in a]
    added["stats"] = stats
    if stats is None:
        del added["stats"]
    commit.write_text("\n".join(map(json.dumps, actions)))
    write_deltalake(str(tmp_path), pa.table({"id": [4]}), mode="append")
    if is_checkpoint:
        DeltaTable(str(tmp_path)).create_checkpoint()
    assert DeltaTable(str(tmp_path)).count() == 4


def test_deletion_vectors_state_which_rows_are_there(vectors: TableBuilder) -> None:
    found = DeltaTable(vectors.uri).deletion_vectors().read_all()
    assert found.schema.names == ["filepath", "selection_vector"]
    (row,) = found.to_pylist()
    assert row["selection_vector"] == [True, False, True, True, False, True]
    assert row["filepath"] == Path(DeltaTable(vectors.uri).file_uris()[0]).as_uri()


def test_deletion_vectors_of_files_without_statistics_cover_every_row(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": i} for i in range(5)], statistics=False).delete_rows(lambda row: row["id"] == 1)
    (row,) = DeltaTable(made.uri).deletion_vectors().read_all().to_pylist()
    assert row["selection_vector"] == [True, False, True, True, True]


def test_table_without_vectors_has_an_empty_stream_of_them(builder: TableBuilder) -> None:
    assert DeltaTable(builder.uri).deletion_vectors().read_all().num_rows == 0


# --- rows ----------------------------------------------------------------------------------


def test_to_pyarrow_table_returns_columns_in_the_order_requested_twice_if_requested(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    assert table.to_pyarrow_table().sort_by("id").equals(builder.expected().sort_by("id"))
    found = table.to_pyarrow_table(columns=["amount", "id", "amount"])
    assert found.column_names == ["amount", "id", "amount"]
    assert found.column(0).equals(found.column(2))


@pytest.mark.parametrize(
    "filters",
    [
        [("id", ">", 2)],
        [[("id", "=", 3)], [("id", "=", 4)]],
        "id > 2",
        pa.compute.field("id") > 2,
        (pa.compute.field("amount") >= 2.5) & pa.compute.field("id").isin([3, 4]),
    ],
    ids=str,
)
def test_filters_of_every_kind_keep_the_same_rows(builder: TableBuilder, filters: object) -> None:
    found = DeltaTable(builder.uri).to_pyarrow_table(columns=["kind"], filters=filters)
    assert found.column_names == ["kind"]
    assert sorted(found.column("kind").to_pylist(), key=str) == [None, "a"]


def test_pyarrow_expression_that_has_no_counterpart_still_filters(builder: TableBuilder) -> None:
    expression = pa.compute.utf8_reverse(pa.compute.field("kind")) == "a"
    assert DeltaTable(builder.uri).to_pyarrow_table(filters=expression).num_rows == 2


def test_partitions_argument_filters_exactly(builder: TableBuilder) -> None:
    found = DeltaTable(builder.uri).to_pyarrow_table(partitions=[("kind", "=", "a")], filters=[("id", ">", 1)])
    assert found.column("id").to_pylist() == [4]


def test_to_pandas_takes_a_types_mapper(builder: TableBuilder) -> None:
    pd = pytest.importorskip("pandas")
    frame = DeltaTable(builder.uri).to_pandas(columns=["id"], types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    assert frame["id"].dtype == pd.Int64Dtype()
    assert sorted(frame["id"]) == [1, 2, 3, 4]


def test_scan_is_read_as_often_as_requested_with_metadata_columns_and_limit(vectors: TableBuilder) -> None:
    scan = DeltaTable(vectors.uri).scan(["id"], "id > 0", metadata=["_file_row_index"], limit=2)
    rows = [{"id": 2, "_file_row_index": 2}, {"id": 3, "_file_row_index": 3}]
    assert pa.table(scan).to_pylist() == scan.to_reader().read_all().to_pylist() == rows
    assert pa.Table.from_batches(scan).to_pylist() == rows
    assert scan.count() == 2


# --- changes and operations ---------------------------------------------------------------------


@pytest.fixture
def fed(tmp_path: Path) -> TableBuilder:
    """Return a table with a change feed: two inserts, one removal."""
    properties = {"delta.enableChangeDataFeed": "true"}
    made = TableBuilder(tmp_path / "fed").create({"id": "long"}, properties=properties, protocol=(1, 4))
    made.append([{"id": 1}]).append([{"id": 2}])
    return made.remove(made.paths()[0])


def _changes(reader: pa.RecordBatchReader) -> list[tuple[int, str, int]]:
    table = reader.read_all()
    names = ("id", "_change_type", "_commit_version")
    return sorted(zip(*(table.column(n).to_pylist() for n in names), strict=True), key=lambda c: (c[2], c[0]))


def test_load_cdf_returns_the_changes_of_a_range(fed: TableBuilder) -> None:
    table = DeltaTable(fed.uri)
    assert _changes(table.load_cdf()) == [(1, "insert", 1), (2, "insert", 2), (1, "delete", 3)]
    assert _changes(table.load_cdf(2, 2)) == [(2, "insert", 2)]


def test_load_cdf_takes_times(fed: TableBuilder) -> None:
    at = [datetime.fromtimestamp(fed.timestamp_ms(v) / 1000, UTC).isoformat() for v in range(4)]
    table = DeltaTable(fed.uri)
    assert _changes(table.load_cdf(starting_timestamp=at[2])) == [(2, "insert", 2), (1, "delete", 3)]
    assert _changes(table.load_cdf(starting_timestamp=at[1], ending_timestamp=at[1])) == [(1, "insert", 1)]


def test_load_cdf_returns_the_columns_requested_only(fed: TableBuilder) -> None:
    table = DeltaTable(fed.uri)
    assert table.load_cdf(columns=["id"]).schema.names == ["id"]
    assert table.load_cdf(columns=["_change_type", "id"]).schema.names == ["_change_type", "id"]
    assert table.load_cdf(columns=["_change_type"]).read_all().num_rows == 3


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("_change_type = 'delete'", [(1, "delete", 3)]),
        ("id = 2", [(2, "insert", 2)]),
        ("id = 1 AND _commit_version < 3", [(1, "insert", 1)]),
        ([("_change_type", "=", "insert"), ("id", ">", 1)], [(2, "insert", 2)]),
    ],
    ids=str,
)
def test_load_cdf_filters_by_its_own_columns_too(fed: TableBuilder, predicate: object, expected: list[object]) -> None:
    assert _changes(DeltaTable(fed.uri).load_cdf(predicate=predicate)) == expected


def test_load_cdf_filter_on_a_column_that_is_not_returned(fed: TableBuilder) -> None:
    found = DeltaTable(fed.uri).load_cdf(columns=["id"], predicate="_change_type = 'delete' OR id = 2")
    assert sorted(found.read_all().column("id").to_pylist()) == [1, 2]


def test_load_cdf_beyond_the_latest_version_is_empty_or_rejected(fed: TableBuilder) -> None:
    table = DeltaTable(fed.uri)
    with pytest.raises(exceptions.DeltaError, match="from version 9 on; the table's latest version is 3"):
        table.load_cdf(9)
    with pytest.raises(exceptions.DeltaError, match="from 2100-01-01 on; the table's latest version is 3"):
        table.load_cdf(starting_timestamp="2100-01-01")
    assert table.load_cdf(9, allow_out_of_range=True).read_all().num_rows == 0


@pytest.mark.peer
def test_load_cdf_up_to_a_version_that_is_not_there_yet_ends_at_the_latest_as_the_peers(fed: TableBuilder) -> None:
    deltalake = pytest.importorskip("deltalake")
    theirs = pa.table(deltalake.DeltaTable(fed.uri).load_cdf(2, 99).read_all())
    assert _changes(DeltaTable(fed.uri).load_cdf(2, 99)) == [(2, "insert", 2), (1, "delete", 3)]
    assert sorted(theirs.column("id").to_pylist()) == [1, 2]


def test_operation_of_a_feature_that_the_table_lacks_names_the_feature(builder: TableBuilder) -> None:
    with pytest.raises(UnsupportedOperationError, match="'changes' needs the table feature changeDataFeed") as caught:
        DeltaTable(builder.uri).load_cdf()
    assert "set the table property delta.enableChangeDataFeed=true" in str(caught.value)
    assert caught.value.facts == {"operation": "plan_changes", "feature": "changeDataFeed"}
    with pytest.raises(UnsupportedOperationError, match="no plugin"):
        DeltaTable(builder.uri).operation("fly")
    with pytest.raises(UnsupportedOperationError, match="Did you mean 'add_constraint'"):
        DeltaTable(builder.uri).operation("add_constraints")


def test_operation_is_bound_to_the_version_that_is_loaded(fed: TableBuilder) -> None:
    table = DeltaTable(fed.uri, version=2)
    assert table.operation("changes")(1).count() == 2


# --- formats and the package ---------------------------------------------------------------


def test_open_table_returns_the_class_of_what_lies_there(builder: TableBuilder) -> None:
    table = open_table(builder.uri, version=1)
    assert isinstance(table, DeltaTable)
    assert table.version() == 1


def test_every_name_of_the_package_resolves() -> None:
    for name in delta_core.__all__:
        assert getattr(delta_core, name) is not None
    assert set(delta_core.__all__) <= set(dir(delta_core))
    with pytest.raises(AttributeError, match="nope"):
        _ = delta_core.nope


def test_exceptions_of_the_peer_catch_ours(builder: TableBuilder) -> None:
    from delta_core import errors

    assert issubclass(errors.TooManyAttemptsError, exceptions.CommitFailedError)
    assert issubclass(errors.UnsupportedFeatureError, exceptions.DeltaProtocolError)
    with pytest.raises(exceptions.DeltaError):
        DeltaTable(builder.uri, version=99)


@pytest.mark.parametrize("flatten", [True, False])
def test_add_actions_take_one_pass_over_the_commits(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch, flatten: bool
) -> None:
    table = DeltaTable(builder.uri)
    parsed: list[int] = []
    read = ArrowLogFiles.read_commits

    def counted(self: ArrowLogFiles, files: Any, query: Any) -> Any:
        parsed.append(len(files))
        return read(self, files, query)

    monkeypatch.setattr(ArrowLogFiles, "read_commits", counted)
    found = table.get_add_actions(flatten=flatten)
    assert parsed == [3]
    assert sorted(found.column("num_records").to_pylist()) == [1, 1, 1, 1]
    if flatten:
        assert sorted(found.column("partition.kind").to_pylist(), key=str) == [None, "a", "a", "b"]
