"""Which files versions of a Delta table can reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.engines.records import ActionQuery
from delta_core.errors import LogChangedError, UnsupportedFeatureError, VersionNotFoundError
from delta_core.kernel.log.paths import decode_paths, decoded_parts
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.plugins.references import named_files
from delta_core.kernel.plugins.rules import FileReference
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import holds_bytes, strings_of
from delta_core.kernels.json_actions import ParsedActions
from delta_core.operations.sweep.paths import PathSet

if TYPE_CHECKING:
    pass

__all__ = [
    "add_encoded",
    "add_recent",
    "add_references",
    "add_version",
    "commit_actions",
    "commits_since",
    "file_references",
    "version_at",
]

#: The number of commits that are read at a time.
_COMMITS = 512


def add_encoded(found: PathSet, paths: pa.ChunkedArray) -> None:
    """Add files by paths as the log has them; a writer may not have encoded them: the text itself is added too."""
    for decoded, part in decoded_parts(paths):
        names = decoded if decoded is not None else strings_of(decode_paths(pa.chunked_array([part])))
        found.add(names)
        if holds_bytes(part, b"%"):
            found.add(part)


def file_references(snapshot: Snapshot) -> list[FileReference]:
    """Return what actions name beside their own path, of all installed features: dropped ones may have left some.

    If no plugin names the files of vectors, the reference raises UnsupportedFeatureError for the first vector: its file
    would be taken for an unreferenced one.
    """
    known = {*FILE_COLUMNS, *(f.name for f in snapshot.action_fields)}
    found = snapshot.registry.everything.collect("file_references", table=snapshot.state)
    if not any(r.column == "deletionVector" for r in found):
        found.append(FileReference("", "deletionVector", _reject_vectors, _reject_vectors))
    return [r for r in found if r.column in known]


def _reject_vectors(column: pa.Array) -> pa.Array:
    raise UnsupportedFeatureError(
        f"Found {len(column) - column.null_count} files with deletion vectors, and no usable plugin specifies "
        "their files. Install or repair the package that provides their feature (`delta-core features` lists the "
        "plugins), and run this again.",
        column="deletionVector",
    )


def add_version(found: PathSet, snapshot: Snapshot, cutoff_ms: int | None) -> None:
    """Add all that a version's files, and the tombstones since a time (None: no tombstones), can reach."""
    references = file_references(snapshot)
    columns = list(dict.fromkeys(["path", *(r.column for r in references)]))

    def add(table: pa.Table) -> None:
        add_encoded(found, table.column("path"))
        add_references(found, table, references)

    try:
        for part in snapshot.files.parts:
            arrays = part.load(columns)
            if arrays:
                add(pa.Table.from_arrays(arrays, columns))
    except LogChangedError:  # a checkpoint was replaced meanwhile; what was added stays
        add(snapshot.files.columns(columns))
    if cutoff_ms is None:
        return
    columns = [*columns, "deletionTimestamp"]
    try:
        for _, table in snapshot.tombstone_tables(columns):
            add(_since(table, cutoff_ms))
    except LogChangedError:
        snapshot.reload()
        add(_since(snapshot.tombstones(columns), cutoff_ms))


def _since(removes: pa.Table, cutoff_ms: int) -> pa.Table:
    """Return the tombstones since a time; one without a time is taken for old, as in delta-spark."""
    return pc.filter(removes, pc.greater_equal(pc.fill_null(removes.column("deletionTimestamp"), 0), cutoff_ms))


def add_references(found: PathSet, table: pa.Table, references: Sequence[FileReference]) -> None:
    """Add what actions name beside their own path."""
    for reference in references:
        if reference.column in table.column_names:
            for chunk in table.column(reference.column).chunks:
                if chunk.null_count < len(chunk):
                    found.add(named_files(reference, chunk))


def commits_since(snapshot: Snapshot, cutoff_ms: int, commits: Sequence[LogFile]) -> list[LogFile]:
    """Return the commits, and the compacted files with such, that were made after a time."""
    version = version_at(snapshot, cutoff_ms)
    return [f for f in commits if version is None or f.end_version > version]


def version_at(snapshot: Snapshot, timestamp_ms: int) -> int | None:
    """Return the version of a time, None if the log begins later."""
    try:
        return snapshot.version_at(timestamp_ms)
    except VersionNotFoundError:
        return None


def commit_actions(
    snapshot: Snapshot, files: Sequence[LogFile], kinds: tuple[str, ...] = ("remove", "cdc")
) -> Iterator[ParsedActions]:
    """Yield the removes and change files of commits, many commits at a time."""
    columns = ("deletionTimestamp", *(r.column for r in file_references(snapshot) if r.column in FILE_COLUMNS))
    query = ActionQuery(columns, kinds=frozenset(kinds))
    for start in range(0, len(files), _COMMITS):
        yield snapshot.engine.logs.read_commits(files[start : start + _COMMITS], query)


def add_recent(found: PathSet, snapshot: Snapshot, files: Sequence[LogFile], *, removes: bool) -> None:
    """Add the change files of commits and, with ``removes``, all that their tombstones can reach."""
    references = file_references(snapshot)
    for actions in commit_actions(snapshot, files, ("remove", "cdc") if removes else ("cdc",)):
        add_encoded(found, actions.cdcs.column("path"))
        if removes:
            add_encoded(found, actions.removes.column("path"))
            add_references(found, actions.removes, references)
