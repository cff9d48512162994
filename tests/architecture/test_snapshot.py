"""A snapshot is made whole: what one hands to the next are arguments, and nobody writes to it later."""

from __future__ import annotations

import ast
import inspect

from delta_core.kernel.snapshot import Snapshot
from tests.architecture.source import modules, tree


def _attributes() -> set[str]:
    """Return the names that a snapshot's constructor sets; its properties have no setters."""
    made = ast.parse(inspect.getsource(Snapshot.__init__).lstrip())
    return {n.attr for n in ast.walk(made) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def _written(module: str) -> list[ast.Attribute]:
    """Return the attributes that a module sets or deletes of objects other than ``self``."""
    return [
        node
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]


def test_nobody_sets_a_value_of_a_snapshot() -> None:
    names = _attributes()
    assert {"state", "write_plan", "checksum", "_files"} <= names
    assert [f"{m}:{n.lineno} sets {ast.unparse(n)}" for m in modules() for n in _written(m) if n.attr in names] == []


def test_no_module_writes_to_the_dictionary_of_another_object() -> None:
    wrong = []
    for module in modules():
        for node in ast.walk(tree(module)):
            stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del))
            if stored and ast.unparse(node.value).endswith(".__dict__"):
                wrong.append(f"{module}:{node.lineno} writes to {ast.unparse(node)}")
    assert wrong == []
