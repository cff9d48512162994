"""Arguments as programs written for `deltalake` pass them: the classes of errors, and what is taken with a warning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, Field, Schema, VariantType, write_deltalake
from delta_core.deltalake_names.fs import DeltaStorageHandler
from delta_core.errors import (
    ArgumentInterfaceError,
    ArgumentRangeError,
    ArgumentTypeError,
    ArrowTypeError,
    InvalidArgumentError,
)
from delta_core.transaction import AppTransaction, RemoveAction
from delta_core.types import ArrayType, MapType, StructType

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
        lambda t: DeltaStorageHandler(t.table_uri).equals(3),
    ],
)
def test_arguments_of_other_types_are_type_errors(table: DeltaTable, call: Callable[[DeltaTable], Any]) -> None:
    with pytest.raises(ArgumentTypeError) as found:
        call(table)
    assert isinstance(found.value, TypeError)
    assert table.version() == 0
    assert table.to_pyarrow_table().num_rows == 3


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
