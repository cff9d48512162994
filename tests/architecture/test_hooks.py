"""Every hook has a test and a documented argument list."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import pytest

from delta_core import api
from delta_core.kernel.plugins import hookspecs
from tests.architecture.source import ROOT, modules, tree

HOOKS = {
    name: tuple(inspect.signature(value).parameters)
    for name, value in vars(hookspecs).items()
    if hasattr(value, f"{hookspecs.PROJECT}_spec")
}


@cache
def _tests() -> set[str]:
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_hooks_are_found() -> None:
    assert {"read_rules", "column_map", "after_commit"} <= set(HOOKS)


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_hook_has_a_test_of_its_name(hook: str) -> None:
    assert any(name == f"test_hook_{hook}" or name.startswith(f"test_hook_{hook}_") for name in _tests())


def _types(hint: Any) -> Iterator[Any]:
    """Return a type and those that it is made of."""
    yield hint
    for part in get_args(hint):
        yield from _types(part)


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_hook_names_its_types_and_the_plugin_api_has_them(hook: str) -> None:
    # the specifications import them for type checkers only
    hints = get_type_hints(getattr(hookspecs, hook), localns={name: getattr(api, name) for name in api.__all__})
    assert set(hints) == {*HOOKS[hook], "return"}
    found = [t for hint in hints.values() for t in _types(hint)]
    assert Any not in found
    assert object not in found
    ours = {t for t in found if getattr(t, "__module__", "").startswith("delta_core.")}
    assert {t for t in ours if getattr(api, t.__name__, None) is not t} == set()


def test_unions_of_rules_are_part_of_the_plugin_api() -> None:
    for union in ("ReadRule", "WriteRule", "CommitRule", "FeatureStep"):
        members = get_args(getattr(api, union))
        assert members
        assert [m for m in members if getattr(api, m.__name__, None) is not m] == []


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_hook_is_documented_with_its_arguments(hook: str) -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    call = f"{hook}({', '.join(HOOKS[hook])})"
    assert f"`{call}`" in text, f"docs/plugins.md should name the hook as `{call}`"


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_hook_states_how_its_answers_combine(hook: str) -> None:
    words = re.search(r"Result: (\w+)", inspect.getdoc(getattr(hookspecs, hook)) or "")
    assert words is not None
    # after_commit returns nothing to combine, which is what a check does
    assert hookspecs.RESULTS[hook] == {"none": "check"}.get(words[1], words[1])


def test_no_result_is_stated_for_a_hook_that_is_gone() -> None:
    assert set(hookspecs.RESULTS) == set(HOOKS)


def test_hooks_of_bundled_plugins_name_their_types() -> None:
    checked, wrong = 0, []
    for module in modules():
        if not module.startswith("delta_plugins."):
            continue
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) == "hookimpl" for d in node.decorator_list):
                checked += 1
                hints = [a.annotation for a in node.args.args if a.arg != "self"] + [node.returns]
                if any(h is None or "Any" in re.findall(r"\w+", ast.unparse(h)) for h in hints):
                    wrong.append(f"{module}.{node.name}")
    assert checked > 50
    assert wrong == []
