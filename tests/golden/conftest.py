"""The conformance corpus beside the project: real tables, and the rows a reader must produce."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[3] / "shared" / "golden"
#: Of the tables that a reader may read or reject, those whose log is read here: a rejection is a step back.
OPENED = {
    *(f"golden/canonicalized-paths-{name}" for name in ("normal-b", "special-a", "special-b")),
    "trino/databricks73__person",
    "trino/databricks73__person_test_pruning",
    "trino/databricks73__person_without_checkpoints",
    "trino/databricks73__person_without_last_checkpoint",
    "trino/databricks73__person_without_old_jsons",
    "trino/databricks73__pruning__invalid_log",
}


def records() -> list[dict[str, Any]]:
    manifest = ROOT / "manifest.json"
    return json.loads(manifest.read_text())["tables"] if manifest.exists() else []


def is_opened(record: dict[str, Any]) -> bool:
    """Whether opening the table must succeed."""
    return record["expect"]["read"] in ("rows", "state-only") or record["id"] in OPENED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hand each test the records its marker ``corpus(select)`` picks; one skipped case if there is no corpus."""
    marker = metafunc.definition.get_closest_marker("corpus")
    if marker is None:
        return
    cases = [case for record in records() for case in marker.args[0](record)]
    if not cases:
        reason = pytest.mark.skip(reason=f"no conformance corpus at {ROOT}")
        metafunc.parametrize("case", [pytest.param(None, marks=reason)])
        return
    metafunc.parametrize("case", cases, ids=["@".join(str(part) for part in (c[0]["id"], *c[1:])) for c in cases])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "corpus(select): function from a manifest record to cases (record, ...)")


class Corpus:
    """Where tables lie, and how the manifest's hash of rows is computed."""

    root = ROOT

    def __init__(self) -> None:
        spec = importlib.util.spec_from_file_location("row_hash", ROOT / "row_hash.py")
        assert spec is not None
        assert spec.loader is not None
        self._hash: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._hash)
        self._proven: dict[str, pa.Table] = {}

    def uri(self, record: dict[str, Any]) -> str:
        return str(ROOT / "tables" / record["id"])

    def rows(self, table: pa.Table, schema: dict[str, Any]) -> list[str]:
        return self._hash.rows(table, schema)

    def digest(self, table: pa.Table, schema: dict[str, Any]) -> str:
        return self._hash.digest(self.rows(table, schema))

    def matches(self, table: pa.Table, schema: dict[str, Any], expected: dict[str, Any]) -> bool:
        """Whether rows have the recorded digest; if that takes long, first whether they equal the recorded rows."""
        if table.num_rows * table.num_columns > 5_000 and "parquet" in expected:
            known = pq.read_table(ROOT / expected["parquet"])
        else:
            known = self._proven.get(expected["hash"])
        if known is not None and _are_equal(table, known):
            return True
        same = self.digest(table, schema) == expected["hash"]
        if same and table.num_rows > 100_000:
            self._proven[expected["hash"]] = table
        return same


def _are_equal(left: pa.Table, right: pa.Table) -> bool:
    """Whether tables of one schema have the same rows in any order; False if that cannot be determined by sorting."""
    if left.schema != right.schema:
        return False
    keys = [(name, "ascending") for name in left.column_names]
    try:
        return left.sort_by(keys).equals(right.sort_by(keys))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus()
