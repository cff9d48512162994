"""The engine passes its contract, and reads tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from acme_engine import engine

from delta_core import DeltaTable, write_deltalake
from delta_core.testing.engine_contract import EngineContract, MakeEngine


class TestEngine(EngineContract):
    @pytest.fixture
    def make_engine(self) -> MakeEngine:
        return engine


def test_table_is_read_with_the_engine(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}))
    table = DeltaTable(str(tmp_path), engine="acme_engine")
    assert table.scan(["name"], predicate="id > 1").to_table().to_pydict() == {"name": [None, "c"]}
