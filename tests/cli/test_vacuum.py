"""The command vacuum."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake


@pytest.fixture
def uri(tmp_path: Path) -> str:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    for name in ("a", "b"):
        (tmp_path / "t" / name).write_text("123")
        os.utime(tmp_path / "t" / name, (0, 0))
    return str(tmp_path / "t")


def test_dry_run_lists_files_and_deletes_none(run: Any, uri: str) -> None:
    assert sorted(run("vacuum", uri, "--dry-run").out.split()) == ["a", "b"]
    found = run("vacuum", uri, "--dry-run", "--json").json
    assert sorted(found.pop("paths")) == ["a", "b"]
    assert found == {"version": 0, "files": 2, "size_bytes": 6}
    nothing = run("vacuum", uri, "--dry-run", "--lite")
    assert (nothing.out, nothing.err.strip()) == ("", "0 files (0 B) would be deleted.")


def test_files_are_deleted_after_a_question(run: Any, uri: str) -> None:
    asked = run("vacuum", uri)
    assert asked.code != 0
    assert "Delete 2 files (6 B)" in asked.err
    assert (Path(uri) / "a").exists()
    assert run("vacuum", uri, "--yes", "--json").json == {"version": 2, "files": 2, "size_bytes": 6}
    assert not (Path(uri) / "a").exists()
    assert DeltaTable(uri).to_pyarrow_table().to_pylist() == [{"id": 1}]


def test_plan_and_inventory_are_files(run: Any, uri: str, tmp_path: Path) -> None:
    inventory, plan = tmp_path / "i.parquet", tmp_path / "plan"
    pq.write_table(pa.table({"path": ["a"], "size": [3], "modification_time": [0]}), inventory)
    assert run("vacuum", uri, "--dry-run", "--plan", plan, "--inventory", inventory).out == "a\n"
    assert run("vacuum", uri, "--plan", plan, "--yes").code == 0
    assert [(Path(uri) / n).exists() for n in "ab"] == [False, True]


def test_short_retention_needs_an_option(run: Any, uri: str) -> None:
    rejected = run("vacuum", uri, "--retention-hours", 1, "--dry-run")
    assert rejected.code == 2
    assert "168" in rejected.err
    assert "--no-retention-check" in rejected.err
    assert run("vacuum", uri, "--retention-hours", 1, "--no-retention-check", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("answer", "code", "is_deleted"), [("", 2, False), ("n\n", 130, False), ("\n", 130, False), ("y\n", 0, True)]
)
def test_question_is_answered_by_a_line_and_its_absence_names_the_option(
    run: Any, uri: str, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, is_deleted: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    done = run("vacuum", uri)
    assert (done.code, "Pass --yes" in done.err) == (code, not answer)
    assert (run("vacuum", uri, "--dry-run", "--json").json["files"] == 0) is is_deleted
