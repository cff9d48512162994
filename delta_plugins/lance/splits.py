"""Parts of a version that several processes read: runs of small fragments, and ranges of rows of large ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import number_array
from delta_plugins.lance.projection import Columns
from delta_plugins.lance.scan import FragmentReader, LanceScan
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SplitScan", "plan_splits"]

#: Bytes that a row counts for if the manifest lacks the sizes of files.
_ROW_BYTES = 64
#: Rows that a range has at least, and the multiple that its ends are of.
_LEAST_ROWS = 1 << 12


class SplitScan(LanceScan):
    """A scan of one part of a version.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    split : Mapping
        A row of `plan_splits`.
    columns, predicate, metadata
        As of `LanceScan`.
    """

    def __init__(
        self,
        dataset: VersionFiles,
        split: Mapping[str, Any],
        columns: Columns = None,
        predicate: Any = None,
        metadata: Sequence[str] = (),
    ) -> None:
        super().__init__(dataset, columns, predicate, metadata=metadata)
        self._split = dict(split)
        self._selected = columns, predicate, tuple(metadata)

    def __reduce__(self) -> tuple[Any, ...]:
        return SplitScan, (self._dataset, self._split, *self._selected)

    def _fragments(self) -> Iterator[int]:
        first, last = self._split["first_fragment"], self._split["last_fragment"]
        yield from self._listed(range(first, last + 1))

    def _live(self, reader: FragmentReader, fragment: int) -> NDArray[np.int64] | None:
        found = super()._live(reader, fragment)
        start, stop = self._rows(reader)
        if found is None:
            return None if (start, stop) == (0, reader.num_rows()) else np.arange(start, stop)
        return found[np.searchsorted(found, start) : np.searchsorted(found, stop)]

    def _left(self, rows: FragmentReader, fragment: int) -> tuple[NDArray[np.int64] | None, bool]:
        found, is_tested = super()._left(rows, fragment)
        if found is None:
            return None, is_tested
        start, stop = self._rows(rows)
        return found[np.searchsorted(found, start) : np.searchsorted(found, stop)], is_tested

    def _rows(self, reader: FragmentReader) -> tuple[int, int]:
        """Return the first row of the part in a fragment, and the row after the last one."""
        stop = self._split["stop_row"]
        return self._split["start_row"], reader.num_rows() if stop < 0 else min(stop, reader.num_rows())

    def count(self) -> int:
        """Return how many rows there are; without a predicate no data file is read."""
        if self._predicate is not None:
            return super().count()
        total = 0
        for i in self._fragments():
            reader = FragmentReader(self._reader, i)
            positions = self._live(reader, i)
            total += reader.num_rows() if positions is None else len(positions)
        return total


def plan_splits(dataset: VersionFiles, split_bytes: int) -> pa.Table:
    """Return the parts in which several processes read the rows of a version; no file is read.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    split_bytes : int
        The bytes of data files that a part should have.

    Returns
    -------
    pyarrow.Table
        ``first_fragment`` and ``last_fragment``, indices; ``start_row`` and ``stop_row``, the rows of a part of one
        fragment (-1 = to its end); ``size_bytes``. All are int64.
    """
    fragments = dataset.manifest.fragments
    rows = np.maximum(fragments.physical_rows, 0)
    sizes = _sizes(fragments.first_file, fragments.file_size, rows)
    per_row = np.maximum(sizes // np.maximum(rows, 1), 1)
    step = np.maximum(split_bytes // per_row // _LEAST_ROWS, 1) * _LEAST_ROWS
    parts = np.maximum(-(-rows // step), 1)
    # one entry a part of a fragment; then neighbours that are small are joined
    fragment = np.repeat(np.arange(len(rows)), parts)
    number = np.arange(len(fragment)) - np.repeat(np.cumsum(parts) - parts, parts)
    is_last = number == parts[fragment] - 1
    start = number * step[fragment]
    stop = np.where(is_last, -1, start + step[fragment])
    part_rows = np.where(is_last, rows[fragment] - start, step[fragment])
    size = np.where(parts[fragment] == 1, sizes[fragment], part_rows * per_row[fragment])
    heads = _heads(size, parts[fragment] == 1, split_bytes)
    tails = np.append(heads, len(fragment))[1:] - 1
    columns = {
        "first_fragment": fragment[heads],
        "last_fragment": fragment[tails],
        "start_row": start[heads],
        "stop_row": stop[tails],
        "size_bytes": np.add.reduceat(size, heads) if len(heads) else size,
    }
    return pa.table({name: number_array(values.astype(np.int64)) for name, values in columns.items()})


def _sizes(first_file: NDArray[np.int64], file_size: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of each fragment's files; an estimate if the manifest lacks the size of one."""
    total = np.append(0, np.cumsum(file_size))
    unknown = np.append(0, np.cumsum(file_size <= 0))
    found = total[first_file[1:]] - total[first_file[:-1]]
    is_known = (unknown[first_file[1:]] == unknown[first_file[:-1]]) & (found > 0)
    return np.where(is_known, found, rows * _ROW_BYTES)


def _heads(size: NDArray[np.int64], is_whole: NDArray[np.bool_], split_bytes: int) -> NDArray[np.int64]:
    """Return the first entry of each part: whole fragments in one window of ``split_bytes`` are joined."""
    if not len(size):
        return np.zeros(0, np.int64)
    ends = np.cumsum(size)
    window = (ends - 1) // max(split_bytes, 1)
    joins = is_whole[1:] & is_whole[:-1] & (window[1:] == window[:-1])
    return np.flatnonzero(np.append(True, ~joins))
