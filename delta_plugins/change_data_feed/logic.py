"""From a commit's file actions to the files that hold its changes."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.api import (
    FILE_COLUMNS,
    Call,
    Commit,
    FileConstant,
    MetadataColumn,
    PhysicalColumn,
    PrimitiveType,
    Schema,
    why_unreadable,
)
from delta_core.kernels import compute as pc

__all__ = [
    "CHANGE_TYPE",
    "COLUMNS",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "FILES",
    "METADATA_COLUMNS",
    "PROPERTY",
    "CommitChanges",
    "commit_changes",
    "is_enabled",
    "unreadable",
]

PROPERTY = "delta.enableChangeDataFeed"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_STRING, _LONG, _TIMESTAMP = (PrimitiveType(name) for name in ("string", "long", "timestamp"))

#: A file's kind of change, if it has one, counts for all its rows: data files may hold a column of that name
#: too, left by whoever wrote them, which specifies nothing here.
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
#: What a file of changes provides: the columns that scans need, and the values of its metadata columns.
FILES = pa.schema(
    [
        *(
            (name, FILE_COLUMNS[name])
            for name in ("path", "partitionValues", "size", "stats", "deletionVector", "dvId")
        ),
        (CHANGE_TYPE, pa.string()),
        (COMMIT_VERSION, pa.int64()),
        (COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
    ]
)


class CommitChanges(Struct, frozen=True):
    """The location of one commit's changes.

    Parameters
    ----------
    files : pyarrow.Table
        `FILES` whose rows, but for those that their vectors drop, are the changes.
    before, after : pyarrow.Table
        `FILES` that the commit returned another vector, row for row: a row that is dropped after but not before was
        deleted, one that is dropped before but not after was inserted (a restore).
    """

    files: pa.Table
    before: pa.Table
    after: pa.Table


def is_enabled(configuration: Mapping[str, str]) -> bool:
    """Whether table properties make writers record changes."""
    return configuration.get(PROPERTY, "").strip().lower() == "true"


def commit_changes(commit: Commit) -> CommitChanges:
    """Return where a commit's changes are.

    A commit with change files is determined by them alone; another's adds are inserts and its removes deletes, of those
    that change data. Protocol: Reader Requirements for AddCDCFile.
    """
    if commit.cdcs.num_rows:
        return CommitChanges(_files(commit, commit.cdcs, None), FILES.empty_table(), FILES.empty_table())
    if _changed_nothing(commit.info or {}):
        return CommitChanges(*[FILES.empty_table()] * 3)
    adds, removes = (pc.filter(t, pc.equal(t.column("dataChange"), True)) for t in (commit.adds, commit.removes))
    kept = pc.is_in(removes.column("path"), value_set=adds.column("path").combine_chunks())
    remade = pc.is_in(adds.column("path"), value_set=removes.column("path").combine_chunks())
    files = [
        _files(commit, pc.filter(removes, pc.invert(kept)), "delete"),
        _files(commit, pc.filter(adds, pc.invert(remade)), "insert"),
    ]
    before, after = pc.filter(removes, kept), pc.filter(adds, remade)
    order = pc.index_in(before.column("path"), value_set=after.column("path").combine_chunks())
    return CommitChanges(
        pa.concat_tables(files), _files(commit, before, "delete"), _files(commit, pc.take(after, order), "insert")
    )


def _changed_nothing(info: Mapping[str, Any]) -> bool:
    """Whether a merge rewrote files and specifies that it changed no row, as Spark reads its metrics."""
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, Mapping):
        return False
    counts = [metrics.get(f"numTargetRows{what}") for what in ("Inserted", "Updated", "Deleted")]
    return info.get("operation") == "MERGE" and all(str(c) == "0" for c in counts)


def _files(commit: Commit, actions: pa.Table, change: str | None) -> pa.Table:
    """Return file actions as `FILES`; ``change`` None: each row specifies what it is."""
    count = actions.num_rows
    given = {
        CHANGE_TYPE: pa.scalar(change, pa.string()),
        COMMIT_VERSION: pa.scalar(commit.version, pa.int64()),
        COMMIT_TIMESTAMP: pa.scalar(commit.timestamp_ms * 1000, pa.timestamp("us", "UTC")),
    }
    columns = [
        pa.repeat(given[f.name], count)
        if f.name in given
        else pc.cast(actions.column(f.name), f.type)
        if f.name in actions.column_names
        else pa.nulls(count, f.type)
        for f in FILES
    ]
    return pa.Table.from_arrays(columns, schema=FILES)


def unreadable(old: Schema, new: Schema, widened: bool) -> str | None:
    """Return why rows of an old schema can't be read by a newer one, None if they can. See `why_unreadable`."""
    return why_unreadable(old, new, widened, "delta.columnMapping.physicalName")
