"""How commits are made and what follows them, in the names of ``deltalake.transaction``."""

from __future__ import annotations

from delta_core.commit.options import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction, Transaction

__all__ = ["AddAction", "CommitProperties", "PostCommitHookProperties", "RemoveAction", "Transaction"]
