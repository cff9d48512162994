"""Rows and columns of datasets are changed, and pylance reads the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import AppTransaction
from delta_core.api import (
    ColumnNotFoundError,
    CommitConflictError,
    CommitProperties,
    ConstraintViolationError,
    DataFileNotFoundError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_core.kernels.arrow_buffers import ARROW_VERSION
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit import commits
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import check_with_pylance, ids_of, made, row_ids, rows

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

#: A change, and the ids that are there after it.
CHANGES: dict[str, tuple[Callable[[LanceDataset], Any], Callable[[int], bool]]] = {
    "delete some": (lambda d: d.delete("id % 3 = 0"), lambda i: i % 3 != 0),
    "delete a fragment": (lambda d: d.delete("id < 30"), lambda i: i >= 30),
    "delete by a nested field": (lambda d: d.delete("point.x > 50"), lambda i: i <= 50 or i % 5 == 0),
    "delete all": (lambda d: d.delete(), lambda i: False),
    "update some": (lambda d: d.update({"text": "concat(text, '!')"}, predicate="id > 20"), lambda i: True),
    "update a field": (lambda d: d.update({"point.name": "'new'"}, predicate="id % 2 = 0"), lambda i: True),
    "update all": (lambda d: d.update(new_values={"vector": [1.0, 2.0], "small": 7}), lambda i: True),
    "merge": (
        lambda d: (
            d.merge(rows(90, 20), "target.id = source.id")
            .when_matched_delete(predicate="source.id = 95")
            .when_matched_update_all()
            .when_not_matched_insert_all(predicate="source.id != 105")
            .execute()
        ),
        lambda i: i not in (95, 105),
    ),
    "merge by source": (
        lambda d: (
            d.merge(rows(0, 40), "target.id = source.id")
            .when_not_matched_by_source_delete(predicate="target.id > 60")
            .when_not_matched_by_source_update({"parts": "null"})
            .execute()
        ),
        lambda i: i <= 60,
    ),
    "overwrite": (lambda d: d.overwrite(rows(200, 5)), lambda i: False),
    "replace where": (lambda d: d.overwrite(rows(0, 3), "id < 10"), lambda i: i < 3 or i >= 10),
    "replace using": (lambda d: d.overwrite(rows(95, 10), replace_using=["id"]), lambda i: True),
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_changed_in_one_version(tmp_path: Path, change: str, version: str, stable: bool) -> None:
    dataset = made(tmp_path, stable=stable, version=version)
    before = row_ids(dataset)
    run, is_left = CHANGES[change]
    run(dataset)
    found = sorted(ids_of(dataset))
    assert [i for i in found if i < 100] == [i for i in range(100) if is_left(i)]
    assert dataset.version == 2
    assert len(dataset.history()) == 2
    after = row_ids(dataset)
    kept = [] if "replace" in change or "overwrite" in change else [i for i in after if i in before]
    if stable:
        assert {i: after[i] for i in kept} == {i: before[i] for i in kept}
        new = set(after) - set(before)
        assert not {after[i] for i in new} & set(before.values())
    check_with_pylance(dataset.uri)
    assert open_dataset(dataset.uri, version=1).count() == 100


def test_versions_of_rows_follow_updates(tmp_path: Path) -> None:
    dataset = made(tmp_path, stable=True, count=10)
    write_lance(dataset.uri, rows(10, 2), "append")
    dataset.update({"text": "'x'"}, predicate="id in (3, 11)")
    names = ["_row_created_at_version", "_row_last_updated_at_version"]
    table = open_dataset(dataset.uri).to_pyarrow_table(["id"], metadata=names).sort_by("id")
    assert table.column(names[0]).to_pylist() == [1] * 10 + [2, 2]
    assert table.column(names[1]).to_pylist() == [1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 2, 3]


def test_change_without_selected_rows_commits_nothing(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    assert dataset.delete("id > 1000")["num_deleted_rows"] == 0
    assert dataset.update({"text": "'x'"}, predicate="id > 1000")["num_updated_rows"] == 0
    assert dataset.version == 1


def test_metrics_count_rows_and_fragments(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    metrics = dataset.delete("id < 35")
    assert (metrics["num_deleted_rows"], metrics["num_removed_files"]) == (35, 1)
    assert metrics["num_deletion_vectors_added"] == 1
    metrics = dataset.update({"text": "'x'"}, predicate="id < 40")
    assert (metrics["num_updated_rows"], metrics["num_added_files"]) == (5, 1)
    assert metrics["num_deletion_vectors_updated"] == 1


@pytest.mark.parametrize("column", ["unknown", "point.unknown"])
def test_unknown_columns_are_rejected(tmp_path: Path, column: str) -> None:
    dataset = made(tmp_path)
    with pytest.raises(ColumnNotFoundError):
        dataset.update({column: "1"})
    with pytest.raises(ColumnNotFoundError):
        dataset.drop_columns([column])
    with pytest.raises(ColumnNotFoundError):
        dataset.rename_column(column, "other")
    with pytest.raises(ColumnNotFoundError):
        dataset.set_config(field_metadata={column: {"a": "b"}})
    assert open_dataset(dataset.uri).version == 1


def test_null_in_a_column_without_nulls_is_rejected_and_leaves_no_file(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SchemaMismatchError, match="not nullable"):
        dataset.update({"id": "null"}, predicate="id = 3")
    with pytest.raises(SchemaMismatchError, match="takes no nulls"):
        write_lance(dataset.uri, pa.table({"text": ["x"]}), "append")
    assert sorted(tmp_path.rglob("*")) == before


def test_new_rows_outside_of_what_they_replace_are_rejected(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConstraintViolationError):
        dataset.overwrite(rows(5, 10), "id < 10")
    assert sorted(tmp_path.rglob("*")) == before


def test_versions_of_applications_are_rejected(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    with pytest.raises(UnsupportedOperationError, match="app_transactions"):
        dataset.delete(commit_properties=CommitProperties(app_transactions=[AppTransaction("nightly", 1)]))
    assert dataset.latest().version == 1


def test_properties_are_kept_in_the_transaction(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.delete("id = 1", commit_properties=CommitProperties(custom_metadata={"job": "nightly"}))
    assert dataset.history(1)[0]["operationParameters"]["job"] == "nightly"


# --- columns -------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_are_added_cast_renamed_and_dropped(tmp_path: Path, version: str, stable: bool) -> None:
    dataset = made(tmp_path, stable=stable, version=version)
    dataset.delete("id % 4 = 1")
    before = row_ids(dataset)
    dataset.add_columns({"twice": "id * 2", "upper": "upper(text)"})
    dataset.add_columns(pa.schema([("empty", pa.list_(pa.int8()))]))
    order = ids_of(dataset)
    reader = pa.table({"given": [f"g{i}" for i in order]}).to_reader(7)
    dataset.add_columns(reader)
    dataset.cast_column("id", pa.int32())
    dataset.cast_column("point.x", pa.string())
    dataset.rename_column("point.name", "title")
    dataset.rename_column("text", "words")
    dataset.drop_columns(["small", "point.x"])
    assert dataset.version == 10
    schema = dataset.schema()
    assert schema.names == ["id", "words", "point", "parts", "vector", "twice", "upper", "empty", "given"]
    assert schema.field("id").type == pa.int32()
    assert not schema.field("id").nullable
    assert schema.field("point").type == pa.struct([("title", pa.string())])
    for row in dataset.to_pyarrow_table().to_pylist():
        i = row["id"]
        assert row["twice"] == 2 * i
        assert row["upper"] == (None if i % 7 == 0 else f"TEXT {i}")
        assert (row["empty"], row["given"]) == (None, f"g{i}")
        assert row["point"] == (None if i % 5 == 0 else {"title": f"n{i}"})
    assert row_ids(dataset) == before
    check_with_pylance(dataset.uri, every_version=True)


@pytest.mark.parametrize("fragments", [1, 5])
def test_struct_in_several_files_is_read_where_they_differ_in_deleted_rows(tmp_path: Path, fragments: int) -> None:
    points = pa.array([None if i % 5 == 0 else {"x": i, "y": str(i)} for i in range(100)])
    dataset = write_lance(
        str(tmp_path), pa.table({"id": range(100), "point": points}), max_rows_per_file=100 // fragments
    )
    dataset.delete("id % 4 = 1")
    dataset.cast_column("point.x", pa.string())
    expected = [None if i % 5 == 0 else {"x": str(i), "y": str(i)} for i in range(100) if i % 4 != 1]
    assert dataset.to_pyarrow_table()["point"].to_pylist() == expected
    assert dataset.to_pyarrow_table(predicate="id >= 0")["point"].to_pylist() == expected


def test_ids_of_dropped_columns_are_not_used_again(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.add_columns({"late": "id"})
    dataset.drop_columns(["late"])
    dataset.add_columns(pa.schema([("late", pa.int64())]))
    assert dataset.to_pyarrow_table(["late"]).column(0).null_count == 100
    check_with_pylance(dataset.uri)


@pytest.mark.parametrize("count", [99, 101])
def test_other_numbers_of_new_values_are_rejected_and_leave_no_file(tmp_path: Path, count: int) -> None:
    dataset = made(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SchemaMismatchError, match="rows"):
        dataset.add_columns(pa.table({"new": range(count)}))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.add_columns({"id": "1"}),
        lambda d: d.rename_column("id", "text"),
        lambda d: d.rename_column("point.x", "name"),
        lambda d: d.drop_columns(["point.x", "point.name"]),
        lambda d: d.drop_columns([]),
        lambda d: d.cast_column("point", pa.int8()),
        lambda d: d.set_config(),
        lambda d: d.restore(),
        lambda d: d.update(),
    ],
)
def test_calls_that_contradict_the_dataset_are_rejected(tmp_path: Path, call: Callable[[LanceDataset], Any]) -> None:
    dataset = made(tmp_path)
    with pytest.raises(InvalidArgumentError):
        call(dataset)
    assert open_dataset(dataset.uri).version == 1


def test_cast_that_would_change_values_is_rejected(tmp_path: Path) -> None:
    dataset = made(tmp_path, count=1000)
    with pytest.raises(SchemaMismatchError, match="can't be cast"):
        dataset.cast_column("id", pa.int8())
    assert len(list((tmp_path / "dataset" / "data").iterdir())) == 34


def test_version_is_restored_by_number_and_missing_files_are_named(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    before = dataset.to_pyarrow_table()
    dataset.overwrite(rows(0, 3))
    dataset.restore(1)
    assert dataset.version == 3
    assert dataset.to_pyarrow_table().equals(before)
    check_with_pylance(dataset.uri, every_version=True)
    path = dataset.files.file_path(0, 0)
    (tmp_path / "dataset" / path).unlink()
    with pytest.raises(DataFileNotFoundError, match="such as"):
        dataset.restore(1)
    assert open_dataset(dataset.uri).version == 3


# --- other writers -------------------------------------------------------------------------


def between(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another writer commit right before the next manifest is written."""
    build = commits._Commit.build

    def late(self: Any, *args: Any) -> Any:
        found = build(self, *args)
        monkeypatch.setattr(commits._Commit, "build", build)
        other()
        return found

    monkeypatch.setattr(commits._Commit, "build", late)


def test_update_of_rows_that_were_updated_meanwhile_runs_again(tmp_path: Path, monkeypatch: Any) -> None:
    dataset, second = made(tmp_path, stable=True), open_dataset(str(tmp_path / "dataset"))
    between(monkeypatch, lambda: second.update({"small": "small + 1"}, predicate="id = 5"))
    assert dataset.update({"small": "small + 1"}, predicate="id in (5, 6)")["num_updated_rows"] == 2
    table = dataset.to_pyarrow_table(["id", "small"], "id in (5, 6)").sort_by("id")
    assert table.column("small").to_pylist() == [7, 7]
    check_with_pylance(dataset.uri, every_version=True)


def test_merge_that_inserts_sees_rows_that_were_appended_meanwhile(tmp_path: Path, monkeypatch: Any) -> None:
    dataset = made(tmp_path)
    between(monkeypatch, lambda: write_lance(dataset.uri, rows(100, 5), "append"))
    merge = dataset.merge(rows(102, 10), "target.id = source.id").when_not_matched_insert_all()
    assert merge.execute()["num_target_rows_inserted"] == 7
    assert sorted(ids_of(dataset)) == list(range(112))


def test_stream_is_not_merged_twice(tmp_path: Path, monkeypatch: Any) -> None:
    dataset = made(tmp_path)
    between(monkeypatch, lambda: write_lance(dataset.uri, rows(100, 5), "append"))
    reader = rows(102, 10).to_reader(3)
    with pytest.raises(CommitConflictError):
        dataset.merge(reader, "target.id = source.id").when_not_matched_insert_all().execute()
    assert sorted(ids_of(open_dataset(dataset.uri))) == list(range(105))
    with pytest.raises(InvalidArgumentError):
        dataset.merge(reader, "target.id = source.id").when_not_matched_insert_all().execute()


def test_retries_are_limited(tmp_path: Path, monkeypatch: Any) -> None:
    dataset, second = made(tmp_path), open_dataset(str(tmp_path / "dataset"))
    between(monkeypatch, lambda: second.update({"small": "1"}, predicate="id = 5"))
    before = len(list((tmp_path / "dataset" / "data").iterdir()))
    with pytest.raises(CommitConflictError):
        dataset.update({"small": "2"}, predicate="id = 5", commit_properties=CommitProperties(max_commit_retries=0))
    assert len(list((tmp_path / "dataset" / "data").iterdir())) == before + 1


def test_columns_are_computed_again_for_rows_that_changed_meanwhile(tmp_path: Path, monkeypatch: Any) -> None:
    dataset = made(tmp_path)
    between(monkeypatch, lambda: write_lance(dataset.uri, rows(100, 5), "append"))
    dataset.add_columns({"twice": "id * 2"})
    table = dataset.to_pyarrow_table(["id", "twice"])
    assert table.column("twice").to_pylist() == [2 * i for i in table.column("id").to_pylist()]
    assert table.num_rows == 105
    check_with_pylance(dataset.uri, every_version=True)


def test_added_column_that_would_be_null_in_rows_is_rejected_if_it_is_required(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    field = pa.field("late", pa.int64(), nullable=False)
    for columns in (field, pa.schema([("other", pa.int8()), field])):
        with pytest.raises(InvalidArgumentError, match="'late' is not nullable"):
            dataset.add_columns(columns)
    assert open_dataset(dataset.uri).version == dataset.version


@pytest.mark.parametrize("given", ["dictionary", "string"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_dictionary_columns_are_merged_and_replaced(tmp_path: Path, version: str, given: str) -> None:
    where = str(tmp_path / "d")
    of = pa.dictionary(pa.int8(), pa.string())
    write_lance(where, pa.table({"id": [0, 1, 2], "c": pa.array(["a", None, "b"], of)}), file_version=version)
    kind = of if given == "dictionary" else pa.string()
    news = pa.table({"id": [1, 7], "c": pa.array(["x", None], kind)})
    merge = open_dataset(where).merge(news, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    open_dataset(where).overwrite(pa.table({"id": [2], "c": pa.array(["y"], kind)}), replace_using=["id"])
    found = open_dataset(where).to_pyarrow_table()
    assert found.schema.field("c").type == of
    rows = dict(zip(found["id"].to_pylist(), found["c"].to_pylist(), strict=True))
    assert rows == {0: "a", 1: "x", 2: "y", 7: None}


@pytest.mark.parametrize("call", ["append", "merge"])
def test_more_distinct_values_than_keys_are_an_error_of_the_column(tmp_path: Path, call: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, pa.table({"id": [0], "c": pa.array(["a"], pa.dictionary(pa.int8(), pa.string()))}))
    news = pa.table({"id": range(1, 201), "c": [f"value {i}" for i in range(200)]})
    merge = open_dataset(where).merge(news, "target.id = source.id").when_not_matched_insert_all()
    with pytest.raises(SchemaMismatchError, match="Column c comes as string"):
        merge.execute() if call == "merge" else write_lance(where, news, "append")


#: Values of types that Delta lacks, or has no layout for.
PARTS: dict[str, pa.Array] = {
    "duration": pa.array([1, 2, 3], pa.duration("s")),
    "time": pa.array([1, 2, 3], pa.time64("ns")),
    "nanoseconds": pa.array([1, 2, 3], pa.timestamp("ns", "UTC")),
    "decimal256": pa.array([1, 2, 3], pa.decimal256(50, 5)),
    "half": pa.array(np.array([1, 2, 3], np.float16)),
    "uint64": pa.array([2**64 - 1, 2, 3], pa.uint64()),
    "fixed binary": pa.array([b"abc", b"def", b"ghi"], pa.binary(3)),
    "vector": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
    "large list": pa.array([[1, 2], [3, 4], []], pa.large_list(pa.duration("s"))),
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "struct": pa.StructArray.from_arrays([pa.array([1, 2, 3], pa.duration("s"))], ["x"]),
}


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_structs_with_parts_of_any_type_are_merged_and_replaced(tmp_path: Path, name: str, is_required: bool) -> None:
    """A null struct has no value of a part that is required."""
    if name == "half" and ARROW_VERSION < 20:
        pytest.skip("this version of PyArrow does not compare float16")
    part = PARTS[name]
    of = pa.struct([pa.field("part", part.type, nullable=not is_required), pa.field("other", pa.int8())])
    mask = pa.array([False, True, False])
    column = pa.StructArray.from_arrays([part, pa.nulls(3, pa.int8())], fields=list(of), mask=mask)
    table = pa.table({"id": [1, 2, 3], "s": column})
    dataset = write_lance(str(tmp_path / "d"), table)
    dataset.merge(table, "target.id = source.id").when_matched_update_all().execute()
    dataset.merge(table, "target.id = source.id").when_matched_update({"s": "source.s"}).execute()
    more = table.set_column(0, "id", pa.array([4, 5, 6]))
    dataset.merge(more, "target.id = source.id").when_not_matched_insert_all().execute()
    dataset.overwrite(table, replace_using=["id"])
    found = dataset.to_pyarrow_table().sort_by("id")
    assert found.schema.field("s").type == of
    assert found.column("s").to_pylist() == column.to_pylist() * 2
    check_with_pylance(dataset.uri, every_version=True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], None, []], pa.list_(pa.duration("s"))),
        pa.array([[(1, 5)], None, []], pa.map_(pa.int32(), pa.time64("us"))),
    ],
    ids=["list", "map"],
)
def test_lists_and_maps_of_types_that_delta_lacks_are_merged(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"id": [1, 2, 3], "c": column})
    dataset = write_lance(str(tmp_path / "d"), table.slice(0, 2))
    merge = dataset.merge(table, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert dataset.to_pyarrow_table().sort_by("id").column("c").to_pylist() == column.to_pylist()
    check_with_pylance(dataset.uri, every_version=True)


def test_value_that_is_missing_in_a_struct_is_rejected(tmp_path: Path) -> None:
    of = pa.struct([pa.field("part", pa.list_(pa.float32(), 2), nullable=False)])
    dataset = write_lance(str(tmp_path / "d"), pa.table({"id": [1], "s": pa.array([None], of)}))
    source = pa.table({"id": [1], "s": pa.array([{"part": None}], pa.struct([("part", pa.list_(pa.float32(), 2))]))})
    with pytest.raises(SchemaMismatchError, match="part is null where its struct is not"):
        dataset.merge(source, "target.id = source.id").when_matched_update_all().execute()
