"""Loaded on first use (`runtime.lazy`): readers and writers of several data files at once."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.parquet.file_runs import FileRun as FileRun, can_be_cut as can_be_cut
    from delta_core.parquet.joined_files import JoinedFiles as JoinedFiles
    from delta_core.runtime.ordered import run_ordered as run_ordered, run_quick as run_quick
    from delta_core.storage.folders import create_files as create_files, sync_files as sync_files
