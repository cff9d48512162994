"""Snapshots under their short name; they live in `delta_core.kernel.snapshot`."""

from delta_core.engines.opening import ENGINES_GROUP
from delta_core.kernel.snapshot import Snapshot, TableContext, open_context, open_snapshot

__all__ = ["ENGINES_GROUP", "Snapshot", "TableContext", "open_context", "open_snapshot"]
