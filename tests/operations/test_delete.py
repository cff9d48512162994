"""DELETE: the rows that are left, beside a plain list; which files it touches; the feed, row ids, and other writers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    ArgumentTypeError,
    ColumnNotFoundError,
    CommitConflictError,
    ConcurrentDeleteDeleteError,
    InvalidArgumentError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.options import AppTransaction
from delta_core.operations import delete
from delta_core.operations.delete import ChangeOptions, delete_rows
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples
from tests.operations.row_tables import (
    FEED,
    PREDICATES,
    ROW_IDS,
    ROWS,
    TABLES,
    VECTORS,
    Row,
    data_files,
    made,
    row_ids,
    rows_of,
    table_of,
)

STEPS = st.lists(st.one_of(ROWS, st.sampled_from([*PREDICATES, "all"])), min_size=1, max_size=6)


@pytest.mark.parametrize("partitions", [[], ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(5), deadline=None)
@given(first=ROWS, steps=STEPS)
def test_rows_of_every_version_are_those_of_a_list(
    tmp_path_factory: pytest.TempPathFactory, kind: str, partitions: list[str], first: list[Row], steps: list[Any]
) -> None:
    uri = str(tmp_path_factory.mktemp("t"))
    write_deltalake(uri, table_of(first), partition_by=partitions, configuration=TABLES[kind])
    table = DeltaTable(uri)
    model, versions, deleted = list(first), [sorted(first, key=repr)], dict[int, list[Row]]()
    for step in steps:
        ids = row_ids(table) if "row ids" in kind else {}
        if isinstance(step, list):
            write_deltalake(table, table_of(step), mode="append")
            model += step
        else:
            lost = [r for r in model if step == "all" or PREDICATES[step](r)]
            metrics = table.delete(None if step == "all" else step)
            model = [r for r in model if step != "all" and not PREDICATES[step](r)]
            assert metrics["num_deleted_rows"] == len(lost)
            if not lost and table.version() == len(versions) - 1:
                continue
            deleted[table.version()] = sorted(lost, key=repr)
        versions.append(sorted(model, key=repr))
        assert table.version() == len(versions) - 1
        kept = row_ids(table) if "row ids" in kind else {}
        assert all(ids[i] == row for i, row in kept.items() if i in ids)
    for version, expected in enumerate(versions):
        assert rows_of(DeltaTable(uri, version=version).to_pyarrow_table()) == expected
    if "feed" in kind:
        for version, expected in deleted.items():
            feed = table.load_cdf(version, version).read_all()
            assert set(feed.column("_change_type").to_pylist()) <= {"delete"}
            assert rows_of(feed) == expected
    shutil.rmtree(uri)


def test_predicate_on_partition_columns_reads_no_data(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS, ["p"])
    for name in data_files(table):
        (tmp_path / "t" / name).write_bytes(b"no Parquet")
    before = data_files(table)
    assert table.delete("p = 'a'")["num_removed_files"] == 1
    assert table.partitions() == [{"p": "b"}]
    assert data_files(table) == before


@pytest.mark.parametrize("predicate", ["null", "false", "p = null"])
def test_predicate_that_is_true_for_no_row_changes_nothing(tmp_path: Path, predicate: str) -> None:
    table = made(tmp_path, VECTORS, ["p"])
    before = rows_of(table.to_pyarrow_table())
    assert table.delete(predicate)["num_deleted_rows"] == 0
    assert table.update({"id": "0"}, predicate=predicate)["num_updated_rows"] == 0
    assert (table.version(), rows_of(table.to_pyarrow_table())) == (0, before)


def test_vectors_leave_the_data_files_as_they_are(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    [path] = table.file_uris()
    metrics = table.delete("id in (2, 3)")
    assert table.file_uris() == [path]
    assert (metrics["num_deletion_vectors_added"], metrics["num_copied_rows"]) == (1, 0)
    metrics = table.delete("id = 4")
    assert (metrics["num_deletion_vectors_added"], metrics["num_deletion_vectors_updated"]) == (0, 1)
    metrics = table.delete("id >= 0")
    assert (metrics["num_deletion_vectors_removed"], metrics["num_removed_files"]) == (1, 1)
    assert table.file_uris() == []


def test_files_without_selected_rows_are_not_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path, {}, ["p"])
    kept = {u for u in table.file_uris() if "p=b" in u}
    # 4 lies within the bounds of both files
    metrics = table.delete("id = 4")
    assert (metrics["num_removed_files"], metrics["num_added_files"], metrics["num_copied_rows"]) == (1, 1, 4)
    assert kept < set(table.file_uris())


def test_file_without_statistics_is_rewritten_though_vectors_are_on(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create({"id": "long"}, properties=VECTORS, features=["deletionVectors"])
    builder.append([{"id": 1}, {"id": 2}], stats=None)
    table = DeltaTable(builder.uri)
    metrics = table.delete("id = 1")
    assert (metrics["num_added_files"], metrics["num_deletion_vectors_added"]) == (1, 0)
    assert table.to_pyarrow_table().to_pydict() == {"id": [2]}


@pytest.mark.parametrize("predicate", ["id = 77", "p = 'z'", "id = 3 and false", "cast(null as boolean)"])
def test_no_selected_row_is_no_commit(tmp_path: Path, predicate: str) -> None:
    table = made(tmp_path, {}, ["p"])
    files = data_files(table)
    assert table.delete(predicate)["num_deleted_rows"] == 0
    assert (table.version(), data_files(table)) == (0, files)


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_append_only_tables_delete_nothing(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, {**properties, "delta.appendOnly": "true"})
    files = data_files(table)
    for predicate in ("id = 3", None):
        with pytest.raises(UnsupportedOperationError, match="appendOnly"):
            table.delete(predicate)
    assert (table.version(), data_files(table)) == (0, files)


def test_deletes_of_other_rows_of_one_file_both_land(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    stale = table.snapshot()
    assert _at(stale, "id < 3").version == 1
    assert _at(stale, "id > 7").version == 2
    assert sorted(DeltaTable(table.table_uri).to_pyarrow_table().column("id").to_pylist()) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("properties", [VECTORS, {}, {**VECTORS, **FEED}], ids=["vectors", "rewrite", "feed"])
def test_deletes_of_the_same_rows_conflict_and_leave_nothing_behind(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, properties)
    stale = table.snapshot()
    _at(stale, "id < 3")
    files = data_files(table)
    with pytest.raises(CommitConflictError) as caught:
        _at(stale, "id < 5")
    if properties == VECTORS:
        assert isinstance(caught.value, ConcurrentDeleteDeleteError)
    assert data_files(table) == files
    assert DeltaTable(table.table_uri).version() == 1


def _at(stale: Any, predicate: str) -> Any:
    """Delete on a version that others have gone past: `delete_rows` itself looks for the latest one first."""
    found = delete._Delete(stale, ChangeOptions(predicate))
    with found.changes:
        return found.run().snapshot


def test_latest_version_is_deleted_from_whatever_is_loaded(tmp_path: Path) -> None:
    table = made(tmp_path)
    write_deltalake(table.table_uri, table_of([(100, "a", None)]), mode="append")
    assert table.version() == 0
    assert table.delete("id >= 9")["num_deleted_rows"] == 2
    assert (table.version(), table.to_pyarrow_table().num_rows) == (2, 9)


def test_application_version_that_the_table_has_deletes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    once = CommitProperties(app_transactions=[AppTransaction("app", 1)])
    assert table.delete("id = 1", commit_properties=once)["num_deleted_rows"] == 1
    assert table.delete("id = 2", commit_properties=once)["num_deleted_rows"] == 0
    assert table.version() == 1


def test_arguments_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(ColumnNotFoundError, match="nothing"):
        table.delete("nothing = 1")
    with (
        pytest.warns(DeprecationWarning, match="post_commithook_properties by name"),
        pytest.raises(ArgumentTypeError, match="post_commithook_properties as int"),
    ):
        table.delete("id = 1", None, 5)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="by name"), pytest.raises(TypeError, match="by position and by name"):
        table.delete("id = 1", None, None, CommitProperties(), commit_properties=CommitProperties())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 2 arguments after its own by position, not 3"):
        table.delete("id = 1", None, None, None, None)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError, match="commit_properties as int"):
        table.delete("id = 1", commit_properties=5)  # type: ignore[arg-type]
    assert table.version() == 0


def test_commit_states_what_was_deleted(tmp_path: Path) -> None:
    table = made(tmp_path, {**VECTORS, **FEED})
    table.delete("id = 1", commit_properties=CommitProperties(custom_metadata={"why": "test"}))
    [info] = table.history(1)
    assert (info["operation"], info["operationParameters"], info["why"]) == (
        "DELETE",
        {"predicate": '["id = 1"]'},
        "test",
    )
    found = {k: int(v) for k, v in info["operationMetrics"].items() if int(v) and not k.endswith("Ms")}
    assert found == {"numDeletedRows": 1, "numDeletionVectorsAdded": 1, "numAddedChangeFiles": 1}


def test_delete_rows_returns_the_snapshot_after_it(tmp_path: Path) -> None:
    done = delete_rows(made(tmp_path).snapshot(), ChangeOptions("id = 1"))
    assert (done.snapshot.version, done.snapshot.scan().count()) == (1, 9)


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["plain", "vectors", "vectors, mapping", "feed"])
def test_deltalake_reads_the_rows_that_are_left(tmp_path: Path, kind: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = made(tmp_path, TABLES[kind], ["p"])
    table.delete("id % 3 = 0")
    table.delete("x > 0.75")
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.table_uri)).execute("select id from t")
    assert sorted(pa.table(found).column("id").to_pylist()) == [1, 2, 4, 5, 7]


def _large_file(tmp_path: Path, properties: dict[str, str]) -> DeltaTable:
    """Make a table of one file of about 90 bytes a row."""
    random = np.random.default_rng(1)
    rows = pa.table({"id": np.arange(120_000), "x": [random.bytes(80) for _ in range(120_000)]})
    write_deltalake(tmp_path / "t", rows, configuration=properties)
    return DeltaTable(str(tmp_path / "t"))


def test_file_of_which_a_tenth_remains_is_rewritten_and_others_get_vectors(tmp_path: Path) -> None:
    table = _large_file(tmp_path, {**VECTORS, **ROW_IDS})
    first = table.delete("id % 100 >= 80")
    assert (first["num_deletion_vectors_added"], first["num_added_files"]) == (1, 0)
    second = table.delete("id % 100 >= 11")
    # the rows deleted before count: 89 of 100 are gone, which is not enough
    assert (second["num_deletion_vectors_updated"], second["num_added_files"]) == (1, 0)
    third = table.delete("id % 100 >= 10")
    assert (third["num_added_files"], third["num_removed_files"], third["num_copied_rows"]) == (1, 1, 12_000)
    assert third["num_deleted_rows"] == 1_200
    found = table.snapshot().scan(["id"], metadata=["_row_id"]).to_table()
    assert found.column("id").to_pylist() == [i for i in range(120_000) if i % 100 < 10]
    assert found.column("_row_id").equals(found.column("id"))
    assert table.get_add_actions().num_rows == 1
    assert table.snapshot().files.columns(["deletionVector"]).column(0).null_count == 1


def test_small_file_gets_a_vector_however_few_rows_remain(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    metrics = table.delete("id > 0")
    assert (metrics["num_deletion_vectors_added"], metrics["num_added_files"]) == (1, 0)


def test_rows_that_a_rewrite_moves_conflict_with_a_vector_of_the_file(tmp_path: Path) -> None:
    table = _large_file(tmp_path, VECTORS)
    late = table.snapshot()
    table.delete("id >= 1000")
    with pytest.raises(CommitConflictError):
        _at(late, "id = 3")
    assert table.to_pyarrow_table().num_rows == 1000


def test_properties_are_taken_by_position_too(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.warns(DeprecationWarning, match="commit_properties by name"):
        table.delete("id = 1", None, None, CommitProperties(custom_metadata={"who": "me"}))  # type: ignore[call-arg]
    assert table.history(1)[0]["who"] == "me"
