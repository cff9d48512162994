"""Predicates as deep and as long as programs write them: right rows, or one typed error that names the limit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions import bind, format_sql, parse_sql, plan_skipping
from delta_core.expressions.ast import Call, Cast, Expression, check_depth, column, leaves, literal, transform
from delta_core.expressions.polars_filters import from_polars
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.runtime.recursion import MOST_NESTED, each, run
from delta_core.schema.fields import ColumnMap
from delta_core.schema.types import PrimitiveType
from delta_core.table.writer import write_deltalake

#: A little less than the limit, since a comparison and what it compares are levels too.
DEEP = MOST_NESTED - 5


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Snapshot:
    path = tmp_path_factory.mktemp("deep")
    write_deltalake(path, pa.table({"x": [1, 2, 3], "p": ["a", "2", "2"]}), partition_by=["p"])
    return open_snapshot(path)


@pytest.fixture(autouse=True)
def shallow_stack() -> Iterator[None]:
    """Leave the interpreter's usual limit, and little of it: nothing may lean on a higher one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    yield
    sys.setrecursionlimit(before)


#: By name: the text of so many levels, and the values of x for which it is true.
TEXTS: dict[str, tuple[Callable[[int], str], list[int]]] = {
    "parentheses": (lambda n: "(" * n + "x > 1" + ")" * n, [2, 3]),
    "not": (lambda n: "not (" * n + "x > 1" + ")" * n, [1]),
    "functions": (lambda n: "abs(" * n + "x" + ")" * n + " > 1", [2, 3]),
    "casts": (lambda n: "cast(" * n + "x" + " as bigint)" * n + " > 1", [2, 3]),
    "sums": (lambda n: "x" + " + 1" * n + f" > {n + 1}", [2, 3]),
    "sums in parentheses": (lambda n: "(1 + " * n + "x" + ")" * n + f" > {n + 1}", [2, 3]),
    "and, or": (lambda n: "(x > 0 and (x < 0 or " * (n // 2) + "x > 1" + "))" * (n // 2), [2, 3]),
    "case": (lambda n: "case when x > 3 then 0 else " * n + "x" + " end" * n + " > 1", [2, 3]),
    "if": (lambda n: "if(x > 3, 0, " * n + "x" + ")" * n + " > 1", [2, 3]),
    "partition values": (lambda n: "coalesce(" * n + "p" + ")" * n + " = '2'", [2, 3]),
    "guards": (lambda n: "(p <> 'a' and (x > 9 or " * (n // 2) + "cast(p as int) = 2" + "))" * (n // 2), [2, 3]),
    "fields": (lambda n: "not (x in (" + "1, " * n + "1))", [2, 3]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_deep_text_returns_the_rows_of_a_shallow_one(table: Snapshot, name: str) -> None:
    text, expected = TEXTS[name]
    # the fixture's limit of recursion is below either
    levels = DEEP if name in ("parentheses", "functions", "not") else 701
    assert sorted(table.scan(predicate=text(levels)).to_table().column("x").to_pylist()) == expected


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"parentheses", "fields"}))
def test_deeper_text_is_rejected_with_the_limit(table: Snapshot, name: str) -> None:
    with pytest.raises(ExpressionError, match="more than 2000 levels") as caught:
        table.scan(predicate=TEXTS[name][0](MOST_NESTED + 10)).to_table()
    assert caught.value.limit == MOST_NESTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not " * 3_000 + "x > 1", [2, 3]),
        ("not " * 3_001 + "x > 1", [1]),
        ("- " * 3_000 + "x > 1", [2, 3]),
        ("- " * 3_001 + "x > -2", [1]),
        ("5 - " + "- " * 3_000 + "x > 3", [1]),
        ("~ " * 3_001 + "x = -3", [2]),
    ],
)
def test_operators_in_a_row_return_the_rows_of_one_or_two(table: Snapshot, text: str, expected: list[int]) -> None:
    assert sorted(table.scan(predicate=text).to_table().column("x").to_pylist()) == expected


def test_types_are_checked_below_operators_in_a_row(table: Snapshot) -> None:
    with pytest.raises(ExpressionError, match="not"):
        table.scan(predicate="not " * 3_000 + "x").to_table()


def test_depth_without_parentheses_is_rejected(table: Snapshot) -> None:
    with pytest.raises(ExpressionError, match="nested too deep without parentheses"):
        table.scan(predicate="a[" * 3_000 + "1" + "]" * 3_000 + " = 1").to_table()


@pytest.mark.parametrize("word", ["and", "or"])
def test_chain_of_any_length_is_one_level(table: Snapshot, word: str) -> None:
    text = f" {word} ".join(f"x <> {i}" if word == "and" else f"x = {i}" for i in range(3, 1_500))
    bound = bind(parse_sql(text), table.schema)
    assert isinstance(bound, Call)
    assert len(bound.args) == 1_497
    assert sorted(table.scan(predicate=text).to_table().column("x").to_pylist()) == ([1, 2] if word == "and" else [3])


def nested(levels: int) -> Expression:
    e: Expression = Call(">", (column("x"), literal(1)))
    for i in range(levels):
        e = (
            Call("not", (e,))
            if i % 3
            else Call("or", (Call("and", (e, Call("<", (column("x"), literal(9))))), literal(False)))
        )
    return e


def test_every_walk_over_an_expression_takes_any_depth(table: Snapshot) -> None:
    e = nested(700)
    check_depth(e)
    assert leaves(e) == (column("x"),)
    assert transform(e, lambda leaf: leaf) == e == nested(700)
    assert e != nested(697)
    assert hash(e) == hash(nested(700))
    assert len(repr(e)) < 100_000
    bound = bind(e, table.schema)
    assert bind(bound, table.schema) == bound
    assert bind(parse_sql(format_sql(bound)), table.schema) == bound
    assert plan_skipping(bound, table.schema, ColumnMap.identity(table.schema), ["p"]).statistics is not None
    assert table.scan(predicate=e).count() == 2  # an even number of NOTs


def test_cast_chain_prunes_no_slower_than_it_is_long(table: Snapshot) -> None:
    e: Expression = column("x")
    for i in range(900):
        e = Cast(e, PrimitiveType("long" if i % 2 else "double"))
    assert table.scan(predicate=Call(">", (e, literal(1)))).count() == 2


def test_deep_expressions_of_pyarrow_and_polars_translate(table: Snapshot) -> None:
    summed, chain = pc.field("x"), pc.field("x") == 0
    for i in range(DEEP):
        summed = summed + 1
        chain = chain | (pc.field("x") == i + 3)
    assert table.scan(predicate=summed > DEEP + 1).count() == 2
    assert table.scan(predicate=chain).count() == 1
    pl = pytest.importorskip("polars")
    chain = pl.col("x") == 0
    for i in range(DEEP):
        chain = (chain | (pl.col("x") == i + 3)) if i % 2 else (chain & (pl.col("x") != -i))
    assert from_polars(chain).is_whole


def test_steps_return_results_and_errors_as_calls_do() -> None:
    def count(n: int) -> Any:
        if n < 0:
            raise ValueError(n)
        below = (yield count(n - 1)) if n else 0
        return below + 1

    def guarded(n: int) -> Any:
        try:
            return (yield count(n))
        except ValueError:
            return "caught"

    def several() -> Any:
        found = yield from each([count(2), 7, guarded(-1)])
        return found

    assert run(count(5_000)) == 5_001
    assert run(several()) == [3, 7, "caught"]
    with pytest.raises(ValueError, match="-1"):
        run(count(-1))


def test_failing_part_is_evaluated_twice_whatever_its_depth(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1, 2], "s": ["one", "2"]}))
    text = "cast(s as int) = 2"
    for _ in range(60):
        text = f"(x = 3 or (x = 2 and {text}))"
    assert open_snapshot(tmp_path).scan(predicate=text).count() == 1
