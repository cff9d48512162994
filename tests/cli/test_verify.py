"""The commands verify and repair: exit codes, and what they print."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    for i in range(3):
        write_deltalake(tmp_path / "t", pa.table({"id": [i]}), mode="append")
    return tmp_path / "t"


@pytest.mark.parametrize("options", [[], ["--deep"], ["--rows"], ["--log-only"]])
def test_sound_table_exits_with_0(run: Any, uri: Path, options: list[str]) -> None:
    found = run("verify", uri, *options)
    assert found.code == 0
    assert "nothing found" in found.out


def test_findings_exit_with_1(run: Any, uri: Path) -> None:
    next(uri.glob("*.parquet")).unlink()
    assert run("verify", uri).code == 1
    assert run("verify", uri, "--log-only").code == 0
    found = run("verify", uri, "--json")
    assert (found.code, found.json["ok"]) == (1, False)
    assert [f["rule"] for f in found.json["findings"]] == ["data-file-missing"]


def test_table_that_can_not_be_read_exits_with_2_and_its_log_is_verified(run: Any, uri: Path) -> None:
    path = uri / "_delta_log" / f"{1:020}.json"
    path.write_text(path.read_text()[:-20])
    found = run("verify", uri, "--json")
    assert found.code == 2
    assert {f["rule"] for f in found.json["findings"]} == {"commit-unreadable", "version-unreadable"}


def test_log_only_excludes_deep(run: Any, uri: Path) -> None:
    assert run("verify", uri, "--log-only", "--deep").code == 2


def test_repair_shows_steps_and_requires_a_confirmation_to_remove_entries(
    run: Any, uri: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = next(uri.glob("*.parquet"))
    gone.unlink()
    planned = run("repair", uri, "--dry-run", "--json").json
    assert (planned["dry_run"], planned["files_removed"]) == (True, [gone.name])
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run("repair", uri).code == 130
    assert run("verify", uri).code == 1
    done = run("repair", uri, "--yes")
    assert done.code == 0
    assert gone.name in done.out
    assert run("verify", uri).code == 0
    assert run("repair", uri, "--json").json["steps"] == []
    assert run("repair", uri).err == "Nothing to repair.\n"


def test_repair_requires_a_confirmation_before_it_replaces_a_checkpoint(
    run: Any, uri: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaTable(uri).create_checkpoint()
    (path,) = (uri / "_delta_log").glob("*.checkpoint.parquet")
    data = path.read_bytes()[:-20]
    path.write_bytes(data)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = run("repair", uri)
    assert (refused.code, path.read_bytes()) == (130, data)
    assert "write-checkpoint" in refused.err
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run("repair", uri).code == 0
    assert run("verify", uri).code == 0
