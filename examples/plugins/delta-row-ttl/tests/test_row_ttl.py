"""Feature example.rowTtl: what is too old is hidden."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_row_ttl.expiry import expire
from delta_row_ttl.logic import COLUMN, INTERVAL, TimeToLive, parse_interval, row_filter, time_to_live

from delta_core.api import (
    Call,
    Column,
    ColumnNotFoundError,
    InvalidArgumentError,
    Literal,
    PrimitiveType,
    Schema,
    SchemaError,
    TableState,
    WriteOptions,
    create_table,
    open_context,
    open_snapshot,
    write_table,
)
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder

NAME = "example.rowTtl"
NOW = datetime(2024, 3, 1, 12, tzinfo=UTC)
FIELDS = [{"name": "id", "type": "long"}, {"name": "born", "type": "timestamp"}]
TTL = {COLUMN: "born", INTERVAL: "30 days"}


class TestRowTtl(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        now = datetime.now(UTC)
        rows = pa.table({"id": [1, 2, 3], "born": [now, now - timedelta(days=90), now]})
        # without its properties, the feature can be dropped
        return [ExampleTable(rows, "id > 2", properties=TTL, expected=rows.take([0, 2])), ExampleTable()]

    def states(self) -> list[TableState]:
        return [table_state([NAME]), table_state([NAME], fields=FIELDS, properties=TTL)]

    def test_properties_are_removed_before_it_is_dropped(self) -> None:
        off, on = self.states()
        (use,) = self.alone().collect("feature_steps", table=on, change="drop")
        assert use.users == (f"property {COLUMN}", f"property {INTERVAL}")
        assert not any(s.users for s in self.alone().collect("feature_steps", table=off, change="drop"))

    def test_property_makes_it_active(self) -> None:
        off, on = self.states()
        assert on.is_active(NAME)
        assert not off.is_active(NAME)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp()) * 10**9)


def build(path: Path, kind: str, values: list[Any], **options: Any) -> TableBuilder:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [NAME, "timestampNtz"],
        "writerFeatures": [NAME, "timestampNtz"],
    }
    table = TableBuilder(path / "t").create({"id": "long", "born": kind}, properties=TTL, protocol=protocol, **options)
    return table.append([{"id": i, "born": v} for i, v in enumerate(values)])


def ids(table: TableBuilder, **options: Any) -> list[int]:
    found: list[int] = open_snapshot(table.uri).scan(**options).to_table().column("id").to_pylist()
    return sorted(found)


EDGE = NOW - timedelta(days=30)
BORN = [NOW, EDGE, EDGE - timedelta(microseconds=1), None, NOW + timedelta(days=1)]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_rows_older_than_the_interval_are_hidden_to_the_microsecond(tmp_path: Path, kind: str) -> None:
    naive = kind == "timestamp_ntz"
    table = build(tmp_path, kind, [v.replace(tzinfo=None) if v and naive else v for v in BORN])
    assert ids(table) == [0, 1, 3, 4]
    assert ids(table, columns=["id"]) == [0, 1, 3, 4]
    assert ids(table, predicate="id <> 1") == [0, 3, 4]
    assert open_snapshot(table.uri).scan().count() == 4


@pytest.mark.usefixtures("clock")
def test_dates_live_until_their_day_is_too_old(tmp_path: Path) -> None:
    assert ids(build(tmp_path, "date", [date(2024, 1, 30), date(2024, 1, 31), None])) == [1, 2]


@pytest.mark.usefixtures("clock")
def test_files_and_partitions_that_are_too_old_are_not_planned(tmp_path: Path) -> None:
    table = build(tmp_path, "timestamp", [NOW]).append([{"id": 9, "born": NOW - timedelta(days=99)}])
    assert open_snapshot(table.uri).scan().files().num_rows == 1
    by_day = build(tmp_path / "p", "date", [date(2024, 1, 1), date(2024, 2, 20), None], partition_by=["born"])
    assert open_snapshot(by_day.uri).scan().files().num_rows == 2
    assert ids(by_day) == [1, 2]


def test_each_scan_has_its_own_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = build(tmp_path, "timestamp", [NOW])
    snapshot = open_snapshot(table.uri)
    for days, rows in ((0, 1), (30, 1), (31, 0)):
        later = int((NOW + timedelta(days=days)).timestamp())
        monkeypatch.setattr(time, "time_ns", lambda seconds=later: seconds * 10**9)
        assert snapshot.scan().to_table().num_rows == rows


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("30 days", timedelta(30)),
        ("1 week", timedelta(7)),
        ("INTERVAL 12 Hours", timedelta(hours=12)),
        ("0 seconds", timedelta(0)),
    ],
)
def test_interval_text(text: str, wanted: timedelta) -> None:
    assert parse_interval(text) == wanted


@pytest.mark.parametrize("text", ["", "days", "-1 days", "1.5 days", "1 month", "1 day 2 hours"])
def test_interval_that_is_none_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a number and a unit"):
        time_to_live(table_state([NAME], FIELDS, {**TTL, INTERVAL: text}))


def test_properties_that_do_not_fit_the_table_are_rejected() -> None:
    with pytest.raises(ColumnNotFoundError, match="gone"):
        time_to_live(table_state([NAME], FIELDS, {**TTL, COLUMN: "gone"}))
    with pytest.raises(SchemaError, match=r"id of example\.ttl\.column has type long"):
        time_to_live(table_state([NAME], FIELDS, {**TTL, COLUMN: "id"}))
    with pytest.raises(InvalidArgumentError, match="Only one of"):
        time_to_live(table_state([NAME], FIELDS, {INTERVAL: "1 day"}))


def test_filter_compares_with_the_moment_it_was_given() -> None:
    found = row_filter(TimeToLive(("born",), "timestamp", timedelta(days=30)), int(NOW.timestamp()) * 10**6)
    born = Column(("born",))
    alive = Call(">=", (born, Literal(EDGE, PrimitiveType("timestamp"))))
    assert found.expression == Call("or", (Call("isnull", (born,)), alive))


# --- writing ---


ARROW = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "date": pa.date32()}


def written(path: Path, kind: str, values: list[Any], partitioned: bool = False) -> str:
    """Create a table by its properties and append each value in a commit of its own."""
    uri = str(path / "w")
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("born", ARROW[kind])]))
    create_table(open_context(uri), schema, properties=TTL, partition_by=["born"] if partitioned else ())
    for i, value in enumerate(values):
        rows = pa.table({"id": [i], "born": pa.array([value], ARROW[kind])})
        write_table(open_context(uri), rows, WriteOptions(mode="append"))
    return uri


def test_property_provides_the_feature(tmp_path: Path) -> None:
    state = open_snapshot(written(tmp_path, "date", [])).state
    assert state.is_active(NAME)
    assert NAME in state.reader_features


@pytest.mark.parametrize(
    "properties", [{**TTL, COLUMN: "gone"}, {**TTL, COLUMN: "id"}, {**TTL, INTERVAL: "soon"}, {INTERVAL: "1 day"}]
)
def test_table_whose_properties_do_not_fit_is_not_created(tmp_path: Path, properties: dict[str, str]) -> None:
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("born", pa.date32())]))
    with pytest.raises((ColumnNotFoundError, SchemaError, InvalidArgumentError)):
        create_table(open_context(str(tmp_path / "n")), schema, properties=properties)
    assert not (tmp_path / "n" / "_delta_log").exists() or not list((tmp_path / "n" / "_delta_log").glob("*.json"))


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_files_of_expired_rows_leave_the_table_and_no_others(tmp_path: Path, kind: str) -> None:
    old = EDGE - timedelta(milliseconds=2)
    values = [v.replace(tzinfo=None) if v and kind == "timestamp_ntz" else v for v in (NOW, EDGE, old, None)]
    uri = written(tmp_path, kind, values)
    before = open_snapshot(uri).scan(["id"]).to_table().column("id").to_pylist()
    assert expire(open_snapshot(uri)) == 1
    snapshot = open_snapshot(uri)
    assert sorted(snapshot.scan(["id"]).to_table().column("id").to_pylist()) == sorted(before) == [0, 1, 3]
    assert snapshot.files.count == 3
    assert expire(snapshot) == 0
    assert open_snapshot(uri).version == snapshot.version


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("partitioned", [False, True])
def test_days_expire_as_a_whole(tmp_path: Path, partitioned: bool) -> None:
    uri = written(tmp_path, "date", [date(2024, 1, 30), date(2024, 1, 31), None], partitioned)
    assert expire(open_snapshot(uri)) == 1
    assert sorted(open_snapshot(uri).scan(["id"]).to_table().column("id").to_pylist()) == [1, 2]


def test_table_without_a_time_to_live_has_nothing_to_expire(tmp_path: Path) -> None:
    uri = TableBuilder(tmp_path / "t").create({"id": "long"}, features=[NAME]).uri
    assert expire(open_snapshot(uri)) == 0
