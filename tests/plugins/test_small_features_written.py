"""Features that require little of writers: what a type or property switches on, and what it changes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable, QueryBuilder
from msgspec.structs import replace

from delta_core.errors import CatalogRequiredError, InvalidArgumentError, UnsupportedFeatureError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernel.write.files import write_files
from delta_core.kernels.row_set import RowSet
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from tests.bundled import needs
from tests.plugins.written import append, begin, create, peer_rows, rows

FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]
ROWS = {"id": [1], "kind": ["a"]}


def contract(name: str) -> FeatureContract:
    made = FeatureContract()
    made.name = name
    return made


def alter(uri: str, **changes: Any) -> None:
    transaction = begin(uri, "ALTER TABLE")
    features = changes.pop("features", ())
    transaction.set_metadata(replace(transaction.table.metadata, **changes), features=features)
    transaction.commit()


# --- timestampNtz --------------------------------------------------------------------------


def test_timestamp_without_zone_requires_its_feature_beside_those_of_the_old_version(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "timestamp_ntz", "nullable": True, "metadata": {}}]}
    uri = create(tmp_path / "t", [{"name": "id", "type": "long", "nullable": False}, {"name": "s", "type": inner}])
    protocol = open_snapshot(uri).protocol
    assert protocol.reader_features == ("timestampNtz",)
    assert protocol.writer_features == ("appendOnly", "invariants", "timestampNtz")
    moment = dt.datetime(2024, 2, 29, 12, 30, 0, 123_456)
    append(uri, pa.table({"id": [1], "s": [{"x": moment}]}))
    assert rows(uri, "s.x") == [{"x": moment}]


def test_column_that_is_added_upgrades_the_table(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    moment = dt.datetime(2024, 2, 29)
    append(uri, pa.table({**ROWS, "at": pa.array([moment], pa.timestamp("us"))}), schema_mode="merge")
    assert open_snapshot(uri).protocol.writer_features == ("appendOnly", "invariants", "timestampNtz")
    assert peer_rows(uri) == [(1, "a", moment)]


# --- materializePartitionColumns -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"features": ["materializePartitionColumns"]}, ["id", "kind"]),
        ({"properties": {"delta.writePartitionColumnsToParquet": "true"}}, ["id", "kind"]),
        ({}, ["id"]),
    ],
)
def test_partition_columns_lie_in_files_where_feature_or_property_request(
    tmp_path: Path, options: dict[str, Any], names: list[str]
) -> None:
    uri = create(tmp_path / "t", FIELDS, partition_by=["kind"], **options)
    append(uri, pa.table(ROWS))
    (path,) = Path(uri).glob("kind=a/*.parquet")
    file = pq.ParquetFile(path)
    assert file.schema_arrow.names == names
    assert file.read().to_pylist() == [{n: ROWS[n][0] for n in names}]
    assert rows(uri) == [(1, "a")]
    assert peer_rows(uri) == [(1, "a")]


# --- checkpointProtection ------------------------------------------------------------------


@pytest.mark.parametrize(("cutoff", "limits"), [(4, [0]), (5, []), (9, [])])
def test_cleanup_that_leaves_protected_history_removes_nothing(cutoff: int, limits: list[int]) -> None:
    state = table_state(["checkpointProtection"], properties={"delta.requireCheckpointProtectionBeforeVersion": "5"})
    alone = contract("checkpointProtection").alone()
    assert alone.collect("retention_limits", table=state, cutoff=cutoff) == limits
    assert alone.collect("retention_limits", table=table_state(["checkpointProtection"]), cutoff=cutoff) == []


def test_protected_version_is_a_number() -> None:
    state = table_state(["checkpointProtection"], properties={"delta.requireCheckpointProtectionBeforeVersion": "five"})
    with pytest.raises(InvalidArgumentError, match="expected a version"):
        contract("checkpointProtection").check_metadata(state)


# --- names that change nothing, or are rejected ---------------------------------------------


@pytest.mark.parametrize(
    "feature",
    ["vacuumProtocolCheck", "checkpointProtection", "coordinatedCommits-preview", "collations", "domainMetadata"],
)
def test_table_that_only_names_it_is_written_as_ever(tmp_path: Path, feature: str) -> None:
    uri = create(tmp_path / "t", FIELDS, features=[feature])
    append(uri, pa.table(ROWS))
    protocol = open_snapshot(uri).protocol
    assert feature in (protocol.writer_features or ())
    assert {"appendOnly", "invariants"} <= set(protocol.writer_features or ())
    assert (feature in (protocol.reader_features or ())) == (feature == "vacuumProtocolCheck")
    assert rows(uri) == [(1, "a")]


def test_collated_column_is_neither_created_nor_written(tmp_path: Path) -> None:
    collated = [{**FIELDS[1], "metadata": {"__COLLATIONS": {"kind": "ICU.en_US.72"}}}]
    with pytest.raises(UnsupportedFeatureError, match="Column kind has a collation"):
        create(tmp_path / "t", collated)
    table = TableBuilder(tmp_path / "b").create(
        {"type": "struct", "fields": [{"nullable": True, **collated[0]}]}, features=["collations", "domainMetadata"]
    )
    with pytest.raises(UnsupportedFeatureError, match="can be read, not written"):
        append(table.uri, {"kind": ["a"]})
    assert open_snapshot(table.uri).scan().to_table().num_rows == 0


def test_coordinator_is_not_named_here(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, features=["coordinatedCommits-preview"])
    with pytest.raises(CatalogRequiredError, match="commit coordinator"):
        alter(uri, configuration={"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"})


@pytest.mark.parametrize("name", ["redirectWriterOnly-preview", "liquid", "acme.unknown"])
def test_writer_features_that_nobody_provides_are_rejected_by_name(tmp_path: Path, name: str) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}, features=[name])
    with pytest.raises(UnsupportedFeatureError, match=name):
        append(table.uri, {"id": [1]})
    with pytest.raises(UnsupportedFeatureError, match=name):
        create(tmp_path / "u", FIELDS, features=[name])
    assert open_snapshot(table.uri).version == 0


# --- a peer reads what it has ------------------------------------------------------------


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableRowTracking": "true"},
        {"delta.enableInCommitTimestamps": "true"},
        pytest.param({"delta.clusterBy": '["id"]'}, marks=needs("clustering")),
        {"delta.enableIcebergCompatV1": "true"},
        {"delta.enableIcebergCompatV2": "true"},
        {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
        {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
        {"delta.feature.checkpointProtection": "supported", "delta.feature.domainMetadata": "supported"},
    ],
)
def test_peer_reads_the_rows(tmp_path: Path, properties: dict[str, str]) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=properties)
    for i in range(3):
        append(uri, pa.table({"id": [2 * i, 2 * i + 1], "kind": ["a", None]}))
    if "delta.enableDeletionVectors" in properties:
        transaction = begin(uri, "DELETE")
        path = open_snapshot(uri).scan(predicate="id = 0").files().column("path")[0].as_py()
        transaction.remove_rows(path, RowSet.from_positions([0]))
        transaction.commit()
    found = pa.table(QueryBuilder().register("t", PeerTable(uri)).execute("select * from t")).to_pylist()
    assert sorted(found, key=str) == sorted(open_snapshot(uri).scan().to_table().to_pylist(), key=str)
    assert len(found) == (5 if "delta.enableDeletionVectors" in properties else 6)


# --- the draft of row tracking -------------------------------------------------------------

DRAFT = {"delta.enableRowIds": "true", "delta_core.writeDrafts": "true"}


def draft_ids(uri: str) -> dict[int, int]:
    found = open_snapshot(uri).scan(metadata=["_row_id"]).to_table().to_pylist()
    return {r["id"]: r["_row_id"] for r in found}


def test_draft_is_written_only_where_the_table_requires_it(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"delta_core\.writeDrafts"):
        create(tmp_path / "t", FIELDS, features=["rowIds"])
    table = TableBuilder(tmp_path / "b").create({"id": "long"}, features=["rowIds"])
    with pytest.raises(UnsupportedFeatureError, match="rowTracking took its place"):
        append(table.uri, {"id": [1]})
    assert open_snapshot(table.uri).scan().to_table().num_rows == 0


def test_switch_of_the_draft_alone_provides_no_feature(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties={"delta.enableRowIds": "true"})
    assert open_snapshot(uri).protocol.writer_features is None


def test_draft_returns_ids_behind_its_mark_and_rebases_them(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, features=["delta.rowIds"], properties=DRAFT)
    append(uri, pa.table({"id": [1, 2], "kind": ["a", "a"]}))
    slow = begin(uri)
    slow.add_files(write_files(slow.context.log.engine, slow.plan, pa.table({"id": [5], "kind": ["b"]})).files)
    append(uri, pa.table({"id": [3, 4], "kind": ["a", "a"]}))
    assert slow.commit().attempts == 2
    assert draft_ids(uri) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}
    assert open_snapshot(uri).custom_actions("rowIdHighWaterMark") == [{"highWaterMark": 4, "preservedRowIds": True}]
    assert open_snapshot(uri).protocol.writer_features == ("appendOnly", "delta.rowIds", "invariants")
