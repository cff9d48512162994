"""Repair what verifying a table finds, where it is certain what is right; each mending is a step with its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Storage
from delta_core.errors import (
    CheckpointError,
    IrregularFileError,
    LogError,
    ProtocolError,
    SchemaError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.kernel.commit.intents import READ_TO_REMOVE, added_again, read_columns, removed_files
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upgrade import check_writable
from delta_core.kernel.log.checkpoint import CheckpointReader
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.log.checksum import write_checksum
from delta_core.kernel.log.hint import format_hint
from delta_core.kernel.log.names import LAST_CHECKPOINT, LOG_DIRECTORY
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.log.segment import complete_checkpoints
from delta_core.kernel.plugins.checks import Finding
from delta_core.kernel.plugins.plans import Checkpoint, LogFile
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, is_valid, strings_of
from delta_core.operations.sweep.paths import PathSet
from delta_core.operations.vacuum.places import CleanedPlaces
from delta_core.operations.vacuum.reachable import add_recent, add_version, commit_actions
from delta_core.operations.verify.checkpoints import STATE, open_version
from delta_core.operations.verify.checksums import compare_checksums
from delta_core.operations.verify.data_files import check_footers
from delta_core.operations.verify.evidence import LogSurvey, Verdict, checksum_verdict, verdict
from delta_core.operations.verify.log import check_hint, is_covered
from delta_core.operations.verify.version import absent_files, check_vectors, mistyped_statistics, unreadable_statistics

__all__ = ["RepairOptions", "RepairStep", "Repaired", "repair_table"]

#: The folder of the log for what repairs replaced.
REPLACED = "_replaced"
_HINT = ("write-hint", "delete-hint")


class RepairOptions(Struct, frozen=True):
    """The extent of a repair.

    Parameters
    ----------
    dry_run : bool
        Whether the steps are returned only, and nothing is changed.
    deep : bool
        Whether the footers of the data files are read, and wrong statistics replaced.
    commit : Mapping
        Arguments of `Transaction.commit`.
    confirm : function(RepairStep) -> bool, optional
        Called before each step that changes something; one for which it returns False is left out.
    """

    dry_run: bool = False
    deep: bool = False
    commit: Mapping[str, Any] = {}
    confirm: Callable[[RepairStep], bool] | None = None


class RepairStep(Struct, frozen=True):
    """One mending.

    Parameters
    ----------
    step : str
        ``write-checkpoint``, ``delete-compacted``, ``write-hint``, ``delete-hint``, ``delete-checksum``,
        ``write-checksum``, ``remove-files``, ``replace-statistics``, or ``none`` for what can't be mended.
    reason : str
        The findings.
    file : str or None
        The file that it is about, relative to the table's root; several of one step are in ``files``.
    files : tuple of str
        Of steps that commit: the data files.
    kept : str or None
        The folder, from the table's root, that has what is replaced or deleted.
    """

    step: str
    reason: str
    file: str | None = None
    files: tuple[str, ...] = ()
    kept: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the step as `DeltaTable.repair` reports it."""
        return {"step": self.step, "reason": self.reason, "file": self.file, "kept": self.kept}


class Repaired(Struct, frozen=True):
    """The result of a repair.

    Parameters
    ----------
    snapshot : Snapshot
        The table afterwards; as it was with ``dry_run``.
    steps : tuple of RepairStep
        The steps that were done, or with ``dry_run`` would be, in that order.
    """

    snapshot: Snapshot
    steps: tuple[RepairStep, ...]

    @property
    def files_removed(self) -> list[str]:
        """The data files whose entries were removed, because they are not there."""
        return [path for s in self.steps if s.step == "remove-files" for path in s.files]


class _Planned(Struct, frozen=True):
    """A step, and what does it; None if nothing can be done."""

    step: RepairStep
    run: Callable[[], object] | None = None


def repair_table(base: Snapshot, options: RepairOptions) -> Repaired:
    """Mend the log and commit the removal of files that are not there.

    Only what is certain is mended. Of two files of the log that differ, the commits are believed if nothing is wrong
    with them and another witness confirms them (`repair_evidence`): then a checkpoint is written again, and compacted
    files and checksums are deleted or written again. Replaced files stay below ``_delta_log/_replaced``. Entries of
    missing files are removed in a commit, which `restore` can undo, if nothing is wrong with the log. Deletion vectors
    that are missing can't be mended.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    options : RepairOptions
        The extent of the repair.

    Raises
    ------
    CommitConflictError
        If another writer removed the same files meanwhile; the mendings of the log are done.
    UnsupportedOperationError
        If the table is append-only and files are missing.
    EngineError
        If the store fails.

    Notes
    -----
    Looks for each data file. Everything is planned before anything is changed. Killed at any moment, it leaves a table
    that reads as before, or as repaired.
    """
    context = base.context
    survey = LogSurvey(context)
    planned = _plan_log(survey)
    try:
        latest = _latest(base, survey, planned)
        base.check_id_of(latest)
        planned += _plan_checksums(survey, latest, planned)
        transaction = Transaction(latest.context, latest, "FSCK", {"dryRun": "false"})
        commits = _plan_commit(survey, latest, transaction, planned, options.deep)
    except (CheckpointError, LogError, TableNotFoundError, VersionNotFoundError, SchemaError):
        return Repaired(base, _done(planned, options))  # the steps name the files without which it can't be read
    steps = (*_done(planned, options), *_done(commits, options))
    if options.dry_run:
        return Repaired(latest, steps)
    if transaction.intents.adds or transaction.intents.removes:
        return Repaired(transaction.commit(**options.commit).snapshot, steps)
    return Repaired(context.read() if any(p.run is not None for p in planned) else latest, steps)


def _plan_commit(
    survey: LogSurvey, latest: Snapshot, transaction: Transaction[Snapshot], planned: Sequence[_Planned], deep: bool
) -> list[_Planned]:
    """Plan what a commit changes. Files that the same run writes again are no ground for it."""
    changes = any(p.step.step not in _HINT for p in planned)
    missing = _missing(latest)
    commits = _plan_removal(survey, latest, missing, transaction, changes)
    if deep and not changes:
        commits += _plan_statistics(latest, missing, transaction)
    return [*commits, *map(_Planned, _lost_vectors(latest, missing))]


def _done(planned: Sequence[_Planned], options: RepairOptions) -> tuple[RepairStep, ...]:
    """Do what is planned and confirmed, and return the steps; with ``dry_run`` nothing is done."""
    steps = []
    for p in planned:
        if p.run is not None and not options.dry_run:
            if options.confirm is not None and not options.confirm(p.step):
                continue
            p.run()
        steps.append(p.step)
    return tuple(steps)


def _quiet(step: str, done: int, total: int) -> None:
    pass


def _found(findings: Iterator[Finding]) -> list[Finding]:
    return [f for f in findings if f.severity != "information"]


# --- the log -------------------------------------------------------------------------------


def _latest(base: Snapshot, survey: LogSurvey, planned: Sequence[_Planned]) -> Snapshot:
    """Open the latest version without the checkpoints that are to be written again, if that is certain."""
    certain = all(p.run is not None for p in planned)
    if certain and survey.wrong:
        return open_version(survey.context, survey.without(kinds=("compacted",)), None, tuple(survey.wrong))
    found = base.latest()
    found.files.columns(STATE)
    return found


def _plan_log(survey: LogSurvey) -> list[_Planned]:
    planned = [_Planned(step) for step in _damaged_commits(survey)]
    for checkpoint, findings in survey.checkpoints:
        planned.append(_plan_checkpoint(survey, checkpoint, findings))
    planned += _plan_compacted(survey)
    undecided = {p.step.file for p in planned if p.run is None}
    for finding in check_hint(survey.context, survey.files):
        planned.append(_plan_hint(survey, finding, undecided))
    return planned


def _damaged_commits(survey: LogSurvey) -> Iterator[RepairStep]:
    """Yield what is wrong with commits: nothing else has all that they contain."""
    found: dict[str | None, list[str]] = {}
    for finding in survey.commits:
        if finding.severity == "error" or finding.rule == "commit-empty":
            found.setdefault(finding.file, []).append(finding.found)
    for file, texts in found.items():
        yield RepairStep("none", f"{'; '.join(texts)}: restore the commit from a copy", file)


def _plan_checkpoint(survey: LogSurvey, checkpoint: Checkpoint, findings: Sequence[Finding]) -> _Planned:
    """Plan to write a checkpoint again from the commits, and to delete what is left of it under other names."""
    reason, path = "; ".join(f.found for f in findings), str(findings[0].file)
    dispute = survey.of_checkpoint(checkpoint)
    if dispute is None:
        return _Planned(
            RepairStep("none", f"{reason}; the commits that it represents can't be read, or are not there", path)
        )
    found = verdict(survey, dispute)
    if not found.believes_commits:
        return _Planned(RepairStep("none", f"{reason}; not certain: {found.reason}", path))
    replayed = dispute.commits
    try:
        check_writable(replayed.protocol, survey.context.registry)
    except ProtocolError as e:
        return _Planned(RepairStep("none", f"{reason}; it can't be written again: {e}", path))
    storage = survey.context.log.engine.storage
    names = [f"{LOG_DIRECTORY}/{f.name}" for f in checkpoint.files]
    kept = _kept_folder(storage, names[0])

    def run() -> None:
        _keep(storage, [*names, f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"], kept)
        written = write_checkpoint(replayed, checksum=False, replace=True).path
        storage.delete([name for name in names if name != written])

    return _Planned(RepairStep("write-checkpoint", f"{reason}; {found.reason}", path, kept=kept), run)


def _plan_compacted(survey: LogSurvey) -> Iterator[_Planned]:
    """Plan to delete compacted files that differ from their commits, if these are right."""
    found: dict[str, list[str]] = {}
    for finding in survey.compacted:
        found.setdefault(str(finding.file), []).append(finding.found)
    for path, texts in found.items():
        file = next(f for f in survey.files if path == f"{LOG_DIRECTORY}/{f.name}")
        reason = "; ".join(texts)
        dispute = survey.of_compacted(file) if is_covered(file, survey.files) else None
        if dispute is None:
            reason = f"{reason}; the commits that it represents can't be read, or are not there"
            yield _Planned(RepairStep("none", reason, path))
            continue
        decided = verdict(survey, dispute)
        if decided.believes_commits:
            yield _plan_deletion(survey, "delete-compacted", f"{reason}; {decided.reason}", path)
        else:
            yield _Planned(RepairStep("none", f"{reason}; not certain: {decided.reason}", path))


def _plan_deletion(survey: LogSurvey, step: str, reason: str, path: str) -> _Planned:
    storage = survey.context.log.engine.storage
    kept = _kept_folder(storage, path)

    def run() -> None:
        _keep(storage, [path], kept)
        storage.delete([path])

    return _Planned(RepairStep(step, reason, path, kept=kept), run)


def _plan_hint(survey: LogSurvey, finding: Finding, undecided: Collection[str | None]) -> _Planned:
    """Plan to point the hint at the newest checkpoint; without one, or if its size is not known, to delete it."""
    context, path = survey.context, f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"
    storage, logs = context.log.engine.storage, context.log.engine.logs
    rejected = {str(name).removeprefix(f"{LOG_DIRECTORY}/") for name in undecided}
    sound = complete_checkpoints(survey.files, rejected)
    if not sound or sound[-1].files[0].format == "json":
        return _plan_deletion(survey, "delete-hint", finding.found, path)
    kept = _kept_folder(storage, path)

    def run() -> None:
        _keep(storage, [path], kept)
        for newest in reversed(complete_checkpoints(context.log.listed(), rejected)):
            if newest.files[0].format == "json":
                break
            with suppress(CheckpointError):  # one whose writing was not confirmed
                value = {"version": newest.version, "size": CheckpointReader(logs, newest).num_own_rows}
                parts = {"parts": len(newest.files)} if newest.kind == "multipart" else {}
                storage.put(path, format_hint({**value, **parts}))
                return
        storage.delete([path])

    return _Planned(RepairStep("write-hint", finding.found, path, kept=kept), run)


def _plan_checksums(survey: LogSurvey, latest: Snapshot, planned: Sequence[_Planned]) -> Iterator[_Planned]:
    """Plan to delete checksums that are wrong, and to write that of the latest version again."""
    is_certain = all(p.run is not None for p in planned)
    # what was written again, or deleted, represents what the others do
    files = (
        [f for f in survey.files if f.kind != "compacted" and f.name not in survey.wrong]
        if is_certain
        else survey.files
    )
    compared = list(compare_checksums(survey.context, files, {}, survey.totals))
    writes = None
    elsewhere = Verdict(False, "the log is damaged elsewhere")
    for one in compared:
        if one.is_sound:
            continue
        path = f"{LOG_DIRECTORY}/{one.file.name}"
        reason = next(one.findings()).found
        found = checksum_verdict(survey, one, compared) if is_certain else elsewhere
        if not found.believes_commits:
            yield _Planned(RepairStep("none", f"{reason}; not certain: {found.reason}", path))
            continue
        yield _plan_deletion(survey, "delete-checksum", f"{reason}; {found.reason}", path)
        if one.file.version == latest.version:
            writes = _Planned(RepairStep("write-checksum", reason, path), lambda: write_checksum(latest, full=True))
    if writes is not None:
        yield writes


def _kept_folder(storage: Storage, path: str) -> str:
    """Return the folder for a file that is replaced: the time of the file itself is part of its name."""
    ((_, modified_ms),) = storage.stat([path])
    return f"{LOG_DIRECTORY}/{REPLACED}/{modified_ms}"


def _keep(storage: Storage, paths: Sequence[str], folder: str) -> None:
    """Copy files of the log, as far as they are there, before they are replaced or deleted."""
    for path in paths:
        with suppress(FileNotFoundError, IrregularFileError):
            storage.copy(storage, path, f"{folder}/{path.rpartition('/')[2]}")


# --- files ---------------------------------------------------------------------------------


def _plan_removal(
    survey: LogSurvey, latest: Snapshot, missing: pa.Table, transaction: Transaction[Snapshot], changes: bool
) -> list[_Planned]:
    """Plan to remove the entries of missing files, if the log is right as it is."""
    if not missing.num_rows:
        return []
    paths = tuple(decode_paths(missing.column("path")))
    reason = f"missing data files: {len(paths)}"
    why = "the log is damaged, see the other steps: repair again when it is mended" if changes else None
    if why is None and survey.commits:
        why = f"commits have findings of their own ({survey.commits[0].found})"
    if why is None and (other := _possible_file(latest, missing)) is not None:
        why = f"{other}, which no version has, may be one of them: the log may have its path wrong"
    if why is not None:
        return [_Planned(RepairStep("none", f"{reason}; their entries stay: {why}", None, paths))]

    def run() -> None:
        transaction.remove_files(removed_files(missing))
        transaction.metrics["numRemovedFiles"] = missing.num_rows

    return [_Planned(RepairStep("remove-files", reason, None, paths), run)]


def _possible_file(latest: Snapshot, missing: pa.Table) -> str | None:
    """Return a file of the size of a missing one that is neither live nor was removed; None if there is none."""
    commits = latest.context.log.commit_files()
    suspects = _commits_that_add(latest, commits, missing)
    doubted = PathSet()
    add_recent(doubted, latest, [f for f in commits if f.version in suspects], removes=True)
    named = PathSet()
    add_version(named, latest, None)
    add_recent(named, latest, [f for f in commits if f.version not in suspects], removes=True)
    # what such a commit removes may be what it adds again under the damaged path
    tombstones = latest.tombstones()
    paths = strings_of(decode_paths(tombstones.column("path")))
    named.add(paths.filter(bool_array(~doubted.contains(paths))))
    sizes = missing.column("size").combine_chunks()
    places = CleanedPlaces(latest)
    for part in latest.engine.storage.walk(places.skips):
        files = part.files.filter(bool_array(~named.contains(part.files.column("path"))))
        if not sizes.null_count:
            files = files.filter(pc.is_in(files.column("size"), value_set=sizes))
        if files.num_rows:
            return str(files.column("path")[0].as_py())
    return None


def _commits_that_add(latest: Snapshot, commits: Sequence[LogFile], missing: pa.Table) -> set[int]:
    """Return the versions whose commits add missing files."""
    gone = missing.column("path").combine_chunks()
    found: set[int] = set()
    for actions in commit_actions(latest, commits, ("add",)):
        own = pc.is_in(actions.adds.column("path"), value_set=gone)
        found.update(pc.filter(actions.adds.column("version"), own).to_pylist())
    return found


def _plan_statistics(latest: Snapshot, missing: pa.Table, transaction: Transaction[Snapshot]) -> list[_Planned]:
    again = _with_right_statistics(latest, missing)
    if not again.num_rows:
        return []
    paths = tuple(decode_paths(again.column("path")))

    def run() -> None:
        transaction.add_files(again)
        transaction.metrics["numUpdatedFiles"] = again.num_rows

    return [_Planned(RepairStep("replace-statistics", f"files with wrong statistics: {len(paths)}", None, paths), run)]


def _lost_vectors(latest: Snapshot, missing: pa.Table) -> Iterator[RepairStep]:
    gone = {f.file for f in _found(check_vectors(latest, _quiet))} - set(missing.column("path").to_pylist())
    for path in sorted(p for p in gone if p is not None):
        reason = (
            "its deletion vector can't be read: restore the vector's file from a copy, or the table to another version"
        )
        yield RepairStep("none", reason, path)


def _missing(latest: Snapshot) -> pa.Table:
    """Return the live files that are not there, as a transaction removes them."""
    fields = [f.name for f in latest.action_fields if f.action == "remove" and f.name not in READ_TO_REMOVE]
    files = latest.files.columns([*READ_TO_REMOVE, *fields])
    return files.filter(bool_array(absent_files(latest, files)))


def _with_right_statistics(latest: Snapshot, missing: pa.Table) -> pa.Table:
    """Return the files whose statistics are wrong, with the number of rows as their only statistics.

    Wrong are those that contradict the footer, and those that can't be read.
    """
    wrong = {f.file for f in check_footers(latest, _quiet) if f.rule in ("statistics-wrong", "statistics-rounded")}
    files = latest.files.columns(read_columns(latest.action_fields))
    paths = files.column("path").to_pylist()
    chosen = np.fromiter((p in wrong for p in paths), bool, files.num_rows)
    chosen |= unreadable_statistics(latest)
    for *_, mistyped in mistyped_statistics(latest):
        chosen |= mistyped
    gone = set(missing.column("path").to_pylist())
    chosen &= np.fromiter((p not in gone for p in paths), bool, files.num_rows)
    files = files.filter(bool_array(chosen))
    if not files.num_rows:
        return files
    paths = decode_paths(files.column("path"))
    counts = latest.engine.data.row_counts(paths, files.column("size").to_pylist())
    has_vector = is_valid(files.column("dvId"))
    tight = [', "tightBounds": false' if v else "" for v in has_vector.tolist()]
    texts = [f'{{"numRecords": {count}{wide}}}' for count, wide in zip(counts, tight, strict=True)]
    stats = strings_of(texts)
    files = files.set_column(files.schema.get_field_index("stats"), "stats", stats)
    return added_again(files)
