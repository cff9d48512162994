"""What every version of Iceberg compatibility keeps: its tests inherit these."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from delta_core.errors import (
    FeatureRequirementError,
    InvalidArgumentError,
    SchemaError,
    TypeChangeError,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from tests.plugins.written import append, begin, create, rows

FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]
LIST = {"type": "array", "elementType": "long", "containsNull": True}
MAPPED = {"delta.columnMapping.mode": "name"}
_CHANGES = (("byte", "short"), ("short", "long"), ("float", "double"), ("decimal(5,2)", "decimal(9,2)"))
_NO_CHANGES = (("date", "timestamp_ntz"), ("integer", "double"), ("decimal(5,2)", "decimal(9,4)"))


def set_properties(uri: str, properties: Mapping[str, str]) -> None:
    transaction = begin(uri, "SET TBLPROPERTIES")
    metadata = transaction.table.metadata
    transaction.set_metadata(replace(metadata, configuration={**metadata.configuration, **properties}))
    transaction.commit()


class IcebergContract(FeatureContract):
    """Tests of one version.

    Attributes
    ----------
    beside : tuple of str
        Features that it needs.
    properties : Mapping
        Properties that it needs beside its own and the mapping.
    rejected : tuple
        Types that it does not allow, as JSON.
    """

    beside: tuple[str, ...] = ("columnMapping",)
    properties: Mapping[str, str] = {}
    rejected: tuple[Any, ...] = ("void",)
    without_rules = "commit_rules is about tables whose metadata changes"

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties={**self.on, **MAPPED, **self.properties})]

    @property
    def switch(self) -> str:
        return f"delta.enable{self.name[0].upper()}{self.name[1:]}"

    @property
    def on(self) -> dict[str, str]:
        return {self.switch: "true"}

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=self.on), self.whole()]

    def writable(self) -> list[TableState]:
        return [table_state([self.name]), self.whole()]

    def whole(self, *fields: dict[str, Any], properties: Mapping[str, str] | None = None, **more: Any) -> TableState:
        """A table that has what the version needs."""
        notes = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
        own = fields or ({"name": "id", "type": "long", "metadata": notes},)
        all_of_them = {**self.on, **MAPPED, **self.properties, **(properties or {})}
        return table_state([self.name, *self.beside], fields=own, properties=all_of_them, **more)

    # --- metadata ---

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties=self.on).is_active(self.name)
        assert not table_state([self.name], properties={self.switch: "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_table_without_mapping_is_rejected(self) -> None:
        with pytest.raises(FeatureRequirementError, match="needs column mapping"):
            self.check_metadata(table_state([self.name], properties=self.on))

    def test_one_version_at_a_time(self) -> None:
        for other in {"icebergCompatV1", "icebergCompatV2", "icebergCompatV3"} - {self.name}:
            state = self.whole()
            state = replace(state, features=state.features | {other}, active=state.active | {other})
            with pytest.raises(FeatureRequirementError, match=f"{other} is off: one version at a time"):
                self.check_metadata(state)

    def test_other_types_are_rejected_by_column(self) -> None:
        for type_ in self.rejected:
            inner = {"name": "x", "type": type_, "nullable": True, "metadata": {}}
            state = self.whole({"name": "s", "type": {"type": "struct", "fields": [inner]}})
            with pytest.raises(SchemaError, match=r"Column s\.x.* has type"):
                self.check_metadata(state)

    @pytest.mark.parametrize(("old", "new"), _NO_CHANGES)
    def test_type_changes_that_iceberg_lacks_are_rejected(self, old: str, new: str) -> None:
        notes = {"delta.typeChanges": [{"fromType": old, "toType": new}]}
        with pytest.raises(TypeChangeError) as caught:
            self.check_metadata(self.whole({"name": "a", "type": new, "metadata": notes}))
        assert (caught.value.from_type, caught.value.to_type) == (old, new)

    def test_type_changes_that_iceberg_has_pass(self) -> None:
        notes = {"delta.typeChanges": [{"fromType": a, "toType": b} for a, b in _CHANGES]}
        self.check_metadata(self.whole({"name": "a", "type": "long", "metadata": notes}))

    def test_partition_columns_keep_their_names(self) -> None:
        fields = [{"name": n, "type": "long"} for n in ("a", "b", "c")]
        before = self.whole(*fields, partition_by=["a"])
        self.check_metadata(self.whole(*fields, partition_by=["a"]), before)
        self.check_metadata(self.whole(*fields, partition_by=["a"]), self.whole(*fields))
        for new in (["b"], [], ["a", "b"]):
            with pytest.raises(InvalidArgumentError, match="keep their names"):
                self.check_metadata(self.whole(*fields, partition_by=new), before)

    # --- tables ---

    def test_new_table_is_mapped_and_its_files_hold_partition_columns_last(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, properties=self.on, partition_by=["kind"])
        assert open_snapshot(uri).metadata.configuration["delta.columnMapping.mode"] == "name"
        append(uri, pa.table({"id": [1], "kind": ["a"]}))
        physical = [f.metadata["delta.columnMapping.physicalName"] for f in open_snapshot(uri).schema]
        (path,) = (p for p in Path(uri).rglob("*.parquet") if "_delta_log" not in p.parts)
        file = pq.ParquetFile(path)
        assert file.schema_arrow.names == physical
        assert file.read().column(physical[1]).to_pylist() == ["a"]
        assert rows(uri) == [(1, "a")]

    def test_files_without_a_count_of_rows_are_rejected(self, tmp_path: Path) -> None:
        transaction = begin(create(tmp_path / "t", FIELDS, properties=self.on))
        no_values = pa.array([[]], pa.map_(pa.string(), pa.string()))
        transaction.add_files(
            pa.table(
                {
                    "path": ["f"],
                    "partitionValues": no_values,
                    "size": [1],
                    "modificationTime": [1],
                    "dataChange": [True],
                    "fresh": [True],
                    "numRecords": [1],
                    "stats": [json.dumps({"nullCount": {}})],
                }
            )
        )
        with pytest.raises(InvalidArgumentError, match="numRecords"):
            transaction.commit()

    def test_table_with_rows_written_otherwise_is_not_switched_on(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, partition_by=["kind"], properties=MAPPED)
        append(uri, pa.table({"id": [1], "kind": ["a"]}))
        with pytest.raises(
            UnsupportedOperationError, match=r"1 file (were written before|of the table have no row ids)"
        ):
            set_properties(uri, {**self.on, **self.properties})

    def test_mapped_table_with_counted_rows_is_switched_on(self, tmp_path: Path) -> None:
        uri = create(tmp_path / "t", FIELDS, properties={**MAPPED, **self.properties})
        append(uri, pa.table({"id": [1], "kind": ["a"]}))
        set_properties(uri, self.on)
        append(uri, pa.table({"id": [2], "kind": ["b"]}))
        assert sorted(rows(uri)) == [(1, "a"), (2, "b")]
