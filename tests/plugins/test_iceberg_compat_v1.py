"""Feature icebergCompatV1: readers ignore it; a property switches on what Iceberg requires of tables and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import FeatureRequirementError
from tests.plugins.iceberg import FIELDS, LIST, IcebergContract
from tests.plugins.written import create


class TestIcebergCompatV1(IcebergContract):
    name = "icebergCompatV1"
    rejected = ("void", "variant", LIST)

    @pytest.mark.parametrize("used", ["true", "false"])
    def test_deletion_vectors_are_rejected_even_unused(self, tmp_path: Path, used: str) -> None:
        properties = {**self.on, "delta.enableDeletionVectors": used}
        with pytest.raises(FeatureRequirementError, match="without the feature deletionVectors"):
            create(tmp_path / "t", FIELDS, properties=properties, features=["deletionVectors"])
