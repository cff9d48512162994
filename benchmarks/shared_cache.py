"""The time to open and list a table from the shared snapshot cache, over the time without it, in new processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["cached_over_plain"]

_LIST = """
import sys, time
from delta_core import DeltaTable, SnapshotCache
small, table, folder = sys.argv[1:]
cache = SnapshotCache(folder, least_files=0) if folder else False
DeltaTable(small, cache=cache).scan().files()
start = time.perf_counter()
files = DeltaTable(table, cache=cache).scan().files().num_rows
print(time.perf_counter() - start, files)
"""
ROUNDS = 9
#: An entry is trusted without a full check once it is this many seconds old and was checked.
_SECONDS = 2.5


def cached_over_plain(table: Path, small: Path, rounds: int = ROUNDS) -> float:
    """Open and list in new processes, with a warm cache and without, in turn; return the ratio of the medians."""
    # earlier commits, which `compare` measures, have none
    from delta_core import SnapshotCache

    with TemporaryDirectory() as folder:
        _seconds(table, small, folder)
        time.sleep(_SECONDS)
        _seconds(table, small, folder)
        assert SnapshotCache(folder).count() == 2
        pairs = [(_seconds(table, small, folder), _seconds(table, small, "")) for _ in range(rounds)]
    cached, plain = (statistics.median(side) for side in zip(*pairs, strict=True))
    return cached / plain


def _seconds(table: Path, small: Path, folder: str) -> float:
    command = [sys.executable, "-c", _LIST, str(small), str(table), folder]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found.stdout.split()[0])
