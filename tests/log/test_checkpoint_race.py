"""Writers, readers and whoever writes checkpoints at once on one table: processes on a disk, threads in memory.

``DELTA_CORE_RACE_SECONDS`` makes each race so long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from delta_core.engines.arrow import pinned
from tests.log import race_program

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("DELTA_CORE_RACE_SECONDS", "1"))


def test_processes_on_one_table_find_right_rows_only(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    race_program.create(uri)
    roles = ["write", "write", "checkpoint", "peer", "replace", "read", "read"]
    commands = [
        [sys.executable, "-m", "tests.log.race_program", role, uri, str(number), str(SECONDS)]
        for number, role in enumerate(roles, 1)
    ]
    runs = [subprocess.Popen(c, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in commands]
    found = [(role, *process.communicate(timeout=SECONDS + 120)) for role, process in zip(roles, runs, strict=True)]
    assert not [(role, out, error[-2000:]) for (role, out, error), p in zip(found, runs, strict=True) if p.returncode]


@pytest.mark.parametrize("is_whole", [True, False], ids=["checkpoints kept", "checkpoints read in ranges"])
def test_threads_on_one_table_in_memory_find_right_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    monkeypatch.setattr(pinned, "WHOLE_BYTES", 1 << 20 if is_whole else -1)
    uri = f"memory://{tmp_path}"
    race_program.create(uri)
    roles = ["write", "write", "checkpoint", "checkpoint", "replace", "read", "read", "read"]
    try:
        with ThreadPoolExecutor(len(roles)) as pool:
            runs = [pool.submit(race_program.run, role, uri, i, SECONDS) for i, role in enumerate(roles, 1)]
            for run in runs:
                run.result()
    finally:
        fsspec.filesystem("memory").rm(str(tmp_path), recursive=True)
