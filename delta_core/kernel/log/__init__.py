"""The transaction log: finding versions, reading and writing their files.

The readers of history and points in time are loaded on first use: a read of the newest version needs neither.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.log.history import CommitHistory as CommitHistory
    from delta_core.kernel.log.timestamps import parse_ms as parse_ms, parse_version as parse_version
