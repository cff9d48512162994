"""Where statistics are in the statistics object of a file. Protocol: Per-file Statistics."""

from __future__ import annotations

from delta_core.expressions.ast import FileStatistic
from delta_core.schema.fields import Path

__all__ = ["statistic_path"]


def statistic_path(leaf: FileStatistic) -> Path:
    """Return where a statistic is in the statistics object.

    Parameters
    ----------
    leaf : FileStatistic
        The statistic.
    """
    top = {"min": "minValues", "max": "maxValues"}.get(leaf.kind, leaf.kind)
    return (top,) if leaf.kind in ("numRecords", "tightBounds") else (top, *leaf.path)
