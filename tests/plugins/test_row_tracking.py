"""Feature rowTracking: ids and versions of rows as metadata columns."""

from delta_core.expressions.ast import Call, FileConstant, PhysicalColumn, RowPosition
from delta_core.plans import ReadRequest
from delta_core.rules import MetadataColumn
from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.types import PrimitiveType

LONG = PrimitiveType("long")
NAMES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


class TestRowTracking(FeatureContract):
    name = "rowTracking"

    def states(self) -> list[TableState]:
        return [table_state([self.name], properties=NAMES), table_state([self.name])]

    def columns(self, state: TableState, purpose: str = "rows") -> dict[str, MetadataColumn]:
        request = ReadRequest(purpose=purpose)  # type: ignore[arg-type]
        return {c.name: c for c in self.alone().collect("read_rules", table=state, request=request)}

    def test_id_is_base_plus_position_where_nothing_was_materialised(self) -> None:
        found = self.columns(table_state([self.name]))
        assert found["_row_id"].expression == Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
        assert found["_row_commit_version"].expression == FileConstant("defaultRowCommitVersion", LONG)

    def test_materialised_value_wins(self) -> None:
        found = self.columns(table_state([self.name], properties=NAMES))
        fallback = Call("+", (FileConstant("baseRowId", LONG), RowPosition()))
        assert found["_row_id"].expression == Call("coalesce", (PhysicalColumn("_row-id-col-1", LONG), fallback))
        assert found["_row_commit_version"].expression == Call(
            "coalesce",
            (PhysicalColumn("_row-commit-version-col-1", LONG), FileConstant("defaultRowCommitVersion", LONG)),
        )

    def test_change_feed_offers_no_ids(self) -> None:
        assert self.columns(table_state([self.name], properties=NAMES), "changes") == {}

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties=NAMES).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_it_names_its_domain_so_that_states_hold_it(self) -> None:
        assert self.feature.domains == ("delta.rowTracking",)
