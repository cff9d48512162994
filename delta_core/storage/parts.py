"""Loaded on first use (`runtime.lazy`): writers of files, operations on folders, and the options of remote stores."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.storage.credentials import (
        fsspec_options as fsspec_options,
        without_credentials as without_credentials,
    )
    from delta_core.storage.folders import (
        Folder as Folder,
        delete_files as delete_files,
        find_files as find_files,
        first_files as first_files,
        list_folder as list_folder,
    )
    from delta_core.storage.local_files import (
        claim as claim,
        create_whole as create_whole,
        make_directory as make_directory,
        replace_file as replace_file,
        sync_directory as sync_directory,
        sync_path as sync_path,
        temporary_file as temporary_file,
    )
