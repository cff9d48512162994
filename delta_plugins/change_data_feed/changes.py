"""The operations ``changes`` and ``plan_changes``: the rows that a range of versions inserted, deleted and updated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.api import (
    Commit,
    Field,
    FileSet,
    InvalidArgumentError,
    LogError,
    Metadata,
    Scan,
    Schema,
    SchemaError,
    Snapshot,
    StructType,
    UnsupportedOperationError,
    VersionNotFoundError,
    are_excluded,
    check_number,
    parse_ms,
    parse_version,
    supported_features,
    why_stored_otherwise,
    why_unreadable,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import empty_table, int64_values, mask_of, number_array, one_array, scalar_of
from delta_core.kernels.row_set import RowSet
from delta_plugins.change_data_feed import logic

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PlannedChanges", "changes", "plan_changes"]

#: The key of a column's metadata with its name in files.
_PHYSICAL = "delta.columnMapping.physicalName"
#: How many commits are read first if limits may exclude the others.
_FIRST_COMMITS = 16


def changes(
    source: Any,
    start_version: int | None = None,
    end_version: int | None = None,
    *,
    start_timestamp: str | datetime | None = None,
    end_timestamp: str | datetime | None = None,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    limit: int | None = None,
    allow_out_of_range: bool = False,
    exclude_regex: str | None = None,
    latest_columns: bool = False,
    ignore_renames: bool = False,
) -> Scan:
    """Return the rows that a range of versions changed.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The latest version requested.
    start_version, end_version : int, optional
        Both are part of the range; 0 and the source's version unless given.
    start_timestamp, end_timestamp : str or datetime, optional
        Instead of a version: the first version committed at or after, the last one at or before.
    columns, predicate, limit : optional
        As for a scan.
    allow_out_of_range : bool
        Cut a range that reaches beyond the source's version, to nothing where it begins beyond, instead of an error.
    exclude_regex : str, optional
        Changes of files, and of change files, whose path in the log contains a match are left out; RE2's syntax.
    latest_columns : bool
        Whether the columns are those of the source's version, also if the range ends before.
    ignore_renames : bool
        Whether rows are read although columns were renamed or dropped within the range.

    Returns
    -------
    Scan
        The table's columns as at the end of the range, unless ``latest_columns``, then ``_change_type`` (insert,
        delete, update_preimage or update_postimage), ``_commit_version`` and ``_commit_timestamp``.

    Raises
    ------
    UnsupportedOperationError
        The change data feed was off at a version of the range, or the table has columns of its own of these names.
    SchemaError
        The schema changed within the range so that older rows can't be read by the newer one.
    VersionNotFoundError
        A commit of the range is gone or not yet there.
    InvalidArgumentError
        If the range begins beyond the source's version.

    Notes
    -----
    Reads the commits of the range when it is called, and the vectors of files that changed theirs.
    """
    return plan_changes(
        source,
        start_version,
        end_version,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        columns=columns,
        predicate=predicate,
        limit=limit,
        allow_out_of_range=allow_out_of_range,
        exclude_regex=exclude_regex,
        latest_columns=latest_columns,
        ignore_renames=ignore_renames,
    ).scan


class PlannedChanges(Struct, frozen=True):
    """The changes of the first versions of a range.

    Parameters
    ----------
    scan : Scan
        The rows that changed.
    start, stop : int
        The first version, and the one after the last version, whose changes the scan returns.
    end : int
        The last version of the range.
    """

    scan: Scan
    start: int
    stop: int
    end: int


def plan_changes(
    source: Any,
    start_version: int | None = None,
    end_version: int | None = None,
    *,
    start_timestamp: str | datetime | None = None,
    end_timestamp: str | datetime | None = None,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    limit: int | None = None,
    allow_out_of_range: bool = False,
    exclude_regex: str | None = None,
    latest_columns: bool = False,
    ignore_renames: bool = False,
    max_files: int | None = None,
    max_bytes: int | None = None,
) -> PlannedChanges:
    """Plan a read of the rows that a range of versions changed, or of the first versions of the range.

    Parameters
    ----------
    source, start_version, end_version, start_timestamp, end_timestamp, columns, predicate, limit, allow_out_of_range
        As of `changes`.
    exclude_regex : str, optional
        As of `changes`; excluded files count for the limits too.
    latest_columns, ignore_renames : bool
        As of `changes`.
    max_files, max_bytes : int, optional
        End before the version whose changes would exceed these numbers of files or bytes. The changes of a version are
        never divided; the first version that has changes is included, whatever their size.

    Raises
    ------
    InvalidArgumentError
        For a limit below 1. In addition the errors of `changes`.

    Notes
    -----
    With a limit, only the commits that it includes are checked, and those that were read with them.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    limits = _Limits.of(max_files, max_bytes)
    start = _first(snapshot, start_version, start_timestamp)
    end = _last(snapshot, end_version, end_timestamp)
    if allow_out_of_range:
        end = min(end, snapshot.version)
    files, last, stop = empty_table(logic.FILES), snapshot, start
    keep: dict[int, RowSet] = {}
    if not (allow_out_of_range and start > end):
        if start > snapshot.version:
            raise _begins_late(snapshot, start, start_timestamp)
        _check_range(snapshot, start, end)
        last = snapshot if latest_columns else snapshot.at(end)
        commits = list(snapshot.commits(start, end)) if limits is None else _within(snapshot, start, end, limits)
        stop = start + len(commits)
        _check_columns(last.schema)
        _check_history(last, start, commits, ignore_renames)
        files, keep = _changed_files(last, commits)
        if exclude_regex is not None:
            files, keep = _without_matches(files, keep, exclude_regex)
    scan = last.scan(
        columns, logic.COLUMNS, predicate, limit, files=FileSet.of(files, keep=keep or None), purpose="changes"
    )
    return PlannedChanges(scan, start, stop, end)


# --- limits ---


class _Limits(Struct, frozen=True):
    files: float
    bytes: float

    @classmethod
    def of(cls, max_files: int | None, max_bytes: int | None) -> _Limits | None:
        for name, value in (("max_files", max_files), ("max_bytes", max_bytes)):
            check_number(name, value, 1)
        if max_files is None and max_bytes is None:
            return None
        return cls(*(inf if value is None else value for value in (max_files, max_bytes)))


def _within(snapshot: Snapshot, start: int, end: int, limits: _Limits) -> list[Commit]:
    """Return the commits from version ``start`` on whose changes are within the limits."""
    found: list[Commit] = []
    files = size = 0
    num_read = _FIRST_COMMITS
    while start <= end:
        commits = list(snapshot.commits(start, min(start + num_read - 1, end)))
        measures = zip(*logic.measure_changes(logic.find_changes(commits), start, len(commits)), strict=True)
        for commit, (num_files, num_bytes) in zip(commits, measures, strict=True):
            exceeds = files + num_files > limits.files or size + num_bytes > limits.bytes
            if files and num_files and exceeds:
                return found
            files, size = files + int(num_files), size + int(num_bytes)
            found.append(commit)
        start, num_read = start + len(commits), num_read * 2
    return found


# --- which versions ---


def _first(snapshot: Snapshot, version: int | None, timestamp: str | datetime | None) -> int:
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("Found both start_version and start_timestamp, expected one of the two.")
    if timestamp is None:
        return 0 if version is None else parse_version(version, "start_version")
    return snapshot.version_since(parse_ms(timestamp, snapshot.timezone))


def _last(snapshot: Snapshot, version: int | None, timestamp: str | datetime | None) -> int:
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("Found both end_version and end_timestamp, expected one of the two.")
    if timestamp is None:
        return snapshot.version if version is None else parse_version(version, "end_version")
    return snapshot.version_at(parse_ms(timestamp, snapshot.timezone))


def _check_range(snapshot: Snapshot, start: int, end: int) -> None:
    if start < 0 or start > end:
        raise InvalidArgumentError(f"Found changes from version {start} to {end}, expected 0 <= start <= end.")
    if end > snapshot.version:
        raise VersionNotFoundError(
            f"Changes are requested up to version {end}, the table is at version {snapshot.version}.", version=end
        )


def _begins_late(snapshot: Snapshot, start: int, timestamp: str | datetime | None) -> InvalidArgumentError:
    asked = f"from version {start} on" if timestamp is None else f"from {timestamp} on"
    return InvalidArgumentError(
        f"Changes are requested {asked}; the table's latest version is {snapshot.version}. "
        "load_cdf and read_changes return no rows instead with allow_out_of_range=True, and changes with the position "
        "of an earlier feed.",
        version=start,
    )


# --- whether they report their changes ---


def _check_columns(schema: Schema) -> None:
    taken = [f.name for name in logic.COLUMNS if (f := schema.get(name)) is not None]
    if taken:
        raise UnsupportedOperationError(
            f"The table has a column {taken[0]!r} of its own, a name that the change data feed needs. Rename the "
            "column.",
            column=taken[0],
        )


def _check_history(last: Snapshot, start: int, commits: Sequence[Commit], ignore_renames: bool) -> None:
    """Check that the feed is on at every version, and that each version's rows fit the last one's schema."""
    first = commits[0]
    if first.metadata is None or first.protocol is None:
        is_same = start + len(commits) > last.version and all(
            c.metadata is None and c.protocol is None for c in commits
        )
        before = last if is_same else last.at(start)
        _check_protocol(last, before.state.reader_features, start)
        _check_metadata(last, before.metadata, start, ignore_renames)
        _check_forms(last, start)
    _check_removed(last, first, ignore_renames)
    for commit in commits:
        if commit.protocol is not None:
            _check_protocol(last, supported_features(commit.protocol).reader, commit.version)
        if commit.metadata is not None:
            _check_metadata(last, commit.metadata, commit.version, ignore_renames)
            _check_forms(last, commit.version)


def _check_protocol(last: Snapshot, names: frozenset[str], version: int) -> None:
    gone = sorted(last.plugins.canonical(names) - last.state.features)
    if gone:
        raise UnsupportedOperationError(
            f"Version {version} needs the reader feature {gone[0]}, which version {last.version} no longer has: its "
            "files can't be read by the later protocol. End the range before the feature was dropped.",
            version=version,
            feature=gone[0],
        )


def _check_metadata(last: Snapshot, metadata: Metadata, version: int, ignore_renames: bool) -> None:
    if not logic.is_enabled(metadata.configuration):
        raise UnsupportedOperationError(
            f"The change data feed is off at version {version} ({logic.PROPERTY} is not true): its changes were not "
            "recorded. Choose a range in which it is on.",
            version=version,
        )
    why = _misfit(last, _renamed(last, metadata) if ignore_renames else metadata)
    if why is not None:
        raise _unreadable(last, version, why)


def _check_forms(last: Snapshot, version: int) -> None:
    """Check that files of a version store columns as those of the last one do."""
    if not last.plugins.implements("column_encodings"):
        return
    why = why_stored_otherwise(last.at(version).state, last.state)
    if why is not None:
        raise SchemaError(
            f"The rows of version {version} can't be read as those of version {last.version}: {why} in one of them. "
            "Read the two sides of the change separately, with end_version before it.",
            version=version,
        )


def _check_removed(last: Snapshot, first: Commit, ignore_renames: bool) -> None:
    """Check that the rows which the first commit deletes can be read although it changes the schema."""
    if not first.version or first.metadata is None or not _deletes_files(first):
        return
    with suppress(VersionNotFoundError):  # the files are checked when they are read
        before = last.at(first.version - 1).metadata
        why = _misfit(last, _renamed(last, before) if ignore_renames else before)
        if why is not None:
            raise _unreadable(last, first.version - 1, why)
        _check_forms(last, first.version - 1)


def _deletes_files(commit: Commit) -> bool:
    return not commit.cdcs.num_rows and bool(mask_of(one_array(commit.removes.column("dataChange"))).any())


def _unreadable(last: Snapshot, version: int, why: str) -> SchemaError:
    """Return the error of rows that the last version's schema can't read, with the ranges that can be read."""
    changed = next(
        c
        for c in last.commits(version + 1, last.version)
        if c.metadata is not None and _misfit(last, c.metadata) is None
    )
    behind = changed.version + _deletes_files(changed)
    return SchemaError(
        f"The rows of version {version} can't be read with the schema of version {last.version}: "
        f"{why}, changed in version {changed.version}. Read the two sides of the change separately: the range that "
        f"ends at version {changed.version - 1}, and the one that begins at version {behind}.",
        version=version,
        changed_version=changed.version,
    )


def _misfit(last: Snapshot, metadata: Metadata) -> str | None:
    """Return why rows of an older definition can't be read with the last one, None if they can."""
    widened = last.state.is_supported("typeWidening")
    return why_unreadable(metadata, last.metadata, widened, _PHYSICAL)


def _renamed(last: Snapshot, metadata: Metadata) -> Metadata:
    """Return an older definition with the last one's names of columns, and without those that were dropped since."""
    return replace(metadata, schema_string=_with_names(metadata.schema, last.metadata.schema).to_json())


def _with_names(old: StructType, new: StructType) -> StructType:
    now = {f.metadata.get(_PHYSICAL, f.name): f for f in new.members}
    members = []
    for f in old.members:
        other = now.get(f.metadata.get(_PHYSICAL, f.name))
        if other is not None:
            kind = f.type
            if isinstance(kind, StructType) and isinstance(other.type, StructType):
                kind = _with_names(kind, other.type)
            members.append(Field(other.name, kind, f.nullable, f.metadata))
    return StructType(members)


# --- the location of their rows ---


def _changed_files(last: Snapshot, commits: Sequence[Commit]) -> tuple[pa.Table, dict[int, RowSet]]:
    """Return the files to read, and of some the rows that changed."""
    found = logic.find_changes(commits)
    whole, before, after = found.files, found.before, found.after
    _check_partitions(last, whole)
    if not before.num_rows:
        return _by_version(whole, {})
    dropped_before, dropped_after = last.row_sets(before), last.row_sets(after)
    none = RowSet.empty()
    deleted, inserted = {}, {}
    for row in range(before.num_rows):
        old, new = dropped_before.get(row, none), dropped_after.get(row, none)
        if rows := new - old:
            deleted[row] = rows
        if rows := old - new:
            inserted[row] = rows
    # the kept rows report everything: the vectors themselves and statistics of the whole file no longer apply
    partial = [
        _bare(after.take(np.array(list(rows), np.int64)), change)
        for rows, change in ((deleted, "delete"), (inserted, "insert"))
    ]
    kept = [*deleted.values(), *inserted.values()]
    return _by_version(pa.concat_tables([whole, *partial]), dict(enumerate(kept, start=whole.num_rows)))


def _by_version(files: pa.Table, keep: dict[int, RowSet]) -> tuple[pa.Table, dict[int, RowSet]]:
    """Return files in the order of their commits, with the row sets of the same files."""
    versions = int64_values(files.column(logic.COMMIT_VERSION))
    if not (versions[1:] < versions[:-1]).any():
        return files, keep
    return _taken(files, keep, np.argsort(versions, kind="stable"))


def _without_matches(
    files: pa.Table, keep: dict[int, RowSet], exclude_regex: str
) -> tuple[pa.Table, dict[int, RowSet]]:
    """Return the files whose path contains no match, with the row sets of the same files."""
    return _taken(files, keep, np.flatnonzero(~mask_of(are_excluded(one_array(files.column("path")), exclude_regex))))


def _taken(files: pa.Table, keep: dict[int, RowSet], rows: NDArray[np.intp]) -> tuple[pa.Table, dict[int, RowSet]]:
    """Return some of the files, in another order, with the row sets of the same files."""
    place = np.full(files.num_rows, -1)
    place[rows] = np.arange(len(rows))
    return pc.take(files, number_array(rows)), {int(place[row]): kept for row, kept in keep.items() if place[row] >= 0}


def _bare(files: pa.Table, change: str) -> pa.Table:
    for name, value in {"stats": None, "deletionVector": None, "dvId": None, logic.CHANGE_TYPE: change}.items():
        index = files.schema.get_field_index(name)
        field = files.schema.field(index)
        files = files.set_column(index, field, pa.repeat(scalar_of(value, field.type), files.num_rows))
    return files


def _check_partitions(last: Snapshot, files: pa.Table) -> None:
    values = files.column("partitionValues")
    if last.metadata.partition_columns and values.null_count:
        bad = files.filter(values.is_null()).slice(0, 1).to_pylist()[0]
        raise LogError(
            f"File {bad['path']!r} was removed at version {bad[logic.COMMIT_VERSION]} without its partition values "
            "(extendedFileMetadata is not set): its rows cannot be determined. Start the range after that version.",
            version=bad[logic.COMMIT_VERSION],
            path=bad["path"],
        )
