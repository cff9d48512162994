"""Upkeep of tables, the same for every side: vacuum, restore, conversion of folders, compaction and cleanup of the log.

A side is a package with `DeltaTable` and `convert_to_deltalake`. What is left is read by the same code, whoever did the
work.
"""

from __future__ import annotations

import atexit
import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.appends import copied

__all__ = [
    "cleaning_log", "compacting_log", "converting", "restoring", "vacuum_growth", "vacuuming",
]  # fmt: skip

#: A number, computed once the clock is stopped and the peak memory is taken.
Answer = Callable[[], float]
Work = Callable[[], Answer]
_TENTHS = {"half-garbage": "little-garbage", "million-live": "tenth-live"}


def _work(
    change: Callable[[Path], object],
    answer: Callable[[Path], float],
    table: Path,
    small: Path,
    prepare: Callable[[Path], object] = lambda folder: None,
) -> Work:
    """Return work that changes a copy of a table, prepared, after it has changed one of the small table."""
    with copied(small) as folder:
        prepare(folder)
        change(folder)
    stack = ExitStack()
    atexit.register(stack.close)
    copy = stack.enter_context(copied(table))
    prepare(copy)

    def work() -> Answer:
        change(copy)
        return lambda: answer(copy)

    return work


def _sum_of(texts: Iterable[str]) -> float:
    """Return a number that depends on every text, not on their order."""
    return float(sum(zlib.crc32(text.encode()) for text in texts) % 2**40)


def _remaining(table: Path) -> float:
    return _sum_of(str(file.relative_to(table)) for file in table.glob("*/*.parquet"))


def _live(table: Path) -> float:
    import pyarrow as pa
    from deltalake import DeltaTable

    return _sum_of(pa.table(DeltaTable(str(table)).get_add_actions()).column("path").to_pylist())


def _converted(table: Path) -> float:
    """Sum up files, rows and bounds; no bounds of doubles, which footers do not order with NaN."""
    import pyarrow as pa
    from deltalake import DeltaTable

    adds = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    names = ("path", "size_bytes", "num_records", "null_count.id", "min.id", "max.id", "min.name", "max.name")
    return _sum_of(map(str, adds.select([n for n in names if n in adds.column_names]).to_pylist()))


def _log_files(table: Path) -> float:
    """Sum up the files of commits and checkpoints that are left."""
    log = table / "_delta_log"
    return _sum_of(f.name for f in log.iterdir() if f.name[:1].isdigit())


def vacuuming(package: str, table: Path, small: Path) -> Work:
    """Return work that opens a table and deletes the files that its log does not name, found by listing."""
    side = import_module(package)

    def vacuum(folder: Path) -> None:
        side.DeltaTable(str(folder)).vacuum(retention_hours=168, dry_run=False, full=True)

    return _work(vacuum, _remaining, table, small)


def vacuum_growth(package: str, table: Path, small: Path) -> Callable[[], float]:
    """Return work that answers with what the vacuum of ten times the files adds to the peak memory, in MB."""
    from benchmarks.child import peak_mb

    name, _, scale = table.name.rpartition("-")
    tenth = table.parent / f"{_TENTHS[name]}-{scale}"
    few, many = (vacuuming(package, folder, small) for folder in (tenth, table))

    def work() -> float:
        few()
        before = peak_mb()
        many()
        return peak_mb() - before

    return work


def restoring(package: str, table: Path, small: Path) -> Work:
    """Return work that opens a table and restores the version 20 commits ago; the files that come back are there."""
    side = import_module(package)

    def restore(folder: Path) -> None:
        opened = side.DeltaTable(str(folder))
        opened.restore(opened.version() - 20)

    return _work(restore, _live, table, small, _make_removed_files)


def _make_removed_files(table: Path) -> None:
    for commit in (table / "_delta_log").glob("*.json"):
        for line in commit.read_text().splitlines():
            path = json.loads(line).get("remove", {}).get("path")
            if path:
                (table / path).parent.mkdir(exist_ok=True)
                (table / path).touch()


def converting(package: str, table: Path, small: Path) -> Work:
    """Return work that makes a table of a folder of Parquet files, with statistics."""
    side = import_module(package)
    return _work(lambda folder: side.convert_to_deltalake(str(folder)), _converted, table, small)


def compacting_log(package: str, table: Path, small: Path) -> Work:
    """Return work that opens a table and writes a compacted file of all of its commits."""
    side = import_module(package)

    def compact(folder: Path) -> None:
        opened = side.DeltaTable(str(folder))
        opened.compact_logs(0, opened.version())

    def answer(folder: Path) -> float:
        [file] = (folder / "_delta_log").glob("*.compacted.json")
        actions: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
        paths = (a[kind]["path"] for a in actions for kind in ("add", "remove") if a.get(kind))
        return _sum_of(paths)

    return _work(compact, answer, table, small)


def cleaning_log(package: str, table: Path, small: Path) -> Work:
    """Return work that opens a table and deletes the expired files of its log."""
    side = import_module(package)
    return _work(lambda folder: side.DeltaTable(str(folder)).cleanup_metadata(), _log_files, table, small)
