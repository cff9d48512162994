"""Feature icebergCompatV1: readers ignore it; a property switches it on."""

from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state


class TestIcebergCompatV1(FeatureContract):
    name = "icebergCompatV1"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={"delta.enableIcebergCompatV1": "true"})]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={"delta.enableIcebergCompatV1": "true"}).is_active(self.name)
        assert not table_state([self.name], properties={"delta.enableIcebergCompatV1": "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)
