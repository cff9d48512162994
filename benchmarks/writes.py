"""Writes, the same for every side: many rows at once, a checkpoint of many files, appends by many processes at once.

A side is a package with `DeltaTable` and `write_deltalake`.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pyarrow as pa

from benchmarks.appends import copied

__all__ = ["appending_at_once", "checkpointing", "writing"]

ROWS = 10_000_000
PROCESSES, COMMITS_EACH = 8, 50
#: What one process does: it specifies that it is ready, waits for a line, and appends.
APPENDER = """
import sys
import pyarrow as pa
from {package} import DeltaTable, write_deltalake
rows = pa.table({{"id": pa.array(range(10), pa.int64()), "v": pa.array([i / 2 for i in range(10)])}})
DeltaTable(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range({commits}):
    write_deltalake(sys.argv[1], rows, mode="append")
"""


def writing(package: str, table: Path, small: Path) -> Callable[[], float]:
    """Return work that writes ten million rows to a new table; it answers with the rows that the log counts."""
    del small
    side = import_module(package)
    # a run at a small scale has a small table beside it
    count = max(1_000, int(ROWS * float(table.name.rpartition("-")[2])))
    numbers = np.random.default_rng(1)
    rows = pa.table(
        {
            "id": pa.array(numbers.permutation(count)),
            "amount": pa.array(numbers.random(count)),
            "name": pa.DictionaryArray.from_arrays(
                pa.array(numbers.integers(0, 1_000, count, np.int32)), pa.array([f"name {i}" for i in range(1_000)])
            ).cast(pa.string()),
        }
    )
    folder = Path(mkdtemp(dir=table.parent, prefix="written-"))
    side.write_deltalake(str(folder / "warm"), rows.slice(0, 100))

    def work() -> float:
        side.write_deltalake(str(folder / "table"), rows)
        adds = pa.table(side.DeltaTable(str(folder / "table")).get_add_actions())
        return float(sum(adds.column("num_records").to_pylist()))

    atexit.register(shutil.rmtree, folder, True)
    return work


def checkpointing(package: str, table: Path, small: Path) -> Callable[[], float]:
    """Return work that opens a table and writes its checkpoint; it answers with the version."""
    open_table = import_module(package).DeltaTable
    with copied(small) as folder:
        open_table(str(folder)).create_checkpoint()
    stack = ExitStack()
    atexit.register(stack.close)
    copy = str(stack.enter_context(copied(table)))

    def work() -> float:
        opened = open_table(copy)
        opened.create_checkpoint()
        return float(opened.version())

    return work


def appending_at_once(package: str, table: Path, small: Path) -> Callable[[], float]:
    """Return work that appends by eight processes at once; it answers with the version reached.

    The processes wait, their imports done, until the clock starts.
    """
    del small
    side = import_module(package)
    folder = TemporaryDirectory(dir=table.parent, prefix="at-once-")
    uri = f"{folder.name}/table"
    side.write_deltalake(uri, pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.float64())}))
    code = APPENDER.format(package=package, commits=COMMITS_EACH)
    processes = [
        subprocess.Popen([sys.executable, "-c", code, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    for p in processes:
        assert p.stdout is not None
        p.stdout.readline()

    def work() -> float:
        with folder:
            for p in processes:
                p.communicate("go\n")
            failed = [p.returncode for p in processes if p.returncode]
            return float(side.DeltaTable(uri).version()) if not failed else -1.0

    return work
