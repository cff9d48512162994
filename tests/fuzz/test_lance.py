"""A few seconds of ``python -m tests.fuzz.lance --plain``, and the memory that small damaged files take."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: Of each version.
INPUTS = 150
#: What reading a damaged file of up to 100 kB may take, in MB; files of 1 kB are among them.
MOST_MEMORY = 64


def test_damaged_files_are_read_or_rejected_in_bounded_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.lance.child", "1", str(INPUTS), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2], timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"([\d.]+): (\d+) inputs of (\d+) files, (\d+) rejected, (\d+) MB\n", done.stdout)
    assert [version for version, *_ in found] == ["0.1", "2.0", "2.1", "2.2"]
    for version, inputs, files, rejected, grown in found:
        assert int(inputs) == (INPUTS if int(files) else 0)
        assert int(files) or version in ("0.1", "2.0")
        assert 0 < int(rejected) < INPUTS or not int(files)
        assert int(grown) <= MOST_MEMORY
