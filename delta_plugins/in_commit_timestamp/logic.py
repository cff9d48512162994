"""From table properties to where commit times are, and the time of an attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from delta_core.api import (
    ChecksumField,
    CommitCheck,
    CommitSummary,
    CommitTimestamp,
    CorruptTableError,
    Finding,
    Metadata,
    TableState,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = [
    "ENABLEMENT_TIMESTAMP",
    "ENABLEMENT_VERSION",
    "FIELD",
    "SWITCH",
    "check_no_preview",
    "checksum_fields",
    "commit_check",
    "commit_timestamps",
    "timestamp_of",
    "with_enablement",
    "with_start",
]

NAME = "inCommitTimestamp"
SWITCH = "delta.enableInCommitTimestamps"
FIELD = "inCommitTimestamp"
ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def commit_timestamps(configuration: Mapping[str, str]) -> CommitTimestamp:
    """Return the rule of a table whose in-commit timestamps are on.

    Without the enablement properties they are on since version 0.

    Raises
    ------
    CorruptTableError
        For one property without the other, or a value that is not a number.
    """
    version, timestamp_ms = (_number(configuration, name) for name in (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP))
    if (version is None) != (timestamp_ms is None):
        present, absent = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)[:: 1 if timestamp_ms is None else -1]
        raise CorruptTableError(f"Table property {present} is set without {absent}, expected both or none.")
    return CommitTimestamp(NAME, FIELD, version or 0, timestamp_ms)


def checksum_fields(table: TableState, commit: CommitSummary) -> list[ChecksumField]:
    """Return the commit's time, from the version on that has one.

    Raises
    ------
    CorruptTableError
        For a commit without a time.
    """
    if commit.version < commit_timestamps(table.configuration).enablement_version:
        return []
    if FIELD not in commit.info:
        raise CorruptTableError(f"Version {commit.version} has no {FIELD} in its commitInfo, expected its time.")
    return [ChecksumField(NAME, "inCommitTimestampOpt", commit.info[FIELD])]


def _number(configuration: Mapping[str, str], name: str) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise CorruptTableError(f"Table property {name} is {text!r}, expected a number from 0.", property=name)
    return number


def commit_check(table: TableState) -> CommitCheck:
    """Return the check that each commit has a time, above that of the one before. Protocol: In-Commit Timestamps."""
    first = commit_timestamps(table.configuration).enablement_version
    return CommitCheck(NAME, partial(_check_times, first=first))


def _check_times(infos: Mapping[int, Mapping[str, Any]], first: int) -> Iterator[Finding]:
    last: int | None = None
    for version, info in infos.items():
        if version < first:
            continue
        found = info.get(FIELD)
        if not isinstance(found, int) or last is not None and found <= last:
            is_missing = not isinstance(found, int)
            yield Finding(
                "commit-time-wrong",
                f"no {FIELD}" if is_missing else f"{FIELD} {found}, after {last} of the commit before",
                "a time above that of the commit before",
                "Time travel by timestamp may return another version; use version numbers.",
                "error" if is_missing else "warning",
                version=version,
            )
        last = found if isinstance(found, int) else last


# --- writing -------------------------------------------------------------------------------


def timestamp_of(attempt: AttemptView) -> int:
    """Return the attempt's commit time: now, and above that of the version before. ms since the epoch."""
    before = attempt.previous_timestamp_ms
    return attempt.now_ms if before is None else max(attempt.now_ms, before + 1)


def check_no_preview(table: TableState) -> None:
    """Reject to write a table whose times a preview release switched on: it has them under other properties.

    Raises
    ------
    UnsupportedFeatureError
        If the preview's property is true.
    """
    name = f"{SWITCH}-preview"
    if table.flag(name):
        raise UnsupportedFeatureError(
            f"Table property {name}=true was set by a preview of {NAME}, whose commits are not written here. Set "
            f"{SWITCH} instead, without -preview.",
            feature=NAME,
            property=name,
        )


def with_enablement(table: TableState, metadata: Metadata, previous: TableState | None) -> Metadata:
    """Return the metadata with when the times began: as the altered table has it, else not yet."""
    names = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)
    found = {k: v for k, v in metadata.configuration.items() if k not in names}
    if previous is not None and previous.is_active(NAME) and table.is_active(NAME):
        found |= {k: previous.configuration[k] for k in names if k in previous.configuration}
    return metadata if found == metadata.configuration else replace(metadata, configuration=found)


def with_start(attempt: AttemptView, metadata: Metadata) -> Metadata:
    """Return the metadata with version and time of this attempt, if it is the one that begins to have times.

    Tables that have them from version 0 on do not specify it. Protocol: Writer Requirements for In-Commit Timestamps.
    """
    previous = attempt.previous
    if not attempt.table.is_active(NAME) or previous is None or previous.is_active(NAME):
        return metadata
    start = {ENABLEMENT_VERSION: str(attempt.version), ENABLEMENT_TIMESTAMP: str(timestamp_of(attempt))}
    return replace(metadata, configuration={**metadata.configuration, **start})
