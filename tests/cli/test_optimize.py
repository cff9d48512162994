"""The commands optimize and purge: fewer files, the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    for first in (0, 10, 20):
        rows = pa.table({"id": range(first, first + 10), "day": [str(first // 20)] * 10})
        properties = {"delta.enableDeletionVectors": "true"} if first == 0 else None
        write_deltalake(place, rows, mode="append", partition_by=["day"], configuration=properties)
    return place


def ids(uri: str) -> list[int]:
    return sorted(DeltaTable(uri).to_pyarrow_table().column("id").to_pylist())


def test_optimize_joins_files_and_reports_the_commit(run: Any, uri: str) -> None:
    found = run("optimize", uri, "--json").json
    assert (found["version"], found["operation"]) == (3, "OPTIMIZE")
    assert int(found["metrics"]["numRemovedFiles"]) == 2
    assert len(DeltaTable(uri).file_uris()) == 2
    assert ids(uri) == list(range(30))
    again = run("optimize", uri, "--json").json
    assert again == {"version": 3, "operation": None, "metrics": {}}
    assert "No file needs to be written again" in run("optimize", uri).err


def test_dry_run_shows_the_files_and_changes_nothing(run: Any, uri: str) -> None:
    found = run("optimize", uri, "--dry-run", "--json").json
    assert (found["version"], found["files"]) == (2, 2)
    assert found["size_bytes"] > 0
    assert DeltaTable(uri).version() == 2


def test_where_selects_partitions(run: Any, uri: str) -> None:
    assert run("optimize", uri, "--where", "day = '1'", "--json").json["operation"] is None
    assert run("optimize", uri, "--where", "day = '0'", "--json").json["version"] == 3


@pytest.mark.parametrize("order", ["--z-order", "--hilbert", "--sort"])
def test_rows_are_ordered_by_the_columns_of_an_option(run: Any, uri: str, order: str) -> None:
    assert run("optimize", uri, order, "id", "--json").json["version"] == 3
    assert ids(uri) == list(range(30))


def test_two_orders_are_rejected(run: Any, uri: str) -> None:
    result = run("optimize", uri, "--sort", "id", "--hilbert", "id")
    assert result.code == 2
    assert "at most one of --z-order, --hilbert and --sort" in result.err


def test_purge_leaves_no_deletion_vector(run: Any, uri: str) -> None:
    DeltaTable(uri).delete("id = 5")
    assert run("purge", uri, "--dry-run", "--json").json["files"] == 1
    run("purge", uri)
    table = DeltaTable(uri)
    assert table.deletion_vectors().read_all().num_rows == 0
    assert ids(uri) == [i for i in range(30) if i != 5]
