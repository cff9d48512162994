"""Every hook has a test and a documented argument list."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from delta_core.plugins import hookspecs
from tests.architecture.source import ROOT

HOOKS = {
    name: tuple(inspect.signature(value).parameters)
    for name, value in vars(hookspecs).items()
    if hasattr(value, f"{hookspecs.PROJECT}_spec")
}


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
