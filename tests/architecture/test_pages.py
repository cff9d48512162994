"""The pages lead somewhere, and CI runs what README.md says."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from delta_core.testing.table_builder import TableBuilder
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
    commands = [line for line in lines if re.match(r"^python3 -m venv .* && pytest$", line)]
    assert len(commands) == 1
    assert "grep -E '^python3 -m venv .* && pytest$' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_code_of_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 2
    columns = {"id": "long", "name": "string", "amount": "double", "day": "date"}
    table = TableBuilder(tmp_path / "events").create(columns, partition_by=["day"])
    for i in range(12):
        table.append([{"id": i, "name": "a", "amount": 100.0 + i, "day": date(2024, 5, 6)}])
    code = "\n".join(blocks).replace('"s3://bucket/events", storage_options={"region": "eu-north-1"}', repr(table.uri))
    found: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), found)
    assert found["scan"].to_table().num_rows == 11  # type: ignore[attr-defined]
    assert found["scan"].to_table().column_names == ["id", "name", "_file_path"]  # type: ignore[attr-defined]
