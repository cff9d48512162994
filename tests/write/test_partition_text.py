"""Partition values as text: the reader finds the same values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import SchemaMismatchError, UnsupportedOperationError
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.write.partition_text import format_partition_values
from delta_core.schema.types import PrimitiveType

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-128, 127),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(min_size=1),
    "binary": st.text(min_size=1).map(str.encode),
    "date": st.dates(),
    "decimal(10,2)": st.decimals(-99_999_999, 99_999_999, places=2),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)),
    "timestamp_ntz": st.datetimes(),
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_text_reads_back_as_the_value(name: str, data: st.DataObject) -> None:
    t = PrimitiveType(name)
    values = pa.array([data.draw(VALUES[name]), None], t.to_arrow())
    text = format_partition_values(values, t)
    assert text[1] is None
    assert parse_partition_values(pa.array(text, pa.string()), t).equals(values)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("timestamp", dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), "2024-01-02T03:04:05.000006Z"),
        ("timestamp_ntz", dt.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
        ("timestamp_ntz", dt.datetime(1960, 1, 2, 3, 4, 5, 6), "1960-01-02 03:04:05.000006"),
        ("boolean", True, "true"),
        ("double", 1e10, "1.0E10"),
        ("double", 1.0, "1.0"),
        ("float", 0.1, "0.1"),
        ("double", float("nan"), "NaN"),
        ("double", float("-inf"), "-Infinity"),
        ("decimal(5,2)", Decimal("1.5"), "1.50"),
        ("string", "", None),
        ("binary", b"", None),
    ],
)
def test_text_is_the_protocols(name: str, value: Any, text: str | None) -> None:
    t = PrimitiveType(name)
    assert format_partition_values(pa.array([value], t.to_arrow()), t) == [text]


@pytest.mark.parametrize("days", [-800_000, 3_000_000, -719_528])
def test_days_beyond_pythons_calendar_read_back(days: int) -> None:
    t = PrimitiveType("date")
    values = pa.array([days], pa.int32()).cast(pa.date32())
    assert parse_partition_values(pa.array(format_partition_values(values, t)), t).equals(values)


def test_bytes_that_are_no_text_are_rejected() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'p'.*not UTF-8"):
        format_partition_values(pa.array([b"\xff"]), PrimitiveType("binary"), "p")


def test_text_that_is_no_utf8_is_rejected() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(SchemaMismatchError, match=r"'c'.*UTF-8"):
        format_partition_values(broken, PrimitiveType("string"), "c")


def test_type_that_can_not_partition_is_rejected() -> None:
    with pytest.raises(UnsupportedOperationError, match="variant"):
        format_partition_values(pa.array([None]), PrimitiveType("variant"), "p")
