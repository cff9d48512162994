"""Sessions that exist before the program uses this library, as those of a cluster's notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from tests.docs.blocks import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(folder: Path, *arguments: str) -> None:
    program = Path(__file__).with_name("existing_program.py")
    done = subprocess.run(
        [sys.executable, str(program), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    assert done.stdout.strip().endswith("same rows"), done.stdout + done.stderr[-4000:]


def test_program_that_spark_submit_starts_has_the_format(java: Path, tmp_path: Path) -> None:
    del java
    home = Path(pyspark.__file__).parent
    settings = ("spark.ui.enabled=false", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}", "spark.log.level=ERROR")
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [text for setting in settings for text in ("--conf", setting)]
    program = Path(__file__).with_name("submit_program.py")
    paths = os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [*command, str(program), str(tmp_path / "t")],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env=dict(os.environ, SPARK_HOME=str(home), PYSPARK_PYTHON=sys.executable, PYTHONPATH=paths),
    )
    assert done.stdout.strip().endswith("same rows"), done.stdout + done.stderr[-4000:]


def test_functions_need_no_restart_and_names_of_the_format_do(java: Path, tmp_path: Path) -> None:
    del java
    run(tmp_path)
    # the jar that it wrote makes another session have the format, unless it is of another version
    run(tmp_path, str(tmp_path / "delta.jar"))
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(tmp_path / "delta.jar") as jar, zipfile.ZipFile(other, "w") as copy:
        for name in jar.namelist():
            if "source-" not in name:
                copy.writestr(name, jar.read(name))
    with pytest.raises(AssertionError, match="is of another version of this package"):
        run(tmp_path, str(other))
