"""Feature inCommitTimestamp: if commit times are."""

import pytest

from delta_core.errors import CorruptTableError
from delta_core.kernel.plugins.rules import CommitTimestamp
from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_plugins.in_commit_timestamp.logic import commit_timestamps

ON = {"delta.enableInCommitTimestamps": "true"}
SINCE_7 = {
    "delta.inCommitTimestampEnablementVersion": "7",
    "delta.inCommitTimestampEnablementTimestamp": "1700000000000",
}


class TestInCommitTimestamp(FeatureContract):
    name = "inCommitTimestamp"
    without_rules = "write_rules rejects tables of the preview, and has no rule for the others"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties=ON)]

    def states(self) -> list[TableState]:
        return [table_state([self.name], properties=ON), table_state([self.name], properties=ON | SINCE_7)]

    def test_enabled_at_creation_means_for_the_whole_life(self) -> None:
        found = self.alone().single("commit_timestamps", table=self.states()[0])
        assert found == CommitTimestamp(self.name, "inCommitTimestamp", 0, None)

    def test_enabled_later_means_from_that_version_on(self) -> None:
        found = self.alone().single("commit_timestamps", table=self.states()[1])
        assert found == CommitTimestamp(self.name, "inCommitTimestamp", 7, 1_700_000_000_000)

    def test_supported_but_off_means_file_times(self) -> None:
        assert self.alone().single("commit_timestamps", table=table_state([self.name])) is None
        assert self.alone().single("commit_timestamps", table=table_state([self.name], properties=SINCE_7)) is None


@pytest.mark.parametrize("name", SINCE_7)
def test_one_enablement_property_without_the_other_is_rejected(name: str) -> None:
    with pytest.raises(CorruptTableError, match=f"{name} is set without"):
        commit_timestamps({name: SINCE_7[name]})


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5"])
def test_enablement_version_that_is_no_number_is_rejected(text: str) -> None:
    with pytest.raises(CorruptTableError, match="EnablementVersion is"):
        commit_timestamps(SINCE_7 | {"delta.inCommitTimestampEnablementVersion": text})
