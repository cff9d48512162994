"""Parsed statistics as text again."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.kernel.log.stats_text import statistics_text

BOUNDS = pa.struct(
    [
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("m", pa.decimal128(20, 3)),
        ("raw", pa.binary()),
        ("deep", pa.struct([("x", pa.bool_())])),
    ]
)
STATS = pa.struct([("numRecords", pa.int64()), ("minValues", BOUNDS), ("tightBounds", pa.bool_())])


def text_of(*values: Any) -> list[Any]:
    found = statistics_text(pa.array(values, STATS))
    assert found.type == pa.string()
    return [None if t is None else json.loads(t, parse_float=Decimal) for t in found.to_pylist()]


def test_every_type_has_its_text() -> None:
    low = {
        "l": -5,
        "f": 0.5,
        "s": 'a"\n',
        "day": dt.date(1969, 12, 31),
        "m": Decimal("-12.300"),
        "raw": b"x",
        "deep": {"x": True},
        "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
        "ntz": dt.datetime(2024, 2, 29, 1, 2, 3, 4_567),
    }
    (found,) = text_of({"numRecords": 3, "minValues": low, "tightBounds": False})
    assert found == {
        "numRecords": 3,
        "tightBounds": False,
        "minValues": {
            "l": -5,
            "f": Decimal("0.5"),
            "s": 'a"\n',
            "day": "1969-12-31",
            "m": Decimal("-12.300"),
            "deep": {"x": True},
            "ts": "1969-12-31T23:59:59.999Z",
            "ntz": "2024-02-29T01:02:03.004",
        },
    }


def test_nulls_are_left_out() -> None:
    assert text_of(None, {"numRecords": 1, "minValues": None}, {"minValues": {"deep": {}}}) == [
        None,
        {"numRecords": 1},
        {"minValues": {"deep": {}}},
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_bounds_that_json_lacks_are_unknown(value: float) -> None:
    assert text_of({"minValues": {"f": value, "l": 1}}) == [{"minValues": {"l": 1}}]


def test_no_rows_return_no_texts() -> None:
    assert text_of() == []
