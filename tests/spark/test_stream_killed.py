"""Streams whose driver is killed: whatever it was doing, the next run loses nothing and doubles nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.docs.blocks import ROOT
from tests.example_counts import IS_LONG, chosen
from tests.spark.stream_program import copy

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
}
#: How often drivers are killed, each once or several times in a row.
NUM_KILLS = 12 if IS_LONG else 1
_SECONDS = 300


def append(folder: Path, first: int, *columns: str) -> None:
    values = {"id": pa.array(range(first, first + 3), pa.int64())}
    values |= {name: pa.array(range(1, 4), pa.int64()) for name in columns}
    write_deltalake(folder, pa.table(values), mode="append", configuration=PROPERTIES, schema_mode="merge")


def make(folder: Path, kind: str) -> None:
    """Make the source: its schema changes twice."""
    for i in range(4):
        append(folder, 10 * i, "x")
    if kind == "changes":
        DeltaTable(folder).delete("id = 11")
        DeltaTable(folder).update({"x": "x + 7"}, predicate="id < 2")
    append(folder, 40, "x", "y")
    DeltaTable(folder).alter.rename_column("y", "z")
    for i in range(5, 8):
        append(folder, 10 * i, "x", "z")


def content(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return rows under the names that their columns have at last."""
    return Counter(
        (r["id"], r["x"], r.get("z") or r.get("y"), r.get("_change_type"), r.get("_commit_version"))
        for r in rows.to_pylist()
    )


def expected(source: Path, kind: str) -> Counter[tuple[Any, ...]]:
    if kind == "rows":
        return content(DeltaTable(source).to_pyarrow_table())
    table, found = DeltaTable(source), Counter[tuple[Any, ...]]()
    renamed = next(v for v in range(table.version(), 0, -1) if "z" not in names(source, v)) + 1
    for first, last in ((0, renamed - 1), (renamed, table.version())):
        found += content(DeltaTable(source).changes(first, last).to_table())
    return found


def names(source: Path, version: int) -> list[str]:
    return [f.name for f in DeltaTable(source, version=version).schema().fields]


def num_files(folder: Path, suffix: str = "") -> int:
    """Return how many numbered files a folder of the checkpoint, or the log of a table, has."""
    if not folder.exists():
        return 0
    return sum(f.name.removesuffix(suffix).isdigit() and f.name.endswith(suffix) for f in folder.iterdir())


def kill_after(folder: Path, kind: str, is_reached: Callable[[], bool], delay: float) -> None:
    """Run the stream in a process of its own, and kill it and its driver."""
    program = Path(__file__).with_name("stream_program.py")
    path = os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))
    log = folder / "log.txt"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, str(program), str(folder), kind],
            stdout=out,
            stderr=out,
            cwd=folder,
            env=dict(os.environ, PYTHONPATH=path),
            start_new_session=True,
        )
    try:
        until = time.monotonic() + _SECONDS
        while not is_reached():
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, log.read_text()[-4000:]
            time.sleep(0.002)
        time.sleep(delay)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("kind", chosen(["rows", "changes"], ["changes"]))
@pytest.mark.parametrize("seed", range(NUM_KILLS))
def test_stream_whose_driver_is_killed_is_complete_and_nothing_is_doubled(
    spark: Any, tmp_path: Path, kind: str, seed: int
) -> None:
    make(tmp_path / "source", kind)
    luck = random.Random(f"{kind} {seed}")
    checkpoint, log = tmp_path / "checkpoint", tmp_path / "target" / "_delta_log"
    for _ in range(1 if NUM_KILLS == 1 else luck.randint(1, 3)):
        more = luck.randint(1, 3)
        done = num_files(checkpoint / "commits")
        batches, versions = num_files(checkpoint / "offsets"), num_files(log, ".json")
        schemas = sum(num_files(f) for f in (checkpoint / "schemas").glob("*"))
        if done >= 8:
            break
        reached: dict[str, Callable[[], bool]] = {
            "batch planned": lambda n=batches + more: num_files(checkpoint / "offsets") >= n,  # type: ignore[misc]
            "batch written": lambda n=versions + more: num_files(log, ".json") >= n,  # type: ignore[misc]
            "batch recorded": lambda n=done + more: num_files(checkpoint / "commits") >= n,  # type: ignore[misc]
            "schema stored": lambda n=schemas + 1: (  # type: ignore[misc]
                sum(num_files(f) for f in (checkpoint / "schemas").glob("*")) >= n
            ),
        }
        name = luck.choice(sorted(reached))
        kill_after(tmp_path, kind, reached[name], luck.choice([0, 0, luck.random()]))
    copy(spark, tmp_path, kind, {"availableNow": True})
    assert content(DeltaTable(tmp_path / "target").to_pyarrow_table()) == expected(tmp_path / "source", kind)
    copy(spark, tmp_path, kind, {"availableNow": True})  # nothing is new
    assert content(DeltaTable(tmp_path / "target").to_pyarrow_table()) == expected(tmp_path / "source", kind)
