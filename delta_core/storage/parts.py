"""Loaded on first use (`runtime.lazy`): writers of files, and operations on folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.storage.folders import Folder, delete_files, find_files, list_folder
    from delta_core.storage.local_files import claim, create_whole, make_directory, sync_directory, temporary_file

__all__ = [
    "Folder",
    "claim",
    "create_whole",
    "delete_files",
    "find_files",
    "list_folder",
    "make_directory",
    "sync_directory",
    "temporary_file",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.storage.folders": "Folder delete_files find_files list_folder",
        "delta_core.storage.local_files": "claim create_whole make_directory sync_directory temporary_file",
    },
)
