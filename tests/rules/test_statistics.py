"""Statistics prune files and lose no row, however they were written."""

from __future__ import annotations

import datetime as dt
import json
import math
import operator as op
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.kernel.snapshot import open_snapshot
from delta_core.table.delta_table import DeltaTable
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples

US = dt.timedelta(microseconds=1)
NAN = float("nan")
OPERATORS = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "=": op.eq, "!=": op.ne}


def one_column(path: Path, kind: str, values: list[Any], **statistics: Any) -> TableBuilder:
    """One file with a column x; the given bounds replace the computed ones."""
    table = TableBuilder(path).create({"x": kind}, features=["timestampNtz"] if kind == "timestamp_ntz" else [])
    given = {name: {"x": bound} for name, bound in statistics.items()}
    return table.append({"x": values}, statistics=given)


def found(table: TableBuilder, predicate: Any) -> list[Any]:
    return open_snapshot(table.uri).scan(predicate=predicate).to_table().column("x").to_pylist()


def planned(table: TableBuilder, predicate: Any) -> int:
    return open_snapshot(table.uri).scan(predicate=predicate).files().num_rows


# --- strings -------------------------------------------------------------------------------

LONG = "m" * 40
CUT = [
    (LONG, "m" * 32, "m" * 32 + "\x7f"),
    ("é" * 40, "é" * 32, "é" * 32 + "\U0010ffff"),
    ("a" * 32 + "\U0010ffff" * 3 + "b", "a" * 32, "a" * 32 + "\U0010ffff" * 3 + "\x7f"),
    ("\U0001f600" * 40, "\U0001f600" * 32, "\U0001f600" * 32 + "\U0010ffff"),
    ("\U0001f600" * 20, "\U0001f600" * 16, "\U0001f600" * 16 + "\U0010ffff"),
]


@pytest.mark.parametrize(("text", "low", "high"), CUT)
def test_cut_strings_keep_the_row_of_the_whole_text(tmp_path: Path, text: str, low: str, high: str) -> None:
    table = one_column(tmp_path, "string", [text], minValues=low, maxValues=high)
    for operator in ("=", ">=", "<="):
        assert found(table, [("x", operator, text)]) == [text]
    assert found(table, [("x", ">", low)]) == [text]
    assert planned(table, [("x", ">", high)]) == 0
    assert planned(table, [("x", "<", low)]) == 0


def test_string_bounds_compare_by_utf8_bytes(tmp_path: Path) -> None:
    """In UTF-16 order the emoji is below U+FFFD; in UTF-8 order above."""
    table = one_column(tmp_path, "string", ["\ufffd", "\U0001f600"])
    assert found(table, [("x", ">", "\ufffd")]) == ["\U0001f600"]
    assert found(table, [("x", "=", "\U0001f600")]) == ["\U0001f600"]


def test_missing_high_bound_of_a_string_prunes_nothing_above(tmp_path: Path) -> None:
    table = one_column(tmp_path, "string", ["z" * 80], maxValues=None)
    assert found(table, [("x", ">=", "z" * 80)]) == ["z" * 80]


# --- timestamps ----------------------------------------------------------------------------

MOMENTS = ["2024-01-01T00:00:00.999999", "1969-12-31T23:59:59.999001", "1960-05-05T00:00:00"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_timestamp_floored_to_milliseconds_keeps_its_row(tmp_path: Path, kind: str, moment: str) -> None:
    value = dt.datetime.fromisoformat(moment + ("Z" if kind == "timestamp" else ""))
    table = one_column(tmp_path, kind, [value])
    assert "." in json.dumps([a["stats"] for a in table.state.files.values()])
    for operator, bound in [("=", value), (">=", value), ("<=", value), (">", value - US), ("<", value + US)]:
        assert found(table, [("x", operator, bound)]) == [value], operator
    assert found(table, [("x", ">", value)]) == []
    assert planned(table, [("x", ">", value + dt.timedelta(milliseconds=2))]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01T08:00:00.000Z",
        "2024-01-01T00:00:00.000-08:00",
        "2024-01-01T08:00:00Z",
        "2024-01-01T08:00:00+00:00",
        "2024-01-01 08:00:00.000Z",
        "2024-01-01T08:00:00.000000Z",
    ],
)
def test_every_spelling_of_a_timestamp_bound_is_understood(tmp_path: Path, text: str) -> None:
    value = dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)
    table = one_column(tmp_path, "timestamp", [value], minValues=text, maxValues=text)
    assert found(table, [("x", "=", value)]) == [value]
    assert planned(table, [("x", ">", value + dt.timedelta(hours=1))]) == 0
    assert planned(table, [("x", "<", value - dt.timedelta(hours=1))]) == 0


@pytest.mark.parametrize("text", ["2024-01-01T08:00:00.000", "2024-01-01 08:00:00", "2024-01-01 08:00:00.000000"])
def test_every_spelling_of_a_zone_less_bound_is_understood(tmp_path: Path, text: str) -> None:
    value = dt.datetime(2024, 1, 1, 8)
    table = one_column(tmp_path, "timestamp_ntz", [value], minValues=text, maxValues=text)
    assert found(table, [("x", "=", value)]) == [value]
    assert planned(table, [("x", ">", value + dt.timedelta(hours=1))]) == 0


@pytest.mark.parametrize(
    ("kind", "value", "bound"),
    [
        ("timestamp", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "soon"),
        ("date", dt.date(2024, 1, 1), "2024-13-77"),
        ("long", 5, "five"),
        ("long", 5, 1.5),
        ("long", 5, 10**30),
        ("double", 5.0, "big"),
        ("string", "v", 7),
        ("decimal(5,2)", Decimal("5.00"), "x"),
        ("long", 5, {"a": 1}),
        ("long", 5, [1]),
        ("boolean", True, 3),
    ],
)
def test_bound_that_can_not_be_parsed_is_no_bound(tmp_path: Path, kind: str, value: Any, bound: Any) -> None:
    table = one_column(tmp_path, kind, [value], minValues=bound, maxValues=bound)
    assert found(table, [("x", "=", value)]) == [value]
    assert found(table, [("x", "<=", value)]) == [value]
    assert found(table, [("x", ">=", value)]) == [value]


# --- floats --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("x != 1", [NAN]),
        ("x > 1", [NAN]),
        ("x >= 2", [NAN]),
        ("isnan(x)", [NAN]),
        ("not (x <= 1)", [NAN]),
        ("x = 1", [1.0]),
        ("x < 2", [1.0]),
        ("x = double('NaN')", [NAN]),
        ("not (x = 1)", [NAN]),
    ],
)
def test_nan_that_bounds_leave_out_is_found(tmp_path: Path, kind: str, predicate: str, expected: list[float]) -> None:
    table = one_column(tmp_path, kind, [1.0, NAN])
    assert json.loads(next(iter(table.state.files.values()))["stats"])["maxValues"] == {"x": 1.0}
    assert list(map(repr, found(table, predicate))) == list(map(repr, expected))


@pytest.mark.parametrize("bound", ["NaN", "Infinity"])
def test_float_bounds_written_as_text_are_understood(tmp_path: Path, bound: str) -> None:
    table = one_column(tmp_path, "double", [1.0, math.inf, NAN], minValues=1.0, maxValues=bound)
    assert found(table, "x > 5")[0] == math.inf
    assert len(found(table, "x > 5")) == 2
    assert found(table, "x = 1") == [1.0]


def test_negative_zero_equals_zero(tmp_path: Path) -> None:
    table = one_column(tmp_path, "double", [-0.0], minValues=-0.0, maxValues=-0.0)
    assert found(table, "x = 0") == [0.0]
    assert found(table, "x >= 0") == [0.0]


# --- nulls and missing statistics ----------------------------------------------------------


@pytest.mark.parametrize(
    "statistics", [False, "", "{}", "null", "not json", '{"numRecords":2}', '{"numRecords":2,"minValues":{}}']
)
def test_missing_statistics_prune_nothing(tmp_path: Path, statistics: Any) -> None:
    table = TableBuilder(tmp_path).create({"x": "long"}).append({"x": [1, None]}, statistics=statistics)
    assert found(table, "x = 1") == [1]
    assert found(table, "x is null") == [None]
    assert found(table, "x is not null") == [1]
    assert found(table, "x < 5") == [1]


@pytest.mark.parametrize("statistics", ["json", "struct"])
def test_bounds_of_a_column_of_nulls_mean_nothing(tmp_path: Path, statistics: Any) -> None:
    table = one_column(tmp_path, "long", [None, None], minValues=0, maxValues=0).checkpoint(statistics=statistics)
    assert planned(table, "x is null") == 1
    assert found(table, "x is null") == [None, None]
    assert found(table, "x = 0") == []
    assert found(table, "x <=> null") == [None, None]
    assert planned(table, "x = 5") == 0


def test_null_count_prunes_is_null_and_is_not_null(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"x": "long"})
    table.append({"x": [1, 2]}).append({"x": [None, None]}).append({"x": [3, None]})
    assert planned(table, "x is null") == 2
    assert planned(table, "x is not null") == 2


def test_columns_beyond_the_indexed_ones_prune_nothing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long", "x": "long"})
    stats = json.dumps({"numRecords": 1, "minValues": {"a": 1}, "maxValues": {"a": 1}, "nullCount": {"a": 0}})
    table.append([{"a": 1, "x": 9}], statistics=stats)
    assert found(table, "x = 9 and a = 1") == [9]
    assert planned(table, "x = 9 and a = 2") == 0


@pytest.mark.parametrize("form", ["json", "struct"])
@pytest.mark.parametrize("mapping", ["name", "id"])
def test_statistics_are_found_by_physical_names_at_every_level(tmp_path: Path, mapping: Any, form: Any) -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.struct([("y", pa.int64())]))])
    table = TableBuilder(tmp_path).create(schema, column_mapping=mapping)
    for start in (0, 10, 20):
        table.append([{"x": start + i, "s": {"y": start + i}} for i in range(10)])
    table.checkpoint(statistics=form)
    assert planned(table, "x = 15") == 1
    assert planned(table, "s.y >= 20") == 1
    assert sorted(found(table, "s.y >= 18")) == list(range(18, 30))


def test_added_column_without_statistics_in_old_files_prunes_nothing_wrongly(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"x": "long"}).append({"x": [1]}).alter({"x": "long", "y": "long"})
    table.append([{"x": 2, "y": 5}])
    assert sorted(found(table, "y is null or y = 5")) == [1, 2]
    assert found(table, "y = 5") == [2]


def test_partition_value_beside_a_column_never_prunes_row_groups(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"x": "boolean", "p": "integer"}, partition_by=["p"])
    table.append([{"x": None, "p": -1}, {"x": None, "p": None}])
    for predicate in ("x = true or p is not null", "x = true or not (p is null)", "x = true or p <=> -1"):
        assert open_snapshot(tmp_path).scan(predicate=predicate).to_table().column("p").to_pylist() == [-1], predicate


# --- literals of another type --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "predicate", "expected"),
    [
        ("integer", [1, 2], "x > 1.5", [2]),
        ("integer", [2147483647], "x < 3000000000", [2147483647]),
        ("byte", [127], "x < 300", [127]),
        ("byte", [-128, 127], "x > -1000", [-128, 127]),
        ("long", [2**53, 2**53 + 1], f"x = {2**53 + 1}", [2**53 + 1]),
        ("long", [2**53, 2**53 + 1], f"x > {2**53}.0", [2**53 + 1]),
        ("float", [0.10000000149011612], "x = cast(0.1 as float)", [0.10000000149011612]),
        (
            "decimal(20,2)",
            [Decimal("1234567890123456.91")],
            "x = 1234567890123456.91",
            [Decimal("1234567890123456.91")],
        ),
        ("decimal(20,2)", [Decimal("0.01")], "x < 0.011", [Decimal("0.01")]),
        ("decimal(20,2)", [Decimal("0.01")], "x > 0.009", [Decimal("0.01")]),
        ("decimal(4,2)", [Decimal("99.99")], "x < 1000", [Decimal("99.99")]),
    ],
)
def test_literal_is_never_cast_down_to_the_column(
    tmp_path: Path, kind: str, values: list[Any], predicate: str, expected: list[Any]
) -> None:
    assert sorted(found(one_column(tmp_path, kind, values), predicate)) == expected


def test_decimal_bounds_beyond_floats_are_as_exact_as_writers_are(tmp_path: Path) -> None:
    value = Decimal("12345678901234567890123456789012345.678")
    table = one_column(tmp_path, "decimal(38,3)", [value])
    assert found(table, [("x", ">", value)]) == found(table, [("x", "<", value)]) == []
    assert found(table, [("x", ">", Decimal("12345678901234567890123456789012345.677"))]) == [value]
    assert found(table, [("x", "<", Decimal("12345678901234567890123456789012345.679"))]) == [value]
    # deltalake rounds bounds to doubles: nothing this close may be skipped, while values further away are
    assert planned(table, [("x", ">", value)]) == 1
    assert planned(table, [("x", ">", Decimal(12345678901234600000000000000000000))]) == 0
    assert planned(table, [("x", "<", Decimal(12345678901234500000000000000000000))]) == 0


def test_dates_prune(tmp_path: Path) -> None:
    table = one_column(tmp_path, "date", [dt.date(1500, 1, 1), dt.date(9999, 12, 31)])
    assert found(table, "x > date '9999-12-30'") == [dt.date(9999, 12, 31)]
    assert planned(table, "x < date '1500-01-01'") == 0


# --- counts --------------------------------------------------------------------------------


@pytest.fixture(params=["commits", "json", "struct"])
def below_zero(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    """Three files whose counts are partly below 0: in commits, or in a checkpoint of either form."""
    table = TableBuilder(tmp_path).create({"x": "long"})
    for rows, nulls in ((-3, 0), (3, -3), (-1, -1)):
        table.append({"x": [1, None, 2]}, statistics={"numRecords": rows, "nullCount": {"x": nulls}})
    return table if request.param == "commits" else table.checkpoint("v1", statistics=request.param).cleanup_before(3)


def test_counts_below_zero_rule_out_no_file(below_zero: TableBuilder) -> None:
    assert found(below_zero, "x is null") == [None] * 2  # the first file specifies that it has none
    assert found(below_zero, "x is not null") == [1, 2] * 3
    assert found(below_zero, "x = 2") == [2] * 3


def test_counts_below_zero_count_no_rows(below_zero: TableBuilder) -> None:
    snapshot = open_snapshot(below_zero.uri)
    assert snapshot.scan().count() == 9
    assert snapshot.scan(limit=4).to_table().num_rows == 4
    actions = DeltaTable(below_zero.uri).get_add_actions(flatten=True)
    assert sorted(actions.column("num_records").to_pylist(), key=str) == [3, None, None]
    assert sorted(actions.column("null_count.x").to_pylist(), key=str) == [0, None, None]


# --- columns that were floats --------------------------------------------------------------


def widened(path: Path, old: list[float], new: list[float], form: Any) -> TableBuilder:
    """A FLOAT column in a file whose bounds are the floats' shortest texts, then DOUBLE in another file."""
    table = TableBuilder(path).create({"x": "float"}, features=["typeWidening"])
    low, high = (float(str(np.float32(f(old)))) for f in (min, max))
    table.append({"x": old}, statistics={"minValues": {"x": low}, "maxValues": {"x": high}})
    change = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    table.alter({"type": "struct", "fields": [{"name": "x", "type": "double", "nullable": True, "metadata": change}]})
    table.append({"x": new})
    return table if form is None else table.checkpoint(statistics=form).cleanup_before(table.version)


@settings(max_examples=examples(15))
@given(
    old=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=3),
    shift=st.sampled_from([0.0, -1e-9, 1e-9]),
    new=st.lists(st.floats(allow_nan=False), min_size=1, max_size=3),
    form=st.sampled_from([None, "json", "struct"]),
)
def test_bounds_of_a_float_that_is_a_double_now_lose_no_row(
    old: list[float], new: list[float], shift: float, form: Any
) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = widened(Path(place), old, new, form)
        rows = [*map(float, np.array(old, np.float32)), *new]
        texts = [float(str(np.float32(x))) for x in old]
        for bound in {*rows, *texts, *(x * (1 + shift) for x in texts)}:
            for operator, test in OPERATORS.items():
                expected = sorted(x for x in rows if test(x, bound))
                # the second test shuts NaN out, so that the maximum counts
                predicate = [("x", operator, bound), ("x", "<=", math.inf)]
                assert sorted(found(table, predicate)) == expected, (operator, bound)


def test_bounds_of_a_float_that_is_a_double_now_still_prune(tmp_path: Path) -> None:
    table = widened(tmp_path, [-0.1, 0.1], [5.0], None)
    assert planned(table, "x < -0.1") == 1
    assert planned(table, "x < -0.11") == 0
    assert planned(table, "x > 0.11 and x < 4") == 0
