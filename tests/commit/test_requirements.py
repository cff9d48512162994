"""A table that lists a feature without one that it requires can be read, and is written once the other is added."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import FeatureRequirementError
from delta_core.kernel.commit.upgrade import check_requirements, upgrade_protocol
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.protocol.actions import Protocol
from delta_core.testing.feature_contract import table_state
from delta_core.testing.table_builder import TableBuilder

FEATURES = default_registry().everything.features
REQUIRED = [(name, other) for name, feature in FEATURES.items() for other in feature.requires]


@pytest.fixture
def lacking(tmp_path: Path) -> DeltaTable:
    """A table with row tracking but without domain metadata, as a known writer leaves it."""
    TableBuilder(tmp_path).create({"id": "long"}, features=["rowTracking"]).append([{"id": 1}])
    return DeltaTable(tmp_path)


def test_table_without_a_required_feature_is_read(lacking: DeltaTable) -> None:
    assert lacking.to_pyarrow_table().to_pylist() == [{"id": 1}]


def test_table_without_a_required_feature_is_not_appended_to(lacking: DeltaTable, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FeatureRequirementError, match=r"rowTracking without domainMetadata.*can be read, not written"):
        write_deltalake(lacking, pa.table({"id": [2]}), mode="append")
    assert sorted(tmp_path.rglob("*")) == before


def test_table_without_a_required_feature_is_not_deleted_from(lacking: DeltaTable, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for predicate in (None, "id = 1"):
        with pytest.raises(FeatureRequirementError, match="domainMetadata"):
            lacking.delete(predicate)
    assert sorted(tmp_path.rglob("*")) == before


def test_table_is_written_after_the_required_feature_was_added(lacking: DeltaTable, tmp_path: Path) -> None:
    snapshot = lacking.snapshot()
    upgrade = snapshot.begin("UPGRADE PROTOCOL")
    upgrade.set_metadata(snapshot.metadata, features=["domainMetadata"])
    upgrade.commit()
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize(("name", "other"), REQUIRED)
def test_each_requirement_is_checked(name: str, other: str) -> None:
    registry = default_registry()
    whole = registry.supported(upgrade_protocol(Protocol(1, 7, None, ()), [name], registry)).all
    for features in (whole, whole - {other}):
        state = table_state(features)
        plugins = registry.resolve(registry.supported(state.protocol))
        if other in features:
            check_requirements(state, plugins)
        else:
            with pytest.raises(FeatureRequirementError, match=f"without .*{other}"):
                check_requirements(state, plugins)
