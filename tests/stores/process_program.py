"""What a child process does with its parent's tables, for `test_processes.py`; each step is printed once it is done.

Run as ``python -m tests.stores.process_program <start method> <table URI> <storage options as JSON>``: a program of its
own, since pytest's threads are no part of what is tested.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core import DeltaTable, QueryBuilder, write_deltalake
from delta_core.errors import EngineError
from delta_core.table import query

ROWS = 40
SUM = sum(range(ROWS))
Options = Mapping[str, Any]


def _rows(start: int, count: int = 10) -> pa.Table:
    return pa.table({"id": range(start, start + count), "name": [f"n{i}" for i in range(count)]})


def _total(session: QueryBuilder) -> int:
    total: int = session.execute("SELECT sum(id) AS total FROM t").read_all()["total"][0].as_py()
    return total


def _expect(condition: bool) -> None:
    if not condition:
        raise AssertionError


def _expect_error(work: Callable[[], object], *words: str) -> None:
    try:
        work()
    except EngineError as e:
        _expect(all(word in str(e) for word in words))
    else:
        raise AssertionError("no error")


class Parent:
    """What a parent made and used: threads, locks, connections, an unfinished read."""

    def __init__(self, uri: str, options: Options) -> None:
        write_deltalake(uri, _rows(0), storage_options=options)
        for start in (10, 20):
            write_deltalake(uri, _rows(start), mode="append", storage_options=options)
        DeltaTable(uri, storage_options=options).create_checkpoint()
        write_deltalake(uri, _rows(30), mode="append", storage_options=options)
        self.table = DeltaTable(uri, storage_options=options)
        _expect(pc.sum(self.table.to_pyarrow_table()["id"]).as_py() == SUM)
        # one thread a file, if a store has calls of its own
        snapshot = self.table.snapshot()
        snapshot.engine.storage.stat(snapshot.files.columns(["path"])["path"].to_pylist())
        self.stream = snapshot.scan().batches()
        next(self.stream)
        self.sessions = {name: QueryBuilder(engine=name).register("t", self.table) for name in ("duckdb", "datafusion")}
        for session in self.sessions.values():
            _expect(_total(session) == SUM)

    def work_in_child(self) -> None:
        """Use what came along with a fork."""
        query.PATIENCE_S = 3
        _expect_error(lambda: list(self.stream), "Begin a read of its own")
        _done("unfinished read")
        self.stream.close()
        _use(self.table)
        _done("table")
        _expect(_total(self.sessions["duckdb"]) == SUM)
        _expect_error(lambda: _total(self.sessions["datafusion"]), "forkserver", "duckdb")
        _done("sessions")


def work(parent: Parent | None, table: DeltaTable, uri: str, options: Options) -> None:
    """Do in the child what was done in its parent."""
    if parent is not None:
        parent.work_in_child()

    def session(name: str) -> QueryBuilder:
        return QueryBuilder(engine=name).register("t", DeltaTable(uri, storage_options=options))

    _use(table)
    _done("table of an argument")
    _use(DeltaTable(uri, storage_options=options))
    _done("new table")
    _expect(_total(session("duckdb")) == SUM)
    if parent is None:
        _expect(_total(session("datafusion")) == SUM)
    else:
        _expect_error(lambda: _total(session("datafusion")), "forkserver", "duckdb")
    _done("new sessions")


def _use(table: DeltaTable) -> None:
    """Read, write, remove, and write a checkpoint."""
    _expect(table.to_pyarrow_table(filters="id >= 35").num_rows == 5)
    write_deltalake(table, _rows(100), mode="append")
    write_deltalake(table, _rows(0, 0), mode="overwrite", predicate="id >= 100")
    table.create_checkpoint()
    table.update_incremental()
    rows = table.to_pyarrow_table()
    _expect(pc.sum(rows["id"]).as_py() == SUM)
    # on PyArrow's own threads
    _expect(rows.group_by("name", use_threads=True).aggregate([("id", "sum")]).num_rows == 10)


def _done(step: str) -> None:
    print(step, flush=True)


def main(method: str, uri: str, options: Options) -> int:
    """Use a table in this process, then in a child."""
    parent = Parent(uri, options)
    table = DeltaTable(uri, storage_options=options, pickle_secrets=True)
    arguments = (parent if method == "fork" else None, table, uri, options)
    child = multiprocessing.get_context(method).Process(target=work, args=arguments)
    child.start()
    child.join()
    _use(parent.table)
    _done("parent again")
    parent.stream.close()
    return child.exitcode or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
