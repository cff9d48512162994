"""The pages lead somewhere, and CI runs what README.md says."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.variant_bytes import variants
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


def test_code_of_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    columns = {"id": "long", "name": "string", "amount": "double", "day": "date"}
    table = TableBuilder(tmp_path / "events").create(columns, partition_by=["day"])
    for i in range(12):
        table.append([{"id": i, "name": "a", "amount": 100.0 + i, "day": date(2024, 5, 6)}])
    code = "\n".join(blocks).replace('"s3://bucket/events", storage_options={"region": "eu-north-1"}', repr(table.uri))
    found: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), found)
    assert found["scan"].to_table().num_rows == 11  # type: ignore[attr-defined]
    assert DeltaTable(table.uri).to_pyarrow_table().num_rows == 12, "appended, and then overwritten"
    assert found["scan"].to_table().column_names == ["id", "name", "_file_path"]  # type: ignore[attr-defined]


def _block(page: str, word: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (found,) = [b for b in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if word in b]
    return str(found)


def test_example_of_variants_as_text_runs(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long", "v": "variant"}, features=["variantType"])
    table.append(pa.table({"id": [1], "v": variants([{"a": [1, "x"]}])}), statistics=False)
    *code, last = _block("api.md", "variant_json").strip().splitlines()
    found: dict[str, object] = {"snapshot": open_snapshot(table.uri)}
    exec(compile("\n".join([*code, f"rows = {last}"]), "api.md", "exec"), found)
    assert found["rows"].to_pylist() == [{"id": 1, "v_json": '{"a":[1,"x"]}'}]  # type: ignore[attr-defined]


def test_example_of_a_catalog_runs(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long"}, features=["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"],
        properties={"delta.enableInCommitTimestamps": "true"},
    )  # fmt: skip
    table.append({"id": [1]}, commit={"publish": "staged"}).append({"id": [2]}, commit={"publish": "no"})
    code = _block("api.md", "StagedCommit")
    (staged,) = (tmp_path / "t" / "_delta_log" / "_staged_commits").iterdir()
    found: dict[str, object] = {"uri": table.uri, "body": table.bodies[2], "DeltaTable": DeltaTable}
    exec(compile(re.sub(r'"0{19}1\.[^"]*"', repr(staged.name), code), "api.md", "exec"), found)
    assert found["table"].version() == 2  # type: ignore[attr-defined]
    assert sorted(found["table"].to_pyarrow_table().column("id").to_pylist()) == [1, 2]  # type: ignore[attr-defined]
