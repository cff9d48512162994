"""The pages about features and plugins, held against the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from delta_core.kernel.plugins import hookspecs, rules
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, IMPLIED_BY_WRITER

DOCS = Path(__file__).parents[2] / "docs"
PLUGINS = (DOCS / "plugins.md").read_text()
FEATURES = (DOCS / "features.md").read_text()
BUNDLED = sorted(
    {
        plugin.FEATURE.name: plugin.FEATURE
        for name in PluginRegistry().names()
        if (plugin := PluginRegistry().load(name)).__name__.startswith("delta_plugins.")
    }.values(),
    key=lambda f: f.name,
)


@pytest.mark.parametrize("hook", hookspecs.RESULTS)
def test_hook_is_documented_with_its_arguments_and_result(hook: str) -> None:
    arguments = ", ".join(inspect.signature(getattr(hookspecs, hook)).parameters)
    row = next((line for line in PLUGINS.splitlines() if line.startswith(f"| `{hook}({arguments})` |")), None)
    assert row is not None, f"docs/plugins.md has no row for {hook}({arguments})"
    result = "list" if hook == "feature_steps" else hookspecs.RESULTS[hook]
    assert row.split("|")[3].strip().startswith(result)


@pytest.mark.parametrize("rule", [r for r in rules.__all__ if inspect.isclass(getattr(rules, r))])
def test_rule_is_documented(rule: str) -> None:
    assert f"`{rule}" in PLUGINS


@pytest.mark.parametrize("path", ["acme_origin/__init__.py", "pyproject.toml", "tests/test_origin.py"])
def test_page_contains_the_files_of_the_template_of_a_feature(path: str) -> None:
    text = (DOCS.parent / "examples" / "plugins" / "acme-origin" / path).read_text()
    assert f"\n{text}```\n" in PLUGINS


def test_feature_record_is_documented_field_by_field() -> None:
    table = PLUGINS.partition("## Fields of `FEATURE`")[2].partition("\n## ")[0]
    assert {f for f in TableFeature.__struct_fields__ if f"`{f}`" not in table} == set()


@pytest.mark.parametrize("feature", BUNDLED, ids=lambda f: f.name)
def test_bundled_feature_has_its_row(feature: TableFeature) -> None:
    row = next(line for line in FEATURES.splitlines() if line.startswith(f"| `{feature.name}` |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert re.findall(r"`([^`]+)`", cells[1]) == list(feature.aliases)
    assert cells[2] == feature.kind
    versions = (("reader", IMPLIED_BY_READER), ("writer", IMPLIED_BY_WRITER))
    assert cells[3] == ", ".join(
        f"{side} {v}" for side, added in versions for v, n in added.items() if feature.name in n
    )
