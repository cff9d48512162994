"""From staged changes to a version of the table. Names are resolved on first use: opening a table commits nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.commit.conflict import IsolationLevel
    from delta_core.kernel.commit.transaction import CommitResult, Transaction

__all__ = ["CommitResult", "IsolationLevel", "Transaction"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.commit.conflict": "IsolationLevel",
        "delta_core.kernel.commit.transaction": "CommitResult Transaction",
    },
)
