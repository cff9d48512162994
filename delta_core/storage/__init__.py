"""Places: local disks, object stores, archives; the log's files on them; which of them a table may name.

Modules for other places than local disks are loaded when such a place is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.storage.chained import ChainedStorage
    from delta_core.storage.remote import FsspecStorage, open_remote

__all__ = ["ChainedStorage", "FsspecStorage", "open_remote"]

__getattr__, __dir__ = lazy_names(
    __name__, {"delta_core.storage.chained": "ChainedStorage", "delta_core.storage.remote": "FsspecStorage open_remote"}
)
