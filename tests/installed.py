"""``python tests/installed.py``: README's example and a part of the tests with the installed package.

The tests are copied out of the clone, so that nothing of the package is imported from it; recorded tables are not:
some of their names are not valid on Windows. The environment needs pytest and hypothesis; tests that need further
packages are skipped, or are not in the list.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Logs, commits, row changes, features, Lance and the compiled functions.
FILES = (
    "tests/kernels/test_gather.py",
    "tests/kernels/test_json_lines.py",
    "tests/kernels/test_parquet_files.py",
    "tests/kernels/test_row_set.py",
    "tests/commit/test_transaction.py",
    "tests/lance/test_write_files.py",
    "tests/log/test_checkpoint_kinds.py",
    "tests/log/test_replay.py",
    "tests/operations/test_delete.py",
    "tests/plugins/test_column_mapping.py",
    "tests/plugins/test_deletion_vectors.py",
)


def run(folder: Path, *arguments: str) -> None:
    """Run Python in a folder; end with its exit code if it fails."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Run the example, the command line and the tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("tests", "examples"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
        for part in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / part, folder)
        place = "import delta_core, pathlib; print(pathlib.Path(delta_core.__file__).parent)"
        run(folder, "-c", place)
        run(folder, "examples/quickstart.py", str(folder / "demo"))
        run(folder, "-m", "delta_core", "head", str(folder / "demo" / "weather"))
        # the options of pyproject.toml need pytest-xdist
        options = ("-q", "-rs", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
        run(folder, "-m", "pytest", *options, *FILES)


if __name__ == "__main__":
    main()
