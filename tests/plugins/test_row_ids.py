"""Feature rowIds: the draft of row tracking, with its own properties and action."""

from delta_core.expressions.ast import Call, FileConstant, PhysicalColumn, RowPosition
from delta_core.plans import ReadRequest
from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.types import PrimitiveType

LONG = PrimitiveType("long")
DEFAULT = Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
NAMED = {"delta.enableRowIds": "true", "delta.rowIds.physicalColumnName": "_id_1"}


class TestRowIds(FeatureContract):
    name = "rowIds"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=NAMED)]

    def test_row_id_is_offered_as_by_the_final_feature(self) -> None:
        for state, wanted in zip(
            self.states(), (DEFAULT, Call("coalesce", (PhysicalColumn("_id_1", LONG), DEFAULT))), strict=True
        ):
            (column,) = self.alone().collect("read_rules", table=state, request=ReadRequest())
            assert (column.name, column.expression) == ("_row_id", wanted)

    def test_final_feature_beside_it_alone_offers_the_column(self) -> None:
        state = table_state([self.name, "rowTracking"])
        assert self.alone().collect("read_rules", table=state, request=ReadRequest()) == []

    def test_high_water_mark_is_one_action_a_table(self) -> None:
        (mark,) = self.feature.actions
        assert (mark.name, mark.key, mark.in_checkpoint) == ("rowIdHighWaterMark", (), True)
