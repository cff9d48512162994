"""Storage of the Arrow engine: local disks directly, everything else through fsspec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_core.engines.arrow import storage
from delta_core.engines.arrow.storage.boundary import AllowExternal
from delta_core.engines.arrow.storage.local import LocalStorage
from delta_core.engines.arrow.storage.places import LINK, LOCAL_SCHEMES, plain_path, scheme_of
from delta_core.errors import InvalidArgumentError
from delta_core.runtime.arguments import check_options

if TYPE_CHECKING:
    from delta_core.engines.arrow.storage import FsspecStorage

__all__ = ["LocalStorage", "open_storage"]


def open_storage(
    uri: str, options: Mapping[str, Any] | None = None, allow_external: AllowExternal = None
) -> LocalStorage | FsspecStorage:
    """Return the storage for a table's URI or path; does no I/O.

    Parameters
    ----------
    uri : str
        A local path, or a URI of any file system that fsspec supports, also a chained one.
    options : Mapping, optional
        What the file system takes: credentials, endpoints.
    allow_external : sequence of str, False or None
        Prefixes of places outside the root that the log may name, beside those on the root's own kind of store; False:
        none.

    Raises
    ------
    InvalidArgumentError
        For an empty URI, a URI without a bucket, and options that are no mapping.
    """
    check_options(options)
    if not uri:
        raise InvalidArgumentError("The table's URI is empty; expected a path or a URI such as s3://bucket/table.")
    if scheme_of(uri) in LOCAL_SCHEMES:
        root = os.path.abspath(os.path.expanduser(plain_path(uri)))
        return LocalStorage(root, dict(options or {}), open_storage, allow_external)
    if not uri.partition("://")[2].strip("/") and scheme_of(uri) != "memory":
        raise InvalidArgumentError(f"Found the URI {uri!r}, expected a bucket or host and a path behind its scheme.")
    if LINK in uri:
        return storage.ChainedStorage(uri, dict(options or {}), open_storage, allow_external)
    return storage.open_remote(uri.rstrip("/"), dict(options or {}), open_storage, allow_external)
