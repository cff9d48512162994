"""plan_write: rules of several features composed, and the columns that have statistics."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from delta_core.errors import ColumnNotFoundError, HookContractError, InvalidArgumentError, PluginConflictError
from delta_core.expressions.ast import Call, Column, Literal, PhysicalColumn, TaskRow, column
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import FileRequirement, FillColumn, HiddenColumn, MetadataColumn, RowCheck
from delta_core.kernel.plugins.state import advance
from delta_core.kernel.write.plan import WritePlan, plan_write
from delta_core.schema.types import ArrayType, Field, MapType, PrimitiveType, StructType, type_to_json
from delta_core.testing.feature_contract import table_state
from tests.write.conftest import Asking

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
NESTED = StructType(
    [
        Field("a", LONG),
        Field("p", STRING),
        Field("s", StructType([Field("x.y", LONG), Field("t", StructType([Field("z", STRING)]))])),
        Field("l", ArrayType(LONG)),
        Field("m", MapType(STRING, LONG)),
        Field("B", STRING),
    ]
)


def fields_of(struct: StructType) -> Any:
    return type_to_json(struct)["fields"]


def planned(*rules: Any, schema: Any = None, properties: Any = None) -> WritePlan:
    table = table_state([], fields_of(schema or StructType([Field(n, LONG) for n in "abc"])), properties or {})
    return plan_write(table, PluginSet(asking(rules), frozenset()), "WRITE")


def asking(rules: Iterable[Any]) -> dict[str, Asking]:
    """Return a plugin for each feature that the rules name."""
    names = dict.fromkeys(rule.feature for rule in rules)
    return {name: Asking(*(r for r in rules if r.feature == name), name=name) for name in names}


def fill(name: str, *needs: str, feature: str = "f") -> FillColumn:
    expression: Any = Literal(1, LONG)
    for other in needs:
        expression = Call("+", (expression, column(other)))
    return FillColumn(feature, (name,), expression)


def test_fills_are_behind_the_columns_that_they_need() -> None:
    plan = planned(fill("a", "b"), fill("b", "c"), fill("c"))
    assert [r.column for r in plan.fills] == [("c",), ("b",), ("a",)]


def test_fills_in_a_circle_are_rejected() -> None:
    with pytest.raises(PluginConflictError, match="a -> b -> a"):
        planned(fill("a", "b"), fill("b", "a"))


def test_two_fills_of_one_column_are_rejected() -> None:
    with pytest.raises(PluginConflictError, match="one and two both fill column 'a'"):
        planned(fill("a", feature="one"), fill("A", feature="two"))


def test_hidden_column_of_a_taken_name_is_rejected() -> None:
    with pytest.raises(PluginConflictError, match="the table's schema"):
        planned(HiddenColumn("one", "A", LONG, Literal(1, LONG), "recompute"))
    twice = HiddenColumn("one", "h", LONG, Literal(1, LONG), "recompute")
    with pytest.raises(PluginConflictError, match="'H' of feature two is claimed by one"):
        planned(twice, HiddenColumn("two", "H", LONG, Literal(1, LONG), "recompute"))


MARK = MetadataColumn("one", "_mark", LONG, PhysicalColumn("H", LONG))
HIDDEN = HiddenColumn("one", "h", LONG, Literal(None, LONG), carries="_mark")


def test_hidden_column_that_is_carried_by_a_metadata_column_of_its_type_is_taken() -> None:
    assert planned(HIDDEN, MARK).hidden == (HIDDEN,)
    recomputed = replace(HIDDEN, on_rewrite="recompute", carries="")
    assert planned(recomputed, MARK).hidden == (recomputed,)


@pytest.mark.parametrize(
    ("rule", "reader", "message"),
    [
        (replace(HIDDEN, carries=""), MARK, "'carry' needs the metadata column"),
        (replace(HIDDEN, on_rewrite="recompute"), MARK, "'recompute' takes none"),
        (replace(HIDDEN, on_rewrite="keep"), MARK, "expected 'carry' or 'recompute'"),
        (replace(HIDDEN, on_update="keep"), MARK, "expected 'carry' or 'clear'"),
        (replace(HIDDEN, carries="_other"), MARK, "no read rule returns as a metadata column; there are: _mark"),
        (HIDDEN, replace(MARK, type=PrimitiveType("string")), "which is of type STRING"),
        (replace(HIDDEN, type=PrimitiveType("integer")), MARK, "which is of type BIGINT"),
        (replace(HIDDEN, on_rewrite="recompute", carries="", type=PrimitiveType("string")), MARK, "reads it as BIGINT"),
    ],
)
def test_hidden_column_that_would_lose_values_or_not_be_read_is_rejected(rule: Any, reader: Any, message: str) -> None:
    with pytest.raises(HookContractError, match=message) as caught:
        planned(rule, reader)
    assert caught.value.hook == "write_rules"
    assert "one" in str(caught.value)


def test_fill_of_another_type_is_cast_to_the_columns() -> None:
    plan = planned(FillColumn("f", ("a",), Literal(1, PrimitiveType("integer"))), FillColumn("f", ("b",), TaskRow()))
    assert plan.fills[1].expression == TaskRow()
    assert getattr(plan.fills[0].expression, "type", None) == LONG


def test_requirements_unite() -> None:
    plan = planned(
        FileRequirement("f", (("a",),), random_prefix=True), FileRequirement("g", (("a",), ("b",)), num_records=True)
    )
    assert plan.requirements == FileRequirement("f, g", (("a",), ("b",)), False, True, True, False)


def test_checks_are_bound() -> None:
    plan = planned(RowCheck("f", "positive", Call(">", (Column(("A",)), Literal(0)))))
    assert Column(("a",)) in getattr(plan.checks[0].expression, "args", ())
    with pytest.raises(ColumnNotFoundError, match="zz"):
        planned(RowCheck("f", "positive", Call(">", (Column(("zz",)), Literal(0)))))


def test_answer_that_is_no_rule_is_rejected() -> None:
    table = table_state([], fields_of(StructType([Field("a", LONG)])))
    with pytest.raises(HookContractError, match="write_rules"):
        plan_write(table, PluginSet({"f": Asking("no rule", name="f")}, frozenset()), "WRITE")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, [("a",), ("s", "x.y"), ("s", "t", "z"), ("l",), ("m",), ("B",)]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, [("a",), ("s", "x.y")]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingStatsColumns": "b, S.`x.y`"}, [("s", "x.y"), ("B",)]),
        (
            {"delta.dataSkippingStatsColumns": "s", "delta.dataSkippingNumIndexedCols": "0"},
            [("s", "x.y"), ("s", "t", "z")],
        ),
        ({"delta.dataSkippingStatsColumns": "gone"}, []),
    ],
)
def test_statistics_columns_follow_the_properties(properties: dict[str, str], expected: list[Any]) -> None:
    table = table_state([], fields_of(NESTED), properties=properties, partition_by=("p",))
    assert [path for path, _ in statistics_leaves(table)] == expected


def test_required_columns_have_statistics_whatever_the_properties_state() -> None:
    table = table_state(
        [], fields_of(NESTED), properties={"delta.dataSkippingNumIndexedCols": "0"}, partition_by=("p",)
    )
    assert [p for p, _ in statistics_leaves(table, [("b",), ("s", "t")])] == [("s", "t", "z"), ("B",)]


def test_broken_property_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"delta\.dataSkippingNumIndexedCols is 'many'"):
        planned(properties={"delta.dataSkippingNumIndexedCols": "many"})


# --- the plan of an earlier version ---------------------------------------------------------


def again(known: WritePlan, *rules: Any, table: Any = None, operation: str = "WRITE") -> WritePlan:
    return plan_write(table or advance(known.table, 7, {}), PluginSet(asking(rules), frozenset()), operation, known)


def test_plan_serves_later_versions_of_the_same_definition() -> None:
    rule = FileRequirement("f", num_records=True)
    plan = planned(rule)
    assert again(plan, rule) is plan


def test_plan_serves_no_other_definition_operation_or_rules() -> None:
    rule = FileRequirement("f", num_records=True)
    plan = planned(rule)
    schema = StructType([Field("other", LONG)])
    assert again(plan, rule, table=table_state([], fields_of(schema), {})).table.schema.names == ["other"]
    assert again(plan, rule, operation="DELETE").operation == "DELETE"
    assert again(plan, replace(rule, random_prefix=True)).requirements.random_prefix
    assert not again(plan).requirements.num_records


@pytest.mark.parametrize(
    "rule",
    [
        fill("a"),
        RowCheck("f", "c", Literal(True, PrimitiveType("boolean"))),
        HiddenColumn("f", "h", LONG, Literal(1, LONG), "recompute"),
    ],
    ids=["fill", "check", "hidden"],
)
def test_plan_with_expressions_is_made_again_since_they_may_request_the_time(rule: Any) -> None:
    plan = planned(rule)
    assert again(plan, rule) is not plan


def test_what_writes_compiled_goes_with_no_copy() -> None:
    plan = planned()
    plan.compiled["rows"] = lambda: None  # as compiled expressions, it can't be pickled
    assert replace(plan, checks=()).compiled == {}
    assert pickle.loads(pickle.dumps(plan)).compiled == {}
    assert plan.compiled
