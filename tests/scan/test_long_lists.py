"""IN lists of many values: the rows are those of a set in Python, and the work is not done value by value."""

from __future__ import annotations

import datetime as dt
import math
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core.expressions import bind, format_sql, parse_sql
from delta_core.expressions.ast import Call, Values, column, literal
from delta_core.expressions.filters import from_filters
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.schema.fields import Schema
from delta_core.table.writer import write_deltalake

ROWS = 600
DAY = dt.date(2020, 1, 1)
MOMENT = dt.datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)


def every_type() -> dict[str, tuple[pa.DataType, list[Any]]]:
    """Values of each type in ascending order, so that each file holds a stretch of them."""
    step = range(ROWS)
    return {
        "i": (pa.int32(), [3 * n - 700 for n in step]),
        "l": (pa.int64(), [3 * n + 2**40 for n in step]),
        "y": (pa.int8(), [n * 255 // ROWS - 128 for n in step]),
        "f": (pa.float64(), [n / 4 - 20 for n in step]),
        "g": (pa.float32(), [n / 10 for n in step]),
        "s": (pa.string(), [f"é key {n:05d}" for n in step]),
        "d": (pa.date32(), [DAY + dt.timedelta(days=n) for n in step]),
        "t": (pa.timestamp("us", "UTC"), [MOMENT + dt.timedelta(microseconds=333 * n) for n in step]),
        "n": (pa.timestamp("us"), [(MOMENT + dt.timedelta(microseconds=333 * n)).replace(tzinfo=None) for n in step]),
        "c": (pa.decimal128(12, 3), [Decimal(n * 5 - 900) / 1000 for n in step]),
        "b": (pa.bool_(), [n % 2 == 0 for n in step]),
        "x": (pa.binary(), [b"k%05d" % n for n in step]),
    }


TYPES = every_type()


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Snapshot:
    """A table of ten files, every type in order, a null at the end of each file."""
    path = tmp_path_factory.mktemp("lists")
    for start in range(0, ROWS, 60):
        data = {name: pa.array([*values[start : start + 60], None], kind) for name, (kind, values) in TYPES.items()}
        write_deltalake(path, pa.table(data), mode="append")
    return open_snapshot(path)


def candidates(kind: pa.DataType, values: list[Any], count: int, seed: int) -> list[Any]:
    """Some values of a column, and others between and beyond them."""
    chosen = random.Random(seed).choices(values, k=count)
    return pa.array(chosen, kind).to_pylist() if pa.types.is_float32(kind) else chosen


@pytest.mark.parametrize("count", [1, 24, 25, 40, 2_000])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_are_those_of_a_set(table: Snapshot, name: str, count: int, nulls: bool) -> None:
    kind, values = TYPES[name]
    wanted = candidates(kind, values[100:250], count, count)
    listed: list[Any] = [*wanted, None] if nulls else wanted
    everything = table.scan(columns=[name]).to_table().column(name).to_pylist()
    expected = [v for v in everything if v in set(wanted)]
    assert table.scan(columns=[name], predicate=[(name, "in", listed)]).to_table().column(name).to_pylist() == expected
    others = [] if nulls else [v for v in everything if v is not None and v not in set(wanted)]
    assert (
        table.scan(columns=[name], predicate=[(name, "not in", listed)]).to_table().column(name).to_pylist() == others
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(set(TYPES) - {"b", "y", "x"})),
    start=st.integers(0, ROWS - 1),
    span=st.integers(1, 90),
    step=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_only_files_are_read_whose_bounds_hold_a_value(
    table: Snapshot, name: str, start: int, span: int, step: int, seed: int
) -> None:
    kind, values = TYPES[name]
    listed = pa.array(values, kind).to_pylist()[start : start + span * step : step]
    padded = listed * (25 // len(listed) + 1)
    random.Random(seed).shuffle(padded)
    scan = table.scan(columns=[name], predicate=[(name, "in", padded)])
    assert sorted(scan.to_table().column(name).to_pylist()) == listed
    holding = (
        {values.index(v) // 60 for v in listed} if name != "g" else {n // 60 for n in range(start, ROWS, step)[:span]}
    )
    # a timestamp's bounds are a millisecond wide: a neighbour may be read too
    assert len(holding) <= scan.files().num_rows <= len(holding) + (2 if name in "tn" else 0)


def many(values: Any) -> list[Any]:
    return [*values] * (26 // len(values) + 1)


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ([("i", "in", many([-700.0, -697.0, 0.5]))], 2),
        ([("l", "in", many([2**40, 5]))], 1),
        ([("y", "in", many([-128, 100_000]))], 3),
        ([("f", "in", many([-20, 0, 7]))], 3),
        ([("i", "in", many([2**40, -700]))], 1),
        ([("i", "in", many(["-700", " -697 "]))], 2),
        ([("c", "in", many([Decimal("-0.9"), Decimal("-0.8950")]))], 2),
        ([("c", "in", many([0, 1, 2]))], 3),
        ([("c", "in", many([0.1, 0.2]))], 2),
        ([("t", "in", many([dt.date(2020, 1, 1)]))], 0),
        ([("n", "in", many([MOMENT.replace(tzinfo=None)]))], 1),
        ([("d", "in", many([dt.datetime(2020, 1, 2)]))], 1),
        ([("s", "in", np.array(many(["é key 00001"])))], 1),
        ([("i", "in", np.array(many([-700])))], 1),
        ([("i", "in", pa.array(many([-700, None])))], 1),
        ([("i", "in", pa.chunked_array([many([-700]), [-697]]))], 2),
        ([("i", "in", pa.array(many([200]), pa.uint8()))], 1),
        ([("i", "in", set(range(-700, -600)))], 34),
        ([("x", "in", [b"k00001", *[None] * 30])], 1),
        ([("b", "in", [True, *[None] * 30])], 300),
        ([("s", "in", ["a\x1fb", *many(["é key 00001"])])], 1),
        ([("s", "in", ["é key 00001", *[None] * 30])], 1),
        (pc.field("i").isin(many([-700, -697])), 2),
        (pc.field("s").isin(many(["é key 00001"])), 1),
        (pc.field("i").isin(many([-700, None])), 11),
        (~pc.field("i").isin(many([-700])), 609),
    ],
)
def test_values_meet_the_column_in_a_common_type(table: Snapshot, predicate: Any, count: int) -> None:
    assert table.scan(predicate=predicate).to_table().num_rows == count


def test_nan_and_both_zeros_are_found(tmp_path: Path) -> None:
    values = [math.nan, 0.0, -0.0, None, 1.0]
    write_deltalake(tmp_path, pa.table({"f": values, "g": pa.array(values, pa.float32())}))
    for name in ("f", "g"):
        for padding in (30, 3_000):
            listed = [math.nan, -0.0, *(float(n) for n in range(5, padding))]
            assert open_snapshot(tmp_path).scan(predicate=[(name, "in", listed)]).count() == 3
            assert open_snapshot(tmp_path).scan(predicate=[(name, "in", listed[1:])]).count() == 2


def listed(head: str, values: Any, separator: str = ",") -> str:
    return f"{head}({separator.join(map(str, values))})"


LISTS = [
    listed("i in ", range(-700, 300, 3), ", "),
    listed("l not in", range(2**40, 2**40 + 90)),
    listed("s in ", (f"'é key {n:05d}'" for n in range(40)), " ,\n"),
    listed("i in ", ["-700"] * 30 + ["null"]),
    "s = 'in (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26)'",
    listed("s in ", ["'it''s'"] * 30),
    listed("s in ", [r"'a\nb'"] * 30),
    listed("`i` in ", ["99999999999"] * 30),
    listed("i in ", ["-700"] * 30) + " /* in (1, 2) */ and " + listed("l in ", range(2**40, 2**40 + 90)),
    listed("i in ", ["99999999999999999999999"] * 30),
    listed("i in ", ["1.5", *range(40)]),
    listed("d in ", (f"DATE '2020-01-{n:02d}'" for n in range(1, 32))),
    listed("i in ", ["+5", "- 700", *["7"] * 30]),
]


@pytest.mark.parametrize("text", LISTS, ids=range(len(LISTS)))
def test_lists_in_text_mean_what_their_constants_mean(table: Snapshot, text: str) -> None:
    schema = table.schema
    bound = bind(parse_sql(text), schema)
    assert bind(bound, schema) == bound
    printed = parse_sql(format_sql(bound))
    assert bind(printed, schema) == bound
    shortened = text.replace(" in ", " /**/ in /**/ ").replace("not in(", "not in /**/(")  # as no fast path reads it
    assert bind(parse_sql(shortened), schema) == bound
    assert table.scan(predicate=text).to_table().equals(table.scan(predicate=shortened).to_table())


def test_long_list_becomes_values_and_a_short_one_stays_as_it_is() -> None:
    schema = Schema.from_arrow(pa.schema([("i", pa.int32())]))
    for count, expected in ((24, 25), (25, 2)):
        constants = [literal(n) for n in range(count)]
        bound = bind(Call("in", (column("i"), *constants)), schema)
        assert isinstance(bound, Call)
        assert len(bound.args) == expected
        assert isinstance(bound.args[-1], Values) == (count == 25)
        assert bound == bind(from_filters([("i", "in", list(range(count)))], schema), schema)


def calls_of(work: Callable[[], Any]) -> int:
    count = 0

    def trace(*_: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", ["filter", "text", "array"])
@pytest.mark.parametrize("name", ["l", "s"])
def test_calls_do_not_grow_with_the_list(table: Snapshot, name: str, form: str) -> None:
    kind, values = TYPES[name]

    def work(count: int) -> Callable[[], Any]:
        listed = [values[n % ROWS] if n % 2 else (n + 2**41 if name == "l" else f"other {n}") for n in range(count)]
        sql = f"{name} in ({', '.join(map(repr, listed))})"
        predicate: Any = (
            sql if form == "text" else [(name, "in", pa.array(listed, kind) if form == "array" else listed)]
        )
        return lambda: table.scan(predicate=predicate, columns=[name]).to_table()

    calls_of(work(2_000))
    # a binary search takes a step more for twice the values
    assert calls_of(work(64_000)) < 1.3 * calls_of(work(2_000))
