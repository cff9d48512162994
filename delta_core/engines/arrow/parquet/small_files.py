"""Runs of files on a local disk: which of a read's files are read together, and what they have in common.

Small files are read whole. Of others the requested columns are read, or the rows of them that pass the read's tests, if
they take little: for each file by itself Python would take as long as the decoder.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.parquet import columns as own_decoder
from delta_core.engines.arrow.parquet.opened_file import DataFile
from delta_core.engines.arrow.parquet.types import FilePlan
from delta_core.engines.records import FileRead
from delta_core.kernels import compute as pc
from delta_core.kernels import parts as kernels
from delta_core.kernels.arrow_buffers import null_array, number_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.kernels.nested import batch_of, empty_rows
from delta_core.kernels.parquet_files import (
    FileLayout,
    FilesRead,
    FileTest,
    FileTests,
    FlatColumn,
    NestedLeaf,
    PickedRows,
    read_files,
)
from delta_core.kernels.parquet_pages import ColumnChunk, ColumnTest, RowCondition, compiled_test, passes_null, width_of
from delta_core.runtime.threads import num_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernels.parquet_nested import NestedChunk, NestedColumn

__all__ = ["SmallFiles"]

#: A file up to this size is read whole.
SMALL_BYTES = 256 << 10
#: A run that a thread takes at once: so many files, or bytes of them; down to the least if each thread would not have
#: two runs.
RUN_FILES, LEAST_RUN_FILES = 1024, 256
RUN_BYTES, LEAST_RUN_BYTES = 16 << 20, 4 << 20
#: What columns of one batch hold, about: of small files, and of others.
BATCH_BYTES, MEDIUM_BATCH_BYTES = 32 << 20, 8 << 20
#: A file whose requested columns take up to this as they are decoded is read with others, if rows are tested, or if all
#: are read: then more memory is filled than is kept, and by itself a larger file takes less of it. So many files at
#: least, and so many bytes of a run; a file that is larger than the example by this factor is read by itself.
TESTED_BYTES, WHOLE_BYTES = 8 << 20, 2 << 20
#: If the filter is evaluated, and the columns that it does not need have so many bytes in the example, files are opened
#: twice: first the others are read, of so many rows, or of those that have so many bytes in all requested columns.
OTHERS_BYTES = 64 << 10
MOST_EVALUATED_ROWS, EVALUATED_BYTES = 1 << 20, 16 << 20
MEDIUM_FILES = 4
MEDIUM_RUN_BYTES = 32 << 20
MOST_LARGER = 2
#: A chunk of a tested column that takes more, and has an index of pages or a Bloom filter, is tested by these first.
INDEXED_BYTES = 1 << 20
#: Layouts that a file may have one of; PyArrow reads others.
MOST_LAYOUTS = 4
#: Files that no layout fitted or that were not read as theirs are, after which none is tried any more.
MOST_MISSES = 16


#: How a nested column is stored, and its Parquet columns that are requested.
Nested = tuple["NestedColumn", Mapping[int, "NestedChunk"]]


class _Part(Struct, frozen=True):
    """Columns of files of one layout that are read by one call, and what becomes of them."""

    layout: FileLayout
    plan: FilePlan
    #: Their numbers.
    numbers: tuple[int, ...]
    #: By the numbers of columns that are nested.
    nested: Mapping[int, Nested]


class _Known(Struct, frozen=True):
    """A layout of files: the columns that are read of all rows, or of those that pass tests of values."""

    part: _Part
    #: Whether only rows that pass all tests are returned.
    is_tested: bool
    #: The columns that are read of the rows for which a filter on the others is true.
    rest: _Part | None = None

    @property
    def key(self) -> tuple[bytes, bytes]:
        """What its files' footers have in common."""
        return self.part.layout.schema, self.part.layout.metadata


class _Requested(Struct, frozen=True):
    """The rows that are requested of a run of files, and how many rows each has; None: all of them."""

    rows: SelectionVector | None
    file_rows: NDArray[np.int64]

    def behind(self, at: int) -> PickedRows | None:
        """Return those of the files from one on, None for all."""
        if self.rows is None:
            return None
        return PickedRows(self.rows.words(), self.file_rows[at:], int(self.file_rows[:at].sum()))


class _Files(Struct, frozen=True):
    """What is left of a run of files."""

    paths: list[bytes]
    sizes: NDArray[np.int64]
    picked: PickedRows | None


class SmallFiles:
    """Reads runs of a read's small files.

    Parameters
    ----------
    read : FileRead
    local : sequence of str or None
        Where each file lies on a local disk.
    """

    def __init__(self, read: FileRead, local: Sequence[str | None]) -> None:
        self._read = read
        self._local = local
        #: By the bytes of footers that recognise it: threads add to it at the same time.
        self._known: dict[tuple[bytes, bytes], _Known] = {}
        self._misses = 0
        #: The tests of values that rows pass which are decoded.
        self._pushed: tuple[ColumnTest | RowCondition, ...] = ()
        #: Whether these are all tests, whether the filter is evaluated before other columns are read, and whether files
        #: are read up to a size that is not small.
        self._is_tested = self._is_evaluated = self._is_medium = False
        #: So many rows at once have what is in memory together, decoded, if the filter is evaluated.
        self._evaluated_rows = MOST_EVALUATED_ROWS
        self._most_size = SMALL_BYTES
        parts = 2 * num_cores()
        self._run_files = min(max(-(-len(read.sizes) // parts), LEAST_RUN_FILES), RUN_FILES)
        self._run_bytes = min(max(sum(filter(None, read.sizes)) // parts, LEAST_RUN_BYTES), RUN_BYTES)

    @property
    def may_be_tested(self) -> bool:
        """Whether rows of small files may be tested before their other columns are decoded."""
        return self._may_pass and (self._pushes_all or self._may_evaluate) and not self._is_first_medium

    @property
    def may_be_medium(self) -> bool:
        """Whether files that are not small may be read together: all of their rows, or those that pass all tests."""
        return (
            self._may_pass and (self._pushes_all or self._may_evaluate or self._may_read_all) and self._is_first_medium
        )

    @property
    def _may_read_all(self) -> bool:
        """Whether all rows of files that are not small may be read, and tested then."""
        read = self._read
        # else a file that is read by itself decodes the rows alone that are not dropped
        return read.apply_files is not None and read.requested is None and not read.beside_write

    @property
    def _may_pass(self) -> bool:
        """Whether rows that pass may come without the others, of enough files, all of them local."""
        read = self._read
        return (
            own_decoder.USES_OWN_DECODER
            and read.apply_passing is not None
            and read.most_rows is None
            and read.most_passing is None
            and len(read.paths) >= MEDIUM_FILES
            and None not in self._local
        )

    @property
    def _is_first_medium(self) -> bool:
        return (self._read.sizes[0] or 0) > SMALL_BYTES

    @property
    def _pushes_all(self) -> bool:
        """Whether rows are dropped or tested, and by nothing but their numbers and values."""
        leaves_out = bool(self._read.tests) or self._read.requested is not None
        return leaves_out and all(test.values is not None for test in self._read.tests)

    @property
    def _may_evaluate(self) -> bool:
        """Whether rows are tested, by nothing that is tested as values are decoded."""
        has_values = any(test.values is not None for test in self._read.tests)
        return self._read.select_files is not None and bool(self._tested_columns) and not has_values

    @property
    def _tested_columns(self) -> set[int]:
        return {column for test in self._read.tests for column in test.columns}

    def test_rows(self, example: DataFile, plan: FilePlan, size: int) -> None:
        """Test rows of small files before their other columns are decoded, if the first one allows it.

        The parameters are those of `read_medium`.
        """
        self._is_evaluated = self._may_evaluate and self._is_worth_opening_twice(example, plan)
        if self._is_evaluated or self._pushes_all:
            self._learn_first(example, plan, size, is_tested=True)

    def _is_worth_opening_twice(self, example: DataFile, plan: FilePlan) -> bool:
        others = set(range(len(plan.sources))) - self._read.tested_only - self._tested_columns
        leaves = [leaf for number in others for leaf in plan.sources[number].leaves]
        footer = example.footer
        return sum(footer.plain_bytes(group, leaves) for group in range(len(footer.group_rows))) >= OTHERS_BYTES

    def _learn_first(self, example: DataFile, plan: FilePlan, size: int, *, is_tested: bool) -> bool:
        """Return whether files like the first one are read together, with the tests of values."""
        # not by the number of files: the first one may be much smaller than others
        if example.num_rows:
            self._evaluated_rows = min(MOST_EVALUATED_ROWS, EVALUATED_BYTES * example.num_rows // max(size, 1) + 1)
        self._pushed = tuple(test.values for test in self._read.tests if test.values is not None)
        self._is_tested = is_tested
        known = self._layout_of(example, plan, self._pushed, is_tested=is_tested)
        if known is None:
            self._is_tested, self._is_evaluated, self._pushed = False, False, ()
            return False
        self._known[known.key] = known
        return True

    def read_medium(self, example: DataFile, plan: FilePlan, size: int, threads: int) -> None:
        """Read files together from now on that are not small, if they are like the first one.

        Parameters
        ----------
        example : DataFile
            The first file.
        plan : FilePlan
            Of this file.
        size : int
            What its requested columns take, in bytes.
        threads : int
            They take runs in turn.
        """
        may_evaluate = self._may_evaluate
        is_tested = self._pushes_all or may_evaluate
        most = TESTED_BYTES if is_tested and self._read.tests else WHOLE_BYTES
        if size > most or self._is_indexed(example, plan):
            return
        self._is_evaluated = may_evaluate
        if not self._learn_first(example, plan, size, is_tested=is_tested):
            return
        self._is_medium = True
        self._most_size = MOST_LARGER * (self._read.sizes[0] or 0)
        share = -(-len(self._read.paths) // (2 * threads))
        self._run_files = max(1, min(share, MEDIUM_RUN_BYTES // max(size, 1), RUN_FILES))

    def _is_indexed(self, example: DataFile, plan: FilePlan) -> bool:
        """Whether tests may leave out large parts of files by an index, which is used of files read by themselves."""
        tested = {leaf for test in self._read.tests for column in test.columns for leaf in plan.sources[column].leaves}
        footer = example.footer
        facts = [footer.chunk(group, leaf) for group in range(len(footer.group_rows)) for leaf in tested]
        return any(
            f is not None and f.compressed > INDEXED_BYTES and (f.bloom_filter or f.page_index) is not None
            for f in facts
        )

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield all files of the read in runs from one number to another: of small files, or of one that is not."""
        sizes, start, weight = self._read.sizes, 0, 0
        takes_runs = own_decoder.USES_OWN_DECODER and self._read.apply_files is not None
        for index, size in enumerate(sizes):
            is_small = takes_runs and size is not None and size <= self._most_size
            if not is_small or self._local[index] is None:
                if start < index:
                    yield start, index
                yield index, index + 1
                start, weight = index + 1, 0
                continue
            weight += size or 0
            if index + 1 - start == self._run_files or (weight >= self._run_bytes and not self._is_medium):
                yield start, index + 1
                start, weight = index + 1, 0
        if start < len(sizes):
            yield start, len(sizes)

    def batches(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Read files together from ``start`` on; yield the next one's number with what ``apply`` made of these.

        Ends before a file that is to be read by itself.
        """
        paths = [os.fsencode(p or "") for p in self._local[start:stop]]
        sizes = np.array(self._read.sizes[start:stop], np.int64)
        at, requested = 0, self._requested(start, stop)
        while at < len(paths) and self._misses < MOST_MISSES:
            # others may learn further layouts meanwhile
            known = tuple(self._known.values())
            for is_tested in (True, False) if requested is not None else (False,):
                of_kind = [k for k in known if k.is_tested == is_tested]
                files = _Files(paths[at:], sizes[at:], requested.behind(at) if is_tested and requested else None)
                found = self._read_next(of_kind, files) if of_kind else None
                if found is not None and len(found.rows):
                    break
            else:
                return
            read = self._passing if is_tested and self._is_evaluated else self._all
            batch, ends = read(of_kind, found, start + at, files)
            if not len(ends):
                # read by itself, the next file is decoded by PyArrow, or it reports the fault
                self._misses += 1
                return
            apply = self._read.apply_passing if is_tested else self._read.apply_files
            assert apply is not None
            yield start + at + len(ends), None if batch is None else apply(start + at, ends, batch)
            at += len(ends)

    def _requested(self, start: int, stop: int) -> _Requested | None:
        """Return the rows of files that are requested, None if that is in the files alone."""
        if self._read.requested is None:
            return _Requested(None, np.empty(0, np.int64))
        found = self._read.requested(start, stop)
        return None if found is None else _Requested(*found)

    def _read_next(self, known: Sequence[_Known], files: _Files) -> FilesRead:
        most_rows, most_bytes = self._read.batch_rows, MEDIUM_BATCH_BYTES if self._is_medium else BATCH_BYTES
        if known[0].is_tested and self._is_evaluated:
            most_rows = self._evaluated_rows
        layouts = [k.part.layout for k in known]
        return read_files(layouts, files.paths, files.sizes, most_rows, most_bytes, SMALL_BYTES, files.picked)

    def _all(
        self, known: Sequence[_Known], found: FilesRead, first: int, files: _Files
    ) -> tuple[pa.RecordBatch | None, NDArray[np.int64]]:
        """Return the rows that were read, and where those of each file end; of no file if one is not sound."""
        columns = self._in_order([k.part for k in known], found)
        ends = np.cumsum(found.rows)
        return (None, ends[:0]) if columns is None else (self._batch(columns, int(ends[-1])), ends)

    def _passing(
        self, known: Sequence[_Known], found: FilesRead, first: int, files: _Files
    ) -> tuple[pa.RecordBatch | None, NDArray[np.int64]]:
        """Evaluate the filter on the columns that were read, and read the others of the rows for which it is true.

        Returns these rows, and where those of each file end; no rows: None. Ends before a file that is not sound.
        """
        tested = self._in_order([k.part for k in known], found)
        if tested is None:
            return None, found.rows[:0]
        assert self._read.select_files is not None
        ends = np.cumsum(found.rows)
        num_rows = int(ends[-1])
        picks = self._read.select_files(first, ends, tested, num_rows)
        if picks is not None and not picks.count:
            return None, np.zeros(len(ends), np.int64)
        if picks is not None:
            ends = np.searchsorted(picks.indices, ends).astype(np.int64)
        mask = _narrowed(files.picked, found.rows, picks)
        # files without rows behind the last row are read too
        most_rows = 1 + (num_rows if picks is None else picks.count)
        columns, kept = self._others(known, _Files(files.paths[: len(ends)], files.sizes, mask), most_rows)
        if columns is None:
            return None, ends[:0]
        if kept < len(ends) and sum(column.nbytes for column in columns.values()) >= BATCH_BYTES:
            # strings of few distinct values are larger than they are stored; rows that are left are evaluated again
            self._evaluated_rows = max(1, int(found.rows[:kept].sum()))
        rows = int(ends[kept - 1])
        for number in tested.keys() - self._read.tested_only:
            column = tested[number] if picks is None else gather_column(tested[number], picks, decode=False)
            columns[number] = column.slice(0, rows)
        return self._batch(columns, rows), ends[:kept]

    def _others(self, known: Sequence[_Known], files: _Files, most_rows: int) -> tuple[dict[int, pa.Array] | None, int]:
        """Return the columns that a filter does not need, and of how many files; None if nothing was read."""
        parts = [k.rest for k in known if k.rest is not None and k.rest.numbers]
        if not parts:
            return {}, len(files.paths)
        layouts = [part.layout for part in parts]
        found = read_files(layouts, files.paths, files.sizes, most_rows, BATCH_BYTES, SMALL_BYTES, files.picked)
        return self._in_order(parts, found) if len(found.rows) else None, len(found.rows)

    def _in_order(self, parts: Sequence[_Part], found: FilesRead) -> dict[int, pa.Array] | None:
        """Return columns of files in their order, whatever their layouts; None if nested columns are not sound."""
        numbers = parts[0].numbers
        if not numbers:
            return {}
        schema = pa.schema([self._read.schema.field(n) for n in numbers])
        batches = []
        for i in np.unique(found.layouts):
            arrays = self._arrays(parts[i], found, int(i), int(found.rows[found.layouts == i].sum()))
            if arrays is None:
                return None
            batches.append(batch_of(arrays, schema))
        rows = batches[0] if len(batches) == 1 else _rows_in_order(batches, found)
        return dict(zip(numbers, rows.columns, strict=True))

    def learn(self, file: DataFile, plan: FilePlan) -> None:
        """Take a file for an example of those that follow, if our own decoder reads all of its columns."""
        known = None
        if len(self._known) < MOST_LAYOUTS:
            known = self._layout_of(file, plan, self._pushed, is_tested=self._is_tested)
            if known is None and self._is_tested and not self._is_medium:
                # a value that is stored in another way is tested once it is converted
                known = self._layout_of(file, plan, (), is_tested=False)
        if known is None or self._known.setdefault(known.key, known) is not known:
            self._misses += 1

    def _layout_of(
        self, file: DataFile, plan: FilePlan, pushed: Sequence[ColumnTest | RowCondition], *, is_tested: bool
    ) -> _Known | None:
        """Return a file's layout, None if a column of it is decoded or tested in another way."""
        tests = _tests(file, plan, pushed)
        if tests is None:
            return None
        left_out = self._read.tested_only if is_tested else frozenset[int]()
        numbers = [number for number in range(len(self._read.columns.fields)) if number not in left_out]
        if not is_tested or not self._is_evaluated:
            part = _part(file, plan, numbers, tests)
            return None if part is None else _Known(part, is_tested)
        tested = self._tested_columns
        part = _part(file, plan, sorted(tested), ())
        rest = _part(file, plan, [n for n in numbers if n not in tested], ())
        return None if part is None or rest is None else _Known(part, is_tested, rest)

    def _arrays(self, part: _Part, found: FilesRead, number: int, rows: int) -> list[pa.Array] | None:
        """Return columns of the files of one layout, None if a nested one is not sound."""
        flat, leaves = iter(found.columns[number]), iter(found.leaves[number])
        arrays = []
        for at in part.numbers:
            source = part.plan.sources[at]
            if source.name is None:
                arrays.append(null_array(self._read.schema.field(at).type, rows))
                continue
            if at in part.nested:
                column, chunks = part.nested[at]
                array = kernels.assemble_files(column, chunks, list(islice(leaves, len(chunks))), rows)
                if array is None:
                    return None
            else:
                array = next(flat)
            arrays.append(array if source.convert is None else source.convert(array))
        return arrays

    def _batch(self, columns: Mapping[int, pa.Array], rows: int) -> pa.RecordBatch:
        """Return columns as a batch, with nulls for those that nothing looks at any more."""
        schema = self._read.schema
        if not len(schema):
            return empty_rows(rows)
        arrays = [columns[n] if n in columns else null_array(f.type, rows) for n, f in enumerate(schema)]
        return batch_of(arrays, schema)


def _narrowed(picked: PickedRows | None, rows: NDArray[np.int64], passing: SelectionVector | None) -> PickedRows | None:
    """Return the rows that pass of those that were picked of files, so many of each; None for all."""
    if passing is None or picked is None:
        return picked if passing is None else PickedRows(passing.words(), rows, is_known=True)
    file_rows = picked.file_rows[: len(rows)]
    stop = picked.first + int(file_rows.sum())
    whole = SelectionVector.of_mask(picked.mask, 64 * len(picked.mask)).part(picked.first, stop)
    return PickedRows(whole.narrowed(passing).words(), file_rows, is_known=True)


def _rows_in_order(batches: Sequence[pa.RecordBatch], found: FilesRead) -> pa.RecordBatch:
    """Return rows that lie layout by layout in the order of their files."""
    order = np.argsort(found.layouts, kind="stable")
    begins = np.zeros(len(order), np.int64)
    begins[order] = np.cumsum(found.rows[order]) - found.rows[order]
    ends = np.cumsum(found.rows)
    numbers = np.arange(ends[-1]) + np.repeat(begins - (ends - found.rows), found.rows)
    return pc.take(pa.concat_batches(batches, memory_pool=POOL_OF_BATCHES), number_array(numbers))


def _part(file: DataFile, plan: FilePlan, numbers: Sequence[int], tests: tuple[FileTest, ...]) -> _Part | None:
    """Return columns of a file as those of others like it, None if one of them is decoded in another way."""
    nested = {n: found for n in numbers if (found := _nested(file, plan, n)) is not None}
    columns = _columns(file, plan, [n for n in numbers if n not in nested])
    key = file.layout.key
    if key is None or columns is None:
        return None
    leaves = [
        NestedLeaf(leaf, file.layout.leaves[leaf].physical, form)
        for column, chunks in nested.values()
        for leaf, form in kernels.leaf_forms(column, chunks).items()
    ]
    return _Part(FileLayout(*key, columns, tests, tuple(leaves)), plan, tuple(numbers), nested)


def _nested(file: DataFile, plan: FilePlan, number: int) -> Nested | None:
    """Return a nested column of a plan, None if it is flat, or PyArrow decodes it."""
    source = plan.sources[number]
    chunks: dict[int, NestedChunk] = {}
    places = [file.layout.nested.get(leaf) for leaf in source.leaves]
    if source.name is None or not places or places[0] is None:
        return None
    column = places[0][1]
    for leaf in source.leaves:
        parquet = file.layout.leaves[leaf]
        stored = own_decoder.nested_value_type(parquet, column.leaves[leaf][0])
        if stored is None:
            return None
        # only how values are stored is the same in all files
        chunk = ColumnChunk(stored, 0, 0, "UNCOMPRESSED", parquet.most_level, 0, 0)
        chunks[leaf] = kernels.NestedChunk(chunk, 0, parquet.length)
    return column, chunks


def _columns(file: DataFile, plan: FilePlan, numbers: Collection[int]) -> tuple[FlatColumn, ...] | None:
    """Return some columns of a plan that the file has, None if one of them is not flat."""
    out = []
    for number in numbers:
        if plan.sources[number].name is None:
            continue
        column = _column(file, plan, number)
        if column is None:
            return None
        out.append(column)
    return tuple(out)


def _column(file: DataFile, plan: FilePlan, number: int) -> FlatColumn | None:
    leaves = plan.sources[number].leaves
    form = file.layout.forms.get(leaves[0]) if len(leaves) == 1 else None
    if form is None:
        return None
    return FlatColumn(leaves[0], form.leaf.physical, form.type, form.leaf.most_level, form.stored)


def _tests(file: DataFile, plan: FilePlan, tests: Sequence[ColumnTest | RowCondition]) -> tuple[FileTest, ...] | None:
    """Return the tests of a read as those of stored values; None if one of them is none."""
    out: list[FileTest] = []
    for test in tests:
        found: FileTest | None
        if isinstance(test, RowCondition):
            parts = _tests(file, plan, test.parts)
            found = None if parts is None else FileTests(parts, test.is_any)
        else:
            found = _test(file, plan, test)
        if found is None:
            return None
        out.append(found)
    return tuple(out)


def _test(file: DataFile, plan: FilePlan, test: ColumnTest) -> FileTest | None:
    source = plan.sources[test.column]
    if source.name is None:
        # all of its rows are null
        return FileTests((), is_any=not passes_null(test))
    column = None if source.convert else _column(file, plan, test.column)
    compiled = None if column is None else compiled_test(test, column.type)
    if column is None or compiled is None or not compiled.fits_form(width_of(column.type), column.stored):
        return None
    return column, compiled
