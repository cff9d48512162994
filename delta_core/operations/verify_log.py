"""Checks of a table's log: commits, checkpoints against their commits, compacted files, the hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import LogFiles
from delta_core.engines.records import RangeRequest
from delta_core.errors import (
    CheckpointError,
    DeltaError,
    EngineError,
    LogChangedError,
    LogError,
    ProtocolError,
    TableNotFoundError,
    VersionNotFoundError,
    shortened,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, number_array, strings_of
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.json_actions import ParsedActions
from delta_core.log.hint import parse_hint
from delta_core.log.names import LAST_CHECKPOINT, LOG_DIRECTORY
from delta_core.log.reconcile import reconcile
from delta_core.log.segment import choose_segment, complete_checkpoints
from delta_core.operations.verify_checksums import COMMIT_BATCH, COMMIT_KEYS, CommitTotals, protocol_parts
from delta_core.plugins.checks import Finding
from delta_core.plugins.plans import Checkpoint, LogFile, LogSegment
from delta_core.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction, parse_action
from delta_core.snapshot import Snapshot, TableContext

__all__ = ["check_checkpoints", "check_commits", "check_compacted", "check_hint", "is_covered", "replay_of"]

Progress = Callable[[str, int, int], None]
_PARSERS: Mapping[str, Callable[[Any, str], object]] = {
    "protocol": Protocol.parse,
    "metaData": Metadata.parse,
    "txn": SetTransaction.parse,
    "domainMetadata": DomainMetadata.parse,
}
#: The field that identifies actions of a kind within a commit; of the other kinds a commit has one at most.
_KEY_FIELDS = {"txn": "appId", "domainMetadata": "domain", "protocol": None, "metaData": None}
_RESTORE = "Restore the file from a copy; versions below it can still be read."


def _path(file: LogFile) -> str:
    return f"{LOG_DIRECTORY}/{file.name}"


# --- commits -------------------------------------------------------------------------------


def check_commits(
    logs: LogFiles, files: Sequence[LogFile], totals: CommitTotals, progress: Progress
) -> Iterator[Finding]:
    """Yield what is wrong with the commits: gaps, damaged ones, and actions that contradict each other within one.

    ``totals`` gets the commits that can be read.
    """
    commits = [f for f in files if f.kind in ("commit", "staged")]
    yield from _gaps(commits, [c.version for c in complete_checkpoints(files, set())])
    for start in range(0, len(commits), COMMIT_BATCH):
        progress("commits", start, len(commits))
        batch = commits[start : start + COMMIT_BATCH]
        try:
            found = logs.read_commits(batch, COMMIT_KEYS)
        except LogChangedError:
            raise
        except LogError:
            damaged = {f.version: finding for f in batch if (finding := _damage(logs, f)) is not None}
            yield from damaged.values()
            batch = [f for f in batch if f.version not in damaged]
            found = logs.read_commits(batch, COMMIT_KEYS)
        totals.add(found, [f.version for f in batch])
        yield from _check_parsed(found, batch)


def _damage(logs: LogFiles, file: LogFile) -> Finding | None:
    try:
        logs.read_commits([file], COMMIT_KEYS)
    except LogError as e:
        expected = "one JSON object for each action"
        return Finding("commit-unreadable", str(e), expected, _RESTORE, "error", _path(file), file.version)
    return None


def _gaps(commits: Sequence[LogFile], checkpoints: Sequence[int]) -> Iterator[Finding]:
    versions = np.array([f.version for f in commits], np.int64)
    for i in np.flatnonzero(np.diff(versions) > 1).tolist():
        first, last = int(versions[i]) + 1, int(versions[i + 1]) - 1
        is_covered = any(c >= last for c in checkpoints)
        yield Finding(
            "commit-missing",
            f"versions {first} to {last} are missing between other commits",
            "the commits of consecutive versions",
            "Restore them from a copy. Without them, versions above the gap can't be built"
            + (", unless a checkpoint follows." if is_covered else "."),
            "warning" if is_covered else "error",
            version=first,
        )


def _check_parsed(found: ParsedActions, batch: Sequence[LogFile]) -> Iterator[Finding]:
    tables = (found.adds, found.removes, found.cdcs, found.other_actions)
    present = np.unique(np.concatenate([int64_values(t.column("version")) for t in tables]))
    names = {f.version: _path(f) for f in batch}
    for version in names.keys() - set(present.tolist()):
        expected = "at least one action"
        yield Finding("commit-empty", "no action", expected, _RESTORE, "warning", names[version], version)
    yield from _repeated_files(found, names)
    yield from _small_actions(found.other_actions, names)


def _repeated_files(found: ParsedActions, names: Mapping[int, str]) -> Iterator[Finding]:
    """Yield files that one commit adds twice, or adds and removes, with the same vector.

    Protocol: Action Reconciliation.
    """
    both = pa.concat_tables([t.select(["version", "path", "dvId"]) for t in (found.adds, found.removes)])
    keys = KeySet()
    is_new = keys.insert(both.column("path"), both.column("dvId"))
    if is_new.all():
        return
    # few keys are in several actions of a batch: those alone are looked at commit by commit
    again = KeySet()
    repeated = pc.filter(both, bool_array(~is_new))
    again.insert(repeated.column("path"), repeated.column("dvId"))
    of_them = pc.filter(both, bool_array(again.contains(both.column("path"), both.column("dvId"))))
    versions = int64_values(of_them.column("version"))
    order = np.argsort(versions, kind="stable")
    of_them = pc.take(of_them, number_array(order))
    starts = np.flatnonzero(np.diff(versions[order], prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        if stop - start < 2:
            continue
        part = of_them.slice(start, stop - start)
        within = KeySet()
        first = within.insert(part.column("path"), part.column("dvId"))
        for i in np.flatnonzero(~first).tolist():
            version = part.column("version")[i].as_py()
            path = part.column("path")[i].as_py()
            yield Finding(
                "action-repeated",
                f"{path} has several add or remove actions with the same deletion vector in {names[version]}",
                "one action for each file and vector in a commit",
                "Readers may differ about such a file: write its rows again, or remove it.",
                "warning",
                path,
                version,
            )


def _small_actions(actions: pa.Table, names: Mapping[int, str]) -> Iterator[Finding]:
    """Yield what is wrong with actions that are no files."""
    chosen = pc.filter(actions, pc.is_in(actions.column("kind"), value_set=strings_of(list(_PARSERS))))
    seen: set[tuple[int, str, Any]] = set()
    for row in chosen.to_pylist():
        version, kind = row["version"], row["kind"]
        try:
            value = parse_action(row["json"], names[version])
            _PARSERS[kind](value, names[version])
        except DeltaError as e:
            expected = f"a {kind} action as the protocol defines it"
            yield Finding("action-unreadable", str(e), expected, _RESTORE, "error", names[version], version)
            continue
        field = _KEY_FIELDS[kind]
        key = (version, kind, value.get(field) if field else None)
        if key in seen:
            of = f" of {key[2]!r}" if field else ""
            found, expected = f"several {kind} actions{of} in one commit", f"one {kind} action{of}"
            advice = "The last one counts here; other readers may take another. Commit the value again."
            yield Finding("action-repeated", found, expected, advice, "warning", names[version], version)
        seen.add(key)
    if 0 in names:
        kinds = {kind for version, kind, _ in seen if version == 0}
        for kind in ("protocol", "metaData"):
            if kind not in kinds:
                expected = f"a {kind} action in the first commit"
                yield Finding("definition-missing", f"no {kind} action", expected, _RESTORE, "error", names[0], 0)


# --- checkpoints ---------------------------------------------------------------------------


def check_checkpoints(
    context: TableContext, files: Sequence[LogFile], progress: Progress
) -> Iterator[tuple[Finding, Checkpoint]]:
    """Yield what is wrong with the checkpoints: those that can't be read, or differ from the commits below them."""
    checkpoints = complete_checkpoints(files, set())
    for number, checkpoint in enumerate(checkpoints):
        progress("checkpoints", number, len(checkpoints))
        name, version = _path(checkpoint.files[0]), checkpoint.version
        try:
            stored = context.read_segment(_segment_of(checkpoint, files))
            stored.files.columns(["path", "dvId", "size"])
        except LogChangedError:
            raise
        except (CheckpointError, LogError) as e:
            expected = "a complete checkpoint"
            advice = "repair writes a new one. Readers use older files of the log, if these are still there."
            yield Finding("checkpoint-unreadable", str(e), expected, advice, "error", name, version), checkpoint
            continue
        except ProtocolError:
            continue  # what the features of that version need is not installed
        replayed = replay_of(context, checkpoint, files)
        if replayed is not None:
            for found in _differences(stored, replayed):
                expected = "the state that the commits result in"
                advice = "repair writes the checkpoint again from the commits."
                yield Finding("checkpoint-differs", found, expected, advice, "error", name, version), checkpoint


def _segment_of(checkpoint: Checkpoint, files: Sequence[LogFile]) -> LogSegment:
    commits = tuple(f for f in files if f.kind in ("commit", "staged") and f.version <= checkpoint.version)
    return LogSegment(checkpoint.version, checkpoint, (), commits)


def replay_of(context: TableContext, checkpoint: Checkpoint, files: Sequence[LogFile]) -> Snapshot | None:
    """Return a checkpoint's version as the log has it without a checkpoint of that version, None if impossible."""
    others = [f for f in files if f.kind != "checkpoint" or f.version != checkpoint.version]
    # what writers drop from compacted files would look like a fault of the checkpoint
    others = [f for f in others if f.kind != "compacted"]
    try:
        segment = choose_segment(others, checkpoint.version, where=context.log.uri)
        replayed = context.read_segment(segment)
        replayed.files.columns(["path", "dvId", "size"])
    except LogChangedError:
        raise
    except (TableNotFoundError, VersionNotFoundError, LogError, CheckpointError, ProtocolError):
        return None
    return replayed


def _differences(stored: Snapshot, replayed: Snapshot) -> Iterator[str]:
    have, should = (s.files.columns(["path", "dvId", "size"]) for s in (stored, replayed))
    missing, more = _not_in(should, have), _not_in(have, should)
    if more.num_rows:
        yield f"{_files(more)} that the commits removed or never added"
    if missing.num_rows:
        yield f"it lacks {_files(missing)} that the commits added"
    if not missing.num_rows and not more.num_rows and have.num_rows == should.num_rows:
        sizes = [int(pc.sum(t.column("size")).as_py() or 0) for t in (have, should)]
        if sizes[0] != sizes[1]:
            yield f"its files have {sizes[0]} bytes, those of the commits {sizes[1]}"
    elif have.num_rows > should.num_rows and not more.num_rows:
        yield f"it names files several times: {have.num_rows} entries for {should.num_rows} files"
    yield from _definition_differences(stored, replayed)


def _not_in(files: pa.Table, others: pa.Table) -> pa.Table:
    keys = KeySet()
    keys.insert(others.column("path"), others.column("dvId"))
    return pc.filter(files, bool_array(~keys.contains(files.column("path"), files.column("dvId"))))


def _files(files: pa.Table) -> str:
    names = ", ".join(files.column("path").slice(0, 3).to_pylist())
    return f"{files.num_rows} file{'s' * (files.num_rows > 1)} ({shortened(names)})"


def _definition_differences(stored: Snapshot, replayed: Snapshot) -> Iterator[str]:
    if protocol_parts(stored.protocol) != protocol_parts(replayed.protocol):
        yield f"its protocol is {stored.protocol.to_json()}, that of the commits {replayed.protocol.to_json()}"
    parts = [
        (s.metadata.id, s.metadata.partition_columns, s.metadata.configuration, s.schema) for s in (stored, replayed)
    ]
    for name, here, there in zip(("table id", "partition columns", "properties", "schema"), *parts, strict=True):
        if here != there:
            yield f"its {name}: {shortened(here)}; of the commits: {shortened(there)}"
    versions = [{a: t.version for a, t in s.transactions().items()} for s in (stored, replayed)]
    # a checkpoint may leave out transactions that have expired
    wrong = {a: v for a, v in versions[0].items() if versions[1].get(a) != v}
    if wrong:
        yield f"its transactions {shortened(wrong)} are not those of the commits"
    domains = [s.domains() for s in (stored, replayed)]
    different = [d for d in domains[0].keys() | domains[1].keys() if domains[0].get(d) != domains[1].get(d)]
    if different:
        yield f"its domains differ from those of the commits: {', '.join(sorted(different))}"


# --- what only helps readers -------------------------------------------------------------------


def check_hint(context: TableContext, files: Sequence[LogFile]) -> Iterator[Finding]:
    """Yield what is wrong with ``_last_checkpoint``; readers that trust it may find no checkpoint, or an old one."""
    path = f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"
    try:
        (data,) = context.log.engine.storage.read([RangeRequest(path)])
    except (FileNotFoundError, EngineError):
        return
    hint = parse_hint(bytes(data))
    advice = "repair writes it again. Readers list the log without it."
    if hint is None or not hint.trusted:
        found = "its text is no hint" if hint is None else "its checksum does not fit its text"
        yield Finding("hint-unreadable", found, "the version of a checkpoint", advice, "warning", path)
        return
    at = [c for c in complete_checkpoints(files, set()) if c.version == hint.version]
    if not at or hint.parts and not any(len(c.files) == hint.parts for c in at):
        parts = f" in {hint.parts} parts" if hint.parts else ""
        found = f"it names a checkpoint of version {hint.version}{parts}, which is not there"
        yield Finding("hint-wrong", found, "a checkpoint that is there", advice, "warning", path, hint.version)


def is_covered(file: LogFile, files: Sequence[LogFile]) -> bool:
    """Whether the commits that a compacted file replaces are there."""
    there = {f.version for f in files if f.kind == "commit"}
    return all(v in there for v in range(file.version, file.end_version + 1))


def check_compacted(logs: LogFiles, files: Sequence[LogFile]) -> Iterator[Finding]:
    """Yield compacted files that differ from the commits that they cover, as far as all of these are there."""
    commits = {f.version: f for f in files if f.kind == "commit"}
    for f in files:
        if f.kind != "compacted":
            continue
        covered = [commits.get(v) for v in range(f.version, f.end_version + 1)]
        try:
            found = logs.read_commits([f], COMMIT_KEYS)
            should = None if None in covered else logs.read_commits([c for c in covered if c is not None], COMMIT_KEYS)
        except LogChangedError:
            raise
        except LogError as e:
            if _damage(logs, f) is not None:
                advice = "Delete it: the commits are sufficient."
                yield Finding("compacted-unreadable", str(e), "JSON actions", advice, "warning", _path(f), f.version)
            continue
        if should is None:
            continue
        newest = reconcile(should)
        for kind, have, want, mask in (
            ("add", found.adds, should.adds, newest.adds),
            ("remove", found.removes, should.removes, newest.removes),
        ):
            expected = pc.filter(want, bool_array(mask))
            missing, more = _not_in(expected, have), _not_in(have, expected)
            if missing.num_rows or more.num_rows:
                yield Finding(
                    "compacted-differs",
                    f"it lacks {missing.num_rows} {kind} actions and has {more.num_rows} that were replaced",
                    "the newest action of each file, tombstones too",
                    "Delete it: the commits are there, and readers that use it instead return other rows.",
                    "error",
                    _path(f),
                    f.version,
                )
