"""``python -m tests.fuzz.lance --inputs 200000``: damage data files of each version, under AddressSanitizer.

Exits with 1 if an input ends the process, is answered wrongly, or if a sanitizer reports; the input is kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
_FLAGS = "-fsanitize=address -fno-omit-frame-pointer"


def sanitized(folder: Path) -> Path:
    """Compile the kernels of Lance with AddressSanitizer, and return the folder of their modules."""
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "build_ext",
        "-f",
        "-b",
        str(folder / "lib"),
        "-t",
        str(folder / "temp"),
    ]
    environment = {**os.environ, "CFLAGS": _FLAGS, "CXXFLAGS": _FLAGS, "LDFLAGS": "-fsanitize=address"}
    subprocess.run(command, cwd=_ROOT, env=environment, check=True)
    return folder / "lib" / "delta_plugins" / "lance"


def library() -> str:
    """Return the path of the sanitizer's library, which has to be loaded first."""
    found = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def main() -> int:
    """Run the inputs, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.lance", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000, help="inputs of each version")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another seed, other inputs")
    parser.add_argument("--plain", action="store_true", help="with the kernels as they are installed")
    parser.add_argument("--keep", type=Path, default=Path("failed.lance"), help="where an input that fails is kept")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="delta-fuzz-lance-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "tests.fuzz.lance.child", str(given.seed), str(given.inputs), name]
        environment = dict(os.environ)
        if not given.plain:
            command.append(str(sanitized(folder)))
            options = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048"
            environment |= {"LD_PRELOAD": library(), "ASAN_OPTIONS": options}
        done = subprocess.run(command, cwd=_ROOT, env=environment, check=False)
        if done.returncode:
            shutil.copy(folder / "input.lance", given.keep)
            print(f"failed; the input is {given.keep}", flush=True)
        return min(abs(done.returncode), 1)


if __name__ == "__main__":
    sys.exit(main())
