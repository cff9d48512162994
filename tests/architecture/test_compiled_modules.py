"""What users see if the compiled modules, or what compiles them, are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("call", ["delta_core.DeltaTable('t')", "delta_core.write_deltalake('t', None)"])
def test_sources_that_were_not_compiled_are_reported(tmp_path: Path, call: str) -> None:
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "delta_core", tmp_path / "delta_core", ignore=compiled)
    found = run(tmp_path, "-c", f"import delta_core; {call}")
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "delta_core.errors.MissingDependencyError: The compiled modules of delta_core are missing from"
    )
    assert str(tmp_path) in last
    assert "Start Python in another folder, or compile the clone" in last


@pytest.mark.skipif(os.name == "nt", reason="setuptools finds Microsoft's compiler by itself")
@pytest.mark.parametrize("command", [["build_ext"], ["bdist_wheel"], ["egg_info"]], ids=lambda c: c[0])
def test_missing_compiler_is_one_line_before_anything_is_built(tmp_path: Path, command: list[str]) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    found = run(tmp_path, "setup.py", *command, CXX="no-such-compiler -O2")
    assert found.returncode == 1
    (line,) = found.stderr.strip().splitlines()
    assert line.startswith("error: delta_core is compiled from C++, and the compiler 'no-such-compiler' is not found.")
    assert [p.name for p in tmp_path.iterdir()] == ["setup.py"]
