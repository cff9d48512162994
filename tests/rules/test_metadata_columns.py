"""Row ids, row commit versions, file paths and positions: requested by name, never in a user's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import DeltaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

ROW_ID, ROW_VERSION = "_row-id-col-1", "_row-commit-version-col-1"
TRACKED: dict[str, Any] = {
    "features": ["rowTracking", "domainMetadata", "deletionVectors"],
    "properties": {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": ROW_ID,
        "delta.rowTracking.materializedRowCommitVersionColumnName": ROW_VERSION,
    },
}


def tracked(path: Path) -> TableBuilder:
    return TableBuilder(path).create({"id": "long"}, **TRACKED).append({"id": range(5)}).append({"id": range(5, 10)})


def read(table: TableBuilder, *metadata: str, **options: Any) -> list[dict[str, Any]]:
    scan = open_snapshot(table.uri).scan(metadata=metadata, **options)
    return sorted(scan.to_table().to_pylist(), key=lambda row: row["id"])


def test_row_id_is_base_plus_position(tmp_path: Path) -> None:
    found = read(tracked(tmp_path), "_row_id", "_row_commit_version")
    rows = [(r["id"], r["_row_id"], r["_row_commit_version"]) for r in found]
    assert rows == [(i, i, 1 if i < 5 else 2) for i in range(10)]


def test_row_ids_stay_with_their_rows_under_vectors_and_predicates(tmp_path: Path) -> None:
    table = tracked(tmp_path).delete_rows(lambda row: row["id"] in (0, 6, 7))
    assert [(r["id"], r["_row_id"]) for r in read(table, "_row_id")] == [(i, i) for i in (1, 2, 3, 4, 5, 8, 9)]
    assert [r["_row_id"] for r in read(table, "_row_id", predicate="id >= 8")] == [8, 9]


def test_materialised_row_ids_win_where_they_are_not_null(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    rewritten = pa.table(
        {
            "id": pa.array([100, 101, 102], pa.int64()),
            ROW_ID: pa.array([3, None, 7], pa.int64()),
            ROW_VERSION: pa.array([1, None, 2], pa.int64()),
        }
    )
    table.commit(*table.remove_actions(), *table.add_actions(rewritten, statistics=True))
    found = read(table, "_row_id", "_row_commit_version")
    assert [(r["id"], r["_row_id"], r["_row_commit_version"]) for r in found] == [
        (100, 3, 1),
        (101, 11, 3),
        (102, 7, 2),
    ]


def test_materialised_columns_do_not_leak(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    table.append(pa.table({"id": pa.array([9], pa.int64()), ROW_ID: pa.array([3], pa.int64())}))
    snapshot = open_snapshot(table.uri)
    assert snapshot.scan().to_table().column_names == ["id"]
    assert snapshot.schema.names == ["id"]
    with pytest.raises(DeltaError):
        snapshot.scan([ROW_ID])


def test_row_ids_come_from_checkpoints_too(tmp_path: Path) -> None:
    table = tracked(tmp_path).checkpoint().cleanup_before(2)
    assert [r["_row_id"] for r in read(table, "_row_id")] == list(range(10))


def test_row_ids_of_a_table_without_them_are_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append({"id": [1]})
    with pytest.raises(DeltaError, match="_row_id"):
        read(table, "_row_id")


def test_file_path_and_row_index_are_offered_for_every_table(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", "p": "string"}, partition_by=["p"])
    table.append([{"id": 0, "p": "a b"}, {"id": 1, "p": "a b"}])
    found = read(table, "_file_path", "_file_row_index")
    assert [r["_file_row_index"] for r in found] == [0, 1]
    assert all(Path(r["_file_path"].removeprefix("file://")).exists() for r in found)
    assert list(found[0]) == ["id", "p", "_file_path", "_file_row_index"]


@pytest.mark.parametrize("name", ["_file_path", "_file_row_index", "_row_id"])
def test_users_column_of_that_name_is_never_shadowed(tmp_path: Path, name: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", name: "string"}, **TRACKED).append([{"id": 1, name: "mine"}])
    assert read(table) == [{"id": 1, name: "mine"}]
    assert open_snapshot(table.uri).scan([name]).to_table().to_pylist() == [{name: "mine"}]
    with pytest.raises(DeltaError, match=name):
        read(table, name)


def test_unknown_metadata_column_is_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    with pytest.raises(DeltaError, match="_nothing"):
        read(table, "_nothing")


@pytest.mark.parametrize("name", ["_file_path", "_file_row_index", "_row_id"])
def test_metadata_column_among_the_columns_is_sent_to_where_it_belongs(tmp_path: Path, name: str) -> None:
    snapshot = open_snapshot(tracked(tmp_path).uri)
    with pytest.raises(DeltaError, match=f"{name} is no column of the table but a metadata column"):
        snapshot.scan(["id", name])
    with pytest.raises(DeltaError, match="nope is not in the table"):
        snapshot.scan(["nope", name.upper()])
