"""Arrow arrays and NumPy arrays over each other's memory, against PyArrow's own conversions."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.arrow_buffers import (
    array_of,
    bool_array,
    distinct_numbers,
    holds_bytes,
    is_valid,
    mask_of,
    null_array,
    nulls_of,
    number_array,
    scalar_of,
    string_bytes,
    strings_of,
    values_of,
)

NUMBERS = (
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.uint16(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
)


@given(st.lists(st.none() | st.booleans()), st.integers(0, 20), st.booleans())
def test_mask_of_equals_values_with_nulls_filled(values: list[bool | None], start: int, null: bool) -> None:
    array = pa.array(values, pa.bool_()).slice(start)
    assert mask_of(array, null).tolist() == [null if v is None else v for v in values[start:]]


STRUCT = pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})


@pytest.mark.parametrize("null", [False, True])
def test_mask_of_type_null_is_null_everywhere(null: bool) -> None:
    assert mask_of(pa.nulls(3), null).tolist() == [null] * 3


@given(st.lists(st.booleans()))
def test_bool_array_equals_pyarrows(values: list[bool]) -> None:
    array = bool_array(np.array(values, bool))
    array.validate(full=True)
    assert array.to_pylist() == values


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_numbers_pass_through_both_ways_in_slices(type: pa.DataType) -> None:
    array = (
        pa.array([1, 2, None, 4, 5], pa.int64()).cast(type if not pa.types.is_date32(type) else pa.int32()).view(type)
    )
    part = array.slice(1, 3)
    numbers = values_of(part)
    assert [n for n, v in zip(numbers.tolist(), is_valid(part).tolist(), strict=True) if v] == [2, 4]
    back = number_array(numbers, type, is_valid(part))
    back.validate(full=True)
    assert back.equals(part)


def test_values_of_a_dictionary_are_its_codes() -> None:
    coded = pa.array(["b", "a", "b"]).dictionary_encode()
    assert values_of(coded).tolist() == [0, 1, 0]


def test_values_of_strings_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="string"):
        values_of(pa.array(["a"]))


def test_values_of_all_null_column_without_data_are_zeros() -> None:
    assert values_of(pa.Array.from_buffers(pa.int64(), 0, [None, None])).tolist() == []


@given(st.lists(st.none() | st.text()))
def test_strings_of_equals_pyarrows(texts: list[str | None]) -> None:
    texts = [t if t is None else t.encode("utf-8", "replace").decode() for t in texts]
    array = strings_of(texts)
    array.validate(full=True)
    assert array.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (None, pa.int64()), (None, pa.string()), (True, pa.bool_()), (-5, pa.int8()), (2**63 - 1, pa.int64()),
        (255, pa.uint8()), (1.5, pa.float64()), (1.5, pa.float32()), (1e300, pa.float32()), (3, pa.float64()),
        ("ä", pa.string()), ("", pa.string()), (b"\xff", pa.binary()), ("text", pa.large_string()),
        (date(1969, 12, 31), pa.date32()), (date(2024, 2, 29), pa.date32()),
        (Decimal("-1.50"), pa.decimal128(5, 2)), (Decimal("1E+2"), pa.decimal128(5, 1)),
        (Decimal(0), pa.decimal128(38, 38)), (Decimal("-9" + "9" * 37), pa.decimal128(38, 0)),
    ],
    ids=str,
)  # fmt: skip
def test_scalar_of_equals_pyarrows(value: Any, type: pa.DataType) -> None:
    found = scalar_of(value, type)
    assert found.type == type
    assert found.equals(pa.scalar(value, type))


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([], pa.int64()),
        ([1, None, 3], pa.int16()),
        ([None, None], pa.string()),
        (["a", None, ""], pa.string()),
        ([b"a", None], pa.binary()),
        ([True, None, False], pa.bool_()),
        ([0.5, None], pa.float32()),
        ([Decimal("1.5"), None], pa.decimal128(9, 2)),
        ([date(2000, 1, 1), None], pa.date32()),
        ([1, None, 2.5], pa.float64()),
        ([None], pa.timestamp("us")),
        ([1, 2**70], pa.decimal128(38, 0)),
        ([[1, None], None, []], pa.list_(pa.int64())),
        ([(1,), [2, 3]], pa.list_(pa.int32())),
        ([{"a": 1, "b": [None, "x"]}, None, {"b": []}, {"c": 1}], STRUCT),
        ([{"a": "b"}, None, {}, [("c", None), ("d", "e")]], pa.map_(pa.string(), pa.string())),
        ([[{"a": 1}, None]], pa.list_(STRUCT)),
        ([{"s": {"a": 2, "b": None}}, {"s": None}], pa.struct({"s": STRUCT})),
        ([None, {"n": 1}], pa.struct([pa.field("n", pa.int64(), nullable=False)])),
        ([[("a", 1)]], STRUCT),
    ],
    ids=str,
)
def test_array_of_equals_pyarrows(values: list[Any], type: pa.DataType) -> None:
    found = array_of(values, type)
    found.validate(full=True)
    assert found.equals(pa.array(values, type))


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (128, pa.int8()),
        (Decimal("1.234"), pa.decimal128(5, 2)),
        (Decimal(1000), pa.decimal128(3, 0)),
        ("a", pa.int32()),
    ],
    ids=str,
)
def test_scalar_that_the_type_can_not_hold_is_rejected_as_by_pyarrow(value: Any, type: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)):
        scalar_of(value, type)


def test_timestamp_scalar_is_made_of_its_microseconds() -> None:
    assert scalar_of(1_000_001, pa.timestamp("us", "UTC")).value == 1_000_001


TEXTS = st.lists(st.none() | st.text(alphabet="a%:./", max_size=4), max_size=20)


@given(TEXTS, st.integers(0, 20), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_bytes_that_no_string_has_are_not_found(texts: list[str | None], start: int, kind: pa.DataType) -> None:
    array = pa.array(texts, kind).slice(start)
    rest = [t for t in texts[start:] if t is not None]
    for part in ("%", ":", ".."):
        found = holds_bytes(array, part.encode())
        assert found == (part in "".join(rest))
        assert found or not any(part in t for t in rest)
    assert holds_bytes(array, b"%", b":") == any("%" in t or ":" in t for t in rest)
    assert string_bytes(array).decode() == "".join(rest)


@pytest.mark.parametrize("count", [0, 1, 9, 100_000, 2_000_000])
@pytest.mark.parametrize(
    "kind",
    [
        *NUMBERS,
        pa.bool_(),
        pa.string(),
        pa.decimal128(9, 2),
        pa.struct([("a", pa.string()), ("b", pa.struct([("c", pa.int32())]))]),
        pa.map_(pa.string(), pa.string()),
        pa.list_(pa.int64()),
    ],
    ids=str,
)
def test_shared_nulls_equal_those_of_pyarrow(kind: pa.DataType, count: int) -> None:
    found = nulls_of(count, kind)
    found.validate(full=True)
    assert found.equals(pa.nulls(count, kind))
    assert found.null_count == count
    assert found.slice(count // 2).null_count == count - count // 2


def test_shared_nulls_take_no_memory() -> None:
    nulls_of(1000, pa.int64())
    before = pa.total_allocated_bytes()
    held = [nulls_of(100_000, pa.struct([("a", pa.int64()), ("b", pa.string())])) for _ in range(10)]
    assert pa.total_allocated_bytes() - before < 10_000
    assert len({a.buffers()[0].address for a in held}) == 1


@given(st.one_of(st.lists(st.integers(-3, 3)), st.lists(st.sampled_from([0.0, 1.5, -1.5, float("inf")]))))
def test_distinct_numbers_are_those_of_a_set_in_order(values: list[int] | list[float]) -> None:
    assert distinct_numbers(
        np.array(values, np.float64 if any(isinstance(v, float) for v in values) else np.int64)
    ).tolist() == sorted(set(values))


@pytest.mark.parametrize(
    "t",
    [
        pa.null(), pa.bool_(), pa.int8(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(38, 4),
        pa.string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int32()), pa.large_string(),
        pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()), pa.binary(3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_nulls_of_each_type(t: pa.DataType, n: int) -> None:
    found = null_array(t, n)
    found.validate(full=True)
    assert found.type == t
    assert found.null_count == n
    assert found.to_pylist() == [None] * n
