"""Metadata cleanup: delete files of the log that no version within the log's retention needs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from delta_core.errors import CheckpointError, LogError, UnsupportedOperationError, VersionNotFoundError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.base import Base, TableBase
from delta_core.kernel.commit.upkeep import check_upkeep
from delta_core.kernel.log.checkpoint import CheckpointReader
from delta_core.kernel.log.checksum import check_by_checksum
from delta_core.kernel.log.listing import list_log
from delta_core.kernel.log.names import LOG_DIRECTORY, SIDECAR_DIRECTORY, STAGED_DIRECTORY, parse_name
from delta_core.kernel.log.segment import choose_segment, complete_checkpoints
from delta_core.kernel.plugins.catalog import allows
from delta_core.kernel.plugins.plans import Checkpoint, LogFile
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import strings_of

__all__ = ["clean_after_checkpoint", "clean_log", "truncate_log"]

_log = logging.getLogger(__name__)
PROPERTY = "delta.enableExpiredLogCleanup"

_DAY_MS = 86_400_000
#: Which files go first: a checkpoint must not be gone while commits below it are there.
_ORDER = {"commit": 0, "crc": 0, "staged": 0, "compacted": 1, "checkpoint": 2}
#: Files that are deleted at a time, oldest first.
_WINDOW = 1000
#: The oldest time that is kept, by location and id of the tables that this process cleaned last.
_cleaned: dict[tuple[str, str], int] = {}
_MOST_TABLES = 256
Clock = Callable[[], int]
Progress = Callable[[int, int], None]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def clean_log(
    base: Base, *, dry_run: bool = False, clock: Clock = _now_ms, progress: Progress | None = None
) -> list[str]:
    """Delete files of the log that are older than ``delta.logRetentionDuration``, as of midnight UTC.

    The newest complete checkpoint at or before the first version within the retention stays, with its commit and
    everything above it; one that differs from its checksum or its commits in the number of files or bytes is no ground
    to delete anything. Files go oldest first and commits before checkpoints, so that a run that was interrupted leaves
    the table readable. Checkpoints' sidecars go if no checkpoint that remains names them and they are older than the
    retention.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    dry_run : bool
        Whether the files are only returned.
    clock : function() -> int, optional
        Returns the time in ms since the epoch; the system's clock unless given.
    progress : function(int, int), optional
        Called with the number of files that were deleted, and of those that are to be, of a kind.

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
    check_upkeep(snapshot, "cleanup")
    if not read_property(snapshot.state.configuration, PROPERTY):
        raise UnsupportedOperationError(
            f"The table property {PROPERTY} of {snapshot.uri} is false: nothing was deleted. Set it to true to delete "
            "expired files of the log.",
            operation="cleanup_metadata",
        )
    now_ms = clock()
    return _clean(snapshot, _oldest_kept(snapshot, now_ms), now_ms, dry_run, progress)


def truncate_log(base: Base, retention_ms: int, *, clock: Clock = _now_ms) -> list[str]:
    """Delete files of the log that are older than a retention, to the millisecond, whatever the table's properties.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    retention_ms : int
        In place of ``delta.logRetentionDuration``, in ms.
    clock : function() -> int, optional
        Returns the time in ms since the epoch.

    Returns
    -------
    list of str
        The files, from the folder of the log.

    Raises
    ------
    UnsupportedOperationError
        If a catalog does not allow it.
    UnsupportedFeatureError, UnsupportedVersionError
        If the table needs a feature that no installed plugin provides.

    Notes
    -----
    Follows the rules of `clean_log` otherwise: what is deleted, and in which order.
    """
    snapshot = base.latest()
    check_upkeep(snapshot, "cleanup")
    now_ms = clock()
    return _clean(snapshot, now_ms - retention_ms, now_ms, dry_run=False)


def clean_after_checkpoint(snapshot: TableBase, requested: bool | None, clock: Clock = _now_ms) -> None:
    """Delete expired files of the log after a commit wrote a checkpoint, once for each day that expires.

    Parameters
    ----------
    snapshot : Snapshot
        The version that was committed; newer ones are not looked for.
    requested : bool or None
        The caller's choice; None: the property ``delta.enableExpiredLogCleanup``, true by default.
    clock : function() -> int, optional
        Returns the time in ms since the epoch.

    Notes
    -----
    Lists nothing if the table was created within the retention, or this process has deleted what expires today.
    """
    wanted = read_property(snapshot.state.configuration, PROPERTY) if requested is None else requested
    if not wanted or not allows(snapshot.context.log.catalog, "cleanup"):
        return
    now_ms = clock()
    oldest, created = _oldest_kept(snapshot, now_ms), snapshot.metadata.created_time
    key = (snapshot.uri, snapshot.metadata.id)
    if (created is not None and created >= oldest) or _cleaned.get(key) == oldest:
        return
    gone = _clean(snapshot, oldest, now_ms, dry_run=False)
    while len(_cleaned) >= _MOST_TABLES:
        _cleaned.pop(next(iter(_cleaned)), None)
    _cleaned[key] = oldest
    if gone:
        _log.info("Deleted %d expired files of the log of %s", len(gone), shown_uri(snapshot.uri))


def _clean(snapshot: TableBase, oldest: int, now_ms: int, dry_run: bool, progress: Progress | None = None) -> list[str]:
    files = list_log(snapshot.engine.storage).files
    first = _first_kept(snapshot, files, oldest)
    if first is None:
        return []
    expired = _expired(snapshot, files, first)
    if not dry_run:
        _delete(snapshot, [f.name for f in expired], progress)
    gone = {f.name for f in expired}
    left = complete_checkpoints((f for f in files if f.name not in gone), set())
    sidecars = _unused_sidecars(snapshot, left, min(oldest, now_ms // _DAY_MS * _DAY_MS - _DAY_MS))
    if not dry_run:
        _delete(snapshot, sidecars, progress)
    return [*(f.name for f in expired), *sidecars]


def _oldest_kept(snapshot: TableBase, now_ms: int) -> int:
    """Return the time from which everything stays, a midnight in UTC; ms since the epoch."""
    retention: int = read_property(snapshot.state.configuration, "delta.logRetentionDuration")
    return (now_ms - retention) // _DAY_MS * _DAY_MS


def _first_kept(snapshot: TableBase, files: Sequence[LogFile], oldest_ms: int) -> int | None:
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
        if all(limit >= version for limit in limits) and _is_sound(snapshot, files, version):
            return version
    return None


def _is_sound(snapshot: TableBase, files: Sequence[LogFile], version: int) -> bool:
    """Whether the checkpoint of a version can be read, and has the files that its checksum and its commits report."""
    found = snapshot.context.read(version)
    numbers = _numbers(found)  # a checkpoint that can't be read is replaced by an older one
    used = found.segment.checkpoint
    if used is None or used.version != version:
        return False
    try:
        check_by_checksum(found)
    except LogError as e:
        _log.warning("Files of the log below version %d of %s stay: %s", version, shown_uri(snapshot.uri), e)
        return False
    try:
        others = [f for f in files if f.kind != "checkpoint" or f.version < version]
        replayed = _numbers(snapshot.context.read_segment(choose_segment(others, version)))
    except (VersionNotFoundError, LogError, CheckpointError):
        return True  # the commits alone make no version any more
    if numbers != replayed:
        _log.warning(
            "Files of the log below version %d of %s stay: its checkpoint has %d files of %d bytes, the commits result "
            "in %d of %d. Call verify().",
            version,
            shown_uri(snapshot.uri),
            *numbers,
            *replayed,
        )
    return numbers == replayed


def _numbers(snapshot: TableBase) -> tuple[int, int]:
    sizes = snapshot.files.columns(["size"]).column(0)
    return len(sizes), int(pc.sum(sizes).as_py() or 0)


def _expired(snapshot: TableBase, files: Sequence[LogFile], first: int) -> list[LogFile]:
    """Return the files below the first checkpoint that stays, in the order in which they are deleted."""
    listed = snapshot.engine.storage.list_from(STAGED_DIRECTORY).names
    folder = STAGED_DIRECTORY.rpartition("/")[2]
    staged = [f for name in listed if (f := parse_name(f"{folder}/{name}")) is not None and f.version <= first]
    # a compacted file that begins at the checkpoint or below serves no version that remains
    below = [f for f in files if f.version < first or (f.kind == "compacted" and f.version <= first)]
    return sorted([*below, *staged], key=lambda f: (_ORDER[f.kind], f.version, f.name))


def _unused_sidecars(snapshot: TableBase, checkpoints: Sequence[Checkpoint], oldest_ms: int) -> list[str]:
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
        _, found = storage.find(strings_of([f"{SIDECAR_DIRECTORY}/{n}" for n in names]))
        times = dict(zip(names, found.tolist(), strict=True))
    folder = SIDECAR_DIRECTORY.rpartition("/")[2]
    return [f"{folder}/{n}" for n in names if 0 < times[n] < oldest_ms]


def _delete(snapshot: TableBase, names: Sequence[str], progress: Progress | None) -> None:
    for start in range(0, len(names), _WINDOW):
        paths = [f"{LOG_DIRECTORY}/{name}" for name in names[start : start + _WINDOW]]
        snapshot.engine.storage.delete_files(strings_of(paths))
        if progress is not None:
            progress(start + len(paths), len(names))
