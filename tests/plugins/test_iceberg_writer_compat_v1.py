"""Feature icebergWriterCompatV1: readers ignore it; a property switches on what Iceberg writers need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import FeatureRequirementError, SchemaError
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import walk
from delta_core.testing.feature_contract import FeatureContract, table_state
from tests.plugins.written import append, create, rows

SWITCH = "delta.enableIcebergWriterCompatV1"
ON = {SWITCH: "true", "delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "id"}
FEATURES = ["icebergWriterCompatV1", "icebergCompatV2", "columnMapping"]
FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]


def noted(number: int, name: str, type_: Any = "long", **more: Any) -> dict[str, Any]:
    notes = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": type_, "nullable": True, "metadata": {**notes, **more}}


class TestIcebergWriterCompatV1(FeatureContract):
    name = "icebergWriterCompatV1"

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={SWITCH: "true"}), self.whole()]

    def writable(self) -> list[TableState]:
        return [table_state([self.name]), self.whole()]

    def whole(self, *fields: dict[str, Any], features: Any = (), **properties: str) -> TableState:
        return table_state([*FEATURES, *features], fields or [noted(1, "a")], {**ON, **properties})

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties={SWITCH: "true"}).is_active(self.name)
        assert not table_state([self.name], properties={SWITCH: "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    @pytest.mark.parametrize(
        ("key", "value"), [("delta.columnMapping.mode", "name"), ("delta.enableIcebergCompatV2", "false")]
    )
    def test_mapping_by_id_and_compat_are_needed(self, key: str, value: str) -> None:
        with pytest.raises(FeatureRequirementError, match=key):
            self.check_metadata(self.whole(**{key: value}))

    @pytest.mark.parametrize("feature", ["rowTracking", "allowColumnDefaults", "deletionVectors", "variantType"])
    def test_features_that_iceberg_writers_lack_are_rejected(self, feature: str) -> None:
        with pytest.raises(FeatureRequirementError, match=f"without the feature {feature}"):
            self.check_metadata(self.whole(features=[feature]))

    def test_old_features_may_be_there_unused(self) -> None:
        old = ["invariants", "changeDataFeed", "checkConstraints"]
        self.check_metadata(self.whole(features=old))
        with pytest.raises(FeatureRequirementError, match="changeDataFeed is not in use"):
            self.check_metadata(self.whole(features=old, **{"delta.enableChangeDataFeed": "true"}))
        stated = noted(1, "a", **{"delta.invariants": '{"expression":{"expression":"a > 0"}}'})
        with pytest.raises(FeatureRequirementError, match=r"invariants \(a\) is not in use"):
            self.check_metadata(self.whole(stated, features=old))

    @pytest.mark.parametrize("type_", ["byte", "short"])
    def test_small_integers_are_rejected(self, type_: str) -> None:
        with pytest.raises(SchemaError, match=f"Column a has type {type_}"):
            self.check_metadata(self.whole(noted(1, "a", type_)))

    def test_other_physical_names_are_rejected(self) -> None:
        with pytest.raises(SchemaError, match="expects 'col-1'"):
            self.check_metadata(self.whole(noted(1, "a", **{"delta.columnMapping.physicalName": "a"})))

    def test_structs_that_are_keys_stay(self) -> None:
        def keyed(*fields: dict[str, Any]) -> TableState:
            struct = {"type": "struct", "fields": list(fields)}
            mapped = {"type": "map", "keyType": struct, "valueType": "long", "valueContainsNull": True}
            return self.whole(noted(1, "m", mapped))

        before = keyed(noted(2, "s", "string"))
        self.check_metadata(before, before)
        with pytest.raises(SchemaError, match="keys of map m"):
            self.check_metadata(keyed(noted(2, "s", "string"), noted(3, "t", "string")), before)


def test_new_table_gets_all_that_is_needed(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties={SWITCH: "true"}, partition_by=["kind"])
    snapshot = open_snapshot(uri)
    assert {k: snapshot.metadata.configuration[k] for k in ON} == ON
    names = {f.metadata["delta.columnMapping.physicalName"] for _, f in walk(snapshot.schema)}
    assert names == {"col-1", "col-2"}
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    assert rows(uri) == [(1, "a")]
