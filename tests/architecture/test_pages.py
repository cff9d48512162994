"""The pages lead somewhere, and CI runs what README.md specifies."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

FOLDERS = ("*.md", "docs/*.md", "*/README.md", "examples/**/*.md")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def ignored_by_git(paths: list[Path]) -> set[Path]:
    """Return the files that git ignores, such as those of caches; none outside a clone."""
    lines = "\n".join(str(p.relative_to(ROOT)) for p in paths)
    found = subprocess.run(["git", "check-ignore", "--stdin"], cwd=ROOT, input=lines, capture_output=True, text=True)
    return {ROOT / line for line in found.stdout.splitlines()}


def pages() -> list[Path]:
    found = sorted({p for folder in FOLDERS for p in ROOT.glob(folder)})
    ignored = ignored_by_git(found)
    return [p for p in found if p not in ignored]


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_page_of_a_folder_that_git_ignores_is_not_checked() -> None:
    page, cache = ROOT / "README.md", ROOT / ".pytest_cache" / "README.md"
    if (ROOT / ".git").exists():
        assert ignored_by_git([page, cache]) == {cache}


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [p.name for p in ROOT.glob("docs/*.md") if p.name != "index.md" and f"({p.name})" not in index] == []


def test_readme_has_the_one_test_command_that_ci_takes() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if re.match(r"^python3 -m venv .* && pytest .*$", line)]
    assert len(commands) == 1
    assert "grep -E '^python3 -m venv .* && pytest .*$' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
