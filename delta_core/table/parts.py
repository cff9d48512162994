"""Loaded on first use (`runtime.lazy`): the objects by which `DeltaTable` is changed, and tuples that it returns."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.commit.options import (
        AddAction as AddAction,
        CommitProperties as CommitProperties,
        PostCommitHookProperties as PostCommitHookProperties,
        RemoveAction as RemoveAction,
        commit_arguments as commit_arguments,
        commit_options as commit_options,
        own_actions as own_actions,
        write_arguments as write_arguments,
    )
    from delta_core.operations.merge.builder import MergeClause as MergeClause, TableMerger as TableMerger
    from delta_core.operations.report.table_report import TableReport as TableReport
    from delta_core.table.alterer import TableAlterer as TableAlterer
    from delta_core.table.named_tuples import DeltaTableConfig as DeltaTableConfig, ProtocolVersions as ProtocolVersions
    from delta_core.table.optimizer import TableOptimizer as TableOptimizer
    from delta_core.table.raw_table import RawTable as RawTable
    from delta_core.table.reporting import report_of as report_of
