"""Feature materializePartitionColumns: readers ignore it; it has no switch."""

from delta_core.testing.feature_contract import FeatureContract, table_state


class TestMaterializePartitionColumns(FeatureContract):
    name = "materializePartitionColumns"
    unread = ("delta.writePartitionColumnsToParquet",)  # the core reads it, of tables without the feature too

    def test_it_is_active_where_it_is_supported(self) -> None:
        assert table_state([self.name]).is_active(self.name)
        assert not table_state([]).is_active(self.name)
