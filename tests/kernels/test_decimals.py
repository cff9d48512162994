"""Casts of decimals: each value is exact or raises, wherever it is in its array."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.kernels.decimals import checked_cast, read_decimals, round_half_up

EXACT = Context(prec=400)


@st.composite
def types(draw: Any, wide: bool = False) -> pa.DataType:
    precision = draw(st.integers(1, 76 if wide else 38))
    scale = draw(st.integers(0, precision))
    return (pa.decimal256 if wide else pa.decimal128)(precision, scale)


def values_of(t: pa.DataType) -> st.SearchStrategy[Decimal]:
    """Return values with any number of digits, which lie near the limits more often than chance has it."""
    near = st.builds(lambda n, d: min(10**n + d, 10**t.precision - 1), st.integers(0, t.precision), st.integers(-6, 5))
    digits = st.integers(0, t.precision).flatmap(lambda n: st.integers(0, 10**n - 1)) | near
    return st.builds(
        lambda n, sign: Decimal(sign * n).scaleb(-t.scale, EXACT), digits.map(abs), st.sampled_from((1, -1))
    )


def fitting(value: Decimal, t: pa.DataType, rounding: str | None = None) -> Decimal | None:
    """Return a value as a decimal type holds it; None if it does not."""
    found = value.quantize(Decimal(1).scaleb(-t.scale), rounding or ROUND_HALF_UP, EXACT)
    inexact = rounding is None and found != value
    return None if inexact or (found and found.adjusted() >= t.precision - t.scale) else found


def check(cast: Any, array: pa.Array, expected: list[Decimal | None]) -> None:
    """Check that a cast returns these values, or raises if one of them is None."""
    if None in expected:
        with pytest.raises(pa.ArrowInvalid):
            cast(array)
    else:
        assert cast(array).to_pylist() == expected


@given(st.data())
def test_cast_between_decimals_is_exact_or_raises(data: Any) -> None:
    source, target = data.draw(types(wide=data.draw(st.booleans()))), data.draw(types())
    values = data.draw(st.lists(values_of(source), min_size=1, max_size=4))
    expected = [fitting(v, target) for v in values]
    check(lambda x: checked_cast(x, target), pa.array(values, source), expected)
    check(lambda x: pa.array([checked_cast(x[0], target).as_py()]), pa.array(values[:1], source), expected[:1])


@given(st.data())
def test_rounding_is_half_up_or_raises(data: Any) -> None:
    source, target = data.draw(types()), data.draw(types())
    values = data.draw(st.lists(values_of(source), min_size=1, max_size=4))
    expected = [fitting(v, target, ROUND_HALF_UP) for v in values]
    check(lambda x: round_half_up(x, target), pa.array(values, source), expected)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-128, 127), min_size=1, max_size=4), types())
def test_cast_of_integers_is_exact_or_raises(values: list[int], target: pa.DataType) -> None:
    check(
        lambda x: checked_cast(x, target), pa.array(values, pa.int64()), [fitting(Decimal(v), target) for v in values]
    )


@given(st.data())
def test_text_is_read_exactly_or_raises(data: Any) -> None:
    source, target = data.draw(types(wide=data.draw(st.booleans()))), data.draw(types())
    values = data.draw(st.lists(values_of(source), min_size=1, max_size=4))
    text = pa.array([data.draw(st.sampled_from((str(v), format(v, "f"), f"{v:E}"))) for v in values])
    check(lambda x: read_decimals(x, target), text, [fitting(v, target) for v in values])


@pytest.mark.parametrize("text", ["", "-", "1_0", "nan", "Infinity", "1e", "1e400", "1e-40", "x" * 50, "٣" * 40])
def test_text_that_is_no_value_of_the_type_raises(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        read_decimals(pa.array([text, "1"]), pa.decimal128(38, 2))


@pytest.mark.parametrize("text", ["1E-69", "1E-39", "123456E-75", f"0.{'0' * 68}1", f"1.{'0' * 68}1"])
@pytest.mark.parametrize("target", [pa.decimal128(1, 0), pa.decimal128(38, 0), pa.decimal128(38, 37)])
def test_text_with_digits_far_below_the_scale_raises(text: str, target: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        read_decimals(pa.array([text]), target)


def test_nulls_stay_null() -> None:
    target = pa.decimal128(12, 1)
    for made in (
        read_decimals(pa.array([None, "1.5"]), target),
        round_half_up(pa.array([None, Decimal("1.45")]), target),
        checked_cast(pa.array([None, Decimal("1.5")], pa.decimal128(38, 1)), target),
    ):
        assert made.to_pylist() == [None, Decimal("1.5")]
