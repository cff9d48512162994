"""Output that can't be written is an error of the command line: exit code 2, and one line on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake

COMMANDS = [
    "info", "info --json", "schema", "history", "files", "head", "count", "log", "cat --format csv",
    "cat --format arrow", "cat --format parquet", "cat --format json", "vacuum --dry-run",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("output") / "t"
    write_deltalake(path, pa.table({"id": [1]}))
    return str(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_full_disk_behind_stdout_is_reported_with_2(table: str, command: str) -> None:
    name, *options = command.split()
    with open("/dev/full", "wb") as full:
        arguments = [sys.executable, "-m", "delta_core", name, table, *options]
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("can't be written: [Errno 28]")) == (2, 1)
    assert "Traceback" not in done.stderr


def test_closed_stdout_is_reported_with_2(table: str) -> None:
    command = f"{sys.executable} -m delta_core.cli info '{table}' >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False, env={**os.environ})
    assert (done.returncode, done.stderr) == (2, "delta-core: The output can't be written: stdout is closed.\n")
