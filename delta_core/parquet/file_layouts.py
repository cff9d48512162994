"""How Parquet files of one layout are read together: their columns and tests, by a file that is an example of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.conditions import ColumnTest, RowCondition, passes_null
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import joined_batches, null_array, number_array
from delta_core.kernels.nested import batch_of
from delta_core.parquet import columns as own_decoder, page_parts
from delta_core.parquet.many_files import FileLayout, FilesRead, FileTest, FileTests, FlatColumn, NestedLeaf
from delta_core.parquet.opened_file import DataFile
from delta_core.parquet.pages import ColumnChunk, compiled_test, width_of
from delta_core.parquet.types import FilePlan

if TYPE_CHECKING:
    from delta_core.parquet.nested_pages import NestedChunk, NestedColumn

__all__ = ["LayoutColumns", "LayoutPlan", "layout_columns", "layout_tests", "ordered_columns"]

#: How a nested column is stored, and its Parquet columns that are requested.
Nested = tuple["NestedColumn", Mapping[int, "NestedChunk"]]


class LayoutColumns(Struct, frozen=True):
    """Columns of files of one layout that one call reads.

    Parameters
    ----------
    layout : FileLayout
    plan : FilePlan
        Of a file of this layout.
    numbers : tuple of int
        The columns, by their numbers in the read.
    nested : Mapping of int to (NestedColumn, Mapping of int to NestedChunk)
        Those of them that are nested, by the same numbers.
    """

    layout: FileLayout
    plan: FilePlan
    numbers: tuple[int, ...]
    nested: Mapping[int, Nested]

    def arrays(self, found: FilesRead, place: int, schema: pa.Schema) -> list[pa.Array] | None:
        """Return the columns of all files of this layout, None if a nested one is not sound.

        Parameters
        ----------
        found : FilesRead
            Of several layouts.
        place : int
            The number of this one among them.
        schema : pyarrow.Schema
            Of the read.
        """
        rows = int(found.rows[found.layouts == place].sum())
        flat, leaves = iter(found.columns[place]), iter(found.leaves[place])
        arrays = []
        for number in self.numbers:
            source = self.plan.sources[number]
            if source.name is None:
                arrays.append(null_array(schema.field(number).type, rows))
                continue
            if number in self.nested:
                column, chunks = self.nested[number]
                array = page_parts.assemble_files(column, chunks, list(islice(leaves, len(chunks))), rows)
                if array is None:
                    return None
            else:
                array = next(flat)
            arrays.append(array if source.convert is None else source.convert(array))
        return arrays


class LayoutPlan(Struct, frozen=True):
    """How files of one layout are read.

    Parameters
    ----------
    columns : LayoutColumns
        Of all rows, or of those that pass tests of values.
    is_tested : bool
        Whether only rows that pass all tests of the read are returned.
    rest : LayoutColumns, optional
        Read afterwards of the rows for which a filter on the others is true.
    """

    columns: LayoutColumns
    is_tested: bool
    rest: LayoutColumns | None = None

    @property
    def key(self) -> tuple[bytes, bytes]:
        """The bytes of the schema and the metadata that the footers of its files share."""
        return self.columns.layout.schema, self.columns.layout.metadata


def ordered_columns(
    layouts: Sequence[LayoutColumns], found: FilesRead, schema: pa.Schema
) -> dict[int, pa.Array] | None:
    """Return what was read of files of several layouts, in the order of the files.

    Parameters
    ----------
    layouts : sequence of LayoutColumns
        The same columns of each layout.
    found : FilesRead
        Of these layouts.
    schema : pyarrow.Schema
        Of the read.

    Returns
    -------
    dict of int to pyarrow.Array, or None
        By the number of the column; None if nested columns are not sound.
    """
    numbers = layouts[0].numbers
    if not numbers:
        return {}
    own = pa.schema([schema.field(number) for number in numbers])
    batches = []
    for place in np.unique(found.layouts).tolist():
        arrays = layouts[place].arrays(found, place, schema)
        if arrays is None:
            return None
        batches.append(batch_of(arrays, own))
    rows = batches[0] if len(batches) == 1 else _rows_in_order(batches, found)
    return dict(zip(numbers, rows.columns, strict=True))


def _rows_in_order(batches: Sequence[pa.RecordBatch], found: FilesRead) -> pa.RecordBatch:
    """Return rows that lie layout by layout in the order of their files."""
    order = np.argsort(found.layouts, kind="stable")
    begins = np.zeros(len(order), np.int64)
    begins[order] = np.cumsum(found.rows[order]) - found.rows[order]
    ends = np.cumsum(found.rows)
    numbers = np.arange(ends[-1]) + np.repeat(begins - (ends - found.rows), found.rows)
    return pc.take(joined_batches(batches), number_array(numbers))


def layout_columns(
    file: DataFile, plan: FilePlan, numbers: Sequence[int], tests: tuple[FileTest, ...] = ()
) -> LayoutColumns | None:
    """Return columns of all files that are like one, None if one of them is decoded in another way.

    Parameters
    ----------
    file : DataFile
        The example.
    plan : FilePlan
        Of this file.
    numbers : sequence of int
        The columns, by their numbers in the read.
    tests : tuple of FileTest
        See `layout_tests`.
    """
    nested = {n: found for n in numbers if (found := _nested_column(file, plan, n)) is not None}
    flat: list[FlatColumn] = []
    for number in numbers:
        if number in nested or plan.sources[number].name is None:
            continue
        column = _flat_column(file, plan, number)
        if column is None:
            return None
        flat.append(column)
    key = file.layout.key
    if key is None:
        return None
    leaves = [
        NestedLeaf(leaf, file.layout.leaves[leaf].physical, form)
        for column, chunks in nested.values()
        for leaf, form in page_parts.leaf_forms(column, chunks).items()
    ]
    return LayoutColumns(FileLayout(*key, tuple(flat), tests, tuple(leaves)), plan, tuple(numbers), nested)


def _nested_column(file: DataFile, plan: FilePlan, number: int) -> Nested | None:
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
        chunks[leaf] = page_parts.NestedChunk(chunk, 0, parquet.length)
    return column, chunks


def _flat_column(file: DataFile, plan: FilePlan, number: int) -> FlatColumn | None:
    """Return a flat column of a plan, None if it is nested, or PyArrow decodes it."""
    leaves = plan.sources[number].leaves
    form = file.layout.forms.get(leaves[0]) if len(leaves) == 1 else None
    if form is None:
        return None
    return FlatColumn(leaves[0], form.leaf.physical, form.type, form.leaf.most_level, form.stored)


def layout_tests(
    file: DataFile, plan: FilePlan, tests: Sequence[ColumnTest | RowCondition]
) -> tuple[FileTest, ...] | None:
    """Return tests of a read as tests of the values that files like one store; None if that is not possible.

    Parameters
    ----------
    file : DataFile
        The example.
    plan : FilePlan
        Of this file.
    tests : sequence of ColumnTest or RowCondition
        Of this read: `RowTest.values`.
    """
    out: list[FileTest] = []
    for test in tests:
        found: FileTest | None
        if isinstance(test, RowCondition):
            parts = layout_tests(file, plan, test.parts)
            found = None if parts is None else FileTests(parts, test.is_any)
        else:
            found = _column_test(file, plan, test)
        if found is None:
            return None
        out.append(found)
    return tuple(out)


def _column_test(file: DataFile, plan: FilePlan, test: ColumnTest) -> FileTest | None:
    source = plan.sources[test.column]
    if source.name is None:
        # all of its rows are null
        return FileTests((), is_any=not passes_null(test))
    column = None if source.convert else _flat_column(file, plan, test.column)
    compiled = None if column is None else compiled_test(test, column.type)
    if column is None or compiled is None or not compiled.fits_form(width_of(column.type), column.stored):
        return None
    return column, compiled
