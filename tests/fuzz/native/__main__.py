"""``python -m tests.fuzz.native --minutes 10``: damage chunks and whole files. Exits with 1 if a sanitizer reports."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.native.build import build, write_seeds


def main() -> int:
    """Build the program, run it, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.native", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another seed, other cases")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-fuzz-native-") as folder:
        program, seeds = build(Path(folder)), write_seeds(Path(folder))
        print(f"seed {given.seed}, {len(seeds)} files", flush=True)
        command = [program, str(given.seed), str(given.minutes * 60), *seeds]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
