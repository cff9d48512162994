"""Loaded on first use (`runtime.lazy`): what an append does not need."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.operations.rewrite import (
        carried_columns as carried_columns,
        not_selected as not_selected,
        rewrite_rows as rewrite_rows,
        selects_partitions as selects_partitions,
        write_change_rows as write_change_rows,
    )
    from delta_core.operations.row_changes import RowChanges as RowChanges
