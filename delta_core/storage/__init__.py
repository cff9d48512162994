"""Places: local disks, object stores, archives; the log's files on them; which of them a table may name.

Modules for other places than local disks are loaded when such a place is opened.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.storage.chained import ChainedStorage as ChainedStorage
    from delta_core.storage.remote import FsspecStorage as FsspecStorage, open_remote as open_remote
