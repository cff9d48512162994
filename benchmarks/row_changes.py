"""Changes of rows, the same for every side: deletes, updates, merges, compaction, clustering, reads of changes.

A side is a package whose `DeltaTable` has these calls. Tables that come out are read by deltalake, whoever wrote them.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.appends import copied
from benchmarks.change_tables import num_rows, scale_of

__all__ = ["Answer", "changing", "merging_many", "reading_changes", "share_of_files"]

#: A number, or what computes it once the clock is stopped and the peak memory is taken.
Answer = float | Callable[[], float]
#: A change of an open table, made for a table of one scale.
Change = Callable[[Any], object]

ENABLE_VECTORS = """
import sys
from delta_core import DeltaTable
DeltaTable(sys.argv[1]).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
"""
SCATTERED = "id % 100 = 7"
#: Half of the 1,000 partitions.
HALF = "event_date < '2023-05-16'"
TARGET_SIZE = 8 << 20
#: Bytes of rows that an order which spills keeps in memory.
LITTLE_MEMORY = 64 << 20
CLUSTERED = ("id", "amount")
_WIDE_SUM = "cast(c0 * 1000 as bigint) * 7 + cast(c99 * 1000 as bigint)"
#: By column of a table: a number for each row, which depends on all columns that are changed.
_ROW_NUMBERS = {
    "c99": f"(id * 31 + {_WIDE_SUM}) % 1000003",
    "name": "(id * 31 + cast(amount * 1000 as bigint) * 7 + length(name)) % 1000003",
    "category": "(id * 31 + quantity * 7 + length(category)) % 1000003",
}


def delete_rows(table: Path) -> Change:
    """Delete every hundredth row."""
    del table
    return lambda opened: opened.delete(SCATTERED)


def delete_partitions(table: Path) -> Change:
    """Delete half of the partitions."""
    del table
    return lambda opened: opened.delete(HALF)


def update_rows(table: Path) -> Change:
    """Update every hundredth row."""
    del table
    return lambda opened: opened.update({"amount": "amount + 1"}, predicate=SCATTERED)


def merge_rows(table: Path) -> Change:
    """Merge rows: a hundredth of the table's, and a tenth of that number that are new."""
    return _upsert("merged", table)


def upsert_rows(table: Path) -> Change:
    """Merge 200 rows: a hundred new ones, and a hundred that are in the table, some of them in each file."""
    return _upsert("upserted", table)


def compact(table: Path) -> Change:
    """Join small files."""
    del table
    return lambda opened: opened.optimize.compact()


def z_order(table: Path) -> Change:
    """Order rows along a curve through two columns."""
    size = max(10_000, int(TARGET_SIZE * scale_of(table)))
    return lambda opened: opened.optimize.z_order(list(CLUSTERED), target_size=size)


def z_order_spilling(table: Path) -> Change:
    """Order rows along a curve through two columns, with little memory for them."""
    size, memory = max(10_000, int(TARGET_SIZE * scale_of(table))), max(10_000, int(LITTLE_MEMORY * scale_of(table)))
    return lambda opened: opened.optimize.z_order(list(CLUSTERED), target_size=size, max_spill_size=memory)


def _hilbert(table: Path) -> Change:
    size = max(10_000, int(TARGET_SIZE * scale_of(table)))
    return lambda opened: opened.optimize.hilbert(list(CLUSTERED), target_size=size)


def _upsert(kind: str, table: Path) -> Change:
    """Return a merge of rows of `benchmarks.change_tables.SOURCES`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "source.arrow"
        # made in a process of its own, whose memory does not count: PyArrow imports pandas to make texts
        subprocess.run([sys.executable, "-m", "benchmarks.change_tables", kind, str(table), str(file)], check=True)
        with pa.OSFile(str(file)) as opened:
            rows = pa.ipc.open_file(opened).read_all()

    def change(opened: Any) -> object:
        merge = opened.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        return merge.when_matched_update_all().when_not_matched_insert_all().execute()

    return change


def changing(
    package: str, make: Callable[[Path], Change], table: Path, small: Path, *, vectors: bool = False
) -> Callable[[], Answer]:
    """Return work that opens a copy of a table and changes it; it answers with a sum over the rows that remain.

    Parameters
    ----------
    make : function(Path) -> Change
        Makes the change, such as `delete_rows`, outside the clock.
    vectors : bool
        Whether the copy drops rows by deletion vectors.
    """
    run = _prepared(package, make, table, small, vectors)

    def work() -> Answer:
        copy = run()
        return lambda: _sum(copy)

    return work


def merging_many(package: str, table: Path, small: Path) -> Callable[[], float]:
    """Return work that merges a hundredth of the rows of a large table; it answers with the peak memory in MB."""
    from benchmarks.child import peak_mb

    run = _prepared(package, merge_rows, table, small, vectors=True)
    expected = num_rows(table) + num_rows(table) // 1_000

    def work() -> float:
        copy = run()
        peak = peak_mb()
        found = _query(copy, "count(*)")
        if found != expected:
            raise AssertionError(f"The merge left {found} rows, expected {expected}.")
        return peak

    return work


def _prepared(
    package: str, make: Callable[[Path], Change], table: Path, small: Path, vectors: bool
) -> Callable[[], Path]:
    """Return what changes a copy of a table and returns the copy; it has run on the small table before."""
    open_table = import_module(package).DeltaTable

    def prepare(copy: Path) -> Change:
        if vectors:
            # in a process of its own, whose memory does not count
            subprocess.run([sys.executable, "-c", ENABLE_VECTORS, str(copy)], check=True)
        return make(copy)

    with copied(small) as folder:
        prepare(folder)(open_table(str(folder)))
    copy = _kept_copy(table)
    change = prepare(copy)

    def run() -> Path:
        change(open_table(str(copy)))
        return copy

    return run


def reading_changes(package: str, table: Path, small: Path) -> Callable[[], Answer]:
    """Return work that opens a table and reads its change feed; it answers with a sum over the rows of the feed."""
    side = import_module(package)

    def read(path: Path) -> pa.Table:
        opened = side.DeltaTable(str(path))
        if hasattr(opened, "changes"):
            return opened.changes(start_version=1).to_table()
        return pa.table(opened.load_cdf(starting_version=1))

    read(small)

    def work() -> Answer:
        rows = read(table)
        return lambda: _sum_of_changes(rows)

    return work


def share_of_files(packages: tuple[str, str], orders: tuple[str, str], table: Path, small: Path) -> Callable[[], float]:
    """Return work that clusters a table in two ways; its answer is the ratio of the shares of files that are planned.

    Parameters
    ----------
    packages, orders : (str, str)
        Package and kind of order, `z_order` or `hilbert`, of either way.
    """
    del small
    makers = {"z_order": z_order, "hilbert": _hilbert}

    def share(package: str, order: str) -> float:
        copy = _kept_copy(table)
        makers[order](table)(import_module(package).DeltaTable(str(copy)))
        return _planned_share(copy, num_rows(table))

    def work() -> float:
        first, second = (share(*way) for way in zip(packages, orders, strict=True))
        return first / second

    return work


def _planned_share(table: Path, num_rows: int) -> float:
    """Return the mean share of files that are planned for a hundredth of each of two columns."""
    from deltalake import DeltaTable

    opened = DeltaTable(str(table))
    planned = []
    for column, width in zip(CLUSTERED, (num_rows, 1.0), strict=True):
        for i in range(20):
            low, high = width * (i / 20), width * (i / 20 + 0.01)
            predicate = f"{column} >= {low} and {column} < {high}"
            planned.append(len(opened.file_uris(file_pruning_predicate=predicate)))
    return float(np.mean(planned)) / len(opened.file_uris())


def _sum(table: Path) -> float:
    """Return a number that depends on every row; on every file if the table has no data."""
    from deltalake import DeltaTable

    opened = DeltaTable(str(table))
    names = [f.name for f in opened.schema().fields]
    if "event_date" in names:
        return float(len(opened.file_uris()))
    number = next(n for column, n in _ROW_NUMBERS.items() if column in names)
    return float(_query(table, f"sum({number})") * 1_003 % 2**40 + _query(table, "count(*)"))


def _query(table: Path, value: str) -> int:
    from deltalake import DeltaTable, QueryBuilder

    found = QueryBuilder().register("t", DeltaTable(str(table))).execute(f"select {value} as value from t")
    value_of: int = pa.table(found.read_all()).column("value")[0].as_py()
    return value_of


def _sum_of_changes(rows: pa.Table) -> float:
    kinds = pc.binary_length(rows.column("_change_type").cast(pa.string()))
    versions = rows.column("_commit_version").cast(pa.int64())
    cents = pc.cast(pc.floor(pc.multiply(rows.column("amount"), 1_000)), pa.int64())
    parts = [(rows.column("id"), 31), (cents, 7), (versions, 1_009), (kinds.cast(pa.int64()), 100_003)]
    total = sum(np.asarray(column, dtype=np.int64) * factor for column, factor in parts)
    return float(int((np.asarray(total) % 1_000_003).sum()) * 1_003 % 2**40 + rows.num_rows)


def _kept_copy(table: Path) -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(copied(table))
