"""Loaded on first use (`runtime.lazy`): readers and writers of several data files at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.parquet.file_runs import FileRun, can_be_cut
    from delta_core.parquet.joined_files import JoinedFiles
    from delta_core.runtime.ordered import run_ordered, run_quick
    from delta_core.storage.folders import create_files, sync_files

__all__ = ["FileRun", "JoinedFiles", "can_be_cut", "create_files", "run_ordered", "run_quick", "sync_files"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.runtime.ordered": "run_ordered run_quick",
        "delta_core.parquet.file_runs": "FileRun can_be_cut",
        "delta_core.parquet.joined_files": "JoinedFiles",
        "delta_core.storage.folders": "create_files sync_files",
    },
)
