"""Tables that several tests of the public API read."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.testing.table_builder import TableBuilder


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """Return a partitioned table of three versions: created, then two appends."""
    schema = {"id": "long", "kind": "string", "amount": "double"}
    made = TableBuilder(tmp_path / "sales").create(schema, partition_by=["kind"])
    made.append([{"id": 1, "kind": "a", "amount": 1.5}, {"id": 2, "kind": "b", "amount": None}])
    return made.append([{"id": 3, "kind": None, "amount": 2.5}, {"id": 4, "kind": "a", "amount": 4.0}])


@pytest.fixture
def vectors(tmp_path: Path) -> TableBuilder:
    """Return a table with deleted rows in its files."""
    made = TableBuilder(tmp_path / "vectors").create({"id": "long", "name": "string"}, features=["deletionVectors"])
    made.append([{"id": i, "name": f"n{i}"} for i in range(6)])
    return made.delete_rows(lambda row: row["id"] in (1, 4))
