"""Names of data files: unique, in directories that report the partition or nothing at all."""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

from delta_core.runtime.patterns import lazy_pattern

__all__ = [
    "CHANGE_DIRECTORY",
    "encode_path",
    "file_name",
    "is_folder",
    "local_uri",
    "partition_directory",
    "random_prefix",
]

CHANGE_DIRECTORY = "_change_data"
#: The text of null in a directory.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
#: The characters that Hive escapes in a partition directory, beside control characters.
_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in (*map(chr, range(32)), *"\"#%'*/:=?\\{[]^\x7f")}
#: The characters that have to be percent-encoded in a path.
_NOT_IN_PATHS = lazy_pattern(r"[^A-Za-z0-9/=\-_.~!$&'()*+,;:@]+")
#: A folder that every store can have, that no reader takes for hidden, and that is spelled alike in paths and URIs.
_FOLDER = lazy_pattern(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._=@+-]{0,198}[A-Za-z0-9_=@+-])?(?:/(?!\Z)|\Z))+")
_LETTERS = string.ascii_letters + string.digits
#: Directories longer than file systems take are cut: the log, not the directory, specifies the value.
_MAX_NAME_BYTES = 200
_EXTENSIONS = {"GZIP": ".gz", "NONE": "", "UNCOMPRESSED": "", "LZ4_RAW": ".lz4raw"}


def local_uri(place: str) -> str:
    """Return the ``file:`` URI of an absolute path of this machine, not encoded; a URI as it is.

    As Hadoop spells it: delta-spark compares the text with the one that it makes itself.
    """
    return f"file:{place}" if place.startswith("/") else f"file:/{place}" if place[1:2] == ":" else place


def file_name(number: int, compression: str, kind: str = "part") -> str:
    """Return a name that no other file has, e.g. ``part-00000-<uuid>-c000.snappy.parquet``."""
    return f"{kind}-{number:05d}-{_random_uuid()}-c000{_extension(compression)}.parquet"


@lru_cache(maxsize=16)
def _extension(compression: str) -> str:
    return _EXTENSIONS.get(compression.upper(), f".{compression.lower()}")


def _random_uuid() -> str:
    """Return the text of a random UUID; `uuid.uuid4` takes four times as long to make the text of an object."""
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


def random_prefix(length: int = 2) -> str:
    """Return the random directory that files go into if their path must contain nothing."""
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def is_folder(path: str) -> bool:
    """Whether new files may lie in a folder that a feature names."""
    return _FOLDER.fullmatch(path) is not None


def partition_directory(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the directory of a partition, escaped as Hive does: ``a=1/b=x%2Fy``; empty without columns."""
    pairs = zip(columns, values, strict=True)
    return "/".join([_cut(f"{_escape(name)}={_escape(value) if value else HIVE_NULL}") for name, value in pairs])


def _escape(text: str) -> str:
    return text.translate(_ESCAPED)


def _cut(name: str) -> str:
    encoded = name.encode()
    if len(encoded) <= _MAX_NAME_BYTES:
        return name
    return encoded[:_MAX_NAME_BYTES].decode(errors="ignore").rstrip("%")


def encode_path(path: str) -> str:
    """Return a path as the log spells it: percent-encoded. Protocol: Add File (paths are URIs by RFC 2396)."""
    return _NOT_IN_PATHS.sub(lambda found: quote(found[0], safe=""), path)
