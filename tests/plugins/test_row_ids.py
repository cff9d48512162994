"""Feature rowIds: the draft of row tracking, with its own properties and action."""

from pathlib import Path

import pyarrow as pa

from delta_core.expressions.ast import Call, FileConstant, PhysicalColumn, RowPosition
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder

LONG = PrimitiveType("long")
DEFAULT = Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
NAMED = {"delta.enableRowIds": "true", "delta.rowIds.physicalColumnName": "_id_1"}


class TestRowIds(FeatureContract):
    name = "rowIds"

    without_rules = "commit_rules is about files, which a commit without actions has not"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties={"delta_core.writeDrafts": "true", "delta.enableRowIds": "true"})]

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=NAMED)]

    def writable(self) -> list[TableState]:
        opted = {"delta_core.writeDrafts": "true"}
        return [table_state([self.name], properties=p) for p in (opted, {**opted, **NAMED})]

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


def test_table_of_the_draft_returns_ids_and_its_high_water_mark(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["rowIds"], properties=NAMED)
    table.append([{"id": 1}, {"id": 2}], baseRowId=5)
    table.commit({"rowIdHighWaterMark": {"highWaterMark": 6, "preservedRowIds": True}})
    table.append(pa.table({"id": [3, 4], "_id_1": pa.array([5, None], pa.int64())}), baseRowId=7)
    table.commit({"rowIdHighWaterMark": {"highWaterMark": 8, "preservedRowIds": False}})
    snapshot = open_snapshot(table.uri)
    found = snapshot.scan(metadata=["_row_id"]).to_table().to_pylist()
    assert sorted((r["id"], r["_row_id"]) for r in found) == [(1, 5), (2, 6), (3, 5), (4, 8)]
    assert snapshot.custom_actions("rowIdHighWaterMark") == [{"highWaterMark": 8, "preservedRowIds": False}]
