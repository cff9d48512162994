"""Actions that no reader could take are rejected before they are committed, with the column and the first bad row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DataFileNotFoundError, DeltaError, InvalidArgumentError, UnsupportedFeatureError
from delta_core.kernel.commit.intents import removed_files
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.snapshot import Snapshot
from delta_core.table.transaction import AddAction, RemoveAction

MAP = pa.map_(pa.string(), pa.string())
VECTOR = {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "sizeInBytes": 40, "cardinality": 1}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table with a partition column of dates that is NOT NULL, and one of strings."""
    schema = pa.schema([pa.field("day", pa.date32(), nullable=False), ("kind", pa.string()), ("id", pa.int64())])
    return DeltaTable.create(tmp_path / "t", schema, partition_by=["day", "kind"])


def files(**columns: Any) -> pa.Table:
    """Two files that can be added, but for some columns; None leaves one out."""
    values = [[("kind", "a"), ("day", "2024-05-06")], [("day", "2024-05-07"), ("kind", None)]]
    good: dict[str, Any] = {
        "path": ["a.parquet", "b.parquet"],
        "partitionValues": pa.array(values, MAP),
        "size": [10, 0],
        "modificationTime": [1, -1],
        "dataChange": [True, True],
        "stats": ['{"numRecords":5}', None],
    }
    good |= columns
    return pa.table({name: column for name, column in good.items() if column is not None})


def commit(table: DeltaTable, added: pa.Table) -> Snapshot:
    transaction = table.snapshot().begin("WRITE")
    transaction.add_files(added)
    found: Snapshot = transaction.commit().snapshot
    return found


def values(*rows: list[tuple[str, str | None]]) -> pa.Array:
    return pa.array(rows, MAP)


GOOD = [("day", "2024-05-06"), ("kind", "a")]

#: What is wrong, the column that the error names, and its message.
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no path": ({"path": None}, "path", "have no column path; expected path, partitionValues"),
    "null path": ({"path": ["a", None]}, "path", r"Row 1 .*path is null, expected a value"),
    "empty path": ({"path": ["a", ""]}, "path", r"Row 1 .*path is '', expected the path of a file"),
    "path of bytes": ({"path": pa.array([b"a", b"b"], pa.binary())}, "path", "column path as binary, expected string"),
    "no partitionValues": ({"partitionValues": None}, "partitionValues", "have no column partitionValues"),
    "null partitionValues": ({"partitionValues": pa.array([GOOD, None], MAP)}, "partitionValues", "Row 1 .*is null"),
    "too few": (
        {"partitionValues": values(GOOD, GOOD[:1])},
        "partitionValues",
        r"Row 1 .*\['day'\], expected one value",
    ),
    "none": ({"partitionValues": values(GOOD, [])}, "partitionValues", r"Row 1 .*\[\], expected one value for each of"),
    "other": (
        {"partitionValues": values(GOOD, [GOOD[0], ("Kind", "a")])},
        "partitionValues",
        r"Row 1 .*\['day', 'Kind'\], expected one value for each of \['day', 'kind'\]",
    ),
    "twice": ({"partitionValues": values([GOOD[0], GOOD[0]], GOOD)}, "partitionValues", r"Row 0 .*\['day', 'day'\]"),
    "no date": (
        {"partitionValues": values(GOOD, [("day", "May"), GOOD[1]])},
        "partitionValues",
        "Row 1 .*is 'May', expected a date for day",
    ),
    "no day": (
        {"partitionValues": values(GOOD, [("day", None), GOOD[1]])},
        "partitionValues",
        "Row 1 .*a value for day, which is NOT NULL",
    ),
    "no size": ({"size": None}, "size", "have no column size"),
    "null size": ({"size": [1, None]}, "size", "Row 1 .*size is null"),
    "negative size": ({"size": [1, -5]}, "size", "Row 1 .*size is -5, expected bytes, 0 or more"),
    "size of floats": ({"size": [1.0, 2.5]}, "size", "column size as double, expected int64"),
    "size of text": ({"size": ["1", "2"]}, "size", "column size as string, expected int64"),
    "no time": ({"modificationTime": None}, "modificationTime", "have no column modificationTime"),
    "null time": ({"modificationTime": [None, 1]}, "modificationTime", "Row 0 .*modificationTime is null"),
    "null dataChange": ({"dataChange": [True, None]}, "dataChange", "Row 1 .*dataChange is null"),
    "statistics of text": ({"stats": [None, "many rows"]}, "stats", "Row 1 .*'many rows', expected a JSON object"),
    "statistics of a list": ({"stats": ["[1]", None]}, "stats", r"Row 0 .*'\[1\]', expected a JSON object"),
    "cut statistics": ({"stats": ['{"numRecords":5', None]}, "stats", "Row 0 .*expected a JSON object"),
    "negative count": ({"stats": ['{"numRecords":-5}', None]}, "stats", "Row 0 .*expected numRecords of 0 or more"),
    "count of parts": ({"stats": ['{"numRecords":5.5}', None]}, "stats", "Row 0 .*numRecords is a whole number"),
    "bound of text": (
        {"stats": [None, '{"numRecords":5,"minValues":{"id":"one"}}']},
        "stats",
        "Row 1 .*expected a long in minValues for id",
    ),
    "count of nulls of text": (
        {"stats": ['{"numRecords":5,"nullCount":{"id":"none"}}', None]},
        "stats",
        "Row 0 .*expected a long in nullCount for id",
    ),
    "statistics beside a count": ({"stats": ["{", None], "numRecords": [1, 1]}, "stats", "Row 0 .*JSON object"),
    "unknown column": ({"modification_time": [1, 1]}, "modification_time", "which is no field of the action"),
}


@pytest.mark.parametrize("case", WRONG)
def test_file_that_readers_would_call_damaged_is_rejected(table: DeltaTable, case: str) -> None:
    columns, column, message = WRONG[case]
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        commit(table, files(**columns))
    assert caught.value.column == column
    assert DeltaTable(table.table_uri).version() == 0


@pytest.mark.parametrize("field", ["deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"])
def test_field_of_a_feature_is_rejected_without_the_feature(table: DeltaTable, field: str) -> None:
    value = {"deletionVector": VECTOR, "clusteringProvider": "liquid"}.get(field, 3)
    column = pa.array([None, value], FILE_COLUMNS[field])
    with pytest.raises(UnsupportedFeatureError, match=f"Row 1 .*has a value of {field}, and no feature"):
        commit(table, files(**{field: column}))
    assert DeltaTable(table.table_uri).version() == 0


@pytest.mark.parametrize("field", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_incomplete_vector_is_rejected(tmp_path: Path, field: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration={"delta.enableDeletionVectors": "true"})
    vectors = pa.array([VECTOR, {**VECTOR, field: None}], FILE_COLUMNS["deletionVector"])
    with pytest.raises(InvalidArgumentError, match=f"Row 1 .*expected a descriptor with {field}"):
        commit(DeltaTable(tmp_path / "t"), files(partitionValues=values([], []), deletionVector=vectors))


def test_files_that_can_be_added_are_added(table: DeltaTable) -> None:
    dictionary = pa.array(["a.parquet", "b.parquet"]).dictionary_encode()
    snapshot = commit(table, files(path=dictionary, size=pa.array([10, 0], pa.int32()), tags=pa.nulls(2)))
    assert snapshot.files.columns(["path"]).column("path").to_pylist() == ["a.parquet", "b.parquet"]
    assert sorted(Path(uri).name for uri in deltalake.DeltaTable(table.table_uri).file_uris()) == [
        "a.parquet",
        "b.parquet",
    ]


def _absent(table: DeltaTable, live: pa.Table) -> pa.Table:
    return live.set_column(live.schema.get_field_index("path"), "path", pa.array(["gone.parquet"]))


def _other_vector(table: DeltaTable, live: pa.Table) -> pa.Table:
    return live.set_column(live.schema.get_field_index("dvId"), "dvId", pa.array(["u123"]))


def _already_removed(table: DeltaTable, live: pa.Table) -> pa.Table:
    table.delete()
    return live


@pytest.mark.parametrize("wrong", [_absent, _other_vector, _already_removed], ids=lambda f: f.__name__)
def test_removal_of_a_file_that_is_not_live_is_rejected(
    tmp_path: Path, wrong: Callable[[DeltaTable, pa.Table], pa.Table]
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    table = DeltaTable(tmp_path / "t")
    removed = wrong(table, removed_files(table.snapshot().files.columns(["path", "dvId", "size"])))
    version = table.version()
    transaction = table.snapshot().begin("DELETE")
    transaction.remove_files(removed)
    with pytest.raises(InvalidArgumentError, match=r"Row 0 of the files to remove .*is no live file of version"):
        transaction.commit()
    assert DeltaTable(tmp_path / "t").version() == version


def test_live_file_is_removed_whether_or_not_the_transaction_noted_that_it_read_it(tmp_path: Path) -> None:
    for noted in (True, False):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}), mode="append")
        snapshot = DeltaTable(tmp_path / "t").snapshot()
        found = snapshot.files.columns(["path", "dvId", "size"])
        transaction = snapshot.begin("DELETE")
        if noted:
            transaction.read(None, found)
        transaction.remove_files(removed_files(found))
        assert transaction.commit().snapshot.files.columns(["path"]).num_rows == 0


# --- create_write_transaction ---------------------------------------------------------------


def _action(path: str, size: int = 10, **more: Any) -> AddAction:
    given = {"partition_values": {}, "modification_time": 1, "data_change": True, "stats": '{"numRecords":1}', **more}
    return AddAction(path=path, size=size, **given)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone.parquet", "gone.parquet.* is not there"),
        ("sub/gone.parquet", "sub/gone.parquet.* is not there"),
        ("{root}/there.parquet", "there.parquet.* is absolute"),
        ("file://{root}/there.parquet", "there.parquet.* is absolute"),
        ("s3://bucket/there.parquet", "there.parquet.* is absolute"),
        ("../t/there.parquet", r"leaves the table"),
        ("", "empty"),
    ],
)
def test_file_outside_of_the_table_or_absent_is_not_registered(tmp_path: Path, path: str, message: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    table = DeltaTable(tmp_path / "t")
    (tmp_path / "t" / "there.parquet").write_bytes(b"0123456789")
    action = _action(path.format(root=tmp_path / "t"))
    with pytest.raises((InvalidArgumentError, DataFileNotFoundError), match=message):
        table.create_write_transaction([action], "append", table.schema())
    assert DeltaTable(tmp_path / "t").version() == 0


def test_file_of_another_size_is_not_registered_though_it_has_statistics(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    (tmp_path / "t" / "there.parquet").write_bytes(b"0123456789")
    table = DeltaTable(tmp_path / "t")
    with pytest.raises(InvalidArgumentError, match=r"there.parquet has 11 bytes, the file has 10"):
        table.create_write_transaction([_action("there.parquet", 11)], "append", table.schema())
    table.create_write_transaction([_action("there.parquet")], "append", table.schema())
    assert DeltaTable(tmp_path / "t").version() == 1


def test_absent_file_is_not_removed(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    table = DeltaTable(tmp_path / "t")
    action = RemoveAction("gone.parquet", True)
    with pytest.raises(DeltaError, match=r"gone.parquet is not a live file"):
        table.create_write_transaction([action], "append", table.schema())
