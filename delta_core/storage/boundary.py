"""The boundary around a table: which files outside its root the log may name, and whose credentials they are read with.

A log is written by others. Its paths may be absolute, as those of shallow clones are, or climb with ``..``. Files are
followed on the table's own kind of store; other stores, and other hosts that can't be read without credentials, only if
the caller allows them. Nothing outside the root is ever written or deleted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn

from msgspec import Struct

from delta_core.errors import EngineError, ExternalPathError, InvalidArgumentError
from delta_core.runtime.patterns import lazy_pattern
from delta_core.storage import parts as storage_parts
from delta_core.storage.places import LOCAL_SCHEMES, absolute_path, local_root, scheme_of

if TYPE_CHECKING or sys.platform == "win32":
    from delta_core.storage.windows_paths import host_of, is_odd, windows_path

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = [
    "AllowExternal",
    "Boundary",
    "CrossStoreStorage",
    "Opener",
    "Place",
    "Renewal",
    "are_plain",
    "has_dots",
    "is_plain",
]

#: Prefixes of places outside a table's root; False: not even those on its own store.
AllowExternal = Sequence[str] | Literal[False] | None
Opener = Callable[[str, "dict[str, Any]"], "Storage"]
#: Returns the options that are valid now, such as credentials that expire; the same object until they change.
Renewal = Callable[[], Mapping[str, Any]]

_URI = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]+:(?://([^/]*))?(.*)", re.DOTALL)
_DOTS = lazy_pattern(r"(?:^|/)\.\.(?:/|$)")
_AZURE_HOST = lazy_pattern(r"([^.]+)\.(?:dfs|blob)\.core\.windows\.net")
#: Dots that a server may read as such: these stores' paths are sent as URLs.
_ENCODED_DOTS = lazy_pattern(r"(?:^|/)(?:\.|%2e){2}(?:/|$)", re.IGNORECASE)
#: No part of a host's or a bucket's name.
_ODD_AUTHORITY = lazy_pattern(r"[\x00-\x20\x7f?#\\]|::")
#: Schemes that name one kind of store.
_KINDS = {"": "file", "local": "file", "s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}
#: Bytes of a file that is copied through this process, at a time.
_COPIED_AT_ONCE = 8 << 20
#: Kinds whose paths are names, never parts of a URL that is decoded again.
_KEY_KINDS = frozenset({"file", "s3", "gs", "az", "memory", "chain"})
#: Kinds of store whose other buckets are read without credentials.
_OPEN_KINDS = frozenset({"s3", "gs", "memory"})


class Place(Struct, frozen=True):
    """Where a file lies.

    Parameters
    ----------
    kind : str
        The kind of store, one for all schemes that name it.
    authority : str
        Host, bucket or container.
    path : str
        From the store's root, ``..`` resolved.
    """

    kind: str
    authority: str
    path: str

    def is_below(self, other: Place) -> bool:
        """Whether it is another place, or lies below it."""
        if (self.kind, self.authority) != (other.kind, other.authority):
            return False
        return self.path == other.path or self.path.startswith(other.path.rstrip("/") + "/")


def is_plain(path: str) -> bool:
    """Whether a path is certainly relative and stays below its root."""
    if sys.platform == "win32" and "\\" in path:
        return False
    return ":" not in path and ".." not in path and path[:1] != "/" and "\0" not in path


def are_plain(paths: Sequence[str]) -> bool:
    """Whether all of these paths are plain, by a few searches in the text of all of them."""
    text = "\n".join(paths)
    if sys.platform == "win32" and "\\" in text:
        return False
    return not (":" in text or ".." in text or "\0" in text or text[:1] == "/" or "\n/" in text)


def has_dots(path: str) -> bool:
    """Whether a path has a segment ``..``."""
    return ".." in path and _DOTS.search(path) is not None


class Boundary:
    """The rule that specifies which of a table's paths are followed.

    Parameters
    ----------
    root : str
        The table's URI, or an absolute path.
    options : Mapping
        The storage options: they return which account an Azure URI without one means.
    allow_external : sequence of str, False or None
        Prefixes that are followed beside the table's own kind of store; False: nothing outside the root is.
    chained : bool
        Whether the root is a chain of filesystems: there is no reporting what lies outside it.
    """

    def __init__(
        self, root: str, options: Mapping[str, Any], allow_external: AllowExternal = None, chained: bool = False
    ) -> None:
        self._given = root
        self._only_root = chained or allow_external is False
        self._account = ""
        if chained:
            self.root: Place = Place("chain", root, "/root")
        else:
            kind, authority, path = _split(root)
            if kind == "az":
                self._account = _account(authority) or str(
                    storage_parts.fsspec_options("az", options).get("account_name") or ""
                )
                authority = self._with_account(authority)
            self.root = Place(kind, authority, path.rstrip("/") or "/")
        self._prefixes = [self._prefix(p) for p in _checked(allow_external)]

    def place(self, path: str) -> Place:
        """Return where a path of the log leads.

        Raises
        ------
        ExternalPathError
            For a path that climbs out of its store.
        EngineError
            For a path with a null character.
        """
        if "\0" in path:  # compiled code would read the name only as far as that
            raise EngineError(f"{path!r}, which the table at {self._given} names, holds a null character.", path=path)
        if not scheme_of(path):
            kind, authority = self.root.kind, self.root.authority
            below = path if path.startswith("/") else f"{self.root.path.rstrip('/')}/{path}"
        else:
            kind, authority, below = _split(path)
            # libraries disagree about where such a host ends, and what it is
            if authority != self.root.authority and _ODD_AUTHORITY.search(authority):
                self._reject(path, "its host is no name of a host or bucket")
            if below[:1] not in ("", "/") and kind in (self.root.kind, *_OPEN_KINDS):
                self._reject(path, "it is no URI of the form scheme://host/path")
            if kind == "az":
                authority = self._with_account(authority)
        if kind == "file":
            authority, below = self._local(path if not scheme_of(path) else below, path)
        elif has_dots(below) or "/./" in below:
            below = self._resolved(below, path)
        if kind not in _KEY_KINDS and _ENCODED_DOTS.search(below):
            self._reject(path, "a server may take its encoded dots for '..'")
        return Place(kind, authority, below)

    def _local(self, below: str, path: str) -> tuple[str, str]:
        """Return the host, empty but for shares on Windows, and the absolute path of a file."""
        if sys.platform != "win32":
            below = below if below.startswith("/") else f"{self.root.path.rstrip('/')}/{below}"
            return "", os.path.normpath("/" + below.lstrip("/"))
        below = windows_path(below, self.root.path if self.root.kind == "file" else "")
        if is_odd(below):
            raise ExternalPathError(
                f"The table at {self._given} names {path!r}, which Windows reads as another file: a part of it has a "
                "colon, or ends with a dot or a space. Read the table on another system.",
                path=path,
            )
        return host_of(below), below

    def check(self, place: Place, path: str) -> None:
        """Raise ExternalPathError for a place that is not followed."""
        if place.is_below(self.root) or self._is_allowed(place):
            return
        if self._only_root:
            why = "only files below the root are read"
        elif place.kind != self.root.kind:
            why = f"only files of the table's own kind of store ({self.root.kind}) are read"
        elif place.authority != self.root.authority and place.kind not in _OPEN_KINDS:
            why = "another host or container is not sent the table's credentials"
        else:
            return
        self._reject(
            path,
            f"{why}. If you trust the table's writers, name a prefix of it in allow_external (on the command line: "
            "--allow-external)",
        )

    def is_plain(self, path: str) -> bool:
        """Whether a path is certainly below the root, and spelled as it is used."""
        return is_plain(path) and ("%" not in path or self.root.kind in _KEY_KINDS)

    def is_own(self, place: Place) -> bool:
        """Whether a place lies on the table's host and in its bucket."""
        return (place.kind, place.authority) == (self.root.kind, self.root.authority)

    def gets_credentials(self, place: Place) -> bool:
        """Whether a place may be read with the caller's credentials; those of this machine and memory have none."""
        return self.is_own(place) or place.kind == "memory" or self._is_allowed(place)

    def check_inside(self, path: str) -> None:
        """Raise ExternalPathError for a path out of the root: nothing is written or deleted there."""
        if not self.is_plain(path) and not self.place(path).is_below(self.root):
            self._reject(path, "nothing outside the table's root is written or deleted")

    def reject_credentials(self, path: str) -> NoReturn:
        """Raise ExternalPathError for a place that another engine would read with credentials of its own."""
        self._reject(
            path,
            "another engine would read it with credentials of its own. If you trust the table's writers, name a prefix "
            "of it in allow_external",
        )

    def _reject(self, path: str, why: str) -> NoReturn:
        raise ExternalPathError(
            f"The table at {self._given} names {path!r}, which lies outside the table: {why}.", path=path
        )

    def _is_allowed(self, place: Place) -> bool:
        return any(place.is_below(p) if p.authority or p.path else p.kind == place.kind for p in self._prefixes)

    def _prefix(self, text: str) -> Place:
        """Return the place of a prefix; a scheme alone has neither authority nor path."""
        if scheme_of(text) in LOCAL_SCHEMES:
            root = local_root(text)
            return Place("file", host_of(root) if sys.platform == "win32" else "", root)
        kind, authority, path = _split(text)
        if kind == "az" and authority:
            authority = self._with_account(authority)
        return Place(kind, authority, path.rstrip("/"))

    def _with_account(self, authority: str) -> str:
        container = authority.partition("@")[0]
        return f"{container}@{_account(authority) or self._account}"

    def _resolved(self, below: str, path: str) -> str:
        """Return a path without ``.`` and ``..``; other segments, empty ones too, are names of a store."""
        parts: list[str] = []
        for part in below.split("/")[1:]:
            if part == "..":
                if not parts:
                    self._reject(path, "it climbs above the root of its store")
                parts.pop()
            elif part != ".":
                parts.append(part)
        return "/" + "/".join(parts)


def _split(uri: str) -> tuple[str, str, str]:
    """Return kind, authority and path of an absolute URI or path."""
    scheme = scheme_of(uri)
    kind = _KINDS.get(scheme, scheme)
    if not scheme:
        return kind, host_of(uri) if sys.platform == "win32" else "", uri
    if kind == "file":
        return kind, "", absolute_path(uri)
    authority, path = _URI.fullmatch(uri).groups()  # type: ignore[union-attr]  # fits whatever has a scheme
    return kind, authority or "", path


def _account(authority: str) -> str:
    """Return the account that an Azure URI names as ``container@host``; another cloud's by its whole host."""
    host = authority.partition("@")[2]
    match = _AZURE_HOST.fullmatch(host)
    return match[1] if match else host


def _checked(allow_external: AllowExternal) -> list[str]:
    if allow_external is None or allow_external is False:
        return []
    found = [allow_external] if isinstance(allow_external, str) else allow_external
    if (
        isinstance(allow_external, str)
        or not isinstance(found, Sequence)
        or not all(isinstance(p, str) and p for p in found)
    ):
        raise InvalidArgumentError(
            f"Found allow_external={allow_external!r}, expected a list of prefixes such as ['s3://bucket/shared'], or "
            "False to read nothing outside the table's root."
        )
    if chained := next((p for p in found if "::" in p), None):
        raise InvalidArgumentError(f"Found {chained!r} in allow_external: chained URIs are never followed from a log.")
    return list(found)


class CrossStoreStorage:
    """The base of every storage: the boundary, and files on other stores, which are read with storages of these.

    Parameters
    ----------
    options : dict
        As the user returned them.
    opener : function(uri, options), optional
        Makes the storage of another store.
    """

    root: str
    #: The `CommitSource` of a table whose name a catalog resolved, if that catalog decides the versions.
    commits: Any = None

    def __init__(
        self,
        root: str,
        options: dict[str, Any],
        opener: Opener | None,
        allow_external: AllowExternal = None,
        *,
        chained: bool = False,
    ) -> None:
        self.root = root
        #: How messages name the store.
        self.shown = root
        self.options = options
        self._opener = opener
        self._allow_external = allow_external
        self._boundary = Boundary(root, options, allow_external, chained)
        self._storages: dict[tuple[str, bool], Storage] = {}

    def _own_place(self, path: str) -> Place | None:
        """Return where a path leads on this store, None if another one has it; raises ExternalPathError."""
        place = self._boundary.place(path)
        self._boundary.check(place, path)
        return place if self._boundary.is_own(place) else None

    def _foreign_uri(self, path: str) -> str:
        """Return the URI of another store's file as it is, but for ``..``, which others may resolve in other ways."""
        if not has_dots(path):
            return path
        place, scheme = self._boundary.place(path), scheme_of(path)
        return place.path if scheme in LOCAL_SCHEMES else f"{scheme}://{_split(path)[1]}{place.path}"

    def copy(self, source: Storage, path: str, target: str) -> None:
        """Copy a file of a storage, a part in memory at a time.

        Raises
        ------
        FileNotFoundError
            If it is not there.
        """
        with source.open(path) as reader, self.put_stream(target) as writer:
            while part := reader.read(_COPIED_AT_ONCE):
                writer.write(part)

    def put_stream(self, path: str, *, replace: bool = True) -> AbstractContextManager[IO[bytes]]:
        """Write a file piece by piece."""
        raise NotImplementedError

    def _other(self, path: str) -> Storage:
        place = self._boundary.place(path)
        self._boundary.check(place, path)
        is_trusted = self._boundary.gets_credentials(place)
        scheme = scheme_of(path)
        store = "/" if scheme in LOCAL_SCHEMES else f"{scheme}://{_split(path)[1]}"
        found = self._storages.get((store, is_trusted))
        if found is None:
            if self._opener is None:
                raise ExternalPathError(
                    f"{path!r} lies on another store, which this storage does not serve.", path=path
                )
            options: dict[str, Any] = {}
            if place.kind == self._boundary.root.kind:
                options = self.options if is_trusted else storage_parts.without_credentials(place.kind, self.options)
            found = self._opener(store, options)
            if not is_trusted:
                found.shown = (  # type: ignore[attr-defined]  # ours all have it
                    f"{store}, which is read without credentials since it is not the table's own; name it in "
                    "allow_external to use the table's"
                )
            self._storages[store, is_trusted] = found
        return found
