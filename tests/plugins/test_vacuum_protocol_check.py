"""Feature vacuumProtocolCheck: readers acknowledge it; it has no switch."""

from delta_core.testing.feature_contract import FeatureContract, table_state


class TestVacuumProtocolCheck(FeatureContract):
    name = "vacuumProtocolCheck"
    without_rules = "it is a promise about VACUUM, which no hook is called for"

    def test_it_is_active_where_it_is_supported(self) -> None:
        assert table_state([self.name]).is_active(self.name)
        assert not table_state([]).is_active(self.name)
