"""ALTER TABLE DROP FEATURE: rows and protocol afterwards, rejections, and the backfill that enables row tracking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import FeatureRequirementError, InvalidArgumentError, SchemaError, UnsupportedOperationError

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string())])
SWITCHES = {
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "domainMetadata": {"delta.feature.domainMetadata": "supported"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
}


def make(path: Path, properties: dict[str, str]) -> DeltaTable:
    table = DeltaTable.create(str(path / "t"), SCHEMA, configuration=properties)
    for i in range(2):
        write_deltalake(table, pa.table({"a": [i, i + 10], "b": ["x", "y"]}, SCHEMA), mode="append")
    return DeltaTable(str(path / "t"))


def rows(table: Any) -> list[str]:
    return sorted(map(str, pa.table(table.to_pyarrow_table()).to_pylist()))


@pytest.mark.parametrize("name", SWITCHES)
def test_dropped_feature_leaves_rows_and_is_gone(tmp_path: Path, name: str) -> None:
    table = make(tmp_path, SWITCHES[name])
    if name == "deletionVectors":
        table.delete("a = 1")
    elif name == "typeWidening":
        table.alter.widen_type("a", "long")
    elif name == "columnMapping":
        # the old name is that of another column in files
        table.alter.rename_column("b", "c")
        table.alter.add_column("b", "string")
    before = rows(table)
    steps = table.alter.drop_feature(name, dry_run=True)
    assert rows(DeltaTable(table.table_uri)) == before
    assert table.alter.drop_feature(name) == steps
    left = DeltaTable(table.table_uri)
    assert name not in left.snapshot().state.features
    assert rows(left) == before == rows(deltalake.DeltaTable(table.table_uri))
    assert not SWITCHES[name].items() & left.metadata().configuration.items()
    with pytest.raises(InvalidArgumentError, match="does not support the feature"):
        left.alter.drop_feature(name)


def test_feature_that_another_one_requires_is_not_dropped(tmp_path: Path) -> None:
    with pytest.raises(FeatureRequirementError, match="rowTracking"):
        make(tmp_path, SWITCHES["rowTracking"]).alter.drop_feature("domainMetadata")


def test_feature_that_a_constraint_uses_is_not_dropped(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    table.alter.add_constraint({"small": "a < 100"})
    with pytest.raises(UnsupportedOperationError, match="constraint small"):
        table.alter.drop_feature("checkConstraints")


def test_history_that_uses_the_feature_is_not_truncated(tmp_path: Path) -> None:
    table = make(tmp_path, SWITCHES["deletionVectors"])
    table.delete("a = 1")
    before = rows(table)
    with pytest.raises(UnsupportedOperationError, match="can't be dropped yet"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert rows(DeltaTable(table.table_uri)) == before


def test_row_tracking_of_a_table_with_rows_assigns_ids_to_every_file(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    table.alter.set_table_properties(SWITCHES["rowTracking"])
    ids = DeltaTable(table.table_uri).snapshot().scan(metadata=("_row_id",)).to_table().column("_row_id")
    assert sorted(ids.to_pylist()) == [0, 1, 2, 3]


def test_mapping_of_a_column_whose_name_files_may_not_have_is_not_dropped(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": [1, 2]}), configuration={"delta.columnMapping.mode": "name"})
    table = DeltaTable(str(tmp_path))
    table.alter.rename_column("a", "b c")
    before = sorted(p.name for p in tmp_path.glob("*.parquet"))
    with pytest.raises(SchemaError, match="'b c' has ' ' in its name"):
        table.alter.drop_feature("columnMapping")
    assert sorted(p.name for p in tmp_path.glob("*.parquet")) == before
    table.alter.rename_column("b c", "b")
    table.alter.drop_feature("columnMapping")
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pydict() == {"b": [1, 2]}
