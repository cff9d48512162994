"""The source tree as a graph of imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("delta_core", "delta_plugins")


@dataclass(frozen=True)
class Import:
    """One imported module.

    Parameters
    ----------
    function : str or None
        The function that holds the import, None at module level.
    """

    importer: str
    imported: str
    line: int
    function: str | None

    def __str__(self) -> str:
        where = f" inside {self.function}()" if self.function else ""
        return f"{self.importer}:{self.line} imports {self.imported}{where}"


@cache
def modules() -> dict[str, Path]:
    """Return every module of ours by name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Return every import of every module of ours, other packages' too."""
    return tuple(i for name in modules() for i in imports_of(name))


@cache
def tree(module: str) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def imports_of(module: str) -> Iterator[Import]:
    """Return a module's imports."""
    yield from _walk(tree(module), module, None)


def _walk(node: ast.AST, module: str, function: str | None) -> Iterator[Import]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = node.name
    for name in names_of(node, module):
        yield Import(module, name, node.lineno, function)  # type: ignore[attr-defined]
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, module, function)


def names_of(node: ast.AST, module: str) -> Iterator[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [base])])
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in modules() or _is_extension(whole) else base


def _is_extension(name: str) -> bool:
    return is_ours(name) and (ROOT / name.replace(".", "/")).with_suffix(".pyi").exists()


def is_ours(name: str) -> bool:
    """Whether a module belongs to this project."""
    return name.partition(".")[0] in PACKAGES


def texts(module: str) -> Iterator[tuple[int, str]]:
    """Return the string constants of a module with their lines, docstrings left out."""
    held = {
        id(node.body[0].value)
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in held:
            yield node.lineno, node.value
