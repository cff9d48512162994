"""Repair what verifying a table finds, where it is certain what is right; each mending is a step with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.commit.intents import READ_TO_REMOVE, added_again, read_columns, removed_files
from delta_core.commit.transaction import Transaction
from delta_core.commit.upgrade import check_writable
from delta_core.errors import CheckpointError, LogError, ProtocolError, TableNotFoundError, VersionNotFoundError
from delta_core.kernels.arrow_buffers import bool_array, is_valid, strings_of
from delta_core.log.checkpoint import CheckpointReader
from delta_core.log.checkpoint_writer import write_checkpoint
from delta_core.log.checksum import write_checksum
from delta_core.log.hint import format_hint
from delta_core.log.names import LAST_CHECKPOINT, LOG_DIRECTORY
from delta_core.log.paths import decode_paths
from delta_core.log.segment import choose_segment, complete_checkpoints
from delta_core.operations.verify_checksums import check_checksums, read_totals
from delta_core.operations.verify_deep import check_footers
from delta_core.operations.verify_files import absent_files, check_vectors
from delta_core.operations.verify_log import check_checkpoints, check_compacted, check_hint, is_covered, replay_of
from delta_core.plugins.checks import Finding
from delta_core.plugins.plans import Checkpoint, LogFile
from delta_core.snapshot import Snapshot, TableContext

__all__ = ["RepairOptions", "RepairStep", "Repaired", "repair_table"]

Progress = Callable[[str, int, int], None]


class RepairOptions(Struct, frozen=True):
    """What is repaired.

    Parameters
    ----------
    dry_run : bool
        Whether the steps are returned only, and nothing is changed.
    deep : bool
        Whether the footers of the data files are read, and wrong statistics replaced.
    commit : Mapping
        Arguments of `Transaction.commit`.
    """

    dry_run: bool = False
    deep: bool = False
    commit: Mapping[str, Any] = {}


class RepairStep(Struct, frozen=True):
    """One mending.

    Parameters
    ----------
    step : str
        ``write-checkpoint``, ``delete-compacted``, ``write-hint``, ``delete-hint``, ``delete-checksum``,
        ``write-checksum``, ``remove-files``, ``replace-statistics``, or ``none`` for what can't be mended.
    reason : str
        What was found.
    file : str or None
        The file that it is about, relative to the table's root; several of one step are in ``files``.
    files : tuple of str
        Of steps that commit: the data files.
    """

    step: str
    reason: str
    file: str | None = None
    files: tuple[str, ...] = ()


class Repaired(Struct, frozen=True):
    """What a repair came to.

    Parameters
    ----------
    snapshot : Snapshot
        The table afterwards; as it was with ``dry_run``.
    steps : tuple of RepairStep
        What was done, or with ``dry_run`` what would be, in that order.
    """

    snapshot: Snapshot
    steps: tuple[RepairStep, ...]

    @property
    def files_removed(self) -> list[str]:
        """The data files whose entries were removed, because they are not there."""
        return [path for s in self.steps if s.step == "remove-files" for path in s.files]


def repair_table(base: Snapshot, options: RepairOptions) -> Repaired:
    """Mend the log and commit the removal of files that are not there.

    Only what is certain is mended: a checkpoint is written again from the commits below it; what others can do
    without (compacted files whose commits are there, checksums, the hint) is deleted or written again; entries of
    missing files are removed in a commit, which `restore` can undo. Deletion vectors that are missing can't be mended.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    options : RepairOptions
        What is repaired.

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
    Looks for each data file. Killed at any moment, it leaves a table that reads as before, or as repaired.
    """
    context = base.context
    steps = _mend_log(context, options.dry_run)
    try:
        latest = base.latest() if not steps else _without_checkpoints(context, steps)
    except (CheckpointError, LogError, TableNotFoundError, VersionNotFoundError):
        return Repaired(base, tuple(steps))  # the steps name the files without which it can't be opened
    base.check_id_of(latest)
    steps += _mend_checksums(context, latest, options.dry_run)
    transaction = Transaction(latest.context, latest, "FSCK", {"dryRun": "false"})
    missing = _missing(latest)
    if missing.num_rows:
        paths = tuple(decode_paths(missing.column("path")))
        steps.append(RepairStep("remove-files", f"missing data files: {len(paths)}", None, paths))
        transaction.remove_files(removed_files(missing))
        transaction.metrics["numRemovedFiles"] = missing.num_rows
    if options.deep:
        again = _with_right_statistics(latest, missing)
        if again.num_rows:
            paths = tuple(decode_paths(again.column("path")))
            steps.append(RepairStep("replace-statistics", f"files with wrong statistics: {len(paths)}", None, paths))
            transaction.add_files(again)
            transaction.metrics["numUpdatedFiles"] = again.num_rows
    gone = {f.file for f in _found(check_vectors(latest, _quiet))} - set(missing.column("path").to_pylist())
    for path in sorted(p for p in gone if p is not None):
        reason = (
            "its deletion vector can't be read: restore the vector's file from a copy, or the table to another version"
        )
        steps.append(RepairStep("none", reason, path))
    if transaction.intents.adds or transaction.intents.removes:
        latest = latest if options.dry_run else transaction.commit(**options.commit).snapshot
    return Repaired(latest, tuple(steps))


def _quiet(step: str, done: int, total: int) -> None:
    pass


def _found(findings: Iterator[Finding]) -> list[Finding]:
    return [f for f in findings if f.severity != "information"]


# --- the log -------------------------------------------------------------------------------


def _without_checkpoints(context: TableContext, steps: Sequence[RepairStep]) -> Snapshot:
    """Open the latest version without the checkpoints that are wrong: what was read before may be of one of them."""
    wrong = [str(s.file).removeprefix(f"{LOG_DIRECTORY}/") for s in steps if s.step in ("write-checkpoint", "none")]
    files = [f for f in context.log.listed() if f.kind != "compacted"]
    return context.read_segment(choose_segment(files, None, where=context.log.uri, rejected=wrong))


def _mend_log(context: TableContext, dry_run: bool) -> list[RepairStep]:
    files = context.log.listed()
    steps: list[RepairStep] = []
    wrong: dict[str, tuple[Checkpoint, list[Finding]]] = {}
    for finding, checkpoint in check_checkpoints(context, files, _quiet):
        wrong.setdefault(checkpoint.files[0].name, (checkpoint, []))[1].append(finding)
    for checkpoint, findings in wrong.values():
        steps.append(_mend_checkpoint(context, checkpoint, findings, files, dry_run))
    storage = context.log.engine.storage
    for finding in check_compacted(context.log.engine.logs, files):
        file = next(f for f in files if finding.file == f"{LOG_DIRECTORY}/{f.name}")
        if not is_covered(file, files):
            steps.append(RepairStep("none", f"{finding.found}: its commits are not there any more", finding.file))
        elif not any(s.file == finding.file for s in steps):
            steps.append(RepairStep("delete-compacted", finding.found, finding.file))
            if not dry_run:
                storage.delete([str(finding.file)])
    steps += [_mend_hint(context, finding, list(wrong), dry_run) for finding in check_hint(context, files)]
    return steps


def _mend_checkpoint(
    context: TableContext, checkpoint: Checkpoint, findings: Sequence[Finding], files: Sequence[LogFile], dry_run: bool
) -> RepairStep:
    """Write a checkpoint again from the commits, then delete what is left of it under other names."""
    reason, path = "; ".join(f.found for f in findings), findings[0].file
    replayed = replay_of(context, checkpoint, files)
    if replayed is None:
        return RepairStep("none", f"{reason}; the commits that it represents are not there any more", path)
    try:
        check_writable(replayed.protocol, context.registry)
    except ProtocolError as e:
        return RepairStep("none", f"{reason}; it can't be written again: {e}", path)
    if not dry_run:
        written = write_checkpoint(replayed, checksum=False, replace=True).path
        names = [f"{LOG_DIRECTORY}/{f.name}" for f in checkpoint.files]
        context.log.engine.storage.delete([name for name in names if name != written])
    return RepairStep("write-checkpoint", reason, path)


def _mend_hint(context: TableContext, finding: Finding, wrong: Sequence[str], dry_run: bool) -> RepairStep:
    """Point the hint at the newest checkpoint; without one, or if its number of actions is not known, delete it."""
    storage, logs, path = context.log.engine.storage, context.log.engine.logs, f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"
    sound = [
        c for c in complete_checkpoints(context.log.listed(), set()) if not dry_run or c.files[0].name not in wrong
    ]
    newest = sound[-1] if sound else None
    if newest is None or newest.files[0].format == "json":
        if not dry_run:
            storage.delete([path])
        return RepairStep("delete-hint", finding.found, path)
    if not dry_run:
        value = {"version": newest.version, "size": CheckpointReader(logs, newest).num_own_rows}
        parts = {"parts": len(newest.files)} if newest.kind == "multipart" else {}
        storage.put(path, format_hint({**value, **parts}))
    return RepairStep("write-hint", finding.found, path)


def _mend_checksums(context: TableContext, latest: Snapshot, dry_run: bool) -> list[RepairStep]:
    """Delete checksums that are wrong, and write that of the latest version again."""
    wrong: dict[str, str] = {}
    files = context.log.listed()
    totals = read_totals(context.log.engine.logs, files)
    for finding in check_checksums(context, files, {latest.version: latest}, totals):
        assert finding.file is not None
        wrong.setdefault(finding.file, finding.found)
    steps = [RepairStep("delete-checksum", reason, path) for path, reason in wrong.items()]
    if wrong and not dry_run:
        context.log.engine.storage.delete(list(wrong))
    own = next((s for s in steps if s.file is not None and int(s.file.rpartition("/")[2][:20]) == latest.version), None)
    if own is not None:
        steps.append(RepairStep("write-checksum", own.reason, own.file))
        if not dry_run:
            write_checksum(latest, full=True)
    return steps


# --- files ---------------------------------------------------------------------------------


def _missing(latest: Snapshot) -> pa.Table:
    """Return the live files that are not there, as a transaction removes them."""
    fields = [f.name for f in latest.action_fields if f.action == "remove" and f.name not in READ_TO_REMOVE]
    files = latest.files.columns([*READ_TO_REMOVE, *fields])
    return files.filter(bool_array(absent_files(latest, files)))


def _with_right_statistics(latest: Snapshot, missing: pa.Table) -> pa.Table:
    """Return the files whose statistics contradict their footers, with the number of rows as their only statistics."""
    wrong = {f.file for f in check_footers(latest, _quiet) if f.rule in ("statistics-wrong", "statistics-rounded")}
    wrong -= set(missing.column("path").to_pylist())
    files = latest.files.columns(read_columns(latest.action_fields))
    chosen = np.fromiter((p in wrong for p in files.column("path").to_pylist()), bool, files.num_rows)
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
