"""How commits are made and what follows them, in the names of ``deltalake.transaction``."""

from __future__ import annotations

from delta_core.kernel.commit.options import (
    AddAction,
    AppTransaction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
)

__all__ = ["AddAction", "AppTransaction", "CommitProperties", "PostCommitHookProperties", "RemoveAction", "Transaction"]

#: ``deltalake``'s name. The result of `Snapshot.begin` is another class, `delta_core.kernel.commit.Transaction`.
Transaction = AppTransaction
