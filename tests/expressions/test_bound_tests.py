"""Tests of bounds in plain Python return what the evaluator returns."""

from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.expressions.ast import Call, Cast, FileStatistic, Literal, Values, leaves
from delta_core.expressions.bound_tests import bound_test
from delta_core.kernel.log.file_pruning import FilePruner
from delta_core.schema.types import PrimitiveType

LONG, DOUBLE, STRING = PrimitiveType("long"), PrimitiveType("double"), PrimitiveType("string")
VALUES = {
    "long": st.sampled_from((-(2**63), -1, 0, 1, 2, 2**63 - 1)),
    "double": st.sampled_from((float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"))),
    "string": st.sampled_from(("", "a", "ab", "b", "\U0001f600", "\uffff")),
    "byte": st.sampled_from((-128, -1, 0, 1, 127)),
    "boolean": st.booleans(),
    "date": st.sampled_from((-719_162, -1, 0, 1, 20_000)),
    "timestamp": st.sampled_from((-(10**15), -1, 0, 1, 10**15 + 1)),
    "timestamp_ntz": st.sampled_from((-(10**15), -1, 0, 1, 10**15 + 1)),
}
#: A bound that only doubles can be: of the other types, null.
NAN = {"double": float("nan")}
ARROW = {
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "byte": pa.int8(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
TYPES = tuple(PrimitiveType(name) for name in ARROW)


def leaf(kind, t):
    return FileStatistic(kind, (f"{t.type}",), t)


@st.composite
def comparisons(draw):
    t = draw(st.sampled_from(TYPES))
    bound = leaf(draw(st.sampled_from(("min", "max"))), t)
    if t == DOUBLE and draw(st.booleans()):
        bound = Call("if", (Call("isnan", (bound,)), Literal(None, t), bound))
    if t.type == "byte":
        bound, t = Cast(bound, LONG, safe=draw(st.booleans())), LONG
    values = VALUES[t.type].map(lambda v: Literal(pa.scalar(v, ARROW[t.type]).as_py(), t))
    operand = draw(st.one_of(values, st.just(Literal(None, t)), st.just(leaf("max", t))))
    parts = (bound, operand) if draw(st.booleans()) else (operand, bound)
    return Call(draw(st.sampled_from(("=", "!=", "<", "<=", ">", ">="))), parts)


@st.composite
def memberships(draw):
    t = draw(st.sampled_from((LONG, STRING)))
    members = sorted(draw(st.sets(VALUES[t.type], min_size=1)))
    values = Values(pa.array(members, ARROW[t.type]), t, is_sorted=True)
    return Call("between any", (leaf("min", t), leaf("max", t), values))


NULL_TESTS = st.tuples(st.sampled_from(("isnull", "isnotnull")), st.sampled_from(TYPES)).map(
    lambda p: Call(p[0], (leaf("min", p[1]),))
)
CONDITIONS = st.recursive(
    st.one_of(comparisons(), memberships(), NULL_TESTS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda parts: st.sampled_from(("and", "or")).map(lambda name: Call(name, tuple(parts)))
        ),
        inner.map(lambda e: Call("not", (e,))),
    ),
    max_leaves=5,
)


@given(CONDITIONS, st.data())
def test_bounds_tested_in_python_return_what_the_evaluator_returns(condition, data):
    test, used = bound_test(condition), leaves(condition)
    assert test is not None
    row = {e: data.draw(st.none() | VALUES[e.type.type]) for e in used}
    columns = [pa.array([row[e]], ARROW[e.type.type]) for e in used]
    compiled = ArrowEvaluator().compile(condition, {e: ARROW[e.type.type] for e in used})
    assert test(row) is compiled(columns, 1)[0].as_py()


@pytest.mark.parametrize(
    "condition",
    [
        Call("<", (leaf("min", DOUBLE), Literal(float("nan"), DOUBLE))),
        Call("<", (leaf("min", PrimitiveType("float")), Literal(1.0, PrimitiveType("float")))),
        Call("<", (leaf("min", PrimitiveType("date")), leaf("max", PrimitiveType("timestamp")))),
        Call("<", (Cast(leaf("min", LONG), PrimitiveType("byte")), Literal(1, PrimitiveType("byte")))),
        Call(
            "<", (leaf("min", PrimitiveType("timestamp")), Literal(datetime(2000, 1, 1), PrimitiveType("timestamp")))
        ),  # of no zone
        Call("<", (leaf("min", PrimitiveType("decimal(9,2)")), Literal(None, PrimitiveType("decimal(9,2)")))),
        Call("<", (Cast(leaf("min", LONG), DOUBLE), Literal(1.0, DOUBLE))),
        Call("=", (Call("+", (leaf("min", LONG), Literal(1, LONG))), Literal(2, LONG))),
    ],
)
def test_what_python_compares_in_another_way_is_left_to_the_evaluator(condition):
    assert bound_test(Call("and", (Call("isnull", (leaf("min", LONG),)), condition))) is None


def test_bound_outside_the_range_of_its_type_is_unknown():
    bound = leaf("min", PrimitiveType("integer"))
    test = bound_test(Call("<", (bound, Literal(5, PrimitiveType("integer")))))
    assert test({bound: 2**31}) is None
    assert test({bound: 2**31 - 1}) is False


class OneChunk:
    """Files with known statistics."""

    def __init__(self, columns):
        self.columns = columns
        self.num_rows = len(next(iter(columns.values())))

    def statistics(self, leaves, rows):
        return [self.columns[leaf] if rows is None else self.columns[leaf].filter(pa.array(rows)) for leaf in leaves]


@given(CONDITIONS, st.booleans(), st.data())
def test_few_files_are_pruned_as_the_evaluator_prunes_many(condition, exact, data):
    used, copies = leaves(condition), 70
    rows = data.draw(
        st.lists(st.tuples(*(st.none() | VALUES[e.type.type] | st.just(NAN.get(e.type.type)) for e in used)))
    )
    rows = rows[:64] or [(None,) * len(used)]

    def chunk(rows):
        columns = zip(*rows, strict=True)
        return OneChunk({e: pa.array(c, ARROW[e.type.type]) for e, c in zip(used, columns, strict=True)})

    pruner = FilePruner(condition, ArrowEvaluator(), "UTC", exact)
    many = pruner.run(chunk(rows * copies), None)
    assert pruner.run(chunk(rows), None).tolist() * copies == many.tolist()
