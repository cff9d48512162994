"""Checks of the files that blobs are in, by the descriptors of a fragment; the bytes themselves are not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from delta_plugins.lance import flags
from delta_plugins.lance.external_blobs import Reference
from delta_plugins.lance.projection import select_fields
from delta_plugins.lance.scan import FragmentReader, RowReader
from delta_plugins.lance.schema import LanceField, blob_kind, is_packed
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_blobs", "fragments_with_blobs", "has_columns_of_blobs"]

#: Rows whose descriptors are in memory together.
_ROWS = 1 << 16


class _OwnBlobs(VersionFiles):
    """A version whose external blobs are left out: their files belong to others."""

    def carried_blob(self, reference: Reference, field: int, path: str, column: str) -> bytes | None:
        """Return a value in place of the file."""
        return b""


def has_columns_of_blobs(fields: Sequence[LanceField]) -> bool:
    """Whether some fields are columns of blobs, or structs with such fields."""
    return any(_has_blobs(f) for f in fields)


def _has_blobs(field: LanceField) -> bool:
    """Whether a field has blobs that each have a row: those in lists and maps have none."""
    if blob_kind(field):
        return True
    return field.logical_type == "struct" and not is_packed(field) and any(_has_blobs(c) for c in field.children)


def _paths(fields: Sequence[LanceField], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        path = (*above, field.name)
        if blob_kind(field):
            yield path
        elif _has_blobs(field):
            yield from _paths(field.children, path)


def fragments_with_blobs(dataset: VersionFiles) -> list[int]:
    """Return the indices of the fragments that may have blobs; none of a dataset without columns of them."""
    manifest = dataset.manifest
    is_managed = manifest.message["reader_feature_flags"] & flags.MANAGED_BLOBS
    return [] if is_managed or not has_columns_of_blobs(manifest.fields) else list(range(len(manifest.fragments)))


def check_blobs(dataset: VersionFiles, fragment: int) -> None:
    """Check that the live rows of a fragment have blobs within files that are there.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    fragment : int
        The index of the fragment.

    Raises
    ------
    DataFileError
        If a blob is not within its file, or descriptors are damaged; its ``path`` is that of the file.
    DataFileNotFoundError
        If a file is missing.
    UnsupportedFeatureError
        For a kind of blobs that is not known.
    """
    files = _OwnBlobs(dataset.engine, dataset.uri, dataset.manifest, dataset.branch, dataset.opening)
    fields = dataset.manifest.fields
    for path in _paths(fields):
        reader = FragmentReader(RowReader(files, select_fields(fields, [path])), fragment)
        positions = reader.live_positions()
        for chosen in _windows(reader.num_rows() if positions is None else len(positions), positions):
            reader.blobs(chosen)


def _windows(total: int, positions: NDArray[np.int64] | None) -> Iterator[NDArray[np.int64]]:
    for start in range(0, total, _ROWS):
        stop = min(start + _ROWS, total)
        yield np.arange(start, stop) if positions is None else positions[start:stop]
