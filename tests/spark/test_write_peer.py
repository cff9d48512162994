"""Tables that delta_core and Delta's own Spark library write by turns, in one session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def run(program: str, *arguments: str) -> str:
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
    }
    env.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", f"tests.spark.{program}", *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    if "NO SESSION" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.stdout.strip().endswith("SAME"), done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def test_both_libraries_write_one_table_by_turns(java: Path, tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed: pip install delta-spark==4.4.0")
    run("write_peer_program", str(tmp_path))
