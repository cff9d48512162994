"""The command clone."""

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


def test_clone_makes_a_table_and_makes_it_again(run: Any, uri: str, tmp_path: Path) -> None:
    place = str(tmp_path / "c")
    planned = run("clone", uri, place, "--deep", "--dry-run", "--json").json
    size = planned.pop("bytes_copied")
    assert planned == {"files": 3, "files_copied": 3, "files_removed": 0}
    assert size > 0
    assert not Path(place).exists()
    done = run("clone", uri, place, "--deep", "--property", "delta.appendOnly=false", "--json").json
    assert done == {"version": 0, "files": 3, "files_copied": 3, "bytes_copied": size, "files_removed": 0}
    assert DeltaTable(place).metadata().configuration == {"delta.appendOnly": "false"}
    again = run("clone", uri, place, "--version", 1, "--replace", "--yes", "--json").json
    assert (again["version"], again["files"], again["files_copied"]) == (1, 2, 0)
    assert sorted(DeltaTable(place).to_pyarrow_table().column("id").to_pylist()) == [0, 1]


def test_table_that_is_there_is_replaced_only_after_a_question(run: Any, uri: str, tmp_path: Path) -> None:
    place = str(tmp_path / "c")
    run("clone", uri, place)
    there = run("clone", uri, place)
    assert (there.code, "--replace" in there.err) == (1, True)
    asked = run("clone", uri, place, "--replace")
    assert (asked.code != 0, "version 0" in asked.out + asked.err) == (True, True)
    assert DeltaTable(place).version() == 0
