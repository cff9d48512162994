"""The command convert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable


def test_command_converts_and_reports_the_commit(run: Any, tmp_path: Path) -> None:
    (tmp_path / "year=2026").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "year=2026" / "a.parquet")
    found = run("convert", str(tmp_path), "--partition", "year=integer", "--json").json
    assert (found["version"], found["operation"]) == (0, "CONVERT")
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist() == [{"id": 1, "year": 2026}]


def test_dry_run_counts_the_files_and_commits_nothing(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "b.parquet")
    assert run("convert", tmp_path, "--dry-run", "--json").json == {"files": 2}
    assert not (tmp_path / "_delta_log").exists()
    run("convert", tmp_path)
    assert run("convert", tmp_path, "--mode", "append", "--dry-run", "--json").json == {"files": 0}


def test_folder_that_is_not_there_is_distinguished_from_one_without_files(run: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").touch()
    ends = {n: run("convert", tmp_path / n).err.partition(".pq.")[2].strip() for n in ("nope", "empty", "texts")}
    assert ends == {"nope": "There is no folder of this name.", "empty": "The folder is empty.", "texts": ""}
