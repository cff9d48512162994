"""Checks of one version: its definition, its live files as the log lists them, and the files that lie there."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.errors import DataFileNotFoundError, DeltaError, EngineError, ExternalPathError, LogError, shortened
from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel import scan as scanning
from delta_core.kernel.log.indexed_columns import statistics_fields
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.answers import find_misfit
from delta_core.kernel.plugins.checks import CommitCheck, FileCheck, Finding, UniqueCheck
from delta_core.kernel.plugins.plans import LogFile, ReadRequest
from delta_core.kernel.plugins.rules import RowSelector
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.names import encode_path
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    int64_values,
    is_valid,
    mask_of,
    number_array,
    string_bytes,
    string_ends,
    strings_of,
)
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.stats import StatField, unreadable_stats
from delta_core.operations.vacuum.reachable import commit_actions, commits_since
from delta_core.runtime.json_text import decode_json
from delta_core.runtime.plugin_errors import contract_error
from delta_core.schema.fields import Path, format_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "absent_files",
    "check_change_files",
    "check_data",
    "check_definition",
    "check_features",
    "check_files",
    "check_statistics_types",
    "check_vectors",
    "columns_of_check",
    "file_sizes",
    "mistyped_statistics",
    "numbers_of",
    "true_of",
    "unreadable_statistics",
]

Progress = Callable[[str, int, int], None]
#: Files that are looked for at a time, and vectors that are read at a time.
_WINDOW, _VECTORS = 1000, 2048
#: The number of files that are named by one finding's rule and reason; the number of all is part of the text.
_NAMED = 100
#: Texts of paths that may be another spelling of one path, or lead out of the table.
_UNUSUAL = r"^/|//|(^|/)\.{1,2}(/|$)|^[A-Za-z][A-Za-z0-9+.-]*:"
#: Instead of a size: the file is not there, or outside the table where nothing is read.
_ABSENT, _OUTSIDE = -1, -2
_READ_AGAIN = "Readers ignore them, or fail. repair(deep=True) keeps the number of rows alone, read from the file."
_ADD_AGAIN = "Add the file again with the right value, or write its rows again."


def numbers_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return numbers, null as -1."""
    return np.where(is_valid(column), int64_values(column), -1)


def true_of(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which values are true, and not null."""
    return np.concatenate([np.zeros(0, bool), *(mask_of(c) for c in column.chunks)])


# --- the definition ------------------------------------------------------------------------


def check_definition(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield features that the metadata needs and the protocol does not list, and those that listed ones require."""
    state, version = snapshot.state, snapshot.version
    everything = snapshot.registry.everything
    needed = everything.canonical(everything.collect("required_features", metadata=snapshot.metadata))
    for name in sorted(needed - everything.canonical(state.features)):
        yield Finding(
            "feature-missing",
            f"properties or columns need the feature {name}, which the protocol does not list",
            f"{name} in the protocol",
            f"table.alter.add_feature({name!r}) adds it.",
            "warning",
            version=version,
        )
    for feature in snapshot.plugins.features.values():
        for other in feature.requires:
            if other not in state.features:
                yield Finding(
                    "feature-missing",
                    f"the protocol lists {feature.name} without {other}",
                    f"{other}, which {feature.name} requires",
                    f"table.alter.add_feature({other!r}) adds it. Without it, writers reject the table.",
                    "warning",
                    version=version,
                )


# --- files as the log lists them -------------------------------------------------------------


def check_files(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what is wrong with the live files of a version; reads the log only."""
    files = snapshot.files.columns(["path", "dvId", "size"])
    paths = files.column("path")
    keys = KeySet()
    is_new = keys.insert(paths)
    yield from _at(
        snapshot,
        files,
        ~is_new,
        "file-repeated",
        "it is live several times, with different deletion vectors",
        "one entry for each file",
        "Its rows are counted twice: remove the file and write its rows again.",
    )
    yield from _check_paths(snapshot, paths, keys)
    sizes = files.column("size")
    yield from _at(snapshot, files, ~is_valid(sizes), "size-missing", "no size", "the size in bytes", _ADD_AGAIN)
    yield from _at(
        snapshot, files, true_of(pc.less(sizes, 0)), "size-wrong", "a negative size", "the size in bytes", _ADD_AGAIN
    )
    yield from _check_partitions(snapshot, files)
    yield from _check_statistics(snapshot, files)


def _at(
    snapshot: Snapshot, files: pa.Table, wrong: NDArray[np.bool_], rule: str, found: str, expected: str, advice: str,
    severity: Any = "error", column: str | None = None,
) -> Iterator[Finding]:  # fmt: skip
    """Yield a finding for each file for which a mask is true, the first ones by name and the rest as a number."""
    rows = np.flatnonzero(wrong)
    paths = files.column("path")
    for i in rows[:_NAMED].tolist():
        yield Finding(rule, found, expected, advice, severity, paths[i].as_py(), snapshot.version, column)
    if len(rows) > _NAMED:
        more = f"{found} ({len(rows) - _NAMED} further files)"
        yield Finding(rule, more, expected, advice, severity, None, snapshot.version, column)


def _check_paths(snapshot: Snapshot, paths: pa.ChunkedArray, keys: KeySet) -> Iterator[Finding]:
    """Yield files that are listed under two spellings of a path, and those that lead out of the table."""
    chunks = [c for c in paths.chunks if _may_be_unusual(c)]
    among = pa.chunked_array(chunks, paths.type)
    unusual = pc.filter(among, pc.match_substring_regex(among, _UNUSUAL))
    if not len(unusual):
        return
    version = snapshot.version
    try:
        decoded = decode_paths(unusual)
    except LogError as e:
        advice = "Remove the file and write its rows again."
        yield Finding("path-wrong", str(e), "a path in UTF-8, percent-encoded", advice, version=version)
        return
    usual = [_usual_path(snapshot.engine.storage.root, path) for path in decoded]
    texts = unusual.to_pylist()
    # another entry has the usual spelling, or two have unusual ones
    seen: dict[str, str] = {}
    for text, path in zip(texts, usual, strict=True):
        encoded = encode_path(path)
        other = seen.get(path)
        if other is None and keys.contains(strings_of([encoded]))[0] and not _are_one_key(encoded, text):
            other = encoded
        seen.setdefault(path, text)
        if other is not None and other != text:
            found, expected = f"it is live as {other} too", "one entry for each file"
            advice = "Its rows are counted twice: remove one of the entries."
            yield Finding("file-repeated", found, expected, advice, "error", text, version)
    yield from _check_outside(snapshot, usual)


def _are_one_key(path: str, other: str) -> bool:
    keys = KeySet()
    keys.insert(strings_of([path]))
    return bool(keys.contains(strings_of([other]))[0])


def _may_be_unusual(paths: pa.Array) -> bool:
    """Whether some of the paths may be unusual: a search for bytes, which is much faster than one for patterns."""
    data = string_bytes(paths)
    codes, starts = np.frombuffer(data, np.uint8), string_ends(paths)[:-1]
    after_slash = codes[np.flatnonzero(codes[:-1] == ord("/")) + 1]
    firsts = codes[starts[starts < len(codes)]]
    return b":" in data or any(((c == ord("/")) | (c == ord("."))).any() for c in (after_slash, firsts))


def _check_outside(snapshot: Snapshot, paths: Sequence[str]) -> Iterator[Finding]:
    """Yield the folders outside the table that files are in, and those that are not to be read."""
    outside: dict[str, int] = {}
    for path in paths:
        if path.startswith(("../", "/")) or ":" in path:
            folder = posixpath.dirname(path)
            outside[folder] = outside.get(folder, 0) + 1
    for folder, count in outside.items():
        try:
            snapshot.engine.storage.uri(f"{folder}/x")
        except ExternalPathError as e:
            found, expected = f"{count} files in {folder}: {e}", "files that this table may read"
            advice = "Pass allow_external to read them."
            yield Finding("path-outside", found, expected, advice, "error", folder, snapshot.version)
        else:
            found, expected = f"{count} files are outside the table, in {folder}", "files below the table's root"
            advice = "Such as in a shallow clone: vacuum of the other table may delete them."
            yield Finding("path-outside", found, expected, advice, "information", folder, snapshot.version)


def _usual_path(root: str, path: str) -> str:
    """Return a decoded path in its shortest spelling, relative if it is below the root."""
    if "://" in path:
        scheme, _, rest = path.partition("://")
        path = f"{scheme}://{posixpath.normpath(rest)}"
        if scheme == "file":
            path = "/" + rest.partition("/")[2]
    path = path if "://" in path else posixpath.normpath(path)
    base = root.rstrip("/") + "/"
    for prefix in (base, base.partition("://")[2]):
        if prefix and path.startswith(prefix):
            return path[len(prefix) :]
    return path


def _check_partitions(snapshot: Snapshot, files: pa.Table) -> Iterator[Finding]:
    """Yield partition values that are missing, or no values of their column's type."""
    state = snapshot.state
    by = frozenset(state.partition_columns)
    if not by:
        return
    columns = [
        (f, p.name)
        for f, p in zip(state.schema.members, state.column_map.physical.members, strict=True)
        if f.name in by
    ]
    for field, name in columns:
        text = snapshot.files.columns([f"partition:{name}"]).column(0)
        try:
            parsed = parse_partition_values(text, field.type, snapshot.timezone, column=field.name, types=state.types)
        except DeltaError as e:
            expected = "the text of a value of the column's type"
            yield Finding(
                "partition-value-wrong", str(e), expected, _ADD_AGAIN, version=snapshot.version, column=field.name
            )
            continue
        if not parsed.null_count:
            continue
        missing = ~_has_key(snapshot, name)
        advice = "Readers take it for null: add the file again with the value."
        found, expected = f"no partition value of {field.name}", "a value, or null"
        yield from _at(
            snapshot, files, missing, "partition-value-missing", found, expected, advice, "warning", field.name
        )
        if not field.nullable:
            found, expected = f"null in {field.name}", "a value: the column is NOT NULL"
            wrong = ~is_valid(parsed)
            yield from _at(
                snapshot, files, wrong, "partition-value-wrong", found, expected, _ADD_AGAIN, "error", field.name
            )


def _has_key(snapshot: Snapshot, name: str) -> NDArray[np.bool_]:
    """Return which files have a partition value, or null, under a name."""
    found = []
    for values in snapshot.files.columns(["partitionValues"]).column(0).chunks:
        keys = pc.dictionary_encode(values.keys)
        offsets = int64_values(values.offsets)
        known = keys.dictionary.to_pylist()
        is_it = int64_values(keys.indices) == (known.index(name) if name in known else -1)
        rows = np.repeat(np.arange(len(values)), np.diff(offsets))
        has = np.zeros(len(values), bool)
        has[rows[is_it[offsets[0] : offsets[-1]]]] = True
        found.append(has)
    return np.concatenate([np.zeros(0, bool), *found])


def _check_statistics(snapshot: Snapshot, files: pa.Table) -> Iterator[Finding]:
    """Yield statistics that are no JSON, or report a count below 0: readers ignore them."""
    found, expected = "statistics that can't be read", "a JSON object, numRecords a number from 0 on"
    wrong = unreadable_statistics(snapshot)
    yield from _at(snapshot, files, wrong, "statistics-unreadable", found, expected, _READ_AGAIN, "warning")


def unreadable_statistics(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return which files have statistics that are no JSON, or report a count below 0."""
    counts = snapshot.files.statistics([NUM_RECORDS]).column(0)
    wrong = np.zeros(len(counts), bool)
    if counts.null_count:
        texts = snapshot.files.columns(["stats"]).column(0)
        for i in np.flatnonzero(~is_valid(counts) & is_valid(texts)).tolist():
            wrong[i] = not _are_statistics(texts[i].as_py())
    return wrong


def check_statistics_types(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield statistics of columns that are of another type: reads here ignore them, other readers may fail."""
    files = snapshot.files.columns(["path"])
    for field, column, wrong in mistyped_statistics(snapshot):
        found, name = f"{field.path[0]} has a value of another type", format_path(column)
        rule, expected = "statistics-unreadable", f"a {field.kind}"
        yield from _at(snapshot, files, wrong, rule, found, expected, _READ_AGAIN, "warning", name)


def mistyped_statistics(snapshot: Snapshot) -> Iterator[tuple[StatField, Path, NDArray[np.bool_]]]:
    """Yield each field of statistics that some files have as another type than its column's; the column; the files."""
    fields = statistics_fields(snapshot.state)
    texts = snapshot.files.columns(["stats"]).column(0)
    parts = [unreadable_stats(chunk, list(fields)) for chunk in texts.chunks]
    for number, (field, column) in enumerate(fields.items()):
        wrong = np.concatenate([np.zeros(0, bool), *(part[number] for part in parts)])
        if wrong.any():
            yield field, column, wrong


def _are_statistics(text: str) -> bool:
    try:
        found = decode_json(text)
    except ValueError:
        return not text
    count = found.get("numRecords") if isinstance(found, dict) else -1
    return count is None or isinstance(count, int) and not isinstance(count, bool) and count >= 0


# --- the features' own checks ------------------------------------------------------------------


def check_features(snapshot: Snapshot, infos: Callable[[], Mapping[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Yield what the checks of the features find; ``infos`` returns the ``commitInfo`` of the commits by version.

    Raises
    ------
    HookContractError
        If a check names a column that files do not have, or returns something else than findings.
    """
    for check in snapshot.plugins.collect("check_table", table=snapshot.state):
        if isinstance(check, UniqueCheck):
            continue  # of rows
        if isinstance(check, Finding):
            found: Iterable[Finding] = [check]
        elif isinstance(check, CommitCheck):
            found = check.find(infos())
        else:
            found = check.find(columns_of_check(snapshot, check))
        for f in found:
            misfit = None if isinstance(f, Finding) else f"{f!r}; expected findings"
            if misfit is None and (wrong := find_misfit(f)) is not None:
                misfit = str(wrong)
            if misfit is not None:
                raise contract_error(check.feature, "check_table", f"{type(check).__name__}.find", f"returned {misfit}")
            yield f


def columns_of_check(snapshot: Snapshot, check: FileCheck) -> pa.Table:
    """Return what a check of files gets: its columns, and ``path``, of all live files.

    Raises
    ------
    HookContractError
        If it names a column that files do not have.
    """
    fields = (field.name for feature in snapshot.plugins.features.values() for field in feature.fields)
    unknown = sorted(set(check.columns) - {"numRecords", *FILE_COLUMNS, *fields})
    if unknown:
        what = f"names {unknown[0]!r}; expected columns of files, fields of features of the table, or numRecords"
        raise contract_error(check.feature, "check_table", "FileCheck.columns", what)
    files = snapshot.files.columns(list(dict.fromkeys(("path", *(c for c in check.columns if c != "numRecords")))))
    if "numRecords" in check.columns:
        files = files.append_column("numRecords", snapshot.files.statistics([NUM_RECORDS]).column(0))
    return files


# --- files on the store ------------------------------------------------------------------------


def file_sizes(snapshot: Snapshot, paths: Sequence[str], progress: Progress | None = None) -> NDArray[np.int64]:
    """Return the size of each file in bytes, below 0 if it is not there or not readable; many at a time."""
    storage = snapshot.engine.storage
    windows = [paths[start : start + _WINDOW] for start in range(0, len(paths), _WINDOW)]

    def sizes(number: int) -> list[int]:
        if progress is not None:
            progress("files", number * _WINDOW, len(paths))
        try:
            return [size for size, _ in storage.stat(windows[number])]
        except (FileNotFoundError, ExternalPathError):
            return [_size(storage, path) for path in windows[number]]

    found = snapshot.engine.map(sizes, range(len(windows)))
    return np.fromiter((size for part in found for size in part), np.int64, len(paths))


def _size(storage: Storage, path: str) -> int:
    try:
        return storage.stat([path])[0][0]
    except FileNotFoundError:
        return _ABSENT
    except ExternalPathError:
        return _OUTSIDE


def absent_files(snapshot: Snapshot, files: pa.Table) -> NDArray[np.bool_]:
    """Return which files are not there."""
    absent: NDArray[np.bool_] = file_sizes(snapshot, decode_paths(files.column("path"))) == _ABSENT
    return absent


def check_data(snapshot: Snapshot, progress: Progress) -> Iterator[Finding]:
    """Yield data files that are missing or have another size, and deletion vectors that can't be read."""
    files = snapshot.files.columns(["path", "size"])
    sizes = file_sizes(snapshot, decode_paths(files.column("path")), progress)
    absent = sizes == _ABSENT
    found, expected = "the file is not there", "the file that the log names"
    advice = "Restore it from a copy, or repair: it removes the entry, and with it the rows."
    yield from _at(snapshot, files, absent, "data-file-missing", found, expected, advice)
    listed = numbers_of(files.column("size"))
    for i in np.flatnonzero((listed != sizes) & (sizes >= 0) & (listed >= 0)).tolist():
        yield Finding(
            "data-file-size",
            f"the file has {sizes[i]} bytes",
            f"{listed[i]} bytes, as the log specifies",
            "Another file took its place, or it was cut: restore it from a copy.",
            "error",
            files.column("path")[i].as_py(),
            snapshot.version,
        )
    yield from check_vectors(snapshot, progress)


def check_change_files(snapshot: Snapshot, commits: Sequence[LogFile], progress: Progress) -> Iterator[Finding]:
    """Yield the change files of commits within the retention that are missing; vacuum deletes those of older ones."""
    retention: int = read_property(snapshot.state.configuration, "delta.deletedFileRetentionDuration")
    cutoff = time.time_ns() // 1_000_000 - retention
    for actions in commit_actions(snapshot, commits_since(snapshot, cutoff, commits), ("cdc",)):
        files = actions.cdcs.select(["path", "version"])
        absent = file_sizes(snapshot, decode_paths(files.column("path")), progress) == _ABSENT
        for i in np.flatnonzero(absent).tolist():
            yield Finding(
                "change-file-missing",
                "the file of the change data feed is not there",
                "the file that the commit names",
                "The changes of this version can't be read. Restore the file from a copy, unless a vacuum with a "
                "shorter retention deleted it.",
                "information",
                files.column("path")[i].as_py(),
                files.column("version")[i].as_py(),
            )


def check_vectors(snapshot: Snapshot, progress: Progress) -> Iterator[Finding]:
    """Yield the deletion vectors that can't be found or read, and those that drop rows beyond their file."""
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
    for selector in rules:
        if isinstance(selector, RowSelector):
            yield from _check_selector(snapshot, selector, progress)


def _check_selector(snapshot: Snapshot, selector: RowSelector, progress: Progress) -> Iterator[Finding]:
    """Yield the vectors that can't be found or read, and those that drop rows which their file does not have."""
    storage = snapshot.engine.storage
    files = snapshot.files.columns(["path", *selector.columns])
    has = np.zeros(files.num_rows, bool)
    for name in selector.columns:
        has |= is_valid(files.column(name))
    rows = np.flatnonzero(has)
    counts = snapshot.files.statistics([NUM_RECORDS]).column(0) if len(rows) else None
    for start in range(0, len(rows), _VECTORS):
        progress("vectors", start, len(rows))
        window = rows[start : start + _VECTORS]
        part = pc.take(files, number_array(window))
        try:
            sets = scanning.read_row_sets(storage, [selector], part)
        except DeltaError:
            sets = {}
            for i in range(len(window)):
                try:
                    sets[i] = scanning.read_row_sets(storage, [selector], part.slice(i, 1))[0]
                except DeltaError as e:
                    if isinstance(e, EngineError) and not isinstance(e, ExternalPathError):
                        raise
                    yield _vector_finding(snapshot, part, i, e)
        assert counts is not None
        for i, dropped in sets.items():
            count, last = counts[int(window[i])].as_py(), dropped.max
            if count is not None and last is not None and last >= count:
                yield Finding(
                    "vector-wrong",
                    f"the deletion vector drops row {last}",
                    f"rows below {count}, the number of rows of the file",
                    "Restore the vector's file from a copy, or write the file's rows again.",
                    "error",
                    part.column("path")[i].as_py(),
                    snapshot.version,
                )


def _vector_finding(snapshot: Snapshot, files: pa.Table, row: int, error: DeltaError) -> Finding:
    rule = "vector-missing" if isinstance(error, DataFileNotFoundError) else "vector-unreadable"
    advice = "Restore the vector's file from a copy. Without it, which rows were deleted is lost."
    path = files.column("path")[row].as_py()
    return Finding(rule, shortened(error), "a deletion vector", advice, "error", path, snapshot.version)
