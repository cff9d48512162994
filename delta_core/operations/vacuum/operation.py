"""Delete the files below a table's root that no version within the retention can reach.

First a plan is made: the files that are found, less those that are reachable or young. Then the plan runs: a commit
before it and one after it, as in delta-spark.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.records import WALKED_FILE, RangeRequest
from delta_core.errors import (
    CommitError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    MetadataChangedError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upkeep import check_upkeep
from delta_core.kernel.log.checksum import check_by_checksum
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.plugins.references import named_files
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, number_array, strings_of
from delta_core.operations.progress import VacuumProgress
from delta_core.operations.sweep.deletion import delete_swept
from delta_core.operations.sweep.found_files import FoundFiles
from delta_core.operations.sweep.listing import WINDOW, deletable, garbage
from delta_core.operations.sweep.paths import PathSet, odd_paths
from delta_core.operations.vacuum.places import CleanedPlaces, witness_of
from delta_core.operations.vacuum.plan import PlanFacts, VacuumPlan
from delta_core.operations.vacuum.reachable import (
    add_recent,
    add_version,
    commit_actions,
    commits_since,
    file_references,
    version_at,
)
from delta_core.runtime.arguments import check_number
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["VacuumOptions", "VacuumPlan", "Vacuumed", "plan_vacuum", "run_vacuum"]

_log = logging.getLogger(__name__)
_HOUR = 3_600_000
#: Where delta-spark notes which commits a vacuum covered.
_LAST_VACUUM = f"{LOG_DIRECTORY}/_last_vacuum_info"
_COVERED = "latestCommitVersionOutsideOfRetentionWindow"
#: By how much this machine's clock may be ahead of the store's.
_SKEW_MS = 300_000


class VacuumOptions(Struct, frozen=True):
    """The extent of a vacuum.

    Parameters
    ----------
    retention_hours : float, optional
        Files and tombstones that are younger stay; the table's ``delta.deletedFileRetentionDuration`` unless given.
    enforce_retention : bool
        Whether a shorter retention than the table's is rejected.
    lite : bool
        Whether the files come from the removes of the log, and no folder is listed.
    keep_versions : tuple of int
        Versions whose files stay.
    keep_for : tuple of Snapshot
        Other tables, such as shallow clones, whose files stay.
    inventory : pyarrow.Table, optional
        The files of the table's root, instead of a listing: ``path`` (absolute, or from the root; not encoded),
        ``size`` or ``length``, and ``modification_time`` or ``modificationTime`` (timestamp, or ms since the epoch).
    commit : Mapping
        Arguments of `Transaction.commit`.
    clock : function() -> int, optional
        Returns the time in ms since the epoch; the system's clock unless given.
    progress : function(VacuumProgress), optional
        Called from time to time while files are deleted.
    records : "deletions", "always" or "never"
        Whether commits begin and end the vacuum: if there is something to delete, in any case, or never.
    """

    retention_hours: float | None = None
    enforce_retention: bool = True
    lite: bool = False
    keep_versions: tuple[int, ...] = ()
    keep_for: tuple[Snapshot, ...] = ()
    inventory: pa.Table | None = None
    commit: Mapping[str, Any] = {}
    clock: Callable[[], int] | None = None
    progress: Callable[[VacuumProgress], None] | None = None
    records: Literal["deletions", "always", "never"] = "deletions"

    @property
    def num_commits(self) -> int:
        """The commits before the first file is deleted."""
        return int(self.records != "never")

    def now_ms(self) -> int:
        """Return the time."""
        return time.time_ns() // 1_000_000 if self.clock is None else self.clock()


class Vacuumed(Struct, frozen=True):
    """The result of a vacuum.

    Parameters
    ----------
    snapshot : Snapshot
        The table after the commit that ends it; as it was if there was nothing to delete.
    num_files, num_folders : int
        Files and empty folders that were deleted.
    """

    snapshot: Snapshot
    num_files: int
    num_folders: int


# --- planning ------------------------------------------------------------------------------


def plan_vacuum(base: Snapshot, options: VacuumOptions) -> VacuumPlan:
    """Find the files that a vacuum deletes; changes nothing.

    A file stays if a live file, a tombstone within the retention, a deletion vector of either, a change file of a
    commit within the retention or a version that is to be kept names it, if it was modified within the retention, or if
    it is hidden: its name, or that of one of its folders, begins with an underscore or a dot, and the folder is neither
    one of a partition nor ``_change_data``. Folders that contain a table of their own stay, as does what symbolic links
    lead to.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    options : VacuumOptions
        The extent of the deletion.

    Raises
    ------
    InvalidArgumentError
        If the retention is negative, or shorter than the table's and that is enforced.
    UnsupportedFeatureError, UnsupportedVersionError
        If the table needs a feature that no installed plugin provides: what its files are is not known then.
    UnsupportedOperationError
        If a catalog does not allow it, or if the log does not name all files that were removed since the last vacuum.
    VersionNotFoundError
        If a version that is to be kept can't be built any more.
    LogError
        If the checksum of the latest version reports other files than its log has.

    Notes
    -----
    Takes 8 bytes for each reachable file; the files of the plan are in a temporary file if they are many.
    """
    snapshot = base.latest()
    check_upkeep(snapshot, "vacuum")
    check_by_checksum(snapshot)  # what a damaged log lost would count as garbage
    configured: int = read_property(snapshot.state.configuration, "delta.deletedFileRetentionDuration")
    retention = _retention_ms(options, configured)
    cutoff = options.now_ms() - (configured if retention is None else retention)
    facts = PlanFacts(
        snapshot.metadata.id,
        snapshot.version,
        cutoff,
        retention,
        configured,
        options.enforce_retention,
        options.lite,
        options.keep_versions,
        tuple(s.uri for s in options.keep_for),
    )
    places = CleanedPlaces(snapshot)
    reachable = _reachable(snapshot, facts, options.keep_for)
    covered = None
    if options.inventory is not None:
        found = _chosen(_from_inventory(snapshot, options.inventory, places), reachable, places, cutoff)
    elif options.lite:
        named, covered = _from_log(snapshot, cutoff, places)
        found = _chosen(named, reachable, places, cutoff)
    else:
        found, covered = (
            garbage(snapshot.engine, reachable, places, cutoff, _witness(snapshot)),
            version_at(snapshot, cutoff),
        )
    writer = FoundFiles()
    for batch in found:
        writer.add(batch)
    if places.reserved:
        writer, all_files = FoundFiles(), writer
        for batch in all_files.batches():
            writer.add(batch.filter(bool_array(~places.reserves(batch.column("path")))))
    # what is kept for others is garbage again later: the next vacuum has to look at these commits again
    kept = options.keep_versions or options.keep_for
    facts = replace(
        facts,
        covered=None if kept else covered,
        num_files=writer.num_files,
        num_bytes=writer.num_bytes,
        num_folders=places.num_folders,
    )
    return VacuumPlan(facts, writer, tuple(e for e in places.empty if not places.reserves(strings_of([e]))[0]))


def _chosen(
    found: Iterator[pa.RecordBatch], reachable: PathSet, places: CleanedPlaces, cutoff: int
) -> Iterator[pa.RecordBatch]:
    return (deletable(batch, reachable, places, cutoff) for batch in found)


def _retention_ms(options: VacuumOptions, configured: int) -> int | None:
    hours = options.retention_hours
    if hours is None:
        return None
    check_number("retention_hours", hours, 0, what="a number", kinds=(int, float))
    if hours >= 1e12:
        raise InvalidArgumentError(f"Found retention_hours={hours!r}, expected hours below 1e12.", value=hours)
    retention = round(hours * _HOUR)
    if options.enforce_retention and retention < configured:
        raise InvalidArgumentError(
            f"Found retention_hours={hours}, expected at least {-(-configured // _HOUR)}, the table's "
            "delta.deletedFileRetentionDuration: readers of older versions and writers that have not committed yet may "
            "need younger files. If there are none, pass enforce_retention_duration=False (on the command line "
            "--no-retention-check, in a session of Spark the setting "
            "spark.databricks.delta.retentionDurationCheck.enabled=false).",
            value=hours,
        )
    return retention


def _reachable(snapshot: Snapshot, facts: PlanFacts, keep_for: Sequence[Snapshot]) -> PathSet:
    found = PathSet()
    add_version(found, snapshot, facts.cutoff_ms)
    listed = snapshot.context.log.listed()
    commits = [f for f in listed if f.kind in ("commit", "staged") and f.version <= snapshot.version]
    # change files are in no version's state, checkpoints may have dropped tombstones by a shorter retention than
    # today's, and compacted files may be all that is left of commits
    recent = commits_since(snapshot, facts.cutoff_ms, [*commits, *_in_place_of_commits(listed, commits)])
    add_recent(found, snapshot, recent, removes=True)
    for version in facts.keep_versions:
        add_version(found, snapshot.at(version), None)
        add_recent(found, snapshot, [f for f in commits if f.version == version], removes=False)
    for other in keep_for:
        add_version(found, other, 0)
        add_recent(found, other, other.context.log.commit_files(), removes=True)
    return found


def _in_place_of_commits(files: Sequence[LogFile], commits: Sequence[LogFile]) -> list[LogFile]:
    """Return the compacted files of commits that are not there any more."""
    there = {f.version for f in commits}
    return [f for f in files if f.kind == "compacted" and not there.issuperset(range(f.version, f.end_version + 1))]


def _from_log(snapshot: Snapshot, cutoff: int, places: CleanedPlaces) -> tuple[Iterator[pa.RecordBatch], int | None]:
    """Return the files that commits before a time removed, since the last vacuum, and the last of these commits."""
    last = version_at(snapshot, cutoff)
    if last is None:
        return iter(()), None
    commits = [f for f in snapshot.context.log.commit_files() if f.version <= last]
    covered = _last_covered(snapshot)
    start = 0 if covered is None else covered + 1
    if commits and commits[0].version > start:
        done = "no vacuum is on record" if covered is None else f"the last vacuum covered version {covered}"
        raise UnsupportedOperationError(
            f"The log of {snapshot.uri} begins at version {commits[0].version}, and {done}: files that were removed in "
            "between are not in the log any more. Run a full vacuum, which lists the table's folders (full=True; on "
            "the command line --full).",
            version=commits[0].version,
        )
    return _removed(snapshot, [f for f in commits if f.version >= start], cutoff, places), last


def _last_covered(snapshot: Snapshot) -> int | None:
    """Return the last commit that a vacuum covered, None if that is not on record."""
    try:
        (text,) = snapshot.engine.storage.read([RangeRequest(_LAST_VACUUM)])
        found = json.loads(bytes(text)).get(_COVERED)
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _removed(
    snapshot: Snapshot, commits: Sequence[LogFile], cutoff: int, places: CleanedPlaces
) -> Iterator[pa.RecordBatch]:
    references = file_references(snapshot)
    seen = PathSet()
    for actions in commit_actions(snapshot, commits):
        expired = pc.less(pc.fill_null(actions.removes.column("deletionTimestamp"), 0), cutoff)
        removes = pc.filter(actions.removes, expired)
        named = [strings_of(decode_paths(t.column("path"))) for t in (removes, actions.cdcs)]
        for reference in references:
            if reference.column in removes.column_names:
                named += [named_files(reference, chunk) for chunk in removes.column(reference.column).chunks]
        paths = pc.drop_null(pc.unique(pa.concat_arrays(named)))
        odd = odd_paths(paths)
        if odd is not None:
            paths = pc.filter(paths, pc.invert(odd))
        paths = pc.filter(paths, bool_array(~(seen.contains(paths) | places.are_skipped(paths))))
        seen.add(paths)
        for start in range(0, len(paths), WINDOW):
            yield _found(snapshot, paths.slice(start, WINDOW))


def _found(snapshot: Snapshot, paths: pa.Array) -> pa.RecordBatch:
    """Return the files that are there."""
    sizes, times = snapshot.engine.storage.find(paths)
    columns = [paths, number_array(sizes), number_array(times)]
    return pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE).filter(bool_array((sizes >= 0) & (times >= 0)))


def _from_inventory(snapshot: Snapshot, inventory: pa.Table, places: CleanedPlaces) -> Iterator[pa.RecordBatch]:
    """Yield the files of an inventory that are below the table's root, in folders that are cleaned."""
    paths = _inventory_column(inventory, ("path",), pa.string())
    sizes = _inventory_column(inventory, ("size", "length"), pa.int64())
    times = _inventory_column(inventory, ("modification_time", "modificationTime", "modified_ms"), pa.int64())
    table = pa.Table.from_arrays([paths, sizes, times], schema=WALKED_FILE)
    folder = next((n for n in ("is_dir", "isDir") if n in inventory.column_names), None)
    if folder is not None:
        table = table.filter(pc.invert(pc.fill_null(inventory.column(folder), False)))
    root = snapshot.engine.storage.uri("").rstrip("/") + "/"
    prefixes = [root, f"file://{root}", f"file:{root}"] if root.startswith("/") else [root]
    for batch in table.to_batches(max_chunksize=WINDOW):
        names = batch.column("path")
        for prefix in prefixes:
            inside = pc.starts_with(names, prefix)
            names = pc.if_else(inside, pc.utf8_slice_codeunits(names, len(prefix)), names)
        columns = [names, batch.column("size"), batch.column("modified_ms")]
        found = pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE).filter(pc.is_valid(names))
        odd = odd_paths(found.column("path"))
        plain = found if odd is None else found.filter(pc.invert(odd))
        yield plain.filter(bool_array(~places.are_skipped(plain.column("path"))))


def _inventory_column(inventory: pa.Table, names: Sequence[str], kind: pa.DataType) -> pa.ChunkedArray:
    name = next((n for n in names if n in inventory.column_names), None)
    if name is None:
        raise InvalidArgumentError(
            f"The inventory has the columns {inventory.column_names}; expected path, size and modification_time."
        )
    column = inventory.column(name)
    try:
        if pa.types.is_timestamp(column.type):
            column = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
        return pc.cast(column, kind)
    except pa.ArrowException as e:
        raise InvalidArgumentError(
            f"The inventory's column {name} is of type {column.type}, expected {kind}: {e}."
        ) from e


# --- running -------------------------------------------------------------------------------


@shows_progress
def run_vacuum(base: Snapshot, plan: VacuumPlan, options: VacuumOptions) -> Vacuumed:
    """Delete the files of a plan, between two commits that record it; by default nothing to delete commits nothing.

    If the table changed since the plan was made, files that have become reachable stay. A run that was interrupted is
    finished by running the plan again, or by another vacuum: files that are gone are no error.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    plan : VacuumPlan
        The files.
    options : VacuumOptions
        ``keep_for``, ``commit``, ``clock``, ``progress`` and ``records``; all else is as it was planned.

    Raises
    ------
    MetadataChangedError
        If the plan is one of another table.
    EngineError
        If this machine's clock is ahead of the store's, or if files can't be deleted; others of the plan may be deleted
        by then.
    CommitError
        If the commit before it fails; nothing was deleted.
    """
    snapshot = base.latest()
    check_upkeep(snapshot, "vacuum")
    facts = plan.facts
    if snapshot.metadata.id != facts.table_id:
        raise MetadataChangedError(
            f"The plan was made for a table of the id {facts.table_id}; that of {snapshot.uri} is "
            f"{snapshot.metadata.id}. Nothing was deleted. Make another plan.",
            version=snapshot.version,
        )
    is_empty = not plan.num_files and not plan.empty_folders
    if is_empty and options.records != "always":
        _note_covered(snapshot, facts)
        return Vacuumed(snapshot, 0, 0)
    parameters: dict[str, Any] = {
        "retentionCheckEnabled": facts.enforced,
        "defaultRetentionMillis": facts.configured_ms,
    }
    if facts.retention_ms is not None:
        parameters["specifiedRetentionMillis"] = facts.retention_ms
    metrics = {"numFilesToDelete": plan.num_files, "sizeOfDataToDelete": plan.num_bytes}
    snapshot = _commit(snapshot, "VACUUM START", parameters, metrics, options)
    deleted = folders = 0
    try:
        if options.clock is None and not is_empty:
            _check_clock(snapshot, options)
        reachable = None
        if snapshot.version != facts.version + options.num_commits:
            reachable = _reachable(snapshot, facts, options.keep_for)
        deleted = delete_swept(
            snapshot.engine, plan.batches(), _witness(snapshot), reachable, _reported(plan, options.progress)
        )
        folders = snapshot.engine.storage.delete_folders(plan.empty_folders)
    except BaseException:
        with suppress(DeltaError, OSError):
            _commit(snapshot.latest(), "VACUUM END", {"status": "FAILED"}, {}, options)
        raise
    _note_covered(snapshot, facts)
    metrics = {"numDeletedFiles": deleted + folders, "numVacuumedDirectories": facts.num_folders}
    try:
        snapshot = _commit(snapshot.latest(), "VACUUM END", {"status": "COMPLETED"}, metrics, options)
    except CommitError as e:  # the files are deleted, whatever becomes of the record
        _log.warning("The files of %s were deleted; the commit VACUUM END failed: %s", snapshot.uri, e)
    return Vacuumed(snapshot, deleted, folders)


def _witness(snapshot: Snapshot) -> str | None:
    """Return the file that other machines have to find, if there are any."""
    return None if snapshot.engine.spread is None else witness_of(snapshot.engine.storage)


def _reported(plan: VacuumPlan, progress: Callable[[VacuumProgress], None] | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(VacuumProgress(done, plan.num_files))


def _commit(
    base: Snapshot, operation: str, parameters: Mapping[str, Any], metrics: Mapping[str, int], options: VacuumOptions
) -> Snapshot:
    """Commit what records the vacuum, if it is recorded."""
    if not options.num_commits:
        return base
    transaction = Transaction(base.context, base, operation, parameters)
    transaction.metrics.update(metrics)
    return transaction.commit(**{"clock": options.clock, **options.commit}).snapshot


def _check_clock(snapshot: Snapshot, options: VacuumOptions) -> None:
    """Reject a clock that is ahead of the store's, by a file that was just written: young files would look old.

    It is the commit that begins the vacuum, or else a file of its own, which is deleted.
    """
    storage, is_recorded = snapshot.engine.storage, options.num_commits > 0
    path = f"{LOG_DIRECTORY}/{snapshot.segment.commits[-1].name if is_recorded else f'_clock_{uuid.uuid4()}.tmp'}"
    try:
        if not is_recorded:
            storage.put(path, b"")
        ((_, modified),) = storage.stat([path])
    except FileNotFoundError:
        return
    finally:
        if not is_recorded:
            with suppress(DeltaError, OSError):
                storage.delete([path])
    ahead = time.time_ns() // 1_000_000 - modified
    if modified and ahead > _SKEW_MS:
        raise EngineError(
            f"This machine's clock is {ahead // 1000} seconds ahead of the times that the store of {snapshot.uri} "
            "records: files that are younger than the retention would be deleted. Nothing was deleted. Set the clock "
            "right.",
            path=snapshot.uri,
        )


def _note_covered(snapshot: Snapshot, facts: PlanFacts) -> None:
    """Note which commits the vacuum covered, for the next one that is lite, where delta-spark does."""
    if facts.covered is None:
        return
    try:
        snapshot.engine.storage.put(_LAST_VACUUM, json.dumps({_COVERED: facts.covered}).encode())
    except (EngineError, OSError) as e:
        _log.warning("The record of the vacuum of %s could not be written: %s", snapshot.uri, e)
