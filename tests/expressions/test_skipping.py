"""Pruning: no file that holds a matching row is ever dropped, and what can be dropped is."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.engines.arrow.evaluate.evaluator import compile_expression
from delta_core.expressions import bind, format_sql, parse_sql, plan_skipping, to_expression
from delta_core.expressions.ast import Call, Cast, Column, Expression, FileStatistic, Literal, PartitionValue
from delta_core.schema.fields import ColumnMap
from delta_core.schema.types import ArrayType, Field, PrimitiveType, StructType

UTC = dt.UTC
SCHEMA = StructType([
    Field("i", "integer"), Field("j", "integer"), Field("l", "long"), Field("f", "double"), Field("g", "double"),
    Field("s", "string"), Field("d", "date"), Field("ts", "timestamp"), Field("ntz", "timestamp_ntz"),
    Field("b", "boolean"), Field("dec", "decimal(10,2)"), Field("st", StructType([Field("x", "integer")])),
    Field("bin", "binary"), Field("arr", ArrayType(PrimitiveType("integer"))), Field("p", "integer"), Field("q",
                                                                                                            "double"),
])  # fmt: skip
PARTITIONS = ["p", "q"]
IDENTITY = ColumnMap.identity(SCHEMA)


def plan(text: str, schema: StructType = SCHEMA, column_map: ColumnMap = IDENTITY) -> Any:
    return plan_skipping(bind(parse_sql(text), schema), schema, column_map, PARTITIONS)


def evaluate_all(expression: Expression | None, files: list[dict[Any, Any]]) -> list[bool | None]:
    """Evaluate over files; values by (kind, path) or partition name, absent ones null."""
    if expression is None:
        return [True] * len(files)
    compiled = compile_expression(expression, {})
    columns = []
    for leaf in compiled.leaves:
        key: Any = leaf.name if isinstance(leaf, PartitionValue) else (leaf.kind, ".".join(leaf.path))  # type: ignore[union-attr]
        columns.append(pa.array([values.get(key) for values in files], leaf.type.to_arrow()))  # type: ignore[union-attr]
    found: list[bool | None] = compiled(columns, len(files)).to_pylist()
    return found


def evaluate(expression: Expression | None, values: dict[Any, Any]) -> bool | None:
    return evaluate_all(expression, [values])[0]


def keeps(text: str, **statistics: Any) -> bool:
    """Return whether a file is kept, given e.g. ``min_i=1, max_i=5, nulls_i=0, rows=10``."""
    kinds = {"min": "min", "max": "max", "nulls": "nullCount"}
    values = {
        (kinds[k.split("_")[0]], k.split("_")[1].replace("__", ".")): v for k, v in statistics.items() if k != "rows"
    }
    values["numRecords", ""] = statistics.get("rows")
    return evaluate(plan(text).statistics, values) is not False


# --- what is pruned ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 4", False), ("i = 5", True), ("i = 10", True), ("i = 11", False), ("i < 5", False), ("i <= 5", True),
        ("i > 10", False), ("i >= 10", True), ("4 = i", False), ("10 < i", False), ("i != 7", True),
        ("i in (1, 2)", False), ("i in (1, 7)", True), ("i in (1, null)", False), ("i not in (1, null)", False),
        ("i between 11 and 20", False), ("i between 1 and 5", True), ("not (i <= 10)", False), ("not (i > 10)", True),
        ("i = 4 and s = 'x'", False), ("i = 4 or s = 'x'", True), ("i = 4 or i = 11", False), ("i <=> 4", False),
        ("not (i <=> 4)", True), ("i = 4.5", False), ("i > 9.5", True), ("i > 10.5", False), ("i > 1e1", False),
        ("i = '4'", False), ("cast(i as double) > 10", False), ("i = l", True), ("i is null", False),
        ("i is not null", True), ("i = null", False), ("i <=> null", False), ("false", False), ("i + 1 = 0", True),
        ("coalesce(i, 0) = 0", True), ("i = 4 and isnan(f)", False), ("i > 10 or false", False),
    ],
)  # fmt: skip
def test_integer_bounds_prune(text: str, kept: bool) -> None:
    found = plan(text)
    values = {("min", "i"): 5, ("max", "i"): 10, ("nullCount", "i"): 0, ("numRecords", ""): 3}
    assert (evaluate(found.partition, {}) is True and evaluate(found.statistics, values) is not False) is kept


def test_equal_bounds_prune_unequal() -> None:
    assert not keeps("i != 5", min_i=5, max_i=5)
    assert not keeps("i not in (5, 6)", min_i=5, max_i=5)
    assert keeps("i not in (4, 6)", min_i=5, max_i=5)


def test_column_against_column_prunes() -> None:
    assert not keeps("i > j", min_i=1, max_i=5, min_j=5, max_j=9)
    assert keeps("i >= j", min_i=1, max_i=5, min_j=5, max_j=9)
    assert not keeps("i = l", min_i=1, max_i=5, min_l=6, max_l=9)
    assert not keeps("i != j", min_i=5, max_i=5, min_j=5, max_j=5)
    assert keeps("i <=> j", min_i=1, max_i=2, min_j=5, max_j=9, nulls_i=1, nulls_j=1)
    assert not keeps("i <=> j", min_i=1, max_i=2, min_j=5, max_j=9, nulls_i=1, nulls_j=0)


def test_all_null_file_matches_no_comparison() -> None:
    for text in (
        "i = 5",
        "i != 5",
        "i > 5",
        "not (i = 5)",
        "i in (1)",
        "s like 'a%'",
        "st.x = 1",
        "f > 1",
        "i is not null",
    ):
        column = {"s": "s", "f": "f"}.get(text[0], "i") if not text.startswith("st") else "st.x"
        found = evaluate(plan(text).statistics, {("nullCount", column): 3, ("numRecords", ""): 3})
        assert found is False, text


def test_null_tests_prune_by_null_count() -> None:
    assert not keeps("i is null", nulls_i=0, rows=3)
    assert keeps("i is null", nulls_i=1, rows=3)
    assert keeps("i is null", rows=3)
    assert keeps("i is not null", nulls_i=2, rows=3)
    assert not keeps("arr is null", nulls_arr=0)
    assert plan("st is null").statistics is None


def test_missing_statistics_never_prune() -> None:
    for text in ("i = 1", "i > 1", "i is null", "s like 'a%'", "year(ts) = 2020", "f < 1", "i != j", "b"):
        assert keeps(text), text


def test_nan_is_above_every_maximum() -> None:
    bounds = {"min_f": 1.0, "max_f": 2.0}
    for text in (
        "f > 5",
        "f >= 5",
        "f != 1",
        "not (f <= 5)",
        "isnan(f)",
        "f = double('nan')",
        "f in (double('nan'))",
        "g < f",
    ):
        assert keeps(text, min_g=9.0, max_g=9.0, **bounds), text
    assert keeps("f != 1", min_f=1.0, max_f=1.0)
    for text in (
        "f < 1",
        "f <= 0",
        "f = 5",
        "f in (0, 5)",
        "f between 3 and 4",
        "f > 5 and f < 9",
        "not isnan(f) and f > 5",
    ):
        assert not keeps(text, **bounds), text


def test_nan_in_bounds_reports_nothing() -> None:
    assert keeps("f < 1", min_f=math.nan, max_f=math.nan)
    assert keeps("f = 1", min_f=math.nan, max_f=math.nan)


def test_timestamp_maximum_is_a_millisecond_late() -> None:
    floored = dt.datetime(2020, 1, 1, tzinfo=UTC)
    assert keeps("ts > '2020-01-01 00:00:00.0005'", min_ts=floored, max_ts=floored)
    assert keeps("ts = '2020-01-01 00:00:00.000999'", min_ts=floored, max_ts=floored)
    assert not keeps("ts > '2020-01-01 00:00:00.001'", min_ts=floored, max_ts=floored)
    assert not keeps("ts < '2020-01-01'", min_ts=floored, max_ts=floored)
    assert keeps("ts != '2020-01-01'", min_ts=floored, max_ts=floored)
    assert keeps("ntz > ts", min_ts=floored, max_ntz=floored.replace(tzinfo=None))
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert keeps("year(ts) = 10000", min_ts=last, max_ts=last)


def test_monotone_functions_prune() -> None:
    low, high = dt.datetime(2019, 5, 1, tzinfo=UTC), dt.datetime(2019, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert not keeps("year(ts) = 2018", min_ts=low, max_ts=high)
    assert keeps("year(ts) = 2020", min_ts=low, max_ts=high)  # by the millisecond
    assert not keeps("year(ts) = 2021", min_ts=low, max_ts=high)
    assert not keeps("cast(ts as date) < '2019-05-01'", min_ts=low, max_ts=high)
    assert not keeps("date_trunc('month', ts) = '2019-04-01'", min_ts=low, max_ts=high)
    assert not keeps("substring(s, 1, 2) = 'zz'", min_s="abc", max_s="xyz")
    assert keeps("substring(s, 2, 2) = 'zz'", min_s="abc", max_s="xyz")


def test_text_prefix_prunes_in_byte_order() -> None:
    assert not keeps("s like 'b%'", min_s="c", max_s="d")
    assert not keeps("s like 'b%'", min_s="a", max_s="az")
    assert keeps("s like 'b%'", min_s="a", max_s="b")
    assert keeps("s like '%b'", min_s="c", max_s="d")
    assert not keeps("startswith(s, 'é')", min_s="a", max_s="z")
    assert keeps("s > 'z'", min_s="a", max_s="é")
    assert not keeps("s like 'abc'", min_s="abd", max_s="b")
    assert keeps("s like '\U0010ffff%'", min_s="a", max_s="\U0010ffff")
    assert keeps("not s like 'a%'", min_s="ab", max_s="ac")


def test_binary_and_collated_columns_have_no_bounds() -> None:
    assert keeps("bin = X'00'", min_bin=b"1", max_bin=b"1")
    collated = StructType([Field("s", "string", metadata={"__COLLATIONS": {"s": "ICU.UTF8_LCASE"}})])
    found = plan("s = 'a'", collated, ColumnMap.identity(collated))
    assert "min" not in repr(found.statistics)


def test_decimal_bounds_are_exact() -> None:
    assert not keeps("dec = 0.10", min_dec=Decimal("0.11"), max_dec=Decimal("0.12"))
    assert keeps("dec > 12345678.885", max_dec=Decimal("12345678.89"))
    assert not keeps("dec > 12345678.895", max_dec=Decimal("12345678.89"))


def test_literal_is_never_cut_to_the_columns_type() -> None:
    assert not keeps("i = 5000000000", min_i=-(2**31), max_i=2**31 - 1)
    assert keeps("i < 5000000000", min_i=5, max_i=5)
    assert keeps("d < timestamp '2020-01-01 00:00:01'", min_d=dt.date(2020, 1, 1), max_d=dt.date(2020, 1, 1))
    assert not keeps("d < timestamp '2020-01-01 00:00:00'", min_d=dt.date(2020, 1, 1), max_d=dt.date(2020, 1, 1))


# --- partitions ----------------------------------------------------------------------------


def test_partition_predicate_is_exact() -> None:
    found = plan("p = 1 and i > 5 and (p < 9 or q > 1)")
    assert {type(x) for x in found.partition.args} == {Call}
    assert evaluate(found.partition, {"p": 1}) is True
    assert evaluate(found.partition, {"p": 2}) is False
    assert evaluate(found.partition, {"p": None}) is None


def test_partition_part_of_a_mixed_disjunction_prunes() -> None:
    found = plan("(p = 1 and i > 5) or (p = 2 and i < 3)")
    assert evaluate(found.partition, {"p": 3}) is False
    assert evaluate(found.statistics, {"p": 1, ("max", "i"): 4}) is False
    assert evaluate(found.statistics, {"p": 2, ("min", "i"): 1}) is not False
    assert plan("p = 1 or i = 5").partition is None
    negated = plan("not (p = 1 or i = 5)")
    assert evaluate(negated.partition, {"p": 1}) is False


def test_names_are_physical() -> None:
    physical = StructType([Field("col-1", StructType([Field("col-2", "integer")])), Field("col-3", "integer")])
    logical = StructType([Field("st", StructType([Field("x", "integer")])), Field("p", "integer")])
    found = plan_skipping(bind(parse_sql("ST.X = 1 and P = 2"), logical), logical, ColumnMap("id", physical), ["p"])
    assert found.partition == Call(
        "=", (PartitionValue("col-3", PrimitiveType("integer")), Literal(2, PrimitiveType("integer")))
    )
    assert (
        FileStatistic("min", ("col-1", "col-2"), PrimitiveType("integer"))
        in compile_expression(found.statistics, {}).leaves
    )


def test_no_predicate_plans_nothing() -> None:
    assert plan_skipping(None, SCHEMA, IDENTITY, []) == plan_skipping(to_expression([], SCHEMA), SCHEMA, IDENTITY, [])


# --- property ------------------------------------------------------------------------------

EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
LETTERS = ["a", "b", "\x7f", "é", "\uffff", "\U00010000", "\U0010ffff"]
INTS = list(range(-3, 4))
FLOATS = [-1.5, -0.0, 0.0, 1.0, math.inf, math.nan, math.nan]
TIMES = [EPOCH + dt.timedelta(microseconds=us) for us in (-2000, -1001, -1000, -999, -1, 0, 1, 999, 1000, 1001, 2500)]
DATES = [dt.date(1969, 12, 30) + dt.timedelta(days=n) for n in range(4)]
DECIMALS = [Decimal(n).scaleb(-2) for n in (-150, -1, 0, 1, 150)]
POOLS: dict[str, list[Any]] = {
    **dict.fromkeys(("i", "j", "l", "st.x", "p"), INTS),
    **dict.fromkeys(("f", "g", "q"), FLOATS),
    "s": [],
    "d": DATES,
    "ts": TIMES,
    "ntz": [t.replace(tzinfo=None) for t in TIMES],
    "b": [True, False],
    "dec": DECIMALS,
}
TYPES = {name: (SCHEMA.get(name).type if name != "st.x" else PrimitiveType("integer")) for name in POOLS}  # type: ignore[union-attr]
GROUPS = [["i", "j", "l", "st.x", "p"], ["f", "g", "q"], ["s"], ["d", "ts", "ntz"], ["b"], ["dec"]]
COMPARE = ["=", "!=", "<", "<=", ">", ">=", "<=>"]


class Draw:
    """Draws files and predicates over a few columns, evenly, from a seed."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.groups = self.pick.sample(GROUPS, self.pick.choice((1, 1, 2)))
        self.names = [name for group in self.groups for name in group]

    def value(self, name: str) -> Any:
        if name == "s":
            return "".join(self.pick.choices(LETTERS, k=self.pick.randrange(4)))
        return self.pick.choice(POOLS[name])

    def column(self, name: str) -> Column:
        return Column(tuple(name.split(".")))

    def predicate(self, depth: int = 2) -> Expression:
        kind = self.pick.choice(("and", "or", "not", "atom", "atom")) if depth else "atom"
        if kind == "atom":
            group = self.pick.choice(self.groups)
            return self.atom(self.pick.choice(group), group)
        return Call(kind, tuple(self.predicate(depth - 1) for _ in range(1 if kind == "not" else 2)))

    def atom(self, name: str, group: list[str]) -> Expression:
        left: Expression = self.column(name)
        kind = self.pick.choice(("compare", "compare", "compare", "columns", "in", "null", "special"))
        if kind == "compare":
            args = (left, Literal(self.value(name)))
            return Call(self.pick.choice(COMPARE), args if self.pick.random() < 0.7 else args[::-1])
        if kind == "columns":
            return Call(self.pick.choice(COMPARE), (left, self.column(self.pick.choice(group))))
        if kind == "in":
            members = [
                self.value(name) if self.pick.random() < 0.9 else None for _ in range(self.pick.choice((1, 2, 30)))
            ]
            return Call("in", (left, *map(Literal, members)))
        if kind == "null":
            return Call(self.pick.choice(("isnull", "isnotnull")), (left,))
        return self.special(name, left)

    def special(self, name: str, left: Expression) -> Expression:
        """Predicates that belong to one type."""
        operator = self.pick.choice(COMPARE)
        if name == "s":
            pattern = "".join(self.pick.choices(["a", "b", "é", "%", "_", "\U0010ffff"], k=self.pick.randrange(4)))
            cut = Call("substring", (left, Literal(1), Literal(2)))
            return self.pick.choice(
                (
                    Call("like", (left, Literal(pattern))),
                    Call("startswith", (left, Literal(self.value(name)))),
                    Call(operator, (cut, Literal(self.value(name)))),
                )
            )
        if name in ("ts", "ntz"):
            as_date: Expression = Cast(left, PrimitiveType("date"))
            year = Call("year", (left,))
            return self.pick.choice(
                (Call(operator, (as_date, Literal(self.value("d")))), Call(operator, (year, Literal(1970))))
            )
        if name in ("f", "g", "q"):
            return Call("isnan", (left,))
        if name == "b":
            return left
        if name == "d":
            return Call(operator, (left, Literal(self.value("ts"))))
        return Call(operator, (left, Literal(self.pick.choice((0.5, -2.5, Decimal("1.5"), math.nan)))))

    def file(self) -> tuple[dict[str, list[Any]], dict[Any, Any]]:
        """Return a file's live rows and its statistics, which may be of more rows than are live."""
        count = self.pick.randrange(1, 4)
        rows: dict[str, list[Any]] = {}
        values: dict[Any, Any] = {("numRecords", ""): count}
        for name in self.names:
            nulls = self.pick.choice((0.0, 0.2, 1.0))
            rows[name] = [None if self.pick.random() < nulls else self.value(name) for _ in range(count)]
            if name in PARTITIONS:
                rows[name] = rows[name][:1] * count
                values[name] = rows[name][0]
            else:
                values |= self.statistics(name, rows[name])
        if self.pick.random() < 0.3:
            alive = [self.pick.random() < 0.5 for _ in range(count)]
            rows = {name: [v for v, keep in zip(column, alive, strict=True) if keep] for name, column in rows.items()}
        return rows, values

    def statistics(self, name: str, column: list[Any]) -> dict[Any, Any]:
        known = [v for v in column if v is not None and v == v]
        values: dict[Any, Any] = {("nullCount", name): sum(v is None for v in column)}
        if known:
            values["min", name] = _bound(name, min(known, key=_order))
            values["max", name] = _bound(name, max(known, key=_order), True)
        if any(v != v for v in column if v is not None) and self.pick.random() < 0.2:
            values["min", name] = values["max", name] = math.nan
        return {key: value for key, value in values.items() if self.pick.random() > 0.1}


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _bound(name: str, value: Any, is_max: bool = False) -> Any:
    """Write a bound as Spark does: text cut to two characters, times floored to milliseconds."""
    if name == "s" and len(value) > 2:
        rest = value[2]
        if not is_max:
            return value[:2]
        if rest == "\U0010ffff":
            return value
        return value[:2] + ("\x7f" if rest < "\x7f" else "\U0010ffff")
    if name in ("ts", "ntz"):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value


def matching(draw: Draw, predicate: Expression, files: list[dict[str, list[Any]]]) -> list[bool]:
    """Describe each file whether a row of it matches."""
    compiled = compile_expression(predicate, {draw.column(n): TYPES[n].to_arrow() for n in draw.names})
    counts = [len(next(iter(rows.values()))) for rows in files]
    names = [leaf.name for leaf in compiled.leaves]  # type: ignore[union-attr]
    columns = [pa.array([v for rows in files for v in rows[name]], TYPES[name].to_arrow()) for name in names]
    mask = [value is True for value in compiled(columns, sum(counts)).to_pylist()]
    return [any(mask[sum(counts[:i]) : sum(counts[: i + 1])]) for i in range(len(files))]


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_no_file_with_a_matching_row_is_dropped(seed: int) -> None:
    draw = Draw(seed)
    files = [draw.file() for _ in range(20)]
    for _ in range(12):
        predicate = bind(draw.predicate(), SCHEMA)
        found = plan_skipping(predicate, SCHEMA, IDENTITY, PARTITIONS)
        matches = matching(draw, predicate, [rows for rows, _ in files])
        statistics = [values for _, values in files]
        by_partition, by_statistics = (
            evaluate_all(found.partition, statistics),
            evaluate_all(found.statistics, statistics),
        )
        for matched, exact, kept, file in zip(matches, by_partition, by_statistics, files, strict=True):
            assert not matched or (exact is True and kept is not False), (format_sql(predicate), file)
