"""Checks before a table's folder is maintained: whether its catalog and its protocol allow it."""

from __future__ import annotations

from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.commit.base import TableBase
from delta_core.kernel.commit.upgrade import check_writable
from delta_core.kernel.plugins.catalog import allows

__all__ = ["check_upkeep"]

#: By the names of `plugins.catalog.MAINTENANCE`: the operation in messages, and the call that runs it.
_OPERATIONS = {
    "vacuum": ("VACUUM", "vacuum"),
    "cleanup": ("metadata cleanup", "cleanup_metadata"),
    "compact_log": ("log compaction", "compact_logs"),
    "optimize": ("OPTIMIZE and REORG", "optimize"),
}


def check_upkeep(table: TableBase, operation: str) -> None:
    """Reject to maintain a table whose catalog maintains it, or that the installed plugins can't write.

    Raises
    ------
    UnsupportedOperationError
        If the table's catalog does not allow the operation.
    UnsupportedVersionError, UnsupportedFeatureError
        If the protocol requires more than the installed plugins support.
    """
    title, call = _OPERATIONS[operation]
    if not allows(table.context.log.catalog, operation):
        raise UnsupportedOperationError(
            f"The catalog of {table.uri} does not allow {title}; it maintains its tables itself.", operation=call
        )
    check_writable(table.protocol, table.context.registry)
