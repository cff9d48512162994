"""Pruning loses no row: a table with statistics answers every predicate as one without any does."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core.expressions.ast import Call, Column, Expression, Literal
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples

SCHEMA = {
    "i": "integer",
    "l": "long",
    "f": "double",
    "g": "float",
    "s": "string",
    "d": "date",
    "t": "timestamp",
    "n": "timestamp_ntz",
    "c": "decimal(12,3)",
    "b": "boolean",
    "p": "integer",
    "q": "string",
}
PARTITION = ["p", "q"]
BASE = dt.datetime.fromisoformat("1970-01-01T00:00:00")

#: Few distinct values near the traps: cut strings, half milliseconds, NaN, infinities, both zeros, ends of ranges.
STRINGS = [
    "",
    "a",
    "ab",
    "m" * 32,
    "m" * 33,
    "m" * 32 + "\U0010ffff" + "z",
    "é" * 40,
    "\ufffd",
    "\U0001f600",
    "\x7f",
    "zz",
]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, 1.5, -2.0, 1e300]
MICROS = [-1, 0, 1, 999, 1000, 1001, 1_500_000, -1_000_001, 86_400_000_000]
VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 1, 2, 5, 2**31 - 1],
    "l": [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "f": FLOATS,
    "g": [x for x in FLOATS if x != 1e300],
    "s": STRINGS,
    "d": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "t": [(BASE + dt.timedelta(microseconds=m)).replace(tzinfo=dt.UTC) for m in MICROS],
    "n": [BASE + dt.timedelta(microseconds=m) for m in MICROS],
    "c": [Decimal(x) for x in ("-999999999.999", "-0.001", "0.000", "0.001", "1.500", "999999999.999")],
    "b": [True, False],
    "p": [-1, 0, 7],
    "q": ["", "a", "a b/c%", "ü"],
}
TYPES = {name: PrimitiveType(kind) for name, kind in SCHEMA.items()}
OTHER_LITERALS = [
    Literal(1.5, PrimitiveType("double")),
    Literal(2**40, PrimitiveType("long")),
    Literal(1, PrimitiveType("integer")),
    Literal(Decimal("0.0005"), PrimitiveType("decimal(5,4)")),
    Literal(Decimal(2**53 + 1), PrimitiveType("decimal(16,0)")),
]
COMPARISONS = ["=", "!=", "<", "<=", ">", ">=", "<=>"]

row = st.fixed_dictionaries({name: st.sampled_from([None, *values]) for name, values in VALUES.items()})


@st.composite
def comparison(draw: st.DrawFn) -> Expression:
    name = draw(st.sampled_from(sorted(SCHEMA)))
    column, kind = Column((name,)), TYPES[name]
    if name in ("i", "l", "f", "c", "p") and draw(st.integers(0, 3)) == 0:
        value = draw(st.sampled_from(OTHER_LITERALS))
    else:
        value = Literal(draw(st.sampled_from([*VALUES[name], None])), kind)
    shape = draw(st.sampled_from(["compare", "compare", "turned", "in", "isnull", "isnotnull", "columns"]))
    if shape == "compare":
        return Call(draw(st.sampled_from(COMPARISONS)), (column, value))
    if shape == "turned":
        return Call(draw(st.sampled_from(COMPARISONS)), (value, column))
    if shape == "in":
        others = [
            Literal(v, kind) for v in draw(st.lists(st.sampled_from([*VALUES[name], None]), min_size=1, max_size=3))
        ]
        return Call("in", (column, *others))
    if shape == "columns":
        left, right = draw(st.sampled_from([("i", "p"), ("f", "g"), ("s", "q"), ("i", "l")]))
        return Call(draw(st.sampled_from(COMPARISONS)), (Column((left,)), Column((right,))))
    return Call(shape, (column,))


predicate = st.recursive(
    comparison(),
    lambda inner: st.one_of(
        st.builds(lambda a, b: Call("and", (a, b)), inner, inner),
        st.builds(lambda a, b: Call("or", (a, b)), inner, inner),
        st.builds(lambda a: Call("not", (a,)), inner),
    ),
    max_leaves=5,
)


def build(path: str, files: list[list[dict[str, Any]]], statistics: bool, dropped: set[int]) -> TableBuilder:
    table = TableBuilder(path).create(SCHEMA, partition_by=PARTITION, features=["deletionVectors", "timestampNtz"])
    parquet = {"write_statistics": statistics, "row_group_size": 2}
    for rows in files:
        table.append(rows, statistics=statistics, parquet=parquet)
    hits = {path: [0] for number, path in enumerate(table.paths()) if number in dropped}
    return table.delete_rows(hits) if hits else table


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=4),
    predicates=st.lists(predicate, min_size=4, max_size=8),
    form=st.sampled_from(["commits", "json", "struct", "both"]),
    dropped=st.sets(st.integers(0, 5), max_size=3),
)
def test_no_row_is_lost_by_statistics_partitions_or_row_groups(
    files: list[list[dict[str, Any]]], predicates: list[Expression], form: Any, dropped: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        pruned = build(f"{place}/pruned", files, True, dropped)
        plain = build(f"{place}/plain", files, False, dropped)
        if form != "commits":
            pruned.checkpoint(statistics=form).cleanup_before(pruned.version)
        left, right = open_snapshot(pruned.uri), open_snapshot(plain.uri)
        assert_same_rows(left.scan().to_table(), pruned.expected())
        for where in predicates:
            everything = right.scan(predicate=where).to_table()
            assert_same_rows(left.scan(predicate=where).to_table(), everything)
            assert left.scan(predicate=where).count() == everything.num_rows


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(st.lists(st.integers(-50, 50) | st.none(), min_size=1, max_size=8), min_size=1, max_size=6),
    bound=st.integers(-55, 55),
    operator=st.sampled_from(COMPARISONS),
)
def test_pruned_files_hold_no_row_and_kept_ones_are_few(
    values: list[list[int | None]], bound: int, operator: str
) -> None:
    """A range over disjoint files plans no file that can't hold a row: pruning prunes at all."""
    with tempfile.TemporaryDirectory() as place:
        table = TableBuilder(place).create({"x": "long"})
        for chunk in values:
            table.append({"x": chunk})
        where = Call(operator, (Column(("x",)), Literal(bound, PrimitiveType("long"))))
        planned = set(open_snapshot(place).scan(predicate=where).files().column("path").to_pylist())
        for path, chunk in zip(table.paths(), values, strict=True):
            if any(v is not None and _holds(v, operator, bound) for v in chunk):
                assert path in planned
            if operator in ("<", ">", "=", "<=", ">="):
                known = [v for v in chunk if v is not None]
                possible = known and any(_holds(v, operator, bound) for v in range(min(known), max(known) + 1))
                assert bool(possible) == (path in planned)


def _holds(value: int, operator: str, bound: int) -> bool:
    return {
        "=": value == bound,
        "<=>": value == bound,
        "!=": value != bound,
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
    }[operator]
