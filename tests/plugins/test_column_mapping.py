"""Feature columnMapping: from annotations to physical names and ids."""

from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError, UnsupportedFeatureError
from delta_core.kernel.plugins.state import TableState
from delta_core.schema.fields import FIELD_ID, ColumnMap
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state

MODE = "delta.columnMapping.mode"


def mapped(name: str, type_: Any = "long", physical: Any = None, number: Any = 1, **more: Any) -> dict[str, Any]:
    notes = {"delta.columnMapping.physicalName": physical or f"col-{name}", "delta.columnMapping.id": number}
    return {"name": name, "type": type_, "metadata": {k: v for k, v in notes.items() if v is not None} | more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"nullable": True, **f} for f in fields]}


def nested() -> list[dict[str, Any]]:
    inside_list = {"type": "array", "containsNull": True, "elementType": struct(mapped("b", number=3))}
    inside_map = {
        "type": "map",
        "valueContainsNull": True,
        "keyType": struct(mapped("k", number=5)),
        "valueType": struct(mapped("v", number=6)),
    }
    return [mapped("a", inside_list, number=2), mapped("m", inside_map, number=4)]


class TestColumnMapping(FeatureContract):
    name = "columnMapping"

    def tables(self) -> list[ExampleTable]:
        rows = pa.table({"my id": [1, 2, 3], "s": [{"a b": 1}, None, {"a b": 3}]})
        return [ExampleTable(rows, "`my id` > 1", properties={MODE: mode}) for mode in ("name", "id")]

    def states(self) -> list[TableState]:
        return [
            table_state([self.name]),
            *(
                table_state(
                    [self.name], fields=nested(), properties={MODE: mode, "delta.columnMapping.maxColumnId": "6"}
                )
                for mode in ("none", "name", "id")
            ),
        ]

    def column_map(self, mode: str, *fields: dict[str, Any]) -> ColumnMap | None:
        state = table_state([self.name], fields=fields, properties={MODE: mode})
        self.alone().check("check_read", table=state)
        return self.alone().single("column_map", table=state)

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_fields_inside_lists_and_maps_have_physical_names_and_ids(self, mode: str) -> None:
        found = self.column_map(mode, *nested())
        assert found is not None
        assert found.match == mode
        logical = table_state([self.name], fields=nested()).schema
        assert found.physical_path(logical, ("a", "element", "b")) == ("col-a", "element", "col-b")
        assert found.physical_path(logical, ("m", "key", "k")) == ("col-m", "key", "col-k")
        assert found.physical_path(logical, ("m", "value", "v")) == ("col-m", "value", "col-v")
        element = found.physical.fields[0].type.element_type.fields[0]  # type: ignore[union-attr]
        assert element.metadata[FIELD_ID] == 3

    def test_mode_none_leaves_names_alone_whatever_is_annotated(self) -> None:
        assert self.column_map("none", *nested()) is None
        assert self.column_map("none", mapped("a"), mapped("b")) is None

    def test_unknown_mode_is_rejected_by_name(self) -> None:
        with pytest.raises(UnsupportedFeatureError, match="'uuid', expected none, name or id"):
            table_state([self.name], properties={MODE: "uuid"})

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_field_without_physical_name_is_rejected_by_its_path(self, mode: str) -> None:
        bare = {"name": "b", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.id": 7}}
        with pytest.raises(SchemaError, match=r"Column a\.b has delta.columnMapping.physicalName=None"):
            self.column_map(mode, mapped("a", struct(bare)))

    @pytest.mark.parametrize("number", ["7", True, 1.5])
    def test_id_that_is_no_number_is_rejected(self, number: Any) -> None:
        with pytest.raises(SchemaError, match=r"Column a has delta\.columnMapping\.id="):
            self.column_map("name", mapped("a", number=number))

    def test_missing_id_matters_in_mode_id_only(self) -> None:
        assert self.column_map("name", mapped("a", number=None)) is not None
        with pytest.raises(SchemaError, match=r"Column a has delta\.columnMapping\.id=None"):
            self.column_map("id", mapped("a", number=None))

    def test_two_fields_of_one_physical_name_are_rejected(self) -> None:
        with pytest.raises(SchemaError, match="Columns a and b both have physical name 'x'"):
            self.column_map("name", mapped("a", physical="x"), mapped("b", physical="x", number=2))

    def test_one_physical_name_in_two_structs_is_fine(self) -> None:
        inner = struct(mapped("c", physical="x", number=2))
        assert self.column_map("id", mapped("a", physical="x"), mapped("b", inner, physical="y", number=3)) is not None

    def test_two_fields_of_one_id_are_rejected_at_any_depth(self) -> None:
        with pytest.raises(SchemaError, match=r"Columns a and b\.c both have id 1"):
            self.column_map("id", mapped("a"), mapped("b", struct(mapped("c")), number=2))

    def test_mode_other_than_none_makes_it_active(self) -> None:
        active = [s.is_active(self.name) for s in self.states()]
        assert active == [False, False, True, True]
