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

__all__ = ["check_blobs", "may_have_blobs"]

#: Rows whose descriptors are in memory together.
_ROWS = 1 << 16


class _OwnBlobs(VersionFiles):
    """A version whose external blobs are left out: their files belong to others."""

    def carried_blob(self, reference: Reference, field: int, path: str, column: str) -> bytes | None:
        """Return a value in place of the file."""
        return b""


def may_have_blobs(dataset: VersionFiles) -> bool:
    """Whether a dataset has columns of blobs whose files `check_blobs` finds."""
    manifest = dataset.manifest
    is_managed = manifest.message["reader_feature_flags"] & flags.MANAGED_BLOBS
    return not is_managed and any(True for _ in _paths(manifest.fields))


def _paths(fields: Sequence[LanceField], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the columns of blobs that each have a row: those in lists and maps have none."""
    for field in fields:
        path = (*above, field.name)
        if blob_kind(field):
            yield path
        elif field.logical_type == "struct" and not is_packed(field):
            yield from _paths(field.children, path)


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
