"""Tests over every recorded table: the corpus of this project, and the one beside it if that is present."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.corpus.records import OWN, path_of, records, root_of
from tests.corpus.rows import canonical_rows, digest

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


def is_opened(record: dict[str, Any]) -> bool:
    """Whether opening the table must succeed."""
    return record["expect"]["read"] in ("rows", "state-only") or record["id"] in OPENED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hand each test the records its marker ``corpus(select)`` picks."""
    marker = metafunc.definition.get_closest_marker("corpus")
    if marker is None:
        return
    cases = [case for record in records() for case in marker.args[0](record)]
    if not cases:
        reason = pytest.mark.skip(reason="no table for this test: the corpus of another project is not present")
        if not records():
            reason = pytest.mark.skip(reason=f"no manifest in {OWN}: a package without its tables?")
        metafunc.parametrize("case", [pytest.param(None, marks=reason)])
        return
    metafunc.parametrize("case", cases, ids=["@".join(str(part) for part in (c[0]["id"], *c[1:])) for c in cases])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "corpus(select): function from a manifest record to cases (record, ...)")


class Corpus:
    """Where tables lie, and whether rows are those that the manifest records."""

    def __init__(self) -> None:
        self._proven: dict[str, pa.Table] = {}

    def path(self, record: dict[str, Any]) -> Path:
        return path_of(record)

    def uri(self, record: dict[str, Any]) -> str:
        return str(path_of(record))

    def file(self, record: dict[str, Any], name: str) -> Path:
        """Return a file that a record names."""
        return root_of(record) / name

    def digest(self, table: pa.Table, schema: dict[str, Any]) -> str:
        return digest(canonical_rows(table, schema))

    def assert_matches(
        self, record: dict[str, Any], table: pa.Table, schema: dict[str, Any], expected: dict[str, Any]
    ) -> None:
        """Compare rows with what is recorded: the rows, or their digest; in large tables equal rows need no digest."""
        if "lines" in expected:
            recorded = self.file(record, expected["lines"]).read_text(encoding="utf-8").splitlines()
            assert canonical_rows(table, schema) == recorded
        if table.num_rows * table.num_columns > 5_000 and "parquet" in expected:
            known = pq.read_table(self.file(record, expected["parquet"]))
        else:
            known = self._proven.get(expected["hash"])
        if known is not None and _are_equal(table, known):
            return
        assert self.digest(table, schema) == expected["hash"]
        if table.num_rows > 100_000:
            self._proven[expected["hash"]] = table


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
