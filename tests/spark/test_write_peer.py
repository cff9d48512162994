"""Writes in a process of their own: by turns with Delta's own Spark library in one session, and through Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def run(program: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
           "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    env.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", f"tests.spark.{program}", *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    if "NO SE" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.stdout.strip().endswith("SAME"), done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


@pytest.mark.peer
def test_both_libraries_write_one_table_by_turns(java: Path, tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed: pip install delta-spark==4.4.0")
    run("write_peer_program", str(tmp_path))


def test_connect_writes_what_classic_writes(java: Path, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs the packages of pyspark[connect]")
    run("write_connect_program", str(tmp_path))
