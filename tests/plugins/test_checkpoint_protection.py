"""Feature checkpointProtection: readers ignore it; a property switches it on."""

from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state

PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


class TestCheckpointProtection(FeatureContract):
    name = "checkpointProtection"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={PROPERTY: "7"})]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={PROPERTY: "7"}).is_active(self.name)
        assert not table_state([self.name], properties={PROPERTY: "0"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)
