"""Checks of checksum files: all of those of loaded versions, the numbers of files and bytes of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from typing import Any

import numpy as np
from msgspec import Struct

from delta_core.engines.records import ActionQuery, RangeRequest
from delta_core.errors import DeltaError, EngineError, IrregularFileError, LogChangedError, shortened
from delta_core.kernel.log.checksum import is_consistent, whole_checksum
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.plugins.checks import Finding
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, is_valid
from delta_core.kernels.json_actions import ParsedActions
from delta_core.operations.verify.checkpoints import UNREADABLE, open_version, protocol_parts
from delta_core.runtime.json_text import decode_json

__all__ = [
    "COMMIT_BATCH",
    "COMMIT_KEYS",
    "CommitTotals",
    "ComparedChecksum",
    "check_checksums",
    "compare_checksums",
    "is_consistent",
]

#: How many commits are parsed at once: bounds memory over long logs.
COMMIT_BATCH = 512
#: The columns of their files that are read.
COMMIT_KEYS = ActionQuery(("size", "dataChange", "partitionValues", "modificationTime", "deletionTimestamp"))

_ADVICE = (
    "If nothing else is wrong, repair writes it again. If a commit lost actions, this proves the loss: restore the "
    "commit from a copy."
)
#: Lists of a checksum, with the key and the value of their elements.
_LISTS = (("setTransactions", "appId", "version"), ("domainMetadata", "domain", "configuration"))


#: The fields of a checksum that repeat actions, with the kind of these.
LISTED_KINDS: Mapping[str, str] = {
    "protocol": "protocol", "metadata": "metaData", "setTransactions": "txn", "domainMetadata": "domainMetadata",
}  # fmt: skip


class CommitTotals:
    """By how many files and bytes each commit changes the table, if it neither adds nor removes a file repeatedly.

    Notes
    -----
    Three integers a commit, and the kinds of its actions that are neither files' nor ``commitInfo``.
    """

    def __init__(self) -> None:
        self._changes: dict[int, tuple[int, int]] = {}
        self._kinds: dict[int, frozenset[str]] = {}

    def add(self, actions: ParsedActions, versions: Sequence[int]) -> None:
        """Add commits that were read with the column ``size``; one with a file of unknown size is left out."""
        first = min(versions, default=0)
        num_versions = max(versions, default=-1) + 1 - first
        files, num_bytes = np.zeros(num_versions, np.int64), np.zeros(num_versions, np.int64)
        is_known = np.ones(num_versions, bool)
        for table, sign in ((actions.adds, 1), (actions.removes, -1)):
            at = int64_values(table.column("version")) - first
            np.add.at(files, at, sign)
            np.add.at(num_bytes, at, sign * int64_values(table.column("size")))
            is_known[at[~is_valid(table.column("size"))]] = False
        for version in versions:
            i = version - first
            if is_known[i]:
                self._changes[version] = int(files[i]), int(num_bytes[i])
        own = pc.filter(actions.other_actions, pc.not_equal(actions.other_actions.column("kind"), "commitInfo"))
        for version, kind in zip(own.column("version").to_pylist(), own.column("kind").to_pylist(), strict=True):
            self._kinds[version] = self._kinds.get(version, frozenset()) | {kind}

    def has(self, kinds: AbstractSet[str], version: int, newer: int) -> bool:
        """Whether a commit above a version, up to a newer one, has an action of some kinds that are no files'."""
        return any(kinds & self._kinds.get(v, frozenset()) for v in range(version + 1, newer + 1))

    def before(self, version: int, newer: int, counts: tuple[int, int]) -> tuple[int, int] | None:
        """Return the files and bytes of a version from those of a newer one, None if a commit between is unknown."""
        files, num_bytes = counts
        for between in range(version + 1, newer + 1):
            change = self._changes.get(between)
            if change is None:
                return None
            files, num_bytes = files - change[0], num_bytes - change[1]
        return files, num_bytes


class ComparedChecksum(Struct, frozen=True):
    """A checksum file, and how it differs from its version.

    Parameters
    ----------
    file : LogFile
    value : dict or None
        Its content, None if it is no JSON object.
    differences : tuple of (str, Any, Any)
        The fields that differ, with their values and those of the version.
    counts : (int, int) or None
        The files and bytes of the version, if they are known.
    """

    file: LogFile
    value: Mapping[str, Any] | None
    differences: tuple[tuple[str, Any, Any], ...] = ()
    counts: tuple[int, int] | None = None

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return self.value is not None and not self.differences

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong."""
        if self.value is None:
            yield self._finding("checksum-unreadable", "no JSON object", "one", "warning")
        for name, have, own in self.differences:
            values = f"{name} is {shortened(json.dumps(have))}", f"{name} {shortened(json.dumps(own))}"
            yield self._finding("checksum-differs", *values)

    def _finding(self, rule: str, found: str, expected: str, severity: Any = "error") -> Finding:
        return Finding(rule, found, expected, _ADVICE, severity, f"{LOG_DIRECTORY}/{self.file.name}", self.file.version)


def check_checksums(
    context: TableContext, files: Sequence[LogFile], states: Mapping[int, Snapshot], totals: CommitTotals
) -> Iterator[Finding]:
    """Yield checksum files that can't be read, or differ from their version."""
    for compared in compare_checksums(context, files, states, totals):
        yield from compared.findings()


def compare_checksums(
    context: TableContext, files: Sequence[LogFile], states: Mapping[int, Snapshot], totals: CommitTotals
) -> Iterator[ComparedChecksum]:
    """Compare the checksum files with their versions, as ``files`` without checksums result in them; newest first.

    Versions that were loaded are compared in full. The numbers of files and bytes of the others are computed from those
    of the next newer version and the commits in between; a version whose numbers differ is loaded.
    """
    newer: tuple[int, tuple[int, int]] | None = None
    known: tuple[int, Mapping[str, Any]] | None = None
    for f in sorted((f for f in files if f.kind == "crc"), key=lambda f: -f.version):
        found = read_checksum_file(context, f)
        if found is None:
            continue
        if not isinstance(found, dict):
            yield ComparedChecksum(f, None)
            continue
        counts = None if newer is None else totals.before(f.version, *newer)
        snapshot = states.get(f.version)
        if snapshot is not None and snapshot.segment.checksum is not None:
            snapshot = _load(context, files, f.version)  # its definition may be this very checksum's
        fits = (
            counts is not None
            and _fits(found, counts)
            and known is not None
            and _repeats(found, f.version, *known, totals)
        )
        if snapshot is None and not fits:
            snapshot = _load(context, files, f.version)
        should = None if snapshot is None else _own_checksum(snapshot)
        if snapshot is not None and should is not None:
            counts = should["numFiles"], should["tableSizeBytes"]
            yield ComparedChecksum(f, found, tuple(_differences(found, should, snapshot)), counts)
        else:
            yield ComparedChecksum(f, found)
        if counts is not None:
            newer, known = (f.version, counts), (f.version, found if should is None else {**found, **should})


def _fits(found: Mapping[str, Any], counts: tuple[int, int]) -> bool:
    return counts == (found.get("numFiles"), found.get("tableSizeBytes")) and is_consistent(found)


def _repeats(
    found: Mapping[str, Any], version: int, newer: int, known: Mapping[str, Any], totals: CommitTotals
) -> bool:
    """Whether a checksum has the definition and the lists of a newer one that is right, if no commit changes them."""
    return not any(
        found.get(name) is not None and found[name] != known.get(name) or totals.has({kind}, version, newer)
        for name, kind in LISTED_KINDS.items()
    )


def read_checksum_file(context: TableContext, file: LogFile) -> Any:
    """Return the value of a checksum file, None if it is gone, and a text if it is no JSON."""
    try:
        (data,) = context.log.engine.storage.read([RangeRequest(f"{LOG_DIRECTORY}/{file.name}")])
    except FileNotFoundError:
        return None
    except IrregularFileError:
        return ""
    try:
        return decode_json(bytes(data))
    except ValueError:
        return ""


def _load(context: TableContext, files: Sequence[LogFile], version: int) -> Snapshot | None:
    """Return a version, None if it can't be built: other findings state why."""
    try:
        return open_version(context, files, version)
    except LogChangedError:
        raise
    except UNREADABLE:
        return None


def _own_checksum(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return what a version's checksum has to be, None if it can't be computed."""
    try:
        return whole_checksum(snapshot)
    except (EngineError, LogChangedError):
        raise
    except (DeltaError, ValueError, TypeError, LookupError):
        return None  # such as a commit without its time, which another rule reports


def _differences(
    found: Mapping[str, Any], should: Mapping[str, Any], snapshot: Snapshot
) -> Iterator[tuple[str, Any, Any]]:
    for name, value in should.items():  # numbers, those of features too
        if isinstance(value, int) and found.get(name) is not None and found[name] != value:
            yield name, found[name], value
    yield from _histogram_differences(found.get("fileSizeHistogram"), should.get("fileSizeHistogram"))
    # older writers leave both out
    if found.get("protocol") is not None and found.get("metadata") is not None:
        yield from _definition_differences(found, snapshot)
    for name, key, value in _LISTS:
        if isinstance(found.get(name), list) and isinstance(should.get(name), list):
            here, there = ({v.get(key): v.get(value) for v in values} for values in (found[name], should[name]))
            if here != there:
                yield name, here, there
    if isinstance(found.get("allFiles"), list):
        paths = sorted(f.get("path", "") for f in found["allFiles"])
        live = sorted(snapshot.files.columns(["path"]).column(0).to_pylist())
        if paths != live:
            yield "allFiles", f"{len(paths)} files", f"{len(live)} files"


def _histogram_differences(found: Any, should: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield a histogram that differs; one with other bins can't be compared."""
    if not isinstance(found, dict) or not isinstance(should, dict):
        return
    here, there = ([h.get(k) for k in ("sortedBinBoundaries", "fileCounts", "totalBytes")] for h in (found, should))
    if here[0] == there[0] and here != there:
        yield "fileSizeHistogram", here[1:], there[1:]


def _definition_differences(found: Mapping[str, Any], snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
    try:
        protocol, metadata = Protocol.parse(found["protocol"], "it"), Metadata.parse(found["metadata"], "it")
        schema = metadata.schema
    except (DeltaError, ValueError, AttributeError, TypeError) as e:
        yield "metadata", str(e), "the table's own"
        return
    if protocol_parts(protocol) != protocol_parts(snapshot.protocol):
        yield "protocol", found["protocol"], snapshot.protocol.to_json()
    own = snapshot.metadata
    here = (metadata.id, metadata.partition_columns, metadata.configuration, schema)
    if here != (own.id, own.partition_columns, own.configuration, snapshot.schema):
        yield "metadata", found["metadata"], own.to_json()
