"""Feature icebergCompatV2: readers ignore it; a property switches it on."""

from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state


class TestIcebergCompatV2(FeatureContract):
    name = "icebergCompatV2"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={"delta.enableIcebergCompatV2": "true"})]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={"delta.enableIcebergCompatV2": "true"}).is_active(self.name)
        assert not table_state([self.name], properties={"delta.enableIcebergCompatV2": "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)
