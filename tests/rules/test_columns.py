"""Columns: how they are found in files, what absent ones are, which names and types are rejected."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import (
    DataFileError,
    DeltaError,
    ProtocolError,
    SchemaError,
    TypeChangeError,
    UnsupportedFeatureError,
)
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int32()), ("t", pa.struct([("u", pa.string())]))])),
        ("l", pa.list_(pa.struct([("x", pa.string()), ("y", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.struct([("v", pa.float64())]))),
    ]
)
ROWS = [
    {"id": 1, "s": {"a": 1, "t": {"u": "q"}}, "l": [{"x": "a", "y": 1}, None], "m": [("k", {"v": 0.5})]},
    {"id": 2, "s": None, "l": [], "m": None},
    {"id": 3, "s": {"a": None, "t": None}, "l": None, "m": [("k", None)]},
]


def rows(table: TableBuilder, *args: Any, **options: Any) -> pa.Table:
    return open_snapshot(table.uri).scan(*args, **options).to_table()


# --- column mapping ------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [None, {"features": ["columnMapping"]}], ids=["2-5", "3-7"])
@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_nested_columns_are_read_in_every_mode(tmp_path: Path, mapping: Any, protocol: Any) -> None:
    table = TableBuilder(tmp_path).create(NESTED, column_mapping=mapping, **(protocol or {})).append(ROWS)
    assert_same_rows(rows(table), table.expected())
    assert_same_rows(rows(table, ["l", "id"]), table.expected().select(["l", "id"]))
    assert rows(table, predicate="s.t.u = 'q'").column("id").to_pylist() == [1]


@pytest.mark.parametrize("mapping", ["name", "id"])
def test_renamed_and_added_columns_are_found_in_old_files(tmp_path: Path, mapping: Any) -> None:
    table = (
        TableBuilder(tmp_path).create({"a": "long", "b": "string"}, column_mapping=mapping).append([{"a": 1, "b": "x"}])
    )
    fields = json.loads(table.schema.to_json())["fields"]
    fields[0]["name"] = "b2"
    table.alter({"type": "struct", "fields": [fields[1], fields[0], {"name": "a", "type": "long", "nullable": True}]})
    table.append([{"b": "y", "b2": 2, "a": 9}])
    assert sorted(rows(table).to_pylist(), key=str) == [{"b": "x", "b2": 1, "a": None}, {"b": "y", "b2": 2, "a": 9}]


@pytest.mark.parametrize("mapping", ["name", "id"])
def test_dropped_column_comes_back_as_another_one(tmp_path: Path, mapping: Any) -> None:
    table = TableBuilder(tmp_path).create({"a": "long", "b": "long"}, column_mapping=mapping).append([{"a": 1, "b": 2}])
    table.alter({"a": "long"}).alter({"a": "long", "b": "long"}).append([{"a": 3, "b": 4}])
    assert sorted(rows(table).to_pylist(), key=str) == [{"a": 1, "b": None}, {"a": 3, "b": 4}]


def test_mapping_by_id_ignores_names_in_files(tmp_path: Path) -> None:
    """The file's names are swapped against its field ids: the ids count."""
    table = TableBuilder(tmp_path).create({"a": "long", "b": "long"}, column_mapping="id").append([{"a": 1, "b": 2}])
    path = tmp_path / table.paths()[0]
    stored = pq.read_table(path)
    pq.write_table(stored.rename_columns(["col-2", "col-1"]), path)
    (add,) = table.state.files.values()
    table.commit(*table.remove_actions(), {"add": {**add, "size": path.stat().st_size}})
    assert rows(table).to_pylist() == [{"a": 1, "b": 2}]


def test_file_without_field_ids_is_never_matched_by_name_in_id_mode(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, column_mapping="id").append([{"a": 1}])
    path = tmp_path / table.paths()[0]
    pq.write_table(pa.table({"col-1": pa.array([1], pa.int64()), "a": pa.array([1], pa.int64())}), path)
    (add,) = table.state.files.values()
    table.commit(*table.remove_actions(), {"add": {**add, "size": path.stat().st_size}})
    with pytest.raises(DataFileError, match="specifies: it holds no field ids, expected field ids"):
        rows(table)


def test_name_mode_takes_physical_names_and_ignores_ids(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long", "b": "long"}, column_mapping="name").append([{"a": 1, "b": 2}])
    path = tmp_path / table.paths()[0]
    pq.write_table(pa.table({"col-2": pa.array([2], pa.int64()), "a": pa.array([7], pa.int64())}), path)
    (add,) = table.state.files.values()
    table.commit(*table.remove_actions(), {"add": {**add, "size": path.stat().st_size}})
    assert rows(table).to_pylist() == [{"a": None, "b": 2}]


def test_table_upgraded_to_name_mapping_keeps_its_names(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a b": "long"}, protocol=(2, 5)).append([{"a b": 1}])
    field = json.loads(table.schema.to_json())["fields"][0]
    field["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "a b"}
    properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    table.alter({"type": "struct", "fields": [field]}, properties=properties).append([{"a b": 2}])
    assert sorted(rows(table).column("a b").to_pylist()) == [1, 2]


def test_mapping_switched_on_without_ids_is_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, protocol=(2, 5), properties={"delta.columnMapping.mode": "id"})
    with pytest.raises(SchemaError, match=r"Column a has .* expected its physical name"):
        open_snapshot(table.uri)


def test_legacy_versions_act_as_if_the_features_were_listed(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, column_mapping="name")
    assert open_snapshot(table.uri).state.is_active("columnMapping")
    assert {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
    } == set(open_snapshot(table.uri).state.features)


# --- absent values, defaults, void ---------------------------------------------------------


def test_missing_column_is_null_whatever_its_default(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["allowColumnDefaults"]).append([{"a": 1}])
    new = {"name": "b", "type": "long", "nullable": True, "metadata": {"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7"}}
    table.alter({"type": "struct", "fields": [*json.loads(table.schema.to_json())["fields"], new]})
    assert rows(table).to_pylist() == [{"a": 1, "b": None}]
    assert rows(table).schema.field("b").metadata is None


def test_missing_nested_fields_are_null(tmp_path: Path) -> None:
    old = pa.schema([("s", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.struct([("x", pa.int64())])))])
    new = pa.schema(
        [
            ("s", pa.struct([("b", pa.string()), ("a", pa.int64())])),
            ("l", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))),
        ]
    )
    table = TableBuilder(tmp_path).create(old).append([{"s": {"a": 1}, "l": [{"x": 1}, None]}, {"s": None, "l": None}])
    table.alter(new).append([{"s": {"b": "n", "a": 2}, "l": [{"x": 2, "y": "n"}]}])
    assert_same_rows(rows(table), table.expected())


def test_void_column_reads_as_nulls(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long", "v": "void"}).append([{"a": 1}])
    assert_same_rows(rows(table), table.expected())
    assert rows(table).schema.field("v").type == pa.null()


def test_unknown_field_metadata_survives(tmp_path: Path) -> None:
    meta = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)", "mine": {"deep": [1]}, "n": 5}
    schema = {"type": "struct", "fields": [{"name": "a", "type": "string", "nullable": True, "metadata": meta}]}
    table = TableBuilder(tmp_path).create(schema).append([{"a": "abc"}])
    snapshot = open_snapshot(table.uri)
    assert snapshot.schema.fields[0].metadata == meta
    assert rows(table).to_pylist() == [{"a": "abc"}]


# --- names and types that are rejected ------------------------------------------------------


def test_names_that_differ_by_case_only_are_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long", "A": "long"})
    with pytest.raises(SchemaError, match="case"):
        open_snapshot(table.uri)


@pytest.mark.parametrize(
    "kind",
    ["interval year to month", "interval day to second", "geometry(4326)", "timestamp_nanos", "hologram", "char(3)"],
)
def test_unknown_type_is_rejected_with_column_and_type(tmp_path: Path, kind: str) -> None:
    array = {"type": "array", "elementType": kind, "containsNull": True}
    table = TableBuilder(tmp_path).create({"ok": "long", "odd": array})
    with pytest.raises((UnsupportedFeatureError, SchemaError)) as caught:
        open_snapshot(table.uri)
    assert "odd" in str(caught.value)
    assert kind in str(caught.value)


def test_type_of_a_feature_that_the_protocol_lacks_is_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "variant"})
    with pytest.raises((UnsupportedFeatureError, SchemaError), match="variant"):
        open_snapshot(table.uri)


def test_other_formats_than_parquet_are_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"})
    table.commit({"metaData": {**table.state.metadata, "format": {"provider": "orc", "options": {}}}})
    with pytest.raises(DeltaError, match="orc"):
        open_snapshot(table.uri).scan().to_table()


# --- protocol ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 3, "minWriterVersion": 5},
        {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []},
        {"minReaderVersion": 4, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []},
        {"minReaderVersion": 0, "minWriterVersion": 2},
    ],
    ids=str,
)
def test_illegal_protocol_is_rejected(tmp_path: Path, protocol: dict[str, Any]) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, protocol=protocol)
    with pytest.raises(ProtocolError):
        open_snapshot(table.uri)


def test_reader_versions_below_three_go_with_writer_features(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["appendOnly", "rowTracking", "domainMetadata"])
    table.append([{"a": 1}])
    assert table.state.protocol["minReaderVersion"] == 1
    assert rows(table).to_pylist() == [{"a": 1}]


def test_unknown_writer_feature_does_not_hinder_reading(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["someWriterThing"]).append([{"a": 1}])
    assert rows(table).to_pylist() == [{"a": 1}]


def test_unknown_reader_feature_is_rejected_with_its_name(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(
        {"a": "long"},
        protocol={"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["holo"], "writerFeatures": ["holo"]},
    )
    with pytest.raises(UnsupportedFeatureError, match="holo"):
        open_snapshot(table.uri)


@pytest.mark.parametrize(
    "features",
    [
        ["typeWidening"],
        ["typeWidening-preview"],
        ["vacuumProtocolCheck"],
        ["variantType", "variantShredding"],
        ["variantType-preview", "variantShredding-preview"],
        ["v2Checkpoint"],
    ],
    ids=str,
)
def test_features_that_peers_reject_are_read(tmp_path: Path, features: list[str]) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=features).append([{"a": 1}])
    assert rows(table).to_pylist() == [{"a": 1}]


# --- types that changed --------------------------------------------------------------------

WIDENINGS = [
    ("byte", "short", 5),
    ("byte", "integer", 5),
    ("byte", "long", 5),
    ("short", "integer", 5),
    ("short", "long", 5),
    ("integer", "long", -7),
    ("float", "double", 0.1),
    ("byte", "double", 5),
    ("short", "double", 5),
    ("integer", "double", 2**31 - 1),
    ("date", "timestamp_ntz", dt.date(2024, 2, 29)),
    ("byte", "decimal(10,0)", 5),
    ("short", "decimal(12,2)", 5),
    ("integer", "decimal(10,0)", -5),
    ("long", "decimal(20,0)", 2**62),
    ("decimal(5,2)", "decimal(10,2)", "1.25"),
    ("decimal(5,2)", "decimal(12,4)", "1.25"),
]


@pytest.mark.parametrize(("old", "new", "value"), WIDENINGS)
def test_older_narrow_files_are_widened(tmp_path: Path, old: str, new: str, value: Any) -> None:
    value = Decimal(value) if isinstance(value, str) else value
    table = TableBuilder(tmp_path).create({"a": old}, features=["typeWidening", "timestampNtz"])
    table.append([{"a": value}, {"a": None}])
    change = {"delta.typeChanges": [{"fromType": old, "toType": new}]}
    table.alter({"type": "struct", "fields": [{"name": "a", "type": new, "nullable": True, "metadata": change}]})
    table.append([{"a": table.expected().column("a").to_pylist()[0]}])
    assert_same_rows(rows(table), table.expected())
    assert rows(table, predicate=[("a", "=", table.expected().column("a").to_pylist()[0])]).num_rows == 2


def test_change_of_type_that_is_no_widening_is_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}, features=["typeWidening"]).append([{"a": 1}])
    change = {"delta.typeChanges": [{"fromType": "long", "toType": "string"}]}
    table.alter({"type": "struct", "fields": [{"name": "a", "type": "string", "nullable": True, "metadata": change}]})
    with pytest.raises(TypeChangeError, match="Column a was changed from long to string"):
        rows(table)


# --- Parquet as others wrote it ------------------------------------------------------------


def test_int96_within_nanoseconds_is_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"t": "timestamp"})
    values = [dt.datetime(1677, 10, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC), None]
    table.append({"t": values}, parquet={"use_deprecated_int96_timestamps": True})
    assert_same_rows(rows(table), table.expected())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_are_read(tmp_path: Path, unit: str) -> None:
    table = TableBuilder(tmp_path).create({"t": "timestamp"})
    stored = pa.table({"t": pa.array([0, 86_400], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))})
    table.append(stored, parquet={"version": "2.6"})
    assert rows(table).column("t").to_pylist() == [dt.datetime(1970, 1, d, tzinfo=dt.UTC) for d in (1, 2)]


@pytest.mark.parametrize("options", [{"store_decimal_as_integer": True}, {}], ids=str)
@pytest.mark.parametrize("kind", ["decimal(5,2)", "decimal(15,2)", "decimal(38,2)"])
def test_decimals_of_every_layout_are_read(tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    table = TableBuilder(tmp_path).create({"d": kind}).append({"d": [Decimal("-1.25"), None]}, parquet=options)
    assert_same_rows(rows(table), table.expected())


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_every_codec_is_read(tmp_path: Path, codec: str) -> None:
    table = TableBuilder(tmp_path).create({"a": "long"}).append({"a": range(100)}, parquet={"compression": codec})
    assert_same_rows(rows(table), table.expected())


def test_lists_with_other_inner_names_are_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(pa.schema([("l", pa.list_(pa.int64()))]))
    table.append([{"l": [1, None]}, {"l": []}, {"l": None}], parquet={"use_compliant_nested_type": False})
    assert_same_rows(rows(table), table.expected())
