"""One clock per table: the times that history shows select the versions that they are shown for, through every call."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.cli.inspect import info
from delta_core.errors import VersionNotFoundError

VERSIONS = 6
FEED = {"delta.enableChangeDataFeed": "true"}
TIMES = {"delta.enableInCommitTimestamps": "true"}


def _append(path: Path, number: int) -> None:
    write_deltalake(path, pa.table({"id": [number]}), mode="append")


def _plain(path: Path) -> None:
    """Files as they were written: later than the time in their own commitInfo."""
    write_deltalake(path, pa.table({"id": [0]}), configuration=FEED)
    for number in range(1, VERSIONS):
        _append(path, number)


def _copied(path: Path) -> None:
    """Files of a copied table: all of about one time, years after their commitInfo."""
    _plain(path)
    _set_times(path, [1_900_000_000_000] * VERSIONS)


def _shuffled(path: Path) -> None:
    """File times that go back, as of a clock that was set back."""
    _plain(path)
    _set_times(path, [1_900_000_000_000 + delta for delta in (0, 5_000, 3_000, 3_001, 9_000, 1)])


def _in_commit(path: Path) -> None:
    """Times in the commits, and files that were copied since."""
    write_deltalake(path, pa.table({"id": [0]}), configuration=FEED | TIMES)
    for number in range(1, VERSIONS):
        _append(path, number)
    _set_times(path, [1_900_000_000_000] * VERSIONS)


def _switched_on(path: Path) -> None:
    """Times in the commits from the fourth version on."""
    write_deltalake(path, pa.table({"id": [0]}), configuration=FEED)
    _append(path, 1)
    _append(path, 2)
    DeltaTable(path).alter.set_table_properties(TIMES)
    _append(path, 4)
    _append(path, 5)


def _set_times(path: Path, times_ms: list[int]) -> None:
    for version, ms in enumerate(times_ms):
        os.utime(path / "_delta_log" / f"{version:020}.json", ns=(ms * 1_000_000, ms * 1_000_000))


KINDS = (_plain, _copied, _shuffled, _in_commit, _switched_on)


@pytest.fixture(params=KINDS, ids=lambda f: f.__name__.strip("_"))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    request.param(tmp_path / "t")
    return DeltaTable(tmp_path / "t")


def _shown(table: DeltaTable) -> dict[int, int]:
    return {row["version"]: row["timestamp"] for row in table.history()}


def _text(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds")


def test_history_shows_times_that_rise(table: DeltaTable) -> None:
    times = [time for _, time in sorted(_shown(table).items())]
    assert len(times) == VERSIONS
    assert times == sorted(set(times))
    assert [row["timestamp"] for row in table.history(2)] == times[:-3:-1]
    assert table.snapshot(3).timestamp_ms == times[3]


def _loaded(table: DeltaTable, text: str) -> int:
    table.load_as_version(text)
    return table.version()


def _loaded_by_datetime(table: DeltaTable, text: str) -> int:
    table.load_as_version(dt.datetime.fromisoformat(text))
    return table.version()


def _opened(table: DeltaTable, text: str) -> int:
    return int(table.snapshot(timestamp=text).version)


def _by_the_command_line(table: DeltaTable, text: str) -> int:
    result = CliRunner().invoke(info, [table.table_uri, "--timestamp", text, "--json"], catch_exceptions=False)
    return int(json.loads(result.stdout)["version"])


LAST_AT: list[Callable[[DeltaTable, str], int]] = [_loaded, _loaded_by_datetime, _opened, _by_the_command_line]


@pytest.mark.parametrize("select", LAST_AT, ids=lambda f: f.__name__.strip("_"))
def test_time_that_history_shows_selects_its_version(
    table: DeltaTable, select: Callable[[DeltaTable, str], int]
) -> None:
    shown = _shown(table)
    assert {version: select(table, _text(ms)) for version, ms in shown.items()} == {v: v for v in shown}
    # a millisecond earlier it was not there yet
    assert {v: select(table, _text(ms - 1)) for v, ms in shown.items() if v} == {v: v - 1 for v in shown if v}
    with pytest.raises(VersionNotFoundError):
        select(table, _text(shown[0] - 1))


def _read_at(table: DeltaTable, version: int) -> list[int]:
    return sorted(table.snapshot(version).scan(["id"]).to_table().column("id").to_pylist())


def test_restore_to_a_time_of_history_has_the_rows_of_its_version(table: DeltaTable) -> None:
    shown = _shown(table)
    expected = {version: _read_at(table, version) for version in shown}
    for version, ms in shown.items():
        table.restore(dt.datetime.fromtimestamp(ms / 1000, dt.UTC))
        assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == expected[version]


def test_clone_of_a_time_of_history_is_of_its_version(table: DeltaTable, tmp_path: Path) -> None:
    for version, ms in _shown(table).items():
        copy = table.clone(tmp_path / f"copy{version}", timestamp=_text(ms))
        assert sorted(copy.to_pyarrow_table().column("id").to_pylist()) == _read_at(table, version)


def test_change_feed_begins_and_ends_with_the_versions_of_its_times(table: DeltaTable) -> None:
    shown = _shown(table)
    for version, ms in shown.items():
        found = table.changes(start_timestamp=_text(ms)).to_table()
        commits = dict(zip(found["_commit_version"].to_pylist(), found["_commit_timestamp"].to_pylist(), strict=True))
        assert set(commits) == {v for v in shown if v >= version} - _without_rows(table)
        assert all(int(time.timestamp() * 1000 + 0.5) == shown[v] for v, time in commits.items())
        ended = table.changes(0, end_timestamp=_text(ms)).to_table()["_commit_version"].to_pylist()
        assert set(ended) == {v for v in shown if v <= version} - _without_rows(table)


def test_stream_begins_with_the_version_of_its_time(table: DeltaTable) -> None:
    shown = _shown(table)
    for version, ms in shown.items():
        found = [b.to_table().column("id").to_pylist() for b in table.follow(start_timestamp=_text(ms), timeout=0)]
        rows = {value for part in found for value in part}
        assert rows == set(_read_at(table, VERSIONS - 1)) - set(_read_at(table, version - 1) if version else [])


def _without_rows(table: DeltaTable) -> set[int]:
    return {row["version"] for row in table.history() if row["operation"] == "SET TBLPROPERTIES"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 10), min_size=VERSIONS, max_size=VERSIONS), st.integers(-2, 20))
def test_any_file_times_select_the_last_version_that_history_shows_at_or_before(
    tmp_path_factory: pytest.TempPathFactory, deltas: list[int], at: int
) -> None:
    path = _shared(tmp_path_factory)
    _set_times(path, [1_900_000_000_000 + delta for delta in deltas])
    table = DeltaTable(path)
    asked = 1_900_000_000_000 + at
    expected = max((v for v, time in _shown(table).items() if time <= asked), default=None)
    if expected is None:
        with pytest.raises(VersionNotFoundError):
            table.snapshot(timestamp=_text(asked))
    else:
        assert table.snapshot(timestamp=_text(asked)).version == expected


_made: list[Path] = []


def _shared(factory: pytest.TempPathFactory) -> Path:
    if not _made:
        path = factory.mktemp("times") / "t"
        _plain(path)
        _made.append(path)
    return _made[0]


@pytest.fixture(autouse=True, scope="module")
def _forget() -> Iterator[None]:
    yield
    _made.clear()
