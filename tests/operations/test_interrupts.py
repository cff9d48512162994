"""Operations that are interrupted: files that no commit names are deleted, those that one may name stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.kernel.commit.transaction import Transaction
from delta_core.operations import optimize
from delta_core.runtime.threads import ThreadPool
from tests.interrupts import interrupted_everywhere

ROWS = 400


def rows(first: int) -> pa.Table:
    return pa.table({"id": np.arange(first, first + ROWS), "p": np.arange(ROWS) % 2})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    for i in range(3):
        write_deltalake(tmp_path / "t", rows(i * ROWS), mode="append", partition_by=["p"])
    return DeltaTable(tmp_path / "t")


def merge(table: DeltaTable) -> None:
    new = table.merge(rows(ROWS // 2), "s.id = t.id", source_alias="s", target_alias="t")
    new.when_matched_update_all().when_not_matched_insert_all().execute()


OPERATIONS: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": lambda table: table.optimize.compact(),
    "z_order": lambda table: table.optimize.z_order(["id"]),
    "merge": merge,
    "delete": lambda table: table.delete("id % 3 = 1"),
    "append": lambda table: write_deltalake(table, rows(0), mode="append"),
}


def unnamed(table: DeltaTable) -> set[str]:
    """Return the data files that no commit names."""
    root = Path(table.table_uri.removeprefix("file://"))
    log = "".join(path.read_text() for path in (root / "_delta_log").glob("*.json"))
    return {path.name for path in root.rglob("*.parquet") if path.name not in log}


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


# what is interrupted at its end
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupt_anywhere_leaves_no_file_that_no_commit_names(table: DeltaTable, name: str, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "t", tmp_path / "before")
    files = (
        *("operations/optimize.py", "operations/row_changes.py", "operations/write.py", "operations/rewrite.py"),
        *("parquet/data_writer.py", "parquet/file_writer.py", "parquet/gathered_rows.py", "parquet/small_files.py"),
        *("parquet/written_files.py", "arrow/relations.py", "kernel/write/files.py", "contextlib.py"),
    )

    def work() -> None:
        shutil.rmtree(tmp_path / "t")
        shutil.copytree(tmp_path / "before", tmp_path / "t")
        OPERATIONS[name](DeltaTable(tmp_path / "t"))

    for place in interrupted_everywhere(files, work, step=11):
        assert unnamed(table) == set(), place
        assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows >= 2 * ROWS, place


@pytest.mark.parametrize("name", ["compact", "z_order"])
def test_files_of_a_task_that_the_interrupted_caller_lost_are_deleted(
    table: DeltaTable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = ThreadPool.submit

    def interrupted(pool: ThreadPool, *arguments: Any) -> Any:
        task = submit(pool, *arguments)
        if arguments[0].__name__ == "_write":
            task.wait()
            raise KeyboardInterrupt
        return task

    monkeypatch.setattr(ThreadPool, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        OPERATIONS[name](table)
    assert unnamed(table) == set()


def test_files_that_are_written_when_the_interrupt_comes_are_deleted(
    table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimize._Optimize, "_commit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        table.optimize.compact()
    assert unnamed(table) == set()


@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupt_after_the_commit_deletes_nothing(
    table: DeltaTable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Transaction.commit

    def interrupted(transaction: Transaction[Any], *arguments: Any, **options: Any) -> Any:
        commit(transaction, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        OPERATIONS[name](table)
    assert DeltaTable(table.table_uri).version() == 3
    assert DeltaTable(table.table_uri).to_pyarrow_table().num_rows >= 2 * ROWS


def test_progress_that_fails_leaves_no_file_that_no_commit_names(table: DeltaTable) -> None:
    def fail(progress: Any) -> None:
        if progress.files:
            raise OSError("no terminal")

    with pytest.raises(OSError, match="terminal"):
        table.delete("id % 3 = 1", progress=fail)
    assert unnamed(table) == set()
