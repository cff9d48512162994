"""The operation ``diff``: the rows in which two versions differ, beside a model of rows by id."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)

TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {**TRACKED, "delta.enableDeletionVectors": "true"}
MAPPED = {**VECTORS, "delta.columnMapping.mode": "name"}
Rows = dict[int, tuple[int, float | None, int]]

STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 6), st.integers(1, 6)),
    st.tuples(st.just("delete"), st.integers(0, 4), st.just(0)),
    st.tuples(st.just("update"), st.integers(0, 4), st.just(0)),
    st.tuples(st.just("compact"), st.just(0), st.just(0)),
    st.tuples(st.just("purge"), st.just(0), st.just(0)),
    st.tuples(st.just("overwrite"), st.integers(0, 6), st.integers(1, 3)),
)


def table_of(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([i / 2 for i in ids], pa.float64())})


def run(table: DeltaTable, step: tuple[str, int, int]) -> None:
    kind, first, count = step
    if kind in ("append", "overwrite"):
        write_deltalake(table, table_of(first, count), mode=kind)  # type: ignore[arg-type]  # a mode
    elif kind == "delete":
        table.delete(f"id % 5 = {first}")
    elif kind == "update":
        table.update({"x": "x + 100"}, predicate=f"id % 5 = {first}")
    elif kind == "compact":
        table.optimize.compact()
    else:
        table.optimize.purge()


def rows_of(table: DeltaTable) -> Rows:
    """Return each row by its id, with its commit version."""
    found = table.snapshot().scan(metadata=["_row_id", "_row_commit_version"]).to_table()
    columns = (found.column(n).to_pylist() for n in ("_row_id", "id", "x", "_row_commit_version"))
    return {i: (k, x, v) for i, k, x, v in zip(*columns, strict=True)}


def expected(old: Rows, new: Rows) -> set[tuple[Any, ...]]:
    kept = {i for i in old if i in new and old[i][2] != new[i][2]}
    return {
        *(("delete", i, *old[i]) for i in old if i not in new),
        *(("insert", i, *new[i]) for i in new if i not in old),
        *(("update_preimage", i, *old[i]) for i in kept),
        *(("update_postimage", i, *new[i]) for i in kept),
    }


def found(table: DeltaTable, start: int, end: int) -> list[tuple[Any, ...]]:
    rows = table.diff(start, end).to_table()
    names = ("_change_type", "_row_id", "id", "x", "_row_commit_version")
    return list(zip(*(rows.column(n).to_pylist() for n in names), strict=True))


@pytest.mark.parametrize("properties", [TRACKED, VECTORS, MAPPED], ids=["rewriting", "vectors", "mapping"])
@settings(max_examples=12, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=6))
def test_every_pair_of_versions_differs_as_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str], steps: list[tuple[str, int, int]]
) -> None:
    uri = str(tmp_path_factory.mktemp("t"))
    write_deltalake(uri, table_of(0, 12), configuration=properties)
    table = DeltaTable(uri)
    versions = [rows_of(table)]
    for step in steps:
        run(table, step)
        while len(versions) <= table.version():
            versions.append(rows_of(DeltaTable(uri, version=len(versions))))
    for start, old in enumerate(versions):
        for end, new in enumerate(versions):
            rows = found(table, start, end)
            assert len(rows) == len(set(rows))
            assert set(rows) == expected(old, new), (start, end)
    shutil.rmtree(uri)


def tracked(path: Path, properties: dict[str, str] = VECTORS, count: int = 8) -> DeltaTable:
    write_deltalake(path, table_of(0, count), configuration=properties)
    return DeltaTable(path)


def test_predicate_and_columns_select_of_the_diff(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    table.delete("id < 4")
    rows = table.diff(0, columns=["x"], predicate="id > 1").to_table()
    assert rows.column_names == ["x", "_change_type", "_row_id", "_row_commit_version"]
    assert rows.to_pylist() == [
        {"x": i / 2, "_change_type": "delete", "_row_id": i, "_row_commit_version": 0} for i in (2, 3)
    ]


def test_files_that_both_versions_have_are_not_opened(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    first = next(tmp_path.glob("*.parquet"))
    write_deltalake(table, table_of(20, 2), mode="append")
    first.rename(tmp_path / "away")
    assert {r[0] for r in found(table, 0, 1)} == {"insert"}


def test_added_column_is_null_in_older_rows(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    more = pa.table({"id": pa.array([50], pa.int64()), "x": [1.0], "y": ["new"]})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    table.delete("id = 3")
    rows = table.diff(0, 2).to_table().select(["id", "y", "_change_type"]).to_pylist()
    assert sorted(rows, key=lambda r: r["id"]) == [
        {"id": 3, "y": None, "_change_type": "delete"},
        {"id": 50, "y": "new", "_change_type": "insert"},
    ]


def test_versions_without_row_tracking_are_named(tmp_path: Path) -> None:
    write_deltalake(tmp_path, table_of(0, 3))
    with pytest.raises(UnsupportedOperationError, match="rowTracking"):
        DeltaTable(tmp_path).diff(0)


def test_version_of_another_schema_is_named(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    write_deltalake(table, pa.table({"other": [1]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(
        SchemaError, match=r"version 0 can't be read with the schema of version 1: column id was dropped"
    ):
        table.diff(0, 1)


@pytest.mark.parametrize(("start", "kind"), [(-1, InvalidArgumentError), (9, VersionNotFoundError)])
def test_versions_that_do_not_exist_are_rejected(tmp_path: Path, start: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        tracked(tmp_path).diff(start)


def test_two_rows_with_one_id_are_corrupt(tmp_path: Path) -> None:
    table = tracked(tmp_path)
    write_deltalake(table, table_of(20, 2), mode="append")
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    # both files begin with id 0
    commit.write_text(commit.read_text().replace('"baseRowId":8', '"baseRowId":0'))
    write_deltalake(DeltaTable(tmp_path), table_of(30, 1), mode="overwrite")
    with pytest.raises(CorruptTableError, match="row id 0"):
        DeltaTable(tmp_path).diff(1, 2)


@pytest.mark.parametrize("properties", [TRACKED, VECTORS])
def test_update_in_a_clone_counts_although_the_source_gave_its_version_before(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    source = DeltaTable.create(tmp_path / "s", table_of(0, 0).schema, configuration=properties)
    write_deltalake(source, table_of(0, 10), mode="append")
    source.update({"x": "if(id = 2, double('NaN'), x + 1)"}, predicate="id < 6")
    clone = source.clone(tmp_path / "c")
    clone.optimize.compact()
    clone.update({"x": "-x"}, predicate="id % 2 = 1")
    assert clone.version() == 2
    assert clone.diff(0, 1).to_table().num_rows == 0
    found = clone.diff(0, 2).to_table().sort_by([("id", "ascending"), ("_change_type", "descending")])
    assert found.column("id").to_pylist() == [1, 1, 3, 3, 5, 5, 7, 7, 9, 9]
    assert found.column("_change_type").to_pylist() == ["update_preimage", "update_postimage"] * 5
    assert found.column("x").to_pylist()[:4] == [1.5, -1.5, 2.5, -2.5]
    assert clone.diff(2, 0).to_table().num_rows == found.num_rows


def test_row_of_a_replaced_clone_is_compared_by_its_values(tmp_path: Path) -> None:
    source = DeltaTable.create(tmp_path / "s", table_of(0, 0).schema, configuration=TRACKED)
    write_deltalake(source, table_of(0, 3), mode="append")
    source.clone(tmp_path / "c")
    source.update({"x": "10.0"}, predicate="id = 1")
    clone = DeltaTable(tmp_path / "c")
    clone.delete("id = 0")
    clone.update({"x": "20.0"}, predicate="id = 1")
    versions = [t.version() for t in (source, clone)]
    assert versions == [2, 2], "both gave the row version 2"
    clone = source.clone(tmp_path / "c", replace=True)
    found = clone.diff(2, 3).to_table().sort_by([("id", "ascending"), ("_change_type", "descending")])
    assert found.column("_change_type").to_pylist() == ["insert", "update_preimage", "update_postimage"]
    assert found.column("x").to_pylist() == [0.0, 20.0, 10.0]


def test_predicate_may_use_the_columns_of_the_diff(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}), configuration={"delta.enableRowTracking": "true"})
    table = DeltaTable(tmp_path)
    table.update({"id": "id + 10"}, predicate="id = 2")

    def found(predicate: str) -> list[tuple[int, str]]:
        rows = table.diff(0, 1, predicate=predicate).to_table().to_pylist()
        return sorted((r["id"], r["_change_type"]) for r in rows)

    assert found("_change_type = 'update_postimage'") == [(12, "update_postimage")]
    assert found("_change_type <> 'insert' and ID < 10") == [(2, "update_preimage")]
    assert found("_row_id = 1 or _change_type = 'insert'") == [(2, "update_preimage"), (12, "update_postimage")]
    assert found("_row_commit_version = 1") == [(12, "update_postimage")]


def test_predicate_may_use_metadata_columns_that_are_requested(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}), configuration={"delta.enableRowTracking": "true"})
    write_deltalake(tmp_path, pa.table({"id": [4]}), mode="append")
    table = DeltaTable(tmp_path)
    assert table.scan(metadata=["_row_id"], predicate="_row_id > 1 and id < 4").to_table().to_pylist() == [
        {"id": 3, "_row_id": 2}
    ]
    assert table.scan(metadata=["_file_row_index"], predicate="_file_row_index = 0").count() == 2
    path = table.scan(metadata=["_file_path"], predicate="id = 4").to_table().column("_file_path")[0].as_py()
    assert table.scan(metadata=["_file_path"], predicate=f"_file_path = '{path}'").count() == 1
    with pytest.raises(ColumnNotFoundError):
        table.scan(predicate="_row_id > 1")
