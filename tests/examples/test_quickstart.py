"""The README's first command shows the right rows."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pytest

from delta_core import DeltaTable

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "quickstart.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart_hides_the_deleted_row_and_plans_one_file() -> None:
    out = _run()
    assert "version 2, 2 files" in out
    every, warm = out.split("warm on Tuesday, from 1 of 2 files:")
    assert every.count("{'city'") == 4
    assert "'celsius': 21.0" not in every
    assert "version 0 had 3 rows" in warm
    assert [line.split(": ")[1] for line in out.splitlines() if line.startswith("  version")] == [
        "DELETE", "WRITE", "CREATE TABLE",
    ]  # fmt: skip


def test_commits_of_the_quickstart_are_found_by_the_times_that_its_history_tells(tmp_path: Path) -> None:
    _run(str(tmp_path))
    table = DeltaTable(tmp_path / "weather")
    for commit in table.history():
        moment = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
        assert table.snapshot(timestamp=moment).version == commit["version"]


@pytest.mark.peer
def test_quickstart_table_reads_the_same_through_a_peer(tmp_path: Path) -> None:
    _run(str(tmp_path))
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "weather"))
    cities = query.execute("select city, celsius from t").read_all().column(0).to_pylist()
    assert sorted(str(c) for c in cities) == ["Lima", "Oslo", "Oslo", "Rome"]
