"""From the file actions of commits to the files that hold their changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from delta_core.api import FILE_COLUMNS, Call, Commit, FileConstant, MetadataColumn, PhysicalColumn, PrimitiveType
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    bool_array,
    int64_values,
    is_valid,
    mask_of,
    number_array,
    one_array,
    scalar_of,
)

__all__ = [
    "CHANGE_TYPE",
    "COLUMNS",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "FILES",
    "METADATA_COLUMNS",
    "PROPERTY",
    "ChangedFiles",
    "find_changes",
    "is_enabled",
    "measure_changes",
]

PROPERTY = "delta.enableChangeDataFeed"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_INSTANT = pa.timestamp("us", "UTC")
_STRING, _LONG, _TIMESTAMP = (PrimitiveType(name) for name in ("string", "long", "timestamp"))

#: A file's kind of change, if it has one, counts for all its rows: data files may hold a column of that name
#: too, left by their writer, which specifies nothing here.
METADATA_COLUMNS = (
    MetadataColumn(
        "changeDataFeed",
        CHANGE_TYPE,
        _STRING,
        Call("coalesce", (FileConstant(CHANGE_TYPE, _STRING), PhysicalColumn(CHANGE_TYPE, _STRING))),
    ),
    MetadataColumn("changeDataFeed", COMMIT_VERSION, _LONG, FileConstant(COMMIT_VERSION, _LONG)),
    MetadataColumn("changeDataFeed", COMMIT_TIMESTAMP, _TIMESTAMP, FileConstant(COMMIT_TIMESTAMP, _TIMESTAMP)),
)
#: The contents of a file of changes: the columns that scans need, and the values of its metadata columns.
FILES = pa.schema(
    [
        *(
            (name, FILE_COLUMNS[name])
            for name in ("path", "partitionValues", "size", "stats", "deletionVector", "dvId")
        ),
        (CHANGE_TYPE, pa.string()),
        (COMMIT_VERSION, pa.int64()),
        (COMMIT_TIMESTAMP, _INSTANT),
    ]
)


class ChangedFiles(Struct, frozen=True):
    """The location of the changes of a few commits.

    Parameters
    ----------
    files : pyarrow.Table
        `FILES` whose rows, but for those that their vectors drop, are the changes.
    before, after : pyarrow.Table
        `FILES` that a commit returned another vector, row for row: a row that is dropped after but not before was
        deleted, one that is dropped before but not after was inserted (a restore).
    """

    files: pa.Table
    before: pa.Table
    after: pa.Table


def is_enabled(configuration: Mapping[str, str]) -> bool:
    """Whether table properties make writers record changes."""
    return configuration.get(PROPERTY, "").strip().lower() == "true"


def find_changes(commits: Sequence[Commit]) -> ChangedFiles:
    """Return where the changes of successive commits are.

    A commit with change files is determined by them alone; another's adds are inserts and its removes deletes, of those
    that change data. Protocol: Reader Requirements for AddCDCFile.
    """
    adds, removes, cdcs = (Commit.joined(commits, kind) for kind in ("adds", "removes", "cdcs"))
    first = commits[0].version
    silent = np.array([_changed_nothing(c.info or {}) for c in commits])
    silent[_versions(cdcs) - first] = True
    adds, removes = (
        _filter(t, mask_of(one_array(t.column("dataChange"))) & ~silent[_versions(t) - first]) for t in (adds, removes)
    )
    remade, kept, order = _find_remade(adds, removes)
    times = np.array([c.timestamp_ms * 1000 for c in commits])
    return ChangedFiles(
        pa.concat_tables(
            [
                _as_files(_filter(removes, ~kept), "delete", first, times),
                _as_files(_filter(adds, ~remade), "insert", first, times),
                _as_files(cdcs, None, first, times),
            ]
        ),
        _as_files(pc.take(removes, order), "delete", first, times),
        _as_files(_filter(adds, remade), "insert", first, times),
    )


def measure_changes(changes: ChangedFiles, first: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of files and of bytes that each of ``count`` commits, from version ``first`` on, changed."""
    versions = np.concatenate([int64_values(t.column(COMMIT_VERSION)) for t in (changes.files, changes.after)]) - first
    sizes = np.concatenate([int64_values(t.column("size").fill_null(0)) for t in (changes.files, changes.after)])
    num_bytes = np.zeros(count, np.int64)
    np.add.at(num_bytes, versions, sizes)
    return np.bincount(versions, minlength=count), num_bytes


def _versions(actions: pa.Table) -> NDArray[np.int64]:
    return int64_values(actions.column("version"))


def _filter(table: pa.Table, mask: NDArray[np.bool_]) -> pa.Table:
    return table if mask.all() else pc.filter(table, bool_array(mask))


def _find_remade(adds: pa.Table, removes: pa.Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_], pa.Array]:
    """Find the files that a commit removes and adds again.

    Returns
    -------
    remade, kept : bool[n_adds], bool[n_removes]
        Which adds and which removes are of such files.
    order : int32[n]
        The row of the remove of each such add.
    """
    both = np.intersect1d(_versions(adds), _versions(removes))
    if not both.size:
        return np.zeros(adds.num_rows, bool), np.zeros(removes.num_rows, bool), pa.nulls(0, pa.int32())
    ours, theirs = (
        one_array(pc.binary_join_element_wise(pc.cast(t.column("version"), pa.string()), t.column("path"), "/"))
        for t in (adds, removes)
    )
    found = pc.index_in(ours, value_set=theirs)
    remade = is_valid(found)
    kept = mask_of(one_array(pc.is_in(theirs, value_set=ours)))
    return remade, kept, pc.filter(found, bool_array(remade))


def _changed_nothing(info: Mapping[str, Any]) -> bool:
    """Whether a merge rewrote files and specifies that it changed no row, as Spark reads its metrics."""
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, Mapping):
        return False
    counts = [metrics.get(f"numTargetRows{what}") for what in ("Inserted", "Updated", "Deleted")]
    return info.get("operation") == "MERGE" and all(str(c) == "0" for c in counts)


def _as_files(actions: pa.Table, change: str | None, first: int, times: NDArray[np.int64]) -> pa.Table:
    """Return file actions as `FILES`; ``change`` None: each row specifies what it is."""
    count, versions = actions.num_rows, _versions(actions)
    given = {
        CHANGE_TYPE: pa.repeat(scalar_of(change, pa.string()), count),
        COMMIT_VERSION: number_array(versions),
        COMMIT_TIMESTAMP: number_array(times[versions - first]).view(_INSTANT),
    }
    columns = [
        given[f.name]
        if f.name in given
        else pc.cast(actions.column(f.name), f.type)
        if f.name in actions.column_names
        else pa.nulls(count, f.type)
        for f in FILES
    ]
    return pa.Table.from_arrays(columns, schema=FILES)
