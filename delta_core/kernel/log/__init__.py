"""The transaction log: finding versions, reading and writing their files.

What reads the history of a table and points in time is loaded on first use: a read of the newest version needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.log.history import CommitHistory
    from delta_core.kernel.log.timestamps import parse_ms, parse_version

__all__ = ["CommitHistory", "parse_ms", "parse_version"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {"delta_core.kernel.log.history": "CommitHistory", "delta_core.kernel.log.timestamps": "parse_ms parse_version"},
)
