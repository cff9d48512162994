"""Arguments as programs written for `deltalake` pass them: the classes of errors, and what is taken with a warning."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from delta_core import DeltaTable, Field, QueryBuilder, Schema, TableFeatures, VariantType, write_deltalake
from delta_core.deltalake_names.fs import DeltaStorageHandler
from delta_core.errors import (
    ArgumentInterfaceError,
    ArgumentRangeError,
    ArgumentTypeError,
    ArrowTypeError,
    InvalidArgumentError,
    SchemaError,
    TableNotFoundError,
)
from delta_core.exceptions import CommitFailedError, DeltaProtocolError
from delta_core.transaction import AppTransaction, RemoveAction
from delta_core.types import ArrayType, MapType, PrimitiveType, StructType

ROWS = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


@pytest.fixture
def by_city(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "p", pa.table({"id": [1, 2, 3], "city": ["5", "Rome", "5"]}), partition_by="city")
    return DeltaTable(tmp_path / "p")


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.history(limit=-1),
        lambda t: t.load_as_version(-1),
        lambda t: t.optimize.compact(target_size=-1),
        lambda t: t.optimize.compact(min_commit_interval=-1),
        lambda t: t.scan(limit=-1),
        lambda t: write_deltalake(t, ROWS, mode="append", target_file_size=-1),
    ],
)
def test_negative_numbers_overflow(table: DeltaTable, call: Callable[[DeltaTable], Any]) -> None:
    with pytest.raises(OverflowError) as found:
        call(table)
    assert isinstance(found.value, ArgumentRangeError)
    assert isinstance(found.value, InvalidArgumentError)
    assert table.version() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete(commit_properties=3),
        lambda t: t.restore(0, post_commithook_properties="x"),
        lambda t: write_deltalake(t, ROWS, mode="append", writer_properties=3),
        lambda t: write_deltalake(t, ROWS.to_pylist(), mode="append"),
        lambda t: write_deltalake(t, "rows", mode="append"),
        lambda t: t.update(updates=3),
        lambda t: t.update(new_values=[]),
        lambda t: t.alter.set_column_metadata("id", None),
        lambda t: QueryBuilder().register("t", "nonsense"),
    ],
)
def test_objects_without_what_is_read_from_them_are_attribute_errors(
    table: DeltaTable, call: Callable[[DeltaTable], Any]
) -> None:
    with pytest.raises(ArgumentInterfaceError) as found:
        call(table)
    assert isinstance(found.value, (AttributeError, TypeError))
    assert table.version() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.vacuum(dry_run=None),
        lambda t: t.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=None),
        lambda t: t.restore(0, ignore_missing_files=3),
        lambda t: t.delete([]),
        lambda t: t.delete(3),
        lambda t: t.scan(columns="id"),
        lambda t: t.merge(ROWS, 3, "s", "t").when_matched_delete().execute(),
        lambda t: t.merge(ROWS, "t.id = s.id", "s", "t").when_matched_update(updates=3).execute(),
        lambda t: write_deltalake(t, ROWS, mode="append", name=3),
        lambda t: write_deltalake(t, ROWS, mode=3),
        lambda t: write_deltalake(t, ROWS, mode="append", configuration=[]),
        lambda t: DeltaTable.create(f"{t.table_uri}2", t.schema(), partition_by=3),
        lambda t: Field("id", "long", nullable=3),
        lambda t: Field(None, "long"),
        lambda t: ArrayType("long", contains_null=None),
        lambda t: MapType("string", "long", value_contains_null="x"),
        lambda t: StructType("nonsense"),
        lambda t: AppTransaction("app", "1"),
        lambda t: AppTransaction(3, 1),
        lambda t: AppTransaction("app", 1, last_updated=[]),
        lambda t: t.to_pyarrow_dataset(parquet_read_options=[]),
        lambda t: t.create_write_transaction([], "append", t.schema(), partition_by=3),
        lambda t: DeltaStorageHandler(t.table_uri).equals(3),
        lambda t: DeltaStorageHandler(t.table_uri).open_output_stream("new", {"a": 1}),
        lambda t: DeltaStorageHandler(t.table_uri).get_file_info("nonsense"),
        lambda t: DeltaStorageHandler.from_table(t),
        lambda t: t.transaction_version(None),
        lambda t: t.schema().to_arrow(as_large_types=3),
        lambda t: t.to_pyarrow_dataset(as_large_types=None),
        lambda t: t.to_pyarrow_dataset(schema=3),
        lambda t: t.to_pyarrow_table(columns=3),
        lambda t: t.load_cdf(starting_version="x"),
        lambda t: t.load_cdf(starting_timestamp=3),
        lambda t: t.load_cdf(columns="id"),
        lambda t: t.load_cdf(allow_out_of_range=3),
        lambda t: t.optimize.compact(max_spill_size="x"),
        lambda t: t.optimize.compact(min_commit_interval="1"),
        lambda t: t.vacuum(retention_hours="x"),
        lambda t: t.alter.add_feature(3),
        lambda t: t.alter.add_constraint(None),
        lambda t: t.alter.set_column_metadata("id", {"a": 1}),
        lambda t: t.create_write_transaction("nonsense", "append", t.schema()),
        lambda t: t.merge(ROWS, "t.id = s.id", "s", "t").when_matched_update(None),
        lambda t: QueryBuilder().register(3, t),
        lambda t: QueryBuilder().register("t", t).execute(None),
        lambda t: Field("id", "long", metadata=3),
        lambda t: Schema(["id"]),
        lambda t: PrimitiveType(3),
    ],
)
def test_arguments_of_other_types_are_type_errors(table: DeltaTable, call: Callable[[DeltaTable], Any]) -> None:
    with pytest.raises(ArgumentTypeError) as found:
        call(table)
    assert isinstance(found.value, TypeError)
    assert table.version() == 0
    assert table.to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("place", ["", "nope://x"])
def test_what_is_no_place_has_no_table(place: str) -> None:
    with pytest.raises(TableNotFoundError) as found:
        DeltaTable(place)
    assert isinstance(found.value, InvalidArgumentError)
    assert not DeltaTable.is_deltatable(place)


@pytest.mark.parametrize("place", [None, 3, []])
def test_what_is_no_text_is_no_table(place: Any) -> None:
    assert not DeltaTable.is_deltatable(place)
    with pytest.raises(ArgumentTypeError, match="as the place of a table"):
        DeltaTable(place)


def test_storage_handler_of_a_folder_that_is_not_there_finds_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="There is no folder"):
        DeltaStorageHandler(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_storage_handler_appends_to_no_file_and_deletes_what_is_missing(table: DeltaTable) -> None:
    handler = DeltaStorageHandler(table.table_uri)
    with pytest.raises(NotImplementedError, match="written once"):
        handler.open_append_stream("new", {})
    handler.delete_dir("nope")
    with handler.open_output_stream("folder/new") as file:
        file.write(b"x")
    handler.delete_dir_contents("folder")
    assert handler.get_file_info(["folder/new"])[0].type.name == "NotFound"


def test_rows_of_an_empty_list_are_an_index_error(table: DeltaTable) -> None:
    with pytest.raises(IndexError, match="which is empty and has no schema") as found:
        write_deltalake(table, [], mode="append")
    assert isinstance(found.value, ArgumentInterfaceError)


@pytest.mark.parametrize("rows", [None, [], "text", ROWS.to_pylist(), ROWS["id"]])
def test_rows_that_are_not_written_are_not_looked_at(table: DeltaTable, rows: Any) -> None:
    write_deltalake(table.table_uri, rows, mode="ignore")
    assert DeltaTable(table.table_uri).version() == 0


def test_no_columns_are_no_commit(table: DeltaTable) -> None:
    table.alter.add_columns([])
    assert table.version() == 0


def test_append_only_tables_fail_commits_of_removed_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.appendOnly": "true"})
    table = DeltaTable(tmp_path / "t")
    for call in (table.delete, lambda: write_deltalake(table, ROWS, mode="overwrite")):
        with pytest.raises(CommitFailedError, match="append-only") as found:
            call()
        assert isinstance(found.value, NotImplementedError)
    assert table.count() == 3


def test_datasets_of_tables_with_features_that_they_lack_are_protocol_errors(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(DeltaProtocolError, match="column mapping") as found:
        DeltaTable(tmp_path / "t").to_pyarrow_dataset()
    assert isinstance(found.value, NotImplementedError)


def test_datasets_take_arrow_schemas(table: DeltaTable) -> None:
    found = table.to_pyarrow_dataset(schema=pa.schema({"id": pa.int64()}))
    assert sorted(found.to_table()["id"].to_pylist()) == [1, 2, 3]
    with pytest.raises(TypeError, match="Pass its to_arrow"):
        table.to_pyarrow_dataset(schema=table.schema())


def test_features_are_members_and_names(tmp_path: Path) -> None:
    assert repr(TableFeatures.DeletionVectors) == str(TableFeatures.DeletionVectors) == "TableFeatures.DeletionVectors"
    assert repr(TableFeatures.TimestampWithoutTimezone) == "TableFeatures.TimestampWithoutTimezone"
    assert repr(TableFeatures.VariantTypePreview) == "TableFeatures.VariantTypePreview"
    assert TableFeatures.DeletionVectors == "deletionVectors"
    assert pickle.loads(pickle.dumps(TableFeatures.AppendOnly)) == TableFeatures.AppendOnly
    table = DeltaTable.create(tmp_path / "t", ROWS.schema, features=[TableFeatures.AppendOnly])
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    assert "deletionVectors" in (table.protocol().reader_features or ())
    with pytest.raises(DeltaProtocolError, match="timestampNanos"):
        table.alter.add_feature(TableFeatures.TimestampNanos, allow_protocol_versions_increase=True)


def test_names_of_types_are_checked_when_they_are_made() -> None:
    assert PrimitiveType("decimal(38, 10)").type == "decimal(38,10)"
    for name, text in (
        ("decimal(39,2)", "1 <= p <= 38"),
        ("decimal(3,4)", "s <= p"),
        ("int", "'integer'"),
        ("", "a name of the protocol"),
    ):
        with pytest.raises(SchemaError, match=re.escape(text)):
            PrimitiveType(name)
        with pytest.raises(ValueError, match="Column x: Found type"):
            Schema.from_json(json.dumps({"type": "struct", "fields": [{"name": "x", "type": name}]}))
    with pytest.raises(TypeError, match="expected an array type"):
        ArrayType.from_json('"long"')


def test_appends_change_no_definition_and_warn_of_each_part(table: DeltaTable) -> None:
    before = table.metadata()
    with pytest.warns(UserWarning, match="does not change the table's") as found:
        write_deltalake(
            table,
            ROWS,
            mode="append",
            name="sales",
            description="of sales",
            configuration={"delta.appendOnly": "true", "delta.checkpointInterval": "x"},
        )
    texts = [str(w.message) for w in found]
    for part in ("name", "description", "property delta.appendOnly", "property delta.checkpointInterval"):
        assert any(f"does not change the table's {part}:" in t for t in texts), part
    after = table.metadata()
    assert (after.name, after.description, after.configuration) == (before.name, None, {})
    assert table.count() == 6


def test_appends_with_the_definition_of_the_table_do_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    settings: dict[str, Any] = {"name": "sales", "configuration": {"delta.appendOnly": "true"}}
    write_deltalake(tmp_path / "t", ROWS, **settings)
    write_deltalake(tmp_path / "t", ROWS, mode="append", **settings)
    assert not [w for w in recwarn if "does not change" in str(w.message)]


@pytest.mark.parametrize("operator", ["=", "==", "!=", "<", ">="])
def test_filters_of_rows_that_compare_with_none_select_nothing_and_warn(table: DeltaTable, operator: str) -> None:
    with pytest.warns(UserWarning, match="never true"):
        assert table.to_pyarrow_table(filters=[("city", operator, None)]).num_rows == 0
    with pytest.warns(UserWarning, match="never true"):
        found = table.to_pyarrow_table(filters=[[("city", operator, None)], [("id", "=", 2)]])
    assert found.column("id").to_pylist() == [2]


_SETS_WITH_NULLS: list[tuple[Any, list[int]]] = [
    ([("s", "in", ["a", None])], [1, 3, 4]),
    ([("s", "not in", ["a", None])], [2]),
    ([("s", "not in", ["a"])], [2, 3]),
    ([("s", "not in", ("a", "b"))], [3]),
    ([("s", "not in", pa.array(["a"]))], [2, 3]),
    ([("s", "in", pa.array(["b", None]))], [2, 3]),
    ([("x", "in", {1.0, None})], [1, 3]),
    ([("x", "not in", np.array([1.0, 2.0]))], [3]),
    ([("s", "not in", ["a"]), ("id", "<", 3)], [2]),
    ([[("s", "not in", ["a", "b"])], [("x", "in", [2.0, None])]], [2, 3, 4]),
]


def test_sets_of_null_alone_select_by_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "s": ["a", None]}))
    table = DeltaTable(tmp_path / "t")
    assert table.to_pyarrow_table(filters=[("s", "in", [None])])["id"].to_pylist() == [2]
    assert table.to_pyarrow_table(filters=[("s", "not in", [None])])["id"].to_pylist() == [1]


@pytest.mark.parametrize("partition_by", [None, ["s"]])
@pytest.mark.parametrize(("filters", "ids"), _SETS_WITH_NULLS)
def test_null_is_a_value_for_sets_in_filters_of_rows(
    tmp_path: Path, partition_by: list[str] | None, filters: Any, ids: list[int]
) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "s": ["a", "b", None, "a"], "x": [1.0, 2.0, None, 2.0]})
    write_deltalake(tmp_path / "t", rows, partition_by=partition_by)
    table = DeltaTable(tmp_path / "t")
    assert sorted(table.to_pyarrow_table(filters=filters)["id"].to_pylist()) == ids
    assert sorted(table.to_pandas(filters=filters)["id"].tolist()) == ids
    files = SubTreeFileSystem(str(tmp_path / "t"), LocalFileSystem())
    assert sorted(table.to_pyarrow_table(filters=filters, filesystem=files)["id"].to_pylist()) == ids


def test_filters_of_files_compare_numbers_with_partitions_of_texts_as_texts(by_city: DeltaTable) -> None:
    assert by_city.partitions([("city", "=", 5)]) == [{"city": "5"}]
    assert by_city.partitions([("city", "in", [5])]) == [{"city": "5"}]
    assert by_city.partitions([("city", "!=", 5)]) == [{"city": "Rome"}]
    found = by_city.to_pyarrow_table(partitions=[("city", "=", 5)])
    assert sorted(found.column("id").to_pylist()) == [1, 3]


def test_optimize_takes_filters_on_other_columns_and_leaves_files_that_can_not_match(table: DeltaTable) -> None:
    for start in (10, 20):
        write_deltalake(table, pa.table({"id": [start], "city": ["Rome"]}), mode="append")
    before = set(table.file_uris([("id", "<", 10)]))
    metrics = table.optimize.compact(partition_filters=[("id", ">=", 10)])
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (2, 1)
    assert before < set(table.file_uris())
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3, 10, 20]


def test_modes_are_taken_in_any_case(table: DeltaTable) -> None:
    write_deltalake(table, ROWS, mode="APPEND")  # type: ignore[arg-type]
    write_deltalake(table, ROWS.append_column("n", [[1, 2, 3]]), mode="Append", schema_mode="MERGE")  # type: ignore[arg-type]
    assert table.count() == 9
    assert table.schema().fields[-1].name == "n"


def test_variant_type_is_made_of_its_json_only() -> None:
    assert VariantType.from_json('"variant"') == VariantType()
    with pytest.raises(ArrowTypeError, match="expected the type variant"):
        VariantType.from_json('"long"')
    with pytest.raises(TypeError, match="expected the type variant"):
        VariantType.from_arrow(pa.int64())


def test_a_removal_with_a_time_is_recorded_at_the_time_of_the_commit(table: DeltaTable) -> None:
    (path,) = table.get_add_actions().column("path").to_pylist()
    with pytest.warns(UserWarning, match="deletion_timestamp is not recorded"):
        table.create_write_transaction([RemoveAction(path, True, 5)], "append", table.schema())
    assert table.file_uris() == []


def test_handlers_of_the_same_folder_are_equal(table: DeltaTable) -> None:
    root = table.table_uri.removeprefix("file://")
    handler = DeltaStorageHandler(root)
    assert handler.equals(DeltaStorageHandler(root))
    assert not handler.equals(DeltaStorageHandler(f"{root}_delta_log"))
    handler.create_dir("folder/within")
    assert (Path(root) / "folder" / "within").is_dir()


def test_schemas_take_lists_of_fields() -> None:
    assert Schema([Field("id", "long", nullable=False)]).fields[0].nullable is False
