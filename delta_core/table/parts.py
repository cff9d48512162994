"""Loaded on first use (`runtime.lazy`): the objects by which `DeltaTable` is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.commit.options import (
        AddAction,
        CommitProperties,
        PostCommitHookProperties,
        RemoveAction,
        commit_arguments,
        write_arguments,
    )
    from delta_core.operations.merge.builder import MergeClause, TableMerger
    from delta_core.table.alterer import TableAlterer
    from delta_core.table.optimizer import TableOptimizer

__all__ = [
    "AddAction",
    "CommitProperties",
    "MergeClause",
    "PostCommitHookProperties",
    "RemoveAction",
    "TableAlterer",
    "TableMerger",
    "TableOptimizer",
    "commit_arguments",
    "write_arguments",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.table.alterer": "TableAlterer",
        "delta_core.kernel.commit.options": (
            "AddAction CommitProperties PostCommitHookProperties RemoveAction commit_arguments write_arguments"
        ),
        "delta_core.operations.merge.builder": "MergeClause TableMerger",
        "delta_core.table.optimizer": "TableOptimizer",
    },
)
