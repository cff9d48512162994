"""The feature passes its contract, and files have their origin."""

from __future__ import annotations

import platform
from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.api import TableState
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state

NAME = "acme.origin"


class TestOrigin(FeatureContract):
    name = NAME

    def states(self) -> list[TableState]:
        return [table_state([self.name], registry=self.registry)]

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(pa.table({"id": [1, 2, 3]}), select="id > 1")]


def test_rows_have_the_machine_that_wrote_them(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    DeltaTable(str(tmp_path)).alter.add_feature(NAME, allow_protocol_versions_increase=True)
    write_deltalake(str(tmp_path), pa.table({"id": [2]}), mode="append")
    found = DeltaTable(str(tmp_path)).scan(metadata=["_origin"]).to_table().sort_by("id")
    assert found["_origin"].to_pylist() == [None, platform.node()]
