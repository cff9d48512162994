"""Skipping a checkpoint's row groups by their footers loses no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import delta_core.kernel.log.checkpoint_writer as writer
from delta_core.expressions.ast import Call, Cast, Expression, FileStatistic, Literal, PartitionValue
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.log.group_tests import plan_group_test
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples

LONG = PrimitiveType("long")
LEAVES = ("p", "q", "id", "x", "text", "ts")
CONSTANTS = {
    "p": st.integers(-1, 6),
    "q": st.sampled_from(["'a'", "'b'", "''", "'zz'"]),
    "id": st.integers(-5, 105),
    "x": st.sampled_from(["-1.0", "0.5", "double('NaN')", "50.0"]),
    "text": st.sampled_from(["'t1'", "'t5'", "'u'"]),
    "ts": st.sampled_from([f"timestamp'1970-01-01T00:00:{s}Z'" for s in ("00", "00.0005", "01.001", "30")]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(LEAVES))
    form = draw(
        st.sampled_from(
            ["{c} {o} {v}", "{c} is null", "{c} is not null", "{c} in ({v}, {w})", "{v} {o} {c}", "{c} <=> {v}"]
        )
    )
    operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    return form.format(c=column, o=operator, v=draw(CONSTANTS[column]), w=draw(CONSTANTS[column]))


PREDICATES = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map("not ({})".format), st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: Any) -> tuple[Snapshot, Snapshot]:
    """One table by its commits and by a checkpoint of small row groups."""
    path: Path = tmp_path_factory.mktemp("twins")
    schema = pa.schema(
        [
            ("p", pa.int32()),
            ("q", pa.string()),
            ("id", pa.int64()),
            ("x", pa.float64()),
            ("text", pa.string()),
            ("ts", pa.timestamp("us", "UTC")),
        ]
    )
    table = TableBuilder(path).create(schema, partition_by=["p", "q"])
    for i in range(30):
        rows = [
            {
                "p": None if i == 7 else i % 6,
                "q": "ab"[i % 2] if i % 5 else None,
                "id": None if i == 11 else 3 * i + j,
                "x": float("nan") if i % 9 == 0 and j else i / 2,
                "text": None if i == 3 else f"t{i % 7}",
                "ts": 1_000_501 * (i % 31) + j,
            }
            for j in range(2)
        ]
        table.append(pa.Table.from_pylist(rows, schema), statistics=i != 20)
    commits = open_snapshot(str(path))
    assert commits.files.count
    kept, writer.ROW_GROUP = writer.ROW_GROUP, 3
    try:
        write_checkpoint(open_snapshot(str(path)))
    finally:
        writer.ROW_GROUP = kept
    checkpoint = open_snapshot(str(path))
    assert len(checkpoint.files.parts) == 10
    return commits, checkpoint


@settings(max_examples=examples(100))
@given(predicate=PREDICATES)
def test_rows_are_those_without_a_checkpoint(twins: tuple[Snapshot, Snapshot], predicate: str) -> None:
    commits, checkpoint = twins
    wanted = commits.scan(predicate=predicate).to_table()
    found = checkpoint.scan(predicate=predicate).to_table()
    order = [(name, "ascending") for name in ("id", "p", "q", "ts")]
    assert str(found.sort_by(order).to_pylist()) == str(wanted.sort_by(order).to_pylist())


def test_groups_with_a_null_are_kept(twins: tuple[Snapshot, Snapshot]) -> None:
    _, checkpoint = twins
    test = plan_group_test(
        Call("=", (PartitionValue("p", PrimitiveType("integer")), Literal(99, PrimitiveType("integer")))),
        checkpoint.engine.evaluator,
        exact=True,
    )
    assert test is not None
    kept = {}
    for part in checkpoint.files.parts:
        assert part.chunk.place is not None
        values = part.load(["partition:p"])[0].to_pylist()
        kept.setdefault(None in values, set()).add(test.keeps(*part.chunk.place))
    assert kept == {True: {True}, False: {False}}


@pytest.mark.parametrize(
    "expression",
    [
        Call("=", (PartitionValue("t", PrimitiveType("timestamp")), Literal(None, PrimitiveType("timestamp")))),
        Call("<", (Cast(FileStatistic("min", ("id",), LONG), PrimitiveType("integer"), safe=True), Literal(1))),
        Call("<", (FileStatistic("min", ("id",), LONG), Literal(None, LONG))),
        Literal(False, PrimitiveType("boolean")),
    ],
)
def test_tests_that_may_be_unknown_rule_out_no_group(twins: tuple[Snapshot, Snapshot], expression: Expression) -> None:
    assert plan_group_test(expression, twins[1].engine.evaluator, exact=False) is None


def test_dots_in_names_lead_to_no_other_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP", 1)
    schema = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())])), ("c.d", pa.int64())])
    table = TableBuilder(tmp_path).create(schema)
    for i in range(4):
        table.append(pa.Table.from_pylist([{"a.b": i, "a": {"b": 10 - i}, "c.d": i}], schema))
    write_checkpoint(open_snapshot(str(tmp_path)))
    for predicate, expected in (("`a.b` = 3", [3]), ("a.b = 8", [2]), ("`c.d` < 1", [0])):
        found = open_snapshot(str(tmp_path)).scan(predicate=predicate).to_table()
        assert found.column("a.b").to_pylist() == expected, predicate
