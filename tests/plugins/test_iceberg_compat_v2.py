"""Feature icebergCompatV2: readers ignore it; a property switches on what Iceberg requires of tables and files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.errors import FeatureRequirementError, UnsupportedOperationError
from tests.plugins.iceberg import FIELDS, LIST, MAPPED, IcebergContract, set_properties
from tests.plugins.written import append, create, rows


class TestIcebergCompatV2(IcebergContract):
    name = "icebergCompatV2"
    rejected = ("void", "variant")

    def test_deletion_vectors_may_be_there_unused(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, properties=self.on, features=["deletionVectors"])
        append(uri, pa.table({"id": [1], "kind": ["a"]}))
        assert rows(uri) == [(1, "a")]
        with pytest.raises(FeatureRequirementError, match="deletion vectors are off"):
            set_properties(uri, {"delta.enableDeletionVectors": "true"})

    def test_table_with_lists_is_not_switched_on_with_files(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", [{"name": "l", "type": LIST}], properties=MAPPED)
        append(uri, pa.table({"l": [[1]]}))
        with pytest.raises(UnsupportedOperationError, match="written before"):
            set_properties(uri, self.on)
