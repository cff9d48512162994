"""Frozen records between the steps of a scan: which log files, what is requested, what is read."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from delta_core.expressions.ast import Expression
from delta_core.schema.fields import Path

__all__ = ["Checkpoint", "LogFile", "LogSegment", "ReadRequest"]


class LogFile(Struct, frozen=True, order=True, gc=False):
    """A file under ``_delta_log``; light for the garbage collector, because a log can hold very many.

    Parameters
    ----------
    name : str
        Relative to ``_delta_log``: ``00000000000000000010.json``, ``_staged_commits/..``.
    kind : str
        commit, compacted, checkpoint, crc or staged.
    version, end_version : int
        The first and last version it covers; equal but for compacted files.
    part, parts : int
        Of a multi-part checkpoint; 0 otherwise.
    uuid : str
        Of a uuid-named checkpoint or staged commit; empty otherwise.
    size : int or None
        Bytes; None if the listing does not report.
    modified_ms : int or None
        Modification time, ms since the epoch.
    data : bytes or None
        The content itself, for a commit that a catalog hands over inline.
    tag : str
        Its entity tag; empty if the listing does not report.
    """

    name: str
    kind: Literal["commit", "compacted", "checkpoint", "crc", "staged", "other"]
    version: int
    end_version: int
    part: int = 0
    parts: int = 0
    uuid: str = ""
    format: str = ""
    size: int | None = None
    modified_ms: int | None = None
    data: bytes | None = None
    tag: str = ""


class Checkpoint(Struct, frozen=True):
    """The files of one complete checkpoint.

    Parameters
    ----------
    kind : str
        single (classic name, V1 or V2 by content), multipart, or uuid.
    embedded : dict or None
        The parts of a V2 checkpoint that ``_last_checkpoint`` embeds (its non-file actions and sidecars), if it
        belongs to this very file.
    """

    version: int
    kind: Literal["single", "multipart", "uuid"]
    files: tuple[LogFile, ...]
    embedded: dict[str, Any] | None = None


class LogSegment(Struct, frozen=True):
    """Which log files make a version.

    Parameters
    ----------
    deltas : tuple of LogFile
        Commits and compacted files above the checkpoint, oldest first, covering every version once.
    commits : tuple of LogFile
        The commits that the listing saw (staged ones instead of published ones), oldest first: what
        history and change feed read.
    notes : tuple of str
        Why this segment was chosen, a sentence each, for ``delta-core log``.
    """

    version: int
    checkpoint: Checkpoint | None
    deltas: tuple[LogFile, ...]
    commits: tuple[LogFile, ...]
    checksum: LogFile | None = None
    notes: tuple[str, ...] = ()


class ReadRequest(Struct, frozen=True):
    """The request of a scan, as hooks see it.

    Parameters
    ----------
    columns : tuple of Path or None
        Logical paths; None for all.
    metadata : tuple of str
        Names of the metadata columns requested.
    predicate : Expression or None
        The predicate, bound to the table's schema.
    purpose : str
        ``rows``, or ``changes`` when a change feed reads files that are not a snapshot's.
    constants : tuple of str
        Names of the output columns that the caller attaches per file.
    """

    columns: tuple[Path, ...] | None = None
    metadata: tuple[str, ...] = ()
    predicate: Expression | None = None
    purpose: Literal["rows", "changes"] = "rows"
    constants: tuple[str, ...] = ()
