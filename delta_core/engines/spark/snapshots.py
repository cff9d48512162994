"""Snapshots that earlier reads opened: the same version is planned again from what they loaded of its log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from delta_core.engines.spark.store_credentials import check_credentials
from delta_core.errors import DeltaError
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.plugins.plans import LogSegment
from delta_core.kernel.snapshot import Snapshot, TableContext, open_context

__all__ = ["SETTING", "identity", "open_latest"]

#: The session's setting: how many bytes of log columns are kept for later reads; 0 keeps nothing.
SETTING = "spark.delta_core.heldSnapshots.maxBytes"
MOST_BYTES = 256 << 20
#: Tables with a cached snapshot; the one that was read the longest time ago goes first.
MOST_TABLES = 8
#: A version of more log files is opened again each time.
MOST_FILES = 1_000

#: The facts that distinguish a log file from another one of its name, by name.
Marks = Mapping[str, tuple[int | None, ...]]


class Stamps(NamedTuple):
    """Which log files a version was built from.

    Parameters
    ----------
    marks : Marks
    is_exact : bool
        Whether no other files can have the same marks. The times of stores, and of some mounted disks, are whole
        seconds, in which a table can be made again.
    """

    marks: Marks
    is_exact: bool


class SnapshotKey(NamedTuple):
    """The key of a snapshot that serves several reads, beside the files of its log."""

    root: str
    uri: str
    timezone: str
    options: str


class _CachedSnapshot(NamedTuple):
    snapshot: Snapshot
    stamps: Stamps


_cached: dict[SnapshotKey, _CachedSnapshot] = {}
_lock = threading.Lock()


def open_latest(
    spark: Any,
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    timezone: str = "UTC",
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> Snapshot:
    """Open the latest version of a table, with what earlier reads loaded of its log; arguments as of `open_snapshot`.

    An earlier snapshot serves if the log files that it was built from are the very ones that the latest version begins
    with; later commits are read on top of it. It is kept for the next read.
    """
    context = open_context(uri, storage_options, timezone=timezone, allow_external=allow_external)
    check_credentials(spark, context.log.engine.storage)
    most = int(spark.conf.get(SETTING, str(MOST_BYTES)))
    segment = context.log.segment()
    stamps = _stamps(context, segment) if most > 0 else None
    if stamps is None:
        return context.read(segment=segment)
    options = repr((sorted((storage_options or {}).items()), allow_external))
    key = SnapshotKey(context.log.engine.storage.root, uri, timezone, options)
    with _lock:
        earlier = _cached.get(key)
    found = None if earlier is None else _advanced(earlier, context, segment, stamps)
    found = found or context.read(segment=segment)
    with _lock:
        _cached.pop(key, None)
        _cached[key] = _CachedSnapshot(found, stamps)
        while _cached and (len(_cached) > MOST_TABLES or sum(h.snapshot.nbytes for h in _cached.values()) > most):
            del _cached[next(iter(_cached))]
    return found


def identity(
    snapshot: Snapshot,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> str:
    """Return a text that is the same for snapshots of one version of one table, opened with the same options.

    A table that was made again has another id; that of a copy in its place shows in the newest log file's times.
    """
    segment, storage = snapshot.segment, snapshot.engine.storage
    files = (*segment.commits, *segment.deltas, *(segment.checkpoint.files if segment.checkpoint is not None else ()))
    newest = next(f for f in files if f.end_version == snapshot.version)
    mark: tuple[int | None, ...] = (newest.size, newest.modified_ms)
    local = storage.local_path(f"{LOG_DIRECTORY}/{newest.name}")
    if local is not None:
        with contextlib.suppress(OSError):  # cleaned up since it was listed
            mark = _local_mark(local)
    options = (sorted((storage_options or {}).items()), allow_external)
    return repr(
        (storage.uri(""), snapshot.metadata.id, snapshot.version, snapshot.timezone, options, newest.name, mark)
    )


def _stamps(context: TableContext, segment: LogSegment) -> Stamps | None:
    """Return what reports the content of the log files, as their names alone do not; None if nothing does."""
    files = (*segment.deltas, *(segment.checkpoint.files if segment.checkpoint is not None else ()))
    if len(files) > MOST_FILES or any(f.data is not None for f in files):
        return None
    storage = context.log.engine.storage
    local = [storage.local_path(f"{LOG_DIRECTORY}/{f.name}") for f in files]
    try:
        if None not in local:
            marks = [_local_mark(path) for path in local if path is not None]
            # the time of a change can't be set; a fine clock distinguishes each from any other
            is_exact = any(changed_ns % 1_000_000 for _, _, changed_ns, _ in marks)
            return Stamps({f.name: m for f, m in zip(files, marks, strict=True)}, is_exact)
        unknown = [f.name for f in files if f.size is None or f.modified_ms is None]
        times = storage.stat([f"{LOG_DIRECTORY}/{name}" for name in unknown])
    except (DeltaError, OSError):  # cleaned up since it was listed
        return None
    return Stamps({f.name: (f.size, f.modified_ms) for f in files} | dict(zip(unknown, times, strict=True)), False)


def _local_mark(path: str) -> tuple[int, int, int, int]:
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _advanced(earlier: _CachedSnapshot, context: TableContext, segment: LogSegment, stamps: Stamps) -> Snapshot | None:
    """Return the segment's version built on an earlier snapshot; None if that does not lead there."""
    snapshot = earlier.snapshot
    old = snapshot.segment
    leads = (
        snapshot.registry is context.registry
        and old.checkpoint == segment.checkpoint
        and old.deltas == segment.deltas[: len(old.deltas)]
        and earlier.stamps.marks.items() <= stamps.marks.items()
    )
    if not leads:
        return None
    later = segment.deltas[len(old.deltas) :]
    versions = list(range(snapshot.version + 1, segment.version + 1))
    if [f.version for f in later] != versions or any(f.kind != "commit" for f in later):
        return None
    if not stamps.is_exact:
        opened = context.read(segment=segment)
        if opened.metadata.id != snapshot.metadata.id:
            return opened
    return snapshot.with_commits(later) if later else snapshot
