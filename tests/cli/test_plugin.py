"""``delta-core plugin``: packages that it makes work at once, and packages are checked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_core.cli.plugin_templates import KINDS, feature_name, make_plugin, template_folder
from delta_core.errors import InvalidArgumentError

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"


def put_on_path(folder: Path, place: Path) -> None:
    """Put the packages of a source folder into a place as an installation does, with its entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    name, version = project["project"]["name"], project["project"]["version"]
    for package in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(folder / package, place / package)
    about = place / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project["project"]["entry-points"].items()
    lines = [line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def python(*arguments: object, place: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with a place on its path."""
    paths = [str(place), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=place)


@pytest.mark.parametrize("kind", KINDS)
def test_new_plugin_passes_its_tests(kind: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    made = run("plugin", "new", "my-row-stamps", "--kind", kind, "-o", tmp_path / "source")
    assert made.code == 0, made.err
    files = {str(Path(line).relative_to(tmp_path / "source")) for line in made.lines}
    assert {"pyproject.toml", "README.md", ".github/workflows/tests.yml", "my_row_stamps/py.typed"} <= files
    texts = "".join(Path(line).read_text() for line in made.lines)
    assert "my-row-stamps" in texts
    assert "acme" not in texts
    (tmp_path / "place").mkdir()
    put_on_path(tmp_path / "source", tmp_path / "place")
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-k", "not spark")
    done = python("-m", "pytest", *options, tmp_path / "source" / "tests", place=tmp_path / "place")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_new_plugin_is_installed_by_pip(tmp_path: Path) -> None:
    make_plugin("my-stamps", "feature", tmp_path / "source")
    options = ("-q", "--no-build-isolation", "--no-deps", "--no-index", "--target", tmp_path / "place")
    (tmp_path / "place").mkdir()
    done = python("-m", "pip", "install", *options, tmp_path / "source", place=tmp_path / "place")
    assert done.returncode == 0, done.stderr
    listed = python("-m", "delta_core", "features", "--json", place=tmp_path / "place")
    found = {f["name"]: f["plugin"] for f in json.loads(listed.stdout)}
    assert found["my.stamps"] == "my-stamps 0.1.0"


@pytest.mark.parametrize(
    ("name", "said"), [("My-Stamps", "lower-case letters"), ("my_stamps", "joined by hyphens"), ("json", "module json")]
)
def test_name_that_is_none_is_misuse(name: str, said: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    done = run("plugin", "new", name, "--kind", "feature", "-o", tmp_path / "x")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "x").exists()


def test_next_command_installs_the_folder_and_not_a_package_of_the_index(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("plugin", "new", "my-row-stamps", "--kind", "feature")
    assert "pip install ./my-row-stamps pytest && python -m pytest ./my-row-stamps/tests" in made.err
    made = run("plugin", "new", "my-row-stamps", "--kind", "feature", "-o", tmp_path / "a b")
    assert f"pip install '{tmp_path}/a b' pytest" in made.err


def test_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(InvalidArgumentError, match="exists and is not empty"):
        make_plugin("my-stamps", "feature", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_names_of_features() -> None:
    assert [feature_name(n) for n in ("stamps", "my-stamps", "my-row-stamps")] == [
        "stamps",
        "my.stamps",
        "my.rowStamps",
    ]


def test_wheel_contains_the_templates(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    folder = tmp_path / "delta_core" / "cli" / "templates"
    assert {p.name for p in folder.iterdir()} == set(KINDS.values())
    for kind, name in KINDS.items():
        source = template_folder(kind)
        assert (folder / name / "pyproject.toml").read_text() == (source / "pyproject.toml").read_text()
        assert (folder / name / ".github" / "workflows" / "tests.yml").exists()


# --- check ---------------------------------------------------------------------------------


def test_check_reports_parts_costs_and_contract(tmp_path: Path) -> None:
    put_on_path(EXAMPLES / "acme-origin", tmp_path)
    done = python(
        "-m", "delta_core", "plugin", "check", EXAMPLES / "acme-origin", "--no-spark", "--json", place=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    (feature,) = found["features"]
    assert (found["package"], feature["name"], feature["kind"]) == ("acme-origin 0.1.0", "acme.origin", "writer")
    assert (feature["hooks"], feature["fields"]) == (["commit_rules", "read_rules"], ["add.origin"])
    assert found["contract"]["passed"] > 20
    assert found["contract"]["failures"] == []
    costs = {c["hook"]: c for c in feature["costs"]}
    assert set(costs) == {"commit_rules", "read_rules"}
    assert found["extrapolatedTo"] == 1_000_000
    assert costs["commit_rules"]["extrapolatedMilliseconds"] >= costs["commit_rules"]["milliseconds"][-1]


def test_check_of_a_distribution_runs_the_contract_alone(tmp_path: Path) -> None:
    put_on_path(EXAMPLES / "acme-origin", tmp_path)
    done = python("-m", "delta_core", "plugin", "check", "acme_origin", "--no-spark", place=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"commit_rules +[\d.]+ ms +[\d.]+ ms +[\d.]+ ms +[\d.]+ ms", done.stdout)
    assert "the contract alone" in done.stderr


def test_plugin_with_a_mistake_fails_the_check(tmp_path: Path) -> None:
    make_plugin("my-stamps", "feature", tmp_path / "source")
    module = tmp_path / "source" / "my_stamps" / "__init__.py"
    module.write_text(module.read_text().replace('"add", "origin", origin)', '"add", "origin", origin.to_pylist())'))
    (tmp_path / "place").mkdir()
    put_on_path(tmp_path / "source", tmp_path / "place")
    command = ("-m", "delta_core", "plugin", "check", tmp_path / "source", "--no-spark", "--json")
    done = python(*command, place=tmp_path / "place")
    assert done.returncode == 1, done.stdout + done.stderr
    failures = json.loads(done.stdout)["contract"]["failures"]
    assert any("my-stamps 0.1.0" in f and "ActionColumn.values" in f for f in failures)


def test_plugin_that_can_not_be_imported_fails_the_check(tmp_path: Path) -> None:
    make_plugin("my-stamps", "engine", tmp_path / "source")
    (tmp_path / "source" / "my_stamps" / "__init__.py").write_text("import no_such_module\n")
    (tmp_path / "place").mkdir()
    put_on_path(tmp_path / "source", tmp_path / "place")
    done = python("-m", "delta_core", "plugin", "check", "my-stamps", "--json", place=tmp_path / "place")
    assert done.returncode == 1, done.stdout + done.stderr
    (error,) = json.loads(done.stdout)["errors"]
    assert "no_such_module" in error


def test_package_that_is_not_installed_is_misuse(run: Callable[..., Any]) -> None:
    done = run("plugin", "check", "no-such-package")
    assert done.code == 2
    assert "No installed distribution 'no-such-package'" in done.err
