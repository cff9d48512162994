"""Schemes and local paths, and the errors of backends."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from delta_core.errors import AccessDeniedError, DeltaError, EngineError, ExternalPathError, InvalidArgumentError
from delta_core.runtime.patterns import lazy_pattern

if TYPE_CHECKING or sys.platform == "win32":
    from delta_core.storage.windows_paths import windows_path

__all__ = [
    "LINK",
    "LOCAL_SCHEMES",
    "StoreErrors",
    "absolute_path",
    "is_of_system",
    "local_root",
    "plain_path",
    "scheme_of",
    "store_error",
]

_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]+):")
#: A ``file:`` URI's host, if it has one, and its path.
_FILE = lazy_pattern(r"[A-Za-z]+:(?://([^/]*))?/*(.*)", re.DOTALL)
LOCAL_SCHEMES = ("", "file", "local")
#: The separator of the links of a chain of filesystems.
LINK = "::"
_OF_SYSTEM = frozenset(
    {errno.EAGAIN, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT}
)


def scheme_of(uri: str) -> str:
    """Return a URI's scheme in lower case, empty for a path.

    Parameters
    ----------
    uri : str
        A URI or a path.
    """
    match = _SCHEME.match(uri) if ":" in uri else None
    # one letter before the colon is a drive, not a scheme
    return match[1].lower() if match else ""


def plain_path(uri: str) -> str:
    """Return the path of a ``file:`` URI or of a plain path; URIs from users are percent-decoded.

    Raises
    ------
    InvalidArgumentError
        For the URI of another machine's file.
    """
    if scheme_of(uri) not in ("file", "local"):
        return uri
    from urllib.parse import unquote, urlsplit  # takes 3 ms of a first read

    parts = urlsplit(uri)
    if not _is_this_machine(parts.netloc):
        raise InvalidArgumentError(
            f"{uri!r} names a file of the host {parts.netloc!r}; expected a path, file:///path or file://localhost/path.",
            path=uri,
        )
    path = unquote(parts.path)
    return windows_path(path) if sys.platform == "win32" else path


def absolute_path(uri: str) -> str:
    """Return the path of a ``file:`` URI of the log, which is decoded already. Protocol: Add File (RFC 2396 URIs).

    Raises
    ------
    ExternalPathError
        For the URI of another machine's file.
    """
    host, path = _FILE.fullmatch(uri).groups()  # type: ignore[union-attr]  # fits every URI
    if not _is_this_machine(host or ""):
        raise ExternalPathError(
            f"{uri!r} lies on the host {host!r}, which this storage does not serve; file: URIs lead to files of this "
            "machine.",
            path=uri,
        )
    return f"/{path}"


def _is_this_machine(host: str) -> bool:
    return host.lower() in ("", "localhost")


def is_of_system(error: BaseException) -> bool:
    """Whether the system ran short of something or a device failed, so that the bytes of the file may be sound."""
    return isinstance(error, OSError) and error.errno in _OF_SYSTEM


def store_error(action: str, path: str, root: str, cause: BaseException) -> EngineError:
    """Return the error of a backend's failure; the caller chains the cause."""
    kind = AccessDeniedError if isinstance(cause, PermissionError) else EngineError
    return kind(f"Could not {action} {path!r} of {root}: {type(cause).__name__}: {cause}.", path=path)


class StoreErrors:
    """Turn what a backend raises inside the block into EngineError, what ``passed`` names excepted."""

    __slots__ = ("_action", "_passed", "_path", "_root")

    def __init__(self, action: str, path: str, root: str, passed: tuple[type[BaseException], ...] = ()) -> None:
        self._action = action
        self._path = path
        self._root = root
        self._passed = passed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None and isinstance(error, Exception) and not isinstance(error, (DeltaError, *self._passed)):
            raise store_error(self._action, self._path, self._root, error) from error


def local_root(uri: str) -> str:
    """Return the absolute path that a local path or URI represents.

    Raises
    ------
    EngineError
        For a relative path if the working directory is gone.
    InvalidArgumentError
        For a path that is no UTF-8.
    """
    path = plain_path(uri)
    try:
        found = os.path.abspath(os.path.expanduser(path))
        if sys.platform == "win32":
            found = windows_path(found)
    except FileNotFoundError as e:
        raise EngineError(
            f"The path {path!r} is relative, and the working directory is not there any more. Pass an absolute path, "
            "or change to a folder that exists.",
            path=path,
        ) from e
    try:
        found.encode()
    except UnicodeEncodeError as e:
        raise InvalidArgumentError(
            f"The path {found!a} is no UTF-8, in which logs spell paths and other readers look for them. Rename the "
            "folder.",
            path=found,
        ) from e
    return found
