"""Loaded on first use: what changes datasets."""

from __future__ import annotations

from delta_core.api import lazy_imports

with lazy_imports(__name__):
    from delta_plugins.lance.changes import (
        LanceChanges as LanceChanges,
        blob_values as blob_values,
        check_changeable as check_changeable,
        manifest_scheme as manifest_scheme,
    )
    from delta_plugins.lance.cleaning import CleanupOptions as CleanupOptions, clean_dataset as clean_dataset
    from delta_plugins.lance.columns import (
        added_columns as added_columns,
        cast_column as cast_column,
        dropped_columns as dropped_columns,
        renamed_column as renamed_column,
    )
    from delta_plugins.lance.commit.commits import commit_operation as commit_operation
    from delta_plugins.lance.commit.conflicts import is_retryable as is_retryable
    from delta_plugins.lance.commit.indices import index_messages as index_messages
    from delta_plugins.lance.commit.operations import Restore as Restore, UpdateConfig as UpdateConfig
    from delta_plugins.lance.compacting import CompactOptions as CompactOptions, compact_dataset as compact_dataset
    from delta_plugins.lance.index.creating import created_index as created_index, dropped_index as dropped_index
    from delta_plugins.lance.projection import find_path as find_path
    from delta_plugins.lance.repairing import (
        described as described,
        removal_of as removal_of,
        unreadable_fragments as unreadable_fragments,
    )
    from delta_plugins.lance.reporting import report_of as report_of
    from delta_plugins.lance.rewrites import LanceRewrites as LanceRewrites
    from delta_plugins.lance.tags import Tags as Tags
