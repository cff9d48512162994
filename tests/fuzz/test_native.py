"""A few seconds of ``python -m tests.fuzz.native``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.native.build import COMPILER, build, write_seeds


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is installed")
def test_damaged_parquet_reads_no_byte_outside_its_buffers(tmp_path: Path) -> None:
    seeds = write_seeds(tmp_path)
    done = subprocess.run([build(tmp_path), "1", "4", *seeds], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) cases\n", done.stdout)
    assert found is not None
    assert int(found[1]) > len(seeds)
