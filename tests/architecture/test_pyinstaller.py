"""A program that PyInstaller bundles has the plugins, which are imported by their names only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import pyarrow as pa
from delta_core import DeltaTable, open_table, write_deltalake
from delta_plugins.lance import write_lance

rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
write_deltalake(f"{sys.argv[1]}/t", rows, configuration=properties)
table = DeltaTable(f"{sys.argv[1]}/t")
table.delete("id = 2")
print(table.to_pyarrow_table().column("id").to_pylist(), table.to_pyarrow_table().column_names)
write_lance(f"{sys.argv[1]}/l", rows)
print(open_table(f"{sys.argv[1]}/l").count("id > 1"))
"""


@pytest.mark.slow
def test_bundled_program_has_plugins_and_formats(tmp_path: Path) -> None:
    pytest.importorskip("PyInstaller", reason="bundles a program: pip install pyinstaller")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR", "program.py"]
    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    environment = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
    program = tmp_path / "dist" / "program" / "program"
    done = subprocess.run([program, tmp_path], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["[1, 3] ['id', 'name']", "2"]
