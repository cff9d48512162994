"""Opening a table loads no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from delta_core.testing.table_builder import TableBuilder
from tests.architecture.source import ROOT

HEAVY = (
    "pyspark", "numba", "pandas", "sqlglot", "polars", "rich", "click", "duckdb", "datafusion", "delta_core.testing",
)  # fmt: skip
LOADED = f"print(*sorted(m for m in {HEAVY!r} if m in sys.modules))"


@pytest.fixture
def table(tmp_path: Path) -> str:
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "kind": "string"}, partition_by=["kind"])
    builder.append([{"id": 1, "kind": "a"}]).append([{"id": 2, "kind": "b"}])
    return str(tmp_path / "t")


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", f"import sys\n{code}\n{LOADED}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy_and_no_arrow() -> None:
    assert _run("import delta_core\nassert 'pyarrow' not in sys.modules") == ""


def test_open_loads_nothing_heavy(table: str) -> None:
    code = "from delta_core import DeltaTable\nt = DeltaTable(sys.argv[1])\nassert t.version() == 2\nt.metadata()"
    assert _run(code, table) == ""


def test_listing_files_loads_nothing_heavy(table: str) -> None:
    code = "from delta_core import DeltaTable\nassert DeltaTable(sys.argv[1]).snapshot().files.count == 2"
    assert _run(code, table) == ""


def test_open_imports_plugins_of_the_table_only(table: str) -> None:
    code = (
        "from delta_core import DeltaTable\nDeltaTable(sys.argv[1]).version()\n"
        "assert not [m for m in sys.modules if m.startswith('delta_plugins.deletion')]"
    )
    assert _run(code, table) == ""
