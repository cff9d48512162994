"""Loaded on first use (`runtime.lazy`): checkpoints, writers of files, and operations on folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.engines.arrow.storage.checkpoint_files import ParquetCheckpoint
    from delta_core.engines.arrow.storage.local_files import (
        claim,
        create_whole,
        make_directory,
        sync_directory,
        temporary_file,
    )
    from delta_core.engines.arrow.storage.log_writer import write_lines, write_parquet
    from delta_core.kernels.folders import Folder, delete_files, find_files, list_folder

__all__ = [
    "Folder",
    "ParquetCheckpoint",
    "claim",
    "create_whole",
    "delete_files",
    "find_files",
    "list_folder",
    "make_directory",
    "sync_directory",
    "temporary_file",
    "write_lines",
    "write_parquet",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.engines.arrow.storage.checkpoint_files": "ParquetCheckpoint",
        "delta_core.engines.arrow.storage.local_files": (
            "claim create_whole make_directory sync_directory temporary_file"
        ),
        "delta_core.engines.arrow.storage.log_writer": "write_lines write_parquet",
        "delta_core.kernels.folders": "Folder delete_files find_files list_folder",
    },
)
