"""The example features of strangers: installed like any distribution, and at work beside the bundled ones."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import DataFileError, UnsupportedFeatureError
from delta_core.plugins import PluginRegistry
from delta_core.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

CHECKSUM, TTL = "example.rowChecksum", "example.rowTtl"
DISTRIBUTIONS = {CHECKSUM: "delta-row-checksum", TTL: "delta-row-ttl"}
NOW = datetime(2024, 3, 1, tzinfo=UTC)
IDS = [1, 2, 3, 3]
#: Spark's xxhash64 of these longs.
SUMS = [-7001672635703045582, -3341702809300393011, 3188756510806108107, 3188756510806108107]


@pytest.mark.parametrize("feature", DISTRIBUTIONS)
def test_example_is_installed_as_a_distribution_of_its_own(feature: str) -> None:
    name = DISTRIBUTIONS[feature]
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        pytest.fail(f"{name} is not installed: python -m pip install ./examples/plugins/{name}")
    assert PluginRegistry().source(feature) == f"{name} {found.version}"


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Four rows; the last is too old. Both strangers' features, mapped columns, a vector on the first row."""
    reader = [CHECKSUM, TTL, "columnMapping", "deletionVectors"]
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader,
        "writerFeatures": [*reader, "domainMetadata"],
    }  # fmt: skip
    covered = {"columns": [["id"]], "hiddenColumn": "_sum"}
    domain = {"domain": CHECKSUM, "configuration": json.dumps(covered), "removed": False}
    properties = {"example.ttl.column": "born", "example.ttl.interval": "1 week"}
    built = TableBuilder(tmp_path / "t").create(
        {"id": "long", "born": "timestamp"}, protocol=protocol, properties=properties, column_mapping="name",
        actions=[{"domainMetadata": domain}],
    )  # fmt: skip
    return append(built).delete_rows(lambda row: row["id"] == 1)


def append(table: TableBuilder, sums: list[int] = SUMS) -> TableBuilder:
    rows = pa.table({
        "id": pa.array(IDS, pa.int64()),
        "born": pa.array([NOW, NOW, None, NOW - timedelta(days=8)], pa.timestamp("us", "UTC")), "_sum": sums,
    })  # fmt: skip
    return table.append(rows, rowChecksumFunction="xxhash64")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp()) * 10**9)


def ids(table: TableBuilder, **options: Any) -> list[int]:
    found: list[int] = open_snapshot(table.uri).scan(**options).to_table().column("id").to_pylist()
    return found


def test_rules_of_strangers_and_bundled_features_hold_together(table: TableBuilder) -> None:
    assert ids(table) == [2, 3]
    assert ids(table, predicate="id > 2") == [3]
    assert open_snapshot(table.uri).scan().count() == 2


def test_hidden_row_is_verified_and_a_dropped_one_is_not(table: TableBuilder) -> None:
    append(table, [0, *SUMS[1:]]).delete_rows(lambda row: row["id"] == 1)
    assert ids(table) == [2, 3, 2, 3]
    append(table, [*SUMS[:3], 0])
    with pytest.raises(DataFileError, match="row checksum"):
        ids(table, predicate="id = 2")


@pytest.mark.parametrize("feature", DISTRIBUTIONS)
def test_without_its_package_the_table_is_refused_by_the_features_name(table: TableBuilder, feature: str) -> None:
    class Without(PluginRegistry):
        def load(self, name: str) -> Any:
            return None if name == feature else super().load(name)

    with pytest.raises(UnsupportedFeatureError, match=feature):
        open_snapshot(table.uri, plugins=Without())
