"""Options of commits under their name in the `deltalake` package; they live in `delta_core.table.transaction`."""

from delta_core.table.transaction import (
    AddAction,
    AppTransaction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
)

__all__ = ["AddAction", "AppTransaction", "CommitProperties", "PostCommitHookProperties", "RemoveAction", "Transaction"]
