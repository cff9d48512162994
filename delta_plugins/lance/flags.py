"""Feature flags: what they mean for a reader and for a writer. Protocol: Manifest, fields 9 and 10."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from delta_core.api import CorruptTableError, UnsupportedFeatureError

__all__ = [
    "CHANGED_INDICES",
    "CONFIG",
    "DELETIONS",
    "FLAGS",
    "Flag",
    "LINEAGE_COLUMNS",
    "MANAGED_BLOBS",
    "MIXED_VERSIONS",
    "NO_TRANSACTION_FILES",
    "STABLE_ROW_IDS",
    "STAYING",
    "UNIQUE_FIELD_IDS",
    "check_readable",
    "check_writable",
    "unknown_files",
]

DELETIONS = 1
STABLE_ROW_IDS = 2
EARLIER_V2 = 4
CONFIG = 8
NO_TRANSACTION_FILES = 32
MIXED_VERSIONS = 256
LINEAGE_COLUMNS = 2048
MANAGED_BLOBS = 16384
UNIQUE_FIELD_IDS = 32768
#: Flags of writers alone that stay when they are set, as `MIXED_VERSIONS` does; the others follow from what a version
#: has.
STAYING = NO_TRANSACTION_FILES | UNIQUE_FIELD_IDS
#: Indices have further columns, or addresses of rows that were moved since.
CHANGED_INDICES = 128 | 1024

#: The effect of a flag here: the dataset is written, read only, or rejected.
Use = Literal["write", "read", "reject"]


class Flag(Struct, frozen=True):
    """A bit of the flags.

    Parameters
    ----------
    bit : int
        Its value.
    meaning : str
        The property of a dataset with it.
    use : "write", "read" or "reject"
        The treatment of such a dataset here.
    is_paired : bool
        Whether it is set for readers and writers alike.
    """

    bit: int
    meaning: str
    use: Use
    is_paired: bool = True


FLAGS = (
    Flag(DELETIONS, "deletion files", "write"),
    Flag(STABLE_ROW_IDS, "stable row ids", "write"),
    Flag(EARLIER_V2, "data files of version 2, as earlier writers marked them", "write", False),
    Flag(CONFIG, "a configuration", "write", False),
    Flag(16, "several base paths", "read"),
    Flag(NO_TRANSACTION_FILES, "transactions without files", "write", False),
    Flag(64, "data overlay files", "reject"),
    Flag(128, "indices with covering columns", "read", False),
    Flag(MIXED_VERSIONS, "data files of different versions", "write"),
    Flag(512, "a fragment reuse index with stable row ids", "reject"),
    Flag(1024, "a tagged fragment reuse index", "read"),
    Flag(LINEAGE_COLUMNS, "row lineage in hidden columns", "write"),
    Flag(4096, "a tree of fragments", "reject"),
    Flag(8192, "covering columns that are independent of the fields of an index", "reject"),
    Flag(MANAGED_BLOBS, "managed blobs", "read"),
    Flag(UNIQUE_FIELD_IDS, "field ids that are never used again", "write", False),
    Flag(65536, "zone seeds", "reject"),
    Flag(131072, "metadata of objects", "read", False),
)
_KNOWN = sum(f.bit for f in FLAGS)


def check_readable(reader: int, writer: int, path: str) -> None:
    """Reject a dataset that can't be read; both words of a manifest, whose path is part of the error.

    Raises
    ------
    UnsupportedFeatureError
        For a flag of readers that is not known, or of something that is not read; the message names it.
    CorruptTableError
        For a flag that is set for readers or for writers alone, but belongs to both.
    """
    for flag in FLAGS:
        if flag.use == "reject" and (reader | writer) & flag.bit:
            raise _unsupported(flag.bit, flag.meaning, path, "read")
        if flag.is_paired and bool(reader & flag.bit) != bool(writer & flag.bit):
            who = "readers" if reader & flag.bit else "writers"
            raise CorruptTableError(
                f"Manifest {path} is damaged: flag {flag.bit} ({flag.meaning}) is set for {who} alone, expected it for "
                "readers and writers. Restore the file from a copy.",
                path=path,
                flag=flag.bit,
            )
    if unknown := reader & ~_KNOWN:
        raise _unsupported(unknown & -unknown, "not known", path, "read")


def check_writable(reader: int, writer: int, path: str) -> None:
    """Reject a dataset that can't be changed; arguments as of `check_readable`, which is called too.

    Raises
    ------
    UnsupportedFeatureError
        For a flag that is not known, or of something that is not written; the message names it.
    CorruptTableError
        As `check_readable`.
    """
    check_readable(reader, writer, path)
    for flag in FLAGS:
        if flag.use == "read" and (reader | writer) & flag.bit:
            raise _unsupported(flag.bit, flag.meaning, path, "written")
    if unknown := writer & ~_KNOWN:
        raise _unsupported(unknown & -unknown, "not known", path, "written")


def unknown_files(writer: int) -> list[int]:
    """Return those flags of writers that make it unknown which files a version needs."""
    found = (writer & ~_KNOWN) | (writer & MANAGED_BLOBS)
    return [1 << i for i in range(found.bit_length()) if found >> i & 1]


def _unsupported(bit: int, meaning: str, path: str, done: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Manifest {path} has feature flag {bit} ({meaning}): such a dataset can't be {done}. Use a version of this "
        "library that supports it, or the library that wrote the dataset.",
        path=path,
        flag=bit,
        feature=meaning,
    )
