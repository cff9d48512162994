"""External blobs: the URIs that name them, and references to them among the bytes of other blobs."""

from __future__ import annotations

import posixpath
import re
import secrets
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pyarrow as pa

from delta_core.api import InvalidArgumentError, Storage
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import mask_of
from delta_plugins.lance.manifest import BasePath

__all__ = ["Reference", "Targets", "decode_reference", "encode_reference", "file_of_uri", "is_reference"]

#: A reference begins with these bytes, which are others in each process: no bytes of a blob begin so.
_MARK = secrets.token_bytes(32)
#: The base, the position and the size.
_HEAD = struct.Struct("<IQQ")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
#: Characters of the path of a ``file`` URI that stay as they are.
_PLAIN = "/%!$&'()*+,-.:;=@[]^_|~"
#: URIs of other stores have these alone: readers of the format take others in different ways.
_KEY = re.compile(r"[A-Za-z0-9+.-]+://[A-Za-z0-9._@-]*/[A-Za-z0-9._/=+@:,;!$&'()*~-]+", re.ASCII)


class Reference(NamedTuple):
    """Where an external blob is.

    Parameters
    ----------
    base : int
        The base path that the URI is relative to, 0 = none.
    uri : str
        The file.
    position, size : int
        The bytes in it; both 0 = all of the file.
    """

    base: int
    uri: str
    position: int = 0
    size: int = 0


def encode_reference(reference: Reference) -> bytes:
    """Return a reference as a value of a column of blobs, in place of the bytes of the blob.

    Rows that are written again have such values, in this process alone: expressions never see them, and the writer of a
    data file stores them as external blobs.
    """
    base, uri, position, size = reference
    return _MARK + _HEAD.pack(base, position, size) + uri.encode()


def is_reference(array: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which values of a column of blobs are references, bool[n]; null is none."""
    found = pc.starts_with(array, pattern=_MARK)
    return mask_of(found.fill_null(False) if array.null_count else found)


def decode_reference(value: bytes) -> Reference:
    """Return the reference that `encode_reference` encoded."""
    base, position, size = _HEAD.unpack_from(value, len(_MARK))
    return Reference(base, value[len(_MARK) + _HEAD.size :].decode(), position, size)


def file_of_uri(uri: str) -> str:
    """Return the path that a descriptor's URI names, as a storage takes it: those of ``file`` URIs are encoded."""
    scheme = _SCHEME.match(uri)
    if scheme is None or scheme[1].lower() != "file":
        return uri
    parts = urlsplit(uri)
    return f"file://{parts.netloc}{unquote(parts.path)}"


class Targets:
    """The URIs of external blobs that users pass, as a dataset stores them.

    Parameters
    ----------
    storage : Storage
        Of the dataset; it specifies which places are followed.
    bases : Mapping of int to BasePath
        The base paths of the dataset. A file below one that is no dataset is stored relative to it.
    """

    def __init__(self, storage: Storage, bases: Mapping[int, BasePath]) -> None:
        self.bases = bases
        self._storage = storage
        found = [(_folder(b.path), b.id) for b in bases.values() if not b.is_dataset_root]
        # the folder that is nearest to the file counts
        self._bases = sorted(found, key=lambda b: -len(b[0]))
        self._found: dict[str, tuple[int, str]] = {}

    def reference(self, uri: str, position: int | None, size: int | None, column: str) -> Reference:
        """Return the reference to a file, or to a part of it (both numbers or none).

        Raises
        ------
        InvalidArgumentError
            For a text that is no absolute URI, or of a form that readers of the format take in different ways; for
            one of both numbers, or a size of 0.
        ExternalPathError
            For a place that ``allow_external`` excludes.
        """
        if (position is None) != (size is None) or size == 0:
            raise InvalidArgumentError(
                f"Column {column} has a blob in {uri!r} with position={position} and size={size}: pass both, with a "
                "size of at least 1, or neither for the whole file."
            )
        if uri not in self._found:
            self._found[uri] = self._stored(uri, column)
        return Reference(*self._found[uri], position or 0, size or 0)

    def _stored(self, uri: str, column: str) -> tuple[int, str]:
        try:
            absolute = _normalized(uri)
        except ValueError as e:
            raise InvalidArgumentError(f"Column {column} has a blob in {uri!r}: {e}.") from None
        path = file_of_uri(absolute)
        # raises for places that are not followed, which could not be read
        self._storage.uri(path)
        for folder, base in self._bases:
            below = path.removeprefix("file://")
            if below.startswith(folder):
                return base, below[len(folder) :]
        return 0, absolute


def _folder(path: str) -> str:
    return file_of_uri(path).removeprefix("file://").rstrip("/") + "/"


def _normalized(uri: str) -> str:
    """Return a URI with the characters that it may have, and without segments that are dots."""
    scheme = _SCHEME.match(uri)
    if scheme is None and uri.startswith("/"):
        uri = "file://" + quote(uri, safe=_PLAIN.replace("%", ""))
    elif scheme is None:
        raise ValueError("expected an absolute URI, such as file:///folder/name or s3://bucket/key")
    elif "\\" in uri:
        raise ValueError("it has a backslash, which readers take for a slash; write it as %5C")
    parts = urlsplit(uri)
    if parts.query or parts.fragment or uri.endswith(("?", "#")):
        raise ValueError("it has a query or a fragment, expected the URI of a file alone")
    if parts.path.endswith("/") or not parts.path:
        raise ValueError("it names a folder, expected a file")
    if parts.scheme != "file":
        if not _KEY.fullmatch(uri) or any(p in (".", "..") for p in parts.path.split("/")):
            raise ValueError(
                "expected letters and digits of ASCII and ._/=+@:,;!$&'()*~- in the path; other characters and the "
                "segments '.' and '..' name different files for different readers"
            )
        return uri
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"it is a file of the host {parts.netloc!r}, expected one of this machine")
    path = posixpath.normpath("/" + quote(parts.path, safe=_PLAIN).lstrip("/"))
    return f"file://{path}"
