"""The types that users' type checkers see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

#: Classes that PyArrow, which has no types, is a base of, functions that return them, and lazy modules.
UNTYPED_BASES = {
    "delta_core.scan.interop.dataset_of_scan.ScanDataset",
    "delta_core.api.scan_dataset",
    "delta_core.scan.interop.dataset_of_scan.scan_dataset",
    "delta_core.table.interop.scan_dataset",
    "delta_core.deltalake_names.fs.DeltaStorageHandler",
    "delta_core.storage.prefetch.RangedSource",
    "delta_core.parquet.file_parts.RangedSource",
    "delta_core.interop.__getattr__",
    "delta_core.interop.__dir__",
    # errors of imports at module level
    "delta_core.engines.spark.e",
    "delta_core.kernels.e",
}
PROGRAM = """
from typing import assert_type

from delta_core import DeltaTable, Schema, write_deltalake

table = DeltaTable("sales")
assert_type(table.version(), int)
assert_type(table.schema(), Schema)
assert_type(table.count(), int)
assert_type(table.file_uris(), list[str])
assert_type(table.delete("id = 1"), dict[str, int])
write_deltalake(table, None, mode="append", schema_mode="merge")
"""


def run(arguments: list[str], folder: Path) -> dict[str, object]:
    """Run the checker in a folder; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "basedpyright", "--outputjson", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


pytestmark = pytest.mark.skipif(
    find_spec("basedpyright") is None, reason="needs basedpyright: pip install basedpyright"
)


def test_every_exported_name_has_a_type(tmp_path: Path) -> None:
    report = run(["--verifytypes", "delta_core", "--ignoreexternal"], tmp_path)["typeCompleteness"]
    symbols = report["symbols"]  # type: ignore[index]
    assert len(symbols) > 5_000
    unknown = {s["name"] for s in symbols if s["isExported"] and not s["isTypeKnown"]}
    assert unknown == UNTYPED_BASES


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("", ""),
        ('write_deltalake(table, None, mode="appendd")', "reportArgumentType"),
        ('write_deltalake(table, None, schema_mode="replace")', "reportArgumentType"),
        ("table.versoin()", "reportAttributeAccessIssue"),
    ],
    ids=["right", "mode", "schema mode", "name"],
)
def test_a_program_is_checked(tmp_path: Path, line: str, rule: str) -> None:
    (tmp_path / "program.py").write_text(f"{PROGRAM}\n{line}\n", encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', encoding="utf-8")
    found = run(["program.py"], tmp_path)["generalDiagnostics"]
    errors = [d["rule"] for d in found if d["severity"] == "error"]  # type: ignore[attr-defined]
    assert errors == ([rule] if rule else [])
