"""Small fragments of a local dataset, whose files are read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import bool_array
from delta_plugins.lance.files import MOST_SMALL_BYTES, SmallFilesReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.projection import FilePart, ShapePlan
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["SmallFragments"]


class SmallFragments:
    """Finds and reads fragments whose files are small.

    Parameters
    ----------
    dataset : VersionFiles
        The version, on a local disk.
    """

    def __init__(self, dataset: VersionFiles) -> None:
        self._dataset = dataset
        self._readers: dict[int, list[SmallFilesReader] | None] = {}
        fragments = dataset.manifest.fragments
        sizes, first = fragments.file_size, fragments.first_file
        is_large = (sizes <= 0) | (sizes > MOST_SMALL_BYTES)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_large)])
        #: Whether each fragment has only small files, bool[n_fragments].
        self.are_small: NDArray[np.bool_] = before[first[1:]] == before[first[:-1]]
        if not dataset.manifest.rows_are_known:
            self.are_small[:] = False
        self.are_small &= fragments.physical_rows >= 0

    def read(self, fragments: NDArray[np.int64], plan: ShapePlan) -> list[list[Any]] | None:
        """Return the fields of the files of fragments, deleted rows too.

        Parameters
        ----------
        fragments : int64[n]
            Indices of small fragments of the same shape.
        plan : ShapePlan
            How fields are read of them.

        Returns
        -------
        list of list of pyarrow.Array, or None
            The fields of each part of the plan. None if a file is damaged or unusual: reading the fragments one by
            one reads them, or reports the file.
        """
        shape = int(self._dataset.manifest.fragments.shape[fragments[0]])
        if shape not in self._readers:
            self._readers[shape] = self._readers_of(shape, plan)
        readers = self._readers[shape]
        if readers is None:
            return None
        found: list[list[Any]] = []
        for reader, part in zip(readers, plan.parts, strict=True):
            arrays = self._read(reader, part, fragments)
            if arrays is None:
                return None
            found.append(arrays)
        return found

    def _read(self, reader: SmallFilesReader, part: FilePart, fragments: NDArray[np.int64]) -> list[Any] | None:
        listed = self._dataset.manifest.fragments
        paths = self._dataset.local_paths(listed.first_file[fragments] + part.file)
        if paths is None:
            return None
        sizes = listed.file_size[listed.first_file[fragments] + part.file]
        return reader.read(paths, sizes, listed.physical_rows[fragments])

    def _readers_of(self, shape: int, plan: ShapePlan) -> list[SmallFilesReader] | None:
        fragments = self._dataset.manifest.fragments
        readers = []
        for part in plan.parts:
            layout = fragments.layouts[fragments.shapes[shape][part.file]]
            readers.append(SmallFilesReader(part.fields, part.column_of, (layout.major, layout.minor)))
        return readers if all(r.is_usable for r in readers) else None

    def live_rows(self, fragments: NDArray[np.int64]) -> pa.BooleanArray | None:
        """Return whether each row of fragments is not deleted, as a mask; None if none is."""
        listed = self._dataset.manifest.fragments
        if (listed.deletion_kind[fragments] < 0).all():
            return None
        ends = np.cumsum(listed.physical_rows[fragments])
        is_live = np.ones(int(ends[-1]), np.bool_)
        for rows, end, count in zip(
            self._dataset.deleted_rows(fragments.tolist()),
            ends.tolist(),
            listed.physical_rows[fragments].tolist(),
            strict=True,
        ):
            if rows is not None:
                is_live[end - count : end] = ~rows.mask(count)
        return bool_array(is_live)
