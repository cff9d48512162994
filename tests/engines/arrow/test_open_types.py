"""Expressions over types that Delta lacks: comparisons by exact value, arithmetic, casts, text, rejected operations."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable
from delta_core.engines.arrow.evaluate import evaluator
from delta_core.errors import DeltaError, ExpressionError, UnsupportedExpressionError, UnsupportedFeatureError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.coercion import can_cast, canonical, common_type
from delta_core.expressions.filters import to_expression
from delta_core.expressions.literals import typed
from delta_core.expressions.printing import format_sql
from delta_core.expressions.sql import parse_sql
from delta_core.schema.fields import Schema
from delta_core.schema.logical import facts, logical_type, open_type, schema_of_arrow
from delta_core.schema.types import PrimitiveType
from tests.engines.arrow.open_types import (
    DATES,
    DURATIONS,
    FLOATS,
    INSTANTS,
    NUMBERS,
    TIMES,
    Kind,
    array_of_kind,
    decimal_of,
    evaluated,
    exact,
)
from tests.example_counts import examples

A, B = Column(("a",)), Column(("b",))
OPERATORS: Mapping[str, Any] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
GROUPS: tuple[Mapping[str, Kind], ...] = (NUMBERS, FLOATS, INSTANTS, DURATIONS, TIMES)
KINDS = [(group, name) for group in GROUPS for name in group]
NAMES = [name for _, name in KINDS]


def compared(name: str, x: Any, y: Any) -> bool | None:
    if name == "<=>":
        return bool(x == y)
    return None if x is None or y is None else bool(OPERATORS[name](x, y))


def check_columns(left: Kind, right: Kind, pairs: list[tuple[Any, Any]]) -> None:
    a, b = (array_of_kind(k, [p[i] for p in pairs]) for i, k in enumerate((left, right)))
    for name in (*OPERATORS, "<=>"):
        found = evaluated(Call(name, (A, B)), {"a": a, "b": b}).to_pylist()
        assert found == [compared(name, exact(x, left), exact(y, right)) for x, y in pairs], name


@pytest.mark.parametrize(("group", "name"), KINDS, ids=NAMES)
def test_columns_of_two_types_compare_by_exact_value(group: Mapping[str, Kind], name: str) -> None:
    for other in group.values():
        check_columns(group[name], other, list(product([*group[name].values, None], [*other.values, None])))


@pytest.mark.parametrize("name", INSTANTS)
def test_dates_and_timestamps_compare_by_exact_value(name: str) -> None:
    (date,) = DATES.values()
    check_columns(date, INSTANTS[name], list(product([*date.values, None], [*INSTANTS[name].values, None])))


@pytest.mark.parametrize(("group", "name"), KINDS, ids=NAMES)
def test_columns_compare_with_constants_by_exact_value(group: Mapping[str, Kind], name: str) -> None:
    values = [*group[name].values, None]
    column = array_of_kind(group[name], values)
    for other in group.values():
        for constant in other.values:
            literal = Literal(array_of_kind(other, [constant])[0])
            for symbol in OPERATORS:
                found = evaluated(Call(symbol, (A, literal)), {"a": column}).to_pylist()
                expected = [compared(symbol, exact(x, group[name]), exact(constant, other)) for x in values]
                assert found == expected, (other.type, symbol, constant)


@pytest.mark.parametrize(("group", "name"), KINDS, ids=NAMES)
@pytest.mark.parametrize("repeats", [1, 10], ids=["few", "many"])
def test_membership_is_by_exact_value(repeats: int, group: Mapping[str, Kind], name: str) -> None:
    values = [*group[name].values, None]
    column = array_of_kind(group[name], values)
    for other in group.values():
        members = [exact(v, other) for v in other.values[::2]]
        constants = [Literal(array_of_kind(other, [v])[0]) for v in other.values[::2]] * repeats
        for with_null in (False, True):
            found = evaluated(Call("in", (A, *constants, *[Literal(None)] * with_null)), {"a": column}).to_pylist()
            unknown = None if with_null else False
            keys = [exact(x, group[name]) for x in values]
            assert found == [None if k is None else True if k in members else unknown for k in keys], other.type


def _stored(kind: Kind) -> st.SearchStrategy[Any]:
    t: Any = kind.type
    if pa.types.is_decimal(t):
        most = 10**t.precision - 1
        return st.integers(-most, most).map(lambda n: decimal_of(n, t.scale))
    return st.integers(min(kind.values), max(kind.values)) | st.sampled_from(kind.values)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_random_values_of_random_types_compare_by_exact_value(data: st.DataObject) -> None:
    group = data.draw(st.sampled_from((NUMBERS, INSTANTS, DURATIONS, TIMES)))
    left, right = (group[data.draw(st.sampled_from(sorted(group)))] for _ in range(2))
    pairs = data.draw(
        st.lists(st.tuples(st.none() | _stored(left), st.none() | _stored(right)), min_size=1, max_size=8)
    )
    check_columns(left, right, pairs)


@pytest.mark.parametrize("t", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_long_list_of_numbers_selects_unsigned_values(t: pa.DataType) -> None:
    column = pa.array([0, 3, 200, 2**t.bit_width - 1, None], t)
    many = [*range(-50, 20), 200, 300, 2**63 - 1]
    for members in (many, np.array(many), pa.array(many), [*many, 2**t.bit_width - 1]):
        bound = to_expression([("a", "in", members)], schema_of_arrow(pa.schema([("a", t)])))
        assert bound is not None
        last = isinstance(members, list) and members is not many
        assert evaluated(bound, {"a": column}).to_pylist() == [True, True, True, last, None]


# --- layouts -------------------------------------------------------------------------------

TEXTS = ["abc", "Straße", "", None]
TEXT_COLUMNS = {
    "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary of large": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, None], pa.uint8()), pa.array(["abc", "Straße", ""], pa.large_string())
    ),
    "dictionary with nulls": pa.DictionaryArray.from_arrays([0, 1, 2, 3], ["abc", "Straße", "", None]),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], TEXTS),
}


@pytest.mark.parametrize("layout", TEXT_COLUMNS)
@pytest.mark.parametrize(
    "expression",
    ["a = 'abc'", "a < 'b'", "a in ('abc', 'x', null)", "a like '%a%'", "a rlike '^S'", "upper(a)", "length(a)",
     "concat(a, '!')", "a is null", "a <=> null", "substring(a, 2, 3)", "coalesce(a, 'none')", "a between 'a' and 'c'",
     "cast(a as binary)", "case when a = 'abc' then a else 'other' end", "a || a"],
)  # fmt: skip
def test_text_in_any_layout_is_evaluated_as_strings_are(expression: str, layout: str) -> None:
    expected = evaluated(expression, {"a": pa.array(TEXTS)})
    for start in (0, 1):
        column = TEXT_COLUMNS[layout][start:]
        found = evaluated(expression, {"a": column})
        assert found.type == expected.type
        assert found.to_pylist() == expected.to_pylist()[start:]


PLAIN_AND_OTHER = [
    ("fixed-size binary", pa.array([b"ab", b"zz", None]), pa.binary(2), "a > X'7a00' or a = X'6162'"),
    ("large binary", pa.array([b"ab", b"", None]), pa.large_binary(), "octet_length(a) > 1"),
    ("binary view", pa.array([b"ab", b"", None]), pa.binary_view(), "a = X''"),
    ("date64", pa.array([0, 1, None], pa.int32()).view(pa.date32()), pa.date64(),
     "a > '1970-01-01' and year(a) = 1970"),
    ("fixed-size list", pa.array([[1, 2], [3, None], None], pa.list_(pa.uint8())), pa.list_(pa.uint8(), 2),
     "array_contains(a, 3) or a[0] = 1 or size(a) = 9"),
    ("large list", pa.array([["x"], [], None], pa.list_(pa.string())), pa.large_list(pa.large_string()),
     "a = array('x')"),
    ("list view", pa.array([["x"], [], None, ["y", "x"]], pa.list_(pa.string())), pa.list_view(pa.string_view()),
     "array_contains(a, 'x')"),
    ("struct", pa.array([{"x": 1, "y": "q"}, None, {"x": None, "y": None}]),
     pa.struct([("x", pa.uint64()), ("y", pa.dictionary(pa.int8(), pa.string()))]),
     "get_field(a, 'x') = 1 and a <=> a"),
    ("map", pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())), pa.map_(pa.large_string(), pa.uint16()),
     "a['k'] >= 1"),
    ("dictionary of numbers", pa.array([1, 200, None, 1]), pa.dictionary(pa.int8(), pa.uint8()), "a + 1 > 100"),
    ("small decimal", pa.array([Decimal("1.5"), None]), pa.decimal64(10, 1), "a > 1 and round(a) = 2"),
    ("decimal of 256 bits", pa.array([Decimal("1.5"), None]), pa.decimal256(30, 1), "a * 2 = 3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "t", "expression"), [c[1:] for c in PLAIN_AND_OTHER], ids=[c[0] for c in PLAIN_AND_OTHER]
)
def test_values_in_another_layout_are_evaluated_as_plain_ones(column: Any, t: pa.DataType, expression: str) -> None:
    other = pa.array(column.to_pylist(), t)
    for start in (0, 1):
        expected = evaluated(expression, {"a": column[start:]})
        assert evaluated(expression, {"a": other[start:]}).to_pylist() == expected.to_pylist()


def test_text_beyond_offsets_of_32_bits_is_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_MOST_BYTES", 64)
    values = [f"{i:012}" for i in range(40)] + [None]
    found = evaluated("a >= '000000000007'", {"a": pa.array(values, pa.large_string())})
    assert found.to_pylist() == [None if v is None else v >= "000000000007" for v in values]


# --- arithmetic ----------------------------------------------------------------------------

MOST = 2**64 - 1


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a - 1", [-1, MOST - 1, None]),
        ("a + a", [0, 2 * MOST, None]),
        ("a * 10", [0, MOST * 10, None]),
        ("a % 10", [0, MOST % 10, None]),
        ("pmod(a, 10)", [0, MOST % 10, None]),
        ("a div 3", [0, MOST // 3, None]),
        ("a & 255", [0, 255, None]),
        ("-a", [0, -MOST, None]),
        ("abs(a)", [0, MOST, None]),
        ("a - b", [-5, MOST + 5, None]),
        ("coalesce(a, -1)", [0, MOST, -1]),
        ("greatest(a, b)", [5, MOST, None]),
        ("case when a > b then a else b end", [5, MOST, None]),
        ("hex(a)", ["0", "F" * 16, None]),
        ("cast(a as string)", ["0", str(MOST), None]),
        ("cast(a as boolean)", [False, True, None]),
        ("try_cast(a as bigint)", [0, None, None]),
        ("a = '18446744073709551615'", [False, True, None]),
    ],
)
def test_unsigned_numbers_are_computed_without_overflow(expression: str, expected: list[Any]) -> None:
    columns = {"a": pa.array([0, MOST, None], pa.uint64()), "b": pa.array([5, -5, None])}
    assert evaluated(expression, columns).to_pylist() == expected


def test_result_that_no_type_holds_raises() -> None:
    for expression in ("a * a", "cast(a as bigint)", "cast(a as tinyint)"):
        with pytest.raises(ExpressionError, match=r"OVERFLOW|does not fit"):
            evaluated(expression, {"a": pa.array([MOST], pa.uint64())})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + 1", [10**60 + 1, Decimal("-1.50")]),
        ("a * 2", [2 * 10**60, -5]),
        ("a - a", [0, 0]),
        ("-a", [-(10**60), Decimal("2.5")]),
        ("a % 7", [10**60 % 7, Decimal("-2.5")]),
        ("round(a)", [10**60, -3]),
        ("floor(a)", [10**60, -3]),
        ("cast(a as string)", ["1" + "0" * 60 + ".00", "-2.50"]),
        ("cast(a as double)", [1e60, -2.5]),
        ("try_cast(a as bigint)", [None, -2]),
    ],
)
def test_decimals_of_256_bits_are_computed_exactly(expression: str, expected: list[Any]) -> None:
    column = pa.array([Decimal(10**60), Decimal("-2.5")], pa.decimal256(70, 2))
    assert evaluated(expression, {"a": column}).to_pylist() == expected


T0 = datetime(2023, 11, 14, 22, 13, 20, 123456)
TIMED = {
    "t": pa.array([time(1, 2, 3, 4005), None], pa.time64("us")),
    "n": pa.array([3_723_004_005_006, 0]).view(pa.time64("ns")),
    "d": pa.array([timedelta(seconds=5), None], pa.duration("s")),
    "e": pa.array([7, -1]).view(pa.duration("ns")),
    "x": pa.array([1_700_000_000_123_456_789, -1]).view(pa.timestamp("ns")),
    "z": pa.array([1_700_000_000_123_456_789, -1]).view(pa.timestamp("ns", "Asia/Tokyo")),
    "s": pa.array([1_700_000_000, None], pa.timestamp("s")),
    "u": pa.array([T0.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("hour(t)", [1, None]),
        ("second(n)", [3, 0]),
        ("cast(t as string)", ["01:02:03.004005", None]),
        ("t = '01:02:03.004005'", [True, None]),
        ("n > '01:02:03.004005'", [True, False]),
        ("n in ('00:00:00', '01:02:03.004005006')", [True, True]),
        ("d > INTERVAL 4 SECOND", [True, None]),
        ("d = INTERVAL 5000000 MICROSECOND", [True, None]),
        ("e < INTERVAL 1 MICROSECOND", [True, True]),
        ("d + d > INTERVAL 9 SECOND", [True, None]),
        ("x = '2023-11-14 22:13:20.123456789'", [True, False]),
        ("x > '2023-11-14 22:13:20.123456'", [True, False]),
        ("z = '2023-11-15 07:13:20.123456789+09:00'", [True, False]),
        ("z > u", [True, None]),
        ("s = '2023-11-14T22:13:20'", [True, None]),
        ("s between DATE'2023-11-14' and DATE'2023-11-15'", [True, None]),
        ("x - INTERVAL 1 DAY < s", [True, None]),
        ("s + d = '2023-11-14 22:13:25'", [True, None]),
        ("cast(x as date) = DATE'2023-11-14'", [True, False]),
        ("cast(x as string)", ["2023-11-14 22:13:20.123456789", "1969-12-31 23:59:59.999999999"]),
        ("cast(s as string)", ["2023-11-14 22:13:20", None]),
        ("cast(z as bigint)", [1_700_000_000, -1]),
        ("cast(x as timestamp_ntz)", [T0, datetime(1969, 12, 31, 23, 59, 59, 999999)]),
        ("year(x) + hour(z)", [2045, 1992]),
        ("date_trunc('day', z) = '2023-11-14'", [True, False]),
        ("unix_micros(z)", [1_700_000_000_123_456, -1]),
        ("month(x + INTERVAL 2 MONTH)", [1, 2]),
    ],
)
def test_times_are_computed_in_their_units(expression: str, expected: list[Any]) -> None:
    assert evaluated(expression, TIMED).to_pylist() == expected


def test_nanoseconds_are_kept_by_arithmetic() -> None:
    found = evaluated("x + d", TIMED)
    assert found.type == pa.timestamp("ns")
    assert found.cast(pa.int64()).to_pylist() == [1_700_000_005_123_456_789, None]
    found = evaluated("x + INTERVAL 2 MONTH", {"x": TIMED["x"][:1]})
    assert found.cast(pa.int64())[0].as_py() % 10**9 == 123_456_789
    with pytest.raises(ExpressionError, match="OVERFLOW"):
        evaluated("x + INTERVAL 300 YEAR", {"x": TIMED["x"][:1]})
    with pytest.raises(ExpressionError, match="OVERFLOW"):
        evaluated("d + INTERVAL 1 SECOND", {"d": pa.array([2**63 - 1]).view(pa.duration("s"))})


# --- what is rejected ----------------------------------------------------------------------

REJECTED = {
    "a": pa.array([1], pa.uint8()),
    "t": TIMED["t"],
    "d": TIMED["d"],
    "x": TIMED["x"],
    "m": pa.array([None], pa.month_day_nano_interval()),
    "l": pa.array([[1]], pa.list_(pa.duration("s"))),
    "s": pa.array(["a"], pa.large_string()),
}


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("t = 5", r"time64\[us\]"),
        ("t + 1", r"time64\[us\]"),
        ("t = x", r"time64\[us\]"),
        ("year(t)", r"time64\[us\]"),
        ("date_trunc('day', t)", r"time64\[us\]"),
        ("d = 5", r"duration\[s\]"),
        ("d = '5 seconds'", r"duration\[s\]"),
        ("d * 2", r"duration\[s\]"),
        ("d = t", r"duration\[s\]"),
        ("cast(d as string)", r"duration\[s\]"),
        ("cast(t as bigint)", r"time64\[us\]"),
        ("cast(x as double)", r"timestamp\[ns\]"),
        ("a and true", "uint8"),
        ("a = x", "uint8"),
        ("hash(a)", "uint8"),
        ("m = m", "month_day_nano_interval"),
        ("m in (null)", "month_day_nano_interval"),
        ("cast(m as string)", "month_day_nano_interval"),
        ("upper(m)", "month_day_nano_interval"),
        ("x - x", r"timestamp\[ns\]"),
    ],
)
def test_operation_without_meaning_is_rejected_with_the_name_of_the_type(expression: str, name: str) -> None:
    with pytest.raises(ExpressionError, match=name):
        evaluated(expression, REJECTED)


def test_every_type_is_tested_for_null() -> None:
    for column in REJECTED.values():
        assert evaluated("a is null", {"a": column}).to_pylist() == column.is_null().to_pylist()


def test_type_that_a_format_names_itself_has_no_operations() -> None:
    own = logical_type("lance.bfloat16", pa.binary(2), "opaque")
    schema = schema_of_arrow(
        pa.schema([("a", pa.binary(2)), ("b", pa.binary(2))]), lambda f: own if f.name == "a" else None
    )
    bind_typed(parse_sql("b = X'0000' and a is null", "name"), schema)
    for expression in ("a = X'0000'", "a in (X'0000', X'0001')", "cast(a as string) = ''", "a = b", "a < a"):
        with pytest.raises(ExpressionError, match=r"lance\.bfloat16"):
            bind_typed(parse_sql(expression, "name"), schema)


# --- the types -----------------------------------------------------------------------------

SCHEMAS = [
    pa.schema(
        [
            pa.field("u", pa.uint32(), False, {b"k": b"\xff"}),
            pa.field("l", pa.large_list(pa.field("item", pa.list_(pa.field("x", pa.float16(), False), 3), False))),
            pa.field("s", pa.struct([pa.field("t", pa.time32("s"), False, {"a": "b"}),
                                     ("d", pa.dictionary(pa.int8(), pa.string(), True))])),
            pa.field("m", pa.map_(pa.large_string(), pa.field("value", pa.decimal256(70, -3), False), True)),
            pa.field("e", pa.uuid()), pa.field("n", pa.null()), pa.field("v", pa.list_view(pa.string_view())),
            pa.field("r", pa.run_end_encoded(pa.int16(), pa.float64())), pa.field("z", pa.timestamp("ms", "+05:30")),
            pa.field("i", pa.month_day_nano_interval()), pa.field("b", pa.binary(7)), pa.field("a", pa.int64()),
        ],
        {b"schema": b"\x00\xff"},
    ),
    pa.schema([]),
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_of_any_arrow_types_converts_back_without_loss(schema: pa.Schema) -> None:
    made = schema_of_arrow(schema)
    for found in (made, pickle.loads(pickle.dumps(made)), schema_of_arrow(made)):
        assert found.to_arrow().equals(schema, check_metadata=True)
        assert [f.to_arrow() for f in found] == list(schema)
        assert found == made
    for f in schema:
        assert open_type(f.type).to_arrow() == f.type


def test_type_with_delta_name_and_layout_is_that_type() -> None:
    plain = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.decimal128(10, 2)), ("d", pa.timestamp("us"))])
    assert schema_of_arrow(plain).fields[0].type == PrimitiveType("long")
    assert [f.type for f in schema_of_arrow(plain)] == [f.type for f in Schema.from_arrow(plain)]


def test_no_table_of_delta_has_such_types(tmp_path: Any) -> None:
    for t in (pa.uint32(), pa.time64("ns"), pa.duration("s"), pa.decimal256(50, 1), pa.float16(), pa.large_string()):
        schema = schema_of_arrow(pa.schema([("a", t)]))
        with pytest.raises(UnsupportedFeatureError, match="Column a has type"):
            DeltaTable.create(str(tmp_path / str(t)), schema)
        name = str(open_type(t).type)
        assert facts(PrimitiveType(name)).family == "opaque"
        parsed = Schema.from_json(schema.to_json())
        assert parsed.fields[0].type == PrimitiveType(name)
        with pytest.raises(UnsupportedFeatureError):
            DeltaTable.create(str(tmp_path / f"{t} of text"), parsed)
    assert not list(tmp_path.rglob("*.json"))


def test_types_of_delta_are_entries_of_the_same_registry() -> None:
    for name in ("byte", "short", "integer", "long"):
        assert facts(PrimitiveType(name)).family == "integer"
    assert facts(PrimitiveType("decimal(38,18)")).precision == 38
    assert facts(PrimitiveType("timestamp")).is_zoned
    assert not facts(PrimitiveType("timestamp_ntz")).is_zoned
    assert common_type(PrimitiveType("long"), open_type(pa.uint64())) == PrimitiveType("decimal(20,0)")
    assert common_type(open_type(pa.uint8()), open_type(pa.uint32())) == open_type(pa.uint32())
    assert canonical(open_type(pa.timestamp("us", "Asia/Tokyo"))) == PrimitiveType("timestamp")


ALL_TYPES = [canonical(open_type(k.type)) for g in (*GROUPS, DATES) for k in g.values()]
ALL_TYPES += [PrimitiveType(n) for n in ("string", "binary", "boolean")]


def test_every_cast_that_binds_is_evaluated() -> None:
    for source, target in product(ALL_TYPES, ALL_TYPES):
        column = pa.nulls(2, facts(source).arrow)
        if can_cast(source, target):
            found = evaluated(Cast(A, target), {"a": column})
            assert found.type == facts(target).arrow
            assert found.null_count == 2
        else:
            with pytest.raises(UnsupportedExpressionError):
                evaluated(Cast(A, target), {"a": column})


@pytest.mark.parametrize("group", [INSTANTS, DURATIONS, TIMES], ids=["instants", "durations", "times"])
def test_cast_to_another_unit_is_exact_or_rounded_down_or_raises(group: Mapping[str, Kind]) -> None:
    for left, right in product(group.values(), group.values()):
        for value in left.values:
            column = array_of_kind(left, [value])
            expected = value * left.unit // right.unit
            fits = -(2 ** (right.type.bit_width - 1)) <= expected < 2 ** (right.type.bit_width - 1)
            cast = Cast(A, open_type(right.type), safe=True)
            found = evaluated(cast, {"a": column})
            stored = found.cast(pa.int32() if right.type.bit_width == 32 else pa.int64())
            assert stored.to_pylist() == [expected if fits else None]


def test_casts_to_unsigned_numbers_are_checked() -> None:
    target = open_type(pa.uint8())
    cases: list[tuple[pa.Array, list[Any]]] = [
        (pa.array([0, 255, 256, -1]), [0, 255, None, None]),
        (pa.array([0.9, 255.9, -0.5, float("nan")]), [0, 255, 0, None]),
        (pa.array(["7", " +8 ", "-1", "x"]), [7, 8, None, None]),
        (pa.array([Decimal("1.9"), Decimal("-1.0")]), [1, None]),
        (pa.array([True, None]), [1, None]),
        (pa.array([2**64 - 1, 3], pa.uint64()), [None, 3]),
    ]
    for column, expected in cases:
        assert evaluated(Cast(A, target, safe=True), {"a": column}).to_pylist() == expected
        if None in expected and column.null_count == 0:
            with pytest.raises(ExpressionError):
                evaluated(Cast(A, target), {"a": column})


# --- constants -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [time(1, 2, 3, 4), timedelta(seconds=-5, microseconds=1), np.timedelta64(5, "ns"), np.datetime64(1, "ns"),
     pa.scalar(5, pa.time32("s")), pa.scalar(2**63 - 1, pa.timestamp("s")), Decimal("1e50"), 2**70],
)  # fmt: skip
def test_constant_of_such_a_type_equals_itself_and_has_a_text(value: Any) -> None:
    literal = typed(Literal(value))
    assert literal.type is not None
    column = pa.repeat(pa.scalar(literal.value, facts(literal.type).arrow) if not hasattr(value, "value") else value, 1)
    assert evaluated(Call("=", (A, Literal(value))), {"a": column}).to_pylist() == [True]
    assert format_sql(Call("=", (A, literal))).startswith("a = ")


def test_value_of_another_kind_is_no_constant_of_a_type() -> None:
    for value, t in ((time(1), pa.duration("s")), (timedelta(microseconds=1), pa.duration("s")), (1.5, pa.time32("s"))):
        with pytest.raises(ExpressionError, match="expected a value of"):
            typed(Literal(value, open_type(t)))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (pc.field("a") == pa.scalar(5, pa.uint8()), [True, False]),
        (pc.field("t") < pa.scalar(time(1), pa.time64("us")), [False, None]),
        (pc.field("x") > pa.scalar(1_700_000_000_123_456_788, pa.timestamp("ns")), [True, False]),
        (pc.field("d").isin([timedelta(seconds=5)]), [True, False]),
    ],
)
def test_pyarrow_expressions_hold_such_constants(expression: pc.Expression, expected: list[Any]) -> None:
    columns = {"a": pa.array([5, 6], pa.uint8()), **TIMED}
    bound = to_expression(expression, schema_of_arrow(pa.schema([(n, c.type) for n, c in columns.items()])))
    assert bound is not None
    assert evaluated(bound, columns).to_pylist() == expected


def test_filters_hold_such_constants() -> None:
    schema = schema_of_arrow(pa.schema([(n, c.type) for n, c in TIMED.items()]))
    filters: list[tuple[list[Any], list[Any]]] = [
        ([("t", "=", time(1, 2, 3, 4005))], [True, None]),
        ([("d", "in", [timedelta(seconds=5), timedelta(days=1)])], [True, None]),
        ([("e", "<", timedelta(0))], [False, True]),
        ([("x", ">", np.datetime64(1_700_000_000_123_456_788, "ns"))], [True, False]),
    ]
    for given_filter, expected in filters:
        bound: Expression | None = to_expression(given_filter, schema)
        assert bound is not None
        assert evaluated(bound, TIMED).to_pylist() == expected


def test_errors_are_of_one_family() -> None:
    assert issubclass(UnsupportedExpressionError, DeltaError)
