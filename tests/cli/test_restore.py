"""The command restore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake


@pytest.fixture
def uri(tmp_path: Path) -> str:
    for i in range(3):
        write_deltalake(tmp_path / "t", pa.table({"id": [i]}), mode="append")
    return str(tmp_path / "t")


def test_restore_commits_an_older_version_again(run: Any, uri: str) -> None:
    planned = run("restore", uri, "--to-version", 0, "--dry-run", "--json").json
    assert planned == {"version": 2, "files_removed": 2, "files_restored": 0}
    assert run("restore", uri, "--to-version", 0, "--json").json == {**planned, "version": 3}
    assert DeltaTable(uri).to_pyarrow_table().to_pylist() == [{"id": 0}]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "either --to-version or --to-timestamp"),
        (["--to-version", 1, "--to-timestamp", "2024-01-01"], 2, "either --to-version or --to-timestamp"),
        (["--to-version", 9], 1, "the latest version is 2"),
        (["--to-timestamp", "2000-01-01"], 1, "2000"),
    ],
)
def test_version_that_can_not_be_restored_is_an_error(
    run: Any, uri: str, arguments: list[Any], code: int, text: str
) -> None:
    found = run("restore", uri, *arguments)
    assert (found.code, DeltaTable(uri).version()) == (code, 2)
    assert text in found.err
