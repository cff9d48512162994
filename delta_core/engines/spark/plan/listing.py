"""The files of a scan, handed to the driver's JVM when a query is planned: those that its filters leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from delta_core.engines.spark.failures import names_files
from delta_core.engines.spark.plan.files import PlannedFiles, Rows
from delta_core.engines.spark.plan.handover import HandedFiles, is_flat, write_handed_files
from delta_core.kernel.log.files import FileSet, Part, TableChunk
from delta_core.kernel.scan.scan import Scan
from delta_core.kernels.arrow_buffers import int64_values
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FileListing"]

#: Files up to which a table is looked at as soon as it is read: damage is reported by the read itself.
_AT_ONCE = 10_000
#: Files that are handed over together, in the order of the log: what is held of them is dropped before the next ones.
_RUN = 1 << 19


class FileListing:
    """The facts about a scan's files that the file index requires.

    A file is known by its number: the row in which it is among all rows of the log's chunks. It is the same
    whichever filter left the file.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.files: FileSet = scan.file_set
        names_files(self)
        self._firsts: dict[int, int] = {}
        total = 0
        for part in self.files.parts:
            self._firsts[id(part.chunk)] = total
            total += part.chunk.num_rows
        if total <= _AT_ONCE:
            planned = PlannedFiles(scan, self.files)
            for leaf in scan.plan.constants:
                planned.constant(leaf)
            planned.sizes()

    @staticmethod
    def is_possible(scan: Scan) -> bool:
        """Whether the constants of a scan's files can be handed over."""
        return all(is_flat(leaf.type.to_arrow(scan.source.state.types)) for leaf in scan.plan.constants)

    @cached_property
    def marked(self) -> PlannedFiles:
        """The files that may have dropped or chosen rows; no file without such rows is looked at without need."""
        if self.files.keep is not None:
            return PlannedFiles(self._scan, self.files)
        parts = [p for p in self.files.parts if self._may_have_vectors(p)]
        return PlannedFiles(self._scan, self.files.with_parts(parts))

    def _may_have_vectors(self, part: Part) -> bool:
        selectors, chunk = self._scan.plan.selectors, part.chunk
        if not selectors or any(s.columns != ("deletionVector",) for s in selectors):
            return bool(selectors)
        if chunk.place is not None:
            handle, group = chunk.place
            return not handle.all_null(group, ("add", "deletionVector", "storageType"))
        # a commit's ids of vectors are in memory
        return isinstance(chunk, TableChunk) or chunk.load(["dvId"])[0].null_count < chunk.num_rows

    @cached_property
    def has_vectors(self) -> bool:
        """Whether any file has dropped or chosen rows."""
        return bool(self.marked.with_vector.any())

    def size(self) -> int:
        """Return the bytes of all files."""
        column = self.files.columns(["size"]).column(0)
        if column.null_count:
            return int(int64_values(PlannedFiles(self._scan, self.files).sizes()).sum())
        return sum(int(int64_values(chunk).sum()) for chunk in column.chunks)

    def write(self, files: FileSet) -> str:
        """Write files, of these, for the driver, and return the name of what is written."""
        return write_handed_files(map(self._handed, _runs(files)))

    def _handed(self, files: FileSet) -> HandedFiles:
        planned = PlannedFiles(self._scan, files)
        places, sizes = planned.hadoop_paths(), planned.sizes()
        constants = [planned.constant(leaf) for leaf in self._scan.plan.constants]
        marked = planned.with_vector if self.has_vectors else np.zeros(len(places), np.bool_)
        return HandedFiles(places, sizes, marked, constants, self._numbers(files))

    def _numbers(self, files: FileSet) -> NDArray[np.int32]:
        found = [self._firsts[id(p.chunk)] + np.flatnonzero(p.mask()) for p in files.parts]
        return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int32)

    def path(self, number: int) -> str:
        """Return a file's path as the log means it."""
        return PlannedFiles(self._scan, self._at(np.array([number]))).path(0)

    def path_at(self, place: str) -> str | None:
        """Return the path of the file at a place that Spark names, None if none of the files lies there."""
        planned = PlannedFiles(self._scan, self.files)
        number = planned.hadoop_paths().index(place).as_py()
        return None if number < 0 else planned.path(number)

    def rows(self, numbers: Sequence[int]) -> Iterator[Rows]:
        """Yield the dropped or chosen rows of files that have such."""
        files = np.unique(np.asarray(numbers, np.int64))
        for rows in PlannedFiles(self._scan, self._at(files)).rows(range(len(files))):
            yield replace(rows, file=int(files[rows.file]))

    def _at(self, numbers: NDArray[np.int64]) -> FileSet:
        """Return files by their numbers, ascending."""
        parts = []
        for part in self.files.parts:
            first = self._firsts[id(part.chunk)]
            start, stop = np.searchsorted(numbers, [first, first + part.chunk.num_rows])
            if start < stop:
                alive = np.zeros(part.chunk.num_rows, np.bool_)
                alive[numbers[start:stop] - first] = True
                parts.append(Part(part.chunk, alive=alive))
        if self.files.keep is None:
            return self.files.with_parts(parts)
        every = self._numbers(self.files)
        keep = {
            int(np.searchsorted(numbers, every[n])): rows for n, rows in self.files.keep.items() if every[n] in numbers
        }
        return FileSet(parts, self._scan.source.engine.map, keep)


def _runs(files: FileSet) -> Iterator[FileSet]:
    """Yield the files in runs of some size."""
    if files.keep is not None or files.count <= _RUN:
        yield files
        return
    parts: list[Part] = []
    count = 0
    for part in files.parts:
        parts.append(part)
        count += int(part.mask().sum())
        if count >= _RUN:
            yield files.with_parts(parts)
            parts, count = [], 0
    if parts:
        yield files.with_parts(parts)
