"""The commands that wait for commits: follow, changes --follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from delta_core import DeltaTable
from tests.operations.row_tables import FEED, made


def rows(result: Any) -> list[Any]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.lines]


def test_follow_prints_the_rows_and_keeps_its_position(run: Any, tmp_path: Path) -> None:
    table, file = made(tmp_path), tmp_path / "position"
    uri = table.table_uri
    first = rows(run("follow", uri, "--once", "--position-file", file, "--columns", "id", "--where", "id < 2"))
    assert first == [{"id": 0}, {"id": 1}]
    run("write", uri, "--mode", "append", written(tmp_path, {"id": 1, "p": "c", "x": 0.5}))
    for expected in ([{"id": 1}], [], []):
        again = rows(run("follow", uri, "--once", "--position-file", file, "--columns", "id", "--where", "id < 2"))
        assert again == expected


def written(folder: Path, row: dict[str, Any]) -> Path:
    file = folder / "row.json"
    file.write_text(json.dumps(row) + "\n")
    return file


def test_follow_stops_at_a_commit_that_deletes_rows(run: Any, tmp_path: Path) -> None:
    table = made(tmp_path)
    table.delete("id = 3")
    stopped = run("follow", table.table_uri, "--start", 1, "--once")
    assert stopped.code == 1
    assert "skip_change_commits" in stopped.err
    assert rows(run("follow", table.table_uri, "--start", 1, "--once", "--skip-change-commits")) == []
    assert run("follow", table.table_uri, "--start", "first").code == 2


def test_changes_follows_the_feed_until_it_is_idle(run: Any, tmp_path: Path) -> None:
    table = made(tmp_path, FEED)
    DeltaTable(table.table_uri).delete("id = 3")
    found = rows(run("changes", table.table_uri, "--start", 1, "--follow", "--timeout", 0))
    assert [(r["id"], r["_change_type"]) for r in found] == [(3, "delete")]
    misused = run("changes", table.table_uri, "--follow", "--end", 3)
    assert misused.code == 2
    assert "--end" in misused.err
