"""Row groups with few requested rows: conditions are tested first, other columns are decoded for what passes them.

A row group is narrowed step by step: the rows that selectors leave, then one condition after the other, each on the
columns that it needs of the rows that are left. What no row is left of is read no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.parquet.columns import GROUP_BYTES, GroupReader
from delta_core.engines.arrow.parquet.types import FilePlan
from delta_core.engines.interface import FileRead
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.nested import batch_of, empty_rows

__all__ = ["Batch", "FilteredGroups"]

#: The position of a batch's first row, the batch, and which of the rows from there on it has; None: each one.
Batch = tuple[int, pa.RecordBatch, "SelectionVector | None"]
#: Picked rows of a row group are decoded in stretches that take so much.
WINDOW_BYTES = 16 << 20
#: A big row group of so many columns is decoded in stretches of so much, as long as these are no more than so many:
#: PyArrow would hold pages of each of them. For each stretch the stored bytes are read again.
WIDE_LEAVES, WIDE_BYTES, MOST_STRETCHES = 64, 32 << 20, 16
#: Rows of a mask's word: a batch begins with one if it can.
_WORD = 64


class FilteredGroups:
    """Reads row groups of one data file as physical batches of the rows that are requested.

    Parameters
    ----------
    reader : GroupReader
    plan : FilePlan
        Of this file.
    read : FileRead
    file : int
        The file's number in the read.
    """

    def __init__(self, reader: GroupReader, plan: FilePlan, read: FileRead, file: int) -> None:
        self._reader = reader
        self._plan = plan
        self._read = read
        self._file = file
        #: How many rows are still needed; None: all.
        self._left = read.most_rows

    def batches(self, groups: Sequence[int], first: int) -> Iterator[Batch]:
        """Yield the requested rows of neighbouring row groups from a position on."""
        whole: list[int] = []
        start = first
        for group in groups:
            if self._left == 0:
                break
            rows = self._reader.group_rows[group]
            picks = self._first_ones(self._wanted(first, rows), rows)
            if picks is None and not self._read.tests and not self._is_wide(group):
                whole.append(group)
            else:
                yield from self._all(whole, start)
                if picks is None or picks.count:
                    yield from self._some(group, first, rows, picks)
                whole, start = [], first + rows
            first += rows
        yield from self._all(whole, start)

    def _wanted(self, first: int, rows: int) -> SelectionVector | None:
        if self._read.selection is None or not rows:
            return None
        picks = self._read.selection(self._file, first, rows)
        # a mask is what pages are decoded by
        return picks if picks is None or picks.mask is not None else SelectionVector.of_flags(picks.flags())

    def _first_ones(self, picks: SelectionVector | None, rows: int) -> SelectionVector | None:
        """Return the first of the picked rows, as many as are still needed."""
        if self._left is None:
            return picks
        count = rows if picks is None else picks.count
        if count > self._left:
            flags = np.ones(rows, np.bool_) if picks is None else picks.flags()
            flags[np.flatnonzero(flags)[self._left] :] = False
            picks, count = SelectionVector.of_flags(flags), self._left
        self._left -= count
        return picks

    def _all(self, groups: Sequence[int], first: int) -> Iterator[Batch]:
        """Yield each row of row groups."""
        if self._plan.leaves:
            for at, batch in self._reader.batches(groups, first, self._read.batch_rows):
                yield at, self._plan.convert(batch), None
            return
        for group in groups:
            rows = self._reader.group_rows[group]
            for at, part in _parts(rows, self._read.batch_rows):
                yield first + at, self._plan.convert(empty_rows(part)), None
            first += rows

    def _some(self, group: int, first: int, rows: int, picks: SelectionVector | None) -> Iterator[Batch]:
        """Yield those rows of a row group that are requested and pass the tests."""
        found: dict[int, pa.Array] = {}
        if not self._is_big(group, self._tested(), picks):
            picks = self._narrowed(group, first, rows, picks, found)
        else:
            picks = self._narrowed_in_parts(group, first, rows, picks)
        if picks is None:
            picks = SelectionVector.of_flags(np.ones(rows, np.bool_))
        if not picks.count:
            return
        columns = [c for c in range(len(self._plan.sources)) if c not in found and c not in self._read.tested_only]
        step = self._window_rows(group, columns, picks, WIDE_BYTES if self._is_wide(group) else WINDOW_BYTES)
        if step < rows and self._reader.decodes(group, self._leaves(columns)):
            yield from self._windows(group, first, columns, found, picks, step)
            return
        if self._is_big(group, columns, picks):
            yield from self._streamed(group, first, picks)
            return
        found |= self._decoded(group, columns, picks)
        yield from self._cut(first, self._batch(found, picks.count), picks)

    def _is_wide(self, group: int) -> bool:
        leaves = self._plan.leaves
        if len(leaves) < WIDE_LEAVES or not self._reader.decodes(group, leaves):
            return False
        return GROUP_BYTES < self._reader.plain_bytes(group, leaves) <= MOST_STRETCHES * WIDE_BYTES

    def _window_rows(self, group: int, columns: Sequence[int], picks: SelectionVector, window: int) -> int:
        """Return the rows of a stretch of a row group whose columns take the bytes of a window, about."""
        size = self._reader.plain_bytes(group, self._leaves(columns)) * picks.count / picks.num_rows
        if size <= 1.25 * window:
            return picks.num_rows
        return max(int(picks.num_rows * window / size) // _WORD * _WORD, _WORD)

    def _windows(
        self,
        group: int,
        first: int,
        columns: Sequence[int],
        found: dict[int, pa.Array],
        picks: SelectionVector,
        step: int,
    ) -> Iterator[Batch]:
        """Yield the picked rows of one stretch after the other: a waiting batch keeps its stretch in memory only."""
        mask = picks.mask if picks.mask is not None else SelectionVector.of_flags(picks.flags()).mask
        assert mask is not None
        at = 0
        for start in range(0, picks.num_rows, step):
            stop = min(start + step, picks.num_rows)
            part = picks.part(start, stop)
            if not part.count:
                continue
            words = np.zeros_like(mask)
            words[start // _WORD : -(-stop // _WORD)] = mask[start // _WORD : -(-stop // _WORD)]
            own = {c: array.slice(at, part.count) for c, array in found.items()}
            own |= self._decoded(group, columns, SelectionVector.of_mask(words, picks.num_rows))
            yield from self._cut(first + start, self._batch(own, part.count), part)
            at += part.count

    def _cut(self, first: int, batch: pa.RecordBatch, picks: SelectionVector) -> Iterator[Batch]:
        """Cut the picked rows of a row group into batches."""
        if picks.count <= self._read.batch_rows:
            yield first, batch, None if picks.count == picks.num_rows else picks
            return
        step = self._read.batch_rows
        step = step // _WORD * _WORD or step
        at = 0
        for start in range(0, picks.num_rows, step):
            part = picks.part(start, min(start + step, picks.num_rows))
            if part.count:
                yield first + start, batch.slice(at, part.count), part
                at += part.count

    def _tested(self) -> list[int]:
        return list(dict.fromkeys(c for test in self._read.tests for c in test.columns))

    def _is_big(self, group: int, columns: Sequence[int], picks: SelectionVector | None) -> bool:
        """Whether columns of the picked rows take so much memory that they are read in parts."""
        if picks is not None and not picks.count:
            return False
        size = self._reader.plain_bytes(group, self._leaves(columns))
        return size * (1.0 if picks is None else picks.count / picks.num_rows) > GROUP_BYTES

    def _leaves(self, columns: Sequence[int]) -> list[int]:
        return sorted({leaf for c in columns for leaf in self._plan.sources[c].leaves})

    def _narrowed(
        self, group: int, first: int, rows: int, picks: SelectionVector | None, found: dict[int, pa.Array]
    ) -> SelectionVector | None:
        """Run the tests; leave the columns that they needed in ``found``, cut to the rows that are returned."""
        for number, test in enumerate(self._read.tests):
            passing = None if found else self._passing(group, number, picks)
            if passing is not None:
                picks, tested = passing
                found |= tested
                if not picks.count:
                    return picks
                continue
            found |= self._decoded(group, [c for c in test.columns if c not in found], picks, rows)
            inner = test.select(self._file, first, found, rows if picks is None else picks.count, picks)
            later = {c for t in self._read.tests[number + 1 :] for c in t.columns}
            for column in self._read.tested_only.intersection(found) - later:
                del found[column]
            if inner is None:
                continue
            if not inner.count:
                return inner
            for column, array in found.items():
                found[column] = gather_column(array, inner, decode=False)
            picks = inner if picks is None else picks.narrowed(inner)
        return picks

    def _passing(
        self, group: int, number: int, picks: SelectionVector | None
    ) -> tuple[SelectionVector, dict[int, pa.Array]] | None:
        """Run a test while its column is decoded, and return the column if needed and found; None if that can't be."""
        values = self._read.tests[number].values
        source = None if values is None else self._plan.sources[values.column]
        if values is None or source is None or source.name is None or source.convert or len(source.leaves) != 1:
            return None
        column = values.column
        later = {c for test in self._read.tests[number + 1 :] for c in test.columns}
        is_needed = column in later or column not in self._read.tested_only
        start = perf_counter()
        found = self._reader.passing(group, source.leaves[0], values, is_needed, picks)
        if found is None:
            return None
        if self._read.observer is not None:
            rows_before = self._reader.group_rows[group] if picks is None else picks.count
            self._read.observer.decoded(number, rows_before, (perf_counter() - start) * 1000)
        rows, array = found
        return rows, {} if array is None else {column: array}

    def _narrowed_in_parts(
        self, group: int, first: int, rows: int, picks: SelectionVector | None
    ) -> SelectionVector | None:
        """Run the tests on a stretch of rows after the other, and keep none of the columns."""
        flags = np.ones(rows, np.bool_) if picks is None else picks.flags()
        columns = self._tested()
        for at, batch in self._reader.stream([group], 0, self._read.batch_rows, self._leaves(columns)):
            stretch = flags[at : at + batch.num_rows]
            part = SelectionVector.of_flags(stretch)
            found = self._converted(columns, dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)
            found = {c: gather_column(array, part, decode=False) for c, array in found.items()}
            for test in self._read.tests:
                if not part.count:
                    break
                inner = test.select(self._file, first + at, found, part.count, part)
                if inner is not None:
                    found = {c: gather_column(array, inner, decode=False) for c, array in found.items()}
                    part = part.narrowed(inner)
            stretch[:] = part.flags()
        return SelectionVector.of_flags(flags)

    def _streamed(self, group: int, first: int, picks: SelectionVector) -> Iterator[Batch]:
        """Yield picked rows of a row group that are too many to be in memory at once."""
        flags = picks.flags()
        for at, batch in self._reader.stream([group], first, self._read.batch_rows):
            part = SelectionVector.of_flags(flags[at - first : at - first + batch.num_rows])
            if part.count == part.num_rows:
                yield at, self._plan.convert(batch), None
            elif part.count:
                columns = [gather_column(c, part, decode=False) for c in batch.columns]
                yield at, self._plan.convert(pa.RecordBatch.from_arrays(columns, schema=batch.schema)), part

    def _decoded(
        self, group: int, columns: Sequence[int], picks: SelectionVector | None, rows: int = 0
    ) -> dict[int, pa.Array]:
        """Return physical columns of a row group, by number: the picked rows of them."""
        if not columns:
            return {}
        leaves = self._leaves(columns)
        stored = self._reader.columns(group, leaves, picks) if leaves else {}
        return self._converted(columns, stored, rows if picks is None else picks.count)

    def _converted(self, columns: Sequence[int], stored: dict[str, pa.Array], rows: int) -> dict[int, pa.Array]:
        out = {}
        for column in columns:
            source = self._plan.sources[column]
            if source.name is None:
                out[column] = pa.nulls(rows, self._plan.schema.field(column).type)
            else:
                array = stored[source.name]
                out[column] = array if source.convert is None else source.convert(array)
        return out

    def _batch(self, found: dict[int, pa.Array], rows: int) -> pa.RecordBatch:
        schema = self._plan.schema
        if not len(schema):
            return empty_rows(rows)
        arrays = [found[c] if c in found else pa.nulls(rows, schema.field(c).type) for c in range(len(schema))]
        return batch_of(arrays, schema)


def _parts(rows: int, most: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, most):
        yield start, min(most, rows - start)
