"""Conjuncts of a filter run cheapest first, and what may raise stays behind what keeps it from doing so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Column, leaves
from delta_core.expressions.filters import to_expression
from delta_core.scan.order import test_order as order_of
from delta_core.schema.fields import Schema

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "x": pa.int32(), "s": pa.struct({"y": pa.int64()})})


TYPES = {"id": pa.int64(), "name": pa.string(), "x": pa.int32(), "s": SCHEMA.field("s").type}


def ordered(predicate: str) -> list[list[str]]:
    """Return the columns of each part, in the order in which the parts run."""
    bound = to_expression(predicate, Schema.from_arrow(SCHEMA), {})
    types = {leaf: TYPES[leaf.path[0]] for leaf in leaves(bound) if isinstance(leaf, Column)}
    return [
        [".".join(leaf.path) for leaf in leaves(part) if isinstance(leaf, Column)] for part in order_of(bound, types)
    ]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("name = 'a' and id > 3", [["id"], ["name"]]),
        ("s.y > 1 and name like 'a%' and x > 3", [["x"], ["name"], ["s.y"]]),
        ("id > 3 and name = 'a' and id < 9", [["id"], ["name"]]),
        ("10 / x > 1 and id > 3 and name = 'a'", [["id"], ["name"], ["x"]]),
        ("10 / x > 1 and cast(name as int) > 3", [["x"], ["name"]]),
        ("id > x", [["id", "x"]]),
    ],
)
def test_order_is_by_cost_with_what_may_raise_last(predicate: str, expected: list[list[str]]) -> None:
    assert ordered(predicate) == expected


def test_condition_that_raises_is_requested_of_rows_that_are_left_only(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([0, 1, 2, 5]), "name": ["a", "b", "c", "d"]})
    write_deltalake(tmp_path / "t", rows)
    table = DeltaTable(tmp_path / "t")
    found = table.snapshot().scan(predicate="x != 0 and 10 / x > 4 and name > 'a'").to_table()
    assert found.column("x").to_pylist() == [1, 2]
    with pytest.raises(ExpressionError, match="DIVIDE_BY_ZERO"):
        table.snapshot().scan(predicate="10 / x > 4").to_table()
