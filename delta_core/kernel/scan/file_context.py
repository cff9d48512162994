"""The facts about files that applying a plan needs: constants, vectors, and which file a row is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from delta_core.errors import DataFileError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import number_array, scalar_of, strings_of
from delta_core.kernels.gather import SelectionVector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernel.plugins.rules import RowSelector
    from delta_core.kernels.row_set import RowSet, RowSets

__all__ = ["FileContext", "NoVectors", "OneFile", "RowOrigin", "WholeFiles"]


#: Rows of neighbouring files that a mask is made for.
_MOST_ROWS = 1 << 26


class DroppedRows(Protocol):
    """The rows that selectors drop; false if there are none."""

    def __bool__(self) -> bool: ...

    def rows(self, file: int) -> RowSet | None:
        """Return those of a file, None for a file without any."""
        ...

    def between(self, first: int, stop: int) -> tuple[NDArray[np.int64], RowSets] | None:
        """Return which of neighbouring files have any, and these; None if no file has."""
        ...


class NoVectors:
    """The `Vectors` of files from which no selector drops rows."""

    located: Sequence[tuple[RowSelector, pa.Table]] = ()

    def __bool__(self) -> bool:
        return False

    def start(self) -> None:
        """Read nothing."""

    def close(self) -> None:
        """See `start`."""

    def rows(self, file: int) -> RowSet | None:
        """Return None: no row is dropped."""
        return None

    def between(self, first: int, stop: int) -> tuple[NDArray[np.int64], RowSets] | None:
        """Return None: no row is dropped."""
        return None

    def num_dropped(self) -> int | None:
        """Return zero."""
        return 0


class FileContext:
    """The facts about each file that the application of a plan needs, by its number in the read.

    Parameters
    ----------
    paths : sequence of str
        For messages.
    constants : sequence of pyarrow.Array or None
        Parallel to `ReadPlan.constants`: a value a file; None: where the file lies.
    uri : function(str) -> str
        From a path to where the file lies.
    dropped : DroppedRows
    opened : function(int, int)
        Called with a file's number and its physical rows, before they are applied; raises if its vector does not fit.
    kept_rows : Mapping of int to RowSet or None
        If given, the only rows of a file that are requested.
    num_rows : function(int, int) -> int64 or None
        From the numbers of neighbouring files, how many physical rows each one has by its statistics; None if some have
        none.
    """

    def __init__(
        self,
        paths: Sequence[str],
        constants: Sequence[pa.Array | None],
        uri: Callable[[str], str],
        dropped: DroppedRows,
        opened: Callable[[int, int], None],
        kept_rows: Mapping[int, RowSet] | None,
        num_rows: Callable[[int, int], NDArray[np.int64] | None],
    ) -> None:
        self.paths = paths
        self._constants = constants
        self._uri = uri
        self._dropped = dropped
        self.opened = opened
        self._kept_rows = kept_rows
        self._num_rows = num_rows

    @property
    def drops_rows(self) -> bool:
        """Whether rows of any file are dropped by their positions."""
        return self._kept_rows is not None or bool(self._dropped)

    def selection(self, file: int, first: int, num_rows: int) -> SelectionVector | None:
        """Return which of some rows of a file are requested, None for all. See `FileRead`."""
        dropped = self._dropped.rows(file)
        if self._kept_rows is not None and file in self._kept_rows:
            mask = self._kept_rows[file].mask(num_rows, first)
            if dropped is not None:
                mask &= ~dropped.mask(num_rows, first)
            return SelectionVector.of_flags(mask)
        if dropped is None or not dropped.num_between(first, first + num_rows):
            return None
        words = np.empty((num_rows + 63) // 64, np.uint64)
        dropped.fill_keep_bits(words.view(np.uint8), num_rows, first)
        return SelectionVector.of_mask(words, num_rows)

    def selection_of_files(self, first: int, ends: NDArray[np.int64]) -> SelectionVector | None:
        """Return which rows of neighbouring whole files are requested, None for all; ``ends``: each file's end."""
        dropped = self._dropped.between(first, first + len(ends))
        kept = self._kept_rows or {}
        kept_files = [file for file in range(first, first + len(ends)) if file in kept] if kept else []
        if dropped is None and not kept_files:
            return None
        sizes = np.diff(ends, prepend=0)
        starts = ends - sizes
        flags = np.zeros(int(ends[-1]), np.bool_)
        if dropped is not None:
            files, rows = dropped
            places = files - first
            for place in places[rows.last() >= sizes[places]].tolist():
                self.opened(first + place, int(sizes[place]))
            rows.fill_masks(flags, starts[places], sizes[places])
        np.logical_not(flags, out=flags)
        for file in kept_files:
            place = file - first
            flags[starts[place] : ends[place]] &= kept[file].mask(int(sizes[place]))
        return SelectionVector.of_flags(flags)

    def requested(self, first: int, stop: int) -> tuple[SelectionVector | None, NDArray[np.int64]] | None:
        """Return which rows of neighbouring files are requested, None for all, and how many physical rows each has.

        None if the log does not specify how many, or too many, or if dropped rows don't fit: the files have to be
        looked at.
        """
        rows = self._num_rows(first, stop)
        # a log may specify any number: the sum may overflow, and a file without rows would not be opened
        if rows is None or rows.min(initial=1) <= 0 or rows.max(initial=1) > _MOST_ROWS or rows.sum() > _MOST_ROWS:
            return None
        try:
            return self.selection_of_files(first, np.cumsum(rows)), rows
        except DataFileError:
            return None

    def constant(self, file: int, number: int) -> pa.Scalar:
        """Return a file's value of a constant."""
        column = self._constants[number]
        return scalar_of(self._uri(self.paths[file]), pa.string()) if column is None else column[file]

    def constants(self, files: NDArray[np.int64], number: int) -> pa.Array:
        """Return a constant's value for each of many rows of the files, in order."""
        column = self._constants[number]
        if column is not None:
            return pc.take(column, number_array(files))
        first = int(files[0]) if len(files) else 0
        places = strings_of([self._uri(p) for p in self.paths[first : int(files[-1]) + 1]] if len(files) else [])
        return pc.take(places, number_array(files - first))


class RowOrigin(Protocol):
    """Which file and which position of it each row of a batch comes from."""

    def positions(self, rows: NDArray[Any] | None, num_rows: int) -> pa.Array:
        """Return the physical positions of rows of the batch, of all ``num_rows`` if none are given: int64."""
        ...

    def constant(self, number: int, rows: NDArray[Any] | None) -> Any:
        """Return a constant of these rows: a scalar, or an array of as many values."""
        ...

    def place(self, row: int) -> tuple[str, int]:
        """Return the path of a row's file, and its position there."""
        ...


class OneFile:
    """Rows of one file: from a position on, those that are picked (None: each one)."""

    def __init__(self, files: FileContext, file: int, first: int, picked: SelectionVector | None) -> None:
        self._files = files
        self._file = file
        self._first = first
        self._picked = picked

    def positions(self, rows: NDArray[Any] | None, num_rows: int) -> pa.Array:
        """See `RowOrigin.positions`."""
        if self._picked is not None:
            rows = self._picked.indices if rows is None else self._picked.indices[rows]
        if rows is None:
            return number_array(np.arange(self._first, self._first + num_rows, dtype=np.int64))
        return number_array(rows.astype(np.int64) + self._first)

    def constant(self, number: int, rows: NDArray[Any] | None) -> Any:
        """See `RowOrigin.constant`."""
        return self._files.constant(self._file, number)

    def place(self, row: int) -> tuple[str, int]:
        """See `RowOrigin.place`."""
        at = row if self._picked is None else int(self._picked.indices[row])
        return self._files.paths[self._file], self._first + at


class WholeFiles:
    """All rows of neighbouring files, one file after the other."""

    def __init__(self, files: FileContext, first: int, ends: NDArray[np.int64]) -> None:
        self._files = files
        self._first = first
        self._ends = ends

    def positions(self, rows: NDArray[Any] | None, num_rows: int) -> pa.Array:
        """See `RowOrigin.positions`."""
        at = np.arange(num_rows, dtype=np.int64) if rows is None else rows.astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), self._ends[:-1]])
        return number_array(at - starts[self._numbers(at)])

    def constant(self, number: int, rows: NDArray[Any] | None) -> Any:
        """See `RowOrigin.constant`."""
        numbers = (
            np.repeat(np.arange(len(self._ends)), np.diff(self._ends, prepend=0))
            if rows is None
            else self._numbers(rows)
        )
        return self._files.constants(numbers + self._first, number)

    def place(self, row: int) -> tuple[str, int]:
        """See `RowOrigin.place`."""
        number = int(self._numbers(np.array([row]))[0])
        start = int(self._ends[number - 1]) if number else 0
        return self._files.paths[self._first + number], row - start

    def _numbers(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        return np.searchsorted(self._ends, rows, side="right").astype(np.int64)
