"""From staged changes to a version of the table. Names are resolved on first use: opening a table commits nothing."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.commit.conflict import IsolationLevel as IsolationLevel
    from delta_core.kernel.commit.transaction import CommitResult as CommitResult, Transaction as Transaction
