"""Paths of Windows, spelled with ``/``: drives, shares of other machines, and names that Windows reads as others."""

from __future__ import annotations

import ntpath

from delta_core.runtime.patterns import lazy_pattern

__all__ = ["host_of", "is_odd", "windows_path"]

#: A drive, with the slash before it that a URI has.
_DRIVE = lazy_pattern(r"/?([A-Za-z]):(?=[/\\]|$)")
#: A name that ends with a dot or a space, which Windows leaves out, or the name of a stream of a file.
_ODD = lazy_pattern(r"[^/]*[^/.][. ]+(?:/|$)|\.{3,}(?:/|$)|[. ]* (?:/|$)|[^/]*:")


def windows_path(path: str, root: str = "") -> str:
    """Return a path with ``/`` as its separator, ``..`` resolved, and the drive in upper case.

    Parameters
    ----------
    path : str
        A path, or that of a ``file:`` URI.
    root : str
        The absolute path on whose drive a path without one lies, and below which a relative one lies.
    """
    path = path.replace("\\", "/")
    drive = _DRIVE.match(path)
    if drive:
        path = f"{drive[1].upper()}:/{path[drive.end() :].lstrip('/')}"
    elif root and not path.startswith("//"):
        path = ntpath.splitdrive(root)[0] + path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    return ntpath.normpath(path).replace("\\", "/")


def host_of(path: str) -> str:
    """Return the machine on whose share a path lies, empty for this one; devices (``//./``) have one too."""
    return path.split("/", 3)[2].lower() if path.startswith("//") else ""


def is_odd(path: str) -> bool:
    """Return whether Windows may read a path, as `windows_path` returns it, as that of another file or of a device."""
    drive = _DRIVE.match(path)
    return _ODD.search(path, drive.end() if drive else 0) is not None
