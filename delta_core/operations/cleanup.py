"""Metadata cleanup: delete files of the log that no version within the log's retention needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from delta_core.commit.upgrade import check_writable
from delta_core.errors import UnsupportedOperationError, VersionNotFoundError
from delta_core.log.checkpoint import CheckpointReader
from delta_core.log.listing import list_log
from delta_core.log.names import LOG_DIRECTORY, SIDECAR_DIRECTORY, STAGED_DIRECTORY, parse_name
from delta_core.log.segment import complete_checkpoints
from delta_core.plugins.catalog import allows
from delta_core.plugins.plans import Checkpoint, LogFile
from delta_core.protocol.properties import read_property
from delta_core.snapshot import Snapshot

__all__ = ["clean_log"]

_DAY_MS = 86_400_000
#: Which files go first: a checkpoint must not be gone while commits below it are there.
_ORDER = {"commit": 0, "crc": 0, "staged": 0, "compacted": 1, "checkpoint": 2}
#: So many files are deleted at a time, oldest first.
_WINDOW = 1000


def clean_log(base: Snapshot, *, dry_run: bool = False, clock: Callable[[], int] | None = None) -> list[str]:
    """Delete files of the log that are older than ``delta.logRetentionDuration``, as of midnight UTC.

    The newest complete checkpoint at or before the first version within the retention stays, with its commit and everything
    above it. Files go oldest first and commits before checkpoints, so that a run that was interrupted leaves the table readable.
    Checkpoints' sidecars go if no checkpoint that remains names them and they are older than the retention.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    dry_run : bool
        Whether the files are only returned.
    clock : function() -> int, optional
        Returns the time in ms since the epoch; the system's clock unless given.

    Returns
    -------
    list of str
        The files, from the folder of the log.

    Raises
    ------
    UnsupportedOperationError
        If ``delta.enableExpiredLogCleanup`` is false, or a catalog does not allow it.
    UnsupportedFeatureError, UnsupportedVersionError
        If the table needs a feature that no installed plugin provides.

    Protocol
    --------
    Metadata Cleanup
    """
    snapshot = base.latest()
    if not allows(snapshot.context.log.catalog, "cleanup"):
        raise UnsupportedOperationError(
            f"The catalog of {snapshot.uri} does not allow metadata cleanup; it maintains its tables itself.",
            operation="cleanup_metadata",
        )
    check_writable(snapshot.protocol, snapshot.registry)
    configuration = snapshot.state.configuration
    if not read_property(configuration, "delta.enableExpiredLogCleanup"):
        raise UnsupportedOperationError(
            f"The table property delta.enableExpiredLogCleanup of {snapshot.uri} is false: nothing was deleted. Set it to true to "
            "delete expired files of the log.",
            operation="cleanup_metadata",
        )
    now = time.time_ns() // 1_000_000 if clock is None else clock()
    retention: int = read_property(configuration, "delta.logRetentionDuration")
    oldest = (now - retention) // _DAY_MS * _DAY_MS
    files = list_log(snapshot.engine.storage).files
    first = _first_kept(snapshot, files, oldest)
    if first is None:
        return []
    expired = _expired(snapshot, files, first)
    if not dry_run:
        _delete(snapshot, [f.name for f in expired])
    gone = {f.name for f in expired}
    left = complete_checkpoints((f for f in files if f.name not in gone), set())
    sidecars = _unused_sidecars(snapshot, left, min(oldest, now // _DAY_MS * _DAY_MS - _DAY_MS))
    if not dry_run:
        _delete(snapshot, sidecars)
    return [*(f.name for f in expired), *sidecars]


def _first_kept(snapshot: Snapshot, files: Sequence[LogFile], oldest_ms: int) -> int | None:
    """Return the version of the checkpoint from which everything stays, None if there is none."""
    try:
        cutoff = snapshot.version_at(oldest_ms)
    except VersionNotFoundError:
        return None
    commits = {f.version for f in files if f.kind == "commit"}
    for checkpoint in reversed(complete_checkpoints(files, set())):
        version = checkpoint.version
        if version > cutoff or not all(v in commits for v in range(version, snapshot.version + 1)):
            continue
        limits = snapshot.plugins.collect("retention_limits", table=snapshot.state, cutoff=version)
        if all(limit >= version for limit in limits) and _is_readable(snapshot, version):
            return version
    return None


def _is_readable(snapshot: Snapshot, version: int) -> bool:
    """Whether the checkpoint of a version, with its sidecars, can be opened."""
    found = snapshot.context.read(version)
    _ = found.files.parts  # opens the checkpoint's files; one that can't be read is replaced by an older one
    used = found.segment.checkpoint
    return used is not None and used.version == version


def _expired(snapshot: Snapshot, files: Sequence[LogFile], first: int) -> list[LogFile]:
    """Return the files below the first checkpoint that stays, in the order in which they are deleted."""
    listed = snapshot.engine.storage.list_from(STAGED_DIRECTORY).names
    folder = STAGED_DIRECTORY.rpartition("/")[2]
    staged = [f for name in listed if (f := parse_name(f"{folder}/{name}")) is not None and f.version <= first]
    # a compacted file that begins at the checkpoint or below serves no version that remains
    below = [f for f in files if f.version < first or (f.kind == "compacted" and f.version <= first)]
    return sorted([*below, *staged], key=lambda f: (_ORDER[f.kind], f.version, f.name))


def _unused_sidecars(snapshot: Snapshot, checkpoints: Sequence[Checkpoint], oldest_ms: int) -> list[str]:
    """Return the sidecars that no checkpoint names, if they are old: those of a checkpoint in the making are young."""
    storage = snapshot.engine.storage
    listing = storage.list_from(SIDECAR_DIRECTORY)
    if not listing.names:
        return []
    used: set[str] = set()
    for checkpoint in checkpoints:
        paths = CheckpointReader(snapshot.engine.logs, checkpoint).sidecars().column("path").to_pylist()
        used.update(path.rpartition("/")[2] for path in paths)
    names = [n for n in listing.names if n not in used]
    times = dict(zip(listing.names, listing.modified_ms, strict=True)) if listing.modified_ms is not None else None
    if times is None:
        _, found = storage.find(pa.array([f"{SIDECAR_DIRECTORY}/{n}" for n in names], pa.string()))
        times = dict(zip(names, found.tolist(), strict=True))
    folder = SIDECAR_DIRECTORY.rpartition("/")[2]
    return [f"{folder}/{n}" for n in names if 0 < times[n] < oldest_ms]


def _delete(snapshot: Snapshot, names: Sequence[str]) -> None:
    for start in range(0, len(names), _WINDOW):
        paths = [f"{LOG_DIRECTORY}/{name}" for name in names[start : start + _WINDOW]]
        snapshot.engine.storage.delete_files(pa.array(paths, pa.string()))
