"""Checks of a version: its files, their rows, deleted rows, row ids and indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

# the report is loaded with the first check
from delta_core import api
from delta_core.api import DataFileError, DataFileNotFoundError, DeltaError, UnsupportedFeatureError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.blob_checks import check_blobs, may_have_blobs
from delta_plugins.lance.index.listing import list_indices, listed_indices
from delta_plugins.lance.row_ids import columns_of
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from delta_core.api import Finding, VerifyReport

__all__ = ["verify_dataset"]

_RESTORE = "Restore the file from a copy, or open an earlier version."


def verify_dataset(dataset: VersionFiles) -> VerifyReport:
    """Verify a version; changes nothing, and reads no pages of data files but those of descriptors of blobs.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    """
    start = perf_counter()
    fragments = dataset.manifest.fragments
    indices: list[Any] = []
    found = [
        *_guarded("manifest-damaged", dataset.manifest.path, lambda: indices.extend(list_indices(dataset))),
        *_data_files(dataset),
        *_blobs(dataset),
        *_deletions(dataset),
        *_guarded_row_ids(dataset),
        *_indices(dataset, indices),
    ]
    version = dataset.manifest.version
    checked = {
        "fragments": len(fragments),
        "files": fragments.num_files,
        "deletion files": int((fragments.deletion_kind >= 0).sum()),
        "indices": len(indices),
    }
    return api.VerifyReport.of(dataset.uri, version, found, checked, perf_counter() - start)


def _finding(rule: str, file: str, found: str, expected: str, severity: Any = "error") -> Finding:
    return api.Finding(rule, found, expected, _RESTORE, severity, file)


def _guarded(rule: str, file: str, check: Callable[[], Any]) -> Iterator[Finding]:
    """Yield the error of a check as a finding."""
    try:
        check()
    except DataFileNotFoundError as e:
        yield _finding(rule.replace("damaged", "missing"), file, e.message, "the file")
    except UnsupportedFeatureError as e:
        yield _finding("not-verified", file, e.message, "a file that can be read", "information")
    except DeltaError as e:
        yield _finding(rule, file, e.message, "a file that can be read")


def _data_files(dataset: VersionFiles) -> Iterator[Finding]:
    """Compare each data file with the manifest: its size, its footer and its rows."""
    fragments = dataset.manifest.fragments
    for number, fragment in enumerate(np.repeat(np.arange(len(fragments)), np.diff(fragments.first_file)).tolist()):
        file = number - int(fragments.first_file[fragment])
        path = dataset.file_path(fragment, file)
        size = int(fragments.file_size[number])
        try:
            [(actual, _)] = dataset.engine.storage.stat([path])
        except FileNotFoundError:
            yield _finding("data-file-missing", path, "no such file", "a data file")
            continue
        if size and actual != size:
            yield _finding("data-file-size", path, f"{actual} bytes", f"{size} bytes, as the manifest specifies")
            continue
        yield from _guarded("data-file-damaged", path, lambda i=fragment, f=file, p=path: _rows(dataset, i, f, p))  # type: ignore[misc]


def _rows(dataset: VersionFiles, fragment: int, file: int, path: str) -> None:
    found, expected = dataset.open_file(fragment, file).num_rows, dataset.physical_rows(fragment)
    if found != expected:
        raise DataFileError(f"It has {found} rows, but its fragment has {expected}.", path=path)


def _blobs(dataset: VersionFiles) -> Iterator[Finding]:
    """Look at the files that blobs are in: they have to be there, and have all bytes that descriptors specify."""
    for i in range(len(dataset.manifest.fragments) if may_have_blobs(dataset) else 0):
        path = dataset.first_file_path(i)
        yield from _guarded("blobs-damaged", path, lambda i=i: check_blobs(dataset, i))  # type: ignore[misc]


def _deletions(dataset: VersionFiles) -> Iterator[Finding]:
    """Read each deletion file, which has to list as many rows as the manifest specifies, of its fragment."""
    for i in np.flatnonzero(dataset.manifest.fragments.deletion_kind >= 0).tolist():
        path = dataset.deletion_path(i)
        yield from _guarded("deletion-file-damaged", path, lambda i=i: dataset.deleted_rows([i]))  # type: ignore[misc]


def _guarded_row_ids(dataset: VersionFiles) -> Iterator[Finding]:
    if dataset.manifest.has_stable_row_ids:
        yield from _guarded("row-ids-damaged", dataset.manifest.path, lambda: _row_ids(dataset))


def _row_ids(dataset: VersionFiles) -> None:
    """Check that no two rows have the same id; those in hidden columns of data files are not read."""
    manifest = dataset.manifest
    parts = [np.zeros(0, np.uint64)]
    for i in np.flatnonzero(~columns_of(manifest.fragments, "row_ids")).tolist():
        rows = dataset.physical_rows(i)
        ids = dataset.row_numbers("_rowid", "row_ids", i, np.arange(rows))
        deleted = dataset.deleted_rows([i])[0]
        parts.append(ids if deleted is None else ids[~deleted.mask(rows)])
    ids = np.sort(np.concatenate(parts))
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise api.CorruptTableError(f"{len(twice)} rows have the id of another row, such as {int(twice[0])}.")


def _indices(dataset: VersionFiles, messages: list[Any]) -> Iterator[Finding]:
    """Check that the files of indices are there with their sizes, and that their fragments can be decoded."""
    if not messages:
        return
    listed: list[Any] = []
    yield from _guarded("index-damaged", dataset.manifest.path, lambda: listed.extend(listed_indices(dataset)))
    folders = {i.folder: i for i in listed}
    most = dataset.manifest.message["max_fragment_id"]
    for message in messages:
        where = f"index {message['name']!r} in {dataset.manifest.path}"
        yield from _guarded("index-damaged", where, lambda m=message: _check_bitmap(m, most))  # type: ignore[misc]
        folder = next((f for f in folders if f.endswith(_uuid(message))), None)
        if folder is None:
            continue
        for file in message["files"]:
            path = dataset.other_path(folders[folder].base, f"{folder}/{file['path']}")
            try:
                [(size, _)] = dataset.engine.storage.stat([path])
            except FileNotFoundError:
                yield _finding("index-file-missing", path, "no such file", "a file of the index", "warning")
                continue
            if size != file["size_bytes"]:
                yield _finding("index-file-size", path, f"{size} bytes", f"{file['size_bytes']} bytes", "warning")


def _check_bitmap(index: Any, most: int | None) -> None:
    """Check that the fragments of an index can be decoded, and that none of them was never there."""
    last = RowSet.from_roaring(index["fragment_bitmap"], 32).max if index["fragment_bitmap"] else None
    if last is not None and most is not None and last > most:
        raise api.CorruptTableError(f"It has fragment {last}, but the last one that ever was is {most}.")


def _uuid(message: Any) -> str:
    text = bytes(message["uuid"]["uuid"]).hex() if message["uuid"] else "-"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
