"""Loaded on first use (`runtime.lazy`): what an append does not need."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.operations.row_changes import RowChanges as RowChanges
