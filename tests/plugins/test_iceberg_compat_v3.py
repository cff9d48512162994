"""Feature icebergCompatV3: readers ignore it; a property switches on what Iceberg requires of tables and files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from delta_core.errors import FeatureRequirementError, SchemaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernels.row_set import RowSet
from tests.plugins.iceberg import FIELDS, IcebergContract
from tests.plugins.written import append, begin, create, rows

ROW_IDS = "delta.enableRowTracking"


class TestIcebergCompatV3(IcebergContract):
    name = "icebergCompatV3"
    beside = ("columnMapping", "rowTracking", "variantType")
    properties: ClassVar = {ROW_IDS: "true"}

    def test_row_ids_are_switched_on_and_needed(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, properties=self.on)
        assert open_snapshot(uri).metadata.configuration[ROW_IDS] == "true"
        with pytest.raises(FeatureRequirementError, match=ROW_IDS):
            create(tmp_path / "u", FIELDS, properties={**self.on, ROW_IDS: "false"})

    def test_deletion_vectors_are_allowed(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, properties={**self.on, "delta.enableDeletionVectors": "true"})
        append(uri, pa.table({"id": [1, 2], "kind": ["a", "b"]}))
        transaction = begin(uri, "DELETE")
        assert transaction.base is not None
        transaction.remove_rows(transaction.base.scan().files(), RowSet.from_positions([0]))
        transaction.commit()
        assert rows(uri) == [(2, "b")]

    def test_variants_are_allowed(self) -> None:
        self.check_metadata(self.whole({"name": "v", "type": "variant"}))

    @pytest.mark.parametrize("default", ["5", "-5", "CAST('5' AS BIGINT)"])
    def test_defaults_that_are_plain_values_pass(self, default: str) -> None:
        self.check_metadata(self.whole({"name": "a", "type": "long", "metadata": {"CURRENT_DEFAULT": default}}))

    @pytest.mark.parametrize("default", ["1 + 1", "length('a')"])
    def test_defaults_that_are_computed_are_rejected(self, default: str) -> None:
        with pytest.raises(SchemaError, match="plain values only"):
            self.check_metadata(self.whole({"name": "a", "type": "long", "metadata": {"CURRENT_DEFAULT": default}}))
