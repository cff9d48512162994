"""Checks of checksum files: all of those of loaded versions, the numbers of files and bytes of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from delta_core.engines.interface import LogFiles
from delta_core.engines.records import ActionQuery, RangeRequest
from delta_core.errors import DeltaError, EngineError, LogChangedError, LogError, shortened
from delta_core.kernels.arrow_buffers import int64_values, is_valid
from delta_core.kernels.json_actions import ParsedActions
from delta_core.log.checksum import whole_checksum
from delta_core.log.names import LOG_DIRECTORY
from delta_core.plugins.checks import Finding
from delta_core.plugins.plans import LogFile
from delta_core.protocol.actions import Metadata, Protocol
from delta_core.runtime.json_text import decode_json
from delta_core.snapshot import Snapshot, TableContext

__all__ = ["COMMIT_BATCH", "COMMIT_KEYS", "CommitTotals", "check_checksums", "protocol_parts", "read_totals"]

#: How many commits are parsed at once: bounds memory over long logs.
COMMIT_BATCH = 512
#: What of their files is read.
COMMIT_KEYS = ActionQuery(("size",))

_ADVICE = "Delete it; repair does. Readers need none."
#: Lists of a checksum, with the key and the value of their elements.
_LISTS = (("setTransactions", "appId", "version"), ("domainMetadata", "domain", "configuration"))


class CommitTotals:
    """By how many files and bytes each commit changes the table, if it neither adds nor removes a file repeatedly.

    Notes
    -----
    Three integers a commit.
    """

    def __init__(self) -> None:
        self._changes: dict[int, tuple[int, int]] = {}

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

    def before(self, version: int, newer: int, counts: tuple[int, int]) -> tuple[int, int] | None:
        """Return the files and bytes of a version from those of a newer one, None if a commit between is unknown."""
        files, num_bytes = counts
        for between in range(version + 1, newer + 1):
            change = self._changes.get(between)
            if change is None:
                return None
            files, num_bytes = files - change[0], num_bytes - change[1]
        return files, num_bytes


def read_totals(logs: LogFiles, files: Sequence[LogFile]) -> CommitTotals:
    """Return the totals of all commits that can be read."""
    totals = CommitTotals()
    commits = [f for f in files if f.kind in ("commit", "staged")]
    for start in range(0, len(commits), COMMIT_BATCH):
        batch = commits[start : start + COMMIT_BATCH]
        try:
            totals.add(logs.read_commits(batch, COMMIT_KEYS), [f.version for f in batch])
        except LogChangedError:
            raise
        except LogError:
            continue  # their versions are loaded, as far as they can be
    return totals


def check_checksums(
    context: TableContext, files: Sequence[LogFile], states: Mapping[int, Snapshot], totals: CommitTotals
) -> Iterator[Finding]:
    """Yield checksum files that can't be read, or differ from their version.

    Versions that were loaded are compared in full. The numbers of files and bytes of the others are computed from those
    of the next newer version and the commits in between; a version whose numbers differ is loaded.
    """
    newer: tuple[int, tuple[int, int]] | None = None
    for f in sorted((f for f in files if f.kind == "crc"), key=lambda f: -f.version):
        found = _read(context, f)
        if found is None:
            continue
        if not isinstance(found, dict):
            yield _finding(f, "checksum-unreadable", "no JSON object", "one", "warning")
            continue
        counts = None if newer is None else totals.before(f.version, *newer)
        snapshot = states.get(f.version)
        if snapshot is None and (counts is None or counts != (found.get("numFiles"), found.get("tableSizeBytes"))):
            snapshot = _load(context, f.version)
        should = None if snapshot is None else _own_checksum(snapshot)
        if snapshot is not None and should is not None:
            for name, have, own in _differences(found, should, snapshot):
                values = f"{name} is {shortened(json.dumps(have))}", f"{name} {shortened(json.dumps(own))}"
                yield _finding(f, "checksum-differs", *values)
            counts = should["numFiles"], should["tableSizeBytes"]
        if counts is not None:
            newer = f.version, counts


def _finding(file: LogFile, rule: str, found: str, expected: str, severity: Any = "error") -> Finding:
    return Finding(rule, found, expected, _ADVICE, severity, f"{LOG_DIRECTORY}/{file.name}", file.version)


def _read(context: TableContext, file: LogFile) -> Any:
    """Return the value of a checksum file, None if it is gone, and a text if it is no JSON."""
    try:
        (data,) = context.log.engine.storage.read([RangeRequest(f"{LOG_DIRECTORY}/{file.name}")])
    except FileNotFoundError:
        return None
    try:
        return decode_json(bytes(data))
    except ValueError:
        return ""


def _load(context: TableContext, version: int) -> Snapshot | None:
    """Return a version, None if it can't be built: other findings state why."""
    try:
        return context.read(version)
    except (EngineError, LogChangedError):
        raise
    except DeltaError:
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


def protocol_parts(protocol: Protocol) -> tuple[Any, ...]:
    """Return what two protocols are compared by: lists of features have no order."""
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )
