"""Versions whose timestamps do not rise with their numbers: the clocks of their writers differed, or were set."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from delta_core import open_table
from delta_core.errors import VersionNotFoundError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit import draft
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import ids_of, rows

HOUR = 3600 * 1000
#: When each version was made, in milliseconds from a point in time.
CLOCKS: dict[str, list[int]] = {
    "set back once": [0, HOUR, -HOUR, 2 * HOUR],
    "set back below all": [0, HOUR, 2 * HOUR, -9 * HOUR],
    "ahead once": [0, 400 * 24 * HOUR, HOUR, 2 * HOUR],
    "always back": [3 * HOUR, 2 * HOUR, HOUR, 0],
    "equal": [0, 0, HOUR, HOUR, 0],
    **{f"any {seed}": [Random(seed).randrange(-99, 99) * HOUR for _ in range(7)] for seed in range(3)},
}


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> list[int]:
    return CLOCKS[request.param]


def made(where: str, times_ms: Sequence[int], patch: pytest.MonkeyPatch) -> LanceDataset:
    """Return a dataset with one version for each time; version n has the ids below n."""
    at: Iterator[int] = iter(times_ms)
    with patch.context() as within:
        within.setattr(draft, "time", SimpleNamespace(time_ns=lambda: next(at) * 1_000_000))
        for i in range(len(times_ms)):
            write_lance(where, rows(i, 1), "append" if i else "create")
    return open_dataset(where)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


NOON = 1_700_000_000_000


def test_timestamp_names_the_latest_version_that_was_made_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int]
) -> None:
    where = str(tmp_path / "t")
    times = [NOON + t for t in clock]
    dataset = made(where, times, monkeypatch)
    for until in sorted({t + d for t in times for d in (-1, 0, 1)}):
        expected = max((v for v, t in enumerate(times, 1) if t <= until), default=None)
        if expected is None:
            with pytest.raises(VersionNotFoundError, match=f"earliest one that is there is of {min(times)} ms"):
                open_table(where, timestamp=moment(until))
            continue
        for found in (open_table(where, timestamp=moment(until)), dataset.checkout(moment(until))):
            assert found.version == expected
            assert ids_of(found) == list(range(expected))


def test_timestamp_names_the_version_that_pylance_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int]
) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "t")
    times = [NOON + t for t in clock]
    made(where, times, monkeypatch)
    # pylance takes local times, and the versions before them
    for until in {t + 500 for t in times}:
        theirs = lance.dataset(where, asof=moment(until).astimezone().replace(tzinfo=None))
        assert open_table(where, timestamp=moment(until)).version == theirs.version


def test_history_and_the_latest_version_go_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int]
) -> None:
    where = str(tmp_path / "t")
    times = [NOON + t for t in clock]
    dataset = made(where, times, monkeypatch)
    assert dataset.version == len(times)
    assert ids_of(dataset) == list(range(len(times)))
    entries = [(e["version"], e["timestamp"]) for e in dataset.history()]
    assert entries == [*reversed([*enumerate(times, 1)])]
    assert [e["version"] for e in dataset.history(2)] == [len(times), len(times) - 1]
    # a writer with the right clock appends after the highest number
    write_lance(where, rows(len(times), 1), "append")
    assert open_dataset(where).version == len(times) + 1


@pytest.mark.parametrize("age", [timedelta(0), timedelta(hours=1, minutes=30), timedelta(days=300)])
def test_cleanup_goes_by_the_timestamp_of_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int], age: timedelta
) -> None:
    """The latest version stays, however early its timestamp is, and so does one that is younger than the age."""
    where, now = str(tmp_path / "t"), int(time.time() * 1000)
    times = [now + t - HOUR // 2 for t in clock]
    made(where, times, monkeypatch)
    oldest = now - age // timedelta(milliseconds=1)
    expected = [v for v, t in enumerate(times, 1) if t > oldest or v == len(times)]
    copy = str(tmp_path / "copy")
    shutil.copytree(where, copy)
    removed = open_dataset(where).cleanup(older_than=age)["removed_versions"]
    left = open_dataset(where)
    assert left.versions() == expected
    assert sorted([*removed, *expected]) == list(range(1, len(times) + 1))
    for version in expected:
        assert ids_of(left.checkout(version)) == list(range(version))
    assert not left.verify().findings
    if not age:
        return  # pylance then removes versions of the future, too
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    lance.dataset(copy).cleanup_old_versions(older_than=age)
    assert open_dataset(copy).versions() == expected


@pytest.mark.parametrize("number", [1, 2])
def test_cleanup_to_a_number_of_versions_does_not_depend_on_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int], number: int
) -> None:
    where, now = str(tmp_path / "t"), int(time.time() * 1000)
    made(where, [now + t for t in clock], monkeypatch)
    found = open_dataset(where).cleanup(keep_versions=number)
    left = open_dataset(where)
    assert found["removed_versions"] == list(range(1, len(clock) - number + 1))
    assert left.versions() == list(range(len(clock) - number + 1, len(clock) + 1))
    assert ids_of(left) == list(range(len(clock)))
    assert not left.verify().findings


def test_cleanup_by_a_clock_that_is_behind_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_plugins.lance import cleaning

    where = str(tmp_path / "t")
    made(where, [NOON, NOON + HOUR, NOON - HOUR], monkeypatch)
    files = sorted(p for p in Path(where).rglob("*") if p.is_file())
    behind = SimpleNamespace(time_ns=lambda: (NOON - 2 * HOUR) * 1_000_000)
    monkeypatch.setattr(cleaning, "time", behind)
    found = open_dataset(where).cleanup(older_than=timedelta(0), unreferenced_older_than=timedelta(0))
    assert found["removed_versions"] == []
    assert sorted(p for p in Path(where).rglob("*") if p.is_file()) == files


def test_rows_of_a_change_by_a_clock_that_was_set_back_are_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits, conflicts and changed rows go by version numbers, too."""
    where = str(tmp_path / "t")
    made(where, [NOON + 400 * 24 * HOUR, NOON], monkeypatch)
    open_dataset(where).delete("id = 0")
    open_dataset(where).update({"text": "'new'"}, predicate="id = 1")
    latest = open_dataset(where)
    assert latest.version == 4
    assert latest.to_pyarrow_table(["id", "text"]).to_pylist() == [{"id": 1, "text": "new"}]
    assert [e["operation"] for e in latest.history(2)] == ["update", "delete"]
