"""Feature clustering: readers ignore it; its domain makes it active."""

from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state


class TestClustering(FeatureContract):
    name = "clustering"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(cluster_by=["id"])]

    def states(self) -> list[TableState]:
        return [table_state([self.name], domains={"delta.clustering": '{"clusteringColumns":[["id"]]}'})]

    def test_domain_makes_it_active(self) -> None:
        assert self.states()[0].is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_it_names_its_domain_so_that_states_hold_it(self) -> None:
        assert self.feature.domains == ("delta.clustering",)
