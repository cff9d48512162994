"""One run of a case of a workload in a fresh process: ``python -m benchmarks.workload_child SIDE TABLE CASE``.

Prints ``{seconds, cpu, peak_mb, answer}`` as JSON. The answer is the number of rows and the sum of the numbers in
them; after a change, those of the changed table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.appends import copied
from benchmarks.child import peak_mb, processor_seconds

Case = Mapping[str, Any]


class _Side:
    """A library; ``read`` and ``sql`` return Arrow tables."""

    def open(self, table: str) -> Any:
        raise NotImplementedError("this side has no call for it")

    def files(self, table: str) -> int:
        raise NotImplementedError("this side has no call for it")

    def count(self, table: str) -> int:
        raise NotImplementedError("this side has no call for it")

    def read(self, table: str, case: Case) -> Any:
        names = ", ".join(f'"{c}"' for c in case["columns"]) if case.get("columns") else "*"
        where = f" WHERE {case['predicate']}" if case.get("predicate") else ""
        limit = f" LIMIT {case['limit']}" if case.get("limit") is not None else ""
        return self.sql(table, f"SELECT {names} FROM t{where}{limit}")

    def sql(self, table: str, query: str) -> Any:
        raise NotImplementedError("this side has no call for it")

    def change(self, table: str, case: Case) -> None:
        raise NotImplementedError("this side changes no tables")


def _changed(package: Any, table: Any, case: Case) -> None:
    """Change a table by the calls that deltalake and delta_core share."""
    import pyarrow.parquet as pq

    if "delete" in case:
        table.delete(case["delete"])
    elif "update" in case:
        table.update(case["update"], predicate=case.get("predicate"))
    elif "append" in case:
        package.write_deltalake(table, pq.read_table(case["append"]), mode="append")
    elif "merge" in case:
        merge = table.merge(pq.read_table(case["merge"]), case["on"], source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        table.optimize.compact()


class _Ours(_Side):
    def open(self, table: str) -> Any:
        from delta_core import open_table

        return open_table(table)

    def files(self, table: str) -> int:
        return self.open(table).scan().files().num_rows  # type: ignore[no-any-return]

    def count(self, table: str) -> int:
        return self.open(table).count()  # type: ignore[no-any-return]

    def read(self, table: str, case: Case) -> Any:
        return self.open(table).scan(case.get("columns"), case.get("predicate"), limit=case.get("limit")).to_table()

    def sql(self, table: str, query: str) -> Any:
        from delta_core import QueryBuilder

        return QueryBuilder().register("t", self.open(table)).execute(query).read_all()

    def change(self, table: str, case: Case) -> None:
        import delta_core

        _changed(delta_core, self.open(table), case)


class _Deltalake(_Side):
    def open(self, table: str) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(table)

    def files(self, table: str) -> int:
        return len(self.open(table).file_uris())

    def count(self, table: str) -> int:
        return self.open(table).count()  # type: ignore[no-any-return]

    def sql(self, table: str, query: str) -> Any:
        import pyarrow as pa
        from deltalake import QueryBuilder

        return pa.table(QueryBuilder().register("t", self.open(table)).execute(query).read_all())

    def change(self, table: str, case: Case) -> None:
        import deltalake

        _changed(deltalake, self.open(table), case)


class _Polars(_Side):
    def sql(self, table: str, query: str) -> Any:
        import polars as pl

        return pl.SQLContext(t=pl.scan_delta(table)).execute(query).collect().to_arrow()

    def count(self, table: str) -> int:
        import polars as pl

        return pl.scan_delta(table).select(pl.len()).collect().item()  # type: ignore[no-any-return]


class _DuckDB(_Side):
    """DuckDB's reader of Parquet files, on tables whose files contain exactly the rows."""

    def sql(self, table: str, query: str) -> Any:
        import duckdb

        from delta_core import DeltaTable

        opened = DeltaTable(table)
        opened.to_pyarrow_dataset()  # rejects a table whose files do not contain exactly the rows
        files = ", ".join(f"'{uri.removeprefix('file://')}'" for uri in opened.file_uris())
        connection = duckdb.connect()
        hive = str(bool(opened.metadata().partition_columns)).lower()
        connection.sql(f"CREATE VIEW t AS SELECT * FROM read_parquet([{files}], hive_partitioning = {hive})")
        return connection.sql(query).to_arrow_table()


class _Pylance(_Side):
    def open(self, table: str) -> Any:
        import lance

        return lance.dataset(table)

    def files(self, table: str) -> int:
        return len(self.open(table).get_fragments())

    def count(self, table: str) -> int:
        return self.open(table).count_rows()  # type: ignore[no-any-return]

    def read(self, table: str, case: Case) -> Any:
        return self.open(table).to_table(case.get("columns"), filter=case.get("predicate"), limit=case.get("limit"))

    def change(self, table: str, case: Case) -> None:
        import pyarrow.parquet as pq

        opened = self.open(table)
        if "delete" in case:
            opened.delete(case["delete"])
        elif "update" in case:
            opened.update(case["update"], where=case.get("predicate"))
        elif "append" in case:
            opened.insert(pq.read_table(case["append"]))
        elif "optimize" in case:
            opened.optimize.compact_files()
        else:
            raise NotImplementedError("pylance merges by the names of key columns, not by a condition")


SIDES: Mapping[str, Callable[[], _Side]] = {
    "ours": _Ours,
    "deltalake": _Deltalake,
    "polars": _Polars,
    "duckdb": _DuckDB,
    "pylance": _Pylance,
}
CHANGES = ("delete", "update", "append", "merge", "optimize")


def answer_of(rows: Any) -> list[float]:
    """Return the number of rows of an Arrow table, and the sum of all its numbers and booleans."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def is_number(t: pa.DataType) -> bool:
        return bool(pa.types.is_integer(t) or pa.types.is_floating(t))

    sums = [pc.sum(rows.column(i).cast(pa.float64(), safe=False)).as_py() or 0.0
            for i, f in enumerate(rows.schema) if is_number(f.type)]  # fmt: skip
    return [rows.num_rows, float(sum(sums))]


def run_case(side: _Side, table: str, case: Case) -> tuple[dict[str, float], Any]:
    """Run a case on the clock; return its times and its answer."""
    if any(key in case for key in CHANGES):
        return _run_change(side, table, case)
    work: Callable[[], Any]
    if "sql" in case:
        work = lambda: side.sql(table, case["sql"])  # noqa: E731
    elif "call" in case:
        work = lambda: getattr(side, case["call"])(table)  # noqa: E731
    else:
        work = lambda: side.read(table, case)  # noqa: E731
    times, found = _timed(work)
    if case.get("call") == "open":
        return times, None
    return times, found if isinstance(found, int) else answer_of(found)


def _run_change(side: _Side, table: str, case: Case) -> tuple[dict[str, float], Any]:
    if "://" in table:
        sys.exit("a change runs on a copy of the table, and a copy is made of tables on local disks only")
    with copied(Path(table)) as copy:
        times, _ = _timed(lambda: side.change(str(copy), case))
        return times, answer_of(_Ours().open(str(copy)).to_pyarrow_table())


def _timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    start, used = time.perf_counter(), processor_seconds()
    found = work()
    times = {"seconds": time.perf_counter() - start, "cpu": processor_seconds() - used}
    return times | {"peak_mb": peak_mb()}, found


def main() -> None:
    """Run one case and print its figures."""
    name, table, case = sys.argv[1:]
    side = SIDES[name]()
    parsed = json.loads(case)
    run_case(side, table, parsed)  # what is imported, or compiled, when it is first used is no part of the work
    times, answer = run_case(side, table, parsed)
    print(json.dumps(times | {"answer": answer}))


if __name__ == "__main__":
    main()
