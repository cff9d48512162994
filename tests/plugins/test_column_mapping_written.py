"""Feature columnMapping, written: ids and physical names, kept through every change of a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable, QueryBuilder
from hypothesis import given, strategies as st
from msgspec.structs import replace

from delta_core.errors import InvalidArgumentError, SchemaError, TypeChangeError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Schema, walk
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType
from delta_core.testing.feature_contract import table_state
from delta_plugins.column_mapping.assign import with_ids
from tests.plugins.written import append, begin, create, overwrite, rows

MODE, MAX_ID = "delta.columnMapping.mode", "delta.columnMapping.maxColumnId"
ID, PHYSICAL, NESTED = (f"delta.columnMapping.{k}" for k in ("id", "physicalName", "nested.ids"))
NAME = {MODE: "name"}
FIELDS = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]


def column(uri: str, name: str) -> Field:
    found = open_snapshot(uri).schema.get(name)
    assert found is not None
    return found


def alter(
    uri: str,
    change: Callable[[Schema], list[Field]] | None = None,
    properties: Mapping[str, str] | None = None,
    **more: Any,
) -> None:
    """Commit another schema, made of the fields there are, and further properties."""
    transaction = begin(uri, "ALTER TABLE")
    metadata = transaction.table.metadata
    fields = list(transaction.table.schema) if change is None else change(transaction.table.schema)
    configuration = {**metadata.configuration, **(properties or {})}
    schema = StructType(fields).to_json()
    transaction.set_metadata(replace(metadata, schema_string=schema, configuration=configuration, **more))
    transaction.commit()


def renamed(old: str, new: str) -> Callable[[Schema], list[Field]]:
    return lambda s: [Field(new if f.name == old else f.name, f.type, f.nullable, f.metadata) for f in s]


def without(name: str) -> Callable[[Schema], list[Field]]:
    return lambda s: [f for f in s if f.name != name]


def with_new(name: str, type_: str = "string") -> Callable[[Schema], list[Field]]:
    return lambda s: [*s, Field(name, type_)]


def data_files(uri: str) -> list[Path]:
    return [p for p in Path(uri).rglob("*.parquet") if "_delta_log" not in p.parts]


def peer_rows(uri: str) -> list[dict[str, Any]]:
    return pa.table(QueryBuilder().register("t", PeerTable(uri)).execute("select * from t")).to_pylist()


# --- new tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["name", "id"])
def test_new_table_has_ids_names_and_rows_under_them(tmp_path: Path, mode: str) -> None:
    nested = {
        "type": "array",
        "containsNull": True,
        "elementType": {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
    }
    uri = create(
        tmp_path / "t", [*FIELDS, {"name": "l", "type": nested}], properties={MODE: mode}, partition_by=["kind"]
    )
    append(uri, pa.table({"id": [1, 2], "kind": ["a", "b"], "l": [[{"x": 5}], None]}))
    snapshot = open_snapshot(uri)
    fields = [f for _, f in walk(snapshot.schema) if f.metadata]
    assert sorted(f.metadata[ID] for f in fields) == [1, 2, 3, 4]
    assert all(re.fullmatch(r"col-[0-9a-f-]{36}", f.metadata[PHYSICAL]) for f in fields)
    assert snapshot.metadata.configuration[MAX_ID] == "4"
    assert sorted(rows(uri), key=str) == [(1, "a", [{"x": 5}]), (2, "b", None)]
    physical = {f.name: f.metadata[PHYSICAL] for f in snapshot.schema}
    file = pq.read_schema(data_files(uri)[0])
    assert file.names == [physical["id"], physical["l"]]
    assert file.field(0).metadata[b"PARQUET:field_id"] == b"1"
    added = snapshot.files.columns(["partitionValues", "stats", "path"]).to_pylist()
    assert {k for f in added for k, _ in f["partitionValues"]} == {physical["kind"]}
    assert set(json.loads(added[0]["stats"])["minValues"]) == {physical["id"]}
    assert all(re.match(r"[0-9A-Za-z]{2}/part-", f["path"]) for f in added)


def test_peer_reads_a_mapped_table(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    append(uri, pa.table({"id": [1, 2], "kind": ["a", None]}))
    assert sorted(peer_rows(uri), key=str) == [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}]


def test_protocol_is_the_weakest_that_names_the_feature_for_writers(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    protocol = open_snapshot(uri).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (2, 7)
    assert protocol.writer_features == ("appendOnly", "columnMapping", "invariants")


def test_legacy_versions_mean_the_feature(tmp_path: Path) -> None:
    legacy = ["checkConstraints", "changeDataFeed", "generatedColumns"]
    uri = create(tmp_path / "t", FIELDS, properties=NAME, features=legacy)
    protocol = open_snapshot(uri).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version, protocol.writer_features) == (2, 5, None)
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    alter(uri, renamed("kind", "sort"))
    assert rows(uri) == [(1, "a")]


@given(st.data())
def test_every_field_gets_an_id_and_a_name_of_its_own_once(data: st.DataObject) -> None:
    leaves: st.SearchStrategy[DataType] = st.sampled_from([PrimitiveType("long"), PrimitiveType("string")])
    names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)

    def struct(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        return names.flatmap(lambda ns: st.tuples(*[inner for _ in ns]).map(lambda ts: StructType(map(Field, ns, ts))))

    types = st.recursive(
        leaves,
        lambda t: st.one_of(struct(t), t.map(ArrayType), st.tuples(leaves, t).map(lambda kv: MapType(*kv))),
        max_leaves=6,
    )
    schema = data.draw(struct(types))
    properties = {**NAME, "delta.enableIcebergCompatV2": "true"}
    fields = json.loads(schema.to_json())["fields"]
    state = table_state(["columnMapping", "icebergCompatV2"], fields=fields, properties=properties)
    made = with_ids(state, state.metadata, None)
    found = Schema.from_json(made.schema_string)
    numbers = [f.metadata[ID] for _, f in walk(found) if ID in f.metadata]
    parts = [n for _, f in walk(found) for n in f.metadata.get(NESTED, {}).values()]
    assert sorted(numbers + parts) == list(range(1, len(list(walk(found))) + 1))
    assert made.configuration[MAX_ID] == str(len(numbers + parts))
    assert with_ids(replace(state, metadata=made, schema=found), made, None) == made


def test_parts_of_lists_and_maps_are_keyed_by_physical_names(tmp_path: Path) -> None:
    inner = {"type": "array", "elementType": "integer", "containsNull": True}
    mapped = {"type": "map", "keyType": "integer", "valueType": inner, "valueContainsNull": True}
    uri = create(tmp_path / "t", [{"name": "m", "type": mapped}], properties={"delta.enableIcebergCompatV2": "true"})
    field = column(uri, "m")
    name = field.metadata[PHYSICAL]
    assert set(field.metadata[NESTED]) == {f"{name}.key", f"{name}.value", f"{name}.value.element"}
    append(uri, pa.table({"m": pa.array([[(1, [2])]], pa.map_(pa.int32(), pa.list_(pa.int32())))}))
    schema = pq.ParquetFile(data_files(uri)[0]).schema_arrow.field(0)
    ids = [field.metadata[ID], *(field.metadata[NESTED][f"{name}.{k}"] for k in ("key", "value", "value.element"))]
    parts = [schema, schema.type.key_field, schema.type.item_field, schema.type.item_type.value_field]
    assert [int(p.metadata[b"PARQUET:field_id"]) for p in parts] == ids


# --- changes of the schema -----------------------------------------------------------------


def test_existing_table_is_mapped_under_its_own_names(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, partition_by=["kind"])
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    alter(uri, with_new("new"), NAME)
    assert [f.metadata[PHYSICAL] for f in open_snapshot(uri).schema][:2] == ["id", "kind"]
    assert column(uri, "new").metadata[PHYSICAL].startswith("col-")
    append(uri, pa.table({"id": [2], "kind": ["b"], "new": ["x"]}))
    assert sorted(rows(uri), key=str) == [(1, "a", None), (2, "b", "x")]
    assert sorted(peer_rows(uri), key=str) == sorted(
        [{"id": 1, "kind": "a", "new": None}, {"id": 2, "kind": "b", "new": "x"}], key=str
    )


def test_annotations_of_an_unmapped_table_mean_nothing_when_it_is_mapped(tmp_path: Path) -> None:
    stale = [{"name": "id", "type": "long", "metadata": {ID: 77, PHYSICAL: "col-stale"}}]
    uri = create(tmp_path / "t", stale)
    append(uri, {"id": [1]})
    alter(uri, None, NAME)
    assert column(uri, "id").metadata == {ID: 1, PHYSICAL: "id"}
    assert rows(uri) == [1]


def test_renamed_column_keeps_its_rows(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME, partition_by=["kind"])
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    alter(uri, renamed("id", "number"))
    alter(uri, renamed("kind", "sort"), partition_columns=("sort",))
    append(uri, pa.table({"number": [2], "sort": ["b"]}))
    assert sorted(rows(uri)) == [(1, "a"), (2, "b")]
    assert open_snapshot(uri).scan(predicate="sort = 'a'").to_table().num_rows == 1


def test_dropped_column_that_comes_back_is_another_one(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    alter(uri, without("kind"))
    assert rows(uri) == [1]
    alter(uri, with_new("kind"))
    assert column(uri, "kind").metadata[ID] == 3
    assert rows(uri) == [(1, None)]
    assert open_snapshot(uri).metadata.configuration[MAX_ID] == "3"


def test_merged_and_overwritten_schemas_keep_what_they_have(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    before = {f.name: f.metadata for f in open_snapshot(uri).schema}
    append(uri, pa.table({"id": [1], "kind": ["a"], "new": [1.5]}), schema_mode="merge")
    assert {f.name: f.metadata for f in open_snapshot(uri).schema if f.name != "new"} == before
    assert column(uri, "new").metadata[ID] == 3
    overwrite(uri, {"id": pa.array(["text"]), "other": [1]}, schema_mode="overwrite")
    assert column(uri, "id").metadata == before["id"]
    assert column(uri, "other").metadata[ID] == 4
    assert rows(uri) == [("text", 1)]


def test_highest_id_never_falls(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    transaction = begin(uri, "REPLACE TABLE")
    metadata = transaction.table.metadata
    left = StructType(without("kind")(transaction.table.schema)).to_json()
    transaction.set_metadata(replace(metadata, schema_string=left, configuration=NAME))
    transaction.commit()
    assert open_snapshot(uri).metadata.configuration[MAX_ID] == "2"


@pytest.mark.parametrize(("before", "after"), [("name", "none"), ("id", "name"), ("name", "id"), ("none", "id")])
def test_other_changes_of_the_mode_are_rejected(tmp_path: Path, before: str, after: str) -> None:
    uri = create(tmp_path / "t", FIELDS, properties={} if before == "none" else {MODE: before})
    with pytest.raises(InvalidArgumentError, match=f"would change from {before} to {after}"):
        alter(uri, None, {MODE: after})


def renoted(name: str, **notes: Any) -> Callable[[Schema], list[Field]]:
    full = {f"delta.columnMapping.{k}": v for k, v in notes.items()}
    return lambda s: [Field(f.name, f.type, f.nullable, f.metadata | (full if f.name == name else {})) for f in s]


@pytest.mark.parametrize(
    ("notes", "message"), [({"physicalName": "else"}, "never change"), ({"id": 9}, "would get 9"), ({"id": 2}, "id 2")]
)
def test_ids_and_physical_names_of_a_column_are_its_own_for_ever(
    tmp_path: Path, notes: dict[str, Any], message: str
) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    with pytest.raises(SchemaError, match=message):
        alter(uri, renoted("id", **notes))


def test_renamed_column_that_changes_its_type_is_rejected(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    with pytest.raises(TypeChangeError, match="Column number is"):
        alter(uri, lambda s: [Field("number", "string", True, s.fields[0].metadata), s.fields[1]])


def test_dropped_partition_column_is_rejected(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME, partition_by=["kind"])
    with pytest.raises(SchemaError, match="'kind' partitions the table"):
        alter(uri, without("kind"))


# --- usage tracking ------------------------------------------------------------------------

USED = "delta.columnMapping.hasDroppedOrRenamed"
TRACKING = ["columnMappingUsageTracking"]


def test_tracked_table_names_columns_in_files_as_users_do_until_one_is_renamed(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME, features=TRACKING)
    assert open_snapshot(uri).metadata.configuration[USED] == "false"
    alter(uri, with_new("new"))
    assert [f.metadata[PHYSICAL] for f in open_snapshot(uri).schema] == ["id", "kind", "new"]
    append(uri, pa.table({"id": [1], "kind": ["a"], "new": ["x"]}))
    alter(uri, renamed("kind", "sort"))
    assert open_snapshot(uri).metadata.configuration[USED] == "true"
    alter(uri, with_new("kind"))
    assert open_snapshot(uri).metadata.configuration[USED] == "true"
    assert column(uri, "kind").metadata[PHYSICAL].startswith("col-")
    assert rows(uri) == [(1, "a", "x", None)]


def test_column_that_takes_a_dropped_ones_place_has_a_name_of_its_own(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME, features=TRACKING)
    append(uri, pa.table({"id": [1], "kind": ["a"]}))
    alter(uri, without("kind"))
    assert open_snapshot(uri).metadata.configuration[USED] == "true"
    alter(uri, with_new("kind"))
    assert rows(uri) == [(1, None)]


def test_table_that_is_tracked_later_does_not_have_its_past(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=NAME)
    alter(uri, None, {"delta.feature.columnMappingUsageTracking": "supported"})
    assert open_snapshot(uri).metadata.configuration[USED] == "true"
