"""Feature typeWidening: listed type changes are widenings, or the table is rejected."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import SchemaError, TypeChangeError
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import Field, PrimitiveType, StructType
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.type_widening.logic import is_readable, is_widening


def changed(*changes: Any, type_: Any = "long", name: str = "a") -> dict[str, Any]:
    return {"name": name, "type": type_, "metadata": {"delta.typeChanges": list(changes)}}


def change(old: Any, new: Any, **more: Any) -> dict[str, Any]:
    return {"fromType": old, "toType": new, **more}


class TestTypeWidening(FeatureContract):
    name = "typeWidening"

    def states(self) -> list[TableState]:
        inside_list = {"type": "array", "elementType": "double", "containsNull": True}
        fields = [
            changed(change("byte", "short", tableVersion=2), change("short", "long")),
            changed(change("float", "double", fieldPath="element"), type_=inside_list, name="b"),
        ]
        return [table_state([self.name]), table_state([self.name], fields, {"delta.enableTypeWidening": "true"})]

    def check(self, *fields: dict[str, Any]) -> None:
        self.alone().check("check_read", table=table_state([self.name], fields=fields))

    @pytest.mark.parametrize(("old", "new"), [("long", "string"), ("date", "long"), ("string", "unsupported")])
    def test_change_that_is_no_widening_is_rejected_by_column_and_change(self, old: str, new: str) -> None:
        with pytest.raises(TypeChangeError, match=f"Column a was changed from {old} to {new}") as caught:
            self.check(changed(change("byte", "short"), change(old, new)))
        assert (caught.value.feature, caught.value.column) == (self.name, "a")

    def test_change_to_a_type_that_does_not_exist_is_judged_by_the_columns_type(self) -> None:
        self.check(changed(change("byte", "unsupported"), type_="short"))
        with pytest.raises(TypeChangeError):
            self.check(changed(change("byte", "unsupported"), type_="string"))

    def test_change_inside_a_list_is_rejected_by_its_path(self) -> None:
        nested = {"type": "struct", "fields": [changed(change("long", "integer", fieldPath="key.element"), name="x.y")]}
        with pytest.raises(TypeChangeError, match=r"Column s\.`x\.y`\.key\.element was changed from long to integer"):
            self.check({"name": "s", "type": nested})

    @pytest.mark.parametrize("bad", ["byte to long", change("byte", None), change("byte", {"type": "struct"})])
    def test_change_that_is_none_is_rejected(self, bad: Any) -> None:
        with pytest.raises(SchemaError, match="Column a has a type change"):
            self.check(changed(bad))

    def test_property_switches_it_on(self) -> None:
        off, on = self.states()
        assert on.is_active(self.name)
        assert not off.is_active(self.name)


ALLOWED = [
    ("byte", "short"), ("byte", "integer"), ("byte", "long"), ("short", "integer"), ("short", "long"), ("integer",
                                                                                                        "long"),
    ("float", "double"), ("byte", "double"), ("short", "double"), ("integer", "double"), ("date", "timestamp_ntz"),
    ("decimal(10,2)", "decimal(12,2)"), ("decimal(10,2)", "decimal(12,4)"), ("decimal(10,0)", "decimal(38,28)"),
    ("byte", "decimal(10,0)"), ("short", "decimal(12,2)"), ("integer", "decimal(10,0)"), ("long", "decimal(20,0)"),
    ("long", "decimal(22,2)"),
]  # fmt: skip
REJECTED = [
    ("short", "byte"),
    ("long", "long"),
    ("long", "double"),
    ("double", "float"),
    ("date", "timestamp"),
    ("decimal(10,2)", "decimal(10,2)"),
    ("decimal(10,2)", "decimal(11,4)"),
    ("decimal(10,2)", "decimal(12,1)"),
    ("integer", "decimal(9,0)"),
    ("integer", "decimal(10,1)"),
    ("long", "decimal(19,0)"),
    ("string", "binary"),
    ("integer", "string"),
    ("float", "decimal(38,10)"),
]


@pytest.mark.parametrize(("old", "new"), ALLOWED)
def test_widening_is_known(old: str, new: str) -> None:
    assert is_widening(old, new)


@pytest.mark.parametrize(("old", "new"), REJECTED)
def test_change_that_may_lose_values_is_no_widening(old: str, new: str) -> None:
    assert not is_widening(old, new)


READABLE = [
    ("byte", "decimal(3,0)", 127),
    ("byte", "decimal(4,1)", -128),
    ("short", "decimal(5,0)", -(2**15)),
    ("short", "decimal(9,4)", 2**15 - 1),
    ("integer", "decimal(10,0)", -(2**31)),
    ("integer", "decimal(12,2)", 2**31 - 1),
    ("long", "decimal(19,0)", 2**63 - 1),
    ("long", "decimal(20,1)", -(2**63)),
    ("long", "decimal(38,19)", 2**63 - 1),
]


@pytest.mark.parametrize(("old", "new", "value"), READABLE)
def test_change_to_a_decimal_that_holds_all_values_is_read(tmp_path: Path, old: str, new: str, value: int) -> None:
    table = (
        TableBuilder(tmp_path / "t").create({"x": old}, features=["typeWidening"]).append([{"x": value}, {"x": None}])
    )
    field = Field("x", PrimitiveType(new), metadata={"delta.typeChanges": [change(old, new)]})
    table.alter(StructType([field])).append([{"x": 2}])
    snapshot = open_snapshot(table.uri)
    assert set(snapshot.scan().to_table()["x"].to_pylist()) == {Decimal(value), Decimal(2), None}
    found = snapshot.scan(predicate=f"x = {value}").to_table()["x"].to_pylist()
    assert found == [Decimal(value)]


@pytest.mark.parametrize(
    ("old", "new"),
    [("byte", "decimal(3,1)"), ("short", "decimal(5,1)"), ("integer", "decimal(9,0)"), ("long", "decimal(19,1)")],
)
def test_change_to_a_decimal_that_does_not_hold_all_values_is_rejected(old: str, new: str) -> None:
    assert not is_readable(old, new)
