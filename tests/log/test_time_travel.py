"""Which version a point in time means: in-commit timestamps, else file times made monotone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_core.errors import DeltaError, VersionNotFoundError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

ICT = {"delta.enableInCommitTimestamps": "true"}


def with_file_times(path: Path, times: list[int]) -> TableBuilder:
    table = TableBuilder(path).create({"id": "long"}, mtime_ms=times[0])
    for version, time in enumerate(times[1:], 1):
        table.append({"id": [version]}, commit={"mtime_ms": time})
    return table


def times(path: Path) -> list[int]:
    return [open_snapshot(path, v).timestamp_ms for v in range(open_snapshot(path).version + 1)]


def test_file_times_are_made_monotone(tmp_path: Path) -> None:
    with_file_times(tmp_path, [5000, 9000, 7000, 7500, 20000])
    snapshot = open_snapshot(tmp_path)
    assert times(tmp_path) == [5000, 9000, 9001, 9002, 20000]
    assert [snapshot.version_at(t) for t in (5000, 8999, 9000, 9001, 9002, 19999, 20000)] == [0, 0, 1, 2, 3, 3, 4]


def test_time_before_the_first_commit_is_rejected(tmp_path: Path) -> None:
    with_file_times(tmp_path, [5000, 9000])
    with pytest.raises(VersionNotFoundError):
        open_snapshot(tmp_path).version_at(4999)


def test_time_after_the_last_commit_returns_the_latest(tmp_path: Path) -> None:
    with_file_times(tmp_path, [5000, 9000])
    assert open_snapshot(tmp_path).version_at(10**13) == 1


def test_in_commit_timestamps_win_over_file_times(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, start_ms=1000, step_ms=1000).create(
        {"id": "long"}, features=["inCommitTimestamp"], properties=ICT, mtime_ms=900_000
    )
    table.append({"id": [1]}, commit={"mtime_ms": 900_000}).append({"id": [2]}, commit={"mtime_ms": 1})
    snapshot = open_snapshot(tmp_path)
    assert times(tmp_path) == [1000, 2000, 3000]
    assert [snapshot.version_at(t) for t in (1000, 1999, 2000, 3000)] == [0, 0, 1, 2]
    assert snapshot.timestamp_ms == 3000
    assert open_snapshot(tmp_path, timestamp="1970-01-01T00:00:02.500Z").version == 1


def enabled_late(path: Path) -> TableBuilder:
    table = TableBuilder(path, start_ms=10_000, step_ms=1000).create({"id": "long"})
    table.append({"id": [1]}).append({"id": [2]})
    table.alter(
        features=["inCommitTimestamp"],
        properties={
            **ICT,
            "delta.inCommitTimestampEnablementVersion": "3",
            "delta.inCommitTimestampEnablementTimestamp": "13000",
        },
    )
    return table.append({"id": [3]}, commit={"mtime_ms": 99}).append({"id": [4]}, commit={"mtime_ms": 99})


def test_enablement_version_separates_file_times_from_in_commit_timestamps(tmp_path: Path) -> None:
    enabled_late(tmp_path)
    snapshot = open_snapshot(tmp_path)
    assert times(tmp_path) == [10000, 11000, 12000, 13000, 14000, 15000]
    assert [snapshot.version_at(t) for t in (10000, 12999, 13000, 14500, 15000)] == [0, 2, 3, 4, 5]


def test_timestamp_of_a_version_below_enablement_is_its_file_time(tmp_path: Path) -> None:
    enabled_late(tmp_path)
    assert open_snapshot(tmp_path, 1).timestamp_ms == 11000
    assert open_snapshot(tmp_path, 4).timestamp_ms == 14000


def test_time_of_a_version_whose_state_was_cleaned_up_is_rejected(tmp_path: Path) -> None:
    table = with_file_times(tmp_path, [1000, 2000, 3000, 4000])
    table.checkpoint(version=2).cleanup_before(2)
    snapshot = open_snapshot(tmp_path)
    assert snapshot.version_at(3000) == 2
    with pytest.raises(
        DeltaError, match=r"before 1970-01-01T00:00:02.500Z: its first commit, version 2, is of .*03.000Z"
    ):
        snapshot.version_at(2500)
    with pytest.raises(DeltaError, match=f"before {-(10**17)} ms since the epoch"):
        snapshot.version_at(-(10**17))


def test_history_is_newest_first_and_limited(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    for number in range(4):
        table.append({"id": [number]}, commit={"info": {"userMetadata": f"n{number}"}})
    snapshot = open_snapshot(tmp_path)
    entries = snapshot.history(2)
    assert [(e["version"], e["userMetadata"]) for e in entries] == [(4, "n3"), (3, "n2")]
    assert snapshot.history()[-1]["operation"] == "CREATE TABLE"
    assert [e["version"] for e in open_snapshot(tmp_path, 2).history()] == [2, 1, 0]


def test_history_reaches_below_a_checkpoint_and_stops_where_commits_are_gone(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    for number in range(6):
        table.append({"id": [number]})
    table.checkpoint(version=4)
    assert [e["version"] for e in open_snapshot(tmp_path).history()] == [6, 5, 4, 3, 2, 1, 0]
    table.cleanup_before(4)
    assert [e["version"] for e in open_snapshot(tmp_path).history()] == [6, 5, 4]


def test_commit_without_commit_info_has_history_and_time(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    actions = table.add_actions({"id": [1]})
    table.commit(*actions, text=json.dumps(actions[0]), mtime_ms=1_700_000_009_000)
    newest = open_snapshot(tmp_path).history()[0]
    assert (newest["version"], newest["timestamp"]) == (1, 1_700_000_009_000)
