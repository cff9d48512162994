"""Feature icebergWriterCompatV1: readers ignore it; a property switches it on."""

from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state

PROPERTY = "delta.enableIcebergWriterCompatV1"


class TestIcebergWriterCompatV1(FeatureContract):
    name = "icebergWriterCompatV1"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={PROPERTY: "true"})]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={PROPERTY: "true"}).is_active(self.name)
        assert not table_state([self.name], properties={PROPERTY: "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)
