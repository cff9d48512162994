"""Feature icebergWriterCompatV3: readers ignore it; if a property switches it on, tables are not written."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import UnsupportedFeatureError
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from tests.plugins.written import append, create

PROPERTY = "delta.enableIcebergWriterCompatV3"
NAMES = ["icebergWriterCompatV3", "icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata"]


class TestIcebergWriterCompatV3(FeatureContract):
    name = "icebergWriterCompatV3"
    without_rules = "write_rules rejects tables with the feature on, and has no rule for the others"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={PROPERTY: "true"})]

    def writable(self) -> list[TableState]:
        return self.states()[:1]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={PROPERTY: "true"}).is_active(self.name)
        assert not table_state([self.name], properties={PROPERTY: "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)


def test_table_where_it_is_on_is_neither_made_nor_written(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=PROPERTY):
        create(tmp_path / "t", [{"name": "id", "type": "long"}], properties={PROPERTY: "true"})
    on = {PROPERTY: "true"}
    table = TableBuilder(tmp_path / "b").create({"id": "long"}, features=NAMES, properties=on, column_mapping="id")
    with pytest.raises(UnsupportedFeatureError, match="reads such tables and does not write them"):
        append(table.uri, {"id": [1]})
    assert open_snapshot(table.uri).version == 0


def test_table_that_supports_it_without_using_it_is_written(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "b").create({"id": "long"}, features=NAMES, column_mapping="id")
    append(table.uri, {"id": [1]})
    assert open_snapshot(table.uri).scan().to_table().to_pylist() == [{"id": 1}]
