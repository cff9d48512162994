"""Repair: a version without the fragments whose files can't be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from delta_core.api import CorruptTableError, DataFileError, DataFileNotFoundError
from delta_plugins.lance.blob_checks import check_blobs, may_have_blobs
from delta_plugins.lance.chosen_rows import ChosenScan
from delta_plugins.lance.commit.operations import Delete, RowRemoval

if TYPE_CHECKING:
    from delta_plugins.lance.dataset_version import DatasetVersion
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["Unreadable", "described", "removal_of", "unreadable_fragments"]

#: The rows of a window of a deep check, in bytes.
_BATCH_BYTES = 16 << 20


class Unreadable(Struct, frozen=True):
    """A fragment that can't be read.

    Parameters
    ----------
    index, id : int
        Of the fragment.
    rows : int
        Its rows as the manifest specifies, without those that are known to be deleted.
    file, reason : str
        The first file of it that is damaged or missing, and the error.
    """

    index: int
    id: int
    rows: int
    file: str
    reason: str


def unreadable_fragments(dataset: DatasetVersion, *, deep: bool = False) -> list[Unreadable]:
    """Return the fragments of a version with a file that is missing or damaged.

    No pages are read, but those of descriptors of blobs, unless ``deep``.

    Parameters
    ----------
    dataset : LanceDataset
        The version.
    deep : bool
        Whether all rows are read.

    Raises
    ------
    EngineError
        If a file can't be reached: it is not known then whether it is damaged.
    UnsupportedFeatureError
        For a file that is not supported.
    """
    found = []
    listed = dataset.manifest.fragments
    for index in range(len(listed)):
        path, error = _first_damage(dataset.files, index, deep)
        if error is not None:
            rows = int(listed.physical_rows[index]) - max(int(listed.num_deleted[index]), 0)
            found.append(Unreadable(index, int(listed.id[index]), rows, path, error))
    return found


def _first_damage(files: VersionFiles, index: int, deep: bool) -> tuple[str, str | None]:
    listed = files.manifest.fragments
    first, last = int(listed.first_file[index]), int(listed.first_file[index + 1])
    path = files.manifest.path
    try:
        for number in range(first, last):
            path = files.file_path(index, number - first)
            _check_file(files, index, number, path)
        if listed.deletion_kind[index] >= 0:
            path = files.deletion_path(index)
            files.deleted_rows([index])
        if may_have_blobs(files):
            path = files.first_file_path(index)
            check_blobs(files, index)
        if deep:
            path = files.first_file_path(index)
            for _ in ChosenScan(files, None, None, (), {index: None}, _BATCH_BYTES).read_batches():
                pass
    except (DataFileNotFoundError, CorruptTableError) as e:
        return str(e.facts.get("path", path)), e.message
    return path, None


def _check_file(files: VersionFiles, index: int, number: int, path: str) -> None:
    listed = files.manifest.fragments
    try:
        [(size, _)] = files.engine.storage.stat([path])
    except FileNotFoundError:
        raise DataFileNotFoundError(f"Data file {path!r} is not there.", path=path) from None
    known = int(listed.file_size[number])
    if known and size != known:
        raise DataFileError(f"Data file {path!r} has {size} bytes, expected {known}.", path=path)
    found = files.open_file(index, number - int(listed.first_file[index]))
    if found.num_rows != files.physical_rows(index):
        raise DataFileError(
            f"Data file {path!r} has {found.num_rows} rows, but its fragment has {files.physical_rows(index)}.",
            path=path,
        )


def removal_of(dataset: DatasetVersion, unreadable: Sequence[Unreadable]) -> Delete:
    """Return the operation that removes fragments from a version."""
    return Delete(RowRemoval(dataset.manifest, {}, {}), [u.id for u in unreadable])


def described(unreadable: Sequence[Unreadable]) -> list[dict[str, Any]]:
    """Return fragments as `LanceDataset.repair` lists them."""
    return [{"fragment": u.id, "rows": u.rows, "file": u.file, "reason": u.reason} for u in unreadable]
