"""The .java files of delta_core/spark/java: each is a class of its file's name that the JDK's compiler takes, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from delta_core.spark.java import sources

FOLDER = Path(sources.__file__).parent
JARS = Path(pyspark.__file__).parent / "jars"


def test_every_class_is_in_a_file_of_its_name() -> None:
    files = sorted(FOLDER.glob("*.java"))
    assert len(files) > 10
    for file in files:
        assert f"class {file.stem} " in sources.source()


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK with javac is installed")
def test_java_files_compile_one_by_one(tmp_path: Path) -> None:
    command = [
        "javac",
        "-nowarn",
        "-proc:none",
        "-cp",
        f"{JARS}/*",
        "-d",
        str(tmp_path),
        *map(str, FOLDER.glob("*.java")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {p.stem.partition("$")[0] for p in (tmp_path / sources.PACKAGE).glob("*.class")}
    assert made == {p.stem for p in FOLDER.glob("*.java")}
