"""Docstrings list errors in NumPy sections, each with its cause."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import modules, tree

DOCUMENTED = (ast.FunctionDef, ast.ClassDef)
SECTION = re.compile(r"\n\nRaises\n------\n(?P<lines>.*?)(?=\n\n|\Z)", re.DOTALL)
ERRORS = re.compile(r"\w+(?:\.\w+)?(?:, \w+)*\n    \S")


def _docstrings(module: str) -> list[tuple[str, str]]:
    """Return the docstrings of public functions and classes, by their place."""
    nodes = [n for n in ast.walk(tree(module)) if isinstance(n, DOCUMENTED) and not n.name.startswith("_")]
    return [(f"{module}:{n.lineno} {n.name}", ast.get_docstring(n) or "") for n in nodes]


@pytest.mark.parametrize("package", ["delta_core", "delta_plugins"])
def test_errors_are_listed_in_a_section(package: str) -> None:
    inline = re.compile(r"(?:^|\. |\n)Raises,? [A-Za-z]")
    texts = [found for m in modules() if m.startswith(package) for found in _docstrings(m)]
    assert len(texts) > 100
    assert [where for where, text in texts if inline.search(text) and "function(" not in text] == []


@pytest.mark.parametrize("package", ["delta_core", "delta_plugins"])
def test_each_listed_error_has_its_cause(package: str) -> None:
    sections = [
        (where, found["lines"])
        for m in modules()
        if m.startswith(package)
        for where, text in _docstrings(m)
        if (found := SECTION.search(text))
    ]
    assert len(sections) > 10
    for where, lines in sections:
        for entry in re.split(r"\n(?=\S)", lines):
            assert ERRORS.match(entry), f"{where}: {entry!r} has no cause"
