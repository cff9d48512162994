"""The operation ``diff``: the rows in which two versions of a table differ, found by their row ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.api import (
    CorruptTableError,
    FileSet,
    PrimitiveType,
    Scan,
    SchemaError,
    Snapshot,
    UnsupportedOperationError,
    parse_version,
    why_stored_otherwise,
    why_unreadable,
)
from delta_core.kernels.arrow_buffers import array_of, bool_array, int64_values, number_array, one_array, scalar_of
from delta_core.kernels.row_set import RowSet, RowSets

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COLUMNS", "diff"]

_FEATURE = "rowTracking"
#: Named as in the change data feed.
CHANGE_TYPE = "_change_type"
_LONG, _STRING = PrimitiveType("long"), PrimitiveType("string")
_ROW_ID, _ROW_VERSION = "_row_id", "_row_commit_version"
#: The columns of a diff after the table's.
COLUMNS = (CHANGE_TYPE, _ROW_ID, _ROW_VERSION)
#: The columns of a file table that specify which rows a file has, and their ids.
_IDENTITY = ("path", "dvId", "baseRowId", "defaultRowCommitVersion")
#: Without statistics: they are those of whole files, while a diff returns some of their rows.
_FILES = (*_IDENTITY, "partitionValues", "size", "deletionVector")
_FILE_NUMBER, _ROW_INDEX = "__file_number", "_file_row_index"


class _Side(NamedTuple):
    """One version's files in which rows may differ, and which rows."""

    files: pa.Table
    rows: dict[int, RowSet]


class _Ids(NamedTuple):
    """Row ids in ascending order, and of each the commit version, the number of its file and its position there."""

    ids: NDArray[np.int64]
    versions: NDArray[np.int64]
    files: NDArray[np.int64]
    positions: NDArray[np.int64]


def diff(
    source: Any,
    start_version: int,
    end_version: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    limit: int | None = None,
) -> Scan:
    """Return the rows in which two versions differ, by their row ids; no change data feed is needed.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The end, unless ``end_version`` is given.
    start_version, end_version : int
        The two versions. Where the end is the older one, the diff is that of the way back.
    columns, predicate, limit : optional
        As for a scan, over the columns of the later version.

    Returns
    -------
    Scan
        The later version's columns, then ``_change_type`` (insert, delete, update_preimage or update_postimage),
        ``_row_id`` and ``_row_commit_version``, both int64 and never null.

    Raises
    ------
    UnsupportedOperationError
        Row tracking was not on at one of the versions, or the table has a column named ``_change_type``.
    SchemaError
        Rows of the older version can't be read by the later one's schema.
    VersionNotFoundError
        There is no such version, or it was cleaned up.
    CorruptTableError
        A row without an id, or two rows with one id.

    Notes
    -----
    Reads the logs of both versions, and the row ids of the files that only one of them has; the rows themselves when
    the scan is read. A row is updated if its commit version differs: what compaction moves is no change. In a clone,
    whose rows have commit versions of its source too, the values decide if these versions don't.
    Protocol: Row Tracking.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    start = snapshot.at(parse_version(start_version, "start_version"))
    end = snapshot if end_version is None else snapshot.at(parse_version(end_version, "end_version"))
    later, earlier = (end, start) if end.version >= start.version else (start, end)
    for version in (start, end):
        _check_tracked(version)
    _check_readable(earlier, later)
    before, after = _differing(start, end)
    old, new = _ids(later, before), _ids(later, after)
    if len(old.ids) and len(new.ids):
        place = np.searchsorted(new.ids, old.ids)
        matched = new.ids[np.minimum(place, len(new.ids) - 1)] == old.ids
        changed = matched.copy()
        changed[matched] = new.versions[place[matched]] != old.versions[matched]
        foreign = _ambiguous(earlier, later, old, matched & ~changed)
        if foreign.any():
            others = np.zeros(len(new.ids), np.bool_)
            others[place[foreign]] = True
            own = [
                _rows(later, *_part(files, ids, chosen, ""))
                for files, ids, chosen in ((before.files, old, foreign), (after.files, new, others))
            ]
            changed[foreign] = _differ(*own)
        is_new, updated = np.ones(len(new.ids), np.bool_), np.zeros(len(new.ids), np.bool_)
        is_new[place[matched]] = False
        updated[place[changed]] = True
    else:
        matched = changed = np.zeros(len(old.ids), np.bool_)
        is_new, updated = np.ones(len(new.ids), np.bool_), np.zeros(len(new.ids), np.bool_)
    parts = [
        _part(before.files, old, ~matched, "delete"),
        _part(before.files, old, changed, "update_preimage"),
        _part(after.files, new, updated, "update_postimage"),
        _part(after.files, new, is_new, "insert"),
    ]
    keep = dict(enumerate(rows for _, kept in parts for rows in kept))
    return later.scan(
        columns,
        (_ROW_ID, _ROW_VERSION),
        predicate,
        limit,
        files=FileSet.of(pa.concat_tables([files for files, _ in parts]), keep=keep or None),
        constants={CHANGE_TYPE: (CHANGE_TYPE, _STRING)},
    )


# --- whether the versions can be compared ---


def _check_tracked(snapshot: Snapshot) -> None:
    if not snapshot.state.is_active(_FEATURE):
        raise UnsupportedOperationError(
            f"Row tracking is off at version {snapshot.version}, so its rows have no ids to compare. Compare versions "
            "since delta.enableRowTracking is true, or read the change data feed.",
            version=snapshot.version,
            feature=_FEATURE,
        )


def _check_readable(earlier: Snapshot, later: Snapshot) -> None:
    for name in COLUMNS:
        if (taken := later.schema.get(name)) is not None:
            raise UnsupportedOperationError(
                f"The table has a column {taken.name!r} of its own, a name that a diff needs. Rename the column.",
                column=taken.name,
            )
    gone = sorted(earlier.plugins.canonical(earlier.state.reader_features) - later.state.features)
    if gone:
        raise UnsupportedOperationError(
            f"Version {earlier.version} needs the reader feature {gone[0]}, which version {later.version} no longer "
            "has: its files can't be read by the later protocol. Compare versions on one side of the change.",
            version=earlier.version,
            feature=gone[0],
        )
    widened = later.state.is_supported("typeWidening")
    why = why_unreadable(earlier.metadata, later.metadata, widened, "delta.columnMapping.physicalName")
    why = why or why_stored_otherwise(earlier.state, later.state)
    if why is not None:
        raise SchemaError(
            f"The rows of version {earlier.version} can't be read with the schema of version {later.version}: {why}. "
            "Compare versions on one side of the change.",
            version=earlier.version,
        )


# --- the rows that may differ ---


def _differing(start: Snapshot, end: Snapshot) -> tuple[_Side, _Side]:
    """Return the files that only one version has; of files with another vector, only the rows that one has."""
    old, new = (_files(s, other) for s, other in ((start, end), (end, start)))
    place = _place(old, new, ("path", "baseRowId", "defaultRowCommitVersion"))
    shared = np.flatnonzero(place >= 0)
    if not len(shared):
        return _Side(old, {}), _Side(new, {})
    dropped_old, dropped_new = start.row_sets(old), end.row_sets(new)
    none = RowSet.empty()
    rows_old: dict[int, RowSet] = {}
    rows_new: dict[int, RowSet] = {}
    for i in shared.tolist():
        j = int(place[i])
        rows_old[i] = dropped_new.get(j, none) - dropped_old.get(i, none)
        rows_new[j] = dropped_old.get(i, none) - dropped_new.get(j, none)
    return _side(old, rows_old), _side(new, rows_new)


def _side(files: pa.Table, rows: dict[int, RowSet]) -> _Side:
    """Return files without those that have no row left."""
    left = [i for i in range(files.num_rows) if i not in rows or rows[i]]
    return _Side(files.take(array_of(left, pa.int64())), {n: rows[i] for n, i in enumerate(left) if i in rows})


def _files(snapshot: Snapshot, other: Snapshot) -> pa.Table:
    """Return the files of a snapshot that the other does not have in the same form."""
    own, others = snapshot.files.columns(list(_FILES)), other.files.columns(list(_IDENTITY))
    return own.filter(bool_array(_place(own, others, _IDENTITY) < 0))


def _place(files: pa.Table, others: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the row of each file in another table by some columns, -1 if that has none."""
    numbers = _numbered(pa.concat_tables([files.select(names), others.select(names)]))
    own, theirs = numbers[: files.num_rows], numbers[files.num_rows :]
    place = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    place[theirs] = np.arange(len(theirs))
    return place[own]


def _numbered(rows: pa.Table) -> NDArray[np.int64]:
    """Return a number for each row, the same for equal ones."""
    numbers = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        whole = one_array(column)
        codes = int64_values(whole.dictionary_encode(null_encoding="encode").indices.cast(pa.int64()))
        # both below the number of rows: no overflow up to 3e9 files
        numbers = np.unique(numbers * (rows.num_rows + 1) + codes, return_inverse=True)[1]
    return numbers


# --- ids ---


def _ids(later: Snapshot, side: _Side) -> _Ids:
    """Read the ids of the rows of one side."""
    found: list[list[NDArray[np.int64]]] = [[], [], [], []]
    if side.files.num_rows:
        numbered = side.files.append_column(_FILE_NUMBER, number_array(np.arange(side.files.num_rows)))
        scan = later.scan(
            [],
            (_ROW_ID, _ROW_VERSION, _ROW_INDEX),
            files=FileSet.of(numbered, keep=side.rows or None),
            constants={_FILE_NUMBER: (_FILE_NUMBER, _LONG)},
        )
        names = (_ROW_ID, _ROW_VERSION, _FILE_NUMBER, _ROW_INDEX)
        for batch in scan.batches():
            for name, values in zip(names, found, strict=True):
                column = batch.column(name)
                if column.null_count:
                    raise CorruptTableError(
                        f"{column.null_count} rows of {later.uri} have no {name}, which row tracking assigns to every "
                        "row. Read the change data feed instead, or compare other versions.",
                        column=name,
                    )
                values.append(int64_values(column))
    ids, versions, files, positions = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in found)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    doubled = np.flatnonzero(ids[1:] == ids[:-1])
    if len(doubled):
        raise CorruptTableError(
            f"Two rows of {later.uri} have the row id {ids[doubled[0]]}: their versions can't be compared.",
            row_id=int(ids[doubled[0]]),
        )
    return _Ids(ids, versions[order], files[order], positions[order])


def _part(files: pa.Table, ids: _Ids, chosen: NDArray[np.bool_], change: str) -> tuple[pa.Table, list[RowSet]]:
    """Return the files with the chosen rows, with their kind of change, and these rows."""
    rows = RowSets.from_positions(files.num_rows, ids.files[chosen], ids.positions[chosen])
    touched = np.flatnonzero(rows.cardinalities())
    found = files.take(number_array(touched))
    return found.append_column(CHANGE_TYPE, pa.repeat(scalar_of(change, pa.string()), len(touched))), list(
        rows.take(touched)
    )


# --- rows whose commit versions are ambiguous ---


def _ambiguous(earlier: Snapshot, later: Snapshot, old: _Ids, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows of the same commit version may have been changed: of a clone, by another table's history.

    An update in a clone may assign a row the version that it had from the source. If the clone is replaced, the row may
    have that version again.
    """
    if not same.any():
        return same
    count = later.version - earlier.version
    infos = later.history(count)
    if len(infos) < count or any(info.get("operation") == "CLONE" for info in infos):
        return same
    return same & (old.versions > earlier.version) & (old.versions <= later.version)


def _rows(later: Snapshot, files: pa.Table, kept: Sequence[RowSet]) -> pa.Table:
    """Return the chosen rows of files, in ascending order of their ids."""
    chosen = FileSet.of(files.drop_columns([CHANGE_TYPE]), keep=dict(enumerate(kept)))
    return later.scan(None, (_ROW_ID,), files=chosen).to_table().sort_by(_ROW_ID)


def _differ(before: pa.Table, after: pa.Table) -> NDArray[np.bool_]:
    """Return which rows of two tables of the same schema have different values; floats are compared by their bits."""
    found = np.zeros(before.num_rows, np.bool_)
    for old, new in zip(before.columns, after.columns, strict=True):
        own, other = _bits(one_array(old)), _bits(one_array(new))
        if not own.equals(other):
            found |= [not own.slice(i, 1).equals(other.slice(i, 1)) for i in range(len(own))]
    return found


def _bits(array: pa.Array) -> pa.Array:
    if not pa.types.is_floating(array.type):
        return array
    return array.view(pa.int32() if array.type == pa.float32() else pa.int64())
