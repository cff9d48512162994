"""Runs of small files on a local disk: which of a read's files are read together, and what they have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.parquet import columns as own_decoder
from delta_core.engines.arrow.parquet.opened_file import DataFile
from delta_core.engines.arrow.parquet.types import FilePlan
from delta_core.engines.interface import FileRead
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import null_array, number_array
from delta_core.kernels.nested import batch_of, empty_rows
from delta_core.kernels.parquet_files import FileLayout, FilesRead, FlatColumn, read_files

__all__ = ["SmallFiles"]

#: A file up to this size is read whole.
SMALL_BYTES = 256 << 10
#: A run that a thread takes at once: so many files, or bytes of them.
RUN_FILES = 1024
RUN_BYTES = 16 << 20
#: What columns of one batch hold, about.
BATCH_BYTES = 32 << 20
#: Layouts that a file may have one of; PyArrow reads others.
MOST_LAYOUTS = 4
#: Files that no layout fitted, after which none is tried any more.
MOST_MISSES = 16


class _Known(Struct, frozen=True):
    """A layout of files, with what becomes of their columns."""

    layout: FileLayout
    plan: FilePlan


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
        self._known: list[_Known] = []
        self._misses = 0

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield all files of the read in runs from one number to another: of small files, or of one that is not."""
        sizes, start, weight = self._read.sizes, 0, 0
        takes_runs = own_decoder.USES_OWN_DECODER and self._read.apply_files is not None
        for index, size in enumerate(sizes):
            is_small = takes_runs and size is not None and size <= SMALL_BYTES
            if not is_small or self._local[index] is None:
                if start < index:
                    yield start, index
                yield index, index + 1
                start, weight = index + 1, 0
                continue
            weight += size or 0
            if index + 1 - start == RUN_FILES or weight >= RUN_BYTES:
                yield start, index + 1
                start, weight = index + 1, 0
        if start < len(sizes):
            yield start, len(sizes)

    def batches(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Read files together from ``start`` on; yield the next one's number with what ``apply_files`` made of these.

        Ends before a file that is to be read by itself.
        """
        assert self._read.apply_files is not None
        paths = [os.fsencode(p or "") for p in self._local[start:stop]]
        sizes = np.array(self._read.sizes[start:stop], np.int64)
        at = 0
        while at < len(paths) and self._known and self._misses < MOST_MISSES:
            # others may learn further layouts meanwhile
            known = tuple(self._known)
            found = read_files([k.layout for k in known], paths[at:], sizes[at:], self._read.batch_rows, BATCH_BYTES)
            if not len(found.rows):
                return
            batch = self._in_order(known, found)
            yield start + at + len(found.rows), self._read.apply_files(start + at, np.cumsum(found.rows), batch)
            at += len(found.rows)

    def _in_order(self, known: Sequence[_Known], found: FilesRead) -> pa.RecordBatch:
        """Return the rows of files in their order, whatever their layouts."""
        if not len(self._read.schema):
            return empty_rows(int(found.rows.sum()))
        used = np.unique(found.layouts)
        batches = [
            self._batch(known[i].plan, found.columns[i], int(found.rows[found.layouts == i].sum())) for i in used
        ]
        if len(batches) == 1:
            return batches[0]
        # the rows lie layout by layout: where does each file begin among them?
        order = np.argsort(found.layouts, kind="stable")
        begins = np.zeros(len(order), np.int64)
        begins[order] = np.cumsum(found.rows[order]) - found.rows[order]
        ends = np.cumsum(found.rows)
        numbers = np.arange(ends[-1]) + np.repeat(begins - (ends - found.rows), found.rows)
        return pc.take(pa.concat_batches(batches), number_array(numbers))

    def learn(self, file: DataFile, plan: FilePlan) -> None:
        """Take a file for an example of those that follow, if its columns are all flat ones."""
        self._misses += 1
        columns = _columns(file, plan)
        key = None if columns is None or len(self._known) >= MOST_LAYOUTS else file.layout.key
        if key is None or columns is None:
            return
        layout = FileLayout(*key, columns)
        if all(known.layout != layout for known in self._known):
            self._known.append(_Known(layout, plan))
            self._misses -= 1

    def _batch(self, plan: FilePlan, columns: list[pa.Array], rows: int) -> pa.RecordBatch:
        schema = self._read.schema
        decoded = iter(columns)
        arrays = []
        for number, source in enumerate(plan.sources):
            if source.name is None:
                arrays.append(null_array(schema.field(number).type, rows))
            else:
                array = next(decoded)
                arrays.append(array if source.convert is None else source.convert(array))
        return batch_of(arrays, schema)


def _columns(file: DataFile, plan: FilePlan) -> tuple[FlatColumn, ...] | None:
    """Return the columns that a plan decodes, None if one of them is not flat."""
    out = []
    for source in plan.sources:
        if source.name is None:
            continue
        form = file.layout.forms.get(source.leaves[0]) if len(source.leaves) == 1 else None
        if form is None:
            return None
        out.append(FlatColumn(source.leaves[0], form.leaf.physical, form.type, form.leaf.most_level, form.stored))
    return tuple(out)
