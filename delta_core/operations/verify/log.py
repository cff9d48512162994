"""Checks of a table's log: commits, compacted files, the hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import LogFiles
from delta_core.engines.records import RangeRequest
from delta_core.errors import (
    DeltaError,
    EngineError,
    IrregularFileError,
    LogChangedError,
    LogError,
    ProtocolError,
    shortened,
)
from delta_core.kernel.log.hint import parse_hint
from delta_core.kernel.log.names import LAST_CHECKPOINT, LOG_DIRECTORY
from delta_core.kernel.log.reconcile import reconcile
from delta_core.kernel.log.segment import complete_checkpoints
from delta_core.kernel.log.source import newest as newest_actions
from delta_core.kernel.plugins.checks import Finding, Severity
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.protocol.actions import (
    CORE_KINDS,
    METADATA,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    parse_action,
)
from delta_core.kernel.snapshot import TableContext
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, number_array, strings_of
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.json_actions import ParsedActions
from delta_core.operations.verify.checkpoints import not_in
from delta_core.operations.verify.checksums import COMMIT_BATCH, COMMIT_KEYS, CommitTotals

__all__ = ["check_commits", "check_compacted", "check_hint", "is_covered"]

Progress = Callable[[str, int, int], None]
_PARSERS: Mapping[str, Callable[[Any, str], object]] = {
    "protocol": Protocol.parse,
    "metaData": Metadata.parse,
    "txn": SetTransaction.parse,
    "domainMetadata": DomainMetadata.parse,
}
#: The field that identifies actions of a kind within a commit; of the other kinds a commit has one at most.
_KEY_FIELDS = {"txn": "appId", "domainMetadata": "domain", "protocol": None, "metaData": None}
#: The fields of metaData.
_METADATA = frozenset(f.name for f in METADATA.type or ())
#: Every kind of the protocol, those of checkpoints too.
_KINDS = frozenset(CORE_KINDS) | {"checkpointMetadata", "sidecar"}
_RESTORE = "Restore the file from a copy; versions below it can still be read."


def _path(file: LogFile) -> str:
    return f"{LOG_DIRECTORY}/{file.name}"


# --- commits -------------------------------------------------------------------------------


def check_commits(
    context: TableContext, files: Sequence[LogFile], totals: CommitTotals, progress: Progress
) -> Iterator[Finding]:
    """Yield what is wrong with the commits: gaps, damaged ones, and actions that contradict each other.

    ``totals`` gets the commits that can be read.
    """
    logs = context.log.engine.logs
    commits = [f for f in files if f.kind in ("commit", "staged")]
    yield from _gaps(commits, [c.version for c in complete_checkpoints(files, set())])
    everything = context.registry.everything
    kinds = _KINDS | {k.name for f in everything.features.values() for k in f.actions}
    seen = _Seen()
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
        names = {f.version: _path(f) for f in batch}
        yield from _check_parsed(found, names)
        yield from _unknown_actions(found.other_actions, names, kinds)
        yield from _small_actions(found.other_actions, names, seen)
        seen.add(found, names)
    yield from _unreadable_definitions(context, seen)
    if [f.version for f in commits] == list(range(len(commits))) and len(seen.names) == len(commits):
        yield from _removes_of_nothing(seen)
        yield from _unknown_partitions(seen)


class _Seen:
    """The content of the commits that were read, for checks that need all of them."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        #: Protocol and metadata by the version of their commit.
        self.protocols: dict[int, Protocol] = {}
        self.metadata: dict[int, Metadata] = {}
        #: Versions whose metadata is that of a table without columns yet, as some writers begin one.
        self.without_schema: set[int] = set()
        #: Every file that was added, with its vector.
        self.added = KeySet()
        self.removes: list[pa.Table] = []
        #: The keys of partition values with the first version that has them, and the names that they may have.
        self.keys: dict[str, int] = {}
        self.partitions: set[str] = set()

    def add(self, found: ParsedActions, names: Mapping[int, str]) -> None:
        self.names.update(names)
        self.added.insert(found.adds.column("path"), found.adds.column("dvId"))
        for values, versions in zip(
            found.adds.column("partitionValues").chunks, found.adds.column("version").chunks, strict=True
        ):
            keys = pc.dictionary_encode(values.keys)
            if len(keys.dictionary) > len(self.keys) or not self.keys.keys() >= set(keys.dictionary.to_pylist()):
                rows = np.searchsorted(int64_values(values.offsets), np.arange(len(keys)), side="right") - 1
                first = np.unique(int64_values(keys.indices), return_index=True)
                for number, at in zip(*(a.tolist() for a in first), strict=True):
                    version = versions[int(rows[at])].as_py()
                    self.keys.setdefault(keys.dictionary[number].as_py(), version)
        # without a change of data, tombstones of other files than data files may be recorded
        changing = pc.filter(found.removes, pc.fill_null(found.removes.column("dataChange"), True))
        self.removes.append(changing.select(["version", "path", "dvId"]))


def _unreadable_definitions(context: TableContext, seen: _Seen) -> Iterator[Finding]:
    """Yield the commits whose protocol and metadata make no table that can be read."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for version in sorted(seen.protocols.keys() | seen.metadata.keys()):
        protocol, metadata = seen.protocols.get(version, protocol), seen.metadata.get(version, metadata)
        if protocol is None or metadata is None:
            continue  # of the other one, older commits are gone
        try:
            context.registry.supported(protocol)
        except ProtocolError:
            continue  # what the features of that version need is not installed
        try:
            state, _ = context.define(protocol, metadata, version, dict)
            columns, by = state.column_map.physical.members, state.partition_columns
            seen.partitions |= {p.name for f, p in zip(state.schema.members, columns, strict=True) if f.name in by}
        except (DeltaError, ValueError) as e:
            expected = "a protocol and metadata that a table can be read with"
            severity: Severity = "information" if version in seen.without_schema else "error"
            yield Finding("action-unreadable", shortened(e), expected, _RESTORE, severity, seen.names[version], version)


def _removes_of_nothing(seen: _Seen) -> Iterator[Finding]:
    """Yield the removes of files, with their vector, that no commit adds: readers go on reading what was meant."""
    for removes in seen.removes:
        unknown = pc.filter(removes, bool_array(~seen.added.contains(removes.column("path"), removes.column("dvId"))))
        for version, path in zip(*(unknown.column(n).to_pylist() for n in ("version", "path")), strict=True):
            found, expected = f"a remove action of {path}, which no commit adds", "a file that was added"
            advice = "If another file was meant, its rows are still read: compare the number of rows, or restore it."
            yield Finding("remove-unknown", found, expected, advice, "warning", seen.names[version], version)


def _unknown_partitions(seen: _Seen) -> Iterator[Finding]:
    """Yield partition values of columns by which no version is partitioned: readers take the right one for null."""
    for key in sorted(seen.keys.keys() - seen.partitions):
        found, expected = f"a partition value of {shortened(key)!r}", "the physical name of a partition column"
        version = seen.keys[key]
        yield Finding("partition-value-wrong", found, expected, _RESTORE, "error", seen.names[version], version)


def _unknown_actions(
    actions: pa.Table, names: Mapping[int, str], kinds: frozenset[str] | set[str]
) -> Iterator[Finding]:
    """Yield actions of kinds that neither the protocol nor an installed plugin defines: readers ignore them."""
    unknown = pc.filter(actions, pc.invert(pc.is_in(actions.column("kind"), value_set=strings_of(sorted(kinds)))))
    rows = zip(*(unknown.column(n).to_pylist() for n in ("version", "kind")), strict=True)
    for version, kind in dict.fromkeys(rows):
        expected = "an action of the protocol, or of an installed plugin"
        advice = "Readers ignore it. If a name is damaged, restore the file from a copy; else install its plugin."
        found = f"an action {shortened(kind)!r}"
        yield Finding("action-unknown", found, expected, advice, "information", names[version], version)


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


def _check_parsed(found: ParsedActions, names: Mapping[int, str]) -> Iterator[Finding]:
    tables = (found.adds, found.removes, found.cdcs, found.other_actions)
    present = np.unique(np.concatenate([int64_values(t.column("version")) for t in tables]))
    for version in names.keys() - set(present.tolist()):
        expected = "at least one action"
        yield Finding("commit-empty", "no action", expected, _RESTORE, "warning", names[version], version)
    without = pc.filter(found.adds.column("version"), pc.is_null(found.adds.column("partitionValues")))
    for version in without.unique().to_pylist():
        text, expected = "an add action without partitionValues", "an object, empty in a table without partitions"
        yield Finding("action-unreadable", text, expected, _RESTORE, "error", names[version], version)
    yield from _repeated_files(found, names)


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


def _small_actions(actions: pa.Table, names: Mapping[int, str], all_seen: _Seen) -> Iterator[Finding]:
    """Yield what is wrong with actions that are no files; ``all_seen`` gets protocols and metadata."""
    chosen = pc.filter(actions, pc.is_in(actions.column("kind"), value_set=strings_of(list(_PARSERS))))
    seen: set[tuple[int, str, Any]] = set()
    for row in chosen.to_pylist():
        version, kind = row["version"], row["kind"]
        try:
            value = parse_action(row["json"], names[version])
            parsed = _PARSERS[kind](value, names[version])
        except DeltaError as e:
            expected = f"a {kind} action as the protocol defines it"
            yield Finding("action-unreadable", str(e), expected, _RESTORE, "error", names[version], version)
            continue
        if isinstance(parsed, Protocol):
            all_seen.protocols[version] = parsed
        elif isinstance(parsed, Metadata):
            all_seen.metadata[version] = parsed
            if not parsed.schema_string and value.keys() <= _METADATA:
                all_seen.without_schema.add(version)
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


# --- what only helps readers -------------------------------------------------------------------


def check_hint(context: TableContext, files: Sequence[LogFile]) -> Iterator[Finding]:
    """Yield what is wrong with ``_last_checkpoint``; readers that trust it may find no checkpoint, or an old one."""
    path = f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"
    advice = "repair writes it again. Readers list the log without it."
    try:
        (data,) = context.log.engine.storage.read([RangeRequest(path)])
    except IrregularFileError as e:
        yield Finding("hint-unreadable", str(e), "the version of a checkpoint", advice, "warning", path)
        return
    except (FileNotFoundError, EngineError):
        return
    hint = parse_hint(bytes(data))
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
        for difference in _compacted_differences(found, should):
            yield Finding(
                "compacted-differs",
                difference,
                "the newest action of each key, tombstones too",
                "Readers that use it instead of its commits return other rows. repair deletes it if something else "
                "confirms the commits.",
                "error",
                _path(f),
                f.version,
            )


def _compacted_differences(found: ParsedActions, should: ParsedActions) -> Iterator[str]:
    newest = reconcile(should)
    for kind, have, want, mask in (
        ("add", found.adds, should.adds, newest.adds),
        ("remove", found.removes, should.removes, newest.removes),
    ):
        expected = pc.filter(want, bool_array(mask))
        missing, more = not_in(expected, have), not_in(have, expected)
        if missing.num_rows or more.num_rows:
            yield f"it lacks {missing.num_rows} {kind} actions and has {more.num_rows} that were replaced"
        elif kind == "add":
            sizes = [pc.sum(t.column("size")).as_py() for t in (have, expected)]
            if sizes[0] != sizes[1]:
                yield f"its files have {sizes[0]} bytes, those of the commits {sizes[1]}"
    for kind, field in _KEY_FIELDS.items():
        if _parsed(found, kind, field) != _parsed(should, kind, field):
            yield f"its {kind} actions are not those of the commits"


def _parsed(actions: ParsedActions, kind: str, field: str | None) -> Mapping[str, Any]:
    """Return the newest actions of a kind by their key, however they are spelled; as they are if they break rules."""
    found = newest_actions(actions.other_actions, kind, (field or "",))
    try:
        return {key: _PARSERS[kind](value, kind) for key, value in found.items()}
    except DeltaError:
        return found
