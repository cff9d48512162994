"""The grammar of file names under ``_delta_log``. Protocol: Delta Log Entries, Checkpoints."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.kernel.plugins.plans import LogFile
from delta_core.runtime.patterns import lazy_pattern

__all__ = [
    "LAST_CHECKPOINT",
    "LOG_DIRECTORY",
    "MOST_VERSION",
    "SIDECAR_DIRECTORY",
    "STAGED_DIRECTORY",
    "checkpoint_name",
    "checkpoint_prefix",
    "checksum_name",
    "commit_name",
    "compacted_name",
    "is_unique",
    "parse_name",
    "parse_names",
]

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_delta_log/_sidecars"
STAGED_DIRECTORY = "_delta_log/_staged_commits"
LAST_CHECKPOINT = "_last_checkpoint"

#: Versions are of 64 bits.
MOST_VERSION = (1 << 63) - 1
_MOST_DIGITS = f"{MOST_VERSION:020d}"

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_UNIQUE = lazy_pattern(_UUID)
_CHECKPOINT = lazy_pattern(rf"(\d{{20}})\.checkpoint(?:\.(\d{{10}})\.(\d{{10}})|\.({_UUID}))?\.(parquet|json)\Z")
_COMPACTED = lazy_pattern(r"(\d{20})\.(\d{20})\.compacted\.json\Z")
#: A commit of a catalog has a folder of its own; in the log itself such a name means nothing.
_STAGED = lazy_pattern(rf"_staged_commits/(\d{{20}})\.({_UUID})\.json\Z")


def is_unique(path: str) -> bool:
    """Whether a file's name has a UUID, so that no other content ever takes its place.

    Parameters
    ----------
    path : str
        The path or name of the file.
    """
    return _UNIQUE.search(path.rpartition("/")[2]) is not None


def commit_name(version: int) -> str:
    """Return the name of a version's commit.

    Parameters
    ----------
    version : int
        The version.
    """
    return f"{version:020d}.json"


def checkpoint_name(version: int, unique: str = "", form: str = "parquet") -> str:
    """Return the classic name of a version's checkpoint, or a unique one.

    Parameters
    ----------
    version : int
        The version.
    unique : str, optional
        A UUID; without it the classic name is returned.
    form : str
        The ending of a unique name: ``parquet`` or ``json``.
    """
    return f"{version:020d}.checkpoint.{unique + '.' if unique else ''}{form}"


def compacted_name(start: int, end: int) -> str:
    """Return the name of the file with the actions of a range of commits.

    Parameters
    ----------
    start, end : int
        The first and the last version.
    """
    return f"{start:020d}.{end:020d}.compacted.json"


def checksum_name(version: int) -> str:
    """Return the name of a version's checksum.

    Parameters
    ----------
    version : int
        The version.
    """
    return f"{version:020d}.crc"


def checkpoint_prefix(version: int) -> str:
    """Return the text with which the names of a version's files begin.

    Parameters
    ----------
    version : int
        The version.
    """
    return f"{version:020d}."


def parse_name(name: str, size: int | None = None, modified_ms: int | None = None) -> LogFile | None:
    """Return what a name specifies, None for a name that is not of the log, or of a version above 64 bits.

    Parameters
    ----------
    name : str
        The name, without its folder.
    size : int, optional
        Bytes of the file.
    modified_ms : int, optional
        When it was written last, in milliseconds since the epoch.
    """
    found = _parse_name(name, size, modified_ms)
    return found if found is None or found.end_version <= MOST_VERSION else None


def _parse_name(name: str, size: int | None, modified_ms: int | None) -> LogFile | None:
    if len(name) == 25 and name.endswith(".json") and name[:20].isdecimal() and name.isascii():
        version = int(name[:20])
        return LogFile(name, "commit", version, version, size=size, modified_ms=modified_ms)
    if name.endswith(".crc") and len(name) == 24 and name[:20].isdecimal():
        version = int(name[:20])
        return LogFile(name, "crc", version, version, size=size, modified_ms=modified_ms)
    if match := _CHECKPOINT.match(name):
        version, part, parts, uuid, form = (
            int(match[1]),
            int(match[2] or 0),
            int(match[3] or 0),
            match[4] or "",
            match[5],
        )
        if form == "json" and not uuid or parts and not 1 <= part <= parts:
            return None
        return LogFile(name, "checkpoint", version, version, part, parts, uuid, form, size, modified_ms)
    if match := _COMPACTED.match(name):
        start, end = int(match[1]), int(match[2])
        return LogFile(name, "compacted", start, end, size=size, modified_ms=modified_ms) if end > start else None
    if match := _STAGED.match(name):
        version = int(match[1])
        return LogFile(name, "staged", version, version, uuid=match[2], size=size, modified_ms=modified_ms)
    return None


def parse_names(
    names: Iterable[str], sizes: Iterable[int] | None = None, modified_ms: Iterable[int] | None = None
) -> list[LogFile]:
    """Return the files of the log among the names of a listing, in its order.

    Parameters
    ----------
    names : iterable of str
        The names, without their folder.
    sizes : iterable of int, optional
        Bytes of each file.
    modified_ms : iterable of int, optional
        When each was written last, in milliseconds since the epoch.
    """
    if sizes is not None and modified_ms is not None:
        return [f for n, s, m in zip(names, sizes, modified_ms, strict=True) if (f := parse_name(n, s, m)) is not None]
    out: list[LogFile] = []
    for name in names:
        digits = name[:20]
        # a log can hold very many commits and little else
        if name[20:] == ".json" and digits.isdecimal() and digits.isascii() and digits <= _MOST_DIGITS:
            version = int(digits)
            out.append(LogFile(name, "commit", version, version))
        elif (found := parse_name(name)) is not None:
            out.append(found)
    return out
