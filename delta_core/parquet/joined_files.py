"""Files on a local disk that are read together: which of a read's files these are, and their rows in batches.

Small files are read whole. Of others the requested columns are read, or the rows of them that pass the read's tests, if
they take little: for each file by itself Python would take as long as the decoder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.conditions import ColumnTest, RowCondition
from delta_core.engines.records import FileRead
from delta_core.kernels.arrow_buffers import null_array
from delta_core.kernels.gather import SelectionVector, gather_column
from delta_core.kernels.nested import batch_of, empty_rows
from delta_core.parquet import columns as own_decoder
from delta_core.parquet.file_layouts import LayoutColumns, LayoutPlan, layout_columns, layout_tests, ordered_columns
from delta_core.parquet.many_files import FilesRead, PickedRows, read_files
from delta_core.parquet.opened_file import DataFile
from delta_core.parquet.types import FilePlan
from delta_core.runtime.threads import num_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JoinedFiles"]

#: A file up to this size is small: it is read whole.
SMALL_BYTES = 256 << 10
#: The most files, and bytes, of a run that a thread takes at once; down to the least ones if each thread would have
#: fewer than two runs.
RUN_FILES, LEAST_RUN_FILES = 1024, 256
RUN_BYTES, LEAST_RUN_BYTES = 16 << 20, 4 << 20
#: The approximate bytes of the columns of one batch: of small files, and of medium ones.
BATCH_BYTES, MEDIUM_BATCH_BYTES = 32 << 20, 8 << 20
#: A file that is not small is medium if its requested columns take up to this as they are decoded: if rows are tested,
#: and if all are read. Of larger ones more memory is filled than is kept, and by itself such a file takes less of it.
TESTED_BYTES, WHOLE_BYTES = 8 << 20, 2 << 20
#: Medium files are read together from this number on, in runs of about `MEDIUM_RUN_BYTES` decoded; a file that is
#: larger than the first one by the factor `MOST_LARGER` is read by itself.
MEDIUM_FILES = 4
MEDIUM_RUN_BYTES = 32 << 20
MOST_LARGER = 2
#: A file of this many rows is not read together with others if strings are to stay codes, because here they are plain;
#: of tested rows few may be left.
CODED_ROWS, CODED_TESTED_ROWS = 1 << 16, 1 << 17
#: If the filter is evaluated, and the columns that it does not need have `OTHERS_BYTES` in the first file, small files
#: are opened twice, as medium ones are: first for the columns of the filter, of at most `MOST_EVALUATED_ROWS` at once,
#: and at most `EVALUATED_BYTES` in all requested columns.
OTHERS_BYTES = 64 << 10
MOST_EVALUATED_ROWS, EVALUATED_BYTES = 1 << 20, 16 << 20
#: A chunk of a tested column that takes more, and has an index of pages or a Bloom filter, is tested by these first.
INDEXED_BYTES = 1 << 20
#: Layouts that a file may have one of; PyArrow reads others.
MOST_LAYOUTS = 4
#: Files that no layout fitted or that were not read as theirs are, after which none is tried any more.
MOST_MISSES = 16


class _Requested(Struct, frozen=True):
    """The rows that are requested of a run of files, and how many rows each has; None: all of them."""

    rows: SelectionVector | None
    file_rows: NDArray[np.int64]

    def after(self, at: int) -> PickedRows | None:
        """Return those of the files from one on, None for all."""
        if self.rows is None:
            return None
        return PickedRows(self.rows.words(), self.file_rows[at:], int(self.file_rows[:at].sum()))


class _Files(Struct, frozen=True):
    """The remaining files of a run."""

    paths: list[bytes]
    sizes: NDArray[np.int64]
    picked: PickedRows | None


class JoinedFiles:
    """Reads runs of a read's files together.

    Parameters
    ----------
    read : FileRead
    local : sequence of str or None
        Where each file lies on a local disk.
    """

    def __init__(self, read: FileRead, local: Sequence[str | None]) -> None:
        self._read = read
        self._local = local
        #: The columns that tests need, and the others that are returned.
        self._tested = sorted(read.tested_columns)
        self._others = sorted(set(range(len(read.columns.members))).difference(read.tested_only, self._tested))
        #: By the bytes of footers that recognise it: threads add to it at the same time.
        self._layouts: dict[tuple[bytes, bytes], LayoutPlan] = {}
        self._misses = 0
        #: The tests of values that rows pass which are decoded.
        self._value_tests: tuple[ColumnTest | RowCondition, ...] = ()
        #: Whether these are all tests, whether the filter is evaluated before other columns are read, and whether files
        #: are read up to a size that is not small.
        self._is_tested = self._is_evaluated = self._is_medium = False
        #: The rows that are decoded at once, and in memory together, if the filter is evaluated.
        self._evaluated_rows = MOST_EVALUATED_ROWS
        self._most_size = SMALL_BYTES
        parts = 2 * num_cores()
        self._run_files = min(max(-(-len(read.sizes) // parts), LEAST_RUN_FILES), RUN_FILES)
        self._run_bytes = min(max(sum(filter(None, read.sizes)) // parts, LEAST_RUN_BYTES), RUN_BYTES)

    # --- how files are read: found out by the first one ---------------------------------------

    @property
    def needs_first(self) -> bool:
        """Whether `plan_first` finds out by the first file how all are read."""
        read = self._read
        may_pass = (
            own_decoder.USES_OWN_DECODER
            and read.apply_passing is not None
            and read.most_rows is None
            and read.most_passing is None
            and len(read.paths) >= MEDIUM_FILES
            and None not in self._local
        )
        return may_pass and (self._tests_values or self._may_evaluate or (self._may_read_all and self._is_first_medium))

    def plan_first(self, example: DataFile, plan: FilePlan, size: int, threads: int) -> None:
        """Read files like the first one together that are not small, or test rows of small ones as they are decoded.

        Parameters
        ----------
        example : DataFile
            The first file.
        plan : FilePlan
            Of this file.
        size : int
            The bytes of its requested columns.
        threads : int
            They take runs in turn.
        """
        if self._is_first_medium:
            self._join_medium(example, plan, size, threads)
            return
        others = plan.leaves_of(self._others)
        self._is_evaluated = self._may_evaluate and example.plain_bytes(others) >= OTHERS_BYTES
        if self._is_evaluated or self._tests_values:
            self._use_first(example, plan, size, is_tested=True)

    def _join_medium(self, example: DataFile, plan: FilePlan, size: int, threads: int) -> None:
        may_evaluate = self._may_evaluate
        is_tested = self._tests_values or may_evaluate
        most = TESTED_BYTES if is_tested and self._read.tests else WHOLE_BYTES
        if size > most or self._is_indexed(example, plan) or self._keeps_codes(example, plan):
            return
        self._is_evaluated = may_evaluate
        if not self._use_first(example, plan, size, is_tested=is_tested):
            return
        self._is_medium = True
        self._most_size = MOST_LARGER * (self._read.sizes[0] or 0)
        share = -(-len(self._read.paths) // (2 * threads))
        self._run_files = max(1, min(share, MEDIUM_RUN_BYTES // max(size, 1), RUN_FILES))

    def _use_first(self, example: DataFile, plan: FilePlan, size: int, *, is_tested: bool) -> bool:
        """Return whether files like the first one are read together, with the tests of values."""
        # not by the number of files: the first one may be much smaller than others
        if example.num_rows:
            self._evaluated_rows = min(MOST_EVALUATED_ROWS, EVALUATED_BYTES * example.num_rows // max(size, 1) + 1)
        self._value_tests = tuple(test.values for test in self._read.tests if test.values is not None)
        self._is_tested = is_tested
        found = self._layout_plan(example, plan, self._value_tests, is_tested=is_tested)
        if found is None:
            self._is_tested, self._is_evaluated, self._value_tests = False, False, ()
            return False
        self._layouts[found.key] = found
        return True

    @property
    def _is_first_medium(self) -> bool:
        return (self._read.sizes[0] or 0) > SMALL_BYTES

    @property
    def _tests_values(self) -> bool:
        """Whether rows are dropped or tested, and by nothing but their numbers and values."""
        leaves_out = bool(self._read.tests) or self._read.requested is not None
        return leaves_out and all(test.values is not None for test in self._read.tests)

    @property
    def _may_evaluate(self) -> bool:
        """Whether rows are tested, by nothing that is tested as values are decoded."""
        has_values = any(test.values is not None for test in self._read.tests)
        return self._read.select_files is not None and bool(self._tested) and not has_values

    @property
    def _may_read_all(self) -> bool:
        """Whether all rows of files that are not small may be read, and tested then."""
        read = self._read
        # else a file that is read by itself decodes the rows alone that are not dropped
        return read.apply_files is not None and read.requested is None and not read.beside_write

    def _keeps_codes(self, example: DataFile, plan: FilePlan) -> bool:
        """Whether the codes of strings are worth more than reading files together."""
        read = self._read
        if not read.keeps_codes or example.num_rows < (CODED_TESTED_ROWS if read.tests else CODED_ROWS):
            return False
        names = (source.name for number, source in enumerate(plan.sources) if number not in read.tested_only)
        return not set(example.encoded).isdisjoint(names)

    def _is_indexed(self, example: DataFile, plan: FilePlan) -> bool:
        """Whether tests may leave out large parts of files by an index, which is used of files read by themselves."""
        tested, footer = plan.leaves_of(self._tested), example.footer
        facts = [footer.chunk(group, leaf) for group in range(len(footer.group_rows)) for leaf in tested]
        return any(
            f is not None and f.compressed > INDEXED_BYTES and (f.bloom_filter or f.page_index) is not None
            for f in facts
        )

    # --- layouts -------------------------------------------------------------------------------

    def add_layout(self, file: DataFile, plan: FilePlan) -> None:
        """Read files like one together from now on, if our own decoder reads all of its columns."""
        found = None
        if len(self._layouts) < MOST_LAYOUTS:
            found = self._layout_plan(file, plan, self._value_tests, is_tested=self._is_tested)
            if found is None and self._is_tested and not self._is_medium:
                # a value that is stored in another way is tested once it is converted
                found = self._layout_plan(file, plan, (), is_tested=False)
        if found is None or self._layouts.setdefault(found.key, found) is not found:
            self._misses += 1

    def _layout_plan(
        self, file: DataFile, plan: FilePlan, tests: Sequence[ColumnTest | RowCondition], *, is_tested: bool
    ) -> LayoutPlan | None:
        """Return how files like one are read, None if a column of them is decoded or tested in another way."""
        own_tests = layout_tests(file, plan, tests)
        if own_tests is None:
            return None
        if is_tested and self._is_evaluated:
            columns, rest = layout_columns(file, plan, self._tested), layout_columns(file, plan, self._others)
            return None if columns is None or rest is None else LayoutPlan(columns, is_tested, rest)
        left_out = self._read.tested_only if is_tested else frozenset[int]()
        numbers = [number for number in range(len(self._read.columns.members)) if number not in left_out]
        columns = layout_columns(file, plan, numbers, own_tests)
        return None if columns is None else LayoutPlan(columns, is_tested)

    # --- rows ----------------------------------------------------------------------------------

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield all files of the read in runs from one number to another: of files read together, or of one file."""
        sizes, start, weight = self._read.sizes, 0, 0
        takes_runs = own_decoder.USES_OWN_DECODER and self._read.apply_files is not None
        for index, size in enumerate(sizes):
            is_joined = takes_runs and size is not None and size <= self._most_size
            if not is_joined or self._local[index] is None:
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
        at, requested = 0, self._requested(start, stop) if self._is_tested else None
        while at < len(paths) and self._misses < MOST_MISSES:
            # other threads may add layouts meanwhile
            known = tuple(self._layouts.values())
            for is_tested in (True, False) if requested is not None else (False,):
                layouts = [layout for layout in known if layout.is_tested == is_tested]
                files = _Files(paths[at:], sizes[at:], requested.after(at) if is_tested and requested else None)
                found = self._read_next(layouts, files) if layouts else None
                if found is not None and len(found.rows):
                    break
            else:
                return
            if is_tested and self._is_evaluated:
                batch, ends = self._rows_evaluated(layouts, found, start + at, files)
            else:
                batch, ends = self._rows_read(layouts, found)
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

    def _read_next(self, layouts: Sequence[LayoutPlan], files: _Files) -> FilesRead:
        most_rows, most_bytes = self._read.batch_rows, MEDIUM_BATCH_BYTES if self._is_medium else BATCH_BYTES
        if layouts[0].is_tested and self._is_evaluated:
            most_rows = self._evaluated_rows
        return _read_columns([layout.columns for layout in layouts], files, most_rows, most_bytes)

    def _rows_read(
        self, layouts: Sequence[LayoutPlan], found: FilesRead
    ) -> tuple[pa.RecordBatch | None, NDArray[np.int64]]:
        """Return the rows that were read, and where those of each file end; of no file if one is not sound."""
        columns = ordered_columns([layout.columns for layout in layouts], found, self._read.schema)
        ends = np.cumsum(found.rows)
        return (None, ends[:0]) if columns is None else (self._batch(columns, int(ends[-1])), ends)

    def _rows_evaluated(
        self, layouts: Sequence[LayoutPlan], found: FilesRead, first: int, files: _Files
    ) -> tuple[pa.RecordBatch | None, NDArray[np.int64]]:
        """Evaluate the filter on the columns that were read, and read the others of the rows for which it is true.

        Returns these rows, and where those of each file end; no rows: None. Ends before a file that is not sound.
        """
        tested = ordered_columns([layout.columns for layout in layouts], found, self._read.schema)
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
        passing = _narrowed(files.picked, found.rows, picks)
        # files without rows after the last row are read too
        most_rows = 1 + (num_rows if picks is None else picks.count)
        columns, kept = self._rest(layouts, _Files(files.paths[: len(ends)], files.sizes, passing), most_rows)
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

    def _rest(
        self, layouts: Sequence[LayoutPlan], files: _Files, most_rows: int
    ) -> tuple[dict[int, pa.Array] | None, int]:
        """Return the columns that a filter does not need, and of how many files; None if nothing was read."""
        rest = [layout.rest for layout in layouts if layout.rest is not None]
        if not self._others:
            return {}, len(files.paths)
        found = _read_columns(rest, files, most_rows, BATCH_BYTES)
        columns = ordered_columns(rest, found, self._read.schema) if len(found.rows) else None
        return columns, len(found.rows)

    def _batch(self, columns: Mapping[int, pa.Array], rows: int) -> pa.RecordBatch:
        """Return columns as a batch, with nulls for those that nothing looks at any more."""
        schema = self._read.schema
        if not len(schema):
            return empty_rows(rows)
        arrays = [columns[n] if n in columns else null_array(f.type, rows) for n, f in enumerate(schema)]
        return batch_of(arrays, schema)


def _read_columns(layouts: Sequence[LayoutColumns], files: _Files, most_rows: int, most_bytes: int) -> FilesRead:
    described = [columns.layout for columns in layouts]
    return read_files(described, files.paths, files.sizes, most_rows, most_bytes, SMALL_BYTES, files.picked)


def _narrowed(picked: PickedRows | None, rows: NDArray[np.int64], passing: SelectionVector | None) -> PickedRows | None:
    """Return the picked rows that pass; ``rows`` is the number of picked rows of each file; None for all."""
    if passing is None or picked is None:
        return picked if passing is None else PickedRows(passing.words(), rows, is_known=True)
    file_rows = picked.file_rows[: len(rows)]
    stop = picked.first + int(file_rows.sum())
    whole = SelectionVector.of_mask(picked.mask, 64 * len(picked.mask)).part(picked.first, stop)
    return PickedRows(whole.narrowed(passing).words(), file_rows, is_known=True)
