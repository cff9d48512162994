"""Operations that change rows, on a format that shares nothing with Delta's log and transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CommitConflictError, ConstraintViolationError, InvalidArgumentError
from delta_core.kernel.snapshot import open_context
from delta_core.operations.changes import ChangeOptions, ChangeTarget
from delta_core.operations.delete import delete_rows
from delta_core.operations.merge.builder import MergeClause
from delta_core.operations.merge.operation import MergeOptions, merge_rows
from delta_core.operations.optimize import optimize_table
from delta_core.operations.replace import ReplaceRowsOptions, replace_rows
from delta_core.operations.rewrites import OptimizeOptions, RewriteTarget
from delta_core.operations.update import UpdateOptions, update_rows
from delta_core.operations.write import WriteOptions, write_table
from tests.operations.plain_table import PlainTable, plain_table

FIRST = {"id": [1, 2, 3], "x": ["a", "b", None]}
SECOND = {"id": [4, 5], "x": ["b", "c"]}


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    return plain_table(str(tmp_path), FIRST, SECOND)


def values(table: Any) -> list[tuple[Any, Any]]:
    return sorted(((r["id"], r["x"]) for r in table.rows()), key=str)


def new_rows(**columns: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(columns["id"], pa.int64()), "x": pa.array(columns["x"], pa.string())})


def test_table_is_a_target_of_changes_and_of_rewrites(table: PlainTable) -> None:
    changed: ChangeTarget = table  # type: ignore[assignment]  # mypy checks the members
    rewritten: RewriteTarget = table  # type: ignore[assignment]
    assert changed is rewritten


def test_delete_drops_rows_for_which_the_predicate_is_true(table: PlainTable) -> None:
    done = delete_rows(table, ChangeOptions(predicate="x = 'b'"))
    assert (values(done.snapshot), done.metrics["numDeletedRows"]) == ([(1, "a"), (3, None), (5, "c")], 2)
    assert table.store.operations[-1] == "DELETE"


def test_delete_of_all_rows_removes_units(table: PlainTable) -> None:
    done = delete_rows(table, ChangeOptions())
    assert (values(done.snapshot), done.metrics["numRemovedFiles"]) == ([], 2)


def test_update_writes_selected_rows_with_new_values(table: PlainTable) -> None:
    done = update_rows(table, UpdateOptions(predicate="id >= 3", updates={"x": "concat(cast(id as string), '!')"}))
    assert values(done.snapshot) == [(1, "a"), (2, "b"), (3, "3!"), (4, "4!"), (5, "5!")]


def test_merge_updates_deletes_and_inserts(table: PlainTable) -> None:
    clauses = (
        MergeClause("matched", "delete", predicate="t.id = 1"),
        MergeClause("matched", "update", updates={"x": "s.x"}),
        MergeClause("not_matched", "insert", updates={"id": "s.id", "x": "s.x"}),
    )
    options = MergeOptions(predicate="t.id = s.id", clauses=clauses, source_alias="s", target_alias="t")
    done = merge_rows(table, new_rows(id=[1, 2, 9], x=["p", "q", "r"]), options)
    assert values(done.snapshot) == [(2, "q"), (3, None), (4, "b"), (5, "c"), (9, "r")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(2, "b"), (8, "b")]),
        ({"predicate": "x = 'b'"}, [(1, "a"), (2, "b"), (3, None), (5, "c"), (8, "b")]),
        ({"replace_using": ["id"]}, [(1, "a"), (2, "b"), (3, None), (4, "b"), (5, "c"), (8, "b")]),
        ({"replace_on": "t.id > s.id"}, [(1, "a"), (2, "b"), (2, "b"), (8, "b")]),
    ],
    ids=["all", "predicate", "using", "on"],
)
def test_replacing_writes_drop_what_they_select_and_equal_those_of_delta(
    tmp_path: Path, table: PlainTable, options: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    rows = new_rows(id=[2, 8], x=["b", "b"])
    assert values(replace_rows(table, rows, ReplaceRowsOptions(**options)).snapshot) == expected
    context = open_context(str(tmp_path / "delta"))
    for part in (FIRST, SECOND):
        write_table(context, new_rows(**part), WriteOptions(mode="append"))
    snapshot = replace_rows(context.find(), rows, ReplaceRowsOptions(**options)).snapshot
    found = snapshot.scan().to_table().to_pylist()
    assert sorted(((r["id"], r["x"]) for r in found), key=str) == expected


def test_new_rows_that_do_not_fit_the_predicate_are_rejected_and_nothing_stays(table: PlainTable) -> None:
    before = dict(table.store.units)
    with pytest.raises(ConstraintViolationError):
        replace_rows(table, new_rows(id=[7], x=["z"]), ReplaceRowsOptions(predicate="x = 'b'"))
    assert (table.store.units, table.store.latest.version) == (before, table.version)


def test_ways_to_choose_replaced_rows_exclude_each_other(table: PlainTable) -> None:
    with pytest.raises(InvalidArgumentError, match="predicate and replace_using"):
        replace_rows(table, new_rows(id=[7], x=["b"]), ReplaceRowsOptions(predicate="x = 'b'", replace_using=["id"]))


def test_compaction_joins_units_and_leaves_deleted_rows_out(table: PlainTable) -> None:
    deleted = delete_rows(table, ChangeOptions(predicate="id = 2")).snapshot
    done = optimize_table(deleted, OptimizeOptions())
    assert (len(done.snapshot.state), done.metrics["numFilesRemoved"]) == (1, 2)
    assert values(done.snapshot) == [(1, "a"), (3, None), (4, "b"), (5, "c")]
    assert optimize_table(done.snapshot, OptimizeOptions()).snapshot.version == done.snapshot.version


def test_units_are_chosen_by_the_caller(table: PlainTable) -> None:
    done = optimize_table(table, OptimizeOptions(choose=lambda units: []))
    assert done.snapshot.version == table.version


@pytest.mark.parametrize("order", ["zorder", "linear"])
def test_rows_are_ordered(table: PlainTable, order: Any) -> None:
    table.store.append(new_rows(id=[-1], x=["z"]))
    done = optimize_table(table, OptimizeOptions(order=order, order_by=("id",)))
    assert [r["id"] for r in done.snapshot.rows()] == [-1, 1, 2, 3, 4, 5]


def test_rows_deleted_while_units_are_compacted_stay_deleted(table: PlainTable) -> None:
    store = table.store
    store.meanwhile = lambda: delete_rows(store.latest, ChangeOptions(predicate="id = 5"))
    done = optimize_table(table, OptimizeOptions())
    assert values(done.snapshot) == [(1, "a"), (2, "b"), (3, None), (4, "b")]


def test_conflict_deletes_what_was_written(table: PlainTable) -> None:
    store = table.store
    store.meanwhile = lambda: delete_rows(store.latest, ChangeOptions(predicate="id = 5"))
    with pytest.raises(CommitConflictError):
        update_rows(table, UpdateOptions(updates={"x": "'z'"}))
    assert sorted(store.units) == sorted(store.latest.state)
