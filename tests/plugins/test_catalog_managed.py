"""Feature catalogManaged: a catalog decides the versions, so that the log alone is rejected."""

import pytest

from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state


class TestCatalogManaged(FeatureContract):
    name = "catalogManaged"
    not_written = "a catalog makes the commits of such tables: test_catalog_managed_written.py has one"

    def writable(self) -> list[TableState]:
        on = {"delta.enableInCommitTimestamps": "true"}
        return [table_state([self.name, "inCommitTimestamp"], properties=on)]

    def test_it_requires_the_catalog(self) -> None:
        assert self.alone().single("requires_catalog", features=frozenset({self.name})) is True

    @pytest.mark.parametrize("draft", ["catalogOwned", "catalogOwned-preview"])
    def test_names_of_drafts_mean_the_same(self, draft: str) -> None:
        assert PluginRegistry().load(draft) is self.plugin
