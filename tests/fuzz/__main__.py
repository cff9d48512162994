"""The long form: ``python -m tests.fuzz --minutes 60``. Exits with 1 if a case failed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.run import Failure, run
from tests.fuzz.tables import TABLES


def main() -> int:
    """Run cases and print those that fail; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damage tables and use them.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", default=str(int(time.time())), help="another seed, other cases; by default the time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--tables", type=Path, help="a folder of further tables")
    parser.add_argument("--keep", type=Path, help="a folder for the tables of cases that fail")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    failures, done = 0, 0
    with tempfile.TemporaryDirectory(prefix="delta-fuzz-tables-") as folder:
        for name, make in TABLES.items():
            make(Path(folder) / name)
        for found in run(Path(given.tables or folder), given.seed, given.minutes * 60, given.first, given.keep):
            if isinstance(found, Failure):
                failures += 1
                print(found, flush=True)
            else:
                done = found
    print(f"{done} cases, {failures} failed", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
