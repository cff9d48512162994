"""Extras: tests find what they need in one or list it here with a reason, and texts name the ones that there are."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: Texts that install something of ours: the distribution's name is on the public index, `delta_core` is only imported.
REQUIREMENT = re.compile(
    r"""(delta[-_]core(?:-lake)?)\[([^\]\n]*)\]|install(?: -\S+)* ["']?(delta[-_]core(?:-lake)?)\b"""
)
#: Which listed package provides a module of another name.
BROUGHT_BY = {"arro3": "deltalake", "grpc": "pyspark"}
NOT_BROUGHT = {
    "ray": "the extra test-ray has it: it takes 80 MB",
    "PyInstaller": "it takes two minutes to bundle a program",
    "lance": "the extra test-lance has pylance: it warns at each fork of a process, and tests fork",
    "delta": "delta-spark is the full tier's: it fetches jars when it first starts",
    "delta_row_checksum": "README's test command installs the examples",
    "delta_packed_uuids": "README's test command installs the examples",
    "delta_row_ttl": "README's test command installs the examples",
}


def packages(extra: str) -> Iterator[str]:
    """Yield the names of an extra's packages, and of the extras that it names."""
    for line in EXTRAS[extra]:
        name, _, inner = re.fullmatch(r"([\w-]+)(\[([\w,]+)\])?.*", line).groups()
        if name == PROJECT["name"]:
            for other in inner.split(","):
                yield from packages(other)
        else:
            yield name


def needed() -> set[str]:
    """Return the modules without which some test is skipped."""
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
                argument = node.args[0]
                if isinstance(argument, ast.Constant):
                    found.add(str(argument.value).partition(".")[0])
    return found


def test_modules_that_tests_are_skipped_without_are_provided() -> None:
    found = needed() - sys.stdlib_module_names - {"delta_core", "delta_plugins"}
    assert "deltalake" in found
    assert {m for m in found if BROUGHT_BY.get(m, m) not in set(packages("test"))} == set(NOT_BROUGHT)


def test_texts_install_the_distribution_by_its_name_and_with_extras_that_it_has() -> None:
    wrong, found = [], 0
    folders = ("delta_core", "delta_plugins", "docs", "examples", "tests", "benchmarks")
    paths = [*ROOT.glob("*.*"), *(p for folder in folders for p in (ROOT / folder).rglob("*.*"))]
    for path in paths:
        if path.suffix not in {".py", ".md", ".toml"} or path == Path(__file__):
            continue
        for name, extras, plain in REQUIREMENT.findall(path.read_text(encoding="utf-8")):
            found += 1
            unknown = [e for e in extras.split(",") if e and not e.startswith("{") and e not in EXTRAS]
            if (name or plain) != PROJECT["name"] or unknown:
                wrong.append(f"{path.relative_to(ROOT)}: {name or plain}[{extras}]")
    assert wrong == []
    assert found > 5


@pytest.mark.parametrize("example", sorted((ROOT / "examples" / "plugins").iterdir()), ids=lambda p: p.name)
def test_example_plugins_depend_on_the_distribution(example: Path) -> None:
    project = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # pip below 23.3 finds no distribution with extras in a folder that another package's folder depends on
    assert PROJECT["name"] == "delta-core-lake" in project["dependencies"]
    assert {d for d in project["dependencies"] if "[" in d} == set()
