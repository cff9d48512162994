"""What callers may set as table properties, at creation and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

SCHEMA = pa.schema({"id": pa.int64()})
KEPT = [
    "delta.columnMapping.maxColumnId",
    "delta.columnMapping.hasDroppedOrRenamed",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.rowIds.physicalColumnName",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
]


def change(uri: str, properties: Mapping[str, str]) -> Transaction:
    """Stage further properties for a table."""
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "SET TBLPROPERTIES")
    old = snapshot.metadata
    transaction.set_metadata(replace(old, configuration={**old.configuration, **properties}))
    return transaction


def created(path: Path, properties: Mapping[str, str]) -> str:
    DeltaTable.create(str(path), SCHEMA, configuration=properties)
    return str(path)


def test_features_declare_what_they_keep() -> None:
    assert {n for f in PluginRegistry().everything.features.values() for n in f.reserved} == set(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_property_that_a_feature_keeps_is_rejected_by_name(tmp_path: Path, name: str) -> None:
    """delta-spark rejects maxColumnId so ("cannot be specified by the user"); it takes others, which break tables."""
    for given in (name, name.upper()):
        with pytest.raises(InvalidArgumentError, match=f"{name} is kept by the feature") as caught:
            created(tmp_path / "n", {given: "1"})
        assert caught.value.property == name
        with pytest.raises(InvalidArgumentError, match=f"{name} is kept by the feature"):
            write_deltalake(str(tmp_path / "n"), pa.table({"id": [1]}), configuration={given: "1"})
    assert not (tmp_path / "n").exists()
    uri = created(tmp_path / "t", {})
    with pytest.raises(InvalidArgumentError, match=f"{name} is kept by the feature"):
        change(uri, {name: "1"})


def test_kept_property_stays_through_other_changes(tmp_path: Path) -> None:
    on = {
        "delta.columnMapping.mode": "name",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
    }
    uri = created(tmp_path / "t", on)
    before = open_snapshot(uri).metadata.configuration
    transaction = change(uri, {"my.own": "1"})
    # twice in one transaction: the second change sees what the first one was given by features
    transaction.set_metadata(replace(transaction.table.metadata, description="d"))
    transaction.commit()
    assert open_snapshot(uri).metadata.configuration == {**before, "my.own": "1"}


def test_names_that_features_declare_are_spelled_so(tmp_path: Path) -> None:
    uri = created(tmp_path / "t", {"DELTA.enabledeletionvectors": "true", "delta.columnmapping.MODE": "name"})
    snapshot = open_snapshot(uri)
    assert snapshot.metadata.configuration["delta.enableDeletionVectors"] == "true"
    assert snapshot.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert {"columnMapping", "deletionVectors"} <= snapshot.state.active
    change(uri, {"delta.APPENDONLY": "true", "My.Own": "x"}).commit()
    configuration = open_snapshot(uri).metadata.configuration
    assert configuration["delta.appendOnly"] == "true"
    assert configuration["My.Own"] == "x"


def test_name_of_a_feature_that_is_requested_may_have_any_case(tmp_path: Path) -> None:
    uri = created(tmp_path / "t", {"Delta.Feature.DELETIONVECTORS": "Supported"})
    snapshot = open_snapshot(uri)
    assert "deletionVectors" in (snapshot.protocol.writer_features or ())
    assert snapshot.metadata.configuration == {}


def test_two_spellings_of_one_property_are_rejected(tmp_path: Path) -> None:
    uri = created(tmp_path / "t", {"delta.appendOnly": "true"})
    with pytest.raises(InvalidArgumentError, match=r"delta\.appendOnly is given twice"):
        change(uri, {"delta.APPENDONLY": "false"})


def test_value_that_a_property_can_not_have_is_rejected_after_creation_too(tmp_path: Path) -> None:
    uri = created(tmp_path / "t", {})
    with pytest.raises(InvalidArgumentError, match=r"delta\.checkpointInterval is '0'"):
        change(uri, {"delta.checkpointInterval": "0"})


def test_properties_of_others_stay_whatever_they_hold(tmp_path: Path) -> None:
    odd = {
        "delta.tuneFileSizesForRewrites": "?",
        "DELTA.appendonly": "true",
        "delta.isolationLevel": "SnapshotIsolation",
    }
    TableBuilder(tmp_path / "t").create({"id": "long"}, properties=odd)
    change(str(tmp_path / "t"), {"my.own": "1"}).commit()
    assert open_snapshot(str(tmp_path / "t")).metadata.configuration == {**odd, "my.own": "1"}


# --- isolation level -----------------------------------------------------------------------


@pytest.mark.parametrize("level", ["WriteSerializable", "SnapshotIsolation", "none"])
def test_isolation_level_that_spark_does_not_let_be_set_is_rejected(tmp_path: Path, level: str) -> None:
    """delta-spark 4.4 lets delta.isolationLevel be set to Serializable alone ("must be Serializable")."""
    with pytest.raises(InvalidArgumentError, match=r"delta\.isolationLevel"):
        created(tmp_path / "n", {"delta.isolationLevel": level})
    uri = created(tmp_path / "t", {"delta.isolationLevel": "Serializable"})
    with pytest.raises(InvalidArgumentError, match=r"delta\.isolationLevel"):
        change(uri, {"delta.isolationLevel": level})


@pytest.mark.parametrize("level", IsolationLevel)
@pytest.mark.parametrize("spelled", [str.lower, str])
def test_isolation_level_of_a_table_counts_in_any_case(
    tmp_path: Path, level: IsolationLevel, spelled: type[str]
) -> None:
    """delta-spark reads all three names, whatever their case."""
    TableBuilder(tmp_path / "t").create({"id": "long"}, properties={"delta.isolationLevel": spelled(level.value)})
    snapshot = open_snapshot(str(tmp_path / "t"))
    assert Transaction(snapshot.context, snapshot, "DELETE").isolation is level


def test_feature_is_requested_by_supported_or_enabled_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"delta\.feature\.deletionVectors is 'false'"):
        created(tmp_path / "t", {"delta.feature.deletionVectors": "false"})
    assert not (tmp_path / "t").exists()


def test_interval_of_another_writer_that_is_none_costs_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit has landed: what follows it is notified of by the log alone."""
    TableBuilder(tmp_path / "t").create({"id": "long"}, properties={"delta.checkpointInterval": "often"})
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}), mode="append")
    assert open_snapshot(str(tmp_path / "t")).version == 1
    assert "delta.checkpointInterval" in caplog.text
