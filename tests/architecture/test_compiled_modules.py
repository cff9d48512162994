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


@pytest.mark.parametrize("command", [["build_ext"], ["bdist_wheel"], ["egg_info"]], ids=lambda c: c[0])
@pytest.mark.parametrize(("variable", "language"), [("CXX", "C++"), ("CC", "C")])
def test_missing_compiler_is_one_line_before_anything_is_built(
    tmp_path: Path, command: list[str], variable: str, language: str
) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    found = run(tmp_path, "setup.py", *command, **{variable: "no-such-compiler -O2"})
    assert found.returncode == 1
    (line,) = found.stderr.strip().splitlines()
    assert line.startswith(
        f"error: delta_core is compiled from {language}, and the compiler 'no-such-compiler' is not found. Install one"
    )
    assert line.endswith(f"or name it in the variable {variable}.")
    assert [p.name for p in tmp_path.iterdir()] == ["setup.py"]


def test_compiler_that_is_not_on_path_is_reported(tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    found = run(tmp_path, "setup.py", "build_ext", PATH=str(tmp_path), CXX="", CC="")
    assert found.returncode == 1
    (line,) = found.stderr.strip().splitlines()
    assert "is not found. Install one (Debian, Ubuntu: apt-get install g++;" in line


def test_metadata_is_listed_without_translating_kernels(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "ext", tmp_path / "ext")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    found = run(tmp_path, "setup.py", "-q", "egg_info")
    assert found.returncode == 0, found.stderr
    assert not list(tmp_path.rglob("*.cpp"))
