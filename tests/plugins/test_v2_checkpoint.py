"""Feature v2Checkpoint: which sidecars a checkpoint names."""

import pyarrow as pa
import pytest

from delta_core.errors import CorruptTableError
from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_plugins.v2_checkpoint.logic import plan_checkpoint, sidecar_names


class TestV2Checkpoint(FeatureContract):
    name = "v2Checkpoint"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={"delta.checkpointPolicy": "v2"})]

    def test_policy_makes_it_active(self) -> None:
        off, on = self.states()
        assert on.is_active(self.name)
        assert not off.is_active(self.name)
        assert not table_state([self.name], properties={"delta.checkpointPolicy": "classic"}).is_active(self.name)

    def test_hook_answers_with_the_names_of_sidecar_actions(self) -> None:
        actions = pa.table({"path": ["a.parquet", "b.parquet"], "sizeInBytes": [1, 2], "modificationTime": [3, 4]})
        found = self.alone().single("checkpoint_sidecars", table=self.states()[0], checkpoint="5", actions=actions)
        assert found == ["a.parquet", "b.parquet"]

    def test_plan_is_v2_where_the_policy_requires_it(self) -> None:
        off, on = self.states()
        assert self.alone().single("plan_checkpoint", table=off) is None
        plan = self.alone().single("plan_checkpoint", table=on)
        assert (plan.spec, plan.naming) == ("v2", "uuid")
        assert plan.sidecar_actions > 0


@pytest.mark.parametrize(
    ("interval", "classic"), [(10, {100, 200}), (1, {*range(10, 201, 10)}), (25, set()), (20, {200})]
)
def test_every_tenth_checkpoint_has_the_classic_name(interval: int, classic: set[int]) -> None:
    configuration = {"delta.checkpointInterval": str(interval)}
    plans = {v: plan_checkpoint(v, configuration) for v in range(201)}
    assert {v for v, plan in plans.items() if plan.naming == "classic"} == classic
    assert {plan.spec for plan in plans.values()} == {"v2"}


def test_only_the_name_of_a_longer_path_counts() -> None:
    paths = ["s3://bucket/t/_delta_log/_sidecars/a.parquet", "_sidecars/b%20c.parquet"]
    assert sidecar_names("5", paths) == ["a.parquet", "b c.parquet"]


@pytest.mark.parametrize("path", ["", None, "_delta_log/_sidecars/"])
def test_path_without_a_name_is_rejected(path: str | None) -> None:
    with pytest.raises(CorruptTableError, match="Checkpoint 5 names a sidecar without a file name"):
        sidecar_names("5", [path])


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "%2E%2E",
        "../a.parquet",
        "..%2Fa.parquet",
        "_sidecars/../a.parquet",
        "../_sidecars/a.parquet",
        "./a.parquet",
        "/etc/a.parquet",
        "elsewhere/a.parquet",
        "s3://bucket/t/a.parquet",
    ],
)
def test_path_that_leads_out_of_the_sidecars_is_rejected(path: str) -> None:
    with pytest.raises(CorruptTableError, match="Checkpoint 5 names a sidecar that leads elsewhere") as caught:
        sidecar_names("5", ["a.parquet", path])
    assert caught.value.path == "5"
