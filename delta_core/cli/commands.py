"""The commands, each loaded on first use: listing them loads neither Arrow nor the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.cli.alter import alter
    from delta_core.cli.change import checkpoint, create, delete, update, write
    from delta_core.cli.clone import clone
    from delta_core.cli.convert import convert
    from delta_core.cli.feature import feature
    from delta_core.cli.follow import follow
    from delta_core.cli.inspect import features, files, history, info, log, schema
    from delta_core.cli.log_files import cleanup, compact_log, generate
    from delta_core.cli.merge import merge
    from delta_core.cli.optimize import optimize, purge
    from delta_core.cli.restore import restore
    from delta_core.cli.rows import cat, changes, count, diff, explain, head, sql
    from delta_core.cli.statistics import statistics
    from delta_core.cli.vacuum import vacuum
    from delta_core.cli.verify import repair, verify

__all__ = [
    "alter",
    "cat",
    "changes",
    "checkpoint",
    "cleanup",
    "clone",
    "compact_log",
    "convert",
    "count",
    "create",
    "delete",
    "diff",
    "explain",
    "feature",
    "features",
    "files",
    "follow",
    "generate",
    "head",
    "history",
    "info",
    "log",
    "merge",
    "repair",
    "restore",
    "optimize",
    "purge",
    "schema",
    "sql",
    "statistics",
    "update",
    "vacuum",
    "verify",
    "write",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.cli.alter": "alter",
        "delta_core.cli.change": "checkpoint create delete update write",
        "delta_core.cli.clone": "clone",
        "delta_core.cli.convert": "convert",
        "delta_core.cli.feature": "feature",
        "delta_core.cli.follow": "follow",
        "delta_core.cli.inspect": "features files history info log schema",
        "delta_core.cli.log_files": "cleanup compact_log generate",
        "delta_core.cli.merge": "merge",
        "delta_core.cli.restore": "restore",
        "delta_core.cli.optimize": "optimize purge",
        "delta_core.cli.rows": "cat changes count diff explain head sql",
        "delta_core.cli.statistics": "statistics",
        "delta_core.cli.vacuum": "vacuum",
        "delta_core.cli.verify": "repair verify",
    },
)
