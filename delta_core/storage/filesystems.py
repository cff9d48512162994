"""fsspec's filesystems: opened from a URI and options, and what each of them answers differently."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from delta_core.errors import EngineError, InvalidPlaceError, MissingDependencyError
from delta_core.storage.credentials import check_known, fsspec_options
from delta_core.storage.places import scheme_of

__all__ = [
    "endpoint",
    "entity_tag",
    "has_own",
    "http_status",
    "modified_ms",
    "open_chain",
    "open_filesystem",
    "protocols",
]


def open_filesystem(root: str, options: Mapping[str, Any]) -> Any:
    """Return the filesystem that serves a URI; does no I/O. fsspec keeps one for the same options.

    Raises
    ------
    EngineError
        If the filesystem can't be opened.
    """
    import fsspec

    scheme = scheme_of(root)
    kind = _filesystem_class(scheme, root)
    given = {**kind._get_kwargs_from_urls(root), **fsspec_options(scheme, options)}
    # a stale listing would hide commits
    given.setdefault("use_listings_cache", False)
    check_known(scheme, kind, given)
    try:
        return fsspec.filesystem(scheme, **given)
    except Exception as e:
        raise _not_opened(root, e) from e


def _not_opened(root: str, error: Exception) -> EngineError:
    """Return an error with the first line of a filesystem's: that of HDFS lists every place that it looked at."""
    reason = next(iter(str(error).splitlines()), "").rstrip(".")
    return EngineError(f"Could not open the filesystem of {root}: {type(error).__name__}: {reason}.", path=root)


def _filesystem_class(scheme: str, root: str) -> Any:
    import fsspec

    try:
        return fsspec.get_filesystem_class(scheme)
    except ImportError as e:
        extra = _EXTRAS.get(scheme, "all")
        raise MissingDependencyError(
            f"No filesystem for {scheme}:// is installed: {e}. Install it, e.g. pip install "
            f"'delta-core-lake[{extra}]'.",
            scheme=scheme,
        ) from e
    except ValueError as e:
        raise InvalidPlaceError(f"fsspec has no filesystem for {scheme}:// ({root}): {e}.", scheme=scheme) from e


def open_chain(root: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the filesystem of a chained URI, and the table's path there.

    Parameters
    ----------
    root : str
        The table's URI, such as ``zip://table::s3://bucket/archive.zip``.
    options : Mapping
        Those of each filesystem under its protocol's name, others for the first one.

    Raises
    ------
    EngineError
        If the filesystem can't be opened.
    """
    from fsspec import available_protocols
    from fsspec.core import url_to_fs

    schemes = [scheme_of(link) or (link if link in available_protocols() else "file") for link in root.split("::")]
    given = {name: value for name, value in options.items() if name not in schemes}
    for scheme in schemes:
        kind = _filesystem_class(scheme, root)
        own = fsspec_options(scheme, options.get(scheme) or {})
        check_known(scheme, kind, own)
        given[scheme] = {"use_listings_cache": False, **own}
    # an archive is listed when it is opened
    given[schemes[0]]["skip_instance_cache"] = True
    try:
        return url_to_fs(root, **given)  # type: ignore[no-any-return]  # fsspec has no types
    except Exception as e:
        raise _not_opened(root, e) from e


_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "adl": "azure",
}


def protocols(filesystem: Any) -> tuple[str, ...]:
    """Return the schemes that a filesystem serves."""
    names = filesystem.protocol
    return names if isinstance(names, tuple) else (names,)


def has_own(filesystem: Any, method: str) -> bool:
    """Whether a filesystem has a method of its own, and not the one that fsspec builds from others."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    found = getattr(type(filesystem), method, None)
    inherited = (getattr(AbstractFileSystem, method, None), getattr(AsyncFileSystem, method, None))
    return found is not None and all(found is not other for other in inherited)


def endpoint(filesystem: Any) -> str:
    """Return what distinguishes stores of one scheme, as they were requested."""
    given = filesystem.storage_options
    names = ("endpoint_url", "account_name", "account_host", "connection_string", "host", "port")
    found = [given.get(n) for n in names] + [(given.get("client_kwargs") or {}).get("endpoint_url")]
    chosen = [str(v) for v in found if v]
    # a connection string holds a key: distinguished by its hash
    return f"#{hash(tuple(chosen)):x}" if chosen else ""


def http_status(error: BaseException | None) -> int | None:
    """Return the HTTP status that a client library's error, or one that it was made from, carries."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status
        for name in ("status_code", "status", "code"):
            if isinstance(found := getattr(error, name, None), int):
                return found
        error = error.__cause__
    return None


def entity_tag(entry: Mapping[str, Any]) -> str:
    """Return what of a file's description changes with its content, empty if nothing does.

    Filesystems spell it in different ways.
    """
    tag = next((str(entry[name]) for name in ("generation", "ETag", "etag") if entry.get(name)), "")
    times = [(name, entry[name]) for name in _TIMES if entry.get(name) is not None]
    return tag.strip('"') or (repr(times) if times else "")


_TIMES = ("LastModified", "last_modified", "updated", "modified", "mtime", "created", "ino")


def modified_ms(entry: Mapping[str, Any]) -> int | None:
    """Return the modification time of a listing's entry; filesystems spell it in different ways."""
    for name in ("LastModified", "last_modified", "mtime", "updated", "modified", "created"):
        value = entry.get(name)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, (int, float)):
            return int(value * 1000)
    return None
