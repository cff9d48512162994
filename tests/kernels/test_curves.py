"""Curves through columns: each cell once, Hilbert to neighbours only; ranges of values that never fall."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import curves
from delta_core.kernels.curves import Ranges, cell_ranks, cells_of, curve_bits, radix_order

SHAPES = [(1, 4), (2, 1), (2, 2), (2, 8), (3, 3), (4, 4), (5, 2), (16, 1)]


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
@pytest.mark.parametrize(("columns", "bits"), SHAPES)
def test_curve_meets_each_cell_once(curve: Any, columns: int, bits: int) -> None:
    ranks = cell_ranks(curve, columns, bits)
    assert np.array_equal(np.sort(ranks), np.arange(1 << (columns * bits)))


@pytest.mark.parametrize(("columns", "bits"), SHAPES)
def test_hilbert_curve_steps_to_neighbours_only(columns: int, bits: int) -> None:
    cells = np.argsort(cell_ranks("hilbert", columns, bits))
    axes = [(cells >> (bits * (columns - 1 - i))) & ((1 << bits) - 1) for i in range(columns)]
    steps = sum(np.abs(np.diff(axis)) for axis in axes)
    assert (np.asarray(steps) == 1).all()


def test_z_order_interleaves_bits_with_the_first_column_highest() -> None:
    # cells of two columns of two bits: 0b01 and 0b10 of the first, then of the second
    ranks = cell_ranks("zorder", 2, 2)
    assert [int(ranks[c]) for c in (0b0100, 0b1000, 0b0001, 0b0010, 0b1101)] == [0b0010, 0b1000, 0b0001, 0b0100, 0b1011]


def test_too_many_columns_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="17 columns"):
        curve_bits(17, 1)
    assert (curve_bits(2, 1), curve_bits(16, 1), curve_bits(2, 1 << 20)) == (8, 1, 11)


DAY = datetime.date(2024, 1, 1)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int32(), st.integers(0, 3)),
    "double": (pa.float64(), st.floats()),
    "even": (pa.float64(), st.integers(0, 10_000).map(lambda v: v / 7)),
    "decimal": (pa.decimal128(38, 2), st.decimals(-1000, 1000, places=2)),
    "date": (pa.date32(), st.integers(0, 9999).map(lambda d: DAY + datetime.timedelta(d))),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text(max_size=5)),
    "binary": (pa.binary(), st.binary(max_size=5)),
}


def _sort_key(value: Any) -> Any:
    if isinstance(value, float):
        return (value != value, value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data(), bits=st.integers(1, 8), num_sampled=st.integers(0, 40))
def test_ranges_rise_with_values_and_nulls_come_first(kind: str, data: Any, bits: int, num_sampled: int) -> None:
    kind_of_array, values = VALUES[kind]
    rows = data.draw(st.lists(st.none() | values, max_size=40))
    array = pa.array(rows, kind_of_array)
    numbers = Ranges(array.slice(0, num_sampled), bits).numbers(array)
    assert len(numbers) == len(rows)
    assert all(n == 0 for n, v in zip(numbers, rows, strict=True) if v is None)
    ordered = sorted((_sort_key(v), int(n)) for n, v in zip(numbers, rows, strict=True) if v is not None)
    found = [n for _, n in ordered]
    assert found == sorted(found)
    assert max(found, default=0) < 1 << bits


@pytest.mark.parametrize("skew", [1, 6], ids=["even", "skewed"])
def test_ranges_have_about_as_many_rows_each(skew: int) -> None:
    values = np.random.default_rng(1).random(100_000) ** skew
    numbers = Ranges(pa.array(values[:50_000]), 4).numbers(pa.array(values))
    counts = np.bincount(numbers, minlength=16)
    assert counts.min() > 5_500
    assert counts.max() < 7_000


@pytest.mark.parametrize(
    "type", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.string())]
)
def test_values_without_an_order_are_rejected(type: pa.DataType) -> None:
    with pytest.raises(InvalidArgumentError, match="an order"):
        Ranges(pa.array([], type), 4)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_radix_order_is_a_stable_sort(keys: list[int]) -> None:
    found = radix_order(np.array(keys, np.uint32), 32)
    assert found.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])


def test_cell_has_the_first_column_in_its_highest_bits() -> None:
    numbers = [np.array([1, 2], np.uint32), np.array([3, 0], np.uint32)]
    assert cells_of(numbers, 4).tolist() == [0x13, 0x20]


def test_decimals_are_compared_by_value() -> None:
    array = pa.array([Decimal("9.5"), Decimal("10.0"), None], pa.decimal128(5, 1))
    low, high, null = Ranges(array, 1).numbers(array).tolist()
    assert (low, high, null) == (0, 1, 0)


@pytest.mark.parametrize("is_new", [True, False], ids=["PyArrow's search", "a sort"])
def test_texts_that_equal_a_bound_are_in_the_range_above_it(monkeypatch: pytest.MonkeyPatch, is_new: bool) -> None:
    if not is_new:
        monkeypatch.setattr(curves, "_search_sorted", None)
    sample = pa.array(["a", "b", "c", "d"])
    values = pa.array(["d", None, "b", "aa", "c", "a"])
    assert Ranges(sample, 1).numbers(values).tolist() == [1, 0, 0, 0, 1, 0]
