"""The commands report and health: what they print, and their exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_plugins.lance import write_lance


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3]}))
    return tmp_path / "t"


def test_health_of_a_good_table(run: Any, uri: Path) -> None:
    found = run("health", uri)
    assert (found.code, len(found.lines) <= 10) == (0, True)
    assert found.lines[0].endswith(": Delta version 0, good")
    assert all(line.startswith("ok ") for line in found.lines[1:])


def test_health_exits_with_1_for_attention_and_2_for_errors(run: Any, uri: Path) -> None:
    for i in range(20):
        write_deltalake(uri, pa.table({"id": [i]}), mode="append")
    found = run("health", uri, "--json")
    assert (found.code, found.json["state"]) == (1, "attention")
    assert [c["name"] for c in found.json["checks"] if c["state"] == "attention"] == ["files"]
    Path(DeltaTable(uri).file_uris()[0]).unlink()
    assert run("health", uri, "--json").code == 2
    assert run("health", uri, "--log-only").code == 1


def test_health_of_what_can_not_be_read(run: Any, uri: Path, tmp_path: Path) -> None:
    (uri / "_delta_log" / f"{0:020}.json").write_text('{"add":')
    found = run("health", uri)
    assert found.code == 2
    assert found.lines[0].endswith(": bad")
    found = run("health", tmp_path / "missing", "--json")
    assert (found.code, found.json["state"]) == (2, "bad")


def test_report_is_written_or_printed(run: Any, uri: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    found = run("report", uri, "-o", path)
    assert (found.code, found.out) == (0, "")
    assert str(path) in found.err
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert run("report", uri).out.startswith("<!doctype html>")
    assert run("report", uri, "--json").json["rows"] == 3
    assert run("report", uri, "--json", "-o", path).code == 2
    assert path.read_text(encoding="utf-8") == page


def test_earlier_version(run: Any, uri: Path) -> None:
    write_deltalake(uri, pa.table({"id": [4]}), mode="append")
    assert run("report", uri, "--version", 0, "--json").json["rows"] == 3


def test_dataset(run: Any, tmp_path: Path) -> None:
    for mode in ("create", *["append"] * 11):
        write_lance(str(tmp_path / "d"), pa.table({"id": [1, 2]}), mode)
    found = run("health", tmp_path / "d", "--json")
    assert (found.code, found.json["format"]) == (1, "Lance")
    report = run("report", tmp_path / "d", "--json").json
    assert (report["rows"], report["files"], len(report["versions"])) == (24, 12, 12)
    assert [v["files"] for v in report["versions"]] == list(range(1, 13))
    assert report["compaction"]["files_after"] == 1
