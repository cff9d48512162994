"""Operations on Spark that are killed before or after any write of the driver: the table is as before or after."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark.merge import _Merge
from delta_core.engines.spark.write.job import Job
from delta_core.errors import EngineError
from tests.example_counts import IS_LONG, chosen
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import FEED, ROW_IDS, VECTORS, Row, rows_of, table_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COPIED, MARKED = "copy", "vectors, feed, row ids"
TABLES = {COPIED: {}, MARKED: {**VECTORS, **FEED, **ROW_IDS}}
FIRST: list[Row] = [(i, "ab"[i % 2] if i % 5 else None, i / 8 if i % 3 else None) for i in range(6)]
SECOND: list[Row] = [(i, "a", 0.75) for i in range(6, 12)]
NEW: list[Row] = [(3, "n", 0.5), (4, "n", None), (40, "n", 1.0)]
SCHEMA = "id bigint, p string, x double"


def delete(spark: Any, path: Path) -> None:
    ds.DeltaTable.forPath(spark, str(path)).delete("id % 3 = 0")


def update(spark: Any, path: Path) -> None:
    ds.DeltaTable.forPath(spark, str(path)).update("id > 4", {"p": "'u'"})


def merge(spark: Any, path: Path) -> None:
    source = spark.createDataFrame(NEW, SCHEMA).alias("s")
    merger = ds.DeltaTable.forPath(spark, str(path)).alias("t").merge(source, "t.id = s.id")
    merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def optimize(spark: Any, path: Path) -> None:
    ds.DeltaTable.forPath(spark, str(path)).optimize().executeCompaction()


def overwrite(spark: Any, path: Path) -> None:
    rows = [r for r in NEW if r[0] == 40]
    ds.write(spark.createDataFrame(rows, SCHEMA), path, "overwrite", replace_where="id >= 6")


def append(spark: Any, path: Path) -> None:
    # as a batch of a stream, which is repeated
    ds.write(spark.createDataFrame(NEW, SCHEMA), path, "append", txn=("query", 7))


OPERATIONS: dict[str, tuple[Callable[[Any, Path], None], Callable[[list[Row]], list[Row]]]] = {
    "delete": (delete, lambda rows: [r for r in rows if r[0] % 3]),
    "update": (update, lambda rows: [(i, "u", x) if i > 4 else (i, p, x) for i, p, x in rows]),
    "merge": (merge, lambda rows: [*(r for r in rows if r[0] not in (3, 4)), *NEW]),
    "optimize": (optimize, lambda rows: rows),
    "overwrite": (overwrite, lambda rows: [*(r for r in rows if r[0] < 6), NEW[2]]),
    "append": (append, lambda rows: [*rows, *NEW]),
}


def content(folder: Path) -> list[Row]:
    table = DeltaTable(str(folder))
    for uri in table.file_uris():
        assert Path(uri).exists(), "a live file is missing"
    return sorted(rows_of(table.to_pyarrow_table()), key=repr)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: made(tmp_path_factory.mktemp("original") / "t", TABLES[name]) for name in TABLES}


def made(folder: Path, properties: dict[str, str]) -> Path:
    """Return a table of two files; one may have a vector."""
    write_deltalake(str(folder), table_of(FIRST), configuration=properties)
    write_deltalake(str(folder), table_of(SECOND), mode="append")
    DeltaTable(str(folder)).delete("id = 1")
    return folder


def seams(count: int) -> Iterator[tuple[int, bool]]:
    """Yield the writes at which a run of ``count`` writes is killed, before and after them."""
    every = [(at, is_after) for at in range(count) for is_after in (False, True)]
    yield from every if IS_LONG else dict.fromkeys([every[0], *every[-2:]])


#: Every operation on every table in the long form; without vectors, those that write the same files are left to it.
RUNS = chosen(product(TABLES, OPERATIONS), product(["vectors, feed, row ids"], OPERATIONS))


@pytest.mark.parametrize(("kind", "name"), RUNS)
def test_killed_driver_leaves_the_table_as_before_or_after(
    spark: Any, originals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    original, (run, apply) = originals[kind], OPERATIONS[name]
    before = content(original)
    after = sorted(apply(before), key=repr)
    version = DeltaTable(str(original)).version()
    whole = tmp_path / "whole"
    shutil.copytree(original, whole)
    with killing(Killer(None, False)) as counting:
        run(spark, whole)
    assert content(whole) == after
    assert counting.count
    delete_job, seen = Job.delete, set()
    for at, is_after in seams(counting.count):
        folder = tmp_path / f"{at}-{is_after}"
        shutil.copytree(original, folder)
        killer = Killer(at, is_after)
        # who is dead deletes nothing
        monkeypatch.setattr(Job, "delete", lambda *a, _k=killer: None if _k.is_dead else delete_job(*a))
        with killing(killer), pytest.raises(KilledError):
            run(spark, folder)
        latest = DeltaTable(str(folder))
        is_first = latest.version() - version not in seen
        seen.add(latest.version() - version)
        assert content(folder) == (before if latest.version() == version else after), (at, is_after)
        if latest.version() == version or name == "append":
            run(spark, folder)
            assert content(folder) == after, (at, is_after)
        write_deltalake(str(folder), table_of([(50, "c", None)]), mode="append")
        assert (50, "c", None) in content(folder)
        # Spark reads one table of each: killed before the commit, whose files no log names, and after it
        if IS_LONG or is_first:
            assert len(ds.read(spark, folder).collect()) == len(after) + 1
    # before the commit, and after it
    assert seen == {0, 1}


@pytest.mark.parametrize(
    ("kind", "times"), chosen(product(TABLES, (3, 4)), [("vectors, feed, row ids", 3), ("copy", 4)])
)
def test_merge_whose_rows_are_lost_runs_again_but_not_for_ever(
    spark: Any, originals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, times: int
) -> None:
    original, folder = originals[kind], tmp_path / "t"
    shutil.copytree(original, folder)
    before, real, failed = content(folder), _Merge._write, []

    def losing(self: Any, *args: Any) -> None:
        real(self, *args)
        if len(failed) < times:
            failed.append(1)
            raise EngineError("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_1_0 not found!")

    monkeypatch.setattr(_Merge, "_write", losing)
    if times == 4:
        with pytest.raises(EngineError, match="CHECKPOINT"):
            merge(spark, folder)
        assert content(folder) == before
    else:
        merge(spark, folder)
        assert content(folder) == sorted(OPERATIONS["merge"][1](before), key=repr)
    # failed attempts left no file
    table = DeltaTable(str(folder))
    named = {Path(u) for u in table.file_uris()}
    unnamed = {f for f in folder.rglob("part-*.parquet") if "_change_data" not in f.parts} - named
    assert unnamed == original_files(folder, original) - named
    assert len(failed) == times


def original_files(folder: Path, original: Path) -> set[Path]:
    return {folder / f.relative_to(original) for f in original.rglob("part-*.parquet")}
