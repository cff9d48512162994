"""Row groups with few requested rows: conditions are tested first, other columns are decoded for what passes them.

A row group is narrowed step by step: the rows that selectors leave, then one condition after the other, each on the
columns that it needs of the rows that are left. A row group is not read further once no row is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.conditions import ColumnTest, RowCondition
from delta_core.engines.records import FileRead
from delta_core.kernels.arrow_buffers import is_text, null_array, one_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.nested import batch_of, empty_rows
from delta_core.parquet.columns import GROUP_BYTES, WIDE_LEAVES, WORD_ROWS, GroupReader
from delta_core.parquet.stretches import Stretches
from delta_core.parquet.types import FilePlan, is_encoded_string

__all__ = ["Batch", "FilteredGroups"]

#: The most columns that are added one by one to a batch of many others.
_MOST_ADDED = 16
#: Physical columns by number.
Columns = dict[int, pa.Array]
#: The position of a batch's first row, the batch, and which of the rows from there on it has; None: each one.
Batch = tuple[int, pa.RecordBatch, "SelectionVector | None"]


class _Rows(Struct, frozen=True):
    """Rows that tests run on.

    Parameters
    ----------
    first : int
        The position of the first one.
    count : int
    decode : function(sequence of int, SelectionVector or None, int) -> dict of int to Array
        Returns columns of the picked rows, or of all rows; the last argument is their number.
    group : int, optional
        The row group that they are all rows of.
    """

    first: int
    count: int
    decode: Callable[[Sequence[int], SelectionVector | None, int], Columns]
    group: int | None = None


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
        #: The same of those that pass the tests.
        self._passing_left = read.most_passing if read.tests else None

    def batches(self, groups: Sequence[int], first: int) -> Iterator[Batch]:
        """Yield the requested rows of neighbouring row groups from a position on."""
        whole: list[int] = []
        start = first
        joined = 0
        for number, group in enumerate(groups):
            if number < joined:
                continue
            if self._left == 0 or self._passing_left == 0:
                break
            if self._read.tests and self._left is None:
                count = self._reader.num_joined(groups, number, self._plan.leaves, self._read.batch_rows)
                if count > 1:
                    joined = number + count
                    yield from self._joined(groups[number:joined], first)
                    first += sum(self._reader.group_rows[g] for g in groups[number:joined])
                    start = first
                    continue
            rows = self._reader.group_rows[group]
            picks = self._first_ones(self._wanted(first, rows), rows)
            if picks is None and not self._read.tests:
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
        return None if picks is None else picks.masked()

    def _first_ones(self, picks: SelectionVector | None, rows: int) -> SelectionVector | None:
        """Return the first of the picked rows, at most the number that is still needed."""
        if self._left is None:
            return picks
        count = rows if picks is None else picks.count
        if count > self._left:
            picks, count = _first(_every(rows) if picks is None else picks, self._left), self._left
        self._left -= count
        return picks

    def _first_passing(self, picks: SelectionVector, found: dict[int, pa.Array]) -> SelectionVector:
        """Return the first of the rows that pass, at most the number still needed, and cut their columns to them."""
        if self._passing_left is None:
            return picks
        if picks.count > self._passing_left:
            picks = _first(picks, self._passing_left)
            for column, array in found.items():
                found[column] = array.slice(0, picks.count)
        self._passing_left -= picks.count
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
        tested = self._plan.leaves_of(self._read.tested_columns)
        found: dict[int, pa.Array] = {}
        if self._reader.plain_bytes(group, tested) > GROUP_BYTES:
            picks, done = self._tested_texts(group, picks)
            if done < len(self._read.tests):
                if picks is None or picks.count:
                    yield from self._tested_stretches(group, first, rows, picks, tested, done)
                return
        else:
            picks = self._narrowed(_Rows(first, rows, partial(self._decoded, group), group), picks, found)
        picks = self._first_passing(_every(rows) if picks is None else picks, found)
        if not picks.count:
            return
        columns = self._rest(found)
        leaves = self._plan.leaves_of(columns)
        step = self._reader.stretch_rows(group, leaves, self._read.batch_rows, picks.count / rows)
        if step < rows:
            yield from self._stretches(group, first, columns, found, picks, step)
            return
        batch = self._wide_batch(group, columns, found, picks)
        if batch is None:
            batch = self._batch(found | self._decoded(group, columns, picks, rows), picks.count)
        yield from self._cut(first, batch, picks)

    def _wide_batch(
        self, group: int, columns: Sequence[int], found: Columns, picks: SelectionVector
    ) -> pa.RecordBatch | None:
        """Return the picked rows of many columns, and of those that were found; None if that is of no use."""
        plan = self._plan
        others = sorted(set(range(len(plan.sources))).difference(columns))
        if not plan.is_plain or len(columns) < WIDE_LEAVES or len(others) > _MOST_ADDED:
            return None
        schema = plan.schema
        for column in reversed(others):
            schema = schema.remove(column)
        batch = self._reader.wide_batch([group], [plan.leaves[c] for c in columns], schema, picks)
        if batch is None:
            return None
        for column in others:
            field = plan.schema.field(column)
            array = found[column] if column in found else null_array(field.type, picks.count)
            batch = batch.add_column(column, field, array)
        return batch

    def _joined(self, groups: Sequence[int], first: int) -> Iterator[Batch]:
        """Yield the rows of small neighbouring row groups that pass the tests, which run on all of them at once."""

        def decode(columns: Sequence[int], picks: SelectionVector | None, num_rows: int) -> Columns:
            leaves = self._plan.leaves_of(columns)
            whole = self._reader.joined(groups, leaves) if leaves else {}
            if whole is None:
                parts = [self._reader.columns(group, leaves, None) for group in groups]
                whole = {n: one_array(pa.chunked_array([part[n] for part in parts])) for n in parts[0]}
            if picks is not None:
                whole = {name: gather_column(array, picks, decode=False) for name, array in whole.items()}
            return self._converted(columns, whole, num_rows if picks is None else picks.count)

        rows = sum(self._reader.group_rows[group] for group in groups)
        picks = self._wanted(first, rows)
        if picks is not None and not picks.count:
            return
        found: Columns = {}
        picks = self._narrowed(_Rows(first, rows, decode), picks, found)
        picks = self._first_passing(_every(rows) if picks is None else picks, found)
        if picks.count:
            found |= decode(self._rest(found), picks, rows)
            yield from self._cut(first, self._batch(found, picks.count), picks)

    def _rest(self, found: Mapping[int, pa.Array]) -> list[int]:
        """Return the columns that are requested beside those that were found."""
        return [c for c in range(len(self._plan.sources)) if c not in found and c not in self._read.tested_only]

    def _stretches(
        self,
        group: int,
        first: int,
        columns: Sequence[int],
        found: dict[int, pa.Array],
        picks: SelectionVector,
        step: int,
    ) -> Iterator[Batch]:
        """Yield the picked rows of one stretch after the other: a waiting batch keeps its stretch in memory only."""
        stretches = self._reader.stretches(group, self._plan.leaves_of(columns))
        at = 0
        for start in range(0, picks.num_rows, step):
            stop = min(start + step, picks.num_rows)
            part = picks.part(start, stop)
            if not part.count:
                continue
            own = {c: array.slice(at, part.count) for c, array in found.items()}
            own |= self._converted(columns, stretches.read(start, stop, part), part.count)
            yield from self._cut(first + start, self._batch(own, part.count), part)
            at += part.count

    def _tested_stretches(
        self, group: int, first: int, rows: int, picks: SelectionVector | None, tested: Sequence[int], done: int
    ) -> Iterator[Batch]:
        """Run the tests from one on, on one stretch of rows after the other, and yield the rows that pass."""
        readers: dict[tuple[int, ...], Stretches] = {}

        def decode(start: int, columns: Sequence[int], part: SelectionVector | None, num_rows: int) -> Columns:
            leaves = tuple(self._plan.leaves_of(columns))
            if leaves and leaves not in readers:
                readers[leaves] = self._reader.stretches(group, leaves)
            stored = readers[leaves].read(start, start + num_rows, part) if leaves else {}
            return self._converted(columns, stored, num_rows if part is None else part.count)

        step = self._reader.stretch_rows(group, tested, self._read.batch_rows)
        for start in range(0, rows, step):
            if self._passing_left == 0:
                break
            count = min(step, rows - start)
            part = None if picks is None else picks.part(start, start + count)
            if part is not None and not part.count:
                continue
            found: dict[int, pa.Array] = {}
            part = self._narrowed(_Rows(first + start, count, partial(decode, start)), part, found, done)
            part = self._first_passing(_every(count) if part is None else part, found)
            if part.count:
                found |= decode(start, self._rest(found), part, count)
                yield from self._cut(first + start, self._batch(found, part.count), part)

    def _cut(self, first: int, batch: pa.RecordBatch, picks: SelectionVector) -> Iterator[Batch]:
        """Cut the picked rows of a row group into batches."""
        if picks.count <= self._read.batch_rows:
            yield first, batch, None if picks.count == picks.num_rows else picks
            return
        step = self._read.batch_rows
        # a batch begins with a word of the mask if it can
        step = step // WORD_ROWS * WORD_ROWS or step
        at = 0
        for start in range(0, picks.num_rows, step):
            part = picks.part(start, min(start + step, picks.num_rows))
            if part.count:
                yield first + start, batch.slice(at, part.count), part
                at += part.count

    def _narrowed(
        self, rows: _Rows, picks: SelectionVector | None, found: dict[int, pa.Array], done: int = 0
    ) -> SelectionVector | None:
        """Run the tests from one on; leave the columns that they needed in ``found``, cut to the rows that pass."""
        for number, test in enumerate(self._read.tests[done:], done):
            passing = None if found or rows.group is None else self._passing(rows.group, number, picks)
            if passing is not None:
                picks, tested = passing
                found |= tested
                if not picks.count:
                    return picks
                continue
            found |= rows.decode([c for c in test.columns if c not in found], picks, rows.count)
            inner = test.select(self._file, rows.first, found, rows.count if picks is None else picks.count, picks)
            later = {c for t in self._read.tests[number + 1 :] for c in t.columns}
            for column in self._read.tested_only.intersection(found) - later:
                del found[column]
            if inner is None:
                continue
            if not inner.count:
                return inner
            for column, array in found.items():
                found[column] = gather_column(array, inner, decode=False)
            picks = (inner if picks is None else picks.narrowed(inner)).masked()
        return picks

    def _tested_texts(self, group: int, picks: SelectionVector | None) -> tuple[SelectionVector | None, int]:
        """Run the first tests while their columns are decoded, and return how many these are.

        A page is in memory at a time, however large the row group is. None is run if no test is of strings, or for a
        limit: the first stretches may have enough rows.
        """
        tests = self._read.tests
        if self._passing_left is not None or not any(
            values is not None and not isinstance(values, RowCondition) and self._is_text(values.column)
            for values in (test.values for test in tests)
        ):
            return picks, 0
        for number in range(len(tests)):
            passing = self._passing(group, number, picks, may_return=False)
            if passing is None:
                return picks, number
            picks = passing[0]
            if not picks.count:
                break
        return picks, len(tests)

    def _is_text(self, column: int) -> bool:
        kind = self._plan.schema.field(column).type
        return is_text(kind) or is_encoded_string(kind)

    def _passing(
        self, group: int, number: int, picks: SelectionVector | None, may_return: bool = True
    ) -> tuple[SelectionVector, dict[int, pa.Array]] | None:
        """Run a test while its column is decoded, and return the column if needed and found; None if that can't be."""
        values = self._read.tests[number].values
        start = perf_counter()
        if values is None:
            return None
        found: tuple[SelectionVector, dict[int, pa.Array]] | None
        later = {c for test in self._read.tests[number + 1 :] for c in test.columns}
        needed = [c for c in self._read.tests[number].columns if c in later or c not in self._read.tested_only]
        if not isinstance(values, RowCondition):
            found = self._values_passing(group, values, may_return and bool(needed), picks)
        elif may_return and needed:  # they would be decoded twice
            found = None
        else:
            rows = self._rows_passing(group, values, picks)
            found = None if rows is None else (rows, {})
        if found is None:
            return None
        if self._read.observer is not None:
            rows_before = self._reader.group_rows[group] if picks is None else picks.count
            self._read.observer.decoded(number, rows_before, (perf_counter() - start) * 1000)
        return found

    def _values_passing(
        self, group: int, test: ColumnTest, is_needed: bool, picks: SelectionVector | None
    ) -> tuple[SelectionVector, dict[int, pa.Array]] | None:
        source = self._plan.sources[test.column]
        if source.name is None or source.convert or len(source.leaves) != 1:
            return None
        found = self._reader.passing(group, source.leaves[0], test, is_needed, picks)
        return None if found is None else (found[0], {} if found[1] is None else {test.column: found[1]})

    def _rows_passing(
        self, group: int, test: ColumnTest | RowCondition, picks: SelectionVector | None
    ) -> SelectionVector | None:
        """Run a condition on several columns: each test on the rows that the result still depends on."""
        if not isinstance(test, RowCondition):
            passing = self._values_passing(group, test, False, picks)
            return None if passing is None else passing[0]
        num_rows = self._reader.group_rows[group]
        left, passed = picks, np.zeros((num_rows + 63) // 64, np.uint64)
        for part in test.parts:
            found = self._rows_passing(group, part, left)
            if found is None or found.mask is None:
                return None
            if not test.is_any:
                left, passed = found, found.mask
            else:
                passed = passed | found.mask
                every = _every(num_rows).mask if picks is None else picks.mask
                left = None if every is None else SelectionVector.of_mask(every[: len(passed)] & ~passed, num_rows)
            if left is None or not left.count:
                break
        return SelectionVector.of_mask(passed, num_rows)

    def _decoded(self, group: int, columns: Sequence[int], picks: SelectionVector | None, rows: int) -> Columns:
        """Return physical columns of a row group, by number: the picked rows of them."""
        if not columns:
            return {}
        leaves = self._plan.leaves_of(columns)
        stored = self._reader.columns(group, leaves, picks) if leaves else {}
        return self._converted(columns, stored, rows if picks is None else picks.count)

    def _converted(self, columns: Sequence[int], stored: Mapping[str, pa.Array], rows: int) -> Columns:
        out = {}
        for column in columns:
            source = self._plan.sources[column]
            if source.name is None:
                out[column] = null_array(self._plan.schema.field(column).type, rows)
            else:
                array = stored[source.name]
                out[column] = array if source.convert is None else source.convert(array)
        return out

    def _batch(self, found: dict[int, pa.Array], rows: int) -> pa.RecordBatch:
        schema = self._plan.schema
        if not len(schema):
            return empty_rows(rows)
        arrays = [found[c] if c in found else null_array(schema.field(c).type, rows) for c in range(len(schema))]
        return batch_of(arrays, schema)


def _every(rows: int) -> SelectionVector:
    return SelectionVector.of_flags(np.ones(rows, np.bool_))


def _first(picks: SelectionVector, count: int) -> SelectionVector:
    """Return the first of more picked rows, with a mask of them."""
    flags = picks.flags()
    flags[np.flatnonzero(flags)[count] :] = False
    return SelectionVector.of_flags(flags)


def _parts(rows: int, most: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, most):
        yield start, min(most, rows - start)
