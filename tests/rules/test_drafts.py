"""Names of drafts and previews, and other writers' habits: read under what they mean, kept as written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import DeltaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder


def listed(*names: str, reader: bool = True) -> dict[str, Any]:
    if reader:
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(names),
            "writerFeatures": list(names),
        }
    return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(names)}


@pytest.mark.parametrize(
    "name", ["typeWidening-preview", "variantType-preview", "variantShredding-preview", "vacuumProtocolCheck"]
)
def test_preview_names_of_reader_features_are_read_and_kept(tmp_path: Path, name: str) -> None:
    features = [name, *(["variantType"] if name.startswith("variantShredding") else [])]
    table = TableBuilder(tmp_path).create({"a": "long"}, protocol=listed(*features)).append([{"a": 1}])
    snapshot = open_snapshot(table.uri)
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    assert snapshot.protocol.reader_features == tuple(features)


@pytest.mark.parametrize("kind", ["timestampNTZ", "timestamp_ntz"])
def test_type_name_of_the_draft_means_the_zone_less_timestamp(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path).create({"a": "timestamp_ntz"}, features=["timestampNtz"])
    text = table.state.metadata["schemaString"].replace("timestamp_ntz", kind)
    table.commit({"metaData": {**table.state.metadata, "schemaString": text}})
    assert str(open_snapshot(table.uri).scan().schema.field("a").type) == "timestamp[us]"
    assert open_snapshot(table.uri).metadata.schema_string == text


def test_row_ids_of_the_draft_are_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(
        {"a": "long"}, protocol=listed("rowIds", reader=False), properties={"delta.enableRowIds": "true"}
    )
    table.commit(*table.add_actions({"a": [7, 8]}, baseRowId=10), {"rowIdHighWaterMark": {"highWaterMark": 11}})
    snapshot = open_snapshot(table.uri)
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    assert sorted(snapshot.scan(metadata=("_row_id",)).to_table().column("_row_id").to_pylist()) == [10, 11]


def test_map_typed_domain_configuration_becomes_its_text(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["domainMetadata"])
    table.commit({"domainMetadata": {"domain": "d", "configuration": {"k": "v"}, "removed": False}})
    assert json.loads(open_snapshot(table.uri).domains()["d"]) == {"k": "v"}


@pytest.mark.parametrize(
    "columns", [[["a"], ["s", "b"]], ["a", "s.b"], [{"physicalName": ["a"]}, {"physicalName": ["s", "b"]}]], ids=str
)
def test_every_form_of_clustering_columns_leaves_the_table_readable(tmp_path: Path, columns: Any) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["clustering", "domainMetadata"])
    text = json.dumps({"clusteringColumns": columns, "domainName": "delta.clustering"})
    table.commit({"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}})
    table.append([{"a": 1}], clusteringProvider="liquid")
    snapshot = open_snapshot(table.uri)
    assert snapshot.domains()["delta.clustering"] == text
    assert_same_rows(snapshot.scan().to_table(), table.expected())


def test_external_plugins_checkpoint_with_old_field_names_still_returns_the_rows(tmp_path: Path) -> None:
    """The appendix of the protocol's text prints ``nullCounts``: such statistics are unknown, not wrong."""
    table = TableBuilder(tmp_path).create({"a": "long"})
    stats = json.dumps({"numRecords": 2, "minValues": {"a": 1}, "maxValues": {"a": 2}, "nullCounts": {"a": 0}})
    table.append([{"a": 1}, {"a": 2}], statistics=stats)
    snapshot = open_snapshot(table.uri)
    assert snapshot.scan(predicate="a is null").to_table().num_rows == 0
    assert snapshot.scan(predicate="a = 2").to_table().num_rows == 1


def test_gap_in_the_log_is_reported_in_words(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}).append([{"a": 1}]).append([{"a": 2}])
    table.drop(f"_delta_log/{1:020d}.json")
    with pytest.raises(DeltaError) as caught:
        open_snapshot(table.uri)
    text = str(caught.value)
    assert "version 1" in text
    assert "{" not in text
    assert "ParsedLogPath" not in text


@pytest.mark.parametrize("checksum", ["right", "wrong", "torn", "for another version"])
def test_version_checksums_never_change_what_is_read(tmp_path: Path, checksum: str) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}).append([{"a": 1}]).append([{"a": 2}])
    if checksum == "right":
        table.checksum()
    elif checksum == "wrong":
        table.checksum(numFiles=77, tableSizeBytes=1)
    elif checksum == "torn":
        table.write_log(f"{2:020d}.crc", '{"tableSize')
    else:
        table.checksum(1)
    assert_same_rows(open_snapshot(table.uri).scan().to_table(), table.expected())


@pytest.mark.parametrize("value", ["a", "`a`", "`a.b`,c", "s.`x.y`, A", "", " a , s.b "], ids=repr)
def test_list_of_statistics_columns_never_hinders_reading(tmp_path: Path, value: str) -> None:
    table = (
        TableBuilder(tmp_path)
        .create(
            {"a": "long"},
            properties={"delta.dataSkippingStatsColumns": value, "delta.dataSkippingStringPrefixLength": "5"},
        )
        .append([{"a": 1}])
    )
    assert open_snapshot(table.uri).scan(predicate="a = 1").to_table().num_rows == 1


def test_any_property_is_kept_as_written(tmp_path: Path) -> None:
    properties = {
        "delta.parquet.compression.codec": "zstd",
        "delta.enableTypeWidening": "true",
        "mine": "ü = 1",
        "delta.unknown": "x",
        "delta.enableInCommitTimestamps": "TRUE",
    }
    table = TableBuilder(tmp_path).create({"a": "long"}, properties=properties).append([{"a": 1}])
    snapshot = open_snapshot(table.uri)
    assert snapshot.metadata.configuration == properties
    assert snapshot.scan().to_table().num_rows == 1
