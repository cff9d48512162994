"""Loaded on first use (`runtime.lazy`): readers of checkpoints and checksums, and the reason why there is no table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.log.checkpoint import CheckpointReader, read_removes
    from delta_core.kernel.log.checksum import read_checksum
    from delta_core.kernel.log.missing import why_no_table, why_no_table_on_store

__all__ = ["CheckpointReader", "read_checksum", "read_removes", "why_no_table", "why_no_table_on_store"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.log.checkpoint": "CheckpointReader read_removes",
        "delta_core.kernel.log.checksum": "read_checksum",
        "delta_core.kernel.log.missing": "why_no_table why_no_table_on_store",
    },
)
