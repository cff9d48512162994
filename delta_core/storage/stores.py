"""Storage of the Arrow engine: local disks directly, everything else through fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_core import storage
from delta_core.errors import InvalidArgumentError, InvalidPlaceError, PluginConflictError
from delta_core.runtime.arguments import check_options
from delta_core.runtime.entry_points import entry_points
from delta_core.storage.boundary import AllowExternal, Renewal
from delta_core.storage.local import LocalStorage
from delta_core.storage.places import LINK, LOCAL_SCHEMES, local_root, scheme_of

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage
    from delta_core.storage import FsspecStorage

__all__ = ["STORES_GROUP", "LocalStorage", "open_offered", "open_storage"]

STORES_GROUP = "delta_core.stores"
"""Entry points that are named after schemes: functions of a URI, its options and ``allow_external``, which return the
storage."""


def open_offered(uri: str, options: Mapping[str, Any] | None = None, allow_external: AllowExternal = None) -> Storage:
    """Return the storage for a table's URI or path, also of a scheme that an entry point offers; does no I/O.

    Parameters
    ----------
    uri, options, allow_external
        As of `open_storage`.

    Raises
    ------
    InvalidArgumentError
        See `open_storage`, and what the entry point rejects.
    PluginConflictError
        If two packages offer a storage for the scheme.
    """
    scheme = scheme_of(uri) if uri else ""
    points = () if scheme in LOCAL_SCHEMES else entry_points(STORES_GROUP)
    # a package that is found twice, in a folder of sources and where it is installed, offers one storage
    offered = list({p.value: p for p in points if p.name.lower() == scheme}.values())
    if not offered:
        return open_storage(uri, options, allow_external)
    if len(offered) > 1:
        names = " and ".join(p.value for p in offered)
        raise PluginConflictError(f"{names} both offer a storage for {scheme}://; remove one of their packages.")
    check_options(options)
    found: Storage = offered[0].load()(uri, dict(options or {}), allow_external)
    return found


def open_storage(
    uri: str,
    options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal = None,
    *,
    renewal: Renewal | None = None,
) -> LocalStorage | FsspecStorage:
    """Return the storage for a table's URI or path; does no I/O.

    Parameters
    ----------
    uri : str
        A local path, or a URI of any file system that fsspec supports, also a chained one.
    options : Mapping, optional
        Options of the file system: credentials, endpoints.
    allow_external : sequence of str, False or None
        Prefixes of places outside the root that the log may name, beside those on the root's own kind of store; False:
        none.
    renewal : function() -> Mapping, optional
        Returns the options that are valid now, called before each access to a store: for credentials that expire. It
        returns the same object until they change. Places without credentials never call it.

    Raises
    ------
    InvalidArgumentError, InvalidPlaceError
        For an empty URI, a URI without a bucket or with a password, a path that is no UTF-8, and options that are no
        mapping.
    EngineError
        For a relative path if the working directory is gone.
    """
    check_options(options)
    if not uri:
        raise InvalidPlaceError("The table's URI is empty; expected a path or a URI such as s3://bucket/table.")
    if scheme_of(uri) in LOCAL_SCHEMES:
        return LocalStorage(local_root(uri), dict(options or {}), open_storage, allow_external)
    if not uri.partition("://")[2].strip("/") and scheme_of(uri) != "memory":
        raise InvalidArgumentError(f"Found the URI {uri!r}, expected a bucket or host and a path after its scheme.")
    _check_users(uri)
    if LINK in uri:
        return storage.ChainedStorage(uri, dict(options or {}), open_storage, allow_external)
    return storage.open_remote(uri.rstrip("/"), dict(options or {}), open_storage, allow_external, renewal)


#: Schemes whose stores take credentials as options only: a user and a password would be part of the bucket's name.
_WITHOUT_USERS = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "az", "abfs", "abfss", "adl", "http", "https"})


def _check_users(uri: str) -> None:
    """Reject a password in the URI of a store that takes none there, before a library repeats it in its errors."""
    for link in uri.split(LINK):
        scheme, _, place = link.partition("://")
        user, at, _ = place.rpartition("@") if "@" in place else (place.partition("/")[0], "", "")
        with_password = ":" in user.partition("/")[0] and (at or scheme not in ("http", "https"))
        if scheme in _WITHOUT_USERS and with_password:
            raise InvalidArgumentError(
                f"Found a user and a password in the URI of a table on {scheme}://, which takes none there. Pass "
                "credentials by storage_options, and the URI without them.",
                scheme=scheme,
            )
