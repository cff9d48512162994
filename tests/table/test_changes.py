"""DeltaTable.changes: ranges, steps with limits, and positions to continue from."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, StreamPosition, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    DataFileNotFoundError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from tests.operations.row_tables import FEED, MAPPED, ROW_IDS, ROWS, VECTORS, made, table_of

KINDS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "_commit_timestamp"} for row in table.to_pylist()]


def ids(table: pa.Table) -> list[tuple[int, str, int]]:
    names = ("_commit_version", "_change_type", "id")
    return sorted(zip(*(table.column(n).to_pylist() for n in names), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Rows 0 to 9, then 20 to 22 and 23 appended, 3 deleted, files joined, and 5 updated: versions 0 to 5."""
    found = made(tmp_path, FEED)
    for i in ([20, 21, 22], [23]):
        write_deltalake(found, table_of([(n, "c", 0.5) for n in i]), mode="append")
    found.delete("id = 3")
    found.optimize.compact()
    found.update({"x": "9.0"}, predicate="id = 5")
    return DeltaTable(found.table_uri)


def test_range_ends_at_both_versions(table: DeltaTable) -> None:
    feed = table.changes(2, 3)
    assert ids(feed.to_table()) == [(2, "insert", 23), (3, "delete", 3)]
    assert feed.versions == range(2, 4)
    assert feed.is_complete
    assert feed.to_table() == feed.to_reader().read_all() == pa.table(feed)


def test_columns_and_predicate_may_name_those_of_the_feed(table: DeltaTable) -> None:
    feed = table.changes(columns=["_change_type", "id"], predicate="_commit_version = 5 and x > 1", max_files=1)
    found = [row for step in feed.steps() for row in step.to_table().to_pylist()]
    assert feed.schema.names == ["_change_type", "id"]
    assert found == [{"_change_type": "update_postimage", "id": 5}]


@pytest.mark.parametrize("limits", [{"max_files": 1}, {"max_bytes": 1}, {"max_files": 1, "max_bytes": 1 << 40}])
def test_steps_within_the_smallest_limit_have_one_version_with_changes_each(
    table: DeltaTable, limits: dict[str, int]
) -> None:
    steps = list(table.changes(1, **limits).steps())
    # the version that only joins files has no changes and fits into any step
    assert [s.versions for s in steps] == [range(1, 2), range(2, 3), range(3, 5), range(5, 6)]
    assert [s.is_complete for s in steps] == [False, False, False, True]


def test_limit_that_fits_two_versions_ends_before_the_third(table: DeltaTable) -> None:
    assert table.changes(max_files=2).versions == range(2)


@pytest.mark.parametrize("limits", [{"max_files": 0}, {"max_bytes": -1}, {"max_files": True}, {"max_bytes": 1.5}])
def test_limit_that_is_no_positive_number_is_rejected(table: DeltaTable, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="from 1 on"):
        table.changes(**limits)


def test_every_position_continues_with_the_rows_not_read_yet(table: DeltaTable) -> None:
    whole = table.changes().to_table()
    for step in table.changes(max_files=1).steps():
        rest = table.changes(position=step.position.to_json())
        first = step.versions.stop
        assert rows_of(rest.to_table()) == [r for r in rows_of(whole) if r["_commit_version"] >= first]


def test_position_at_the_end_yields_later_commits_only(table: DeltaTable) -> None:
    position = table.changes().position
    assert table.changes(position=position).to_table().num_rows == 0
    assert table.changes(position=position).position == position
    write_deltalake(table, table_of([(30, "d", 1.0)]), mode="append")
    assert ids(table.changes(position=position).to_table()) == [(6, "insert", 30)]


def test_position_continues_up_to_the_end_of_the_range(table: DeltaTable) -> None:
    until = table.snapshot(3).timestamp_ms
    steps = list(table.changes(end_timestamp=datetime.fromtimestamp(until / 1000, UTC), max_files=1).steps())
    assert steps[-1].versions.stop == 4
    assert list(table.changes(end_version=3, position=steps[-1].position).versions) == []


def test_position_has_the_form_of_a_stream_of_spark(table: DeltaTable) -> None:
    position = table.changes(end_version=2).position
    assert json.loads(position.to_json()) == {
        "sourceVersion": 1,
        "reservoirId": table.metadata().id,
        "reservoirVersion": 3,
        "index": -1,
        "isStartingVersion": False,
    }


@given(st.text(min_size=1), st.integers(0, 1 << 62), st.integers(-1, 1 << 40), st.booleans())
def test_position_survives_json(table_id: str, version: int, index: int, initial: bool) -> None:
    position = StreamPosition(table_id, version, index, initial)
    assert StreamPosition.parse(position.to_json()) == position
    assert StreamPosition.parse(json.loads(position.to_json())) == position


@pytest.mark.parametrize("index", [-100, -20, -19])
def test_indexes_of_source_version_3_are_the_beginning_of_the_version(index: int) -> None:
    found = {"sourceVersion": 3, "reservoirId": "a", "reservoirVersion": 7, "index": index, "isStartingVersion": False}
    assert StreamPosition.parse(found) == StreamPosition("a", 7)


@pytest.mark.parametrize(
    "change",
    [
        {"sourceVersion": 2}, {"sourceVersion": 4}, {"index": -20}, {"index": -100}, {"reservoirVersion": -1},
        {"index": "1"}, {"isStartingVersion": 1}, {"reservoirId": None}, {"reservoirVersion": True},
    ],
)  # fmt: skip
def test_position_of_another_form_is_rejected(change: dict[str, Any]) -> None:
    found = json.loads(StreamPosition("a", 7).to_json()) | change
    with pytest.raises(InvalidArgumentError, match="position"):
        StreamPosition.parse(found)


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", "null", b"\xff", '{"sourceVersion":1'])
def test_text_that_is_no_position_is_rejected(text: str | bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="expected JSON"):
        StreamPosition.parse(text)


def test_positions_that_do_not_fit_the_table_are_rejected(table: DeltaTable) -> None:
    own = table.metadata().id
    for position, match in (
        (StreamPosition("another", 2), "another table"),
        (StreamPosition(own, 2, 0), "within version 2"),
        (StreamPosition(own, 2, -1, True), "within version 2"),
        (StreamPosition(own, 7), "update_incremental"),
    ):
        with pytest.raises(InvalidArgumentError, match=match):
            table.changes(position=position)
    with pytest.raises(InvalidArgumentError, match="both a position and a start"):
        table.changes(1, position=StreamPosition(own, 2))


def test_position_whose_commit_was_cleaned_up_is_rejected(table: DeltaTable) -> None:
    position = table.changes(end_version=1).position
    table.create_checkpoint()
    for version in range(3):
        (Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match=r"version 2 .* first that exists is 3"):
        DeltaTable(table.table_uri).changes(position=position)


def test_table_without_the_feed_names_what_to_enable(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="changeDataFeed"):
        made(tmp_path).changes()


def test_added_column_is_null_in_changes_before_it(table: DeltaTable) -> None:
    more = table_of([(40, "e", 1.0)]).append_column("new", pa.array([1]))
    write_deltalake(table, more, mode="append", schema_mode="merge")
    for step in table.changes(max_files=1).steps():
        found = step.to_table()
        assert found.column("new").to_pylist() == [1 if v == 6 else None for v in found["_commit_version"].to_pylist()]


def test_incompatible_schema_change_names_its_version_and_the_ranges_that_can_be_read(table: DeltaTable) -> None:
    other = pa.table({"id": pa.array(["a"]), "p": ["b"], "x": [1.0]})
    write_deltalake(table, other, mode="overwrite", schema_mode="overwrite")
    write_deltalake(table, other, mode="append")
    with pytest.raises(SchemaError, match=r"type .* in version 6.* ends at version 5,.* begins at version 7") as caught:
        table.changes(2)
    assert (caught.value.version, caught.value.changed_version) == (2, 6)
    with pytest.raises(SchemaError, match="in version 6"):
        table.changes(2, max_files=1)
    assert table.changes(2, 5).to_table().num_rows
    assert table.changes(7).to_table().num_rows


def test_version_that_deletes_rows_of_another_schema_is_rejected(table: DeltaTable) -> None:
    other = pa.table({"id": pa.array(["a"]), "p": ["b"], "x": [1.0]})
    write_deltalake(table, other, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaError, match=r"rows of version 5 .* ends at version 5,.* begins at version 7"):
        table.changes(6)


def _apply(table: DeltaTable, change: tuple[str, Any]) -> None:
    kind, value = change
    if kind == "append":
        write_deltalake(table, table_of(value), mode="append")
    elif kind == "overwrite":
        write_deltalake(table, table_of(value), mode="overwrite")
    elif kind == "replace":
        write_deltalake(table, table_of([(value, "a", 0.0)]), mode="overwrite", predicate=f"id = {value}")
    elif kind == "delete":
        table.delete(f"id % 4 = {value}")
    elif kind == "update":
        table.update({"x": "0.5"}, predicate=f"id % 3 = {value}")
    else:
        table.optimize.compact()


CHANGES = st.one_of(
    st.tuples(st.sampled_from(["append", "overwrite"]), ROWS),
    st.tuples(st.sampled_from(["delete", "update", "replace", "compact"]), st.integers(0, 2)),
)


@pytest.mark.parametrize(
    "properties",
    [FEED, {**FEED, **VECTORS}, {**FEED, **VECTORS, **ROW_IDS, **MAPPED}],
    ids=["feed", "vectors", "vectors, row ids, mapping"],
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(CHANGES, max_size=6), max_files=st.integers(1, 5), start=st.integers(0, 6))
def test_feed_in_steps_equals_the_feed_at_once_and_leads_to_each_version(
    properties: dict[str, str], changes: list[tuple[str, Any]], max_files: int, start: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = made(Path(folder), properties)
        for change in changes:
            _apply(table, change)
        start = min(start, table.version())
        whole = rows_of(table.changes(start).to_table())
        assert whole == [
            r for step in table.changes(start, max_files=max_files).steps() for r in rows_of(step.to_table())
        ]
        counts: Counter[Any] = Counter()
        if start:
            counts.update(map(repr, table.snapshot(start - 1).scan().to_table().to_pylist()))
        for version in range(start, table.version() + 1):
            for row in (r for r in whole if r["_commit_version"] == version):
                counts[repr({n: row[n] for n in ("id", "p", "x")})] += KINDS[row["_change_type"]]
            assert +counts == Counter(map(repr, table.snapshot(version).scan().to_table().to_pylist()))
            assert min(counts.values(), default=0) >= 0


def test_feed_without_a_change_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": [1, 2, 3]}), configuration={"delta.enableChangeDataFeed": "true"})
    table = DeltaTable(uri)
    table.delete("id = 2")
    table.delete("id = 3")
    _, lost = sorted((tmp_path / "t" / "_change_data").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    lost.unlink()
    with pytest.raises(DataFileNotFoundError, match=rf"Change data file '_change_data/{lost.name}'.*before and after"):
        table.changes(1).to_table()
    assert table.changes(1, 1).to_table().column("id").to_pylist() == [2]
    assert table.to_pyarrow_table().column("id").to_pylist() == [1]


def test_columns_are_found_in_any_case_and_within_structs(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "s": [{"a": 2, "b": 3}]})
    write_deltalake(tmp_path, rows, configuration=FEED)
    table = DeltaTable(tmp_path)
    assert table.changes(0, columns=["ID"]).to_table().to_pylist() == [{"id": 1}]
    assert table.load_cdf(0, columns=["_CHANGE_TYPE", "Id"]).read_all().to_pylist() == [
        {"_change_type": "insert", "id": 1}
    ]
    assert table.changes(0, columns=["S.A", "id"]).to_table().to_pylist() == [{"s": {"a": 2}, "id": 1}]
    assert table.changes(0, columns=["s.a", "s.b"]).to_table().to_pylist() == [{"s": {"a": 2, "b": 3}}]
    for twice in (["id", "ID"], ["_change_type", "_CHANGE_TYPE"]):
        with pytest.raises(InvalidArgumentError, match="requested twice"):
            table.changes(0, columns=twice)
    with pytest.raises(ColumnNotFoundError):
        table.changes(0, columns=["other"])
