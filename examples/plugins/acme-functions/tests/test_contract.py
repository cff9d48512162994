"""The functions pass their contract, and are of use in predicates."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.testing.feature_contract import ExampleTable, FeatureContract

NAME = "acme.functions"


class TestFunctions(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(pa.table({"id": [1, 2, 3], "name": ["ä", "", None]}), select="id > 1")]

    def calls(self) -> list[str]:
        return ["acme_functions_initial(name) = 'x'"]


def test_predicate_calls_the_function(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"name": ["Öland", "oslo", None]}))
    table = DeltaTable(str(tmp_path))
    table.alter.add_feature(NAME, allow_protocol_versions_increase=True)
    found = table.scan(predicate="acme_functions_initial(name) = 'Ö'").to_table()
    assert found["name"].to_pylist() == ["Öland"]
