"""The format delta of a session: in a process of its own, since a session is configured before it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_format_delta_serves_paths_tables_statements_and_streams_and_rejects_what_it_lacks(
    java: Path, tmp_path: Path
) -> None:
    del java
    program = Path(__file__).with_name("drop_in_program.py")
    found = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    assert found.stdout.strip().endswith("same rows"), found.stdout + found.stderr[-4000:]
