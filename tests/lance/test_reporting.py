"""Reports of datasets: figures against those of their versions, and what compaction does."""

from __future__ import annotations

import inspect
from pathlib import Path

import pyarrow as pa

from delta_core import open_table
from delta_plugins.lance import write_lance
from delta_plugins.lance.compacting import CompactOptions
from delta_plugins.lance.dataset import LanceDataset


def test_figures_are_those_of_the_versions(tmp_path: Path) -> None:
    root = str(tmp_path / "d")
    for mode in ("create", *["append"] * 4):
        write_lance(root, pa.table({"i": range(100)}), mode)
    dataset = open_table(root)
    dataset.delete("i < 20")
    report = dataset.report()
    assert (report.rows, report.deleted_rows, report.files) == (400, 100, 5)
    for v in report.versions:
        stats = dataset.checkout(v.version).stats()
        assert (v.files, v.size_bytes) == (stats.num_data_files, stats.size_bytes)
    assert "deleted ones" in str(report)
    planned = report.compaction
    assert planned is not None
    done = dataset.compact()
    assert (
        (planned.files, planned.files_after) == (done["num_removed_fragments"], done["num_added_fragments"]) == (5, 1)
    )
    assert dataset.report().compaction.files == 0


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "d"), pa.table({"i": [1]}))
    next((tmp_path / "d" / "data").iterdir()).unlink()
    assert open_table(str(tmp_path / "d")).report().state == "bad"


def test_options_have_the_defaults_of_the_method() -> None:
    method = inspect.signature(LanceDataset.compact).parameters
    options = CompactOptions()
    for name in ("target_rows", "max_bytes", "materialize_deletions", "max_memory"):
        assert method[name].default == getattr(options, name)
