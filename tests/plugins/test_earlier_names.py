"""Earlier names of the plugin API, which plugins in use still have."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core import DeltaTable
from delta_core.api import TableFeature
from delta_core.errors import UnsupportedOperationError
from delta_core.testing.table_builder import TableBuilder


def test_operations_of_a_feature_are_its_operations() -> None:
    feature = TableFeature("acme.origin", "writer", operations={"new": "acme:new"}, verbs={"old": "acme:old"})
    assert dict(feature.operations) == {"new": "acme:new", "old": "acme:old"}


def test_operation_of_a_table_returns_the_operation(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["checkConstraints"]).append([{"id": 1}])
    table = DeltaTable(made.uri)
    assert table.verb("add_constraint")({"positive": "id > 0"}) == 2
    with pytest.raises(UnsupportedOperationError, match="no operation 'nope'"):
        table.verb("nope")


def test_others_of_a_snapshot_returns_its_custom_actions(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["rowIds", "domainMetadata"])
    snapshot = DeltaTable(made.uri).snapshot()
    assert snapshot.others("rowIdHighWaterMark") == snapshot.custom_actions("rowIdHighWaterMark") == []
