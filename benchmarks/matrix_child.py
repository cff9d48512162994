"""One side of the matrix in a process of its own: ``python -m benchmarks.matrix_child SIDE``  reads cells."""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.child import peak_mb
from benchmarks.matrix_reads import QUERIES, READS, Read
from benchmarks.matrix_tables import COLUMNS, SHAPES, Shape

__all__ = ["SIDES"]

#: Threads of each side.
THREADS = 2
Answer = tuple[int, int]


class _Side(ABC):
    """A library with one table open; what it needs is imported when it is made."""

    def __init__(self, table: Path, shape: Shape) -> None:
        self.table = table
        self.shape = shape
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Open the table, before the clock."""

    @abstractmethod
    def run(self, read: Read) -> Any:
        """Return the rows of a read, a pyarrow.Table or a polars.DataFrame."""

    def files(self) -> list[str]:
        return sorted(map(str, self.table.rglob("part-*.parquet")))


class _Ours(_Side):
    def open(self) -> None:
        from delta_core import DeltaTable

        self.handle = DeltaTable(self.table)

    @cached_property
    def connection(self) -> Any:
        """Return a connection of DuckDB with the table; made when first used, since reads of our own need none."""
        connection = _duckdb()
        connection.register("t", self.handle.dataset(encoded=True))
        self.handle.to_duckdb(connection).create_view("whole")
        return connection

    def run(self, read: Read) -> Any:
        if read.through == "polars":
            return self.handle.to_polars().sql(read.sql(self.shape, "self")).collect()
        if read.through == "duckdb":
            return self.connection.sql(read.sql(self.shape, "whole" if read.select else "t")).to_arrow_table()
        scan = self.handle.scan(read.columns(self.shape), read.where, limit=read.limit)
        return scan.count() if read.counts else scan.to_table()


class _Deltalake(_Side):
    def open(self) -> None:
        from deltalake import DeltaTable, QueryBuilder

        self.query = QueryBuilder().register("t", DeltaTable(self.table))

    def run(self, read: Read) -> Any:
        import pyarrow as pa

        return pa.table(self.query.execute(read.sql(self.shape)).read_all())


class _Polars(_Side):
    def open(self) -> None:
        from deltalake import DeltaTable

        self.handle = DeltaTable(self.table)

    def scan(self) -> Any:
        """Return a lazy frame; of files whose feature Polars does not read, under their own names."""
        import polars as pl

        if self.shape.is_mapped:
            return pl.scan_parquet(self.files()).rename({self.shape.physical(n): n for n in COLUMNS})
        return pl.scan_delta(self.handle)

    def run(self, read: Read) -> Any:
        return self.scan().sql(read.sql(self.shape, "self")).collect()


class _DuckDB(_Side):
    def open(self) -> None:
        if self.shape.deleted:
            raise NotImplementedError("read_parquet sees deleted rows")
        self.connection = _duckdb()
        names = ", ".join(f'"{self.shape.physical(n)}" as {n}' for n in COLUMNS)
        columns = names if self.shape.is_mapped else "*"
        files = ", ".join(f"'{f}'" for f in self.files())
        hive = str(self.shape.is_partitioned).lower()
        self.connection.sql(
            f"create view t as select {columns} from read_parquet([{files}], hive_partitioning = {hive})"
        )

    def run(self, read: Read) -> Any:
        return self.connection.sql(read.sql(self.shape)).to_arrow_table()


def _duckdb() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": THREADS})


SIDES: Mapping[str, Callable[[Path, Shape], _Side]] = {
    "ours": _Ours,
    "deltalake": _Deltalake,
    "polars": _Polars,
    "duckdb": _DuckDB,
}


def _answer(rows: Any, read: Read) -> Answer:
    """Return the number of rows and the sum of their ids, which all sides must share."""
    import pyarrow.compute as pc

    is_frame = hasattr(rows, "height")
    if read.counts:
        return rows if isinstance(rows, int) else int(rows["n"][0]) if is_frame else rows["n"][0].as_py(), 0
    count = rows.height if is_frame else rows.num_rows
    if read.limit is not None or read.checked is None:
        return count, 0
    return count, int(rows[read.checked].sum()) if is_frame else int(pc.sum(rows[read.checked]).as_py())


def main() -> None:
    """Answer each line ``[table, shape, read]`` with ``{seconds, cpu, opened_mb, peak_mb, answer}`` or ``{error}``."""
    side = SIDES[sys.argv[1]]
    opened: tuple[str, _Side] | None = None
    for line in sys.stdin:
        table, shape, name = json.loads(line)
        read = READS.get(name) or QUERIES[name]
        try:
            if opened is None or opened[0] != table:
                opened = None
                opened = table, side(Path(table), SHAPES[shape])
            before = peak_mb()
            start, cpu = time.perf_counter(), time.process_time()
            rows = opened[1].run(read)
            taken: dict[str, Any] = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
            taken |= {"opened_mb": before, "peak_mb": peak_mb()}
            out = taken | {"answer": _answer(rows, read)}
            del rows
        except Exception as e:  # noqa: BLE001  # whatever a side fails with is its figure
            out = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    main()
