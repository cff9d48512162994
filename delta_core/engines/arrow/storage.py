"""Storage of the Arrow engine: local disks directly, everything else through fsspec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from delta_core.engines.arrow.chained import LINK, ChainedStorage
from delta_core.engines.arrow.local import LocalStorage
from delta_core.engines.arrow.places import LOCAL_SCHEMES, plain_path, scheme_of
from delta_core.engines.arrow.remote import FsspecStorage, open_remote
from delta_core.errors import InvalidArgumentError

__all__ = ["FsspecStorage", "LocalStorage", "open_storage"]


def open_storage(uri: str, options: Mapping[str, Any] | None = None) -> LocalStorage | FsspecStorage:
    """Return the storage for a table's URI or path; does no I/O."""
    if not uri:
        raise InvalidArgumentError("The table's URI is empty; expected a path or a URI such as s3://bucket/table.")
    if scheme_of(uri) in LOCAL_SCHEMES:
        return LocalStorage(os.path.abspath(os.path.expanduser(plain_path(uri))), dict(options or {}), open_storage)
    if LINK in uri:
        return ChainedStorage(uri, dict(options or {}), open_storage)
    return open_remote(uri.rstrip("/"), dict(options or {}), open_storage)
