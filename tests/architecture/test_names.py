"""One meaning per name."""

from __future__ import annotations

import ast
from collections import defaultdict

import delta_core
from delta_core import api
from tests.architecture.source import modules, tree

#: Names of ``deltalake`` that mean something else in the plugin API, and our own names of what they mean.
ALIASES = {"Metadata": "TableMetadata", "Transaction": "AppTransaction"}


def _definitions() -> dict[str, list[str]]:
    """Return the modules that define each public class or function, hooks left out: plugins define them again."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        if module.startswith("delta_core.") and module != "delta_core.kernel.plugins.hookspecs":
            for node in tree(module).body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                    found[node.name].append(module)
    return found


def test_a_class_name_is_defined_once() -> None:
    classes = {name: where for name, where in _definitions().items() if name[:1].isupper()}
    assert len(classes) > 100
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}


def test_a_function_of_the_public_api_is_defined_once() -> None:
    public = {"write_files", *delta_core.__all__, *api.__all__}
    # a command is a function of the command's name
    found = {n: [m for m in where if not m.startswith("delta_core.cli.")] for n, where in _definitions().items()}
    assert {name: where for name, where in found.items() if name in public and len(where) > 1} == {}


def test_a_name_means_the_same_in_the_package_and_in_the_plugin_api() -> None:
    both = {*delta_core.__all__} & {*api.__all__}
    assert both >= {*ALIASES, "Schema"}
    for name in both - {*ALIASES}:
        assert getattr(delta_core, name) is getattr(api, name), name
    for name, own in ALIASES.items():
        assert getattr(delta_core, name) is getattr(delta_core, own)
        assert getattr(delta_core, own) is not getattr(api, name)
