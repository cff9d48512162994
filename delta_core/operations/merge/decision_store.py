"""The decisions of a merge: in memory up to a limit, else in a temporary file that is read in runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import SpillLimitError
from delta_core.kernels.row_set import RowSets
from delta_core.operations.temporary import temporary_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DecisionRuns", "Decisions"]

#: Bytes of decisions in memory before they are written to a temporary file, unless a limit is given.
MEMORY_BYTES = 256 << 20
#: The least decisions of one run, if there are enough.
RUN_ROWS = 1 << 20


class Decisions(Struct):
    """The decisions about rows of the target, ordered by file and position.

    Parameters
    ----------
    files, positions : int64[n]
        The number of the file that a row is in, and its physical position.
    sources : int64[n]
        The row of the source that it matches, -1: none.
    clauses : int16[n]
        The number of the clause that applies.
    """

    files: NDArray[np.int64]
    positions: NDArray[np.int64]
    sources: NDArray[np.int64]
    clauses: NDArray[np.int16]

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return sum(a.nbytes for a in self.arrays)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The columns."""
        return self.files, self.positions, self.sources, self.clauses

    def of(self, mask: NDArray[Any] | slice) -> Decisions:
        """Return some of them, by a mask, their numbers or a slice."""
        return Decisions(self.files[mask], self.positions[mask], self.sources[mask], self.clauses[mask])

    def row_sets(self, files: pa.Table) -> RowSets:
        """Return the positions in each of the files."""
        return RowSets.from_positions(files.num_rows, self.files, self.positions)

    @staticmethod
    def joined(parts: Sequence[Decisions]) -> Decisions:
        """Return all decisions, in the order of the parts."""
        none, no_clause = np.zeros(0, np.int64), np.zeros(0, np.int16)
        return Decisions(
            np.concatenate([none, *(p.files for p in parts)]),
            np.concatenate([none, *(p.positions for p in parts)]),
            np.concatenate([none, *(p.sources for p in parts)]),
            np.concatenate([no_clause, *(p.clauses for p in parts)]),
        )


class DecisionRuns:
    """All decisions of a merge, ordered by file and position, in runs. Closing it deletes its temporary file.

    Parameters
    ----------
    max_memory : int, optional
        Bytes that are held in memory, 256 MB by default; further ones are written to a temporary file.
    max_temporary : int, optional
        Bytes that the temporary file may take.
    """

    def __init__(self, max_memory: int | None = None, max_temporary: int | None = None) -> None:
        self._max_memory = MEMORY_BYTES if max_memory is None else max_memory
        self._max_temporary = max_temporary
        self._kept: list[Decisions] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._spilled: list[int] = []
        self._last: tuple[Any, Any] = -1, -1
        self._is_sorted = True
        #: How many decisions there are.
        self.num_rows: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # what could not be written is no longer needed
                self._file.close()

    def add(self, made: Decisions) -> None:
        """Add decisions. Those about rows before earlier ones are put in order, in memory, when they are needed.

        Raises
        ------
        SpillLimitError
            The temporary file would be larger than allowed.
        SpillError
            It can't be written, as on a full disk.
        """
        if not len(made.files):
            return
        self.num_rows += len(made.files)
        after = (made.files[1:] > made.files[:-1]) | (made.positions[1:] > made.positions[:-1])
        follows = (made.files[0], made.positions[0]) > self._last
        self._is_sorted &= bool(follows and (made.files[1:] >= made.files[:-1]).all() and after.all())
        self._last = made.files[-1], made.positions[-1]
        self._kept.append(made)
        self._held += made.nbytes
        if self._held > self._max_memory:
            with temporary_files():
                self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="delta_core-merge-")  # noqa: SIM115  (closed with the runs)
        run = Decisions.joined(self._kept)
        self._kept, self._held = [], 0
        for start in range(0, len(run.files), RUN_ROWS):
            piece = run.of(slice(start, start + RUN_ROWS))
            if self._max_temporary is not None and self._file.tell() + piece.nbytes > self._max_temporary:
                raise SpillLimitError(
                    f"The rows that the merge changes take more than {self._max_temporary} bytes in temporary files, "
                    "which is the limit that max_temp_directory_size sets. Raise it, or merge fewer rows at a time.",
                    limit=self._max_temporary,
                )
            for array in piece.arrays:
                self._file.write(np.ascontiguousarray(array).data)
            self._spilled.append(len(piece.files))

    def __iter__(self) -> Iterator[Decisions]:
        """Yield the decisions in order, in runs."""
        if self._is_sorted:
            yield from self._as_added()
        elif self.num_rows:
            whole = Decisions.joined(list(self._as_added()))
            yield whole.of(np.lexsort((whole.positions, whole.files)))

    def _as_added(self) -> Iterator[Decisions]:
        start = 0
        for count in self._spilled:
            run = self._read(start, count)
            start += run.nbytes
            yield run
        pieces: list[Decisions] = []
        held = 0
        for piece in self._kept:
            pieces.append(piece)
            held += len(piece.files)
            if held >= RUN_ROWS:
                yield Decisions.joined(pieces)
                pieces, held = [], 0
        if pieces:
            yield Decisions.joined(pieces)

    def _read(self, start: int, count: int) -> Decisions:
        assert self._file is not None
        with temporary_files():
            self._file.seek(start)
            files, positions, sources = (np.frombuffer(self._file.read(8 * count), np.int64) for _ in range(3))
            return Decisions(files, positions, sources, np.frombuffer(self._file.read(2 * count), np.int16))

    def row_sets(self, files: pa.Table, clauses: NDArray[np.bool_] | None = None) -> RowSets:
        """Return the positions in each of the files.

        Parameters
        ----------
        files : pyarrow.Table
            The files that the decisions number.
        clauses : bool[num_clauses], optional
            The clauses that count; all by default.
        """
        nothing = np.zeros(0, np.int64)
        sets = RowSets.from_positions(files.num_rows, nothing, nothing)
        for run in self:
            sets |= (run if clauses is None else run.of(clauses[run.clauses])).row_sets(files)
        return sets

    def counts(self, num_clauses: int) -> NDArray[np.int64]:
        """Return how many rows each clause applies to."""
        counts = np.zeros(num_clauses, np.int64)
        for run in self:
            counts += np.bincount(run.clauses, minlength=num_clauses)
        return counts
