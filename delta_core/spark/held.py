"""Snapshots that earlier reads opened: the same version is planned again from what they loaded of its log."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from delta_core.errors import DeltaError
from delta_core.log.names import LOG_DIRECTORY
from delta_core.snapshot import Snapshot

__all__ = ["SETTING", "held_snapshot"]

#: The session's setting: how many bytes of log columns are kept for later reads; 0 keeps nothing.
SETTING = "spark.delta_core.heldSnapshots.maxBytes"
MOST_BYTES = 256 << 20
#: Tables of which a snapshot is kept; the one that was read the longest time ago goes first.
MOST_TABLES = 8
#: A version of more log files is opened anew each time.
MOST_FILES = 1_000

#: The size and modification time of log files, by name.
Stamps = dict[str, tuple[int | None, int | None]]


class Key(NamedTuple):
    """What has to be the same for a snapshot to serve another read, beside the files of its log."""

    uri: str
    timezone: str
    options: str


class _Held(NamedTuple):
    snapshot: Snapshot
    stamps: Stamps


_held: dict[Key, _Held] = {}
_lock = threading.Lock()


def held_snapshot(spark: Any, opened: Snapshot, storage_options: Mapping[str, Any] | None) -> Snapshot:
    """Return a snapshot of the version that was just opened which knows what earlier reads loaded of its log.

    An earlier one serves where the log files that it was built from are the first of those of this version, each with
    its size and modification time; later commits are read on top of it. It is kept for the next read.
    """
    most = int(spark.conf.get(SETTING, str(MOST_BYTES)))
    stamps = _stamps(opened) if most > 0 else None
    if stamps is None:
        return opened
    key = Key(opened.uri, opened.timezone, repr(sorted((storage_options or {}).items())))
    with _lock:
        earlier = _held.get(key)
    found = opened if earlier is None else _advanced(earlier, opened, stamps)
    with _lock:
        _held.pop(key, None)
        _held[key] = _Held(found, stamps)
        while _held and (len(_held) > MOST_TABLES or sum(h.snapshot.nbytes for h in _held.values()) > most):
            del _held[next(iter(_held))]
    return found


def _stamps(snapshot: Snapshot) -> Stamps | None:
    """Return each log file's size and modification time, which tell its content as its name alone does not."""
    segment = snapshot.segment
    files = (*segment.deltas, *(segment.checkpoint.files if segment.checkpoint is not None else ()))
    if len(files) > MOST_FILES or any(f.data is not None for f in files):
        return None
    unknown = [f.name for f in files if f.size is None or f.modified_ms is None]
    try:
        found = snapshot.engine.storage.stat([f"{LOG_DIRECTORY}/{name}" for name in unknown])
    except DeltaError:  # cleaned up since it was listed: what the files said is read already
        return None
    return {f.name: (f.size, f.modified_ms) for f in files} | dict(zip(unknown, found, strict=True))


def _advanced(earlier: _Held, opened: Snapshot, stamps: Stamps) -> Snapshot:
    """Return the opened version built on an earlier snapshot; as it was opened where that does not lead there."""
    old, new = earlier.snapshot.segment, opened.segment
    leads = (
        earlier.snapshot.registry is opened.registry
        and earlier.snapshot.metadata.id == opened.metadata.id
        and old.checkpoint == new.checkpoint
        and old.deltas == new.deltas[: len(old.deltas)]
        and earlier.stamps.items() <= stamps.items()
    )
    if not leads:
        return opened
    later = new.deltas[len(old.deltas) :]
    if not later:
        return earlier.snapshot
    versions = list(range(earlier.snapshot.version + 1, opened.version + 1))
    is_run = all(f.kind == "commit" for f in later) and [f.version for f in later] == versions
    return earlier.snapshot.with_commits(later) if is_run else opened
