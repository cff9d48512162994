"""Symlink manifests: lists of a version's data files, by partition, for engines that can't read the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.kernel.commit.base import Base, TableBase
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import RemoveRows, RowSelector
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.properties import MANIFESTS, read_property
from delta_core.kernel.write.names import local_uri, partition_directory
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, is_valid, number_array, one_array
from delta_core.kernels.dedup import KeySet
from delta_core.schema.fields import walk

__all__ = ["check_manifests", "keep_manifests", "write_manifests"]

#: Where engines look for the manifests, and how each is named.
FOLDER, _NAME = "_symlink_format_manifest", "manifest"


def write_manifests(base: Base) -> list[str]:
    """Write the manifests of the latest version, and delete those of partitions that it does not have.

    A manifest is ``_symlink_format_manifest/<partition>/manifest``, with an absolute path a line.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.

    Returns
    -------
    list of str
        The manifests, from the table's root.

    Raises
    ------
    UnsupportedOperationError
        If files have deleted rows, or columns under other names than the table: engines would read wrong rows.

    Notes
    -----
    Each manifest is replaced atomically, but not all of them together: a concurrent reader may see two versions.
    """
    snapshot = base.latest()
    _check_readable(snapshot)
    written = _write(snapshot, snapshot.files, None)
    storage = snapshot.engine.storage
    found = [
        path
        for part in storage.walk(lambda folder: folder.partition("/")[0] != FOLDER)
        for path in part.files.column("path").to_pylist()
    ]
    kept = set(written)
    storage.delete([p for p in found if p.startswith(f"{FOLDER}/") and p not in kept])
    return written


def keep_manifests(snapshot: Base, before: Base | None) -> None:
    """Write the manifests of the partitions that a commit touched, if the table's property requires it.

    Raises
    ------
    DeltaError, OSError
        As `write_manifests`.
    """
    if not _are_kept(snapshot.state):
        return
    if before is None or not _are_kept(before.state) or _partitions(before) != _partitions(snapshot):
        write_manifests(snapshot)
        return
    _check_readable(snapshot)
    gone, new = before.files.refreshed([], _keys(snapshot.files)), snapshot.files.refreshed([], _keys(before.files))
    touched = {d for files in (gone, new) for d in _grouped(snapshot, files)[0]}
    written = _write(snapshot, snapshot.files, touched)
    empty = {_path(d) for d in touched} - set(written)
    snapshot.engine.storage.delete(sorted(empty))


def check_manifests(previous: TableState | None, table: TableState, plugins: PluginSet) -> None:
    """Reject a definition under which the manifests that its property requires would not represent the rows.

    Raises
    ------
    InvalidArgumentError
        If rows are deleted without rewriting files, or files have columns under other names than the table.
    """
    if not _are_kept(table):
        return
    is_new = previous is None or not _are_kept(previous)
    rules = plugins.collect("write_rules", table=table, operation="WRITE")
    dropping = next((r.feature for r in rules if isinstance(r, RemoveRows)), None)
    if dropping is not None and (is_new or previous is not None and not previous.is_active(dropping)):
        why = f"feature {dropping} is active, and deleted rows are not part of manifests"
    elif _has_other_names(table) and (is_new or previous is not None and not _has_other_names(previous)):
        why = "files have columns under other names than the table"
    elif table.encodings:
        why = f"files store column {next(iter(table.encodings))!r} in another form"
    else:
        return
    raise InvalidArgumentError(
        f"Table property {MANIFESTS} can't be true: {why}, and engines that read manifests would return wrong rows.",
        property=MANIFESTS,
    )


def _are_kept(table: TableState) -> bool:
    return bool(read_property(table.configuration, MANIFESTS))


def _has_other_names(table: TableState) -> bool:
    return [p for p, _ in walk(table.column_map.physical)] != [p for p, _ in walk(table.schema)]


def _partitions(snapshot: TableBase) -> tuple[str, ...]:
    return tuple(snapshot.state.partition_columns)


def _check_readable(snapshot: TableBase) -> None:
    table = snapshot.state
    why = "columns have other names in files" if _has_other_names(table) else None
    if table.encodings:
        why = f"files store column {next(iter(table.encodings))!r} in another form"
    for rule in snapshot.plugins.collect("read_rules", table=table, request=ReadRequest()):
        if isinstance(rule, RowSelector):
            vectors = snapshot.files.columns(list(rule.columns)).columns
            if any(is_valid(c).any() for c in vectors):
                why = f"files have rows that are deleted ({rule.feature}); table.optimize.purge() rewrites them"
    if why is not None:
        raise UnsupportedOperationError(
            f"{snapshot.uri} can't have symlink manifests: {why}, and engines that read manifests would return wrong "
            "rows.",
            operation="generate",
        )


def _keys(files: FileSet) -> KeySet:
    table = files.columns(["path", "dvId"])
    keys = KeySet()
    keys.insert(table.column("path"), table.column("dvId"))
    return keys


def _path(folder: str) -> str:
    return "/".join(part for part in (FOLDER, folder, _NAME) if part)


def _write(snapshot: TableBase, files: FileSet, only: set[str] | None) -> list[str]:
    """Write the manifests of all partitions, or of some, and return them."""
    folders, numbers = _grouped(snapshot, files)
    storage = snapshot.engine.storage
    chosen = [i for i, folder in enumerate(folders) if only is None or folder in only]
    rows = np.flatnonzero(np.isin(numbers, chosen))
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    paths = files.columns(["path"]).take(number_array(rows)).column("path")
    texts = [local_uri(storage.uri(p)) for p in decode_paths(paths)]
    ends = np.searchsorted(numbers[rows], chosen, side="right").tolist()
    starts = [0, *ends][: len(ends)]
    manifests = {
        _path(folders[i]): "".join(f"{text}\n" for text in texts[start:end]).encode()
        for i, start, end in zip(chosen, starts, ends, strict=True)
    }
    if not _partitions(snapshot) and not manifests:
        manifests = {_path(""): b""}
    snapshot.engine.map(lambda item: storage.put(*item), list(manifests.items()))
    return list(manifests)


def _grouped(snapshot: TableBase, files: FileSet) -> tuple[list[str], Any]:
    """Return the folders of partitions, and for each file the number of its own, int64[n_files]."""
    names = _partitions(snapshot)
    if not names:
        return ([""] if files.count else []), np.zeros(files.count, np.int64)
    table = files.columns([f"partition:{name}" for name in names])
    numbers = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        codes = one_array(pc.dictionary_encode(column))
        values = np.where(is_valid(codes), int64_values(codes.indices), len(codes.dictionary))
        numbers = numbers * (len(codes.dictionary) + 1) + values
        _, numbers = np.unique(numbers, return_inverse=True)
    _, first = np.unique(numbers, return_index=True)
    texts: Sequence[Sequence[str | None]] = [c.to_pylist() for c in table.take(number_array(first)).columns]
    return [partition_directory(names, row) for row in zip(*texts, strict=True)], numbers
