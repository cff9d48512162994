"""Feature inCommitTimestamp, written: times that only grow, also if races are lost and clocks go back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from delta_core.errors import UnsupportedFeatureError
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.snapshot import open_snapshot
from tests.commit.conftest import added
from tests.plugins.written import append, begin, create

FIELDS = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]
ON = {"delta.enableInCommitTimestamps": "true"}
VERSION, TIME = (f"delta.inCommitTimestampEnablement{what}" for what in ("Version", "Timestamp"))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return create(tmp_path / "t", FIELDS, properties=ON)


def first_line(uri: str, version: int) -> dict[str, Any]:
    with (Path(uri) / "_delta_log" / f"{version:020d}.json").open() as f:
        return json.loads(f.readline())  # type: ignore[no-any-return]


def time_of(uri: str, version: int) -> int:
    found = first_line(uri, version)["commitInfo"]["inCommitTimestamp"]
    assert isinstance(found, int)
    return found


def commit(uri: str, path: str, now_ms: int) -> CommitResult:
    transaction = begin(uri)
    transaction.add_files(added(path, None))
    return transaction.commit(clock=lambda: now_ms)


def set_properties(uri: str, properties: Mapping[str, str], now_ms: int | None = None) -> None:
    transaction = begin(uri, "SET TBLPROPERTIES")
    metadata = transaction.table.metadata
    changed = replace(metadata, configuration={**metadata.configuration, **properties})
    transaction.set_metadata(changed, allow_unknown=True)
    transaction.commit(clock=None if now_ms is None else lambda: now_ms)


def configuration(uri: str) -> Mapping[str, str]:
    return open_snapshot(uri).metadata.configuration


def test_first_line_of_every_commit_has_its_time(uri: str) -> None:
    append(uri, {"id": [1], "kind": ["a"]})
    assert time_of(uri, 0) <= time_of(uri, 1)
    snapshot = open_snapshot(uri)
    assert snapshot.timestamp_ms == time_of(uri, 1)
    assert snapshot.version_at(time_of(uri, 1)) == 1


def test_new_table_does_not_state_since_when(uri: str) -> None:
    assert not {VERSION, TIME} & set(configuration(uri))


def test_clock_that_is_still_or_goes_back_makes_times_that_grow(uri: str) -> None:
    start = time_of(uri, 0) + 1_000_000
    for number, now in enumerate((start, start, start - 50_000, start + 10)):
        commit(uri, f"f{number}", now)
    assert [time_of(uri, v) for v in range(1, 5)] == [start, start + 1, start + 2, start + 10]


def test_loser_of_a_race_is_later_than_the_winner(uri: str) -> None:
    now = time_of(uri, 0) + 1_000_000
    slow = begin(uri)
    slow.add_files(added("slow", None))
    commit(uri, "fast", now + 500)
    commit(uri, "faster", now + 600)
    result = slow.commit(clock=lambda: now)
    assert (result.version, time_of(uri, 3)) == (3, now + 601)
    assert result.snapshot.commit_timestamp_ms == now + 601


def test_own_snapshot_goes_on_without_reading_its_commit_again(uri: str) -> None:
    now = time_of(uri, 0) + 1_000_000
    first = commit(uri, "one", now)
    second = Transaction(first.snapshot.context, first.snapshot, "WRITE")
    second.add_files(added("two", None))
    second.commit(clock=lambda: now)
    assert time_of(uri, 2) == now + 1


def test_table_with_history_states_since_when(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    append(uri, {"id": [1], "kind": ["a"]})
    before = open_snapshot(uri).timestamp_ms
    set_properties(uri, ON)
    assert configuration(uri)[VERSION] == "2"
    assert configuration(uri)[TIME] == str(time_of(uri, 2))
    assert time_of(uri, 2) > before
    found = open_snapshot(uri)
    assert [found.version_at(t) for t in (before, time_of(uri, 2) - 1, time_of(uri, 2))] == [1, 1, 2]


def test_switching_on_stays_behind_a_clock_that_is_ahead(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    before = open_snapshot(uri).timestamp_ms
    set_properties(uri, ON, now_ms=before - 1_000_000)
    assert time_of(uri, 1) == before + 1
    assert configuration(uri)[TIME] == str(before + 1)


def test_switching_on_after_a_lost_race_names_the_version_that_landed(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    slow = begin(uri, "SET TBLPROPERTIES")
    metadata = slow.table.metadata
    slow.set_metadata(replace(metadata, configuration={**metadata.configuration, **ON}))
    append(uri, {"id": [1], "kind": ["a"]})
    result = slow.commit()
    assert (result.version, configuration(uri)[VERSION], configuration(uri)[TIME]) == (2, "2", str(time_of(uri, 2)))
    assert result.snapshot.metadata == open_snapshot(uri).metadata


def test_later_changes_keep_since_when(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    set_properties(uri, ON)
    since = {k: v for k, v in configuration(uri).items() if k in (VERSION, TIME)}
    transaction = begin(uri, "REPLACE TABLE")
    transaction.set_metadata(replace(transaction.table.metadata, configuration={**ON, "a": "b"}))
    transaction.commit()
    assert configuration(uri) == {**ON, "a": "b", **since}


def test_times_that_were_off_for_a_while_begin_again(uri: str) -> None:
    set_properties(uri, {"delta.enableInCommitTimestamps": "false"})
    assert "inCommitTimestamp" not in first_line(uri, 1)["commitInfo"]
    append(uri, {"id": [1], "kind": ["a"]})
    set_properties(uri, ON)
    assert configuration(uri)[VERSION] == "3"
    assert [h["version"] for h in open_snapshot(uri).history()] == [3, 2, 1, 0]


def test_preview_name_means_the_same_and_stays(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, features=["inCommitTimestamp-preview"])
    set_properties(uri, ON)
    append(uri, {"id": [1], "kind": ["a"]})
    assert time_of(uri, 2) >= time_of(uri, 1)
    assert open_snapshot(uri).protocol.writer_features == ("appendOnly", "inCommitTimestamp-preview", "invariants")


def test_properties_of_the_preview_are_rejected_for_writing(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, features=["inCommitTimestamp"])
    set_properties(uri, {"delta.enableInCommitTimestamps-preview": "true"})
    with pytest.raises(UnsupportedFeatureError, match="without -preview"):
        append(uri, {"id": [1], "kind": ["a"]})
