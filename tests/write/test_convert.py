"""Columns as they come to the table's types: nothing is lost, and what does not fit is named."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import SchemaMismatchError
from delta_core.kernel.write.convert import conversion

UTC = pa.timestamp("us", "UTC")
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])


def converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    convert = conversion(array.type, wanted, ("c",))
    return array if convert is None else convert(array)


DECIMALS = [getattr(pa, name) for name in ("decimal32", "decimal64") if hasattr(pa, name)]


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array(["a", None], pa.large_string()), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array(["a", "a", None]).dictionary_encode(), pa.string()),
        (pa.array([b"a"], pa.binary(1)), pa.binary()),
        (pa.array([1, None, 255], pa.uint8()), pa.int16()),
        (pa.array([1, 2**40], pa.uint64()), pa.int64()),
        (pa.array([1.0, None]), pa.int32()),
        (pa.array([1, 2]), pa.float64()),
        (pa.array([1, None]), pa.decimal128(5, 2)),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 1)), pa.decimal128(5, 2)),
        # PyArrow 18 has no such decimals
        *((pa.array([Decimal("1.5")], t(5, 1)), pa.decimal128(5, 2)) for t in DECIMALS),
        (pa.array([0, 86_400_000], pa.date64()), pa.date32()),
        (pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns")), pa.date32()),
        (pa.array([1_000, None], pa.timestamp("ns", "Europe/Paris")), UTC),
        (pa.array([1], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([None, None], pa.null()), pa.list_(pa.int32())),
        (pa.array([[1], None, []], pa.large_list(pa.int8())), pa.list_(pa.int64())),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.list_(pa.int64())),
        (pa.array([[1], None, []], pa.list_view(pa.int8())), pa.list_(pa.int64())),
        (pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int8())), pa.map_(pa.string(), pa.int64())),
        (pa.array([{"B": "x", "a": 1}, None, {"B": None, "a": 2}]), STRUCT),
        (pa.array([{"a": 1}, None]), STRUCT),
    ],
    ids=lambda x: str(x.type if isinstance(x, pa.Array) else x),
)
def test_values_arrive_whole_in_slices_too(array: pa.Array, wanted: pa.DataType) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {"a": value.get("a"), "b": value.get("B")}
        if isinstance(value, dt.datetime) and pa.types.is_date(wanted):
            return value.date()
        return value

    found = converted(array, wanted)
    assert found.type.equals(wanted)
    assert found.to_pylist() == [plain(v) for v in array.to_pylist()]
    for start in range(len(array)):
        assert converted(array[start:], wanted).to_pylist() == found.to_pylist()[start:]


VIEWS = (pa.string_view(), pa.binary_view())


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize(
    "kind", ["list", "large_list", "list_view", "large_list_view", "fixed", "map", "struct", "nested"]
)
def test_slices_of_nested_views_arrive_whole(view: pa.DataType, kind: str) -> None:
    plain = pa.string() if view == pa.string_view() else pa.binary()
    one, two = ("a", "more than twelve bytes") if plain == pa.string() else (b"a", b"more than twelve bytes")
    lists = [[one, two], None, [two, None], [], [None, one]]
    if kind == "map":
        array = pa.array(
            [None if v is None else [(str(i), e) for i, e in enumerate(v)] for v in lists], pa.map_(view, view)
        )
        wanted: pa.DataType = pa.map_(plain, plain)
    elif kind in ("struct", "nested"):
        rows = [None if v is None else [{"f": e} for e in v] for v in lists]
        inner, wanted = (pa.struct([("f", t)]) for t in (view, plain))
        if kind == "nested":
            rows = [None if v is None else [[e], None] for v in rows for e in v or [None]]
            inner, wanted = pa.list_(inner), pa.list_(wanted)
        array, wanted = pa.array(rows, pa.list_(inner)), pa.list_(wanted)
    else:
        fixed = [v if v is None or len(v) == 2 else [one, one] for v in lists]
        made = {"list": pa.list_, "fixed": lambda t: pa.list_(t, 2)}.get(kind) or getattr(pa, kind)
        array, wanted = pa.array(fixed if kind == "fixed" else lists, made(view)), pa.list_(plain)
    for start in range(len(array) + 1):
        for stop in range(start, len(array) + 1):
            part = array[start:stop]
            found = converted(part, wanted)
            found.validate(full=True)
            assert (found.type, found.to_pylist()) == (wanted, part.to_pylist())


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_values_below_null_lists_are_left_out(view: pa.DataType) -> None:
    texts = pa.array([b"a", b"\xff", b"c"], pa.binary()).cast(pa.binary_view())
    if view == pa.string_view():
        texts = pa.array(["a", "hidden", "c"], view)
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), texts, mask=pa.array([False, True, False]))
    found = converted(hidden[:2], pa.list_(pa.string() if view == pa.string_view() else pa.binary()))
    assert found.to_pylist() == hidden[:2].to_pylist()
    numbers = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array([1, 1000, 3]), mask=pa.array([False, True, False])
    )
    assert converted(numbers[:2], pa.list_(pa.int8())).to_pylist() == [[1], None]


def test_run_ends_are_decoded() -> None:
    array = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    assert converted(array, pa.string()).to_pylist() == ["a", "a", "b"]


def test_entries_make_a_map() -> None:
    entries = pa.array([[{"key": "a", "value": 1}], None, []])
    found = converted(entries, pa.map_(pa.string(), pa.int32()))
    assert found.to_pylist() == [[("a", 1)], None, []]


def test_instant_keeps_its_moment_whatever_its_zone() -> None:
    moment = dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)
    assert converted(pa.array([moment], pa.timestamp("ms", "Asia/Tokyo")), UTC)[0].as_py() == moment


def test_double_is_rounded_to_a_float() -> None:
    assert converted(pa.array([0.1, None]), pa.float32()).equals(pa.array([0.1, None], pa.float32()))


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([300]), pa.int8()),
        (pa.array([2**63], pa.uint64()), pa.int64()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1)),
        (pa.array([Decimal(105), Decimal(1)], pa.decimal128(38, 0)), pa.decimal128(38, 37)),
        (pa.array([105, 1]), pa.decimal128(38, 37)),
        (pa.array([Decimal(105)], pa.decimal256(76, 0)), pa.decimal128(38, 38)),
        (pa.array([100_000]), pa.decimal128(5, 2)),
        (pa.array([1_001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([1_000], pa.timestamp("us")), pa.date32()),
        (pa.array([[300]]), pa.list_(pa.int8())),
        (pa.array([float("nan")]), pa.int64()),
    ],
    ids=lambda x: str(x.type if isinstance(x, pa.Array) else x),
)
def test_value_that_would_change_is_rejected_by_column(array: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"Column c"):
        converted(array, wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.float64(), pa.decimal128(5, 2)),
        (pa.binary(), pa.string()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us", "Europe/Paris"), pa.timestamp("us")),
        (pa.time64("us"), pa.timestamp("us")),
        (pa.list_(pa.string()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.int64()), ("z", pa.int64())]), STRUCT),
        (pa.int64(), pa.null()),
        (pa.int64(), STRUCT),
        (pa.struct([("a", pa.int64()), ("A", pa.int64())]), STRUCT),
        (pa.int64(), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_types_that_do_not_fit_are_rejected_before_data_moves(found: pa.DataType, wanted: pa.DataType) -> None:
    if pa.types.is_null(wanted):
        with pytest.raises(SchemaMismatchError, match="not null"):
            converted(pa.array([1]), wanted)
        return
    with pytest.raises(SchemaMismatchError, match=r"Column c.* comes as"):
        conversion(found, wanted, ("c",))


def test_garbage_under_a_null_struct_does_no_harm() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1, 1000])], names=["a"], mask=pa.array([False, True]))
    found = converted(hidden, pa.struct([("a", pa.int8())]))
    assert found.to_pylist() == [{"a": 1}, None]


def test_variant_without_its_parts_is_rejected() -> None:
    variant = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    whole = pa.array([{"metadata": b"m", "value": b"v"}, None])
    assert converted(whole, variant).to_pylist() == whole.to_pylist()
    with pytest.raises(SchemaMismatchError, match=r"c\.value.*null"):
        converted(pa.array([{"metadata": b"m", "value": None}]), variant)
