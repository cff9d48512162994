"""Files that this user may not read: that is no damage, and what is not needed is passed over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake

ROOT = Path(__file__).parents[2]
#: A user without rights, if the tests run as root, whom no file mode keeps out.
NOBODY = 65534
PROGRAM = """
import os, sys
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import AccessDeniedError, CommitError
import pyarrow as pa

sound, path, work = sys.argv[1:]
# imports what a user without rights may not
DeltaTable(sound).to_pyarrow_table()
write_deltalake(sound, pa.table({{"id": [0]}}), mode="append")
if os.geteuid() == 0:
    os.setuid({nobody})
try:
    table = DeltaTable(path)
    if work == "read":
        print(table.to_pyarrow_table().num_rows)
    else:
        write_deltalake(table, pa.table({{"id": [9]}}), mode="append")
except (AccessDeniedError, CommitError) as e:
    print(type(e).__name__, isinstance(e, PermissionError), e)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's own is not."""
    made = Path(tempfile.mkdtemp(prefix="delta-permissions-"))
    made.chmod(0o755)
    yield made
    for place, _, _ in os.walk(made):
        Path(place).chmod(0o755)
    shutil.rmtree(made)


def make(path: Path) -> Path:
    """Make a table of a checkpoint and a commit above it, which all may read and write."""
    write_deltalake(str(path), pa.table({"id": [1, 2]}))
    write_deltalake(str(path), pa.table({"id": [3]}), mode="append")
    DeltaTable(path).create_checkpoint()
    write_deltalake(str(path), pa.table({"id": [4]}), mode="append")
    for place, _, files in os.walk(path):
        Path(place).chmod(0o777)
        for name in files:
            (Path(place) / name).chmod(0o666)
    return path


def run(folder: Path, work: str) -> str:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        PROGRAM.format(nobody=NOBODY),
        str(folder / "sound"),
        str(folder / "t"),
        work,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("pattern", "mode", "work", "outcome"),
    [
        ("_delta_log/_last_checkpoint", 0, "read", "4"),
        ("_delta_log/*.crc", 0, "read", "4"),
        ("_delta_log/*2.json", 0, "read", "AccessDeniedError True"),
        ("_delta_log/*.checkpoint.parquet", 0, "read", "AccessDeniedError True"),
        ("_delta_log", 0, "read", "AccessDeniedError True"),
        ("*.parquet", 0, "read", "AccessDeniedError True"),
        (".", 0o555, "write", "AccessDeniedError True"),
        ("_delta_log", 0o555, "write", "CommitError False"),
    ],
)
def test_file_without_permission_is_not_called_damaged(
    folder: Path, pattern: str, mode: int, work: str, outcome: str
) -> None:
    make(folder / "sound")
    table = make(folder / "t")
    for file in table.glob(pattern) if pattern != "." else [table]:
        file.chmod(mode)
    before = {file.name for file in table.rglob("*")}
    said = run(folder, work)
    assert said.startswith(outcome)
    assert ("ermission denied" in said) == ("Error" in outcome)
    assert {file.name for file in table.rglob("*")} == before, "a failed write leaves no file behind"
