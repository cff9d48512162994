"""Feature appendOnly: readers ignore it; a property switches it on."""

from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state


class TestAppendOnly(FeatureContract):
    name = "appendOnly"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={"delta.appendOnly": "true"})]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={"delta.appendOnly": "true"}).is_active(self.name)
        assert not table_state([self.name], properties={"delta.appendOnly": "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)
