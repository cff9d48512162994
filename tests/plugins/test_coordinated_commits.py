"""Feature coordinatedCommits-preview: read once no coordinator holds commits back, else rejected."""

import pytest

from delta_core.errors import CatalogRequiredError
from delta_core.testing.feature_contract import FeatureContract, table_state

COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"


class TestCoordinatedCommits(FeatureContract):
    name = "coordinatedCommits-preview"
    # tables of a coordinator are rejected by its name
    unread = tuple(f"delta.coordinatedCommits.{name}-preview" for name in ("commitCoordinatorConf", "tableConf"))

    def test_table_with_a_coordinator_is_rejected_by_its_name(self) -> None:
        state = table_state([self.name], properties={COORDINATOR: "dynamodb"})
        with pytest.raises(CatalogRequiredError, match="'dynamodb'") as caught:
            self.alone().check("check_read", table=state)
        assert caught.value.feature == self.name
        assert state.is_active(self.name)

    def test_table_without_a_coordinator_is_read(self) -> None:
        state = table_state([self.name])
        self.alone().check("check_read", table=state)
        assert not state.is_active(self.name)
