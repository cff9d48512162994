"""The .java files of the package: each is a class of its file's name that the JDK's compiler takes, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from delta_core.engines.spark.java import sources

#: Folders by the Python package, and the Java package of the classes in them.
FOLDERS = {"delta_core.engines.spark.java": sources.PACKAGE, "delta_core.engines.spark.drop_in": "delta"}
ROOT = Path(sources.__file__).parents[4]
JARS = Path(pyspark.__file__).parent / "jars"


#: The package and the imports of all classes of a folder, if they share them.
SHARED = "shared_imports.java"


def java_files(package: str) -> list[Path]:
    return sorted(f for f in ROOT.joinpath(*package.split(".")).glob("*.java") if f.name != SHARED)


def whole_files(package: str, folder: Path) -> list[str]:
    """Write the classes of a package with their imports, and return the paths."""
    shared = ROOT.joinpath(*package.split("."), SHARED)
    imports = shared.read_text(encoding="utf-8") if shared.exists() else ""
    made = [folder / file.name for file in java_files(package)]
    for path, file in zip(made, java_files(package), strict=True):
        path.write_text(imports + file.read_text(encoding="utf-8"), encoding="utf-8")
    return [str(path) for path in made]


@pytest.mark.parametrize("package", FOLDERS)
def test_every_class_is_in_a_file_of_its_name(package: str) -> None:
    files = java_files(package)
    assert len(files) > 5
    for file in files:
        assert f"class {file.stem} " in sources.source(package)


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK with javac is installed")
@pytest.mark.parametrize("package", FOLDERS)
def test_java_files_compile_one_by_one(package: str, tmp_path: Path) -> None:
    command = [
        "javac",
        "-nowarn",
        "-proc:none",
        "-cp",
        f"{JARS}/*",
        "-d",
        str(tmp_path),
        *whole_files(package, tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {p.stem.partition("$")[0] for p in (tmp_path / FOLDERS[package]).glob("*.class")}
    assert made == {p.stem for p in java_files(package)}
