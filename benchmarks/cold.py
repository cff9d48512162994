"""Whole processes: the processor time of a first read, over that of ``import pyarrow`` alone."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["head_over_import", "read_over_import"]

_IMPORT = "import pyarrow"
_READ = "import sys; from delta_core import DeltaTable; DeltaTable(sys.argv[1]).scan(predicate='id < 50').to_table()"
_HEAD = "import sys; sys.argv.insert(1, 'head'); from delta_core.cli import program; program()"
ROUNDS = 11


def read_over_import(rounds: int = ROUNDS) -> float:
    """Import, open and read the matching rows of a table of 100 rows."""
    return _over_import(_READ, rounds)


def head_over_import(rounds: int = ROUNDS) -> float:
    """Print rows of a table of 100 rows by the command line, into a pipe."""
    return _over_import(_HEAD, rounds)


def _over_import(code: str, rounds: int) -> float:
    import pyarrow as pa

    from delta_core import write_deltalake

    with TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"id": range(100), "name": [f"n{i}" for i in range(100)]}))
        return _ratio(lambda source: _seconds(source, Path(folder)), code, rounds)


def _ratio(seconds: Callable[[str], float], code: str, rounds: int) -> float:
    # the first of each compiles modules
    pairs = [(seconds(code), seconds(_IMPORT)) for _ in range(rounds + 1)][1:]
    read, alone = (statistics.median(side) for side in zip(*pairs, strict=True))
    return read / alone


def _seconds(code: str, table: Path) -> float:
    """Return the processor time of a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "COLUMNS")}
    # a thread that NumPy's OpenBLAS starts spins for tens of ms, as far as the process lives that long: nobody's work
    environment["OPENBLAS_NUM_THREADS"] = "1"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, str(table)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
