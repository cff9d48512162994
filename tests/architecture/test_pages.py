"""The pages lead somewhere, and CI runs what README.md specifies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("examples/**/*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [p.name for p in ROOT.glob("docs/*.md") if p.name != "index.md" and f"({p.name})" not in index] == []


def test_readme_has_the_one_test_command_that_ci_takes() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if re.match(r"^python3 -m venv .* && pytest .*$", line)]
    assert len(commands) == 1
    assert "grep -E '^python3 -m venv .* && pytest .*$' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
