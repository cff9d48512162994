"""A test of a column's values accepts the rows that the condition does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.engines.conditions import (
    WILDCARD,
    JoinedTest,
    NullTest,
    RowCondition,
    TextBound,
    ValuePattern,
    ValueRange,
    ValueSet,
)
from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, Values
from delta_core.expressions.binding import bind
from delta_core.expressions.sql import parse_sql
from delta_core.kernel.snapshot import open_snapshot
from delta_core.scan.sources import ConstantSource, PhysicalSource
from delta_core.scan.value_ranges import column_test
from delta_core.schema.types import Field, PrimitiveType, StructType
from delta_core.table.writer import write_deltalake

X = Column(("x",))
Y = Column(("y",))
FLOATS = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.5, math.nan, math.inf, -math.inf]
VALUES: dict[str, list[Any]] = {
    "integer": [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "long": [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    "double": [*FLOATS, 1.7976931348623157e308, 2.2250738585072014e-308],
    "float": [*(f for f in FLOATS if abs(f) != 5e-324), 3.4028234663852886e38],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)],
    "timestamp": [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)],
}
OPERATORS = ("=", "<", "<=", ">", ">=")


def found(condition: Expression, name: str) -> Any:
    t = PrimitiveType(name).to_arrow()
    sources = {X: PhysicalSource(3), Y: PhysicalSource(4)}
    return column_test(condition, sources, {X: t, Y: t})


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_range_accepts_the_values_that_the_condition_accepts(name: str, data: st.DataObject) -> None:
    t = PrimitiveType(name)
    constant = st.sampled_from(VALUES[name]).map(lambda v: Literal(v, t))
    one = st.tuples(st.sampled_from(OPERATORS), constant, st.booleans()).map(
        lambda c: Call(c[0], (X, c[1]) if c[2] else (c[1], X))
    )
    present = st.just(Call("isnotnull", (X,)))
    several = st.tuples(one, st.one_of(one, present)).flatmap(st.permutations)
    condition = data.draw(st.one_of(one, several.map(lambda both: Call("and", tuple(both)))))
    values = found(condition, name)
    if values is None:
        return
    assert values.column == 3
    rows = pa.array([*VALUES[name], None], t.to_arrow())
    expected = ArrowEvaluator().compile(condition, {X: t.to_arrow()})([rows], len(rows))
    stored = rows.cast(pa.int64()) if name == "timestamp" else rows.cast(pa.int32()) if name == "date" else rows
    accepted = [
        v is not None and (values.least <= v <= values.most or (v != v and values.with_nan)) for v in stored.to_pylist()
    ]
    assert accepted == [v is True for v in expected.to_pylist()]


EXACT = {
    "decimal(9,2)": [0, 1, -1, 150, 10**9 - 1, 1 - 10**9],
    "decimal(38,2)": [0, -1, 2**64, 10**38 - 1, 1 - 10**38],
    "byte": [0, 1, -1, 127, -128],
    "short": [0, -1, 2**15 - 1, -(2**15)],
    "integer": [0, -1, 2**31 - 1, -(2**31)],
}


def in_units(value: int, digits: int) -> Decimal:
    return Decimal((value < 0, tuple(map(int, str(abs(value)))), -digits))


@pytest.mark.parametrize("name", EXACT)
@given(
    function=st.sampled_from(OPERATORS),
    number=st.sampled_from([0, 1, -1, 15, 127, 128, -129, 2**31, -(2**15), 2**63 - 1, 10**9, 1 - 10**9]),
    digits=st.integers(0, 4),
    is_first=st.booleans(),
)
def test_range_of_exact_numbers_accepts_the_values_that_the_condition_accepts(
    name: str, function: str, number: int, digits: int, is_first: bool
) -> None:
    t = PrimitiveType(name)
    is_decimal = name.startswith("decimal")
    constant = Literal(in_units(number, digits), PrimitiveType(f"decimal(23,{digits})")) if is_decimal else None
    value = X if is_decimal else Cast(X, PrimitiveType("long"))
    operands = (value, constant or Literal(number, PrimitiveType("long")))
    condition = Call(function, operands if is_first else operands[::-1])
    rows = pa.array([*(in_units(v, 2) if is_decimal else v for v in EXACT[name]), None], t.to_arrow())
    expected = ArrowEvaluator().compile(condition, {X: t.to_arrow()})([rows], len(rows)).to_pylist()
    values = found(condition, name)
    if values is None:  # there is no such value
        assert True not in expected
        return
    assert [values.least <= v <= values.most for v in EXACT[name]] == expected[:-1]


def test_keys_of_a_column_that_is_cast_to_more_bytes_are_a_set() -> None:
    members = (Literal(3, PrimitiveType("integer")), Literal(1000, PrimitiveType("integer")))
    test = found(Call("in", (Cast(X, PrimitiveType("integer")), *members)), "byte")
    assert isinstance(test, ValueSet)
    assert list(test.keys) == [3, 1000]


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        (Call("=", (Cast(X, PrimitiveType("integer")), Literal(1, PrimitiveType("integer")))), "long"),
        (Call("=", (Cast(X, PrimitiveType("double")), Literal(1.0, PrimitiveType("double")))), "integer"),
        (Call("<", (X, Literal(Decimal("1e-300"), PrimitiveType("decimal(38,38)")))), "decimal(9,2)"),
        (Call("isnull", (Cast(Y, PrimitiveType("string")),)), "integer"),
    ],
)
def test_other_casts_are_no_ranges(condition: Expression, name: str) -> None:
    assert found(condition, name) is None


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("function", OPERATORS)
def test_most_comparisons_are_ranges(name: str, function: str) -> None:
    assert found(Call(function, (X, Literal(VALUES[name][1], PrimitiveType(name)))), name) is not None


@pytest.mark.parametrize(
    "condition",
    [
        Call("<", (X, Literal(None, PrimitiveType("long")))),
        Call("<", (X, Literal(1, PrimitiveType("integer")))),
        Call("<", (X, Y)),
        Call("=", (Call("in", (X, Values(pa.array([1, 2]), PrimitiveType("long")))), Literal(True,
                                                                                             PrimitiveType("boolean")))),
        Call("<", (Literal(1, PrimitiveType("long")), Literal(2, PrimitiveType("long")))),
        Call("<", (Call("+", (X, X)), Literal(1, PrimitiveType("long")))),
        Call("or", (Call("<", (X, Literal(1, PrimitiveType("long")))), Call("<", (X, Y)))),
        Call("not", (Call("<=>", (X, Y)),)),
        Call("not", (Call("in", (X, Literal(1, PrimitiveType("long")), Literal(None, PrimitiveType("long")))),)),
        Call("<=", (X, Literal(2**63 - 1, PrimitiveType("long")))),
    ],
)  # fmt: skip
def test_other_conditions_are_no_ranges(condition: Expression) -> None:
    assert found(condition, "long") is None


def test_values_of_the_table_and_parts_of_columns_are_no_ranges() -> None:
    condition = Call("<", (X, Literal(1, PrimitiveType("long"))))
    for source in (ConstantSource(0), PhysicalSource(1, (0,))):
        assert column_test(condition, {X: source}, {X: pa.int64()}) is None


def test_null_test_of_another_column_is_no_range() -> None:
    below = Call("<", (X, Literal(1, PrimitiveType("long"))))
    assert found(Call("and", (below, Call("isnotnull", (below,)))), "long") is None


TEXTS = ["", "a", "ab", "abc", "b", "a%", "é", "e\u0301", "\U0001f600", "\U0001f600x", "a\0", "A"]
SETS: dict[str, list[Any]] = {
    name: VALUES[name] for name in ("integer", "long", "float", "double", "date", "timestamp")
}


def accepted(test: Any, rows: pa.Array) -> list[bool]:
    """Return which values a test accepts, in Python."""
    values = rows.to_pylist()
    if isinstance(test, NullTest):
        return [(v is None) == test.is_null for v in values]
    if isinstance(test, ValuePattern):
        parts = [".".join(re.escape(text.decode()) for text in part.split(WILDCARD)) for part in test.parts]
        pattern = re.compile(".*".join(parts), re.DOTALL)
        return [v is not None and pattern.fullmatch(v) is not None for v in values]
    assert isinstance(test, ValueSet)
    if isinstance(test.keys, tuple):
        assert list(test.keys) == sorted(set(test.keys))
        return [v is not None and v.encode() in test.keys for v in values]
    keys = test.keys.tolist()
    assert keys == sorted(set(keys))
    return [v is not None and v in keys for v in values]


@pytest.mark.parametrize("is_table", [False, True], ids=["constants", "table"])
@pytest.mark.parametrize("name", [*SETS, "string"])
@given(data=st.data())
def test_set_accepts_the_values_that_the_list_accepts(name: str, is_table: bool, data: st.DataObject) -> None:
    t = PrimitiveType(name)
    known = SETS.get(name, TEXTS)
    members = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=6))
    has_null = data.draw(st.booleans())
    constants = [Literal(v, t) for v in members] + [Literal(None, t)] * has_null
    table = Values(pa.array(members, t.to_arrow()), t, has_null)
    condition = Call("in", (X, table) if is_table else (X, *constants))
    if data.draw(st.booleans()):
        condition = Call("and", (condition, Call("isnotnull", (X,))))
    test = found(condition, name)
    if any(isinstance(v, float) and math.isnan(v) for v in members):
        assert test is None
        return
    rows = pa.array([*known, None], t.to_arrow())
    expected = ArrowEvaluator().compile(condition, {X: t.to_arrow()})([rows], len(rows))
    stored = rows.cast(pa.int64()) if name == "timestamp" else rows.cast(pa.int32()) if name == "date" else rows
    assert accepted(test, stored) == [v is True for v in expected.to_pylist()]


@given(
    function=st.sampled_from(["=", "startswith", "endswith", "contains", "like", "like ^"]),
    text=st.one_of(st.sampled_from(TEXTS), st.text("ab%_\\^", max_size=4)),
    with_null_test=st.booleans(),
)
def test_text_conditions_accept_the_texts_that_the_condition_accepts(
    function: str, text: str, with_null_test: bool
) -> None:
    t = PrimitiveType("string")
    escape = (Literal("^", t),) if function == "like ^" else ()
    condition: Expression = Call(function.split(maxsplit=1)[0], (X, Literal(text, t), *escape))
    if with_null_test:
        condition = Call("and", (Call("isnotnull", (X,)), condition))
    rows = pa.array([*TEXTS, text, text + "a", None], pa.string())
    try:
        compiled = ArrowEvaluator().compile(condition, {X: pa.string()})
    except ExpressionError:  # an escape character in front of another one
        return
    test = found(condition, "string")
    assert test is not None
    assert accepted(test, rows) == [v is True for v in compiled([rows], len(rows)).to_pylist()]


def test_null_tests_alone_are_tested() -> None:
    for t in ("long", "string"):
        assert found(Call("isnotnull", (X,)), t) == NullTest(3, False)
        assert found(Call("isnull", (X,)), t) == NullTest(3, True)
    both = Call("and", (Call("isnull", (X,)), Call("isnotnull", (X,))))
    assert found(both, "long") is None


JOINED: dict[str, list[Any]] = {
    **VALUES,
    "string": TEXTS,
    "boolean": [True, False],
    "decimal(9,2)": [Decimal(x) for x in ("0.00", "-0.01", "1.50", "9999999.99")],
}
_COMPARED = ["=", "!=", "<", "<=", ">", ">=", "<=>"]


def combined(name: str) -> st.SearchStrategy[Expression]:
    t = PrimitiveType(name)
    constant = st.sampled_from([*JOINED[name], None]).map(lambda v: Literal(v, t))
    column = st.sampled_from([X, Y])
    parts: list[st.SearchStrategy[Expression]] = [
        st.builds(lambda f, c, v: Call(f, (c, v)), st.sampled_from(_COMPARED), column, constant),
        st.builds(lambda f, c, v: Call(f, (v, c)), st.sampled_from(_COMPARED), column, constant),
        st.builds(lambda c, vs: Call("in", (c, *vs)), column, st.lists(constant, min_size=1, max_size=3)),
        st.builds(lambda f, c: Call(f, (c,)), st.sampled_from(["isnull", "isnotnull"]), column),
    ]
    if name == "boolean":
        parts.append(column)
    return st.recursive(
        st.one_of(parts),
        lambda inner: st.one_of(
            st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["and", "or"]), inner, inner),
            st.builds(lambda a: Call("not", (a,)), inner),
        ),
        max_leaves=6,
    )


def passes(test: Any, row: dict[int, Any]) -> bool:
    """Return whether a row of stored values, by column, passes a test."""
    if isinstance(test, RowCondition):
        return (any if test.is_any else all)(passes(part, row) for part in test.parts)
    value = row[test.column]
    if isinstance(test, NullTest):
        return (value is None) == test.is_null
    if value is None:
        return isinstance(test, JoinedTest) and test.with_null
    if isinstance(test, JoinedTest):
        return (any if test.is_any else all)(passes(part, row) for part in test.parts) != test.is_negated
    if isinstance(test, TextBound):
        return bool(value < test.key or (test.with_key and value == test.key))
    if isinstance(test, ValueSet):
        return value in (test.keys if isinstance(test.keys, tuple) else test.keys.tolist())
    return bool(test.least <= value <= test.most or (value != value and test.with_nan))


@pytest.mark.parametrize("name", JOINED)
@given(data=st.data())
def test_joined_conditions_accept_the_rows_that_the_condition_accepts(name: str, data: st.DataObject) -> None:
    t = PrimitiveType(name).to_arrow()
    condition = data.draw(combined(name))
    test = found(condition, name)
    if test is None:
        return
    known = pa.array([*JOINED[name], None], t)
    n = len(known)
    x, y = known.take(pa.array(np.repeat(np.arange(n), n))), known.take(pa.array(np.tile(np.arange(n), n)))
    compiled = ArrowEvaluator().compile(condition, {X: t, Y: t})
    expected = compiled([x if leaf == X else y for leaf in compiled.leaves], n * n).to_pylist()
    rows = [{3: a, 4: b} for a, b in zip(as_stored(x), as_stored(y), strict=True)]
    assert [passes(test, row) for row in rows] == [v is True for v in expected]


def as_stored(array: pa.Array) -> list[Any]:
    t = array.type
    if pa.types.is_decimal(t):
        return [None if v is None else int(v.scaleb(t.scale)) for v in array.to_pylist()]
    if pa.types.is_string(t):
        return list(array.cast(pa.binary()).to_pylist())
    if pa.types.is_temporal(t):
        array = array.cast(pa.int32() if pa.types.is_date(t) else pa.int64())
    return list(array.to_pylist())


LOSSLESS: dict[str, tuple[str, list[Any]]] = {
    "integer": ("decimal(12,1)", [Decimal(x) for x in ("0.0", "-0.5", "1.0", "2147483647.0", "2147483647.5", "1e9")]),
    "byte": ("decimal(5,0)", [Decimal(x) for x in ("0", "127.5", "-128", "-129", "1")]),
    "long": ("decimal(20,0)", [Decimal(x) for x in ("0", "9223372036854775807", "9223372036854775807.5", "-0.1")]),
    "float": ("double", [0.0, -0.0, 0.1, 1.5, -1.5, 1e-300, 3.4028234663852886e38, 3.5e38, 5e-324]),
}


@pytest.mark.parametrize("name", LOSSLESS)
@given(function=st.sampled_from([*_COMPARED, "in"]), data=st.data(), is_negated=st.booleans(), is_first=st.booleans())
def test_constants_between_the_values_of_a_column_are_compared_exactly(
    name: str, function: str, data: st.DataObject, is_negated: bool, is_first: bool
) -> None:
    kind, constants = LOSSLESS[name]
    t = PrimitiveType(name).to_arrow()
    if function == "in" and kind != "double":
        kind = "decimal(38,10)"
    of_constants = PrimitiveType(kind if kind == "double" else "decimal(38,10)")
    value = Cast(X, PrimitiveType(kind))
    chosen = data.draw(st.lists(st.sampled_from(constants), min_size=2, max_size=2))
    literals = [Literal(c, of_constants) for c in chosen]
    condition: Expression = Call(function, (value, literals[0]) if is_first else (literals[0], value))
    if function == "in":
        condition = Call("in", (value, *literals))
    condition = Call("not", (condition,)) if is_negated else condition
    test = found(condition, name)
    if test is None:
        return
    known = VALUES.get(name, [0, 1, 127, -128])
    rows = pa.array([*known, None], t)
    expected = ArrowEvaluator().compile(condition, {X: t})([rows], len(rows)).to_pylist()
    assert [passes(test, {3: v}) for v in rows.to_pylist()] == [v is True for v in expected]


@pytest.mark.parametrize(
    "sql",
    [
        "d >= current_date() - 7",
        "date_sub(current_date(), 7) < d",
        "t > now() - interval 1 day",
        "x > 5 + 990",
        "x > 995.5",
        "g > 0.1",
    ],
)
def test_constants_that_are_calculated_are_compared_as_values_are_decoded(sql: str) -> None:
    kinds = {"d": "date", "t": "timestamp", "x": "long", "g": "float"}
    scope = StructType([Field(name, PrimitiveType(kind)) for name, kind in kinds.items()])
    condition = bind(parse_sql(sql), scope)
    columns = [Column((name,)) for name in kinds]
    sources = {column: PhysicalSource(i) for i, column in enumerate(columns)}
    types = {c: PrimitiveType(k).to_arrow() for c, k in zip(columns, kinds.values(), strict=True)}
    evaluator = ArrowEvaluator()
    assert isinstance(column_test(condition, sources, types, lambda e: evaluator.compile(e, types)), ValueRange)


@pytest.mark.parametrize("sql", ["x > 9223372036854775807 + 1", "x > rand() * 1000", "x > length('abc')"])
def test_constants_that_fail_or_differ_from_row_to_row_are_left_to_rows(sql: str) -> None:
    types = {X: pa.int64()}
    try:
        condition = bind(parse_sql(sql), StructType([Field("x", PrimitiveType("long"))]))
    except ExpressionError:
        return
    evaluator = ArrowEvaluator()
    assert column_test(condition, {X: PhysicalSource(0)}, types, lambda e: evaluator.compile(e, types)) is None


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("x <> 1", JoinedTest),
        ("x = 1 or x = 2 or x in (3, 4)", ValueSet),
        ("x not in (1, 2)", JoinedTest),
        ("x not between 1 and 2", JoinedTest),
        ("x < 1 or x > 5 or x is null", JoinedTest),
        ("x < 1 or y > 5", RowCondition),
        ("(x = 1 and y = 2) or (x = 2 and y = 3)", RowCondition),
        ("not (x < 1 or y > 5)", RowCondition),
        ("not (x <=> 3)", JoinedTest),
    ],
)
def test_conditions_with_or_and_not_are_tested_as_values_are_decoded(sql: str, kind: type) -> None:
    scope = StructType([Field("x", PrimitiveType("long")), Field("y", PrimitiveType("long"))])
    condition = bind(parse_sql(sql), scope)
    assert isinstance(found(condition, "long"), kind)


@pytest.mark.parametrize(
    "condition",
    [
        Call("in", (X, Y)),
        Call("in", (X, Literal("a", PrimitiveType("binary")))),
        Call("like", (X, Y)),
        Call("startswith", (X, Literal(None, PrimitiveType("string")))),
        Call("in", (X, Values(pa.array([str(i) for i in range(100_001)]), PrimitiveType("string")))),
    ],
)
def test_other_conditions_of_texts_are_left_to_rows(condition: Expression) -> None:
    assert found(condition, "string") is None


COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "s": (pa.string(), [t for t in TEXTS if "\0" not in t]),
    "i": (pa.int32(), VALUES["integer"]),
    "l": (pa.int64(), VALUES["long"]),
    "d": (pa.float64(), [0.0, -0.0, 1.5, math.nan, math.inf, 5e-324]),
}
WRITERS = [
    WriterProperties(),
    WriterProperties(
        data_page_row_count_limit=20,
        dictionary_page_size_limit=8,
        write_batch_size=5,
        default_column_properties=ColumnProperties(statistics_enabled="PAGE"),
    ),
    WriterProperties(
        compression="UNCOMPRESSED",
        data_page_version="2.0",
        default_column_properties=ColumnProperties(dictionary_enabled=False),
    ),
    WriterProperties(
        compression="ZSTD",
        max_row_group_size=64,
        default_column_properties=ColumnProperties(
            dictionary_enabled=True, bloom_filter_properties=BloomFilterProperties(True)
        ),
    ),
]


@pytest.mark.parametrize("writer", WRITERS)
def test_long_list_of_texts_is_tested_as_values_are_decoded(tmp_path: Path, writer: WriterProperties) -> None:
    texts = [None if i % 7 == 0 else f"ü{i * i % 9_973}" * (1 + i % 3) for i in range(3_000)]
    write_deltalake(tmp_path, pa.table({"s": texts, "i": range(3_000)}), writer_properties=writer)
    keys = [f"ü{i}" * (1 + i % 3) for i in range(5_000)]
    scan = open_snapshot(str(tmp_path)).scan(predicate=[("s", "in", keys)])
    assert isinstance(found(Call("in", (X, Values(pa.array(keys), PrimitiveType("string")))), "string"), ValueSet)
    chosen = set(keys)
    assert scan.to_table()["i"].to_pylist() == [i for i, text in enumerate(texts) if text in chosen]


@st.composite
def conditions(draw: st.DrawFn) -> tuple[list[tuple[str, str, Any]], Callable[[dict[str, Any]], bool]]:
    """Draw filters joined with ``and``, and the same as a function of a row."""
    filters: list[tuple[str, str, Any]] = []
    tests: list[Callable[[dict[str, Any]], bool]] = []
    for name in draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=2, unique=True)):
        known = [v for v in COLUMNS[name][1] if v == v]
        keys = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        kind = draw(st.sampled_from(["=", "in", "is null", "is not null", *["like"] * (name == "s")]))
        if kind == "like":
            part, is_prefix = keys[0].replace("%", ""), draw(st.booleans())
            filters.append((name, "like", f"{part}%" if is_prefix else f"%{part}%"))
            test = str.startswith if is_prefix else str.__contains__
            tests.append(lambda row, n=name, p=part, test=test: row[n] is not None and test(row[n], p))
        elif kind.startswith("is"):
            filters.append((name, kind.removesuffix(" null"), None))
            tests.append(lambda row, n=name, absent=kind == "is null": (row[n] is None) == absent)
        else:
            keys = keys[:1] if kind == "=" else keys
            filters.append((name, kind, keys[0] if kind == "=" else keys))
            tests.append(lambda row, n=name, k=tuple(keys): row[n] is not None and row[n] in k)
    return filters, lambda row: all(test(row) for test in tests)


@pytest.mark.parametrize("writer", WRITERS, ids=["plain", "fallback", "v2", "groups"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_rows_of_a_table_are_those_of_a_full_read(writer: WriterProperties, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 200))
    random = data.draw(st.randoms(use_true_random=False))
    some_null = data.draw(st.sampled_from([0, 1, 5]))
    columns = {
        name: pa.array([random.choice([*values, *[None] * some_null]) for _ in range(rows)], t)
        for name, (t, values) in COLUMNS.items()
    }
    whole = pa.table({"row": pa.array(range(rows)), **columns})
    filters, passes = data.draw(conditions())
    wanted = [row["row"] for row in whole.to_pylist() if passes(row)]
    with TemporaryDirectory() as path:
        write_deltalake(path, whole, writer_properties=writer)
        for names in (None, ["row"], ["row", filters[0][0]]):
            found = open_snapshot(path).scan(names, predicate=filters).to_table()
            expected = whole.take(pa.array(wanted, pa.int64())).select(names or whole.column_names)
            assert found.column("row").to_pylist() == wanted
            assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN and -0.0 too
