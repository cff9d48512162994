"""Docstrings list errors in NumPy sections, each with its cause."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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


#: Modules that are called by users, plugins and each other; the others are called by one module each.
INTERFACES = (
    "table", "snapshot", "writer", "operations", "write", "commit", "log", "plugins", "protocol", "kernels", "scan", "interop",
    "handles", "runtime", "spark.save", "spark.sql", "spark.types", "expressions.literals", "expressions.typing_rules",
)  # fmt: skip


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Return what a function's body contains, without the functions inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*DOCUMENTED, ast.Lambda)):
            yield child
            yield from _own(child)


def _public(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Return the public functions of a module, and the methods of its public classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DOCUMENTED) and not child.name.startswith("_"):
            if isinstance(child, ast.FunctionDef):
                yield child
            else:
                yield from _public(child)


def _raised(function: ast.FunctionDef) -> set[str]:
    calls = [n.exc.func for n in _own(function) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return {f.id for f in calls if isinstance(f, ast.Name) and f.id.endswith("Error") and f.id != "AssertionError"}


def test_public_functions_list_the_errors_that_they_raise() -> None:
    checked = 0
    for module in modules():
        if not module.startswith(tuple(f"delta_core.{part}" for part in INTERFACES)):
            continue
        for function in _public(tree(module)):
            section = SECTION.search(ast.get_docstring(function) or "")
            listed = set(re.findall(r"\w+Error", section["lines"] if section else ""))
            checked += len(_raised(function))
            assert _raised(function) <= listed, f"{module}:{function.lineno} {function.name}"
    assert checked > 50
