"""Statistics text: bounds hold whatever the values, and readers of JSON understand them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.engines.records import ColumnStatistics
from delta_core.kernel.write.stats import statistics_json, truncate_max, truncate_min
from delta_core.kernels.stats import StatField, parse_stats

#: Texts that share long prefixes and hold the characters around the tie-breakers.
TEXTS = st.text(st.sampled_from(["a", "b", "~", "\x7f", "\x80", "é", "\ud7ff", "\ue000", "\U0001f600", "\U0010ffff"]))


def text_of(t: pa.DataType, low: Any, high: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        statistics_json(9, [ColumnStatistics(("c",), 1, low, high)], {("c",): t}), parse_float=Decimal
    )
    return found


@given(TEXTS, st.integers(0, 40))
def test_truncated_text_bounds_hold_in_utf8_order(text: str, length: int) -> None:
    assert truncate_min(text, length).encode() <= text.encode()
    high = truncate_max(text, length)
    assert high is None or text.encode() <= high.encode()


@given(st.text(), st.text(), st.integers(1, 5))
def test_truncated_bounds_keep_order_of_any_text(low: str, high: str, length: int) -> None:
    low, high = sorted([low, high], key=str.encode)
    cut = truncate_max(high, length)
    assert truncate_min(low, length).encode() <= low.encode()
    assert cut is None or high.encode() <= cut.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 32, "x" * 32),
        ("x" * 33, "x" * 32 + "\x7f"),
        ("x" * 32 + "\x7f", "x" * 32 + "\U0010ffff"),
        ("x" * 32 + "é", "x" * 32 + "\U0010ffff"),
        ("x" * 32 + "\U0010ffff", "x" * 32 + "\U0010ffff"),
        ("x" * 32 + "\U0010ffff" + "a", "x" * 32 + "\U0010ffff" + "\x7f"),
        ("x" * 32 + "\U0010ffff" * 40, None),
    ],
)
def test_longest_texts_get_the_tie_breaker_above_what_was_dropped(text: str, expected: str | None) -> None:
    assert truncate_max(text) == expected


def test_maximum_that_no_short_text_reaches_is_left_out_alone() -> None:
    found = text_of(pa.string(), b"a", ("x" * 32 + "\U0010ffff" * 40).encode())
    assert found["minValues"] == {"c": "a"}
    assert found["maxValues"] == {}


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_998_000))
def test_timestamp_bounds_are_rounded_outwards_to_ms(micros: int) -> None:
    column = ColumnStatistics(("c",), 0, micros, micros)
    stats = pa.array([statistics_json(1, [column], {("c",): pa.timestamp("us", "UTC")})])
    low, high = parse_stats(stats, [StatField((k, "c"), "timestamp") for k in ("minValues", "maxValues")])
    assert low.cast(pa.int64())[0].as_py() == micros // 1000 * 1000
    assert high.cast(pa.int64())[0].as_py() == -(-micros // 1000) * 1000


def test_times_that_readers_can_not_hold_are_left_out() -> None:
    found = text_of(pa.timestamp("us"), -(2**62), 2**62)
    assert found["minValues"] == found["maxValues"] == {}
    assert text_of(pa.date32(), -10_000_000, 0)["maxValues"] == {"c": "1970-01-01"}


def test_timestamp_without_zone_has_none_in_its_text() -> None:
    assert text_of(pa.timestamp("us"), 0, 1)["maxValues"] == {"c": "1970-01-01T00:00:00.001"}
    assert text_of(pa.timestamp("us", "UTC"), 0, 0)["minValues"] == {"c": "1970-01-01T00:00:00.000Z"}


@given(st.integers(-(10**37), 10**37), st.integers(0, 37))
def test_decimals_are_exact(unscaled: int, scale: int) -> None:
    found = statistics_json(1, [ColumnStatistics(("c",), 0, unscaled, unscaled)], {("c",): pa.decimal128(38, scale)})
    text = found.split('"minValues":{"c":')[1].split("}")[0]
    assert Decimal(text) == Decimal(f"{unscaled}e-{scale}")
    json.loads(found)


@pytest.mark.parametrize(("low", "high"), [(float("-inf"), 1.0), (1.0, float("inf"))])
def test_infinite_bound_is_left_out_and_the_other_kept(low: float, high: float) -> None:
    found = text_of(pa.float64(), low, high)
    kept = {**found["minValues"], **found["maxValues"]}
    assert [float(v) for v in kept.values()] == [1.0]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back_equal(value: float) -> None:
    assert float(text_of(pa.float64(), value, value)["minValues"]["c"]) == value


def test_names_and_texts_are_escaped() -> None:
    column = ColumnStatistics(('a"\\', "b\n"), 0, b'"\x01', b'"\x01')
    found = json.loads(statistics_json(1, [column], {column.path: pa.string()}))
    assert found["minValues"] == {'a"\\': {"b\n": '"\x01'}}


def test_file_without_measured_columns_has_its_count_only() -> None:
    assert json.loads(statistics_json(3, [], {})) == {"numRecords": 3, "tightBounds": True}


def test_dates_are_read_by_our_reader() -> None:
    day = (dt.date(1582, 10, 4) - dt.date(1970, 1, 1)).days
    stats = pa.array([statistics_json(1, [ColumnStatistics(("c",), 0, day, day)], {("c",): pa.date32()})])
    assert parse_stats(stats, [StatField(("minValues", "c"), "date")])[0][0].as_py() == dt.date(1582, 10, 4)
