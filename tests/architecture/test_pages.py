"""The pages lead somewhere, and CI runs what README.md specifies."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

FOLDERS = ("*.md", "docs/*.md", "*/README.md", "delta_core/**/README.md", "examples/**/*.md")
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


#: A module, a header or a folder of ours, as pages name it.
PLACE = re.compile(r"`((?:[\w]+/)*[\w]+(?:\.(?:py|pyx|pxi|h|java)|/))`")
ROOMS = [*ROOT.glob("delta_core/**/README.md"), ROOT / "docs" / "architecture.md"]


@pytest.mark.parametrize("page", ROOMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_that_a_page_of_the_design_names_exist(page: Path) -> None:
    places = PLACE.findall(page.read_text(encoding="utf-8"))
    assert places
    roots = (page.parent, ROOT, *(ROOT / place for place in ("delta_core", "delta_core/kernel", "ext", "ext/parquet")))
    assert [place for place in places if not any((root / place).exists() for root in roots)] == []


def test_architecture_states_the_size_of_the_kernel() -> None:
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in (ROOT / "delta_core/kernel").rglob("*.py"))
    stated = re.search(r"about ([\d,]+) lines", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert abs(lines - int(stated[1].replace(",", ""))) <= 1_000


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [p.name for p in ROOT.glob("docs/*.md") if p.name != "index.md" and f"({p.name})" not in index] == []


def test_readme_has_the_one_test_command_that_ci_takes() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if re.match(r"^python3 -m venv .* && pytest .*$", line)]
    assert len(commands) == 1
    assert "grep -E '^python3 -m venv .* && pytest .*$' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
