"""DeltaTable.follow: which rows come, in which steps, where a stream continues, and what stops it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import AppTransaction, CommitProperties, DeltaTable, StreamPosition, write_deltalake
from delta_core.errors import (
    InvalidArgumentError,
    RowsChangedError,
    StreamError,
    StreamSchemaError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.schema import Field
from tests.interrupts import interrupted
from tests.operations.row_tables import FEED, MAPPED, VECTORS, made, table_of


def append(table: DeltaTable, *ids: int, files: int = 1) -> None:
    rows = table_of([(i, "c", 0.5) for i in ids])
    # a file for each run of rows
    write_deltalake(table, rows, mode="append", target_file_size=1 if files > 1 else None)


def ids(batch: Any) -> list[int]:
    return sorted(batch.to_table().column("id").to_pylist())


def read(table: DeltaTable, *start: Any, **options: Any) -> list[list[int]]:
    return [ids(b) for b in table.follow(*start, **{"timeout": 0, **options})]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Rows 0 to 9 in version 0."""
    return made(tmp_path, VECTORS)


def test_stream_without_a_start_has_the_whole_table_first(table: DeltaTable) -> None:
    append(table, 20)
    table.delete("id = 3")
    stream = iter(table.follow(timeout=0.5, poll_interval=0.01))
    assert ids(next(stream)) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 20]
    append(DeltaTable(table.table_uri), 30, 31)
    assert ids(next(stream)) == [30, 31]


@pytest.mark.parametrize(
    ("start", "expected"), [(0, [[*range(10), 20, 21]]), (1, [[20, 21]]), (2, [[21]]), ("latest", [])]
)
def test_stream_begins_with_the_commit_of_its_start(table: DeltaTable, start: Any, expected: list[Any]) -> None:
    append(table, 20)
    append(table, 21)
    assert read(table, start) == expected


def test_stream_begins_at_a_time(table: DeltaTable) -> None:
    append(table, 20)
    history = table.history()
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    assert read(table, start_timestamp="2001-01-01") == [[*range(10), 20]]
    assert read(table, start_timestamp=datetime.now(UTC)) == []  # no commit is as young
    assert len(history) == 2
    assert log.is_dir()


@pytest.mark.parametrize("limit", [{"max_files": 1}, {"max_bytes": 1}, {"max_files": 1, "max_bytes": 1 << 40}])
def test_smallest_limit_makes_a_step_of_each_file(table: DeltaTable, limit: dict[str, int]) -> None:
    append(table, 20)
    append(table, 21)
    # files of a snapshot are in order of their times in ms, which two appends may share, and then of their paths
    assert sorted(read(table, **limit)) == [[*range(10)], [20], [21]]
    assert read(table, 0, **limit) == [[*range(10)], [20], [21]]


def test_files_of_one_commit_are_divided(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, table_of([(i, "abcde"[i], None) for i in range(5)]), partition_by=["p"])
    table = DeltaTable(uri)
    for start in ((), (0,)):
        batches = list(table.follow(*start, max_files=2, timeout=0))
        assert [b.num_files for b in batches] == [2, 2, 1]
        assert sorted(i for b in batches for i in ids(b)) == [0, 1, 2, 3, 4]
        for done, batch in enumerate(batches, 1):
            rest = [i for b in table.follow(position=batch.position.to_json(), timeout=0) for i in ids(b)]
            assert sorted(rest) == sorted(i for b in batches[done:] for i in ids(b))
        again = [b.position for b in table.follow(position=batches[0].position, max_files=2, timeout=0)]
        assert again == [b.position for b in batches[1:]]


def test_position_has_the_form_of_a_stream_of_spark(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, table_of([(i, "ab"[i], None) for i in range(2)]), partition_by=["p"])
    batches = list(DeltaTable(uri).follow(max_files=1, timeout=0))
    found = [json.loads(b.position.to_json()) for b in batches]
    assert [(p["reservoirVersion"], p["index"], p["isStartingVersion"]) for p in found] == [
        (0, 0, True),
        (1, -1, False),
    ]


def test_columns_and_predicate_apply_to_every_step(table: DeltaTable) -> None:
    append(table, 20, 21)
    stream = table.follow(columns=["x", "id"], predicate="id in (4, 21)", max_files=1, timeout=0)
    assert stream.schema.names == ["x", "id"]
    assert [b.to_table().to_pylist() for b in stream] == [[{"x": 0.4, "id": 4}], [{"x": 0.5, "id": 21}]]


def test_commits_without_new_rows_are_passed_over(table: DeltaTable) -> None:
    append(table, 20)
    table.optimize.compact()
    table.alter.set_table_properties({"a.b": "c"})
    append(table, 21)
    stream = table.follow(1, timeout=0)
    assert [ids(b) for b in stream] == [[20, 21]]
    assert stream.position.version == 5


def test_compaction_while_the_stream_waits_moves_its_position(table: DeltaTable) -> None:
    append(table, 20)
    stream = table.follow("latest", timeout=0.2, poll_interval=0.01)
    iterator = iter(stream)
    append(table, 21)
    assert ids(next(iterator)) == [21]
    DeltaTable(table.table_uri).optimize.compact()
    assert list(iterator) == []
    assert stream.position.version == 4


# --- commits that delete or change rows ---


CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "delete": lambda t: t.delete("id = 3"),
    "update": lambda t: t.update({"x": "1.0"}, predicate="id = 3"),
    "overwrite": lambda t: write_deltalake(t, table_of([(40, "a", 0.0)]), mode="overwrite"),
    "delete all": lambda t: t.delete(),
}
OPTIONS = ("skip_change_commits", "ignore_deletes", "ignore_changes")
#: What a stream of the commits 1 (append 20), 2 (the change), 3 (append 21) returns; None: it stops.
EXPECTED: dict[tuple[str, str | None], list[int] | None] = {
    ("delete", "skip_change_commits"): [20, 21],
    ("delete", "ignore_deletes"): None,
    ("delete", "ignore_changes"): [0, 1, 2, *range(4, 10), 20, 21],
    ("update", "skip_change_commits"): [20, 21],
    ("update", "ignore_deletes"): None,
    ("update", "ignore_changes"): [*range(10), 20, 21],
    ("overwrite", "skip_change_commits"): [20, 21],
    ("overwrite", "ignore_deletes"): None,
    ("overwrite", "ignore_changes"): [20, 21, 40],
    ("delete all", "skip_change_commits"): [20, 21],
    ("delete all", "ignore_deletes"): [20, 21],
    ("delete all", "ignore_changes"): [20, 21],
    **{(change, None): None for change in CHANGES},
}


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=["copy", "vectors", "feed"])
@pytest.mark.parametrize(("change", "option"), EXPECTED)
def test_commit_that_changes_rows_is_treated_as_by_spark(
    tmp_path: Path, properties: dict[str, str], change: str, option: str | None
) -> None:
    table = made(tmp_path, properties)
    append(table, 20)
    CHANGES[change](table)
    append(table, 21)
    expected = EXPECTED[change, option]
    options = {} if option is None else {option: True}
    stream = iter(table.follow(1, timeout=0, **options))
    if expected is not None:
        assert sorted(i for b in stream for i in ids(b)) == expected
        return
    assert ids(next(stream)) == [20]
    with pytest.raises(RowsChangedError, match=r"Version 2 .*(skip_change_commits|ignore_deletes)") as caught:
        next(stream)
    assert (caught.value.version, caught.value.position.version) == (2, 2)
    # nothing was lost: the stream goes on behind the commit
    assert read(table, 3) == [[21]]


# --- the schema ---


def test_added_column_stops_the_stream_which_begins_again_with_it(table: DeltaTable) -> None:
    stream = iter(table.follow(0, timeout=1, poll_interval=0.01))
    assert ids(next(stream)) == [*range(10)]
    append(table, 20)
    wider = table_of([(30, "c", 0.5)]).append_column("y", pa.array([7]))
    write_deltalake(table, wider, mode="append", schema_mode="merge")
    assert ids(next(stream)) == [20]
    with pytest.raises(StreamSchemaError, match="column y was added") as caught:
        next(stream)
    (batch,) = DeltaTable(table.table_uri).follow(position=caught.value.position, timeout=0)
    assert batch.to_table().to_pylist() == [{"id": 30, "p": "c", "x": 0.5, "y": 7}]


def test_column_added_before_the_stream_began_is_null_in_older_rows(table: DeltaTable) -> None:
    wider = table_of([(30, "c", 0.5)]).append_column("y", pa.array([7]))
    write_deltalake(table, wider, mode="append", schema_mode="merge")
    (batch,) = table.follow(0, timeout=0, predicate="id in (1, 30)")
    assert batch.to_table().column("y").to_pylist() == [None, 7]


def test_column_renamed_before_the_stream_began_needs_the_older_schema(tmp_path: Path) -> None:
    table = made(tmp_path, MAPPED)
    table.alter.rename_column("x", "y")
    append_y = table_of([(20, "c", 0.5)]).rename_columns(["id", "p", "y"])
    write_deltalake(table, append_y, mode="append")
    with pytest.raises(StreamSchemaError, match="x was dropped or renamed"):
        table.follow(0)
    (older,) = table.follow(0, stop_at=0)
    assert older.schema.names == ["id", "p", "x"]
    (newer,) = table.follow(1, timeout=0)
    assert newer.to_table().to_pylist() == [{"id": 20, "p": "c", "y": 0.5}]


def test_schema_that_changes_and_changes_back_stops_the_stream(tmp_path: Path) -> None:
    table = made(tmp_path, MAPPED)
    stream = iter(table.follow("latest", timeout=1, poll_interval=0.01))
    append(table, 20)
    assert ids(next(stream)) == [20]
    table.alter.rename_column("x", "y")
    write_deltalake(table, table_of([(21, "c", 0.5)]).rename_columns(["id", "p", "y"]), mode="append")
    table.alter.rename_column("y", "x")
    with pytest.raises(StreamSchemaError, match=r"Version 2 .*x was dropped or renamed"):
        next(stream)


def test_properties_and_features_that_change_do_not_stop_the_stream(tmp_path: Path) -> None:
    table = made(tmp_path)
    stream = iter(table.follow("latest", timeout=1, poll_interval=0.01, ignore_changes=True))
    table.alter.set_table_properties({**VECTORS, "delta.columnMapping.mode": "name"})
    table.delete("id < 9")
    append(table, 20)
    # the file comes again with its vector, which the stream began without
    assert ids(next(stream)) == [9, 20]


def test_files_that_are_excluded_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for name in "aba":
        rows = pa.table({"id": pa.array([1], pa.int64()), "p": [name]})
        write_deltalake(path, rows, mode="append", partition_by=["p"])
    table = DeltaTable(path)
    batches = [b.to_table()["p"].to_pylist() for b in table.follow(timeout=0, exclude_regex="p=[b-z]/")]
    assert [p for batch in batches for p in batch] == ["a", "a"]
    batches = [b.to_table()["p"].to_pylist() for b in table.follow(0, timeout=0, max_files=1, exclude_regex="^p=a")]
    assert batches == [[], ["b"], []]
    with pytest.raises(InvalidArgumentError, match=r"exclude_regex='\('"):
        next(iter(table.follow(0, exclude_regex="(")))


# --- logs that go, tables that go ---


def test_commit_that_was_cleaned_up_stops_the_stream_unless_permitted(table: DeltaTable) -> None:
    position = next(iter(table.follow(0, timeout=0))).position
    append(table, 20)
    append(table, 21)
    table.create_checkpoint()
    append(table, 22)
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    for version in (0, 1):
        (log / f"{version:020}.json").unlink()
    fresh = DeltaTable(table.table_uri)
    with pytest.raises(VersionNotFoundError, match=r"version 1, whose log was cleaned up.*fail_on_data_loss"):
        read(fresh, position=position)
    assert read(fresh, position=position, fail_on_data_loss=False) == [[21, 22]]


def test_table_that_was_made_again_stops_the_stream(tmp_path: Path) -> None:
    table = made(tmp_path)
    stream = iter(table.follow(timeout=5, poll_interval=0.01))
    next(stream)
    shutil.rmtree(tmp_path / "t")
    made(tmp_path)
    with pytest.raises(StreamError, match="dropped and made again"):
        next(stream)


def test_table_that_is_gone_stops_the_stream(tmp_path: Path) -> None:
    stream = iter(made(tmp_path).follow(timeout=5, poll_interval=0.01))
    next(stream)
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        next(stream)


# --- where it ends ---


def test_available_now_ends_behind_the_version_that_was_the_latest(table: DeltaTable) -> None:
    append(table, 20)
    stream = table.follow(available_now=True, max_files=1)
    append(DeltaTable(table.table_uri), 21)
    assert [ids(b) for b in stream] == [[*range(10)], [20]]


def test_stop_at_waits_for_a_version(table: DeltaTable) -> None:
    stream = iter(table.follow("latest", stop_at=2, poll_interval=0.01))
    for i in (20, 21, 22):
        append(table, i)
    assert [i for b in stream for i in ids(b)] == [20, 21]


def test_stop_ends_a_stream_that_waits(table: DeltaTable) -> None:
    stream = table.follow("latest", poll_interval=60)
    threading.Timer(0.05, stream.stop).start()
    assert list(stream) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_files": 0}, {"max_bytes": True}, {"poll_interval": -1}, {"timeout": float("nan")}, {"stop_at": -1},
        {"start": "first"}, {"start": -1}, {"start": 9}, {"start": 1, "start_timestamp": "2024-01-01"},
        {"start_timestamp": "2999-01-01"}, {"position": StreamPosition("other", 0)}, {"position": "{}"},
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_rejected(table: DeltaTable, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        table.follow(**arguments)


# --- positions in a file, and writes that happen once ---


def test_position_file_that_is_no_position_is_rejected(table: DeltaTable, tmp_path: Path) -> None:
    file = tmp_path / "position"
    file.write_text("{}")
    with pytest.raises(InvalidArgumentError, match="holds no position"):
        table.follow(position_file=file)


def copy(table: DeltaTable, target: str, file: Path, **options: Any) -> None:
    """Append each step once to another table: the recipe of docs/changes.md."""
    for batch in table.follow(position_file=file, timeout=0, **options):
        done = CommitProperties(app_transactions=[AppTransaction("copy", batch.number)])
        write_deltalake(target, batch, mode="append", commit_properties=done)


@pytest.mark.parametrize("end", ["timeout", "available now", "stop", "stop at", "error", "changed schema"])
def test_run_that_ended_is_followed_by_one_that_goes_on(table: DeltaTable, tmp_path: Path, end: str) -> None:
    options: dict[str, Any] = {"timeout": {"timeout": 0}, "available now": {"available_now": True}}.get(end, {})
    options = options or {"timeout": 0, **({"stop_at": table.version()} if end == "stop at" else {})}
    file = tmp_path / "position"
    first = table.follow(position_file=file, max_files=1, **options)
    if end == "error":
        append(table, 20)
        table.delete("id = 0")
    if end == "changed schema":
        table.alter.add_columns(Field("more", "string"))
    seen: list[int] = []
    with suppress(RowsChangedError, StreamSchemaError):
        for batch in first:
            seen += ids(batch)
            if end == "stop":
                first.stop()
    append(table, 30)
    later = table.follow(position_file=file, timeout=0, skip_change_commits=True)
    seen += [value for batch in later for value in ids(batch)]
    expected = [*range(10), *([20] if end == "error" else []), 30]
    assert sorted(seen) == expected
    assert [b.number for b in table.follow(position_file=file, timeout=0)] == []


@pytest.mark.parametrize("at", range(8))
def test_copy_that_dies_at_any_step_has_each_row_once(table: DeltaTable, tmp_path: Path, at: int) -> None:
    append(table, 20)
    append(table, 21)
    target, file = str(tmp_path / "copy"), tmp_path / "position"

    class KilledError(Exception):
        pass

    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count > at:
            raise KilledError

    def run() -> None:
        for batch in table.follow(position_file=file, timeout=0, max_files=1):
            step()
            done = CommitProperties(app_transactions=[AppTransaction("copy", batch.number)])
            write_deltalake(target, batch, mode="append", commit_properties=done)
            step()

    try:
        run()
    except KilledError:
        # further commits arrive before it runs again, and would make its steps larger
        append(table, 22)
        table.optimize.compact()
    copy(table, target, file)
    expected = sorted(DeltaTable(table.table_uri).to_pyarrow_table().column("id").to_pylist())
    assert sorted(DeltaTable(target).to_pyarrow_table().column("id").to_pylist()) == expected


def test_copy_whose_process_is_killed_behind_its_commit_has_each_row_once(table: DeltaTable, tmp_path: Path) -> None:
    append(table, 20)
    target, file = str(tmp_path / "copy"), tmp_path / "position"
    program = f"""
import os
from delta_core import AppTransaction, CommitProperties, DeltaTable, write_deltalake
for batch in DeltaTable({table.table_uri!r}).follow(position_file={str(file)!r}, max_files=1):
    done = CommitProperties(app_transactions=[AppTransaction("copy", batch.number)])
    write_deltalake({target!r}, batch, mode="append", commit_properties=done)
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    copy(table, target, file)
    assert sorted(DeltaTable(target).to_pyarrow_table().column("id").to_pylist()) == [*range(10), 20]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    commits=st.lists(st.sampled_from(["append", "append two", "compact", "property"]), max_size=6),
    stops=st.lists(st.integers(1, 3), max_size=6),
    start=st.sampled_from([None, 0]),
)
def test_runs_that_end_anywhere_read_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, commits: list[str], stops: list[int], start: int | None
) -> None:
    folder = tmp_path_factory.mktemp("follow")
    table, file = made(folder, {}, ["p"]), folder / "position"
    found: dict[int, list[int]] = {}
    number = 100

    def run(most: int) -> None:
        stream = table.follow(start, position_file=file, timeout=0, max_files=1)
        for done, batch in enumerate(stream, 1):
            rows = ids(batch)
            assert found.setdefault(batch.number, rows) == rows
            if done == most:
                return

    for i, commit in enumerate(commits):
        if commit.startswith("append"):
            count = 2 if commit == "append two" else 1
            write_deltalake(table, table_of([(number + n, "ab"[n], None) for n in range(count)]), mode="append")
            number += count
        elif commit == "compact":
            table.optimize.compact()
        else:
            table.alter.set_table_properties({"a.b": str(i)})
        if i < len(stops):
            run(stops[i])
    run(1 << 30)
    assert sorted(i for rows in found.values() for i in rows) == [*range(10), *range(100, number)]


def test_stream_ends_if_a_signal_handler_stops_it_wherever_it_is(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    places = 0
    while True:
        stream = DeltaTable(tmp_path / "t").follow(poll_interval=0.05, timeout=0.08)
        if not interrupted(places + 1, ("threading.py", "threads.py"), partial(list, stream), stream.stop):
            break
        places += 1
    assert places
