"""The README's first command shows the right rows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest

import delta_core

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "quickstart.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart_hides_the_deleted_row_and_plans_one_file() -> None:
    out = _run()
    assert "version 2, 2 files" in out
    every, warm = out.split("warm on Tuesday, from 1 of 2 files:")
    assert every.count("{'city'") == 4
    assert "'celsius': 21.0" not in every
    assert "version 0 had 3 rows" in warm
    assert [line.split(": ")[1] for line in out.splitlines() if line.startswith("  version")] == [
        "WRITE",
        "WRITE",
        "WRITE",
    ]


def test_quickstart_imports_the_public_api_only() -> None:
    tree = ast.parse((ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = names | {str(node.module) for node in found}
    assert {m for m in modules if m.partition(".")[0] not in sys.stdlib_module_names} == {"pyarrow", "delta_core"}
    public = {a.name for node in found if node.module == "delta_core" for a in node.names}
    assert public <= set(delta_core.__all__)


@pytest.mark.peer
def test_quickstart_table_reads_the_same_through_a_peer(tmp_path: Path) -> None:
    _run(str(tmp_path))
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "weather"))
    cities = query.execute("select city, celsius from t").read_all().column(0).to_pylist()
    assert sorted(str(c) for c in cities) == ["Lima", "Oslo", "Oslo", "Rome"]
