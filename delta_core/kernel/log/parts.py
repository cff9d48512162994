"""Loaded on first use (`runtime.lazy`): readers of checkpoints and checksums, and the reason why there is no table."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from hashlib import sha256 as sha256

    from delta_core.kernel.log.cache_folder import find_cache as find_cache
    from delta_core.kernel.log.cached_files import cached_files as cached_files
    from delta_core.kernel.log.checkpoint import CheckpointReader as CheckpointReader, read_removes as read_removes
    from delta_core.kernel.log.checksum import read_checksum as read_checksum
    from delta_core.kernel.log.missing import (
        why_no_table as why_no_table,
        why_no_table_on_store as why_no_table_on_store,
    )
